//! User messages that only report on a background job.

use super::result::{Evidence, digits};
use super::words;
use crate::model::{AgentState, Body, Event, NoticeWords, Role};

/// The content of such a message.
#[derive(Debug)]
pub(crate) struct JobNotice {
    /// The name of the job.
    pub name: Option<String>,
    /// The state of the job.
    pub state: Option<AgentState>,
    /// Evidence of the outcome.
    pub evidence: Evidence,
}

impl JobNotice {
    /// The notice in this event.
    pub fn of(event: &Event<'_>) -> Option<JobNotice> {
        let Body::Message { role: Role::User, content } = &event.body else { return None };
        let (words, notice): (_, NoticeWords) = words(event).find_map(|(words, _)| Some((words, words.notice?)))?;
        let joined = content.joined();
        let text = joined.decode();
        let text = text.trim();
        if !text.starts_with(notice.begins) {
            return None;
        }
        let exit = text.find(notice.exit).and_then(|at| digits(text.get(at + notice.exit.len()..)?));
        let evidence = Evidence { exit, ..Evidence::default() };
        let state = between(text, notice.state).and_then(|state| words.agent_state(&state));
        Some(JobNotice { name: between(text, notice.job), state, evidence })
    }
}

/// Whether a user message with this text only reports that the user interrupted the run.
pub(super) fn is_interruption(event: &Event<'_>, text: &str) -> bool {
    words(event).any(|(words, _)| words.interruption_messages.iter().any(|prefix| text.starts_with(prefix)))
}

/// The text between two others.
pub(super) fn between(text: &str, (open, close): (&str, &str)) -> Option<String> {
    let rest = text.get(text.find(open)? + open.len()..)?;
    Some(rest.get(..rest.find(close)?)?.trim().to_owned())
}
