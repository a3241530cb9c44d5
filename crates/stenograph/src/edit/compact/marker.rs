//! The marker: the record that a format has for a summary, made by its own writer and read back, so that whether a format has a
//! place for one is measured and not declared. Which events go is decided in the file above.

use std::collections::HashSet;

use super::Aside;
use crate::edit::{Original, Plan, Sketched};
use crate::format::Format;
use crate::model::{Body, Content, Event, Kind, Outline, Role};
use crate::read;
use crate::time::Time;
use crate::write::{self, Writing, Written};

/// What a new marker needs besides its summary. Whoever compacts is where it comes from.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// Its id: a random UUID, so that every system can take it.
    pub id: String,
    /// The moment.
    pub time: Time<'static>,
}

/// The plan that puts the summary in the place of what goes. `None` when the source has no place for a summary.
pub fn plan(original: &Original<'_>, aside: &Aside, summary: &str, stamp: &Stamp) -> Option<Plan> {
    let marker = marker(original, aside, summary, stamp)?;
    let mut plan = Plan::of(&original.events);
    aside.goes.iter().for_each(|number| plan.remove(*number));
    link(&original.events, aside, &marker, &mut plan);
    marker.into_iter().for_each(|event| plan.put_before(aside.kept_from, event));
    Some(plan)
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
fn marker(original: &Original<'_>, aside: &Aside, summary: &str, stamp: &Stamp) -> Option<Vec<Event<'static>>> {
    let events = &original.events;
    let sketches = events.sketches();
    let mut outline = Outline::of(original.format.info().name, events);
    // Whatever ids are made up have to be others than at the last compaction.
    outline.seed ^= xxhash_rust::xxh3::xxh3_64(stamp.id.as_bytes());
    let mut writing = Writing::new(original.format, &outline);
    // The writer is shown what stands there, so that it makes no header and goes on from the last record that goes.
    let last = aside.told.last().copied();
    for number in [Some(0), last.filter(|last| *last > 0)].into_iter().flatten() {
        let record = sketches.records().find(|record| record.contains(&number))?;
        for event in events.get(record)? {
            let _ = writing.event(event);
        }
    }
    let mut pieces = writing.event(&new(events, last, summary, stamp));
    pieces.extend(writing.finish());
    let mut bytes = Vec::new();
    for piece in pieces {
        if let Written::Record(record) = piece {
            bytes.extend_from_slice(&record);
            bytes.push(b'\n');
        }
    }
    let made = read::all(original.format, &bytes).events;
    let whole =
        made.iter().all(|event| event.kind() == Kind::Compaction) && made.iter().any(|event| says(event, summary));
    whole.then(|| made.into_iter().map(|event| Event { at: None, ..event }).collect())
}

/// The marker before its format has seen it. It stands where the last thing that goes was said.
fn new(events: &[Event<'static>], last: Option<usize>, summary: &str, stamp: &Stamp) -> Event<'static> {
    let place = last.and_then(|last| events.get(last)).cloned().unwrap_or_default();
    let user = events.iter().find(|event| event.role() == Some(Role::User) && event.to.is_some());
    let marker = events.iter().rfind(|event| event.kind() == Kind::Compaction && event.to.is_some());
    Event {
        id: Some(stamp.id.clone().into()),
        time: Some(stamp.time.clone()),
        // Where speakers have names, it is for whomever the user speaks to.
        to: marker.or(user).and_then(|event| event.to.clone()),
        session: place.session,
        thread: place.thread,
        cwd: place.cwd,
        branch: place.branch,
        version: place.version,
        ..Event::new(Body::Compaction { summary: Some(Content::text(summary.to_owned())) })
    }
}

/// What is kept follows the marker: a link that leads past it would lead past the summary.
fn link(events: &[Event<'static>], aside: &Aside, marker: &[Event<'static>], plan: &mut Plan) {
    let Some(last) = marker.last() else { return };
    let Some(id) = last.id.clone() else { return };
    let kept = events.get(aside.kept_from..).unwrap_or_default();
    let stands: HashSet<&str> = kept.iter().filter_map(|event| event.id.as_deref()).collect();
    for (number, event) in (aside.kept_from..).zip(kept) {
        let past = event.parent.as_deref().is_some_and(|parent| !stands.contains(parent));
        if past && event.thread == last.thread {
            plan.follow(number, id.clone());
        }
    }
}
