//! What Claude Code tells about model calls beyond their numbers: the request, the pace, how long a cache lives, and calls of
//! sub-agents within `progress` records. Reads leftovers only.

use crate::json::Object;
use crate::ledger::{Inner, Pace, Retold, Tokens, Told};
use crate::model::Residue;

use super::read::SYNTHETIC;

/// What is left of a record tells this.
pub fn told<'e>(left: &'e Residue<'_>) -> Told<'e> {
    let Some(message) = left.object("message") else {
        return Told { inner: left.raw("data").and_then(progress), ..Told::default() };
    };
    let mut told = Told { request: left.text("requestId").filter(|request| !request.is_empty()), ..Told::default() };
    if message.raw("model") == Some(SYNTHETIC) {
        told.aside = Some(Retold::Synthetic);
    } else if left.raw("toolUseResult").is_some_and(is_sum) {
        told.aside = Some(Retold::Sum);
    }
    if let Some(usage) = message.object("usage") {
        let number = |object: &str, key: &str| within(usage.raw(object), key);
        told.more.cache_write_hour = number("cache_creation", HOUR);
        told.more.searches = number("server_tool_use", "web_search_requests");
        told.more.fetches = number("server_tool_use", "web_fetch_requests");
        told.pace = pace(usage.raw("speed"), usage.raw("service_tier"));
    }
    told
}

/// The counter of what is kept in a cache for an hour.
const HOUR: &str = "ephemeral_1h_input_tokens";

fn within(object: Option<&str>, key: &str) -> u64 {
    let object = object.filter(|raw| raw.starts_with('{')).and_then(Object::within);
    object.and_then(|object| object.peek(key)).and_then(crate::json::number).unwrap_or(0)
}

fn pace(speed: Option<&str>, tier: Option<&str>) -> Pace {
    match (speed, tier) {
        (Some("\"fast\""), _) => Pace::Fast,
        (_, Some("\"priority\"")) => Pace::Priority,
        (_, Some("\"batch\"")) => Pace::Batch,
        _ => Pace::Standard,
    }
}

/// Whether the result of a tool adds up what a sub-agent took.
fn is_sum(raw: &str) -> bool {
    let result = || Object::within(raw)?.peek("usage").and_then(Object::within);
    raw.starts_with('{') && result().is_some_and(|usage| usage.has("input_tokens"))
}

/// The message of a sub-agent, as it was passed on while it worked.
fn progress(data: &str) -> Option<Inner<'_>> {
    let mut data = Object::within(data)?;
    let mut record = data.peek("message").and_then(Object::within)?;
    let mut message = record.peek("message").and_then(Object::within)?;
    let mut usage = message.peek("usage").and_then(Object::within)?;
    if message.peek("model") == Some(SYNTHETIC) {
        return None;
    }
    let more = Tokens {
        cache_write_hour: within(usage.peek("cache_creation"), HOUR),
        searches: within(usage.peek("server_tool_use"), "web_search_requests"),
        fetches: within(usage.peek("server_tool_use"), "web_fetch_requests"),
        ..Tokens::default()
    };
    Some(Inner {
        group: message.take_name("id"),
        request: record.take_name("requestId"),
        id: record.take_name("uuid"),
        thread: data.take_name("agentId"),
        model: message.take_name("model"),
        time: record.take_iso("timestamp"),
        pace: pace(usage.peek("speed"), usage.peek("service_tier")),
        tokens: Tokens::of(&super::read::numbers(&mut usage)).plus(&more),
    })
}
