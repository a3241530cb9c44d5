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
    /// How far the work of another agent has come, in the source's word.
    pub state: Option<String>,
    /// Of what kind that agent is.
    pub kind: Option<String>,
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
        let AgentEvidence { state, kind } = AgentEvidence::of(event);
        Answer {
            verdict: evidence.verdict,
            handles: evidence.handles.clone(),
            state,
            kind,
            made: created_file(event),
            beginning: beginning(joined.decode().trim(), BEGINNING_SIZE_MAX).to_owned(),
        }
    }
}
