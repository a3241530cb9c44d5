//! How full the context of a model was: the input tokens of one request, by the same rules by which requests are counted.

use super::Tokens;
use crate::evidence::{has_invalid_count, not_a_call, stated_calls};
use crate::model::Event;

/// The input tokens of the request that an event states, new and cached ones. Numbers that are not a request (a sum, a made-up answer, an
/// invalid count) give nothing.
pub(crate) fn context_tokens(event: &Event<'_>) -> Option<u64> {
    let usage = event.usage.as_ref()?;
    let is_sum = not_a_call(event).is_some() || stated_calls(event).is_some_and(|calls| calls > 1);
    let is_request = !is_sum && !has_invalid_count(event);
    Some(Tokens::of(usage).all_input()).filter(|tokens| is_request && *tokens > 0)
}
