//! Writes what is logged of responses: one line for each model response of which the usage is known.

use super::{NAME, RESPONSE};
use crate::formats::chat::usage;
use crate::json::Draft;
use crate::model::{Body, Event, Outline};
use crate::synthesizer::Synthesizer;
use crate::write::{Output, Writer};

/// Writes one response a line.
#[derive(Debug)]
pub struct Responses {
    stand_ins: Synthesizer,
    /// The response under way: the records of one response state its usage again and again, and the last one counts.
    held: Option<Event<'static>>,
}

impl Responses {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Responses {
        Responses { stand_ins: Synthesizer::new(outline), held: None }
    }

    fn hold(&mut self, event: &Event<'_>, out: &mut Output) {
        let again = self.held.as_ref().is_some_and(|held| held.group.is_some() && held.group == event.group);
        if !again {
            self.finish(out);
        }
        self.held = Some(Event {
            time: Some(self.stand_ins.time(event)),
            group: event.group.clone().map(|group| group.into_owned().into()),
            model: event.model.clone().map(|model| model.into_owned().into()),
            usage: event.usage,
            ..Event::default()
        });
    }
}

impl Writer for Responses {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        for event in events {
            if let Body::Other { bytes: Some(bytes), .. } = &event.body {
                // Bytes that never were a response return to the file they came from, and go nowhere else.
                if self.stand_ins.outline().origin == NAME {
                    self.finish(out);
                    out.line(bytes.bytes());
                }
            } else if event.extra.get(NAME).is_some() {
                self.finish(out);
                out.line(line(event));
            } else if event.usage.is_some() {
                self.hold(event, out);
            }
        }
    }

    fn finish(&mut self, out: &mut Output) {
        if let Some(held) = self.held.take() {
            out.line(line(&held));
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
