//! The consequences of a plan: when an event changes, records that restate it change too, and so do counts in headers and the
//! parents of records that followed a removed one. `step.rs` handles the other parts of a changed record.

use std::collections::{HashMap, HashSet};

use super::change::{NewBody, NewParent};
use super::sketch::{Restatement, Sketch, Sketches};
use super::units::typed_messages;
use super::{Fate, Plan};
use crate::model::{Content, Kind, Rewind};

/// The plan with all its consequences.
pub(super) fn add(events: &Sketches, plan: &Plan) -> Plan {
    let mut complete = plan.clone();
    restatements(events, plan, &mut complete);
    rewinds(events, &mut complete);
    parents(events, &mut complete);
    counts(events, &mut complete);
    complete
}

/// Changes the records that restate a changed event.
fn restatements(events: &Sketches, plan: &Plan, complete: &mut Plan) {
    let is_edited = |number: usize| plan.is_edited(events, number);
    let edited = events.iter().enumerate().filter(|(number, event)| event.kind == Kind::Message && is_edited(*number));
    let messages: HashMap<u64, usize> = edited.map(|(number, event)| (event.text, number)).collect();
    for (number, event) in events.iter().enumerate() {
        if plan.fate(number) != Fate::Kept {
            continue;
        }
        match events.restatement(number) {
            Some(Restatement::SameText(base)) if plan.fate(base) == Fate::Removed => complete.remove(number),
            Some(Restatement::SameText(base)) if plan.fate(base) == Fate::Changed => {
                restate(plan, number, base, complete);
            }
            // Nothing can change a description of a call in other words; it is removed.
            Some(Restatement::NamedCalls(calls)) if calls.iter().any(|call| is_edited(*call)) => {
                complete.remove(number);
            }
            // A stop record or a queued prompt may repeat a message without stating that. It changes with the message, but
            // stays if the message is removed: it is a record of its own.
            _ if matches!(event.kind, Kind::Stop | Kind::Fact) && event.has_text => {
                let base = messages.get(&event.text).copied();
                if let Some(base) = base.filter(|base| plan.fate(*base) == Fate::Changed) {
                    restate(plan, number, base, complete);
                }
            }
            _ => {}
        }
    }
}

/// Gives a restatement the new content of the event that it restates.
fn restate(plan: &Plan, number: usize, base: usize, complete: &mut Plan) {
    match plan.changes.get(&base).and_then(|change| change.body.as_ref()) {
        // A plain text does not depend on the old content of the event.
        Some(NewBody::Content(content @ Content::Text(_))) => complete.replace_content(number, content.clone()),
        Some(NewBody::Content(_) | NewBody::Given(_) | NewBody::Shortened(_) | NewBody::SameAs(_)) => {
            complete.set_body(number, NewBody::SameAs(base));
        }
        // Only its place changes.
        None => {}
    }
}

/// Corrects facts that take back turns: a removed turn must not be taken back again.
fn rewinds(events: &Sketches, complete: &mut Plan) {
    if events.rewinds.is_empty() {
        return;
    }
    let mut turns = typed_messages(events).into_iter().peekable();
    let mut active: Vec<usize> = Vec::new();
    for (number, count) in &events.rewinds {
        while let Some(turn) = turns.next_if(|turn| turn < number) {
            active.push(turn);
        }
        let Rewind::Turns(count) = count else { continue };
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        let taken = active.split_off(active.len().saturating_sub(count));
        let removed = taken.iter().filter(|turn| complete.fate(**turn) == Fate::Removed).count();
        if removed == 0 || complete.fate(*number) != Fate::Kept {
            continue;
        }
        match taken.len() - removed {
            0 => complete.remove(*number),
            left => complete.replace_content(*number, Content::text(left.to_string())),
        }
    }
}

/// Makes records whose parent is removed follow the nearest ancestor that stays. If another record of the spine already follows that
/// ancestor, they follow that record: two children of one record would look like two branches.
fn parents(events: &Sketches, complete: &mut Plan) {
    // The removed ids, each with the first event that has it.
    let mut removed: HashMap<u64, usize> = HashMap::new();
    let mut kept: HashSet<u64> = HashSet::new();
    for (number, event) in events.iter().enumerate().filter(|(_, event)| event.id != 0) {
        if complete.fate(number) == Fate::Removed {
            removed.entry(event.id).or_insert(number);
        }
    }
    for (number, event) in events.iter().enumerate() {
        if complete.fate(number) != Fate::Removed && removed.contains_key(&event.id) {
            kept.insert(event.id);
        }
    }
    removed.retain(|id, _| !kept.contains(id));
    if removed.is_empty() {
        return;
    }
    // For each ancestor the last record of the spine that follows it now, and the new parent of each record.
    let mut successors: HashMap<u64, usize> = HashMap::new();
    let mut new_parents: HashMap<u64, NewParent> = HashMap::new();
    let mut ancestors = KeptAncestors { removed: &removed, known: HashMap::new() };
    let parent_of = |number: usize| events.get(number).map_or(0, |event: &Sketch| event.parent);
    for (number, event) in events.iter().enumerate() {
        if complete.fate(number) == Fate::Removed {
            continue;
        }
        let parent = complete.parent_key(events, number).unwrap_or(event.parent);
        if !removed.contains_key(&parent) {
            continue;
        }
        let ancestor = ancestors.of(parent, parent_of);
        let is_in_spine = events.is_in_spine(number) && event.thread == 0;
        let parent = match ancestor {
            // All parts of a record have the same parent.
            _ if event.id != 0 && new_parents.contains_key(&event.id) => {
                new_parents.get(&event.id).cloned().unwrap_or(NewParent::Nothing)
            }
            Some((id, child)) if event.id != 0 && is_in_spine => {
                let parent = successors.insert(id, number).map_or(NewParent::ParentOf(child), NewParent::Event);
                new_parents.insert(event.id, parent.clone());
                parent
            }
            Some((_, child)) => NewParent::ParentOf(child),
            None => NewParent::Nothing,
        };
        complete.set_parent(number, parent);
    }
}

/// Finds ancestors that stay. Each removed record is visited once, however many records follow it.
struct KeptAncestors<'a> {
    /// The removed ids, each with the first event that has it.
    removed: &'a HashMap<u64, usize>,
    /// The answers so far.
    known: HashMap<u64, Option<(u64, usize)>>,
}

impl KeptAncestors<'_> {
    /// The id of the nearest ancestor that stays, and its removed child. `None` if there is none, or if the parents form a circle.
    fn of(&mut self, parent: u64, parent_of: impl Fn(usize) -> u64) -> Option<(u64, usize)> {
        let (mut path, mut id) = (Vec::new(), parent);
        let mut child = None;
        let found = loop {
            if let Some(known) = self.known.get(&id) {
                break *known;
            }
            let Some(number) = self.removed.get(&id) else {
                break child.filter(|_| id != 0).map(|child| (id, child));
            };
            // A circle returns to an id without an answer.
            self.known.insert(id, None);
            path.push(id);
            (child, id) = (Some(*number), parent_of(*number));
        };
        self.known.extend(path.into_iter().map(|id| (id, found)));
        found
    }
}

/// Corrects counts in headers by the number of removed and inserted events. A count that was wrong before stays wrong by as much.
fn counts(events: &Sketches, complete: &mut Plan) {
    for count in &events.counts {
        let is_removed =
            |(number, event): &(usize, &Sketch)| complete.fate(*number) == Fate::Removed && event.kind == count.kind;
        let removed = events.iter().enumerate().filter(is_removed).count();
        let inserted = complete.insertions().iter().filter(|(_, event)| event.kind() == count.kind).count();
        let new = count.stated.saturating_add(inserted as u64).saturating_sub(removed as u64);
        if new == count.stated || complete.fate(count.event) == Fate::Removed {
            continue;
        }
        let field = (count.origin, count.field, crate::text::quote(&new.to_string()));
        if let Some(change) = complete.change(count.event) {
            change.fields.push(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Walks from one removed record to the next, for each question again.
    fn walked(removed: &HashMap<u64, usize>, parents: &[u64], parent: u64) -> Option<(u64, usize)> {
        let mut last = *removed.get(&parent)?;
        for _ in 0..=removed.len() {
            let next = parents.get(last).copied().unwrap_or(0);
            match removed.get(&next) {
                Some(further) => last = *further,
                None => return (next != 0).then_some((next, last)),
            }
        }
        None
    }

    proptest! {
        /// Records have the ids 1, 2, 3, …, any parent, and may be removed.
        #[test]
        fn an_ancestor_is_the_one_that_a_walk_finds(records in prop::collection::vec((0..24_u64, any::<bool>()), 0..20)) {
            let parents: Vec<u64> = records.iter().map(|(parent, _)| *parent).collect();
            let is_removed = |(at, (_, is_removed)): (usize, &(u64, bool))| is_removed.then_some((at as u64 + 1, at));
            let removed: HashMap<u64, usize> = records.iter().enumerate().filter_map(is_removed).collect();
            let mut ancestors = KeptAncestors { removed: &removed, known: HashMap::new() };
            for parent in removed.keys().copied() {
                let found = ancestors.of(parent, |number| parents.get(number).copied().unwrap_or(0));
                prop_assert_eq!(found, walked(&removed, &parents, parent));
            }
        }
    }

    #[test]
    fn a_long_chain_of_removed_parents_is_visited_once() {
        let removed: HashMap<u64, usize> = (1..=100_000_u64).map(|id| (id, id as usize)).collect();
        let visits = std::cell::Cell::new(0_u64);
        let mut ancestors = KeptAncestors { removed: &removed, known: HashMap::new() };
        for id in 1..=100_000 {
            let parent_of = |number: usize| {
                visits.set(visits.get() + 1);
                if number == 1 { 200_000 } else { number as u64 - 1 }
            };
            assert_eq!(ancestors.of(id, parent_of), Some((200_000, 1)));
        }
        assert_eq!(visits.get(), 100_000);
    }
}
