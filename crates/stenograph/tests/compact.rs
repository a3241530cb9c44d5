//! Compacting every fixture, and every file of the corpus if it is available: one test for every file. The result has the
//! summary, and after it the kept records, byte for byte.

mod every_file;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use libtest_mimic::Failed;
use stenograph::edit::compact::{Keep, OldPart, Stamp, can_store_summary, old_part, plan};
use stenograph::edit::links::Links;
use stenograph::edit::tokens::Tokenizer;
use stenograph::edit::{Applied, EditSource, Fate, Original, Plan, apply};
use stenograph::format::Format;
use stenograph::frame::Framing;
use stenograph::model::{Body, Event, Kind, Span};
use stenograph::time::{Time, TimeUnit};

const SUMMARY: &str = "So far: \"a lot\" was said,\n\tand done. Ünd 漢.";

fn main() {
    every_file::run(file);
}

fn file(format: &'static dyn Format, path: &Path) -> Result<(), Failed> {
    let bytes = fs::read(path)?;
    if format.info().is_never_edited {
        let is_refused = Original::read(format, &bytes).is_err();
        return if is_refused { Ok(()) } else { Err("it is not refused".into()) };
    }
    let original = Original::read(format, &bytes)?;
    let tokenizer = Tokenizer::default();
    let whole: u64 = original.events.iter().map(|event| tokenizer.event(event)).sum();
    let keeps = [Keep::Turns(0), Keep::Turns(1), Keep::Turns(2), Keep::Tokens(whole / 3 + 1), Keep::Dropping(50)];
    for keep in keeps {
        let Some(old) = old_part(&original.events, keep, &tokenizer) else { continue };
        let Some(plan) = planned(&original, &old, SUMMARY, &stamp())? else {
            // A document of a format whose other files are lines may have no place for a summary either.
            if can_store_summary(format) && (format.info().framing == Framing::Lines || bytes.starts_with(b"{\"")) {
                return Err(format!("{keep:?}: no place for a summary").into());
            }
            continue;
        };
        if !can_store_summary(format) {
            return Err("a place for a summary where there should be none".into());
        }
        let applied = apply(&original, &plan)?;
        checked(&original, &old, &plan, &applied).map_err(|what| format!("{keep:?}: {what}"))?;
        again(format, &applied.bytes).map_err(|what| format!("{keep:?}, and again: {what}"))?;
    }
    Ok(())
}

fn planned(original: &Original<'_>, old: &OldPart, summary: &str, stamp: &Stamp) -> io::Result<Option<Plan>> {
    let mut source = original.bytes;
    let mut source = EditSource::read(original.format, &mut source, &mut |_| {})?;
    plan(&mut source, old, summary, stamp)
}

fn stamp() -> Stamp {
    let time = Time { text: "2026-03-02T09:14:05.250Z".into(), unit: TimeUnit::Iso };
    Stamp { id: "3f1c2d4e-5a6b-4c7d-8e9f-0a1b2c3d4e5f".into(), time }
}

fn checked(original: &Original<'_>, old: &OldPart, plan: &Plan, applied: &Applied) -> Result<(), String> {
    if !applied.is_exact() {
        return Err(format!("not as planned: {:?} {:?}", applied.differences.losses, applied.notes));
    }
    let removed: HashSet<usize> = old.removed.iter().copied().collect();
    for link in Links::of(&original.events).iter() {
        if removed.contains(&link.from) != removed.contains(&link.to) {
            return Err(format!("{} and {} are separated", link.from, link.to));
        }
    }
    let is_ours = |event: &Event<'_>| match &event.body {
        Body::Compaction { summary: Some(summary) } => summary.joined().decode() == SUMMARY,
        _ => false,
    };
    let marker = applied.events.iter().rposition(is_ours).ok_or("the summary is not there")?;
    let old_markers = applied.events.iter().take(marker).filter(|event| event.kind() == Kind::Compaction).count();
    if old_markers > 1 {
        return Err("a summary from before is still there".into());
    }
    let (before, after) = applied.events.split_at(marker + 1);
    kept(original, old, plan, applied, after)?;
    // No kept event refers to an event before the marker.
    let past: HashSet<&str> = before.iter().take(marker).filter_map(|event| event.id.as_deref()).collect();
    match after.iter().find(|event| event.parent.as_deref().is_some_and(|parent| past.contains(parent))) {
        Some(event) if event.thread.is_none() => Err(format!("{:?} leads past the summary", event.id)),
        _ => Ok(()),
    }
}

/// Checks that kept events have the same content, and the same bytes except for links to removed events.
fn kept(
    original: &Original<'_>,
    old: &OldPart,
    plan: &Plan,
    applied: &Applied,
    after: &[Event<'_>],
) -> Result<(), String> {
    // Facts about removed events, such as their progress, are removed too.
    let is_talk = |event: &&Event<'_>| event.kind() != Kind::Fact;
    let kept = original.events.iter().enumerate().skip(old.first_kept).filter(|(_, event)| is_talk(event));
    let (kept, after): (Vec<_>, Vec<_>) = (kept.collect(), after.iter().filter(is_talk).collect());
    if kept.len() != after.len() {
        return Err(format!("{} events are kept of {}", after.len(), kept.len()));
    }
    let slice = |bytes: &[u8], at: Option<Span>| {
        at.and_then(|at| bytes.get(at.offset as usize..at.end() as usize).map(<[u8]>::to_owned))
    };
    for ((number, before), after) in kept.into_iter().zip(after) {
        let linked = Event { parent: after.parent.clone(), ..before.clone() };
        if before.part != after.part && before.body == after.body && before.id == after.id {
            // A record may end one turn and begin another: with a result and a user message.
            continue;
        }
        if !linked.equals_except_position(after) {
            return Err(format!("{number} has other content"));
        }
        let same = slice(original.bytes, before.at) == slice(&applied.bytes, after.at);
        if !same && plan.fate(number) == Fate::Kept && before.parent == after.parent {
            return Err(format!("{number} has other bytes"));
        }
    }
    Ok(())
}

/// Checks that a compacted file can be compacted again, and that the next summary covers the previous one.
fn again(format: &'static dyn Format, bytes: &[u8]) -> Result<(), String> {
    let original = Original::read(format, bytes).map_err(|error| error.to_string())?;
    let Some(old) = old_part(&original.events, Keep::Turns(0), &Tokenizer::default()) else { return Ok(()) };
    let summarized = old.summarized.iter().filter_map(|number| original.events.get(*number));
    if !summarized.map(Event::kind).any(|kind| kind == Kind::Compaction) {
        return Err("the earlier summary is not summarized".into());
    }
    let stamp = Stamp { id: "8e9f3f1c-5a6b-4c7d-8e9f-0a1b2c3d4e5f".into(), ..stamp() };
    let plan = planned(&original, &old, "All of it.", &stamp).map_err(|error| error.to_string())?;
    let plan = plan.ok_or("there is no place any more")?;
    let applied = apply(&original, &plan).map_err(|error| error.to_string())?;
    let markers = applied.events.iter().filter(|event| event.kind() == Kind::Compaction && event.content().is_some());
    match (applied.is_exact(), markers.count()) {
        (true, 1) => Ok(()),
        (exact, count) => Err(format!("exact: {exact}, {count} summaries")),
    }
}
