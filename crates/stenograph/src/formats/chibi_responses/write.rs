//! Writes what is logged of responses: one line for each model response of which the usage is known.

use super::{NAME, RESPONSE};
use crate::json::Draft;
use crate::model::{Body, Event, Outline, Usage};
use crate::standin::StandIns;
use crate::write::{Output, Writer};

/// Writes one response a line.
#[derive(Debug)]
pub struct Responses {
    stand_ins: StandIns,
    /// The response under way: the records of one response state its usage again and again, and the last one counts.
    held: Option<Event<'static>>,
}

impl Responses {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Responses {
        Responses { stand_ins: StandIns::new(outline), held: None }
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
    if let Some(usage) = &event.usage {
        response.nest("usage", numbers(usage));
    }
    if !response.is_empty() {
        draft.nest(RESPONSE, response);
    }
    draft.render(event.extra.get(NAME))
}

fn numbers<'d>(usage: &Usage) -> Draft<'d> {
    let mut numbers = Draft::new();
    let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    let prompt = usage.input.map(|input| input.saturating_add(cached));
    numbers.set_number("prompt_tokens", prompt);
    numbers.set_number("completion_tokens", usage.output);
    if let (Some(prompt), Some(output)) = (prompt, usage.output) {
        numbers.default("total_tokens", prompt.saturating_add(output).to_string());
    }
    let mut details = Draft::new();
    details.set_number("cached_tokens", usage.cache_read);
    details.set_number("cache_write_tokens", usage.cache_write);
    if !details.is_empty() {
        numbers.nest("prompt_tokens_details", details);
    }
    if let Some(reasoning) = usage.reasoning {
        let mut details = Draft::new();
        details.set_number("reasoning_tokens", Some(reasoning));
        numbers.nest("completion_tokens_details", details);
    }
    if let Some(cost) = usage.cost {
        numbers.set("cost", cost.to_string());
    }
    numbers
}
