//! Reads native lines. The wire already states what an event is, so this file interprets nothing. A line that is a note about
//! another source becomes a fact.

use super::INFO;
use crate::json::Object;
use crate::model::{Body, Content, Event, Extra, NoteKind};
use crate::read::{At, Objects, Sink};
use crate::wire;

/// Reads one line at a time, without state.
#[derive(Debug)]
pub struct StenoReader;

impl Objects for StenoReader {
    fn object(&mut self, object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        // Reading takes fields, and a line that is not an event must stay whole.
        let mut taken = object.clone();
        let Some(mut event) = wire::read(&mut taken) else {
            if is_note(&object) {
                return at.emit_one(note(object), out);
            }
            let kind = object.peek_str("kind");
            if let Some(problem) = wire::problem(&object) {
                at.note(NoteKind::NotARecord, problem, out);
                let body = Body::Other { name: kind, bytes: None };
                return at.emit_one(Event { extra: Extra::of(&INFO, object.into_extra()), ..Event::new(body) }, out);
            }
            return at.emit_unknown(&INFO, kind.as_deref(), object, out);
        };
        wire::add_unknown_fields(&mut event, taken.into_extra());
        if event.part.of > u32::from(u16::MAX) {
            at.note(NoteKind::Ambiguous, "the record has more parts than any reader creates", out);
        }
        at.emit_as_is(event, out);
    }
}

/// Whether a line is a note: it has no kind, but a key `note`.
fn is_note(object: &Object<'_>) -> bool {
    let version = object.peek("v").and_then(crate::json::number);
    version == Some(wire::VERSION) && !object.has("kind") && object.peek_str("note").is_some()
}

fn note(mut object: Object<'_>) -> Event<'_> {
    let content = object.take_text("text").map(Content::Text);
    let mut event = Event::new(Body::Fact { fact: "note".into(), content });
    event.extra = Extra::of(&INFO, object.into_extra());
    event
}
