//! What belongs together in a conversation: turns that users began, and the bonds that no cut may tear, a call and its result or
//! the records of one model response. Which of them go is not decided here.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::echo;
use crate::model::{Body, Event, Kind, Role, Spine, is_framed};

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
    pub fn of(events: &[Event<'_>]) -> Units {
        let spine = told(events);
        let mut starts = starts(events, &spine);
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
                let mut said = range.clone().filter(|number| events.get(*number).is_some_and(is_talk)).peekable();
                said.peek().is_some() && said.all(|number| spine.get(number) == Some(&false))
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
        Units { units, movable: movable(events, &spine), spine }
    }

    /// Where each turn begins, whatever ties it to others.
    pub fn turns(events: &[Event<'_>]) -> Vec<usize> {
        starts(events, &told(events))
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
pub fn bonds(events: &[Event<'_>]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut open: HashMap<(Option<&str>, Option<&str>), Vec<usize>> = HashMap::new();
    let mut groups: HashMap<&str, usize> = HashMap::new();
    let answers = |pair: &[Event<'_>]| match pair {
        [one, other] => other.part.index > 0 && one.at == other.at && is_answer(one) && is_answer(other),
        _ => false,
    };
    // What a model says in one record is one message, of which the first part holds what makes it one.
    let said = events.windows(2).enumerate().filter(|(_, pair)| answers(pair));
    found.extend(said.map(|(number, _)| (number, number + 1)));
    for (number, event) in events.iter().enumerate().filter(|(_, event)| !event.restates) {
        let key = (event.thread.as_deref(), event.call());
        match event.kind() {
            Kind::ToolCall => open.entry(key).or_default().push(number),
            Kind::ToolResult => {
                let waiting = open.entry(key).or_default();
                // A call may be answered in pieces: the last one with that id stays open. One without an id is answered once.
                let call = if key.1.is_some() {
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
        if let Some(group) = event.group.as_deref().filter(|_| !matches!(event.body, Body::Fact { .. })) {
            let first = *groups.entry(group).or_insert(number);
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
fn starts(events: &[Event<'_>], spine: &[bool]) -> Vec<usize> {
    let mut starts: Vec<usize> = Vec::new();
    for message in turn_messages(events) {
        // What stands before the first turn of all is no part of it.
        let from = starts.last().map_or(message, |last| last + 1);
        let before = events.get(from..message).unwrap_or_default();
        let start = before.iter().rposition(ends_prelude).map_or(from, |at| from + at + 1);
        starts.push(start);
    }
    if starts.is_empty() {
        let begins = |(number, event): (usize, &Event<'_>)| {
            let talks = matches!(event.kind(), Kind::Message | Kind::ToolCall | Kind::Thinking);
            (talks && spine.get(number) == Some(&true) && event.part.index == 0).then_some(number)
        };
        starts = events.iter().enumerate().filter_map(begins).collect();
    }
    starts.dedup();
    starts
}

/// The messages with which users begin turns. Where nobody typed anything, what was put in asks for something: another agent's
/// task, or a command.
pub(super) fn turn_messages(events: &[Event<'_>]) -> Vec<usize> {
    let main = events.iter().any(|event| event.thread.is_none() && is_talk(event));
    let restated: HashSet<String> = events.iter().filter(|event| event.restates && is_user(event)).map(said).collect();
    let ties = echo::ties(events);
    let of_users = |(number, event): &(usize, &Event<'_>)| {
        let aside = main && event.thread.is_some();
        let repeats = event.restates && ties.get(*number).is_some_and(echo::Tie::holds);
        is_user(event) && !aside && !repeats
    };
    let users: Vec<(usize, &Event<'_>)> = events.iter().enumerate().filter(of_users).collect();
    let typed = users.iter().filter(|(_, event)| is_typed(event, &restated)).map(|(number, _)| *number);
    let typed: Vec<usize> = typed.collect();
    if typed.is_empty() { users.into_iter().map(|(number, _)| number).collect() } else { typed }
}

/// Where a source restates what its user said, everything else in the user's role was put there by the agent.
fn is_typed(event: &Event<'_>, restated: &HashSet<String>) -> bool {
    match restated.is_empty() {
        true => !event.content().is_some_and(is_framed),
        false => event.restates || restated.contains(&said(event)),
    }
}

fn is_answer(event: &Event<'_>) -> bool {
    let said = matches!(event.kind(), Kind::Thinking | Kind::ToolCall) || event.role() == Some(Role::Assistant);
    said && !event.restates
}

fn is_user(event: &Event<'_>) -> bool {
    event.role() == Some(Role::User)
}

fn said(event: &Event<'_>) -> String {
    event.content().map(|content| content.joined().decode().trim().to_owned()).unwrap_or_default()
}

/// Whether what a model or a tool did ends here, so that what follows may belong to the next turn.
fn ends_prelude(event: &Event<'_>) -> bool {
    // What is restated was over before.
    let own = !event.restates;
    match &event.body {
        Body::Message { role: Role::Assistant | Role::Tool | Role::Unknown, .. } => own,
        Body::Thinking { .. } | Body::ToolCall { .. } | Body::ToolResult { .. } => own,
        Body::Compaction { .. } | Body::Failure { .. } | Body::Stop { .. } => own,
        Body::Fact { .. } => event.usage.is_some(),
        Body::Message { role: Role::User | Role::System | Role::Developer, .. } | Body::Other { .. } => false,
    }
}

fn is_talk(event: &Event<'_>) -> bool {
    matches!(event.kind(), Kind::Message | Kind::ToolCall | Kind::Thinking) && !event.restates
}

/// For each event whether it is a part of the conversation that goes on.
pub(super) fn told(events: &[Event<'_>]) -> Vec<bool> {
    let mut spine = Spine::default();
    events.iter().for_each(|event| spine.add(event));
    spine.decide();
    events.iter().map(|event| spine.left_out(event).is_none()).collect()
}

/// Facts that speak of the session, not of the turn they stand in.
const OF_THE_SESSION: [&str; 4] = ["session", "session_end", "end", "title"];

fn movable(events: &[Event<'_>], spine: &[bool]) -> Vec<bool> {
    let ties = echo::ties(events);
    let shared = shared_places(events);
    let movable = |(((event, tie), shared), told): (((&Event<'_>, echo::Tie), bool), &bool)| {
        // What restates goes with what it restates.
        let goes = match &event.body {
            // What the model was told for a while and then not any more is no system prompt.
            Body::Message { role: Role::System | Role::Developer, .. } => !told,
            Body::Other { .. } => false,
            Body::Fact { name, .. } => !OF_THE_SESSION.contains(&name.as_ref()) && event.part.of <= 1,
            Body::Message { .. } | Body::Thinking { .. } | Body::ToolCall { .. } | Body::ToolResult { .. } => true,
            Body::Compaction { .. } | Body::Failure { .. } | Body::Stop { .. } => true,
        };
        goes && !shared && !tie.holds()
    };
    events.iter().zip(ties).zip(shared).zip(spine).map(movable).collect()
}

/// For each event whether another record stands in its place: what a header tells of cannot be taken out of it.
pub(super) fn shared_places(events: &[Event<'_>]) -> Vec<bool> {
    let mut places: HashMap<u64, usize> = HashMap::new();
    for event in events.iter().filter(|event| event.part.index == 0) {
        if let Some(at) = event.at {
            *places.entry(at.offset).or_default() += 1;
        }
    }
    let shared = |event: &Event<'_>| event.at.is_some_and(|at| places.get(&at.offset).is_some_and(|count| *count > 1));
    events.iter().map(shared).collect()
}
