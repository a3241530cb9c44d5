//! Reads what was logged of responses. Nothing is remembered from one to the next.

use super::{NAME, RESPONSE};
use crate::json::{At, Object, Objects};
use crate::model::{Body, Event, Extra, Usage};
use crate::read::Sink;
use crate::time::Unit;

/// Reads one response at a time.
#[derive(Debug)]
pub struct Responses;

impl Objects for Responses {
    fn object(&mut self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let Some(mut response) = object.open(RESPONSE) else {
            let name = object.keys().next().map(str::to_owned);
            return at.emit_unknown(NAME, name.as_deref(), object, out);
        };
        let usage = usage(&mut response);
        let name = if usage.is_some() { "usage" } else { RESPONSE };
        let mut event = Event::new(Body::Fact { name: name.into(), content: None });
        event.usage = usage;
        event.group = response.take_name("id");
        event.model = response.take_name("model");
        object.close(RESPONSE, response);
        event.time = object.take_time("timestamp", Unit::Seconds);
        event.extra = Extra::of(NAME, object.rest());
        at.emit_one(event, out);
    }
}

fn usage(response: &mut Object<'_>) -> Option<Usage> {
    let mut numbers = response.open("usage")?;
    let mut usage = Usage { output: numbers.take_number("completion_tokens"), ..Usage::default() };
    prompt(&mut numbers, &mut usage);
    if let Some(mut details) = numbers.open("completion_tokens_details") {
        usage.reasoning = details.take_number("reasoning_tokens");
        numbers.close("completion_tokens_details", details);
    }
    usage.cost = numbers.take_float("cost");
    response.close("usage", numbers);
    usage.stated()
}

/// The server counts cached tokens among those of the prompt. Where its numbers do not add up, they all stay as they are.
fn prompt(numbers: &mut Object<'_>, usage: &mut Usage) {
    let Some(all) = numbers.peek("prompt_tokens").and_then(crate::json::number) else { return };
    let mut details = numbers.open("prompt_tokens_details");
    let number = |key: &str| details.as_ref().and_then(|details| details.peek(key)).and_then(crate::json::number);
    let (cache_read, cache_write) = (number("cached_tokens"), number("cache_write_tokens"));
    let cached = cache_read.unwrap_or(0).checked_add(cache_write.unwrap_or(0));
    if let Some(input) = cached.and_then(|cached| all.checked_sub(cached)) {
        *usage = Usage { input: Some(input), cache_read, cache_write, ..*usage };
        numbers.take("prompt_tokens");
        if let Some(details) = &mut details {
            details.take_number("cached_tokens");
            details.take_number("cache_write_tokens");
        }
    }
    if let Some(details) = details {
        numbers.close("prompt_tokens_details", details);
    }
}
