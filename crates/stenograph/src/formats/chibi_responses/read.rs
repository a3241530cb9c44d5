//! Reads the metadata of responses. The reader keeps no state.

use super::{INFO, RESPONSE};
use crate::formats::chat::usage;
use crate::json::Object;
use crate::model::{Body, Event, Extra};
use crate::read::{At, Objects, Sink};
use crate::time::TimeUnit;

/// Reads one response at a time.
#[derive(Debug)]
pub struct ResponsesReader;

impl Objects for ResponsesReader {
    fn object(&mut self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let Some(mut response) = object.open(RESPONSE) else {
            let name = object.keys().next().map(str::to_owned);
            return at.emit_unknown(&INFO, name.as_deref(), object, out);
        };
        let usage = usage::take(&mut response);
        let name = if usage.is_some() { "usage" } else { RESPONSE };
        let mut event = Event::new(Body::Fact { fact: name.into(), content: None });
        event.usage = usage;
        event.group = response.take_name("id");
        event.model = response.take_name("model");
        object.close(RESPONSE, response);
        event.time = object.take_time("timestamp", TimeUnit::Seconds);
        event.extra = Extra::of(&INFO, object.into_extra());
        at.emit_one(event, out);
    }
}
