//! Compares two streams of events. Memory is bounded: it compares them in windows, and closes a window where both sides agree
//! for a while.

use std::collections::HashMap;

use imara_diff::{Algorithm, Diff, Token};

use super::digest::{self, Digest, Paths};
use super::matching::{CurrentFields, Matching};
use super::report::{LossKind, LossReport};
use crate::model::Event;

/// Compares the events of the source with those read back from the output.
pub struct LossComparison {
    source: Vec<Digest>,
    target: Vec<Digest>,
    keeps: Box<dyn Fn(&str) -> bool>,
    report: LossReport,
    current: CurrentFields,
    paths: Paths,
    /// The number of buffered events at which the next window is compared.
    next: usize,
}

impl std::fmt::Debug for LossComparison {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LossComparison").field("report", &self.report).finish_non_exhaustive()
    }
}

/// The approximate number of events per side in a window.
const WINDOW: usize = 16_384;

/// How many consecutive events must agree to close a window after them.
const AGREEMENT: usize = 16;

impl LossComparison {
    /// A comparison; `keeps` returns whether the target can hold the extra fields of a format.
    pub fn new(keeps: impl Fn(&str) -> bool + 'static) -> LossComparison {
        LossComparison {
            source: Vec::new(),
            target: Vec::new(),
            keeps: Box::new(keeps),
            report: LossReport::default(),
            current: CurrentFields::default(),
            paths: Paths::default(),
            next: 2 * WINDOW,
        }
    }

    /// Adds an event that was read and passed to the writer.
    pub fn source(&mut self, event: &Event<'_>) {
        *self.report.read.entry(event.kind()).or_default() += 1;
        // The writer receives the parts of a record together: both sides are aligned only between records.
        if event.part.index == 0 {
            self.advance();
        }
        self.source.push(Digest::new(event, &self.keeps, &mut self.paths));
    }

    /// Adds an event that was not passed to the writer because another record has the same content.
    pub(crate) fn repeated(&mut self, event: &Event<'_>, why: &'static str) {
        *self.report.read.entry(event.kind()).or_default() += 1;
        self.report.add(event.kind(), "", LossKind::Dropped { why }, event.at);
        // The other agent's own file has its call again, and the target does not count it.
        if event.usage.is_none() && digest::usage(event) != 0 {
            self.report.add(event.kind(), "usage", LossKind::Dropped { why }, event.at);
        }
    }

    /// Adds an event that was not passed to the writer although no other record has its content: the report lists its line.
    pub fn left_out(&mut self, event: &Event<'_>, why: &'static str) {
        *self.report.read.entry(event.kind()).or_default() += 1;
        self.report.add(event.kind(), "", LossKind::Dropped { why }, event.at).add_line(event.at);
        if digest::usage(event) != 0 {
            self.report.add(event.kind(), "usage", LossKind::Dropped { why }, event.at);
        }
    }

    /// Adds an event that was read back.
    pub fn target(&mut self, event: &Event<'_>) {
        self.target.push(Digest::new(event, &self.keeps, &mut self.paths));
    }

    fn advance(&mut self) {
        let buffered = self.source.len() + self.target.len();
        if buffered >= self.next {
            self.close_window(Close::Agreed);
            // Compare the remaining events again only when enough new ones have arrived to decide them.
            self.next = self.source.len() + self.target.len() + 2 * WINDOW;
        }
    }

    /// The report, after both sides have ended.
    pub fn finish(mut self) -> LossReport {
        self.close_window(Close::All);
        self.report
    }

    /// Compares the buffered events and reports those that are decided.
    fn close_window(&mut self, close: Close) {
        let matches = matches(&self.source, &self.target);
        let until = match close {
            Close::All => (self.source.len(), self.target.len()),
            Close::Agreed => self.decided(&matches),
        };
        let source: Vec<Digest> = self.source.drain(..until.0).collect();
        let target: Vec<Digest> = self.target.drain(..until.1).collect();
        let matches: Vec<(usize, usize)> = matches.into_iter().filter(|(a, b)| *a < until.0 && *b < until.1).collect();
        Matching::new(&source, &target, matches).report_losses(&mut self.current, &self.paths, &mut self.report);
    }

    /// How far both sides are decided: up to the last position where they agree for a while, else up to the last match. If too
    /// many events remain, everything is decided except the last few, which the writer may still buffer.
    fn decided(&self, matches: &[(usize, usize)]) -> (usize, usize) {
        let (mut run, mut before) = (0, None);
        let mut until = matches.last().map_or((0, 0), |(a, b)| (a + 1, b + 1));
        for &(a, b) in matches {
            run = if before == Some((a.wrapping_sub(1), b.wrapping_sub(1))) { run + 1 } else { 1 };
            before = Some((a, b));
            if run >= AGREEMENT {
                until = (a + 1, b + 1);
            }
        }
        let (source, target) = (self.source.len(), self.target.len());
        // A writer may buffer everything until the end: while nothing new is read back, nothing is decided.
        let waiting = target == until.1 && source - until.0 < WAITING_MAX;
        if !waiting && (source - until.0 > WINDOW || target - until.1 > WINDOW) {
            until =
                (until.0.max(source.saturating_sub(BUFFERED_MAX)), until.1.max(target.saturating_sub(BUFFERED_MAX)));
        }
        until
    }
}

/// Which of the buffered events to report.
#[derive(Clone, Copy)]
enum Close {
    /// Those that are decided.
    Agreed,
    /// All: both sides have ended.
    All,
}

/// How many events a writer may buffer while it writes others.
const BUFFERED_MAX: usize = 256;

/// How many events to buffer while nothing is read back.
const WAITING_MAX: usize = 8 * WINDOW;

/// For each source event its counterpart in the target: the one with the same content, else the one that it became.
pub fn twins(source: &[Event<'_>], target: &[Event<'_>]) -> Vec<Option<usize>> {
    let mut paths = Paths::default();
    let mut digests = |side: &[Event<'_>]| -> Vec<Digest> {
        side.iter().map(|event| Digest::new(event, &|_| false, &mut paths)).collect()
    };
    let (source, target) = (digests(source), digests(target));
    let matches = matches(&source, &target);
    Matching::new(&source, &target, matches).into_twins()
}

/// Pairs of events with the same content, in order.
fn matches(source: &[Digest], target: &[Digest]) -> Vec<(usize, usize)> {
    let keys = |side: &[Digest]| side.iter().map(|digest| digest.key).collect::<Vec<_>>();
    equal_pairs(&keys(source), &keys(target))
}

/// The pairs of positions at which two sequences of fingerprints agree, in order.
pub(crate) fn equal_pairs(source: &[u64], target: &[u64]) -> Vec<(usize, usize)> {
    let mut ids: HashMap<u64, u32> = HashMap::new();
    let mut tokens = |side: &[u64]| -> Vec<Token> {
        side.iter()
            .map(|key| {
                let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
                Token(*ids.entry(*key).or_insert(next))
            })
            .collect()
    };
    let (before, after) = (tokens(source), tokens(target));
    let mut diff = Diff::default();
    diff.compute_with(Algorithm::Histogram, &before, &after, u32::try_from(ids.len()).unwrap_or(u32::MAX));
    let mut pairs = Vec::new();
    let (mut a, mut b) = (0_u32, 0_u32);
    let mut agree = |a: &mut u32, b: &mut u32, to: u32| {
        while *a < to {
            pairs.push((*a as usize, *b as usize));
            *a += 1;
            *b += 1;
        }
    };
    for hunk in diff.hunks() {
        agree(&mut a, &mut b, hunk.before.start);
        (a, b) = (hunk.before.end, hunk.after.end);
    }
    agree(&mut a, &mut b, u32::try_from(source.len()).unwrap_or(u32::MAX));
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, Content, Part, Role};

    #[test]
    fn a_record_with_more_parts_than_a_window_is_compared_whole() {
        let of = 3 * WINDOW;
        let part = |index: usize| {
            let body = Body::Message { role: Role::User, content: Content::text("again") };
            let number = |number: usize| number.try_into().unwrap();
            Event { part: Part { index: number(index), of: number(of) }, ..Event::new(body) }
        };
        let mut comparison = LossComparison::new(|_| true);
        (0..of).for_each(|index| comparison.source(&part(index)));
        (0..of).for_each(|index| comparison.target(&part(index)));
        let report = comparison.finish();
        assert_eq!(report.kept, report.read);
        assert!(!report.is_lossy());
    }
}
