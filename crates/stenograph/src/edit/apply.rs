//! Carries out a plan: runs of the source are replaced where that does it, else the whole source is written anew through events.
//! What comes out is read back and held against the plan; what differs is said, never passed over.

use std::io;

use super::splice::edits;
use super::{Fate, Original, Plan, echo};
use crate::loss::{Comparison, Report};
use crate::model::{Event, Kind, Note, NoteKind, Outline};
use crate::read;
use crate::write;

/// An edited source.
#[derive(Debug)]
pub struct Applied {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What they say.
    pub events: Vec<Event<'static>>,
    /// How they came to be.
    pub way: Way,
    /// What is not as it was planned: empty, unless the format cannot say it.
    pub differs: Report,
    /// Remarks about the result that could not be made about the source.
    pub notes: Vec<Note>,
    /// How many records were edited only because they say again what another one says, or hang on one that is gone.
    pub followed: u64,
    /// Fields that still tell of the whole session, though something of it went.
    pub untouched_totals: Vec<&'static str>,
}

impl Applied {
    /// Whether exactly what was planned has changed.
    pub fn is_exact(&self) -> bool {
        self.differs.losses.is_empty() && self.notes.is_empty()
    }
}

/// How an edited source came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing was planned: it is the source itself.
    Copied,
    /// Runs of the source were replaced, and everything else copied byte for byte.
    Spliced,
    /// All of it was written anew: the format has no records that could be replaced one by one.
    Rewritten,
}

/// Carries out a plan.
pub fn apply(original: &Original<'_>, plan: &Plan) -> io::Result<Applied> {
    if plan.is_empty() {
        return Ok(Applied {
            bytes: original.bytes.to_vec(),
            events: original.events.clone(),
            way: Way::Copied,
            differs: Report::default(),
            notes: Vec::new(),
            followed: 0,
            untouched_totals: Vec::new(),
        });
    }
    let whole = echo::follow(&original.events, plan);
    let expected = whole.left(&original.events);
    let spliced = match edits(original, &whole) {
        Some(edits) => {
            let mut bytes = Vec::with_capacity(original.bytes.len());
            write::splice(&mut { original.bytes }, &edits, &mut bytes)?;
            Some(read_back(original, &expected, bytes, Way::Spliced))
        }
        None => None,
    };
    let best = match spliced {
        Some(spliced) if spliced.is_exact() => spliced,
        spliced => {
            let events: Vec<Event<'static>> = expected.iter().map(|event| (*event).clone()).collect();
            let outline = Outline::of(original.format.info().name, &events);
            let bytes = write::all(original.format, &outline, &events);
            drop(events);
            let rewritten = read_back(original, &expected, bytes, Way::Rewritten);
            match spliced {
                // Where neither is exact, the one that leaves the source alone has to be worse to be passed over.
                Some(spliced) if weight(&spliced) <= weight(&rewritten) => spliced,
                _ => rewritten,
            }
        }
    };
    let followed = (0..original.events.len()).filter(|number| plan.fate(*number) != whole.fate(*number)).count();
    let went = (0..original.events.len()).any(|number| *whole.fate(number) == Fate::Goes);
    let untouched_totals = if went { totals(&best.events) } else { Vec::new() };
    Ok(Applied { followed: followed as u64, untouched_totals, ..best })
}

/// The fields of headers that tell what a whole session took, where they tell of anything.
fn totals(events: &[Event<'_>]) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (origin, residue) in
        events.iter().filter(|event| event.kind() == Kind::Fact).flat_map(|event| event.extra.iter())
    {
        let totals = crate::format::named(origin).map_or([].as_slice(), crate::format::Format::totals);
        residue.each("", &mut |path, raw| found.extend(totals.iter().filter(|total| **total == path && raw != "0")));
    }
    found
}

/// Reads a result and compares it with what was planned.
fn read_back(original: &Original<'_>, expected: &[&Event<'static>], bytes: Vec<u8>, way: Way) -> Applied {
    let found = read::all(original.format, &bytes);
    let name = original.format.info().name;
    let same = expected.len() == found.events.len()
        && expected.iter().zip(&found.events).all(|(planned, found)| {
            planned.says_the_same(found) || unspelled(planned).says_the_same(&unspelled(found))
        });
    let differs = if same { Report::default() } else { difference(name, expected, &found.events) };
    let notes = new_notes(&original.notes, &found.notes);
    Applied { bytes, events: found.events, way, differs, notes, followed: 0, untouched_totals: Vec::new() }
}

/// The event without what only spells its record: a link that leads nowhere may be spelled or left out.
fn unspelled(event: &Event<'static>) -> Event<'static> {
    let mut event = event.clone();
    let origins: Vec<String> = event.extra.iter().map(|(origin, _)| origin.to_owned()).collect();
    for origin in origins {
        let spelling = crate::format::named(&origin).map_or([].as_slice(), |format| format.info().spelling);
        spelling.iter().for_each(|path| event.extra.drop_field(&origin, path));
    }
    event
}

fn difference(name: &'static str, expected: &[&Event<'static>], found: &[Event<'static>]) -> Report {
    let mut comparison = Comparison::new(move |origin| origin == name);
    expected.iter().for_each(|event| comparison.source(&unspelled(event)));
    found.iter().for_each(|event| comparison.target(&unspelled(event)));
    comparison.finish()
}

/// Remarks of which there are more than there were.
fn new_notes(before: &[Note], after: &[Note]) -> Vec<Note> {
    let mut new = Vec::new();
    for kind in NoteKind::ALL {
        let of = |notes: &[Note]| notes.iter().filter(|note| note.kind == kind).count();
        let more = of(after).saturating_sub(of(before));
        let of_kind = after.iter().filter(|note| note.kind == kind);
        new.extend(of_kind.rev().take(more).cloned());
    }
    new
}

fn weight(applied: &Applied) -> u64 {
    let lost = applied.differs.losses.iter().filter(|((_, _, how), _)| how.is_loss());
    lost.map(|(_, count)| count.times).sum::<u64>() + applied.notes.len() as u64
}
