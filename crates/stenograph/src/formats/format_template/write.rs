//! Writes the records of format-template. It leaves out what has no place here: the conversion measures the loss.

use super::NAME;
use crate::json::Draft;
use crate::model::{Body, Event, Outline};
use crate::time::Time;
use crate::write::{Writer, WriterOutput};

/// Writes one record per event.
#[derive(Debug)]
pub(super) struct Records {
    /// Whether the events come from this format.
    own: bool,
}

impl Records {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Records {
        Records { own: outline.origin == NAME }
    }

    fn render(&self, event: &Event<'_>) -> Option<Vec<u8>> {
        let rest = event.extra.get(NAME);
        let mut draft = Draft::new();
        draft.default_str("format", NAME);
        draft.set_opt("id", event.id.as_deref());
        draft.set_opt("time", event.time.as_ref().and_then(Time::to_iso).as_deref());
        match &event.body {
            Body::Message { role, content } => {
                draft.set_str("role", role.name());
                draft.set_text("text", &content.joined());
            }
            // Bytes that are not a record go back only to the format they come from.
            Body::Other { bytes: Some(bytes), .. } => return self.own.then(|| bytes.bytes().into_owned()),
            Body::Other { .. } if rest.is_some() => {}
            _ => return None,
        }
        Some(draft.render(rest).into_bytes())
    }
}

impl Writer for Records {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for record in events.iter().filter_map(|event| self.render(event)) {
            out.line(record);
        }
    }
}
