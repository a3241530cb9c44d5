//! Folds over one source: resume, join, nest, agree.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Case;
use crate::audit::{Audit, Auditor, Call};
use crate::calls::{CallStep, Calls, Decision};
use crate::evidence::{is_progress, nested_events, nested_source};
use crate::model::{Body, Event, Kind, StopReason};
use crate::query::EntryBuilder;
use crate::read;
use crate::run_state::{EventPlace, RunState};

/// The folds that can be saved.
#[derive(Clone, Default, PartialEq)]
struct Folds {
    calls: Calls,
    run: RunState,
}

impl Folds {
    fn add(&mut self, event: &Event<'_>) -> CallStep {
        let step = self.calls.add(event);
        let at = event.at.unwrap_or_default();
        self.run.add(event, &step, EventPlace { line: at.line, offset: at.offset, ..EventPlace::default() });
        step
    }

    fn saved_and_restored(&self) -> Folds {
        Folds { calls: Calls::restore(&self.calls.save()), run: RunState::restore(&self.run.save()) }
    }
}

/// After how many events the folds are saved and restored: an odd number, so that it falls on calls, results and messages.
const SAVED_EACH: usize = 7;

/// A fold that is saved and restored on the way decides the same as one pass.
pub(super) fn resume(case: &mut Case<'_>) {
    let (mut whole, mut resumed) = (Folds::default(), Folds::default());
    let mut broken = None;
    for (at, event) in case.found.events.iter().enumerate() {
        if at % SAVED_EACH == 0 {
            resumed = resumed.saved_and_restored();
        }
        if whole.add(event) != resumed.add(event) || whole.run != resumed.run {
            broken = Some((at, event.at));
            break;
        }
    }
    if let Some((event, at)) = broken {
        case.broken("resume", format!("event {event}: a restored fold decides differently"), at);
    }
}

/// Whether a call comes before its result, or two results come one before the other, does not change which calls failed.
pub(super) fn join(case: &mut Case<'_>) {
    let events: Vec<&Event<'static>> = case.found.events.iter().collect();
    // An id that is given again says nothing about the order.
    let mut given: HashMap<(bool, Option<&str>), usize> = HashMap::new();
    let key = |event: &Event<'static>| event.kind() == Kind::ToolCall;
    events.iter().for_each(|event| *given.entry((key(event), event.call())).or_default() += 1);
    let is_sole = |event: &Event<'static>| given.get(&(key(event), event.call())) == Some(&1);
    let mut swapped = events.clone();
    let mut at = 1;
    while let (Some(first), Some(second)) = (events.get(at - 1), events.get(at)) {
        if may_swap(first, second) && is_sole(first) && is_sole(second) {
            swapped.swap(at - 1, at);
            at += 1;
        }
        at += 1;
    }
    let (before, after) = (failed_ids(&events), failed_ids(&swapped));
    if let Some(id) = before.symmetric_difference(&after).next() {
        let what = format!("call {id}: failed: {}; in another order: {}", before.contains(id), after.contains(id));
        case.broken("join", what, None);
    }
}

/// The ids of the calls that failed.
fn failed_ids<'e>(events: &[&'e Event<'static>]) -> BTreeSet<&'e str> {
    let mut calls = Calls::default();
    let mut failed = BTreeSet::new();
    let mut ids: BTreeMap<u64, &str> = BTreeMap::new();
    for event in events {
        let step = calls.add(event);
        if let (Some(number), Some(id)) = (step.call, event.call()) {
            ids.insert(number, id);
        }
        let decisions = step.decision.iter().chain(&step.early).chain(&step.later);
        failed.extend(decisions.filter(|decision| decision.outcome.is_failure()).map(|decision| decision.call));
    }
    failed.into_iter().filter_map(|number| ids.get(&number).copied()).collect()
}

/// Whether two events that follow each other may as well come the other way round: a call and its own result, or two results.
fn may_swap(first: &Event<'_>, second: &Event<'_>) -> bool {
    let is_told_alone = |event: &Event<'_>| event.call().is_some_and(|id| !id.is_empty()) && !event.restates;
    match (first.kind(), second.kind()) {
        (Kind::ToolCall, Kind::ToolResult) => is_told_alone(first) && first.call() == second.call() && !second.restates,
        (Kind::ToolResult, Kind::ToolResult) => {
            is_told_alone(first) && is_told_alone(second) && first.call() != second.call()
        }
        _ => false,
    }
}

/// A nested record and its copy in a file of its own have equal keys, so that the index knows them as one. A copy that the source itself
/// has is compared as well.
pub(super) fn nest(case: &mut Case<'_>) {
    let mut nested: HashMap<RecordPart, (u64, u64)> = HashMap::new();
    let mut broken = Vec::new();
    for event in &case.found.events {
        let Some(source) = nested_source(event) else { continue };
        let inner = nested_events(event);
        let found = keys(&inner);
        let mut own = read::all(case.format, source.as_bytes()).events;
        own.retain(|event| !is_progress(event));
        let own = keys(&own);
        if !found.is_empty() && found != own {
            let what = format!("nested records have {} keys, but {} in a separate file", found.len(), own.len());
            broken.push((what, event.at));
        }
        nested.extend(found);
    }
    if !nested.is_empty() {
        let events = &case.found.events;
        let differs = |(part, key): &(RecordPart, (u64, u64))| nested.get(part).is_some_and(|nested| nested != key);
        if let Some((part, _)) = keys(events).into_iter().find(differs) {
            broken.push((format!("record {}: its key differs when it is nested", part.0), None));
        }
    }
    broken.into_iter().for_each(|(what, at)| case.broken("nest", what, at));
}

/// The id of a record, and the number of the part.
type RecordPart = (String, u32);

/// The keys of all parts that the index keeps.
fn keys(events: &[Event<'static>]) -> Vec<(RecordPart, (u64, u64))> {
    let mut builder = EntryBuilder::default();
    let key = |event: &Event<'static>| {
        let part = (event.id.as_deref()?.to_owned(), event.part.index);
        builder.entry(event).map(|entry| (part, (entry.key, entry.twin)))
    };
    events.iter().filter_map(key).collect()
}

/// Failed calls are the same for everybody: what search marks as an error, what the audit counts and what the fold decides are one.
pub(super) fn agree(case: &mut Case<'_>) {
    let mut fold = Calls::default();
    let mut entries = EntryBuilder::default().through(case.format);
    let mut auditor = Auditor::default();
    let mut outcomes: BTreeMap<u64, Decision> = BTreeMap::new();
    let mut marked = Vec::new();
    let events = &case.found.events;
    for (at, event) in events.iter().enumerate() {
        let step = fold.add(event);
        let is_marked = entries.entry(event).is_some_and(|entry| entry.error);
        if is_marked != (step.has_failed() || is_failure_of_the_run(event)) {
            marked.push((at, is_marked, event.at));
        }
        for decision in step.decision.iter().chain(&step.early).chain(&step.later) {
            outcomes.insert(decision.call, *decision);
        }
        auditor.add(event);
    }
    let failed = outcomes.values().filter(|one| one.outcome.is_failure()).count();
    let audit = auditor.finish();
    // Records inside others are read by the audit alone; they are in side conversations.
    let is_nested = |thread: &Option<String>| {
        thread.is_some() && events.iter().all(|event| event.thread.as_deref() != thread.as_deref())
    };
    let nested: Vec<bool> = audit.threads.iter().map(|thread| is_nested(&thread.id)).collect();
    let own = audit.calls.items.iter().filter(|call| !nested.get(call.thread).copied().unwrap_or_default());
    let counted = own.filter(|call| call.outcome.is_failure()).count();
    if audit.calls.more == 0 && counted != failed {
        case.broken("agree", format!("{failed} calls failed, but the audit counts {counted}"), None);
    }
    if audit.calls.more == 0 {
        disagreements(&audit).into_iter().for_each(|what| case.broken("agree", what, None));
    }
    for (event, is_marked, at) in marked {
        case.broken("agree", format!("event {event}: search marks an error: {is_marked}; the fold disagrees"), at);
    }
}

/// Where the parts of an audit count failed calls differently.
fn disagreements(audit: &Audit) -> Vec<String> {
    let failed: Vec<&Call> = audit.calls.items.iter().filter(|call| call.outcome.is_failure()).collect();
    let count = |is_counted: &dyn Fn(&Call) -> bool| failed.iter().filter(|call| is_counted(call)).count() as u64;
    let mut counts = Vec::new();
    for (number, thread) in audit.threads.iter().enumerate() {
        let name = thread.id.as_deref().unwrap_or("the main conversation");
        counts.push((name.to_owned(), thread.failed, count(&|call| call.thread == number)));
    }
    for agent in &audit.agents.items {
        if let Some(thread) = agent.thread.and_then(|thread| audit.threads.get(thread)) {
            counts.push(("an agent".to_owned(), agent.failed, thread.failed));
        }
    }
    let by_tool = audit.tools.iter().map(|tool| tool.failed + tool.denied).sum();
    counts.push(("the tools".to_owned(), by_tool, count(&|call| call.tool.is_some())));
    if let Some(first) = audit.turns.items.first().filter(|_| audit.turns.more == 0) {
        let is_later = |call: &Call| call.decided.is_some_and(|decided| decided.event >= first.from.event);
        let by_turn = audit.turns.items.iter().map(|turn| turn.failed).sum();
        counts.push(("the turns".to_owned(), by_turn, count(&|call| call.thread == 0 && is_later(call))));
    }
    let differs = |(_, counted, listed): &(String, u64, u64)| counted != listed;
    let what = |(what, counted, listed)| format!("{what} count {counted} failed calls, but {listed} are listed");
    counts.into_iter().filter(differs).map(what).collect()
}

fn is_failure_of_the_run(event: &Event<'_>) -> bool {
    match &event.body {
        Body::Failure { .. } => true,
        Body::Stop { reason, success, .. } => StopReason::is_failure(reason.as_deref(), *success),
        _ => false,
    }
}
