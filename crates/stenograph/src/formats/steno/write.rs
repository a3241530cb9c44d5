//! Writes native lines: every event has a place, so nothing is ever left out.

use crate::json::Draft;
use crate::model::{Body, Event, Held, Outline};
use crate::wire;
use crate::write::{Output, Writer};

/// Writes one event a line.
#[derive(Debug)]
pub struct Lines {
    /// Whether the events come from a native stream.
    native: bool,
}

impl Lines {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Lines {
        Lines { native: outline.origin == wire::NAME }
    }
}

impl Writer for Lines {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        for event in events {
            match &event.body {
                // Bytes that never were a line of this format return to the file they came from.
                Body::Other { bytes: Some(bytes), .. } if self.native && event.extra.get(wire::NAME).is_none() => {
                    out.line(bytes.bytes());
                }
                _ => out.line(line(event)),
            }
        }
    }
}

/// A line that was read as an event is written from it. One that was not an event of this version is written as it was:
/// nothing of it was taken but the text of a note.
fn line(event: &Event<'_>) -> String {
    let Some(rest) = event.extra.get(wire::NAME) else { return wire::event(event) };
    let mut draft = Draft::new();
    match &event.body {
        Body::Fact { content, .. } if rest.raw("note").is_some() && !rest.has("kind") => {
            if let Some(content) = content {
                draft.set("text", content.joined().to_json());
            }
        }
        Body::Other { bytes: None, .. } if rest.0.iter().all(|(_, held)| *held != Held::Hole) => {}
        Body::Fact { .. }
        | Body::Message { .. }
        | Body::Thinking { .. }
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Compaction { .. }
        | Body::Failure { .. }
        | Body::Stop { .. }
        | Body::Other { .. } => return wire::event(event),
    }
    draft.render(Some(rest))
}
