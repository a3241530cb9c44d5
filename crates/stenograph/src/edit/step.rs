//! A source and a plan, event by event: what becomes of each record when the plan is carried out. Events come one after the other, and
//! only those of a record that changes are held. Where the result goes is not known here.

use std::ops::Range;

use super::change::{Change, Lookup, own_session};
use super::sketch::Sketches;
use super::{Fate, Plan};
use crate::model::{Event, FormatInfo, Part};

/// Carries a plan through the events of a source.
pub(super) struct Steps<'a> {
    sketches: &'a Sketches,
    /// What was planned.
    plan: &'a Plan,
    /// The plan with everything that follows from it.
    whole: &'a Plan,
    lookup: &'a Lookup,
    /// The number of the next event.
    number: usize,
    /// The events that change together: those of a record, and of the records that hold its other parts.
    bundle: Range<usize>,
    is_touched: bool,
    held: Vec<Event<'static>>,
    /// How many events changed that nobody planned to change.
    followed: u64,
}

/// The next step.
pub(super) enum Step<'a, 'e> {
    /// An event that stays as it is.
    Stays {
        /// Its number.
        number: usize,
        /// The event.
        event: &'a Event<'e>,
    },
    /// Events that change together, or between which something is put in.
    Changes(Changes<'a>),
    /// What is put in at the end.
    Ends(Vec<&'a Event<'static>>),
}

/// Events that change together.
pub(super) struct Changes<'a> {
    /// Their numbers.
    pub(super) numbers: Range<usize>,
    plan: &'a Plan,
    pub(super) events: &'a [Event<'static>],
    /// What becomes of each.
    new: Vec<Outcome>,
}

/// What becomes of an event.
#[derive(Debug, PartialEq)]
enum Outcome {
    Stays,
    Becomes(Box<Event<'static>>),
    Goes,
}

/// What is left of a record.
pub(super) struct Left<'c> {
    /// What stands before it.
    pub(super) before: Vec<&'c Event<'static>>,
    /// What is left of it.
    pub(super) kept: Vec<&'c Event<'static>>,
    /// Whether it is another than it was.
    pub(super) is_touched: bool,
}

impl Step<'_, '_> {
    /// Gives each event that is there when the plan is carried out.
    pub(super) fn each_left(&self, visit: &mut dyn FnMut(&Event<'_>)) {
        match self {
            Step::Stays { event, .. } => visit(event),
            Step::Changes(changes) => {
                for number in changes.numbers.clone() {
                    changes.plan.put_into(number).for_each(&mut *visit);
                    if let Some(event) = changes.left(number) {
                        visit(event);
                    }
                }
            }
            Step::Ends(put_in) => put_in.iter().for_each(|event| visit(event)),
        }
    }
}

impl Changes<'_> {
    /// What is left of the event of that number.
    fn left(&self, number: usize) -> Option<&Event<'static>> {
        let at = number - self.numbers.start;
        match self.new.get(at)? {
            Outcome::Stays => self.events.get(at),
            Outcome::Becomes(event) => Some(event),
            Outcome::Goes => None,
        }
    }

    /// What is left of a record among them.
    pub(super) fn record(&self, range: &Range<usize>) -> Left<'_> {
        let kept = range.clone().filter_map(|number| self.left(number)).collect();
        let before = range.clone().flat_map(|number| self.plan.put_into(number)).collect();
        let new = self.new.get(range.start - self.numbers.start..range.end - self.numbers.start);
        let is_touched = new.unwrap_or_default().iter().any(|new| *new != Outcome::Stays);
        Left { before, kept, is_touched }
    }
}

impl<'a> Steps<'a> {
    pub(super) fn new(sketches: &'a Sketches, plan: &'a Plan, whole: &'a Plan, lookup: &'a Lookup) -> Steps<'a> {
        let (held, bundle) = (Vec::new(), 0..0);
        Steps { sketches, plan, whole, lookup, number: 0, bundle, is_touched: false, held, followed: 0 }
    }

    /// Takes the next event of the source.
    pub(super) fn event(&mut self, event: &Event<'_>, give: &mut dyn FnMut(&Step<'_, '_>)) {
        let number = self.number;
        self.number += 1;
        if number >= self.bundle.end {
            self.bundle = number..self.sketches.bundle_end(number);
            self.is_touched = self.whole.touches(self.sketches, &self.bundle) || self.whole.puts_into(&self.bundle);
        }
        if !self.is_touched {
            return give(&Step::Stays { number, event });
        }
        self.held.push(event.clone().into_owned());
        if self.number >= self.bundle.end {
            self.change(give);
        }
    }

    /// Takes notice that these events, which all go, do not come.
    pub(super) fn pass_over(&mut self, numbers: &Range<usize>) {
        let followed = numbers.clone().filter(|number| self.plan.fate(*number) != Fate::Goes);
        self.followed += followed.count() as u64;
        self.number = numbers.end;
        self.bundle = numbers.end..numbers.end;
    }

    /// Takes notice that the source ends.
    pub(super) fn end(&mut self, give: &mut dyn FnMut(&Step<'_, '_>)) {
        if !self.held.is_empty() {
            self.change(give);
        }
        let put_in: Vec<&Event<'static>> = self.whole.put_into(self.sketches.len()).collect();
        if !put_in.is_empty() {
            give(&Step::Ends(put_in));
        }
    }

    /// The first byte of what is held.
    pub(super) fn held_from(&self) -> Option<u64> {
        self.held.iter().filter_map(|event| event.at).map(|at| at.offset).min()
    }

    /// How many events changed that nobody planned to change.
    pub(super) fn followed(&self) -> u64 {
        self.followed
    }

    fn change(&mut self, give: &mut dyn FnMut(&Step<'_, '_>)) {
        let held = std::mem::take(&mut self.held);
        let numbers = self.bundle.start..self.bundle.start + held.len();
        let mut new: Vec<Outcome> =
            numbers.clone().zip(&held).map(|(number, event)| self.outcome(number, event)).collect();
        let starts = self.bundle.start;
        let mut start = starts;
        while start < numbers.end {
            let end = self.sketches.record_end(start).unwrap_or(start + 1).min(numbers.end);
            drop_twins(&held, &mut new, &(start - starts..end - starts));
            start = end;
        }
        let mut start = 0;
        for parts in held.chunk_by(|last, next| next.part.follows(last.part)) {
            let range = start..start + parts.len();
            start = range.end;
            renumber(parts, new.get_mut(range).unwrap_or_default());
        }
        for ((number, event), new) in numbers.clone().zip(&held).zip(&new) {
            self.followed += u64::from(self.is_followed(number, event, new));
        }
        give(&Step::Changes(Changes { numbers, plan: self.whole, events: &held, new }));
        self.held = held;
        self.held.clear();
    }

    /// What becomes of an event, whatever becomes of its record.
    fn outcome(&self, number: usize, event: &Event<'_>) -> Outcome {
        match self.whole.fate(number) {
            Fate::Goes => Outcome::Goes,
            Fate::Stays | Fate::Becomes => match made(self.whole, number, event, self.lookup) {
                Some(event) => Outcome::Becomes(Box::new(event)),
                None => Outcome::Stays,
            },
        }
    }

    /// Whether something else became of an event than was planned.
    fn is_followed(&self, number: usize, event: &Event<'_>, new: &Outcome) -> bool {
        match (self.plan.fate(number), new) {
            (Fate::Goes, Outcome::Goes) => false,
            (Fate::Stays | Fate::Becomes, Outcome::Becomes(new)) => {
                made(self.plan, number, event, self.lookup).is_none_or(|planned| planned != **new)
            }
            (Fate::Stays, Outcome::Stays) => false,
            _ => true,
        }
    }
}

/// What a plan makes of an event that does not go; `None` where it leaves it as it is.
fn made(plan: &Plan, number: usize, event: &Event<'_>, lookup: &Lookup) -> Option<Event<'static>> {
    let unchanged = Change::default();
    let change = match plan.fate(number) {
        Fate::Becomes => Some(plan.changes.get(&number).unwrap_or(&unchanged)),
        Fate::Stays | Fate::Goes => None,
    };
    let session = plan.own_session.as_ref().zip(event.session.as_deref());
    let session = session.map(|(stretch, session)| own_session(session, stretch));
    if change.is_none() && session.is_none() {
        return None;
    }
    let mut new = change.unwrap_or(&unchanged).made(event, lookup);
    if let Some(session) = session {
        new.session = Some(session.into());
    }
    Some(new)
}

/// Fields of an edited record that hold the same in another shape, and the source it carries, go: both would keep the old words.
fn drop_twins(events: &[Event<'static>], new: &mut [Outcome], record: &Range<usize>) {
    let edited = record.clone().any(|at| match (new.get(at), events.get(at)) {
        (Some(Outcome::Becomes(new)), Some(event)) => new.body != event.body,
        (Some(Outcome::Goes), Some(_)) => true,
        _ => false,
    });
    let first = record.clone().find(|at| new.get(*at).is_some_and(|new| *new != Outcome::Goes));
    let Some((at, event)) = first.filter(|_| edited).and_then(|at| Some((at, events.get(at)?))) else { return };
    let Some(slot) = new.get_mut(at) else { return };
    let mut event = match std::mem::replace(slot, Outcome::Stays) {
        Outcome::Becomes(new) => new,
        Outcome::Stays | Outcome::Goes => Box::new(event.clone()),
    };
    let formats: Vec<&FormatInfo> = event.extra.known().map(|(info, _)| info).collect();
    for info in formats {
        info.restated.iter().for_each(|field| event.extra.drop_field(info.name, field));
    }
    event.carried = None;
    *slot = Outcome::Becomes(event);
}

/// Where a part of a record goes, the others get new numbers. What describes the record as a whole is on its first part: when that
/// goes, the next one takes it over.
fn renumber(parts: &[Event<'static>], new: &mut [Outcome]) {
    let kept = new.iter().filter(|new| **new != Outcome::Goes).count();
    let Some(first) = parts.first().filter(|_| kept > 0 && kept < parts.len()) else { return };
    let of = u32::try_from(kept).unwrap_or(u32::MAX);
    let left = parts.iter().zip(new).enumerate().filter(|(_, (_, new))| **new != Outcome::Goes);
    for (index, (at, (event, slot))) in (0..).zip(left) {
        let mut heir = match std::mem::replace(slot, Outcome::Stays) {
            Outcome::Becomes(new) => new,
            Outcome::Stays | Outcome::Goes => Box::new(event.clone()),
        };
        if index == 0 && at != 0 {
            heir.usage = first.usage;
            heir.extra = first.extra.clone().inherited(&heir.extra);
        }
        heir.part = Part { index, of };
        *slot = Outcome::Becomes(heir);
    }
}
