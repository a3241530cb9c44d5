//! Writes Chibi's `transcript.md`. Only what user and assistant said has a place, and summaries: system prompts and tools are
//! left out.

use super::{MARKERS, NAME, read};
use crate::formats::blocks::{blank, spelled};
use crate::formats::placeholder;
use crate::model::{Body, Event, Outline, Role};
use crate::write::{Output, Writer};

/// Writes one message an event.
#[derive(Debug)]
pub struct Archive {
    origin: &'static str,
}

impl Archive {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Archive {
        Archive { origin: outline.origin }
    }

    /// The spelling a message had, where it returns to its file.
    fn own(&self, event: &Event<'_>) -> Option<Vec<u8>> {
        let again = |bytes: &[u8]| read::body(bytes).map(Event::new).into_iter().collect();
        spelled(NAME, std::slice::from_ref(event), again).filter(|_| self.origin == NAME)
    }
}

impl Writer for Archive {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        for event in events {
            let message = match &event.body {
                // Bytes that never were a message return to the file they came from, and go nowhere else.
                Body::Other { bytes: Some(bytes), .. } if self.origin == NAME => Some(bytes.bytes().into_owned()),
                _ => self.own(event).or_else(|| message(event)),
            };
            if let Some(message) = message {
                out.record(message);
                let after = if self.origin == NAME { blank(NAME, event) } else { "" };
                out.glue(format!("\n{after}\n"));
            }
        }
    }
}

/// How an event is spelled.
pub fn message(event: &Event<'_>) -> Option<Vec<u8>> {
    let (role, content) = match &event.body {
        Body::Message { role: Role::Assistant, content } => (Role::Assistant, content),
        Body::Message { role: Role::User | Role::Tool | Role::Unknown, content } => (Role::User, content),
        // A model is told what was put aside as if the user had said it.
        Body::Compaction { summary: Some(content) } => (Role::User, content),
        Body::Message { role: Role::System | Role::Developer, .. } | Body::Compaction { summary: None } => return None,
        Body::Fact { .. } | Body::Thinking { .. } | Body::ToolCall { .. } | Body::ToolResult { .. } => return None,
        Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => return None,
    };
    let (_, marker) = MARKERS.iter().find(|(name, _)| *name == role)?;
    let mut message = marker.as_bytes().to_vec();
    message.extend_from_slice(&placeholder::joined(content).bytes());
    Some(message)
}
