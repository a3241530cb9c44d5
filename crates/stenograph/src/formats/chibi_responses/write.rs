//! Writes the metadata of responses: one line for each model response whose usage is known.

use super::{NAME, RESPONSE};
use crate::formats::chat::usage;
use crate::json::Draft;
use crate::model::{Body, Event, Outline};
use crate::synthesizer::Synthesizer;
use crate::write::{Writer, WriterOutput};

/// Writes one response per line.
#[derive(Debug)]
pub struct ResponsesWriter {
    synthesizer: Synthesizer,
    /// The current response. The records of one response repeat its usage, and the last one counts.
    pending: Option<Event<'static>>,
}

impl ResponsesWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> ResponsesWriter {
        ResponsesWriter { synthesizer: Synthesizer::new(outline), pending: None }
    }

    fn collect(&mut self, event: &Event<'_>, out: &mut WriterOutput) {
        let repeats_pending =
            self.pending.as_ref().is_some_and(|pending| pending.group.is_some() && pending.group == event.group);
        if !repeats_pending {
            self.finish(out);
        }
        self.pending = Some(Event {
            time: Some(self.synthesizer.time(event)),
            group: event.group.clone().map(|group| group.into_owned().into()),
            model: event.model.clone().map(|model| model.into_owned().into()),
            usage: event.usage,
            ..Event::default()
        });
    }
}

impl Writer for ResponsesWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events {
            if let Body::Other { bytes: Some(bytes), .. } = &event.body {
                // Bytes that never were a response return only to the file they came from.
                if self.synthesizer.outline().origin == NAME {
                    self.finish(out);
                    out.line(bytes.bytes());
                }
            } else if event.extra.get(NAME).is_some() {
                self.finish(out);
                out.line(line(event));
            } else if event.usage.is_some() {
                self.collect(event, out);
            }
        }
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        if let Some(pending) = self.pending.take() {
            out.line(line(&pending));
        }
    }
}

fn line(event: &Event<'_>) -> String {
    let mut draft = Draft::new();
    if let Some(time) = &event.time {
        draft.set("timestamp", time.seconds_json());
    }
    let mut response = Draft::new();
    response.set_opt("id", event.group.as_deref());
    response.set_opt("model", event.model.as_deref());
    if let Some(stated) = &event.usage {
        response.nest("usage", usage::draft(stated));
    }
    if !response.is_empty() {
        draft.nest(RESPONSE, response);
    }
    draft.render(event.extra.get(NAME))
}
