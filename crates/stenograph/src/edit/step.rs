//! Applies a plan to the events of a source, one after the other. It holds only the events of a record that changes. The caller
//! writes the result.

use std::ops::Range;

use super::change::{EventChange, Lookup, own_session};
use super::sketch::Sketches;
use super::{Fate, Plan};
use crate::model::{Event, FormatInfo, Part};

/// Applies a plan to the events of a source.
pub(super) struct Steps<'a> {
    sketches: &'a Sketches,
    /// The plan as it was made.
    plan: &'a Plan,
    /// The plan with all its consequences.
    complete: &'a Plan,
    lookup: &'a Lookup,
    /// The number of the next event.
    number: usize,
    /// The events that change together: those of a record, and of records that hold its other parts.
    bundle: Range<usize>,
    is_touched: bool,
    held: Vec<Event<'static>>,
    /// The number of events that changed as a consequence of others.
    also_changed: u64,
}

/// What happens to the next events.
pub(super) enum EditStep<'a, 'e> {
    /// An event stays as it is.
    Keep { number: usize, event: &'a Event<'e> },
    /// Events change together, or events are inserted between them.
    Change(ChangedEvents<'a>),
    /// These events are inserted at the end.
    Append(Vec<&'a Event<'static>>),
}

/// Events that change together.
pub(super) struct ChangedEvents<'a> {
    pub(super) numbers: Range<usize>,
    plan: &'a Plan,
    pub(super) events: &'a [Event<'static>],
    /// The outcome of each event.
    outcomes: Vec<Outcome>,
}

/// What happened to an event.
#[derive(Debug, PartialEq)]
enum Outcome {
    Kept,
    Changed(Box<Event<'static>>),
    Removed,
}

/// The result of a changed record.
pub(super) struct RecordResult<'c> {
    /// Events inserted before it.
    pub(super) inserted: Vec<&'c Event<'static>>,
    /// Its remaining events.
    pub(super) remaining: Vec<&'c Event<'static>>,
    /// Whether the record differs from the source.
    pub(super) is_changed: bool,
}

impl EditStep<'_, '_> {
    /// Calls `visit` with each event of the result.
    pub(super) fn each_result(&self, visit: &mut dyn FnMut(&Event<'_>)) {
        match self {
            EditStep::Keep { event, .. } => visit(event),
            EditStep::Change(changed) => {
                for number in changed.numbers.clone() {
                    changed.plan.inserted_before(number).for_each(&mut *visit);
                    if let Some(event) = changed.remaining(number) {
                        visit(event);
                    }
                }
            }
            EditStep::Append(inserted) => inserted.iter().for_each(|event| visit(event)),
        }
    }
}

impl ChangedEvents<'_> {
    /// The result of the event with this number; `None` if it is removed.
    fn remaining(&self, number: usize) -> Option<&Event<'static>> {
        let at = number - self.numbers.start;
        match self.outcomes.get(at)? {
            Outcome::Kept => self.events.get(at),
            Outcome::Changed(event) => Some(event),
            Outcome::Removed => None,
        }
    }

    /// The result of one record among them.
    pub(super) fn record(&self, range: &Range<usize>) -> RecordResult<'_> {
        let remaining = range.clone().filter_map(|number| self.remaining(number)).collect();
        let inserted = range.clone().flat_map(|number| self.plan.inserted_before(number)).collect();
        let outcomes = self.outcomes.get(range.start - self.numbers.start..range.end - self.numbers.start);
        let is_changed = outcomes.unwrap_or_default().iter().any(|outcome| *outcome != Outcome::Kept);
        RecordResult { inserted, remaining, is_changed }
    }
}

impl<'a> Steps<'a> {
    pub(super) fn new(sketches: &'a Sketches, plan: &'a Plan, complete: &'a Plan, lookup: &'a Lookup) -> Steps<'a> {
        let (held, bundle) = (Vec::new(), 0..0);
        Steps { sketches, plan, complete, lookup, number: 0, bundle, is_touched: false, held, also_changed: 0 }
    }

    /// Adds the next event of the source, and calls `emit` with each step that is complete.
    pub(super) fn event(&mut self, event: &Event<'_>, emit: &mut dyn FnMut(&EditStep<'_, '_>)) {
        let number = self.number;
        self.number += 1;
        if number >= self.bundle.end {
            self.bundle = number..self.sketches.bundle_end(number);
            self.is_touched =
                self.complete.touches(self.sketches, &self.bundle) || self.complete.inserts_into(&self.bundle);
        }
        if !self.is_touched {
            return emit(&EditStep::Keep { number, event });
        }
        self.held.push(event.clone().into_owned());
        if self.number >= self.bundle.end {
            self.change(emit);
        }
    }

    /// Skips these events, which are all removed and were not read.
    pub(super) fn skip(&mut self, numbers: &Range<usize>) {
        let unplanned = numbers.clone().filter(|number| self.plan.fate(*number) != Fate::Removed);
        self.also_changed += unplanned.count() as u64;
        self.number = numbers.end;
        self.bundle = numbers.end..numbers.end;
    }

    /// Ends the source.
    pub(super) fn end(&mut self, emit: &mut dyn FnMut(&EditStep<'_, '_>)) {
        if !self.held.is_empty() {
            self.change(emit);
        }
        let inserted: Vec<&Event<'static>> = self.complete.inserted_before(self.sketches.len()).collect();
        if !inserted.is_empty() {
            emit(&EditStep::Append(inserted));
        }
    }

    /// The offset of the first held event.
    pub(super) fn held_from(&self) -> Option<u64> {
        self.held.iter().filter_map(|event| event.at).map(|at| at.offset).min()
    }

    /// The number of events that changed as a consequence of others.
    pub(super) fn also_changed(&self) -> u64 {
        self.also_changed
    }

    fn change(&mut self, emit: &mut dyn FnMut(&EditStep<'_, '_>)) {
        let held = std::mem::take(&mut self.held);
        let numbers = self.bundle.start..self.bundle.start + held.len();
        let mut outcomes: Vec<Outcome> =
            numbers.clone().zip(&held).map(|(number, event)| self.outcome(number, event)).collect();
        let starts = self.bundle.start;
        let mut start = starts;
        while start < numbers.end {
            let end = self.sketches.record_end(start).unwrap_or(start + 1).min(numbers.end);
            drop_copies(&held, &mut outcomes, &(start - starts..end - starts));
            start = end;
        }
        let mut start = 0;
        for parts in held.chunk_by(|last, next| next.part.follows(last.part)) {
            let range = start..start + parts.len();
            start = range.end;
            renumber(parts, outcomes.get_mut(range).unwrap_or_default());
        }
        for ((number, event), outcome) in numbers.clone().zip(&held).zip(&outcomes) {
            self.also_changed += u64::from(self.is_unplanned(number, event, outcome));
        }
        emit(&EditStep::Change(ChangedEvents { numbers, plan: self.complete, events: &held, outcomes }));
        self.held = held;
        self.held.clear();
    }

    /// What happens to an event, apart from the other parts of its record.
    fn outcome(&self, number: usize, event: &Event<'_>) -> Outcome {
        match self.complete.fate(number) {
            Fate::Removed => Outcome::Removed,
            Fate::Kept | Fate::Changed => match changed(self.complete, number, event, self.lookup) {
                Some(event) => Outcome::Changed(Box::new(event)),
                None => Outcome::Kept,
            },
        }
    }

    /// Whether the outcome of an event differs from its plan.
    fn is_unplanned(&self, number: usize, event: &Event<'_>, outcome: &Outcome) -> bool {
        match (self.plan.fate(number), outcome) {
            (Fate::Removed, Outcome::Removed) => false,
            (Fate::Kept | Fate::Changed, Outcome::Changed(new)) => {
                changed(self.plan, number, event, self.lookup).is_none_or(|planned| planned != **new)
            }
            (Fate::Kept, Outcome::Kept) => false,
            _ => true,
        }
    }
}

/// An event that is not removed, as the plan changes it; `None` if it does not.
fn changed(plan: &Plan, number: usize, event: &Event<'_>, lookup: &Lookup) -> Option<Event<'static>> {
    let unchanged = EventChange::default();
    let change = match plan.fate(number) {
        Fate::Changed => Some(plan.changes.get(&number).unwrap_or(&unchanged)),
        Fate::Kept | Fate::Removed => None,
    };
    let session = plan.own_session.as_ref().zip(event.session.as_deref());
    let session = session.map(|(range, session)| own_session(session, range));
    if change.is_none() && session.is_none() {
        return None;
    }
    let mut new = change.unwrap_or(&unchanged).apply(event, lookup);
    if let Some(session) = session {
        new.session = Some(session.into());
    }
    Some(new)
}

/// Removes the copies of the old text from an edited record: fields that restate it, and the embedded source.
fn drop_copies(events: &[Event<'static>], outcomes: &mut [Outcome], record: &Range<usize>) {
    let edited = record.clone().any(|at| match (outcomes.get(at), events.get(at)) {
        (Some(Outcome::Changed(new)), Some(event)) => new.body != event.body,
        (Some(Outcome::Removed), Some(_)) => true,
        _ => false,
    });
    let first = record.clone().find(|at| outcomes.get(*at).is_some_and(|outcome| *outcome != Outcome::Removed));
    let Some((at, event)) = first.filter(|_| edited).and_then(|at| Some((at, events.get(at)?))) else { return };
    let Some(slot) = outcomes.get_mut(at) else { return };
    let mut event = match std::mem::replace(slot, Outcome::Kept) {
        Outcome::Changed(new) => new,
        Outcome::Kept | Outcome::Removed => Box::new(event.clone()),
    };
    let formats: Vec<&FormatInfo> = event.extra.known().map(|(info, _)| info).collect();
    for info in formats {
        info.restated.iter().for_each(|field| event.extra.drop_field(info.name, field));
    }
    event.carried = None;
    *slot = Outcome::Changed(event);
}

/// Renumbers the remaining parts of a record. If the first part is removed, the next one inherits the fields that describe the
/// whole record.
fn renumber(parts: &[Event<'static>], outcomes: &mut [Outcome]) {
    let kept = outcomes.iter().filter(|outcome| **outcome != Outcome::Removed).count();
    let Some(first) = parts.first().filter(|_| kept > 0 && kept < parts.len()) else { return };
    let of = u32::try_from(kept).unwrap_or(u32::MAX);
    let remaining = parts.iter().zip(outcomes).enumerate().filter(|(_, (_, outcome))| **outcome != Outcome::Removed);
    for (index, (at, (event, slot))) in (0..).zip(remaining) {
        let mut part = match std::mem::replace(slot, Outcome::Kept) {
            Outcome::Changed(new) => new,
            Outcome::Kept | Outcome::Removed => Box::new(event.clone()),
        };
        if index == 0 && at != 0 {
            part.usage = first.usage;
            part.extra = first.extra.clone().inherited(&part.extra);
        }
        part.part = Part { index, of };
        *slot = Outcome::Changed(part);
    }
}
