//! Writes Chibi's `transcript.md`. Only messages of user and assistant have a place, and summaries; system prompts and tools
//! are left out.

use super::{MARKERS, NAME, read};
use crate::formats::blocks::{blank, original_spelling};
use crate::formats::placeholder;
use crate::model::{Body, Event, Outline, Role};
use crate::write::{Writer, WriterOutput};

/// Writes one message per event.
#[derive(Debug)]
pub struct ChibiMarkdownWriter {
    origin: &'static str,
}

impl ChibiMarkdownWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> ChibiMarkdownWriter {
        ChibiMarkdownWriter { origin: outline.origin }
    }

    /// The original bytes of a message that returns to its file.
    fn own_bytes(&self, event: &Event<'_>) -> Option<Vec<u8>> {
        let reread = |bytes: &[u8]| read::body(bytes).map(Event::new).into_iter().collect();
        original_spelling(NAME, std::slice::from_ref(event), reread).filter(|_| self.origin == NAME)
    }
}

impl Writer for ChibiMarkdownWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events {
            let message = match &event.body {
                // Bytes that never were a message return only to the file they came from.
                Body::Other { bytes: Some(bytes), .. } if self.origin == NAME => Some(bytes.bytes().into_owned()),
                _ => self.own_bytes(event).or_else(|| message(event)),
            };
            if let Some(message) = message {
                out.record(message);
                let after = if self.origin == NAME { blank(NAME, event) } else { "" };
                out.glue(format!("\n{after}\n"));
            }
        }
    }
}

/// The bytes of an event.
pub fn message(event: &Event<'_>) -> Option<Vec<u8>> {
    let (role, content) = match &event.body {
        Body::Message { role: Role::Assistant, content } => (Role::Assistant, content),
        Body::Message { role: Role::User | Role::Tool | Role::Unknown, content } => (Role::User, content),
        // Agents give the model the summary of a compaction as a user message.
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
