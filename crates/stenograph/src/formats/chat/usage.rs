//! The token usage of a Chat Completions response, below the key `usage`.

use crate::json::{Draft, Object, number};
use crate::model::Usage;

/// Takes the usage. Details without a field in the model stay in the object.
pub fn take(object: &mut Object<'_>) -> Option<Usage> {
    let mut numbers = object.open("usage")?;
    let mut usage = Usage { output: numbers.take_number("completion_tokens"), ..Usage::default() };
    prompt(&mut numbers, &mut usage);
    if let Some(mut details) = numbers.open("completion_tokens_details") {
        usage.reasoning = details.take_number("reasoning_tokens");
        numbers.close("completion_tokens_details", details);
    }
    usage.cost = numbers.take_dollars("cost");
    object.close("usage", numbers);
    usage.stated()
}

/// Takes the prompt's tokens. The server includes cached tokens in them; if its numbers do not add up, all of them stay in the
/// object.
fn prompt(numbers: &mut Object<'_>, usage: &mut Usage) {
    let Some(all) = numbers.peek("prompt_tokens").and_then(number) else { return };
    let mut details = numbers.open("prompt_tokens_details");
    let stated = |key: &str| details.as_ref().and_then(|details| details.peek(key)).and_then(number);
    let (cache_read, cache_write) = (stated("cached_tokens"), stated("cache_write_tokens"));
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

/// Writes the usage in the API's fields.
pub fn draft<'d>(usage: &Usage) -> Draft<'d> {
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
