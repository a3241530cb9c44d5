//! Units: turns of a conversation, joined where a link connects them. The commands decide which units they remove.

use std::ops::Range;

use super::links::Links;
use super::sketch::{Sketch, Sketched, Sketches};
use crate::evidence::UserMessage;
use crate::model::{Kind, Role};

/// A range of events that an edit keeps or removes as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The numbers of its events.
    pub events: Range<usize>,
    /// The number of its turns that are in the spine: 0 for abandoned turns, more than one where a later turn answers a call.
    pub turns: usize,
}

/// The units of a conversation, in order and without gaps. Events before the first turn are in no unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// The units, oldest first.
    pub units: Vec<Unit>,
    /// For each event whether an edit may remove it.
    removable: Vec<bool>,
    /// For each event whether it is in the spine.
    spine: Vec<bool>,
}

impl Units {
    /// Divides these events into units.
    pub fn of<S: Sketched + ?Sized>(events: &S) -> Units {
        let events = &*events.sketches();
        let mut found = find_turns(events);
        let links = Links::of(events);
        if let Some(first) = found.first_mut() {
            first.start = links.uncrossed_until(first.start);
        }
        let mut crossings = links.crossings(None);
        let mut units: Vec<Unit> = Vec::new();
        for (index, turn) in found.iter().enumerate() {
            let end = found.get(index + 1).map_or(events.len(), |next| next.start);
            let turns = usize::from(turn.is_in_spine(events));
            match units.last_mut() {
                // Abandoned turns are removed together, with the fact that takes them back.
                Some(last) if crossings.is_crossed(turn.start) || last.turns == 0 && turns == 0 => {
                    last.events.end = end;
                    last.turns += turns;
                }
                _ => units.push(Unit { events: turn.start..end, turns }),
            }
        }
        Units {
            units,
            removable: removable(events),
            spine: (0..events.len()).map(|number| events.is_in_spine(number)).collect(),
        }
    }

    /// The event with which each turn of the spine begins, whether or not links connect it with other turns. Abandoned turns
    /// belong to the turn after them, which replaced them.
    pub fn turns<S: Sketched + ?Sized>(events: &S) -> Vec<usize> {
        let events = &*events.sketches();
        let (mut starts, mut abandoned) = (Vec::new(), None);
        for turn in find_turns(events) {
            if turn.is_in_spine(events) {
                starts.push(abandoned.take().unwrap_or(turn.start));
            } else {
                abandoned.get_or_insert(turn.start);
            }
        }
        starts
    }

    /// The newest unit with a turn of the spine: a later unit holds only abandoned turns.
    pub fn newest(&self) -> Option<&Unit> {
        self.units.iter().rfind(|unit| unit.turns > 0)
    }

    /// Whether an edit may remove this event. Headers, titles, system prompts and unknown records stay.
    pub fn is_removable(&self, number: usize) -> bool {
        self.removable.get(number) == Some(&true)
    }

    /// Whether this event is in the spine.
    pub fn is_in_spine(&self, number: usize) -> bool {
        self.spine.get(number) == Some(&true)
    }
}

/// A turn of a conversation.
struct Turn {
    /// Its first event: the question, or an event that belongs to it.
    start: usize,
    /// The user message that begins it. If there are no users, every message and every call begins a turn.
    question: Option<usize>,
}

impl Turn {
    /// Whether it is part of the conversation that continued: its question is in the spine.
    fn is_in_spine(&self, events: &Sketches) -> bool {
        self.question.is_none_or(|question| events.is_in_spine(question))
    }
}

fn find_turns(events: &Sketches) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for question in turn_messages(events) {
        // Events before the very first turn do not belong to it.
        let from = turns.last().map_or(question, |last| last.start + 1);
        let before = events.as_slice().get(from..question).unwrap_or_default();
        let ends = |(at, event): (usize, &Sketch)| ends_turn(event) || events.is_rewind(from + at);
        let start = before.iter().enumerate().rposition(ends).map_or(from, |at| from + at + 1);
        turns.push(Turn { start, question: Some(question) });
    }
    if turns.is_empty() {
        let begins = |(number, event): (usize, &Sketch)| {
            let talks = matches!(event.kind, Kind::Message | Kind::ToolCall | Kind::Thinking);
            let is_start = talks && events.is_in_spine(number) && event.part == 0;
            is_start.then_some(Turn { start: number, question: None })
        };
        turns = events.iter().enumerate().filter_map(begins).collect();
    }
    turns
}

/// The messages that begin turns: those that a person typed. If there are none, every user message begins a turn: the task of
/// another agent, or a command.
fn turn_messages(events: &Sketches) -> Vec<usize> {
    let typed = typed_messages(events);
    if typed.is_empty() { user_messages(events).map(|(number, _)| number).collect() } else { typed }
}

/// The messages with which a person begins a turn, as the spine counts them.
pub(super) fn typed_messages(events: &Sketches) -> Vec<usize> {
    let typed = user_messages(events).filter(|(_, event)| event.message.is_some_and(UserMessage::begins_turn));
    typed.map(|(number, _)| number).collect()
}

/// The messages in the role of the user, without repetitions, and without side conversations if there is a main one.
fn user_messages(events: &Sketches) -> impl Iterator<Item = (usize, &Sketch)> {
    let has_main = events.iter().any(|event| event.thread == 0 && event.is_talk());
    let is_of_user = move |(number, event): &(usize, &Sketch)| {
        let is_side = has_main && event.thread != 0;
        let is_repeated = event.restates && events.restatement(*number).is_some();
        event.role == Some(Role::User) && !is_side && !is_repeated
    };
    events.iter().enumerate().filter(is_of_user)
}

/// Whether a model or a tool acts in this event, so that following events may belong to the next turn.
fn ends_turn(event: &Sketch) -> bool {
    match (event.kind, event.role) {
        // A restatement may come late.
        _ if event.restates && event.kind != Kind::Fact => false,
        (Kind::Message, Some(Role::Assistant | Role::Tool | Role::Unknown)) => true,
        (Kind::Thinking | Kind::ToolCall | Kind::ToolResult, _) => true,
        (Kind::Compaction | Kind::Failure | Kind::Stop, _) => true,
        (Kind::Fact, _) => event.has_usage,
        (Kind::Message, Some(Role::User | Role::System | Role::Developer) | None) | (Kind::Other, _) => false,
    }
}

/// For each event whether an edit may remove it.
fn removable(events: &Sketches) -> Vec<bool> {
    let shared = shared_places(events);
    let removable = |((number, event), shared): ((usize, &Sketch), bool)| {
        let by_kind = match (event.kind, event.role) {
            // A system prompt that the model no longer receives may go.
            (Kind::Message, Some(Role::System | Role::Developer)) => !events.is_in_spine(number),
            (Kind::Other, _) => false,
            // A fact about the session does not belong to the turn around it.
            (Kind::Fact, _) => !event.is_frame && !event.is_title && event.is_only,
            (Kind::Message | Kind::Thinking | Kind::ToolCall | Kind::ToolResult, _) => true,
            (Kind::Compaction | Kind::Failure | Kind::Stop, _) => true,
        };
        // A restatement is removed with the event that it restates.
        by_kind && !shared && events.restatement(number).is_none()
    };
    events.iter().enumerate().zip(shared).map(removable).collect()
}

/// For each event whether its place in the source holds another record too: such a record cannot be removed from there.
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
