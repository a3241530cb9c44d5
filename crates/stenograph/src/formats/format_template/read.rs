//! Reads the records of format-template. The reader keeps nothing from one record to the next.

use super::INFO;
use crate::json::Object;
use crate::model::{Body, Content, Event, Extra, Role};
use crate::read::{At, Objects, Sink};

/// Reads one record at a time.
#[derive(Debug)]
pub(super) struct Records;

impl Objects for Records {
    fn object(&mut self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let Some(body) = body(&mut object) else {
            return at.emit_unknown(&INFO, None, object, out);
        };
        // Taking a field removes it. The fields that nobody takes go to `extra`.
        let mut event = Event { id: object.take_str("id"), time: object.take_iso("time"), ..Event::new(body) };
        event.extra = Extra::of(&INFO, object.into_extra());
        at.emit_one(event, out);
    }
}

fn body<'a>(object: &mut Object<'a>) -> Option<Body<'a>> {
    let role = object.peek_str("role").and_then(|role| Role::named(&role))?;
    let content = Content::Text(object.take_text("text")?);
    object.take("role");
    Some(Body::Message { role, content })
}
