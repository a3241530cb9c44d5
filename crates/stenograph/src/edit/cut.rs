//! Cutting: removing a range of events from a conversation, or splitting it. Neither separates a call from its result or divides
//! a model response, and every part of a split has the header and the system prompt.

mod divisions;

use std::ops::Range;

pub use divisions::{Division, Hindrance, divisions};

use super::links::Links;
use super::sketch::{Sketch, Sketched, Sketches};
use super::units::{Units, shared_places};
use super::{Fate, Plan};
use crate::model::{Kind, Role};

/// Selects the events that match every condition.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Events with these numbers, from 0.
    pub events: Option<Range<usize>>,
    /// Events of turns of the spine with these numbers, from 0. Abandoned turns belong to the turn after them.
    pub turns: Option<Range<usize>>,
    /// Events at this time or later.
    pub since: Option<jiff::Timestamp>,
    /// Events before this time.
    pub until: Option<jiff::Timestamp>,
}

/// The events that a cut removes.
#[derive(Clone, Debug, Default)]
pub struct Cut {
    /// What happens to each event.
    pub plan: Plan,
    /// The numbers of the removed events.
    pub removed: Vec<usize>,
    /// Those of them that were not selected: they belong to a selected event.
    pub also_removed: Vec<usize>,
    /// Selected events that stay because the file needs them.
    pub protected: Vec<usize>,
}

/// Plans to remove the selected events.
pub fn cut<S: Sketched + ?Sized>(events: &S, selection: &Selection) -> Cut {
    let events = &*events.sketches();
    let times = times(events);
    let turns = selection.turns.as_ref().map(|turns| events_of_turns(events, turns));
    let is_selected = |number: usize| {
        let at = times.get(number).copied().flatten();
        let is_since = selection.since.is_none_or(|since| at.is_some_and(|at| at >= since));
        let is_until = selection.until.is_none_or(|until| at.is_some_and(|at| at < until));
        let within = |range: &Option<Range<usize>>| range.as_ref().is_none_or(|range| range.contains(&number));
        within(&selection.events) && within(&turns) && is_since && is_until
    };
    let selected: Vec<bool> = (0..events.len()).map(is_selected).collect();
    let mut removed: Vec<bool> =
        selected.iter().zip(needed(events)).map(|(selected, needed)| *selected && !needed).collect();
    Links::of(events).complete(&mut removed);
    let mut plan = Plan::of_count(events.len());
    (0..).zip(&removed).filter(|(_, removed)| **removed).for_each(|(number, _)| plan.remove(number));
    keep_heads(events, &mut plan);
    let mut cut = Cut { plan, ..Cut::default() };
    for (number, selected) in selected.into_iter().enumerate() {
        match (cut.plan.fate(number) == Fate::Removed, selected) {
            (true, true) => cut.removed.push(number),
            (true, false) => {
                cut.removed.push(number);
                cut.also_removed.push(number);
            }
            (false, true) => cut.protected.push(number),
            (false, false) => {}
        }
    }
    cut
}

/// Keeps a fact at the head of a record if any other part of the record stays.
fn keep_heads(events: &Sketches, plan: &mut Plan) {
    for range in events.records() {
        let has_head = events.get(range.start).is_some_and(|event| event.kind == Kind::Fact);
        if has_head && range.clone().any(|number| plan.fate(number) != Fate::Removed) {
            plan.keep(range.start);
        }
    }
}

/// How to split a conversation.
#[derive(Debug)]
pub enum SplitBy<'a> {
    /// After every this many turns.
    Turns(usize),
    /// Before the events with these numbers, or at the next place where a split is possible.
    Events(Vec<usize>),
    /// Into parts of at most this many tokens, unless a single turn has more; and the tokens of each event.
    Tokens(u64, &'a [u64]),
}

/// One part of a split conversation.
#[derive(Clone, Debug)]
pub struct SplitPart {
    /// The events that only this part has.
    pub events: Range<usize>,
    /// The number of its turns.
    pub turns: usize,
}

/// A split conversation.
#[derive(Clone, Debug)]
pub struct SplitParts {
    /// The parts, in order. Every event is in at least one of them.
    pub parts: Vec<SplitPart>,
    /// For each event whether every part has it.
    shared: Vec<bool>,
}

impl SplitParts {
    /// The plan that keeps only one part.
    pub fn plan<S: Sketched + ?Sized>(&self, events: &S, part: &SplitPart) -> Plan {
        let events = &*events.sketches();
        let mut plan = Plan::of_count(events.len());
        for number in (0..events.len()).filter(|number| !part.events.contains(number)) {
            // A restatement is removed with the event that it restates.
            if self.shared.get(number) != Some(&true) && events.restatement(number).is_none() {
                plan.remove(number);
            }
        }
        keep_heads(events, &mut plan);
        plan
    }

    /// The plan that makes one part a session of its own: its records name a new session, whose id is derived from the old id
    /// and the range of events. `None` if no record names a session.
    pub fn plan_as_session<S: Sketched + ?Sized>(&self, events: &S, part: &SplitPart) -> Option<Plan> {
        let events = &*events.sketches();
        let mut plan = self.plan(events, part);
        let names_session = |(number, event): (usize, &Sketch)| event.has_session && plan.fate(number) != Fate::Removed;
        let is_named = events.iter().enumerate().any(names_session);
        plan.own_session = Some(part.events.clone());
        is_named.then_some(plan)
    }
}

/// Splits a conversation.
pub fn split<S: Sketched + ?Sized>(events: &S, by: &SplitBy<'_>) -> SplitParts {
    let events = &*events.sketches();
    let units = Units::of(events);
    let prelude = units.units.first().map_or(events.len(), |unit| unit.events.start);
    let is_shared = |((number, event), needed): ((usize, &Sketch), bool)| {
        needed || event.is_title || number < prelude && is_prompt(event)
    };
    let shared: Vec<bool> = events.iter().enumerate().zip(needed(events)).map(is_shared).collect();
    let starts = match by {
        SplitBy::Turns(turns) => starts_by_turns(&units, (*turns).max(1)),
        SplitBy::Events(places) => starts_at(events, places),
        SplitBy::Tokens(tokens_max, tokens) => starts_by_tokens(&units, &shared, *tokens_max, tokens),
    };
    let mut bounds: Vec<usize> = std::iter::once(0).chain(starts).chain([events.len()]).collect();
    bounds.dedup();
    let mut parts = Vec::new();
    for range in bounds.windows(2).filter_map(|pair| Some(*pair.first()?..*pair.last()?)) {
        let own = units.units.iter().filter(|unit| range.contains(&unit.events.start));
        parts.push(SplitPart { turns: own.map(|unit| unit.turns).sum(), events: range });
    }
    SplitParts { parts, shared }
}

fn starts_by_turns(units: &Units, turns: usize) -> Vec<usize> {
    let (mut starts, mut count) = (Vec::new(), 0);
    for unit in units.units.iter().filter(|unit| unit.turns > 0) {
        if count >= turns {
            starts.push(unit.events.start);
            count = 0;
        }
        count += unit.turns;
    }
    starts
}

fn starts_at(events: &Sketches, places: &[usize]) -> Vec<usize> {
    let mut starts: Vec<usize> = divisions(events, places).iter().filter_map(|division| division.at).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

fn starts_by_tokens(units: &Units, shared: &[bool], tokens_max: u64, tokens: &[u64]) -> Vec<usize> {
    let count = shared.len();
    let is_shared = |number: &usize| shared.get(*number) == Some(&true);
    let tokens = |number: usize| match tokens.get(number) {
        Some(tokens) if units.is_in_spine(number) => *tokens,
        _ => 0,
    };
    let shared_tokens: u64 = (0..count).filter(is_shared).map(tokens).sum();
    let own_tokens = |range: Range<usize>| -> u64 { range.filter(|number| !is_shared(number)).map(tokens).sum() };
    let prelude = 0..units.units.first().map_or(count, |unit| unit.events.start);
    let (mut starts, mut total, mut is_empty) = (Vec::new(), shared_tokens + own_tokens(prelude), true);
    for unit in units.units.iter().filter(|unit| unit.turns > 0) {
        let size = own_tokens(unit.events.clone());
        if !is_empty && total + size > tokens_max {
            starts.push(unit.events.start);
            total = shared_tokens;
        }
        total += size;
        is_empty = false;
    }
    starts
}

/// The events of these turns.
fn events_of_turns(events: &Sketches, turns: &Range<usize>) -> Range<usize> {
    let starts = Units::turns(events);
    let at = |turn: usize| starts.get(turn).copied().unwrap_or(events.len());
    at(turns.start)..at(turns.end)
}

/// For each event whether the file needs it: headers, and every event that shares a place with another record.
fn needed(events: &Sketches) -> Vec<bool> {
    let is_needed = |(event, shared): (&Sketch, bool)| shared || event.is_frame && !event.restates;
    let needed: Vec<bool> = events.iter().zip(shared_places(events)).map(is_needed).collect();
    // All parts of a header stay: one of them may be the instructions.
    let is_in_header = |number: usize| {
        let parts_before = events.get(number).map_or(0, |event| event.part as usize);
        let head = number.saturating_sub(parts_before);
        let places = events.get(head).zip(events.get(number)).map(|(head, event)| (head.place(), event.place()));
        let is_same_record = places.is_some_and(|(head, place)| head == place && head.is_some());
        is_same_record && needed.get(head) == Some(&true)
    };
    (0..events.len()).map(|number| needed.get(number) == Some(&true) || is_in_header(number)).collect()
}

/// Whether every part of a split conversation needs this message if it comes before the first turn.
fn is_prompt(event: &Sketch) -> bool {
    matches!(event.role, Some(Role::System | Role::Developer | Role::User))
}

/// The time of each event. An event without a time has that of the event before it; the first events have that of the first event
/// with a time.
fn times(events: &Sketches) -> Vec<Option<jiff::Timestamp>> {
    let mut times: Vec<Option<jiff::Timestamp>> = events.iter().map(Sketch::moment).collect();
    let mut last = times.iter().flatten().next().copied();
    for time in &mut times {
        last = time.or(last);
        *time = last;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::tokens::Tokenizer;
    use crate::model::{Body, Content, Event, Input, Part, Span};
    use crate::time::Time;

    fn message(role: Role, text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text(text) })
    }

    fn call(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "read".into(), input: Input::Json("{}".into()) })
    }

    fn result(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content: Content::text("r"), error: None })
    }

    fn conversation() -> Vec<Event<'static>> {
        vec![
            message(Role::System, "rules"),
            message(Role::User, "one"),
            call("a"),
            result("a"),
            message(Role::Assistant, "1"),
            message(Role::User, "two"),
            message(Role::Assistant, "2"),
            message(Role::User, "three"),
        ]
    }

    #[test]
    fn a_call_is_removed_with_its_result() {
        let found = cut(&conversation(), &Selection { events: Some(3..5), ..Selection::default() });
        assert_eq!((found.removed, found.also_removed), (vec![2, 3, 4], vec![2]));
    }

    #[test]
    fn user_messages_begin_turns() {
        let found = cut(&conversation(), &Selection { turns: Some(1..2), ..Selection::default() });
        assert_eq!(found.removed, [5, 6]);
    }

    #[test]
    fn an_event_without_a_time_has_the_time_of_the_event_before() {
        let mut events = conversation();
        for (number, time) in [(1, "2026-03-02T10:00:00Z"), (5, "2026-03-02T11:00:00Z"), (7, "2026-03-02T12:00:00Z")] {
            events[number].time = Time::iso(time.into());
        }
        let time = |text: &str| text.parse().ok();
        let since = Selection { since: time("2026-03-02T11:00:00Z"), ..Selection::default() };
        assert_eq!(cut(&events, &since).removed, [5, 6, 7]);
        let both = Selection { until: time("2026-03-02T13:00:00+01:00"), ..since };
        assert_eq!(cut(&events, &both).removed, [5, 6]);
    }

    #[test]
    fn a_header_stays() {
        let mut events = conversation();
        events.insert(0, Event::new(Body::Fact { fact: "session".into(), content: None }));
        let found = cut(&events, &Selection { events: Some(0..3), ..Selection::default() });
        assert_eq!(found.protected, [0]);
    }

    #[test]
    fn every_part_has_the_system_prompt_and_every_event_is_in_one() {
        let events = conversation();
        let parts = split(&events, &SplitBy::Turns(1));
        assert_eq!(parts.parts.iter().map(|part| part.turns).collect::<Vec<_>>(), [1, 1, 1]);
        let mut texts = Vec::new();
        for part in &parts.parts {
            let left = parts.plan(&events, part).outcome(&events);
            assert_eq!(left[0].role(), Some(Role::System));
            texts.extend(left.into_iter().skip(1));
        }
        assert_eq!(texts, events[1..]);
    }

    #[test]
    fn a_split_that_would_separate_a_call_moves_to_the_next_place() {
        let events = conversation();
        let ranges = |places: &[usize]| -> Vec<Range<usize>> {
            split(&events, &SplitBy::Events(places.to_vec())).parts.into_iter().map(|part| part.events).collect()
        };
        assert_eq!(ranges(&[3]), [0..4, 4..8]);
        assert_eq!(ranges(&[6, 4]), [0..4, 4..6, 6..8]);
        assert_eq!(ranges(&[0, 99]).len(), 1);
    }

    #[test]
    fn parts_are_filled_up_to_a_number_of_tokens() {
        let words = Tokenizer::new("words", |text: &str| text.split_whitespace().count() as u64);
        let events = conversation();
        let tokens: Vec<u64> = events.iter().map(|event| words.event(event)).collect();
        let turns = |tokens_max| -> Vec<usize> {
            split(&events, &SplitBy::Tokens(tokens_max, &tokens)).parts.into_iter().map(|part| part.turns).collect()
        };
        // The system prompt is one word, the first turn five, the second two, the third one.
        assert_eq!(turns(8), [2, 1]);
        assert_eq!(turns(9), [3]);
        assert_eq!(turns(4), [1, 2]);
        assert_eq!(turns(1), [1, 1, 1]);
    }

    #[test]
    fn abandoned_turns_are_not_counted() {
        let rewind = Event::new(Body::Fact { fact: "rewind".into(), content: Some(Content::text("1")) });
        let events = [
            message(Role::User, "one"),
            message(Role::Assistant, "1"),
            message(Role::User, "two"),
            message(Role::Assistant, "2"),
            rewind,
            message(Role::User, "three"),
        ];
        let parts = split(&events, &SplitBy::Turns(1)).parts;
        let parts: Vec<_> = parts.into_iter().map(|part| (part.events, part.turns)).collect();
        assert_eq!(parts, [(0..5, 1), (5..6, 1)]);
    }

    #[test]
    fn a_result_without_an_id_is_removed_with_the_call_that_the_fold_pairs_it_with() {
        let mut events = conversation();
        events[3] = Event::new(Body::ToolResult { call: None, name: None, content: Content::text("r"), error: None });
        let found = cut(&events, &Selection { events: Some(3..4), ..Selection::default() });
        assert_eq!(found.removed, [2, 3]);
        // An id pairs across threads.
        events[3] = Event { thread: Some("side".into()), ..result("a") };
        let found = cut(&events, &Selection { events: Some(2..3), ..Selection::default() });
        assert_eq!(found.removed, [2, 3]);
    }

    #[test]
    fn many_open_calls_keep_their_results() {
        let ids: Vec<String> = (0..1000).map(|number| format!("call-{number}")).collect();
        let mut events = vec![message(Role::User, "one")];
        for id in &ids {
            let input = Input::Json(format!("{{\"id\":\"{id}\"}}").into());
            events.push(Event::new(Body::ToolCall { call: Some(id.clone().into()), name: "read".into(), input }));
        }
        let content = || Content::text("r");
        for id in &ids {
            let call = Some(id.clone().into());
            events.push(Event::new(Body::ToolResult { call, name: None, content: content(), error: None }));
        }
        let found = cut(&events, &Selection { events: Some(1001..1002), ..Selection::default() });
        assert_eq!(found.removed, [1, 1001]);
    }

    #[test]
    fn a_record_with_very_many_parts_is_removed_whole() {
        let at = Some(Span { offset: 10, length: 10, line: 2 });
        let mut events = vec![message(Role::User, "one")];
        for index in 0..100_000 {
            let part = Part { index, of: 100_000 };
            events.push(Event { at, part, ..message(Role::Assistant, "x") });
        }
        let found = cut(&events, &Selection { events: Some(100_000..100_001), ..Selection::default() });
        assert_eq!(found.removed.len(), 100_000);
    }
}
