//! What a result says beside what came of its call: what goes on, of which kind an agent is, how it begins. It looks at one event only.

use crate::evidence::{AgentEvidence, Evidence, created_file};
use crate::model::{Content, Event, Verdict};
use crate::text::beginning;

/// What a result says.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub verdict: Option<Verdict>,
    /// Names by which later calls ask for what goes on.
    pub handles: Vec<String>,
    /// The states of other agents.
    pub agents: AgentEvidence,
    /// Whether the file was not there before.
    pub made: Option<bool>,
    /// The beginning of what it says.
    pub beginning: String,
}

/// How much of an answer is kept where it matters.
const BEGINNING_SIZE_MAX: usize = 2000;

impl Answer {
    /// What this result says.
    pub fn of(event: &Event<'_>, content: &Content<'_>, evidence: &Evidence) -> Answer {
        let joined = content.joined();
        let text = joined.decode();
        let text = text.trim();
        Answer {
            verdict: evidence.verdict,
            handles: evidence.handles.clone(),
            agents: AgentEvidence::of(event, text),
            made: created_file(event),
            beginning: beginning(text, BEGINNING_SIZE_MAX).to_owned(),
        }
    }
}
