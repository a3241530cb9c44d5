//! Statements of a record about model calls beyond the usage of its event: running totals, forwarded calls of sub-agents,
//! numbers that are not a call.

use super::nested::nested_usage;
use crate::json::{items, number};
use crate::model::{Body, Event, ExtraFields, Tokens, TotalPaths, UsageWords};
use crate::text::Str;

/// The usage of a session so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RunningTotal {
    /// The counters since the session began. The input includes tokens read from or written to a cache.
    pub tokens: Tokens,
    /// The total cost in US dollars that the source states.
    pub cost: Option<f64>,
}

/// Why a record that states usage is not a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotACall {
    /// The agent made up the answer itself.
    Synthetic,
    /// It sums up calls that other records state one by one.
    Sum,
}

/// Whether the record states something about model calls that has no field in the event.
pub(crate) fn states_model_calls(event: &Event<'_>) -> bool {
    running_total(event).is_some()
        || is_model_of_next(event)
        || is_search(event)
        || not_a_call(event).is_some()
        || has_invalid_count(event)
        || forwarded_calls(event).iter().any(|call| call.usage.is_some() || has_invalid_count(call))
}

/// Whether the record states the model of the calls which follow.
fn is_model_of_next(event: &Event<'_>) -> bool {
    let Body::Fact { fact: name, .. } = &event.body else { return false };
    event.model.is_some() && words(event).any(|(words, _)| words.model_facts.contains(&name.as_ref()))
}

/// The running total that the record states.
pub(crate) fn running_total(event: &Event<'_>) -> Option<RunningTotal> {
    let Body::Fact { fact: name, .. } = &event.body else { return None };
    words(event).find_map(|(words, extra)| {
        let paths = words.total.as_ref().filter(|paths| paths.facts.contains(&name.as_ref()))?;
        Some(total(paths, extra.object_at(paths.object)?.as_ref()))
    })
}

fn total(paths: &TotalPaths, object: &ExtraFields<'_>) -> RunningTotal {
    let counter = |name: &str| object.raw(name).and_then(number).unwrap_or(0);
    let tokens = Tokens {
        input: counter(paths.input),
        output: counter(paths.output),
        cache_read: counter(paths.cache_read),
        cache_write: counter(paths.cache_write),
        reasoning: counter(paths.reasoning),
        ..Tokens::default()
    };
    let cost = object.raw(paths.cost).and_then(|raw| raw.parse::<f64>().ok()).filter(|cost| *cost > 0.0);
    RunningTotal { tokens, cost }
}

/// Of how many calls the usage or the running total of the record is the sum, if the record states it.
pub(crate) fn stated_calls(event: &Event<'_>) -> Option<u32> {
    words(event).find_map(|(words, extra)| {
        let stated = words.calls.iter().find_map(|path| extra.at(path))?;
        let calls = number(stated).or_else(|| items(stated).map(|items| items.len() as u64))?;
        u32::try_from(calls).ok().filter(|calls| *calls > 0)
    })
}

/// The id that, together with the group, identifies a model call.
pub(crate) fn request<'e>(event: &'e Event<'_>) -> Option<Str<'e>> {
    let time = || {
        words(event).find(|(words, _)| words.do_groups_repeat)?;
        Some(event.time.as_ref()?.instant()?.to_string().into())
    };
    event.request_id.as_deref().map(Str::Borrowed).or_else(time)
}

/// Whether a fork copies this call under a new id.
pub(crate) fn do_forks_rename(event: &Event<'_>) -> bool {
    words(event).any(|(words, _)| words.do_forks_rename)
}

/// The calls of a sub-agent that the record forwards while the sub-agent works.
pub(crate) fn forwarded_calls(event: &Event<'_>) -> Vec<Event<'static>> {
    let mut calls = nested_usage(event);
    calls.retain(|call| not_a_call(call) != Some(NotACall::Synthetic));
    calls
}

/// Why the numbers of the record are not a model call; `None` if they are.
pub(crate) fn not_a_call(event: &Event<'_>) -> Option<NotACall> {
    words(event).find_map(|(words, extra)| match words.synthetic_model {
        Some((path, model)) if event.usage.is_some() && extra.word_at(path).is_some_and(|word| word == model) => {
            Some(NotACall::Synthetic)
        }
        _ if words.sums.iter().any(|path| extra.at(path).is_some()) => Some(NotACall::Sum),
        _ => None,
    })
}

/// Whether the record states an invalid token count: negative, with a fraction, too large, or not a number.
pub(crate) fn has_invalid_count(event: &Event<'_>) -> bool {
    let is_invalid = |raw: &str| raw != "null" && number(raw).is_none();
    words(event).any(|(words, extra)| {
        words.counters.iter().any(|(path, names)| {
            let object = extra.object_at(path);
            object.is_some_and(|object| names.iter().any(|name| object.raw(name).is_some_and(is_invalid)))
        })
    })
}

/// Whether the record is a web search by the vendor's servers. It is not a model call, but it has a price.
pub(crate) fn is_search(event: &Event<'_>) -> bool {
    let Body::ToolCall { name, .. } = &event.body else { return false };
    let search = words(event).find_map(|(words, _)| words.searches.iter().find(|(tool, _)| tool == name));
    search.is_some_and(|(_, done)| super::hosted_status(event).flatten().is_some_and(|status| status == *done))
}

/// The session whose history the source of this header repeats first: the one it was forked from, or the one that spawned it.
pub(crate) fn repeated_session<'e>(event: &'e Event<'_>) -> Option<Str<'e>> {
    let forked = event.forked_from.as_ref().map(|fork| Str::Borrowed(fork.session.as_ref()));
    let stated =
        || words(event).find_map(|(words, extra)| words.repeated_sessions.iter().find_map(|path| extra.word_at(path)));
    let session = forked.or_else(stated)?;
    Some(session).filter(|session| !session.is_empty() && Some(session.as_ref()) != event.session.as_deref())
}

/// Whether that history is in another source, so that a running total includes calls which this source does not have.
pub(crate) fn is_history_elsewhere(event: &Event<'_>) -> bool {
    words(event).any(|(words, extra)| {
        words.history.is_some_and(|paths| extra.at(paths.object).is_some_and(|raw| raw.starts_with('{')))
    })
}

fn words<'e, 'a>(event: &'e Event<'a>) -> impl Iterator<Item = (&'static UsageWords, &'e ExtraFields<'a>)> {
    event.extra.known().map(|(info, extra)| (&info.usage, extra))
}
