//! The marker: the record in which a format stores a summary. The writer of the format makes it and the reader reads it back, so
//! that no format has to declare whether it can store a summary.

use std::io;

use super::OldPart;
use crate::edit::{EditSource, Plan, Sketches};
use crate::format::Format;
use crate::model::{Body, Content, Event, Kind, Outline, Role, key};
use crate::read;
use crate::time::Time;
use crate::write::{self, OutputPiece, Writing};

/// The id and time of a new marker. The caller provides them, because the library has no clock and no random numbers.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// A random UUID, which every system accepts.
    pub id: String,
    /// The time of the compaction.
    pub time: Time<'static>,
}

/// The plan that replaces the old part with a summary. `None` if the format cannot store a summary.
pub fn plan(source: &mut EditSource<'_>, old: &OldPart, summary: &str, stamp: &Stamp) -> io::Result<Option<Plan>> {
    let Some(marker) = marker(source, old, summary, stamp)? else { return Ok(None) };
    let mut plan = Plan::of_count(source.sketches.len());
    old.removed.iter().for_each(|number| plan.remove(*number));
    relink(&source.sketches, old, &marker, &mut plan);
    marker.into_iter().for_each(|event| plan.insert_before(old.first_kept, event));
    Ok(Some(plan))
}

/// Whether a format can store a summary.
pub fn can_store_summary(format: &dyn Format) -> bool {
    const SUMMARY: &str = "So far: a summary.";
    let message = |text: &'static str| Event::new(Body::Message { role: Role::User, content: Content::text(text) });
    let marker = Event::new(Body::Compaction { summary: Some(Content::text(SUMMARY)) });
    let events = [message("Before"), marker, message("After")];
    let bytes = write::all(format, &Outline::of("", &events), &events);
    read::all(format, &bytes).events.iter().any(|event| has_summary(event, SUMMARY))
}

fn has_summary(event: &Event<'_>, summary: &str) -> bool {
    match &event.body {
        Body::Compaction { summary: Some(content) } => content.joined().decode() == summary,
        _ => false,
    }
}

/// The events of the records that the format's writer makes of a summary.
fn marker(
    source: &mut EditSource<'_>,
    old: &OldPart,
    summary: &str,
    stamp: &Stamp,
) -> io::Result<Option<Vec<Event<'static>>>> {
    let format = source.format;
    // The writer first sees the first record and the last removed one, so that it writes no header and continues from there.
    let last = old.summarized.last().copied();
    let is_context = |number: usize| number == 0 || Some(number) == last;
    let records = source.sketches.records().filter(|record| record.clone().any(is_context));
    let numbers: Vec<usize> = records.flatten().collect();
    let mut context: Vec<Event<'static>> = Vec::new();
    let mut last_event = None;
    source.each_of(&numbers, &mut |number, event| {
        context.push(event.clone().into_owned());
        last_event = last_event.take().or_else(|| (Some(number) == last).then(|| event.clone().into_owned()));
    })?;
    let mut outline = source.outline.clone();
    // Ids that the writer invents must differ from those of an earlier compaction.
    outline.seed ^= xxhash_rust::xxh3::xxh3_64(stamp.id.as_bytes());
    let mut writing = Writing::new(format, &outline);
    for event in &context {
        let _ = writing.event(event);
    }
    let mut pieces = writing.event(&new_marker(last_event.unwrap_or_default(), old, summary, stamp));
    pieces.extend(writing.finish());
    let mut bytes = Vec::new();
    for piece in pieces {
        if let OutputPiece::Record(record) = piece {
            bytes.extend_from_slice(&record);
            bytes.push(b'\n');
        }
    }
    let made = read::all(format, &bytes).events;
    let is_stored = made.iter().all(|event| event.kind() == Kind::Compaction)
        && made.iter().any(|event| has_summary(event, summary));
    Ok(is_stored.then(|| made.into_iter().map(|event| Event { at: None, ..event }).collect()))
}

/// The marker as an event, with the session, folder and branch of the last removed event.
fn new_marker(last: Event<'static>, old: &OldPart, summary: &str, stamp: &Stamp) -> Event<'static> {
    Event {
        id: Some(stamp.id.clone().into()),
        time: Some(stamp.time.clone()),
        to: old.recipient.clone().map(Into::into),
        session: last.session,
        thread: last.thread,
        cwd: last.cwd,
        branch: last.branch,
        version: last.version,
        ..Event::new(Body::Compaction { summary: Some(Content::text(summary.to_owned())) })
    }
}

/// Makes kept records whose parent is removed follow the marker; otherwise a reader that follows parents would skip the summary.
fn relink(events: &Sketches, old: &OldPart, marker: &[Event<'static>], plan: &mut Plan) {
    let Some(last) = marker.last() else { return };
    let Some(id) = last.id.clone() else { return };
    let thread = last.thread.as_deref().map_or(0, |thread| key(thread).max(1));
    let kept = events.as_slice().get(old.first_kept..).unwrap_or_default();
    let mut kept_ids: Vec<u64> = kept.iter().map(|event| event.id).filter(|id| *id != 0).collect();
    kept_ids.sort_unstable();
    for (number, event) in (old.first_kept..).zip(kept) {
        let has_lost_parent = event.parent != 0 && kept_ids.binary_search(&event.parent).is_err();
        if has_lost_parent && event.thread == thread {
            plan.set_parent_id(number, id.clone());
        }
    }
}
