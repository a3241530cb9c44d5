//! Finds calls that a converted session repeats. A session that was converted for another agent, and perhaps continued there,
//! states the calls of the original again under the name of the other agent. They count once, for the source that knows their
//! model; if several do, for the one that was written first. `runs.rs` handles totals of runs.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Tokens;
use super::builder::Entry;
use super::row::How;
use super::source_usage::Name;

/// Two agents state times for the same call that differ by less than this: one states when the answer begins, the other when it
/// ends.
const APART_MAX_MS: u64 = 10 * 60 * 1000;

/// The same for sources that name no session: conversions among them state the times of the original.
const UNNAMED_APART_MAX_MS: u64 = 2_000;

/// The source of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin<'s> {
    /// When it was last written.
    pub written: i64,
    /// Its path.
    pub path: &'s str,
    /// Whether its records name their session.
    pub names_session: bool,
}

/// The places of entries that repeat a call which another agent made in the same session. `origin` gives what decides which of two
/// sources is the original. It gives nothing for entries that take no part.
pub(super) fn repeated<'s>(entries: &[Entry], origin: &dyn Fn(&Entry) -> Option<Origin<'s>>) -> Vec<usize> {
    let mut repeated = Vec::new();
    for places in of_several_agents(entries, origin).into_values() {
        let mut ordered: Vec<(_, usize, &Entry)> = places
            .into_iter()
            .filter_map(|place| {
                let entry = entries.get(place)?;
                Some((origin(entry)?, place, entry))
            })
            .collect();
        ordered.sort_by_key(|(origin, _, entry)| (entry.row.model.is_none(), *origin, entry.row.time, entry.row.key));
        let nothing: Vec<(usize, u32)> = ordered
            .extract_if(.., |(_, _, entry)| took_nothing(entry))
            .map(|(_, place, entry)| (place, entry.source))
            .collect();
        let mut converted = HashSet::new();
        // The calls that count, by what they wrote: of each all that tell of it, first the one that counts.
        let mut counted: BTreeMap<u64, Vec<Vec<&Entry>>> = BTreeMap::new();
        for (_, place, entry) in ordered {
            let alike = counted.entry(entry.row.tokens.output).or_default();
            match alike.iter_mut().find(|tellings| tell_of(tellings, entry)) {
                Some(tellings) => {
                    tellings.push(entry);
                    repeated.push(place);
                    converted.insert(entry.source);
                }
                None => alike.push(vec![entry]),
            }
        }
        // Agents write answers that no model gave, and a conversion does not say which those were.
        repeated.extend(nothing.into_iter().filter(|(_, source)| converted.contains(source)).map(|(place, _)| place));
    }
    repeated
}

/// Whether these entries, which tell of one call, tell of the call of another entry too. A session that was converted and converted back
/// has the agent of the original, and other ids: only the conversion between them connects the two.
fn tell_of(tellings: &[&Entry], entry: &Entry) -> bool {
    let is_own = |telling: &&&Entry| telling.row.agent == entry.row.agent;
    let is_elsewhere = tellings.iter().all(|telling| telling.source != entry.source);
    let is_of_same_thread = tellings.iter().filter(is_own).all(|telling| telling.row.thread == entry.row.thread);
    is_elsewhere && is_of_same_thread && tellings.iter().any(|telling| is_same_call(telling, entry))
}

/// The indexes of the entries of each session with calls of several agents.
fn of_several_agents<'s>(
    entries: &[Entry],
    origin: &dyn Fn(&Entry) -> Option<Origin<'s>>,
) -> HashMap<Name, Vec<usize>> {
    let adopted = sessions_of_unnamed(entries, origin);
    let session = |entry: &Entry| adopted.get(&entry.source).copied().or(entry.row.session);
    let (mut agents, mut several) = (HashMap::new(), HashSet::new());
    for entry in entries.iter().filter(|entry| is_call(entry)) {
        if let Some(session) = session(entry)
            && *agents.entry(session).or_insert(entry.row.agent) != entry.row.agent
            && origin(entry).is_some()
        {
            several.insert(session);
        }
    }
    let mut found: HashMap<Name, Vec<usize>> = HashMap::new();
    if several.is_empty() {
        return found;
    }
    for (place, entry) in entries.iter().enumerate().filter(|(_, entry)| is_call(entry)) {
        if let Some(session) = session(entry).filter(|session| several.contains(session)) {
            found.entry(session).or_default().push(place);
        }
    }
    found
}

/// For sources whose records name no session, the session that they are a conversion of: the one that made their first call.
fn sessions_of_unnamed<'s>(entries: &[Entry], origin: &dyn Fn(&Entry) -> Option<Origin<'s>>) -> HashMap<u32, Name> {
    let mut firsts: HashMap<u32, &Entry> = HashMap::new();
    let is_unnamed = |entry: &&Entry| {
        origin(entry).is_some_and(|origin| !origin.names_session) && is_call(entry) && !took_nothing(entry)
    };
    for entry in entries.iter().filter(is_unnamed) {
        let first = firsts.entry(entry.source).or_insert(entry);
        if (entry.row.time, entry.row.key) < (first.row.time, first.row.key) {
            *first = entry;
        }
    }
    // Without a time, any two calls of the same size would match.
    firsts.retain(|_, first| first.row.time.is_some());
    let mut by_output: HashMap<u64, Vec<(u32, &Entry)>> = HashMap::new();
    for (source, first) in &firsts {
        by_output.entry(first.row.tokens.output).or_default().push((*source, first));
    }
    let mut found: HashMap<u32, (u64, u128, Name)> = HashMap::new();
    for entry in entries.iter().filter(|entry| is_call(entry) && !firsts.contains_key(&entry.source)) {
        let Some(alike) = by_output.get(&entry.row.tokens.output) else { continue };
        let (Some(session), Some(time), Some(_)) = (entry.row.session, entry.row.time, origin(entry)) else { continue };
        for (source, first) in alike.iter().filter(|(_, first)| is_same_call(first, entry)) {
            // If several match, the nearest one counts.
            let apart = first.row.time.map_or(u64::MAX, |first| first.abs_diff(time));
            if apart >= UNNAMED_APART_MAX_MS {
                continue;
            }
            let nearest = found.entry(*source).or_insert((apart, entry.row.key, session));
            *nearest = (*nearest).min((apart, entry.row.key, session));
        }
    }
    found.into_iter().map(|(source, (.., session))| (source, session)).collect()
}

/// Whether an entry is a single call.
pub(super) fn is_call(entry: &Entry) -> bool {
    match entry.row.how {
        How::Own | How::Difference | How::Replayed | How::Passed => true,
        How::Run | How::Cost | How::Search => false,
    }
}

fn took_nothing(entry: &Entry) -> bool {
    entry.row.tokens.all_input() == 0 && entry.row.tokens.output == 0
}

/// Whether two agents tell of one call: the same tokens at about the same time. What one agent tells twice it tells by the same ids.
fn is_same_call(one: &Entry, other: &Entry) -> bool {
    let (one, other) = (&one.row, &other.row);
    let is_same_model = one.model.is_none() || other.model.is_none() || one.model == other.model;
    let is_near = match (one.time, other.time) {
        (Some(one), Some(other)) => one.abs_diff(other) < APART_MAX_MS,
        (None, _) | (_, None) => true,
    };
    one.agent != other.agent && is_same_model && is_near && is_alike(&one.tokens, &other.tokens)
}

/// Whether two calls have the same tokens, even if one source states no cache or counts it as input.
fn is_alike(one: &Tokens, other: &Tokens) -> bool {
    let is_cached = |tokens: &Tokens| tokens.cache_read > 0 || tokens.cache_write > 0;
    let (read, read_other) = (one.all_input(), other.all_input());
    let is_input_same = read == read_other || one.input == other.input && !(is_cached(one) && is_cached(other));
    one.output == other.output && is_input_same && read.saturating_add(one.output) > 0
}
