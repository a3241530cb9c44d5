//! Writes the messages of an inbox. Only what is said to a context has a place in one.

use super::NAME;
use crate::formats::placeholder;
use crate::json::Draft;
use crate::model::{Body, Event, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::write::{Output, Writer};

/// Writes one message an event.
#[derive(Debug)]
pub struct Messages {
    stand_ins: Synthesizer,
}

impl Messages {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Messages {
        Messages { stand_ins: Synthesizer::new(outline) }
    }

    fn message(&mut self, event: &Event<'_>) -> Option<Vec<u8>> {
        let own = event.extra.get(NAME);
        let content = match (&event.body, own) {
            (Body::Other { bytes: Some(bytes), .. }, _) => {
                return (self.stand_ins.outline().origin == NAME).then(|| bytes.bytes().into_owned());
            }
            (Body::Other { .. }, Some(own)) => return Some(Draft::new().render(Some(own)).into_bytes()),
            (Body::Message { role: Role::User, content }, _) | (Body::Message { content, .. }, Some(_)) => content,
            (
                Body::Message { .. }
                | Body::Fact { .. }
                | Body::Thinking { .. }
                | Body::ToolCall { .. }
                | Body::ToolResult { .. }
                | Body::Compaction { .. }
                | Body::Failure { .. }
                | Body::Stop { .. }
                | Body::Other { .. },
                _,
            ) => return None,
        };
        let mut draft = Draft::new();
        match (own, &event.id) {
            (Some(_), None) => {}
            (Some(_), Some(id)) => draft.set_str("id", id),
            (None, _) => draft.set_str("id", &self.stand_ins.id(event)),
        }
        if own.is_none() || event.time.is_some() {
            draft.set("timestamp", self.stand_ins.time(event).seconds_json());
        }
        draft.set_or("from", event.from.as_deref(), "user");
        draft.set_or("to", event.to.as_deref(), "default");
        draft.set("content", placeholder::joined(content).to_json());
        Some(draft.render(own).into_bytes())
    }
}

impl Writer for Messages {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        for event in events {
            if let Some(message) = self.message(event) {
                out.line(message);
            }
        }
    }
}
