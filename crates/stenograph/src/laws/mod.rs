//! The laws: properties that every format has, as code that tests, users and third-party formats can run. They are about
//! decoded bytes. Laws that need a golden file are in the conformance test; these need only a source.

mod coverage;
mod folds;
pub mod pairs;
mod round;
pub mod shell;
mod stream;

use crate::format::Format;
use crate::model::{Event, Span};
use crate::read::{self, Collected};

/// A law that does not hold for a source.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The law.
    pub law: &'static str,
    /// The violation.
    pub what: String,
    /// Its position in the source.
    pub at: Option<Span>,
}

/// How thoroughly to check: laws that try many positions try this many.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The number of positions of the source to try.
    pub places: usize,
}

/// The laws by name, in the order of the design.
pub(crate) const LAWS: [(&str, &str); 14] = [
    ("silent", "every byte that is not blank is in an event or a note, and every record is written back unchanged"),
    (
        "echo",
        "an untouched copy equals the source, and replacing a record with itself changes no other byte and no event",
    ),
    ("return", "written events are read back unchanged, and writing them again gives the same bytes"),
    ("hurt", "no prefix and no flipped byte causes a panic or a byte outside all events and notes"),
    ("scar", "a line that is neither a record nor text is written back to its place"),
    ("chunks", "input in pieces of 1, 7 and 4096 bytes gives the same events"),
    ("growth", "settled events do not change when the source grows"),
    ("pieces", "reading from any record gives the same events, for formats that promise it"),
    ("projection", "reading less is a projection of reading all"),
    ("resume", "a fold that is saved and restored decides the same as one pass"),
    ("join", "the order of a call, its result and neighbouring results does not change which calls failed"),
    ("nest", "a nested record and its copy in a separate file have equal keys in the index"),
    ("agree", "failed calls are the same for find, list, status and audit"),
    ("carry", "converting with the source embedded, and back, restores every byte"),
];

/// The laws that apply to sources of this format.
pub fn applying(format: &dyn Format) -> impl Iterator<Item = &'static str> {
    let pieces = format.info().traits.pieces;
    LAWS.iter().map(|(name, _)| *name).filter(move |name| pieces || *name != "pieces")
}

/// Checks a source against every law.
pub fn check(format: &'static dyn Format, source: &[u8], effort: Effort) -> Vec<Broken> {
    let found = read::all(format, source);
    let mut case = Case { format, source, found: &found, effort, broken: Vec::new() };
    coverage::silent(&mut case);
    coverage::equal(&mut case);
    round::echo(&mut case);
    round::returns(&mut case);
    stream::hurt(&mut case);
    round::scarred(&mut case);
    stream::chunks(&mut case);
    stream::growth(&mut case);
    stream::pieces(&mut case);
    stream::projection(&mut case);
    folds::resume(&mut case);
    folds::join(&mut case);
    folds::nest(&mut case);
    folds::agree(&mut case);
    round::carry(&mut case);
    case.broken
}

/// One source under test.
struct Case<'a> {
    format: &'static dyn Format,
    source: &'a [u8],
    found: &'a Collected,
    effort: Effort,
    broken: Vec<Broken>,
}

impl Case<'_> {
    fn broken(&mut self, law: &'static str, what: impl Into<String>, at: Option<Span>) {
        // The first few explain the problem; more would repeat it.
        if self.broken.iter().filter(|broken| broken.law == law).count() < 3 {
            self.broken.push(Broken { law, what: what.into(), at });
        }
    }

    /// Evenly spread positions in the source.
    fn places(&self, most: usize) -> Vec<usize> {
        self.places_within(self.source.len(), most)
    }

    /// Evenly spread positions in the first part of the source.
    fn places_within(&self, window: usize, most: usize) -> Vec<usize> {
        let count = self.effort.places.min(most).max(1);
        let step = (window / count).max(1);
        // Shift the positions, so that they fall inside tokens as well as on their edges.
        (0..window).step_by(step).map(|at| (at + at / step % 7).min(window)).collect()
    }

    /// The records: groups of events with the same position.
    fn records(&self) -> Vec<&[Event<'static>]> {
        self.found.events.chunk_by(|last, next| next.continues_record_at(last.at)).collect()
    }
}

/// The first difference between two lists of events, for people.
fn difference(left: &[Event<'_>], right: &[Event<'_>]) -> Option<String> {
    for (index, (a, b)) in left.iter().zip(right).enumerate() {
        if !a.equals_except_position(b) {
            let show = |event: &Event<'_>| crate::wire::event(event).chars().take(600).collect::<String>();
            return Some(format!("event {index} differs:\n  {}\n  {}", show(a), show(b)));
        }
    }
    let (a, b) = (left.len(), right.len());
    (a != b).then(|| {
        let next = left.get(b).or_else(|| right.get(a)).map(crate::wire::event).unwrap_or_default();
        let next: String = next.chars().take(600).collect();
        format!("{a} events against {b}; the first without a counterpart:\n  {next}")
    })
}
