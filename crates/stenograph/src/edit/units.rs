//! What belongs together in a conversation: turns that users began, and the bonds that no cut may tear, a call and its result or
//! the records of one model response. Which of them go is not decided here.

use std::collections::HashMap;
use std::ops::Range;

use super::sketch::{Fact, Sketch, Sketched, Sketches};
use crate::evidence::UserMessage;
use crate::model::{Kind, Role};

/// A stretch of a conversation that stays or goes as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its events.
    pub events: Range<usize>,
    /// How many turns it holds: more than one where a call is answered in a later turn.
    pub turns: usize,
}

/// A conversation in units, in order and without a gap. What stands before the first turn is in no unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// The units, oldest first.
    pub units: Vec<Unit>,
    /// For each event whether it may be taken out: headers, titles, system prompts and what nobody understands may not.
    movable: Vec<bool>,
    /// For each event whether it is a part of the conversation that goes on.
    spine: Vec<bool>,
}

impl Units {
    /// The units of these events.
    pub fn of<S: Sketched + ?Sized>(events: &S) -> Units {
        let events = &*events.sketches();
        let mut starts = starts(events);
        starts.retain(|start| *start < events.len());
        let bonds = bonds(events);
        if let Some(first) = starts.first_mut() {
            *first = untorn(&bonds, *first);
        }
        let mut bonds = bonds.into_iter().peekable();
        // How far what was begun so far reaches.
        let mut reach = 0;
        let mut units: Vec<Unit> = Vec::new();
        for (index, start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(events.len());
            // Turns that were taken back go together, with the word that takes them back.
            let dead = |range: &Range<usize>| {
                let is_talk = |number: &usize| events.get(*number).is_some_and(Sketch::is_talk);
                let mut said = range.clone().filter(is_talk).peekable();
                said.peek().is_some() && said.all(|number| !events.is_told(number))
            };
            let unit = Unit { events: *start..end, turns: 1 };
            while let Some((_, to)) = bonds.next_if(|(from, _)| from < start) {
                reach = reach.max(to);
            }
            let tied = reach >= *start && reach > 0;
            match units.last_mut() {
                Some(last) if tied || dead(&last.events) && dead(&unit.events) => {
                    last.events.end = end;
                    last.turns += 1;
                }
                _ => units.push(unit),
            }
        }
        Units {
            units,
            movable: movable(events),
            spine: (0..events.len()).map(|number| events.is_told(number)).collect(),
        }
    }

    /// Where each turn begins, whatever ties it to others.
    pub fn turns<S: Sketched + ?Sized>(events: &S) -> Vec<usize> {
        starts(&events.sketches())
    }

    /// Whether the event of that number may be taken out.
    pub fn is_movable(&self, number: usize) -> bool {
        self.movable.get(number) == Some(&true)
    }

    /// Whether the event of that number is a part of the conversation that goes on.
    pub fn is_told(&self, number: usize) -> bool {
        self.spine.get(number) == Some(&true)
    }
}

/// The last place before this one, or the place itself, where nothing is torn.
fn untorn(bonds: &[(usize, usize)], mut place: usize) -> usize {
    while let Some((from, _)) = bonds.iter().find(|(from, to)| *from < place && *to >= place) {
        place = *from;
    }
    place
}

/// Calls with their results, and the first with the last record of each model response: pairs that no cut may tear.
///
/// The fold [`Calls`](crate::calls::Calls) cannot serve here: it forgets the oldest of very many open calls, and then a cut would tear them
/// apart. A result is tied to the call with its id, and without an id to the oldest call without one, as in the fold.
pub fn bonds<S: Sketched + ?Sized>(events: &S) -> Vec<(usize, usize)> {
    let events = &*events.sketches();
    let mut found = Vec::new();
    let mut open: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    let mut groups: HashMap<u64, usize> = HashMap::new();
    let answers = |pair: &[Sketch]| match pair {
        [one, other] => other.continues_record_of(one) && is_answer(one) && is_answer(other),
        _ => false,
    };
    // What a model says in one record is one message, of which the first part holds what makes it one.
    let said = events.as_slice().windows(2).enumerate().filter(|(_, pair)| answers(pair));
    found.extend(said.map(|(number, _)| (number, number + 1)));
    for (number, event) in events.iter().enumerate().filter(|(_, event)| !event.restates) {
        let key = (event.thread, event.call);
        match event.kind {
            Kind::ToolCall => open.entry(key).or_default().push(number),
            Kind::ToolResult => {
                let waiting = open.entry(key).or_default();
                // A call may be answered in pieces: the last one with that id stays open. One without an id is answered once.
                let call = if event.call != 0 {
                    waiting.last().copied()
                } else {
                    (!waiting.is_empty()).then(|| waiting.remove(0))
                };
                found.extend(call.map(|call| (call, number)));
            }
            Kind::Message
            | Kind::Thinking
            | Kind::Compaction
            | Kind::Failure
            | Kind::Stop
            | Kind::Fact
            | Kind::Other => {}
        }
        // A count of tokens names its response too, and may come much later.
        if event.group != 0 && event.kind != Kind::Fact {
            let first = *groups.entry(event.group).or_insert(number);
            if first != number {
                found.push((first, number));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Where turns begin: at what came together with a user's message. Where nobody is a user, every message and call begins one.
fn starts(events: &Sketches) -> Vec<usize> {
    let mut starts: Vec<usize> = Vec::new();
    for message in turn_messages(events) {
        // What stands before the first turn of all is no part of it.
        let from = starts.last().map_or(message, |last| last + 1);
        let before = events.as_slice().get(from..message).unwrap_or_default();
        let start = before.iter().rposition(ends_prelude).map_or(from, |at| from + at + 1);
        starts.push(start);
    }
    if starts.is_empty() {
        let begins = |(number, event): (usize, &Sketch)| {
            let talks = matches!(event.kind, Kind::Message | Kind::ToolCall | Kind::Thinking);
            (talks && events.is_told(number) && event.part == 0).then_some(number)
        };
        starts = events.iter().enumerate().filter_map(begins).collect();
    }
    starts.dedup();
    starts
}

/// The messages with which users begin turns ([`UserMessage::begins_turn`]). Where
/// nobody typed anything, what was put in asks for something: another agent's task, or a command.
pub(super) fn turn_messages(events: &Sketches) -> Vec<usize> {
    let main = events.iter().any(|event| event.thread == 0 && event.is_talk());
    let of_users = |(number, event): &(usize, &Sketch)| {
        let aside = main && event.thread != 0;
        let repeats = event.restates && events.tie(*number).is_some();
        event.is_user() && !aside && !repeats
    };
    let users: Vec<(usize, &Sketch)> = events.iter().enumerate().filter(of_users).collect();
    let typed = users.iter().filter(|(_, event)| event.message.is_some_and(UserMessage::begins_turn));
    let typed: Vec<usize> = typed.map(|(number, _)| *number).collect();
    if typed.is_empty() { users.into_iter().map(|(number, _)| number).collect() } else { typed }
}

fn is_answer(event: &Sketch) -> bool {
    let said = matches!(event.kind, Kind::Thinking | Kind::ToolCall) || event.role == Some(Role::Assistant);
    said && !event.restates
}

/// Whether what a model or a tool did ends here, so that what follows may belong to the next turn.
fn ends_prelude(event: &Sketch) -> bool {
    // What is restated was over before.
    let own = !event.restates;
    match (event.kind, event.role) {
        (Kind::Message, Some(Role::Assistant | Role::Tool | Role::Unknown)) => own,
        (Kind::Thinking | Kind::ToolCall | Kind::ToolResult, _) => own,
        (Kind::Compaction | Kind::Failure | Kind::Stop, _) => own,
        (Kind::Fact, _) => event.has_usage,
        (Kind::Message, Some(Role::User | Role::System | Role::Developer) | None) | (Kind::Other, _) => false,
    }
}

fn movable(events: &Sketches) -> Vec<bool> {
    let shared = shared_places(events);
    let movable = |((number, event), shared): ((usize, &Sketch), bool)| {
        let goes = match (event.kind, event.role) {
            // What the model was told for a while and then not any more is no system prompt.
            (Kind::Message, Some(Role::System | Role::Developer)) => !events.is_told(number),
            (Kind::Other, _) => false,
            // A fact about the session is not one about the turn it stands in.
            (Kind::Fact, _) => event.fact == Fact::Other && event.is_only,
            (Kind::Message | Kind::Thinking | Kind::ToolCall | Kind::ToolResult, _) => true,
            (Kind::Compaction | Kind::Failure | Kind::Stop, _) => true,
        };
        // What restates goes with what it restates.
        goes && !shared && events.tie(number).is_none()
    };
    events.iter().enumerate().zip(shared).map(movable).collect()
}

/// For each event whether another record stands in its place: what a header tells of cannot be taken out of it.
pub(super) fn shared_places(events: &Sketches) -> Vec<bool> {
    let mut offsets: Vec<u64> = events.iter().filter(|event| event.part == 0).filter_map(Sketch::offset).collect();
    offsets.sort_unstable();
    let mut shared: Vec<u64> = offsets
        .windows(2)
        .filter_map(|pair| match pair {
            [one, other] if one == other => Some(*one),
            _ => None,
        })
        .collect();
    drop(offsets);
    shared.dedup();
    let is_shared = |event: &Sketch| event.offset().is_some_and(|offset| shared.binary_search(&offset).is_ok());
    events.iter().map(is_shared).collect()
}
