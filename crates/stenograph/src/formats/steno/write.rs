//! Writes native lines. Every event has a place, so nothing is left out.

use crate::json::Draft;
use crate::model::{Body, Event, Held, Outline};
use crate::wire;
use crate::write::{Writer, WriterOutput};

/// Writes one event per line.
#[derive(Debug)]
pub struct StenoWriter {
    /// Whether the events come from a native stream.
    native: bool,
}

impl StenoWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> StenoWriter {
        StenoWriter { native: outline.origin == wire::NAME }
    }
}

impl Writer for StenoWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events {
            match &event.body {
                // Bytes that never were a line of this format return only to the file they came from.
                Body::Other { bytes: Some(bytes), .. } if self.native && event.extra.get(wire::NAME).is_none() => {
                    out.line(bytes.bytes());
                }
                _ => out.line(line(event)),
            }
        }
    }
}

/// Writes a line. If it was read as an event, the event gives the line. If it was not an event of this version, the line is
/// written as it was: the reader took nothing from it but the text of a note.
fn line(event: &Event<'_>) -> String {
    let Some(extra) = event.extra.get(wire::NAME) else { return wire::event(event) };
    let mut draft = Draft::new();
    match &event.body {
        Body::Fact { content, .. } if extra.raw("note").is_some() && !extra.has("kind") => {
            if let Some(content) = content {
                draft.set("text", content.joined().to_json());
            }
        }
        Body::Other { bytes: None, .. } if extra.0.iter().all(|(_, held)| *held != Held::Hole) => {}
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
    draft.render(Some(extra))
}
