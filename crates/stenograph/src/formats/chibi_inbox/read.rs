//! Reads the messages of an inbox. The reader keeps no state.

use super::INFO;
use crate::json::Object;
use crate::model::{Body, Content, Event, Extra, Role};
use crate::read::{At, Objects, Sink};
use crate::time::TimeUnit;

/// Reads one message at a time.
#[derive(Debug)]
pub struct InboxReader;

impl Objects for InboxReader {
    fn object(&mut self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let entry_type = object.peek_str("entry_type");
        let content = if entry_type.is_none() { object.take_text("content") } else { None };
        let Some(content) = content else {
            return at.emit_unknown(&INFO, entry_type.as_deref(), object, out);
        };
        // Chibi puts the message into the prompt of the receiving context, which sees it as a user's.
        let mut event = Event {
            id: object.take_str("id"),
            time: object.take_time("timestamp", TimeUnit::Seconds),
            from: object.take_str("from"),
            to: object.take_str("to"),
            ..Event::new(Body::Message { role: Role::User, content: Content::Text(content) })
        };
        event.extra = Extra::of(&INFO, object.into_extra());
        at.emit_one(event, out);
    }
}
