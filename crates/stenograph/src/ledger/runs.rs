//! Totals of runs whose calls other sources state one by one: a converted session states one sum for the calls of the original,
//! and a recorded run has its calls in the journal. Only the part of the total beyond those calls counts.

use std::collections::{HashMap, HashSet};

use super::Tokens;
use super::builder::{LedgerEntry, RecordingPart};
use super::conversions::{EntrySource, is_call};
use super::row::{Row, RowKind};
use super::source_usage::Name;

/// Two sums of costs that differ by less than this are equal: they were added up in different orders.
const COST_MIN: f64 = 1e-9;

/// The entries to change so that nothing counts twice, by index: the new row, or `None` to remove the entry.
pub(super) fn adjustments<'s>(
    entries: &[LedgerEntry],
    source_of: &dyn Fn(&LedgerEntry) -> Option<EntrySource<'s>>,
) -> HashMap<usize, Option<Row>> {
    let mut adjusted = HashMap::new();
    let is_run = |(_, entry): &(usize, &LedgerEntry)| entry.row.kind == RowKind::Run && source_of(entry).is_some();
    let runs: Vec<(usize, &LedgerEntry)> = entries.iter().enumerate().filter(is_run).collect();
    let sessions: HashSet<Name> = runs.iter().filter_map(|(_, run)| run.row.session).collect();
    if runs.is_empty() {
        return adjusted;
    }
    let mut calls: HashMap<Name, Vec<(usize, &LedgerEntry)>> = HashMap::new();
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| is_call(entry)) {
        if let Some(session) = entry.row.session.filter(|session| sessions.contains(session)) {
            calls.entry(session).or_default().push((index, entry));
        }
    }
    // What the journal of a recording states, its documents state again.
    let mut journals: HashMap<Name, Vec<(usize, &LedgerEntry)>> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        if let Some((recording, RecordingPart::Journal)) = source_of(entry).and_then(|source| source.recording) {
            journals.entry(recording).or_default().push((index, entry));
        }
    }
    for (index, run) in runs {
        let mut calls = run.row.session.and_then(|session| calls.get(&session)).cloned().unwrap_or_default();
        let recorded = recording_of(run, source_of).and_then(|recording| journals.get(&recording));
        let known: HashSet<usize> = calls.iter().map(|(index, _)| *index).collect();
        calls.extend(recorded.into_iter().flatten().filter(|(index, _)| !known.contains(index)));
        // The total includes the calls of its own agent, unless it states only a cost.
        let is_other = |call: &&(usize, &LedgerEntry)| call.1.row.agent != run.row.agent || run.row.tokens.is_zero();
        let mut others: Vec<(usize, &LedgerEntry)> = calls.iter().filter(is_other).copied().collect();
        others.sort_by_key(|(_, call)| (call.row.time, call.row.key));
        // A conversion of a run was written after it, and states no caches.
        let is_made_from_run = |call: &LedgerEntry| {
            call.row.tokens.input == call.row.tokens.all_input() && source_of(run) < source_of(call)
        };
        if others.is_empty() {
            continue;
        }
        if !run.row.tokens.is_zero() && others.iter().all(|(_, call)| is_made_from_run(call)) {
            adjusted.extend(within(&run.row, &others).into_iter().map(|index| (index, None)));
        } else {
            adjusted.insert(index, beyond(&run.row, &others));
        }
    }
    adjusted
}

/// The recording of which this entry's source is a document.
fn recording_of<'s>(entry: &LedgerEntry, source_of: &dyn Fn(&LedgerEntry) -> Option<EntrySource<'s>>) -> Option<Name> {
    let (recording, part) = source_of(entry)?.recording?;
    (part == RecordingPart::Document).then_some(recording)
}

/// The first calls whose sum the total of the run covers.
fn within(run: &Row, calls: &[(usize, &LedgerEntry)]) -> Vec<usize> {
    let (mut input, mut output) = (run.tokens.all_input(), run.tokens.output);
    let mut found = Vec::new();
    for (index, call) in calls {
        let tokens = &call.row.tokens;
        let (Some(less_input), Some(less_output)) =
            (input.checked_sub(tokens.all_input()), output.checked_sub(tokens.output))
        else {
            break;
        };
        (input, output) = (less_input, less_output);
        found.push(*index);
    }
    found
}

/// The usage of a run beyond these calls; `None` if they cover all of it.
fn beyond(run: &Row, calls: &[(usize, &LedgerEntry)]) -> Option<Row> {
    let covered = calls.iter().fold(Tokens::default(), |sum, (_, call)| sum.plus(&call.row.tokens));
    let costs: f64 = calls.iter().filter_map(|(_, call)| call.row.stated_cost).sum();
    let tokens = Tokens {
        input: run.tokens.all_input().saturating_sub(covered.all_input()),
        output: run.tokens.output.saturating_sub(covered.output),
        ..Tokens::default()
    };
    let stated_cost = run.stated_cost.map(|stated| stated - costs).filter(|stated| *stated > COST_MIN);
    let count = u32::try_from(calls.len()).unwrap_or(u32::MAX);
    match (tokens.is_zero(), stated_cost) {
        (true, None) => None,
        (true, Some(_)) => Some(Row { tokens, stated_cost, calls: 0, kind: RowKind::Cost, ..run.clone() }),
        (false, _) => Some(Row { tokens, stated_cost, calls: run.calls.saturating_sub(count).max(1), ..run.clone() }),
    }
}
