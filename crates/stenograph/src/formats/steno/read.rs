//! Reads native lines. Nothing is interpreted here: the wire already says what an event is.

use crate::json::{At, Object, Objects};
use crate::model::NoteKind;
use crate::read::Sink;
use crate::wire;

/// Reads one line at a time, without memory.
#[derive(Debug)]
pub struct Lines;

impl Objects for Lines {
    fn object(&mut self, object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        // Reading takes fields off, so a line that turns out to be none of ours must still be whole.
        let mut taken = object.clone();
        let Some(mut event) = wire::read(&mut taken) else {
            let kind = object.peek_str("kind");
            return at.emit_unknown(wire::NAME, kind.as_deref(), object, out);
        };
        wire::leave(&mut event, taken.rest());
        if event.part.of > u32::from(u16::MAX) {
            at.note(NoteKind::Ambiguous, "a record of more parts than any reader makes", out);
        }
        at.emit_as_is(event, out);
    }
}
