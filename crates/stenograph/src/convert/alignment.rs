//! Aligns the events of a carried source, of the file as written and of the current file: it plans the edits of the file for
//! the source, and states the expected result before it is read back.

use super::merge_edits::{Records, merged};
use crate::edit::{Fate, Plan};
use crate::loss::twins;
use crate::model::Event;

/// The events of the source, of the file as written and of the current file.
pub(super) struct Alignment<'e> {
    source: &'e [Event<'static>],
    written: &'e [Event<'static>],
    current: &'e [Event<'static>],
    records: &'e Records,
    /// For each event of the file as written: the event of the source that it was made from.
    source_of: Vec<Option<usize>>,
    /// For each event of the file as written: its counterpart in the current file.
    current_of: Vec<Option<usize>>,
    /// For each event of the current file: its counterpart in the file as written.
    written_of: Vec<Option<usize>>,
}

impl<'e> Alignment<'e> {
    /// Aligns the three.
    pub fn new(
        source: &'e [Event<'static>],
        written: &'e [Event<'static>],
        current: &'e [Event<'static>],
        records: &'e Records,
    ) -> Alignment<'e> {
        let current_of = twins(written, current);
        let source_of = inverted(&twins(source, written), written.len());
        let written_of = inverted(&current_of, current.len());
        Alignment { source, written, current, records, source_of, current_of, written_of }
    }

    /// The event of the source that this event of the current file was made from.
    fn origin_of(&self, current: usize) -> Option<usize> {
        let written = self.written_of.get(current).copied().flatten()?;
        self.source_of.get(written).copied().flatten()
    }

    /// Whether this event of the current file was added.
    fn is_new(&self, current: usize, event: &Event<'_>) -> bool {
        self.written_of.get(current) == Some(&None) && !self.records.is_sealed(event)
    }

    /// The edits of the source: those that turned the file as written into the current file.
    pub fn plan(&self) -> Plan {
        let mut plan = Plan::of(self.source);
        for (index, written) in self.written.iter().enumerate() {
            let Some(number) = self.source_of.get(index).copied().flatten() else { continue };
            let Some(event) = self.source.get(number) else { continue };
            match self.current_of.get(index).copied().flatten().and_then(|twin| self.current.get(twin)) {
                Some(current) if written.body != current.body && !self.records.is_sealed(current) => {
                    plan.replace_body(number, event, merged(&event.body, &written.body, &current.body));
                }
                Some(_) => {}
                None => {
                    let neighbour = |twin: &Option<usize>| twin.and_then(|twin| self.current.get(twin));
                    let before = self.current_of.get(..index).unwrap_or_default().iter().rev().find_map(neighbour);
                    let after = self.current_of.get(index + 1..).unwrap_or_default().iter().find_map(neighbour);
                    if !self.records.are_whole_between(before, after, event) {
                        plan.remove(number);
                    }
                }
            }
        }
        let mut last = None;
        for (index, event) in self.current.iter().enumerate() {
            last = self.origin_of(index).or(last);
            if !self.is_new(index, event) {
                continue;
            }
            match last {
                // The source may end with records that have no place in the file: a continuation comes after them.
                _ if self.records.is_after_all_runs(event) => plan.insert_before(self.source.len(), event.clone()),
                Some(last) => plan.insert_after(last, event.clone()),
                // An event added before all others goes to the beginning of the source too.
                None => plan.insert_before(0, event.clone()),
            }
        }
        plan
    }

    /// The events that the source should have after the plan: its own events with the changes made in the file, and the added
    /// events. Any difference from the events that are read back is a loss.
    pub fn expected(&self, plan: &Plan) -> Vec<Event<'static>> {
        let mut is_in_file = vec![false; self.source.len()];
        for number in (0..self.current.len()).filter_map(|index| self.origin_of(index)) {
            if let Some(is_in_file) = is_in_file.get_mut(number) {
                *is_in_file = true;
            }
        }
        // Events that the file does not have stay where they are.
        let unwritten = |from: usize, to: usize| {
            let events = self.source.iter().zip(&is_in_file).enumerate().take(to).skip(from);
            let stay = events.filter(|(number, (event, is_in_file))| {
                !**is_in_file && !event.restates && plan.fate(*number) != Fate::Removed
            });
            stay.map(|(_, (event, _))| Event { at: None, carried: None, ..event.clone() }).collect::<Vec<_>>()
        };
        let (mut expected, mut next) = (Vec::new(), 0);
        for (index, current) in self.current.iter().enumerate() {
            let written = self.written_of.get(index).copied().flatten().and_then(|at| self.written.get(at));
            let origin = self.origin_of(index);
            match (origin.and_then(|number| self.source.get(number)), written) {
                (Some(source), Some(written)) => {
                    let number = origin.unwrap_or_default();
                    expected.extend(unwritten(next, number));
                    next = next.max(number + 1);
                    let is_sealed = self.records.is_sealed(current);
                    let event = if is_sealed { source.clone() } else { changed(source, written, current) };
                    let event = Event { at: current.at, carried: None, ..event };
                    expected.extend(Some(event).filter(|event| !event.restates));
                }
                _ if self.records.is_sealed(current) => {}
                _ => {
                    if self.records.is_after_all_runs(current) {
                        expected.extend(unwritten(next, self.source.len()));
                        next = self.source.len();
                    }
                    expected.push(current.clone());
                }
            }
        }
        expected.extend(unwritten(next, self.source.len()));
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

/// The event of the source with all changes made in the file.
fn changed(source: &Event<'static>, written: &Event<'static>, current: &Event<'static>) -> Event<'static> {
    fn pick<T: Clone + PartialEq>(source: &T, written: &T, current: &T) -> T {
        if written == current { source.clone() } else { current.clone() }
    }
    Event {
        at: current.at,
        part: source.part,
        session: pick(&source.session, &written.session, &current.session),
        thread: pick(&source.thread, &written.thread, &current.thread),
        id: pick(&source.id, &written.id, &current.id),
        parent: pick(&source.parent, &written.parent, &current.parent),
        group: pick(&source.group, &written.group, &current.group),
        restates: source.restates && written.body == current.body,
        from: pick(&source.from, &written.from, &current.from),
        to: pick(&source.to, &written.to, &current.to),
        time: pick(&source.time, &written.time, &current.time),
        model: pick(&source.model, &written.model, &current.model),
        cwd: pick(&source.cwd, &written.cwd, &current.cwd),
        branch: pick(&source.branch, &written.branch, &current.branch),
        version: pick(&source.version, &written.version, &current.version),
        stop_reason: pick(&source.stop_reason, &written.stop_reason, &current.stop_reason),
        request_id: pick(&source.request_id, &written.request_id, &current.request_id),
        forked_from: pick(&source.forked_from, &written.forked_from, &current.forked_from),
        body: pick(&source.body, &written.body, &current.body),
        usage: pick(&source.usage, &written.usage, &current.usage),
        extra: pick(&source.extra, &written.extra, &current.extra),
        carried: None,
    }
}
