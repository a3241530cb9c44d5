//! What Codex tells about model calls beyond the last one's numbers: the running total of the session, and whose history a rollout
//! begins with. Reads leftovers only.

use super::notices;
use crate::json::Object;
use crate::ledger::{Input, Tokens, Told, Total, is_odd};
use crate::model::{Event, ExtraFields};
use crate::text::{Str, Text};

/// What is left of a record tells this.
pub fn told<'e>(event: &'e Event<'_>, left: &'e ExtraFields<'_>) -> Told<'e> {
    let Some(payload) = left.opened("payload") else {
        return Told { more: searched(left), ..Told::default() };
    };
    // Only what is known to count is counted: a record of an unknown type may say anything.
    let counts = payload.text("type").is_some_and(|kind| kind == "token_count");
    let total = if counts { total(&payload) } else { None };
    let (total, odd) = total.map_or((None, false), |(total, odd)| (Some(total), odd));
    let is_header = left.text("type").is_some_and(|kind| kind == "session_meta");
    let apart = is_header && payload.raw("history_base").is_some_and(|raw| raw.starts_with('{'));
    let parent = parent(event, &payload).filter(|_| is_header);
    Told { total, odd, apart, parent, more: searched(&payload), ..Told::default() }
}

/// A search that OpenAI's servers made: the item says so itself, and nothing else does.
fn searched(item: &ExtraFields<'_>) -> Tokens {
    let is = |key: &str, word: &str| item.text(key).is_some_and(|found| found == word);
    let searches = u64::from(is("type", "web_search_call") && is("status", "completed"));
    Tokens { searches, ..Tokens::default() }
}

/// The running total, and whether one of its counts is none.
fn total(payload: &ExtraFields<'_>) -> Option<(Total, bool)> {
    let info = payload.opened("info")?;
    let mut json = String::new();
    match (info.object("total_token_usage"), info.raw("total_token_usage")) {
        (Some(opened), _) => opened.write_json(&mut json),
        (None, Some(raw)) => json.push_str(raw),
        (None, None) => return None,
    }
    let numbers = Object::parse(&json)?;
    let number = |key: &str| numbers.peek(key).and_then(crate::json::number).unwrap_or(0);
    let names = [notices::INPUT, notices::OUTPUT, notices::CACHED, notices::CACHE_WRITE, notices::REASONING];
    let odd = names.into_iter().filter_map(|name| numbers.peek(name)).any(is_odd);
    let tokens = Tokens {
        input: number(notices::INPUT),
        output: number(notices::OUTPUT),
        cache_read: number(notices::CACHED),
        cache_write: number(notices::CACHE_WRITE),
        reasoning: number(notices::REASONING),
        ..Tokens::default()
    };
    Some((Total { tokens, input: Input::WithCache, cost: None }, odd))
}

/// The thread whose history is replayed before this one's own: the one it was forked from, or the one that spawned it.
fn parent(event: &Event<'_>, payload: &ExtraFields<'_>) -> Option<Str<'static>> {
    let forked = event.forked_from.as_ref().map(|fork| Str::Borrowed(fork.session.as_ref()));
    let spawned = || {
        let source = payload.raw("source").filter(|raw| raw.starts_with('{')).and_then(Object::parse)?;
        let subagent = source.peek("subagent").and_then(Object::parse)?;
        subagent.peek("thread_spawn").and_then(Object::parse)?.take_name("parent_thread_id")
    };
    let named = |key: &str| payload.raw(key).and_then(Text::from_json).and_then(Text::exact);
    let parent = forked.or_else(|| named("parent_thread_id")).or_else(spawned)?;
    Some(parent)
        .filter(|parent| !parent.is_empty() && Some(parent.as_ref()) != event.session.as_deref())
        .map(|parent| parent.into_owned().into())
}
