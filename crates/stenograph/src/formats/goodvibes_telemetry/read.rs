//! Reads GoodVibes' telemetry, without state: each line is the end of one sub-agent.

use super::{INFO, Shape};
use crate::json::Object;
use crate::model::{Body, Content, Event, Extra};
use crate::read::{At, Objects, Sink};
use crate::text::Str;

/// Reads one line at a time.
#[derive(Debug)]
pub struct TelemetryReader;

impl Objects for TelemetryReader {
    fn object(&mut self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let Some(shape) = Shape::of(&object) else {
            let name = object.peek_str("event").or_else(|| object.peek_str("type"));
            return at.emit_unknown(&INFO, name.as_deref(), object, out);
        };
        let content = object.take_text(shape.summary()).map(Content::Text);
        let body = match shape {
            Shape::Entry => {
                let reason = object.take_name("status");
                Body::Stop { success: reason.as_ref().and_then(success), reason, content }
            }
            Shape::Record => Body::Stop { reason: None, success: object.take_bool("success"), content },
        };
        let mut event = Event {
            session: object.take_name("session_id"),
            thread: object.take_name("agent_id"),
            cwd: object.take_name(shape.cwd()),
            branch: object.take_name("git_branch"),
            time: object.take_iso("ended_at"),
            ..Event::new(body)
        };
        event.extra = Extra::of(&INFO, object.into_extra());
        at.emit_one(event, out);
    }
}

/// Whether a status means success. GoodVibes writes only these two.
fn success(status: &Str<'_>) -> Option<bool> {
    match status.as_ref() {
        "completed" => Some(true),
        "failed" => Some(false),
        _ => None,
    }
}
