//! The content of one result beside the outcome of its call: background jobs, other agents, the beginning of the text.

use serde::{Deserialize, Serialize};

use crate::evidence::{AgentEvidence, Evidence, created_file};
use crate::model::{Content, Event, Verdict};
use crate::text::beginning;

/// The content of a result.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Answer {
    pub verdict: Option<Verdict>,
    /// Names by which later calls poll the job or the agent.
    pub handles: Vec<String>,
    /// The states of other agents.
    pub agents: AgentEvidence,
    /// Whether the call created its file, if the result states it.
    pub is_new_file: Option<bool>,
    /// The beginning of the text.
    pub beginning: String,
}

/// The most bytes of a text.
const BEGINNING_SIZE_MAX: usize = 2000;

impl Answer {
    /// The content of this result.
    pub fn of(event: &Event<'_>, content: &Content<'_>, evidence: &Evidence) -> Answer {
        let joined = content.joined();
        let text = joined.decode();
        let text = text.trim();
        Answer {
            verdict: evidence.verdict,
            handles: evidence.handles.clone(),
            agents: AgentEvidence::of(event, text),
            is_new_file: created_file(event),
            beginning: beginning(text, BEGINNING_SIZE_MAX).to_owned(),
        }
    }
}
