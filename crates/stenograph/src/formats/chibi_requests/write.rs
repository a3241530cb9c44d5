//! Writes requests. A session of another system becomes one request that holds all of it, like the last request of a session.

use super::{NAME, REQUEST, TOOLS, chat};
use crate::json::Draft;
use crate::model::{Body, Event, Outline};
use crate::time::Time;
use crate::write::{Writer, WriterOutput};

/// The size at which a request ends and the next one begins, so that neither memory nor a record grows with the session.
const SIZE_MAX: usize = 16 << 20;

/// Writes one request per line.
#[derive(Debug)]
pub struct RequestsWriter {
    composer: chat::Composer,
    origin: &'static str,
    messages: Vec<String>,
    size: usize,
    time: Option<Time<'static>>,
    model: Option<String>,
}

impl RequestsWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> RequestsWriter {
        let composer = chat::Composer::new(outline);
        RequestsWriter {
            composer,
            origin: outline.origin,
            messages: Vec::new(),
            size: 0,
            time: None,
            model: outline.first_model.clone(),
        }
    }

    fn add(&mut self, event: &Event<'_>, out: &mut WriterOutput) {
        self.time = Some(self.composer.synthesizer.time(event));
        if let Some(model) = &event.model {
            self.model = Some(model.to_string());
        }
        let from = self.messages.len();
        self.composer.event(event, &mut self.messages);
        self.size += self.messages.iter().skip(from).map(String::len).sum::<usize>();
        if self.size > SIZE_MAX {
            self.close(out);
        }
    }

    /// Writes the current request.
    fn close(&mut self, out: &mut WriterOutput) {
        self.size = 0;
        if self.messages.is_empty() {
            return;
        }
        let mut request = Draft::new();
        request.set_opt("model", self.model.as_deref());
        request.set("messages", format!("[{}]", std::mem::take(&mut self.messages).join(",")));
        let mut draft = Draft::new();
        let time = self.time.as_ref().map_or_else(|| "0".to_owned(), Time::seconds_json);
        draft.set("timestamp", time);
        draft.nest(REQUEST, request);
        out.line(draft.render(None));
    }
}

impl Writer for RequestsWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let Some(first) = events.first() else { return };
        if let Body::Other { bytes: Some(bytes), .. } = &first.body {
            // Bytes that never were a request return only to the file they came from.
            if self.origin == NAME {
                self.finish(out);
                out.line(bytes.bytes());
            }
            return;
        }
        if first.extra.get(NAME).is_some() {
            self.finish(out);
            return out.line(own_request(first, events));
        }
        for event in events {
            self.add(event, out);
        }
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        self.composer.finish(&mut self.messages);
        self.close(out);
    }
}

/// A request that was read from this format.
fn own_request(first: &Event<'_>, events: &[Event<'_>]) -> String {
    let mut draft = Draft::new();
    if let Some(time) = &first.time {
        draft.set("timestamp", time.seconds_json());
    }
    let extra = first.extra.get(NAME);
    let is_whole = matches!(&first.body, Body::Fact { fact: name, .. } if name == REQUEST);
    if matches!(first.body, Body::Other { .. }) {
        return draft.render(extra);
    }
    let inside = if is_whole { events.get(1..).unwrap_or_default() } else { events };
    let mut request = Draft::new();
    request.set_opt("model", first.model.as_deref());
    if inside.iter().any(|event| !matches!(event.body, Body::Fact { .. })) {
        request.set("messages", chat::list(inside, NAME));
    }
    chat::put_tools(inside, TOOLS, NAME, &mut request);
    draft.nest(REQUEST, request);
    // The extra fields of a message are not those of its request.
    draft.render(extra.filter(|_| is_whole))
}
