//! The outline of a session, collected in one pass over all events: what a header needs before the first turn is written.

use super::uuid::uuid_of;
use super::{Body, Content, Event, Role, SessionHeader, StopReason, Usage};
use crate::time::Time;

/// A summary of a session. Its size does not depend on the size of the texts.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// The format of the events; empty while they are being recorded.
    pub origin: &'static str,
    /// The session id: the first one stated.
    pub session: Option<String>,
    /// The session that this one is a copy of, if it has a new id.
    pub original: Option<String>,
    /// What people see of it: its title, question, folder, branch, model and times.
    pub header: SessionHeader,
    /// The earliest timestamp, in the spelling of the source.
    pub started: Option<Time<'static>>,
    /// The latest timestamp, in the spelling of the source.
    pub ended: Option<Time<'static>>,
    /// The last text of a title record, for writers that have such a record. Summaries have records of their own.
    pub stated_title: Option<String>,
    /// The first branch, for writers: the session begins on it.
    pub first_branch: Option<String>,
    /// The first version of the agent, for writers.
    pub first_version: Option<String>,
    /// The first model, for writers.
    pub first_model: Option<String>,
    /// The beginning of the first user message as it is recorded, with what the agent adds to it.
    pub first_message: Option<String>,
    /// The stop reason: that of the last stop, which may have none.
    pub stop: Option<String>,
    /// Whether the session ended with success, if the last stop says so.
    pub success: Option<bool>,
    /// The beginning of the last error message, if the session did not end with success.
    pub failure: Option<String>,
    /// The number of tool calls.
    pub calls: u64,
    /// The number of events.
    pub events: u64,
    /// The tokens of all model calls. Only the ledger can count them: [`CountedOutline`](crate::ledger::CountedOutline) does.
    pub total: Usage,
    /// A fingerprint of the session, for generated ids, which must be the same every time.
    pub seed: u64,
}

/// How many characters of a text are kept.
const BEGINNING_LENGTH_MAX: usize = 400;

impl Outline {
    /// An outline of events from this format.
    pub fn new(origin: &'static str) -> Outline {
        Outline { origin, ..Outline::default() }
    }

    /// An outline of all these events.
    pub fn of(origin: &'static str, events: &[Event<'_>]) -> Outline {
        let mut outline = Outline::new(origin);
        events.iter().for_each(|event| outline.add(event));
        outline
    }

    /// Adds one event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.events += 1;
        if self.events == 1 {
            let id = event.id.as_deref().or(event.session.as_deref()).unwrap_or_default();
            self.seed ^= xxhash_rust::xxh3::xxh3_64(id.as_bytes()).rotate_left(17);
        }
        if event.restates {
            return;
        }
        let first = |slot: &mut Option<String>, value: &Option<crate::text::Str<'_>>| {
            if slot.is_none() {
                *slot = value.as_deref().filter(|value| !value.is_empty()).map(str::to_owned);
            }
        };
        first(&mut self.session, &event.session);
        first(&mut self.first_branch, &event.branch);
        first(&mut self.first_version, &event.version);
        first(&mut self.first_model, &event.model);
        let started_ms = self.header.started_ms;
        self.header.add(event);
        if let Some(time) = &event.time {
            if self.header.started_ms != started_ms {
                self.started = Some(time.clone().into_owned());
            }
            // The last of those within the latest millisecond.
            if time.to_millis().is_some_and(|time_ms| self.header.ended_ms == Some(time_ms)) {
                self.ended = Some(time.clone().into_owned());
            }
        }
        match &event.body {
            Body::Message { role: Role::User, content } if self.first_message.is_none() => {
                let said = beginning(content);
                self.seed ^= xxhash_rust::xxh3::xxh3_64(said.as_bytes());
                self.first_message = Some(said);
            }
            Body::Fact { fact: super::Fact::Title, content: Some(content) } => {
                let stated = beginning(content);
                self.stated_title = Some(stated).filter(|title| !title.is_empty()).or_else(|| self.stated_title.take());
            }
            Body::ToolCall { .. } => self.calls += 1,
            // A session has one stop per turn and ends with the last one: it replaces earlier ones.
            Body::Stop { reason, success, content } => {
                self.stop = reason.as_deref().map(str::to_owned);
                self.success = *success;
                self.failure = content.as_ref().filter(|_| *success == Some(false)).map(beginning);
            }
            _ => {}
        }
    }

    /// Whether somebody interrupted it, and no record states that it ended with success.
    pub fn was_interrupted(&self) -> bool {
        let reason = self.stop.as_deref().map(StopReason::of);
        reason == Some(StopReason::Interrupted) && self.success != Some(true)
    }

    /// A generated id: the same for the same session and purpose.
    pub fn invent(&self, purpose: &str, number: u64) -> u128 {
        let seed = self.seed ^ self.session.as_deref().map_or(0, |id| xxhash_rust::xxh3::xxh3_64(id.as_bytes()));
        xxhash_rust::xxh3::xxh3_128_with_seed(format!("{purpose} {number}").as_bytes(), seed)
    }

    /// A generated UUID: version 8, which is neither random nor a timestamp.
    pub fn invent_uuid(&self, purpose: &str, number: u64) -> String {
        uuid_of(self.invent(purpose, number))
    }
}

fn beginning(content: &Content<'_>) -> String {
    content.joined().decode().chars().take(BEGINNING_LENGTH_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(reason: Option<&'static str>, success: Option<bool>, word: Option<&'static str>) -> Event<'static> {
        Event::new(Body::Stop { reason: reason.map(Into::into), success, content: word.map(Content::text) })
    }

    #[test]
    fn the_last_stop_says_how_a_session_ended() {
        let (broken, done) = (stopped(Some("interrupted"), Some(false), Some("no")), stopped(None, None, Some("yes")));
        let outline = Outline::of("codex", &[broken.clone(), done.clone()]);
        assert_eq!((outline.stop, outline.success, outline.failure), (None, None, None));
        let outline = Outline::of("codex", &[done, broken]);
        assert_eq!(outline.stop.as_deref(), Some("interrupted"));
        assert_eq!((outline.success, outline.failure.as_deref()), (Some(false), Some("no")));
    }
}
