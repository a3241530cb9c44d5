//! Totals of runs whose calls other sources state one by one: a converted session states one sum for the calls of the original,
//! and a recorded run has its calls in the journal. Only the part of the total beyond those calls counts.

use std::collections::{HashMap, HashSet};

use super::Tokens;
use super::builder::Entry;
use super::conversions::{Origin, is_call};
use super::row::{How, Row};
use super::source_usage::Name;

/// Two sums of costs that differ by less than this are equal: they were added up in different orders.
const COST_MIN: f64 = 1e-9;

/// What is left of entries when nothing counts twice, by their places. Entries that are not named here stay as they are.
pub(super) fn left_over<'s>(
    entries: &[Entry],
    origin: &dyn Fn(&Entry) -> Option<Origin<'s>>,
) -> HashMap<usize, Option<Row>> {
    let mut left = HashMap::new();
    let is_run = |(_, entry): &(usize, &Entry)| entry.row.how == How::Run && origin(entry).is_some();
    let runs: Vec<(usize, &Entry)> = entries.iter().enumerate().filter(is_run).collect();
    let sessions: HashSet<Name> = runs.iter().filter_map(|(_, run)| run.row.session).collect();
    if sessions.is_empty() {
        return left;
    }
    let mut calls: HashMap<Name, Vec<(usize, &Entry)>> = HashMap::new();
    for (place, entry) in entries.iter().enumerate().filter(|(_, entry)| is_call(entry)) {
        if let Some(session) = entry.row.session.filter(|session| sessions.contains(session)) {
            calls.entry(session).or_default().push((place, entry));
        }
    }
    for (place, run) in runs {
        let Some(calls) = run.row.session.and_then(|session| calls.get(&session)) else { continue };
        // The calls of its own agent are told within it, unless only its cost is asked for.
        let is_other = |call: &&(usize, &Entry)| call.1.row.agent != run.row.agent || run.row.tokens.is_zero();
        let mut others: Vec<(usize, &Entry)> = calls.iter().filter(is_other).copied().collect();
        others.sort_by_key(|(_, call)| (call.row.time, call.row.key));
        // A conversion of a run was written after it, and knows nothing of caches.
        let is_made_of_run =
            |call: &Entry| call.row.tokens.input == call.row.tokens.all_input() && origin(run) < origin(call);
        if others.is_empty() {
            continue;
        }
        if !run.row.tokens.is_zero() && others.iter().all(|(_, call)| is_made_of_run(call)) {
            left.extend(within(&run.row, &others).into_iter().map(|place| (place, None)));
        } else {
            left.insert(place, beyond(&run.row, &others));
        }
    }
    left
}

/// The first calls, as far as a run took as much as they take together.
fn within(run: &Row, calls: &[(usize, &Entry)]) -> Vec<usize> {
    let (mut input, mut output) = (run.tokens.all_input(), run.tokens.output);
    let mut found = Vec::new();
    for (place, call) in calls {
        let tokens = &call.row.tokens;
        let (Some(less_input), Some(less_output)) =
            (input.checked_sub(tokens.all_input()), output.checked_sub(tokens.output))
        else {
            break;
        };
        (input, output) = (less_input, less_output);
        found.push(*place);
    }
    found
}

/// What a run took beyond these calls; nothing where they tell all of it.
fn beyond(run: &Row, calls: &[(usize, &Entry)]) -> Option<Row> {
    let told = calls.iter().fold(Tokens::default(), |sum, (_, call)| sum.plus(&call.row.tokens));
    let costs: f64 = calls.iter().filter_map(|(_, call)| call.row.stated).sum();
    let tokens = Tokens {
        input: run.tokens.all_input().saturating_sub(told.all_input()),
        output: run.tokens.output.saturating_sub(told.output),
        ..Tokens::default()
    };
    let stated = run.stated.map(|stated| stated - costs).filter(|stated| *stated > COST_MIN);
    let count = u32::try_from(calls.len()).unwrap_or(u32::MAX);
    match (tokens.is_zero(), stated) {
        (true, None) => None,
        (true, Some(_)) => Some(Row { tokens, stated, calls: 0, how: How::Cost, ..run.clone() }),
        (false, _) => Some(Row { tokens, stated, calls: run.calls.saturating_sub(count).max(1), ..run.clone() }),
    }
}
