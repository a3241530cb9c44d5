//! The law *agree*: every feature counts the same failed calls. For every fixture and every file of the corpus, the errors in
//! the index, the failed calls in the audit and the decisions of the fold are the same, and a fold that is saved and restored
//! on the way decides the same.

mod every_file;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use stenograph::audit::Auditor;
use stenograph::calls::{Calls, Decision};
use stenograph::format::Format;
use stenograph::model::{Event, Kind};
use stenograph::query::EntryBuilder;
use stenograph::{Session, read};

fn main() {
    every_file::run(file);
}

/// The fold is saved and restored after this many events.
const SAVED_EACH: usize = 7;

fn file(format: &'static dyn Format, path: &Path) -> Result<(), Failed> {
    let bytes = fs::read(path)?;
    let events = read::all(format, &bytes).events;
    let (mut fold, mut resumed) = (Calls::default(), Calls::default());
    let mut builder = EntryBuilder::default().through(format);
    let mut auditor = Auditor::default();
    let mut outcomes: BTreeMap<u64, Decision> = BTreeMap::new();
    let mut made = BTreeSet::new();
    for (at, event) in events.iter().enumerate() {
        let step = fold.add(event);
        if at % SAVED_EACH == 0 {
            resumed = Calls::restore(&resumed.save());
        }
        if resumed.add(event) != step {
            return Err(format!("event {}: a restored fold decides differently", at + 1).into());
        }
        let is_marked = builder.entry(event).is_some_and(|entry| entry.error);
        if is_marked != (step.has_failed() || is_failure_of_the_run(event)) {
            return Err(format!("event {}: marked as an error: {is_marked}, by the fold: {step:?}", at + 1).into());
        }
        if event.kind() != Kind::ToolResult {
            made.extend(step.call);
        }
        for decision in step.decision.iter().chain(&step.early).chain(&step.later) {
            let had_failed = outcomes.get(&decision.call).is_some_and(|known| known.outcome.is_failure());
            if !had_failed {
                outcomes.insert(decision.call, *decision);
            }
        }
        auditor.add(event);
    }
    let failed = outcomes.values().filter(|one| one.outcome.is_failure() && made.contains(&one.call)).count();
    let session = Session::of(format, bytes);
    let told = session.calls().filter(|call| call.event().is_some() && call.outcome().is_failure()).count();
    if told != failed {
        return Err(format!("{failed} calls failed, and the session has {told}").into());
    }
    let audit = auditor.finish();
    // Only the audit reads nested records; they are in side conversations.
    let nested: BTreeSet<usize> = audit
        .threads
        .iter()
        .enumerate()
        .filter(|(_, thread)| is_nested(&thread.id, &events))
        .map(|(at, _)| at)
        .collect();
    let calls = audit.calls.items.iter().filter(|call| !nested.contains(&call.thread));
    let counted = calls.filter(|call| call.outcome.is_failure()).count();
    if audit.calls.more == 0 && counted != failed {
        return Err(format!("{failed} calls failed, and the audit counts {counted}").into());
    }
    Ok(())
}

fn is_failure_of_the_run(event: &Event<'_>) -> bool {
    match event.kind() {
        Kind::Failure => true,
        Kind::Stop => matches!(event.body, stenograph::model::Body::Stop { success: Some(false), .. }),
        _ => false,
    }
}

fn is_nested(thread: &Option<String>, events: &[Event<'_>]) -> bool {
    thread.is_some() && events.iter().all(|event| event.thread.as_deref() != thread.as_deref())
}
