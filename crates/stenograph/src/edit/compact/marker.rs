//! The marker: the record that a format has for a summary, made by its own writer and read back, so that whether a format has a
//! place for one is measured and not declared. Which events go is decided in the file above.

use std::io;

use super::Aside;
use crate::edit::{EditSource, Plan, Sketches};
use crate::format::Format;
use crate::model::{Body, Content, Event, Kind, Outline, Role, key};
use crate::read;
use crate::time::Time;
use crate::write::{self, OutputPiece, Writing};

/// What a new marker needs besides its summary. Whoever compacts is where it comes from.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// Its id: a random UUID, so that every system can take it.
    pub id: String,
    /// The moment.
    pub time: Time<'static>,
}

/// The plan that puts the summary in the place of what goes. `None` when the source has no place for a summary.
pub fn plan(source: &mut EditSource<'_>, aside: &Aside, summary: &str, stamp: &Stamp) -> io::Result<Option<Plan>> {
    let Some(marker) = marker(source, aside, summary, stamp)? else { return Ok(None) };
    let mut plan = Plan::of_count(source.sketches.len());
    aside.goes.iter().for_each(|number| plan.remove(*number));
    link(&source.sketches, aside, &marker, &mut plan);
    marker.into_iter().for_each(|event| plan.put_before(aside.kept_from, event));
    Ok(Some(plan))
}

/// Whether a format has a record for a summary.
pub fn has_place(format: &dyn Format) -> bool {
    const SUMMARY: &str = "So far: a summary.";
    let said = |text: &'static str| Event::new(Body::Message { role: Role::User, content: Content::text(text) });
    let marker = Event::new(Body::Compaction { summary: Some(Content::text(SUMMARY)) });
    let events = [said("Before"), marker, said("After")];
    let bytes = write::all(format, &Outline::of("", &events), &events);
    read::all(format, &bytes).events.iter().any(|event| says(event, SUMMARY))
}

fn says(event: &Event<'_>, summary: &str) -> bool {
    match &event.body {
        Body::Compaction { summary: Some(content) } => content.joined().decode() == summary,
        _ => false,
    }
}

/// The events of the records that the format makes of a summary.
fn marker(
    source: &mut EditSource<'_>,
    aside: &Aside,
    summary: &str,
    stamp: &Stamp,
) -> io::Result<Option<Vec<Event<'static>>>> {
    let format = source.format;
    // The writer is shown what stands there, so that it makes no header and goes on from the last record that goes.
    let last = aside.told.last().copied();
    let is_shown = |number: usize| number == 0 || Some(number) == last;
    let records = source.sketches.records().filter(|record| record.clone().any(is_shown));
    let numbers: Vec<usize> = records.flatten().collect();
    let mut shown: Vec<Event<'static>> = Vec::new();
    let mut place = None;
    source.each_of(&numbers, &mut |number, event| {
        shown.push(event.clone().into_owned());
        place = place.take().or_else(|| (Some(number) == last).then(|| event.clone().into_owned()));
    })?;
    let mut outline = source.outline.clone();
    // Whatever ids are made up have to be others than at the last compaction.
    outline.seed ^= xxhash_rust::xxh3::xxh3_64(stamp.id.as_bytes());
    let mut writing = Writing::new(format, &outline);
    for event in &shown {
        let _ = writing.event(event);
    }
    let mut pieces = writing.event(&new(place.unwrap_or_default(), aside, summary, stamp));
    pieces.extend(writing.finish());
    let mut bytes = Vec::new();
    for piece in pieces {
        if let OutputPiece::Record(record) = piece {
            bytes.extend_from_slice(&record);
            bytes.push(b'\n');
        }
    }
    let made = read::all(format, &bytes).events;
    let whole =
        made.iter().all(|event| event.kind() == Kind::Compaction) && made.iter().any(|event| says(event, summary));
    Ok(whole.then(|| made.into_iter().map(|event| Event { at: None, ..event }).collect()))
}

/// The marker before its format has seen it. It stands where the last thing that goes was said.
fn new(place: Event<'static>, aside: &Aside, summary: &str, stamp: &Stamp) -> Event<'static> {
    Event {
        id: Some(stamp.id.clone().into()),
        time: Some(stamp.time.clone()),
        // Where speakers have names, it is for whomever the user speaks to.
        to: aside.to.clone().map(Into::into),
        session: place.session,
        thread: place.thread,
        cwd: place.cwd,
        branch: place.branch,
        version: place.version,
        ..Event::new(Body::Compaction { summary: Some(Content::text(summary.to_owned())) })
    }
}

/// What is kept follows the marker: a link that leads past it would lead past the summary.
fn link(events: &Sketches, aside: &Aside, marker: &[Event<'static>], plan: &mut Plan) {
    let Some(last) = marker.last() else { return };
    let Some(id) = last.id.clone() else { return };
    let thread = last.thread.as_deref().map_or(0, |thread| key(thread).max(1));
    let kept = events.as_slice().get(aside.kept_from..).unwrap_or_default();
    let mut stands: Vec<u64> = kept.iter().map(|event| event.id).filter(|id| *id != 0).collect();
    stands.sort_unstable();
    for (number, event) in (aside.kept_from..).zip(kept) {
        let past = event.parent != 0 && stands.binary_search(&event.parent).is_err();
        if past && event.thread == thread {
            plan.follow(number, id.clone());
        }
    }
}
