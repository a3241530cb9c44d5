//! Aligns the events of a carried source, of the file as written and of the current file: it plans the edits of the file for
//! the source, and states the expected result before it is read back.

use super::mend::{Records, merged};
use crate::edit::{Fate, Plan};
use crate::loss::twins;
use crate::model::Event;

/// The events of the source, of the file as written and of the current file.
pub(super) struct Alignment<'e> {
    then: &'e [Event<'static>],
    before: &'e [Event<'static>],
    now: &'e [Event<'static>],
    records: &'e Records,
    /// For each event of the file as it was: the event of the source that it was made of.
    origin: Vec<Option<usize>>,
    /// For each event of the file as it was: its twin in the file as it is.
    is: Vec<Option<usize>>,
    /// For each event of the file as it is: its twin in the file as it was.
    was: Vec<Option<usize>>,
}

impl<'e> Alignment<'e> {
    /// Aligns the three.
    pub fn new(
        then: &'e [Event<'static>],
        before: &'e [Event<'static>],
        now: &'e [Event<'static>],
        records: &'e Records,
    ) -> Alignment<'e> {
        let is = twins(before, now);
        let (origin, was) = (inverted(&twins(then, before), before.len()), inverted(&is, now.len()));
        Alignment { then, before, now, records, origin, is, was }
    }

    /// The event of the source that this event of the file was made of.
    fn origin_of(&self, now: usize) -> Option<usize> {
        let was = self.was.get(now).copied().flatten()?;
        self.origin.get(was).copied().flatten()
    }

    /// Whether this event of the file was put in.
    fn is_new(&self, now: usize, event: &Event<'_>) -> bool {
        self.was.get(now) == Some(&None) && !self.records.is_sealed(event)
    }

    /// The edits of the source: those that turned the file as written into the current file.
    pub fn plan(&self) -> Plan {
        let mut plan = Plan::of(self.then);
        for (index, was) in self.before.iter().enumerate() {
            let Some(number) = self.origin.get(index).copied().flatten() else { continue };
            let Some(event) = self.then.get(number) else { continue };
            match self.is.get(index).copied().flatten().and_then(|twin| self.now.get(twin)) {
                Some(is) if was.body != is.body && !self.records.is_sealed(is) => {
                    plan.say(number, event, merged(&event.body, &was.body, &is.body));
                }
                Some(_) => {}
                None => {
                    let neighbour = |twin: &Option<usize>| twin.and_then(|twin| self.now.get(twin));
                    let before = self.is.get(..index).unwrap_or_default().iter().rev().find_map(neighbour);
                    let after = self.is.get(index + 1..).unwrap_or_default().iter().find_map(neighbour);
                    if !self.records.are_whole_between(before, after, event) {
                        plan.remove(number);
                    }
                }
            }
        }
        let mut last = None;
        for (index, event) in self.now.iter().enumerate() {
            last = self.origin_of(index).or(last);
            if !self.is_new(index, event) {
                continue;
            }
            match last {
                // The source may end with records that have no place in the file: what goes on comes after them.
                _ if self.records.is_after_all_runs(event) => plan.put_before(self.then.len(), event.clone()),
                Some(last) => plan.put_after(last, event.clone()),
                // An event added before all others goes to the beginning of the source too.
                None => plan.put_before(0, event.clone()),
            }
        }
        plan
    }

    /// The events that the source should have after the plan: its own events with the changes made in the file, and the added
    /// events. Any difference from the events that are read back is a loss.
    pub fn expected(&self, plan: &Plan) -> Vec<Event<'static>> {
        let mut is_in_file = vec![false; self.then.len()];
        for number in (0..self.now.len()).filter_map(|index| self.origin_of(index)) {
            if let Some(is_in_file) = is_in_file.get_mut(number) {
                *is_in_file = true;
            }
        }
        // Events that the file says nothing of stay where they are.
        let silent = |from: usize, to: usize| {
            let events = self.then.iter().zip(&is_in_file).enumerate().take(to).skip(from);
            let stay = events.filter(|(number, (event, is_in_file))| {
                !**is_in_file && !event.restates && plan.fate(*number) != Fate::Goes
            });
            stay.map(|(_, (event, _))| Event { at: None, carried: None, ..event.clone() }).collect::<Vec<_>>()
        };
        let (mut expected, mut next) = (Vec::new(), 0);
        for (index, is) in self.now.iter().enumerate() {
            let was = self.was.get(index).copied().flatten().and_then(|was| self.before.get(was));
            let origin = self.origin_of(index);
            match (origin.and_then(|number| self.then.get(number)), was) {
                (Some(then), Some(was)) => {
                    let number = origin.unwrap_or_default();
                    expected.extend(silent(next, number));
                    next = next.max(number + 1);
                    let event = if self.records.is_sealed(is) { then.clone() } else { changed(then, was, is) };
                    expected.extend(Some(Event { at: is.at, carried: None, ..event }).filter(|event| !event.restates));
                }
                _ if self.records.is_sealed(is) => {}
                _ => {
                    if self.records.is_after_all_runs(is) {
                        expected.extend(silent(next, self.then.len()));
                        next = self.then.len();
                    }
                    expected.push(is.clone());
                }
            }
        }
        expected.extend(silent(next, self.then.len()));
        expected
    }
}

/// The inverse mapping: for each index of the other side, the index that maps to it.
fn inverted(twins: &[Option<usize>], length: usize) -> Vec<Option<usize>> {
    let mut found = vec![None; length];
    for (index, twin) in twins.iter().enumerate() {
        if let Some(slot) = twin.and_then(|twin| found.get_mut(twin)) {
            *slot = Some(index);
        }
    }
    found
}

/// The event of the source with everything that was changed in the file.
fn changed(then: &Event<'static>, was: &Event<'static>, is: &Event<'static>) -> Event<'static> {
    fn pick<T: Clone + PartialEq>(then: &T, was: &T, is: &T) -> T {
        if was == is { then.clone() } else { is.clone() }
    }
    Event {
        at: is.at,
        part: then.part,
        session: pick(&then.session, &was.session, &is.session),
        thread: pick(&then.thread, &was.thread, &is.thread),
        id: pick(&then.id, &was.id, &is.id),
        parent: pick(&then.parent, &was.parent, &is.parent),
        group: pick(&then.group, &was.group, &is.group),
        restates: then.restates && was.body == is.body,
        from: pick(&then.from, &was.from, &is.from),
        to: pick(&then.to, &was.to, &is.to),
        time: pick(&then.time, &was.time, &is.time),
        model: pick(&then.model, &was.model, &is.model),
        cwd: pick(&then.cwd, &was.cwd, &is.cwd),
        branch: pick(&then.branch, &was.branch, &is.branch),
        version: pick(&then.version, &was.version, &is.version),
        stop_reason: pick(&then.stop_reason, &was.stop_reason, &is.stop_reason),
        request_id: pick(&then.request_id, &was.request_id, &is.request_id),
        forked_from: pick(&then.forked_from, &was.forked_from, &is.forked_from),
        body: pick(&then.body, &was.body, &is.body),
        usage: pick(&then.usage, &was.usage, &is.usage),
        extra: pick(&then.extra, &was.extra, &is.extra),
        carried: None,
    }
}
