//! Writes the messages of an inbox. Only messages to a context have a place in one.

use super::NAME;
use crate::formats::placeholder;
use crate::json::Draft;
use crate::model::{Body, Event, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::write::{Writer, WriterOutput};

/// Writes one message per event.
#[derive(Debug)]
pub struct InboxWriter {
    synthesizer: Synthesizer,
}

impl InboxWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> InboxWriter {
        InboxWriter { synthesizer: Synthesizer::new(outline) }
    }

    fn message(&mut self, event: &Event<'_>) -> Option<Vec<u8>> {
        let extra = event.extra.get(NAME);
        let content = match (&event.body, extra) {
            (Body::Other { bytes: Some(bytes), .. }, _) => {
                return (self.synthesizer.outline().origin == NAME).then(|| bytes.bytes().into_owned());
            }
            (Body::Other { .. }, Some(extra)) => return Some(Draft::new().render(Some(extra)).into_bytes()),
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
        match (extra, &event.id) {
            (Some(_), None) => {}
            (Some(_), Some(id)) => draft.set_str("id", id),
            (None, _) => draft.set_str("id", &self.synthesizer.id(event)),
        }
        if extra.is_none() || event.time.is_some() {
            draft.set("timestamp", self.synthesizer.time(event).seconds_json());
        }
        draft.set_or("from", event.from.as_deref(), "user");
        draft.set_or("to", event.to.as_deref(), "default");
        draft.set("content", placeholder::joined(content).to_json());
        Some(draft.render(extra).into_bytes())
    }
}

impl Writer for InboxWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events {
            if let Some(message) = self.message(event) {
                out.line(message);
            }
        }
    }
}
