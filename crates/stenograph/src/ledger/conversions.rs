//! Finds calls that a converted session repeats. A session that was converted for another agent, and perhaps continued there, states
//! the calls of the original again under the name of the other agent. Only the source that was written first counts them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Tokens;
use super::book::Entry;
use super::page::Name;

/// The time that two agents state for one call differs by less than this: one states when the answer begins, the other when it ends.
const APART_MAX_MS: u64 = 10 * 60 * 1000;

/// For every entry whether it repeats a call that another agent made in the same session. `written` gives what decides which of two
/// sources is the original: when it was last written, and its path. It gives nothing for entries that take no part.
pub(super) fn repeated<'s>(entries: &[Entry], written: &dyn Fn(&Entry) -> Option<(i64, &'s str)>) -> Vec<bool> {
    let mut repeated = vec![false; entries.len()];
    for places in of_several_agents(entries, written).into_values() {
        let mut ordered: Vec<(_, usize, &Entry)> = places
            .into_iter()
            .filter_map(|place| {
                let entry = entries.get(place)?;
                Some((written(entry)?, place, entry))
            })
            .collect();
        ordered.sort_by_key(|(written, _, entry)| (*written, entry.row.time, entry.row.key));
        // The calls that count, by what they wrote, each with the sources that repeat it.
        let mut counted: BTreeMap<u64, Vec<(&Entry, Vec<u32>)>> = BTreeMap::new();
        for (_, place, entry) in ordered {
            let alike = counted.entry(entry.row.tokens.output).or_default();
            let source = entry.source;
            match alike.iter_mut().find(|(original, by)| is_same_call(original, entry) && !by.contains(&source)) {
                Some((_, by)) => {
                    by.push(source);
                    if let Some(repeated) = repeated.get_mut(place) {
                        *repeated = true;
                    }
                }
                None => alike.push((entry, Vec::new())),
            }
        }
    }
    repeated
}

/// The entries of each session in which calls of more than one agent are told.
fn of_several_agents<'s>(
    entries: &[Entry],
    written: &dyn Fn(&Entry) -> Option<(i64, &'s str)>,
) -> HashMap<Name, Vec<usize>> {
    let (mut agents, mut several) = (HashMap::new(), HashSet::new());
    for entry in entries {
        if let Some(session) = entry.row.session
            && *agents.entry(session).or_insert(entry.row.agent) != entry.row.agent
            && written(entry).is_some()
        {
            several.insert(session);
        }
    }
    let mut found: HashMap<Name, Vec<usize>> = HashMap::new();
    if several.is_empty() {
        return found;
    }
    for (place, entry) in entries.iter().enumerate() {
        if let Some(session) = entry.row.session.filter(|session| several.contains(session)) {
            found.entry(session).or_default().push(place);
        }
    }
    found
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

/// Whether the tokens of a call are the same, also where one source states no cache, or counts it as input.
fn is_alike(one: &Tokens, other: &Tokens) -> bool {
    let read = |tokens: &Tokens| tokens.input.saturating_add(tokens.cache_read).saturating_add(tokens.cache_write);
    let is_cached = |tokens: &Tokens| tokens.cache_read > 0 || tokens.cache_write > 0;
    let is_input_same = read(one) == read(other) || one.input == other.input && !(is_cached(one) && is_cached(other));
    one.output == other.output && is_input_same && read(one).saturating_add(one.output) > 0
}
