//! The active conversation: what another system would be told of a session. Branches and turns that the user went back on,
//! records that repeat others and side conversations are left out, each with its reason. Nothing is left out because a link
//! is broken.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::said::Said;
use super::{Body, Event, Kind};

/// Why an event is not in the spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// It says again what another record says.
    Restated,
    /// It is on a branch that was given up.
    Branch,
    /// It belongs to a side conversation.
    Thread,
}

impl LeftOut {
    /// The reason in reports.
    pub fn reason(self) -> &'static str {
        match self {
            LeftOut::Restated => "says again what another record says",
            LeftOut::Branch => "on a branch that was given up",
            LeftOut::Thread => "in a side conversation",
        }
    }
}

/// Which records are in the spine. Built in one pass ([`Spine::add`]), asked in a second ([`Spine::left_out`]).
#[derive(Debug, Default)]
pub struct Spine {
    nodes: Vec<Node>,
    by_id: HashMap<u64, u32>,
    last_usage: HashMap<u64, u32>,
    said: Said,
    has_main: bool,
    has_threads: bool,
    /// The record the second pass has come to.
    asked: u32,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// The index of the parent, or itself for a root.
    parent: u32,
    /// The last record below it, itself included.
    latest: u32,
    /// Whether somebody says something in it.
    talks: bool,
    /// Whether talk is below it, itself included.
    talk_below: bool,
    /// The fingerprint of the model response it belongs to, or 0.
    group: u64,
    /// Whether it goes on with the response that its parent belongs to. Nobody gives up half a response.
    goes_on: bool,
    given_up: bool,
}

impl Spine {
    /// Takes notice of one event; every event of the source, in order.
    pub fn add(&mut self, event: &Event<'_>) {
        let talks = matches!(event.kind(), Kind::Message | Kind::ToolCall | Kind::Thinking);
        if event.thread.is_none() && talks {
            self.has_main = true;
        }
        self.has_threads |= event.thread.is_some();
        let index =
            if event.part.index == 0 || self.nodes.is_empty() { self.start(event) } else { self.nodes.len() - 1 };
        self.said.add(event, number(index));
        if let Some(node) = self.nodes.get_mut(index) {
            node.talks |= talks && !event.restates;
            node.talk_below |= node.talks;
        }
        if let (Some(group), Some(_), false) = (&event.group, event.usage, event.restates) {
            self.last_usage.insert(xxh3_64(group.as_bytes()), number(index));
        }
    }

    fn start(&mut self, event: &Event<'_>) -> usize {
        let index = self.nodes.len();
        let parent = event.parent.as_deref().and_then(|parent| self.by_id.get(&xxh3_64(parent.as_bytes()))).copied();
        let own = number(index);
        let before = parent.and_then(|parent| self.nodes.get(parent as usize)).map_or(0, |parent| parent.group);
        let group = match &event.group {
            Some(group) => xxh3_64(group.as_bytes()),
            // A progress report may stand between two records of one response.
            None if matches!(event.body, Body::Fact { .. }) => before,
            None => 0,
        };
        self.nodes.push(Node {
            parent: parent.unwrap_or(own),
            latest: own,
            talks: false,
            talk_below: false,
            group,
            goes_on: group != 0 && group == before,
            given_up: false,
        });
        if let Some(id) = &event.id {
            self.by_id.entry(xxh3_64(id.as_bytes())).or_insert(own);
        }
        index
    }

    /// Decides which branches were given up: where several things were said in answer to one record, the branch that was
    /// worked on last goes on. A parent that is missing or comes later ends a branch without blame.
    pub fn decide(&mut self) {
        self.by_id = HashMap::new();
        for index in (0..self.nodes.len()).rev() {
            let Some(node) = self.nodes.get(index).copied() else { continue };
            if node.parent as usize != index
                && let Some(parent) = self.nodes.get_mut(node.parent as usize)
            {
                parent.latest = parent.latest.max(node.latest);
                parent.talk_below |= node.talk_below;
            }
        }
        // The newest talking child of each record, to compare its siblings with.
        let mut newest: HashMap<u32, (u32, u64)> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if node.parent as usize != index && node.talk_below {
                let found = newest.entry(node.parent).or_insert((node.latest, node.group));
                if node.latest > found.0 {
                    *found = (node.latest, node.group);
                }
            }
        }
        for index in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(index).copied() else { continue };
            if node.parent as usize == index {
                continue;
            }
            let parent_given_up = self.nodes.get(node.parent as usize).is_some_and(|parent| parent.given_up);
            let outdone = node.talk_below
                && !node.goes_on
                && newest.get(&node.parent).is_some_and(|(latest, group)| {
                    // Parallel calls of one response may be siblings: none of them gives up another.
                    *latest > node.latest && (node.group == 0 || *group != node.group)
                });
            if let Some(node) = self.nodes.get_mut(index) {
                node.given_up = parent_given_up || outdone;
            }
        }
        self.said.settle();
        for run in self.said.taken_back() {
            let run = run.start as usize..(run.end as usize).min(self.nodes.len());
            self.nodes.get_mut(run).unwrap_or_default().iter_mut().for_each(|node| node.given_up = true);
        }
        self.rewind();
    }

    /// Whether events are left out that do not merely repeat others.
    pub fn leaves_out(&self) -> bool {
        (self.has_main && self.has_threads) || self.nodes.iter().any(|node| node.given_up)
    }

    /// Goes back to the first event, to be asked about all of them once more.
    pub fn rewind(&mut self) {
        self.asked = 0;
    }

    /// Why this event is not in the spine, if it is not; every event again, in the same order.
    pub fn left_out(&mut self, event: &Event<'_>) -> Option<LeftOut> {
        // As in `add`: a stream may begin in the middle of a record.
        if event.part.index == 0 || self.asked == 0 {
            self.asked += 1;
        }
        // What is said to repeat another record and does not is all there is of it.
        if event.restates && !self.said.is_alone(event) {
            return Some(LeftOut::Restated);
        }
        if event.thread.is_some() && self.has_main && !matches!(event.body, Body::Fact { .. }) {
            return Some(LeftOut::Thread);
        }
        let node = self.nodes.get((self.asked as usize).saturating_sub(1));
        node.is_some_and(|node| node.given_up).then_some(LeftOut::Branch)
    }

    /// Whether a later record of the same model response states its usage again. Ask after [`Spine::left_out`].
    pub fn usage_said_later(&self, event: &Event<'_>) -> bool {
        let (Some(group), Some(_)) = (&event.group, event.usage) else { return false };
        let last = self.last_usage.get(&xxh3_64(group.as_bytes()));
        last.is_some_and(|last| *last > self.asked.saturating_sub(1))
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Content, Role};

    fn said(id: &'static str, parent: Option<&'static str>) -> Event<'static> {
        let body = Body::Message { role: Role::User, content: Content::text(id) };
        Event { id: Some(id.into()), parent: parent.map(Into::into), ..Event::new(body) }
    }

    fn answered(id: &'static str, parent: &'static str) -> Event<'static> {
        let body = Body::ToolResult { call: None, name: None, content: Content::text(id), error: None };
        Event { id: Some(id.into()), parent: Some(parent.into()), ..Event::new(body) }
    }

    fn kept(events: &[Event<'static>]) -> Vec<String> {
        let mut spine = Spine::default();
        events.iter().for_each(|event| spine.add(event));
        spine.decide();
        let kept = events.iter().filter(|event| spine.left_out(event).is_none());
        kept.map(|event| event.id.clone().unwrap_or_default().into_owned()).collect()
    }

    #[test]
    fn a_branch_that_was_given_up_is_left_out() {
        let events =
            [said("a", None), said("b", Some("a")), said("c", Some("b")), said("d", Some("a")), said("e", Some("d"))];
        assert_eq!(kept(&events), ["a", "d", "e"]);
    }

    #[test]
    fn results_of_parallel_calls_stay() {
        let events =
            [said("a", None), said("b", Some("a")), answered("r1", "a"), answered("r2", "b"), said("c", Some("r2"))];
        assert_eq!(kept(&events), ["a", "b", "r1", "r2", "c"]);
    }

    #[test]
    fn a_parallel_call_stays_when_the_first_result_comes_last() {
        let mut events =
            [said("a", None), said("b", Some("a")), answered("r2", "b"), answered("r1", "a"), said("c", Some("r1"))];
        assert_eq!(kept(&events), ["a", "r1", "c"]);
        events[0].group = Some("one response".into());
        events[1].group = Some("one response".into());
        assert_eq!(kept(&events), ["a", "b", "r2", "r1", "c"]);
    }

    #[test]
    fn parallel_calls_of_one_response_are_no_rivals() {
        let call =
            |id: &'static str, parent: &'static str| Event { group: Some("m1".into()), ..said(id, Some(parent)) };
        let siblings = [said("a", None), call("b", "a"), call("c", "a"), answered("r1", "b"), said("d", Some("r1"))];
        assert_eq!(kept(&siblings), ["a", "b", "c", "r1", "d"]);
    }

    #[test]
    fn a_restatement_stays_when_nobody_else_says_it() {
        let events = [said("a", None), said("b", None), said("c", None)].map(|event| {
            let restates = event.id.as_deref() != Some("a");
            Event { restates, ..event }
        });
        let mut events = events.to_vec();
        events.push(Event { restates: true, ..said("a", None) });
        assert_eq!(kept(&events), ["a", "b", "c"]);
    }

    #[test]
    fn turns_that_were_taken_back_are_left_out() {
        let rewind = Body::Fact { name: "rewind".into(), content: Some(Content::text("1")) };
        let events = [said("a", None), said("b", None), Event::new(rewind), said("c", None)];
        assert_eq!(kept(&events), ["a", "c"]);
    }

    #[test]
    fn a_missing_parent_loses_nothing() {
        let events = [said("a", None), said("b", Some("gone")), said("c", Some("b"))];
        assert_eq!(kept(&events), ["a", "b", "c"]);
    }
}
