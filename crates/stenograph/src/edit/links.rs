//! Links between events that no edit may separate: a call and its result, and the records of one model response. The commands
//! decide which events they remove.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::sketch::{Sketch, Sketched};
use crate::model::{Kind, Role};

/// Two events that an edit keeps or removes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// The number of the earlier event.
    pub from: usize,
    /// The number of the later event.
    pub to: usize,
    /// Why they belong together.
    pub kind: LinkKind,
}

/// Why two events belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// A call and its result.
    Call,
    /// Parts of one model response.
    Response,
}

/// The links of a conversation, sorted by their earlier event.
#[derive(Clone, Debug, Default)]
pub struct Links(Vec<Link>);

impl Links {
    /// Finds the links. The fold [`Calls`](crate::calls::Calls) pairs calls and results.
    pub fn of<S: Sketched + ?Sized>(events: &S) -> Links {
        let events = &*events.sketches();
        let mut links = Vec::new();
        // One record of a model is one message; its first part holds the fields of the whole record.
        for (number, pair) in events.as_slice().windows(2).enumerate() {
            if let [one, other] = pair
                && other.continues_record_of(one)
                && is_answer(one)
                && is_answer(other)
            {
                links.push(Link { from: number, to: number + 1, kind: LinkKind::Response });
            }
        }
        let mut calls: HashMap<u32, usize> = HashMap::new();
        let mut calls_by_id: HashMap<u64, usize> = HashMap::new();
        let mut responses: HashMap<u64, usize> = HashMap::new();
        for (number, event) in events.iter().enumerate().filter(|(_, event)| !event.restates) {
            if matches!(event.kind, Kind::ToolCall | Kind::ToolResult) {
                let first = match calls.entry(event.call_number) {
                    Entry::Occupied(first) => Some(*first.get()),
                    Entry::Vacant(slot) => {
                        slot.insert(number);
                        // The fold forgets the oldest of very many open calls. Their ids still pair them.
                        calls_by_id.get(&event.call).copied().filter(|_| event.kind == Kind::ToolResult)
                    }
                };
                links.extend(first.map(|from| Link { from, to: number, kind: LinkKind::Call }));
            }
            if event.kind == Kind::ToolCall && event.call != 0 {
                calls_by_id.insert(event.call, number);
            }
            // A fact with token counts names its response too, and may come much later.
            if event.group != 0 && event.kind != Kind::Fact {
                let from = *responses.entry(event.group).or_insert(number);
                if from != number {
                    links.push(Link { from, to: number, kind: LinkKind::Response });
                }
            }
        }
        links.sort_unstable();
        links.dedup();
        Links(links)
    }

    /// All links, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Link> {
        self.0.iter()
    }

    /// Answers for one place after the other whether a link crosses it.
    pub(super) fn crossings(&self, kind: Option<LinkKind>) -> Crossings<'_> {
        Crossings { rest: &self.0, kind, reach: 0 }
    }

    /// The last place up to `place` that no link crosses.
    pub(super) fn uncrossed_until(&self, place: usize) -> usize {
        let (mut crossings, mut found) = (self.crossings(None), 0);
        for place in 0..=place {
            if !crossings.is_crossed(place) {
                found = place;
            }
        }
        found
    }

    /// Adds to a set of events all events that links connect with one of them.
    pub(super) fn complete(&self, set: &mut [bool]) {
        // A forest in which each tree is one connected component.
        let mut parents: Vec<usize> = (0..set.len()).collect();
        for link in &self.0 {
            let (from, to) = (root(&mut parents, link.from), root(&mut parents, link.to));
            if let Some(parent) = parents.get_mut(to) {
                *parent = from;
            }
        }
        for number in 0..set.len() {
            if set.get(number) == Some(&true)
                && let Some(slot) = set.get_mut(root(&mut parents, number))
            {
                *slot = true;
            }
        }
        for number in 0..set.len() {
            let is_in = set.get(root(&mut parents, number)) == Some(&true);
            if let Some(slot) = set.get_mut(number) {
                *slot |= is_in;
            }
        }
    }
}

/// The root of the tree of an event. Every second step of the way is shortened, which keeps the trees flat.
fn root(parents: &mut [usize], mut number: usize) -> usize {
    while let Some(parent) = parents.get(number).copied().filter(|parent| *parent != number) {
        let next = parents.get(parent).copied().unwrap_or(parent);
        if let Some(slot) = parents.get_mut(number) {
            *slot = next;
        }
        number = next;
    }
    number
}

/// Whether links cross a place: whether they connect an event before it with that event or a later one. Places are asked in
/// ascending order, so that all questions together take one pass.
pub(super) struct Crossings<'l> {
    rest: &'l [Link],
    kind: Option<LinkKind>,
    /// The latest event that a link from before the last place reaches.
    reach: usize,
}

impl Crossings<'_> {
    /// Whether a link crosses the place before the event of this number.
    pub(super) fn is_crossed(&mut self, place: usize) -> bool {
        while let Some((link, rest)) = self.rest.split_first().filter(|(link, _)| link.from < place) {
            if self.kind.is_none_or(|kind| kind == link.kind) {
                self.reach = self.reach.max(link.to);
            }
            self.rest = rest;
        }
        self.reach > 0 && self.reach >= place
    }
}

fn is_answer(event: &Sketch) -> bool {
    let is_of_model = matches!(event.kind, Kind::Thinking | Kind::ToolCall) || event.role == Some(Role::Assistant);
    is_of_model && !event.restates
}
