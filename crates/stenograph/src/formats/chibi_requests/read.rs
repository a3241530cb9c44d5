//! Reads requests. Every request repeats the messages of the previous one: the reader remembers fingerprints of the last
//! request's messages and tools, and nothing else.

use xxhash_rust::xxh3::xxh3_64;

use super::{INFO, REQUEST, TOOLS, align, chat};
use crate::format::Wanted;
use crate::json::{Object, canonical, items};
use crate::model::{Body, Event, Extra, NoteKind};
use crate::read::{At, Objects, Sink};
use crate::time::TimeUnit;

/// How many messages of a request are remembered.
const MESSAGES_MAX: usize = 65_536;

/// Reads one request at a time.
#[derive(Debug)]
pub struct RequestsReader {
    want: Wanted,
    messages: Vec<u64>,
    tools: Option<u64>,
}

impl RequestsReader {
    /// A reader at the beginning of a log.
    pub fn new(want: Wanted) -> RequestsReader {
        RequestsReader { want, messages: Vec::new(), tools: None }
    }

    /// The events of a request, beginning with the fact for the request itself.
    fn request<'a>(&mut self, request: &mut Object<'a>) -> Vec<Event<'a>> {
        let mut events = vec![Event::new(Body::Fact { fact: REQUEST.into(), content: None })];
        let tools = request.peek(TOOLS).map(fingerprint);
        if let Some(mut fact) = chat::tools(request, TOOLS, &INFO) {
            fact.restates = tools == self.tools;
            events.push(fact);
        }
        self.tools = tools;
        let messages = request.peek("messages").and_then(items).unwrap_or_default();
        if !messages.is_empty() {
            request.take("messages");
        }
        let fingerprints: Vec<u64> = messages.iter().take(MESSAGES_MAX).map(|raw| fingerprint(raw)).collect();
        let known = align::known_messages(&self.messages, &fingerprints);
        for (raw, restates) in messages.into_iter().zip(known.into_iter().chain(std::iter::repeat(false))) {
            events.extend(chat::element(raw, &INFO).into_iter().map(|event| Event { restates, ..event }));
        }
        self.messages = fingerprints;
        events
    }
}

impl Objects for RequestsReader {
    fn object(&mut self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let Some(mut request) = object.open(REQUEST) else {
            let name = object.keys().next().map(str::to_owned);
            return at.emit_unknown(&INFO, name.as_deref(), object, out);
        };
        let mut events = self.request(&mut request);
        let model = request.take_name("model");
        object.close(REQUEST, request);
        let time = object.take_time("timestamp", TimeUnit::Seconds);
        for event in &mut events {
            event.model.clone_from(&model);
            event.time.clone_from(&time);
        }
        if let Some(first) = events.first_mut() {
            first.extra = Extra::of(&INFO, object.into_extra());
        }
        if self.messages.len() == MESSAGES_MAX {
            at.note(NoteKind::Ambiguous, "too many messages to tell which ones repeat earlier messages", out);
        }
        chat::note_unknown(&events, at, out);
        at.emit(&mut events, out);
    }

    fn skips(&self, _line: &[u8]) -> bool {
        // A request does not state usage.
        self.want == Wanted::Usage
    }
}

/// The fingerprint of a JSON value, independent of its spelling, so that a rewritten request is still the same.
fn fingerprint(raw: &str) -> u64 {
    xxh3_64(canonical(raw).as_bytes())
}
