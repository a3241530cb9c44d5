//! What Claude Code tells about model calls beyond their numbers: the request, the pace, how long a cache lives, and calls of
//! sub-agents within `progress` records. Reads leftovers only.

use crate::json::{Object, fields, number};
use crate::ledger::{ForwardedCall, NotACall, ServiceTier, Tokens, Told, is_odd};
use crate::model::{Event, ExtraFields, Usage};

use super::read::{COUNTERS, SYNTHETIC};

/// What is left of a record tells this.
pub fn told<'e>(event: &Event<'_>, left: &'e ExtraFields<'_>) -> Told<'e> {
    let Some(message) = left.opened("message") else {
        let (inner, odd) = left.raw("data").and_then(progress).unwrap_or_default();
        return Told { inner, odd, ..Told::default() };
    };
    let mut told = Told { request: left.text("requestId").filter(|request| !request.is_empty()), ..Told::default() };
    // Where no usage is stated there is nothing to set aside.
    let states = event.usage.is_some() || message.has("usage");
    if states && message.raw("model") == Some(SYNTHETIC) {
        told.aside = Some(NotACall::Synthetic);
    } else if left.raw("toolUseResult").is_some_and(is_sum) {
        told.aside = Some(NotACall::Sum);
    }
    if let Some(usage) = message.opened("usage") {
        told.more = more(event.usage.as_ref(), usage.raw("cache_creation"), usage.raw("server_tool_use"));
        told.pace = pace(usage.raw("speed"), usage.raw("service_tier"));
        told.odd = is_any_odd(|name| usage.raw(name), usage.raw("cache_creation"));
    }
    told
}

/// The counters of what is kept in a cache, for an hour and for five minutes.
const LIFETIMES: [&str; 2] = ["ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens"];

/// How often tools of the service were used.
const SERVER_TOOLS: [&str; 2] = ["web_search_requests", "web_fetch_requests"];

/// Whether one of the counters is none. `counter` gives what stands there and was not taken.
fn is_any_odd<'r>(counter: impl Fn(&'static str) -> Option<&'r str>, lifetimes: Option<&'r str>) -> bool {
    let lifetimes = lifetimes.map_or([None; 2], |raw| fields(raw, LIFETIMES));
    COUNTERS.into_iter().map(counter).chain(lifetimes).flatten().any(is_odd)
}

/// Counters that a usage has no place for. What lives how long adds up to what was written, where nothing else says how much that was.
fn more(usage: Option<&Usage>, lifetimes: Option<&str>, server_tools: Option<&str>) -> Tokens {
    let [hour, minutes] = counters(lifetimes, LIFETIMES);
    let [searches, fetches] = counters(server_tools, SERVER_TOOLS);
    let is_said = usage.is_none_or(|usage| usage.cache_write.is_some());
    Tokens {
        cache_write: if is_said { 0 } else { hour.saturating_add(minutes) },
        cache_write_hour: hour,
        searches,
        fetches,
        ..Tokens::default()
    }
}

fn counters<const N: usize>(object: Option<&str>, keys: [&str; N]) -> [u64; N] {
    let fields = object.map_or([None; N], |raw| fields(raw, keys));
    fields.map(|raw| raw.and_then(number).unwrap_or(0))
}

fn pace(speed: Option<&str>, tier: Option<&str>) -> ServiceTier {
    match (speed, tier) {
        (Some("\"fast\""), _) => ServiceTier::Fast,
        (_, Some("\"priority\"")) => ServiceTier::Priority,
        (_, Some("\"batch\"")) => ServiceTier::Batch,
        _ => ServiceTier::Standard,
    }
}

/// Whether the result of a tool adds up what a sub-agent took.
fn is_sum(raw: &str) -> bool {
    let [usage] = fields(raw, ["usage"]);
    usage.is_some_and(|usage| fields(usage, ["input_tokens"]) != [None])
}

/// The message of a sub-agent, as it was passed on while it worked, if it states a count, and whether one of its counts is none.
fn progress(data: &str) -> Option<(Option<ForwardedCall<'_>>, bool)> {
    let mut data = Object::parse(data)?;
    let mut record = data.peek("message").and_then(Object::parse)?;
    let mut message = record.peek("message").and_then(Object::parse)?;
    let mut usage = message.peek("usage").and_then(Object::parse)?;
    if message.peek("model") == Some(SYNTHETIC) {
        return None;
    }
    let numbers = super::read::numbers(&mut usage);
    let odd = is_any_odd(|name| usage.peek(name), usage.peek("cache_creation"));
    let more = more(Some(&numbers), usage.peek("cache_creation"), usage.peek("server_tool_use"));
    let inner = ForwardedCall {
        group: message.take_name("id"),
        request: record.take_name("requestId"),
        id: record.take_name("uuid"),
        thread: data.take_name("agentId"),
        model: message.take_name("model"),
        time: record.take_iso("timestamp"),
        pace: pace(usage.peek("speed"), usage.peek("service_tier")),
        tokens: Tokens::of(&numbers).plus(&more),
    };
    Some((numbers.stated().map(|_| inner), odd))
}
