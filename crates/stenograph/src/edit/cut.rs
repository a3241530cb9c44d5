//! Cutting: taking a stretch out of a conversation, or dividing it into several. No call is parted from its result, no response
//! of a model torn in two, and what a file needs to be one (a header, the system prompt) is in every piece.

mod divisions;

use std::collections::BTreeSet;
use std::ops::Range;

pub use divisions::{Division, Hindrance, divisions};

use super::sketch::{Fact, Sketch, Sketched, Sketches};
use super::units::{Units, bonds};
use super::{Fate, Plan};
use crate::model::{Kind, Role};

/// Selects the events for which every condition holds.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Events with these numbers, from 0.
    pub events: Option<Range<usize>>,
    /// Events of turns with these numbers, from 0.
    pub turns: Option<Range<usize>>,
    /// Events at this moment or later.
    pub since: Option<jiff::Timestamp>,
    /// Events before this moment.
    pub until: Option<jiff::Timestamp>,
}

/// What is taken out.
#[derive(Clone, Debug, Default)]
pub struct Cut {
    /// What happens to each event.
    pub plan: Plan,
    /// The events that go, by number.
    pub went: Vec<usize>,
    /// Those of them that were not selected and go because they belong to one that was.
    pub drawn_in: Vec<usize>,
    /// Those that were selected and stay, because the file would be none without them.
    pub kept: Vec<usize>,
}

/// Plans to take out what is selected.
pub fn cut<S: Sketched + ?Sized>(events: &S, selection: &Selection) -> Cut {
    let events = &*events.sketches();
    let times = moments(events);
    let turns = selection.turns.as_ref().map(|turns| stretch(events, turns));
    let selected = |number: &usize| {
        let at = times.get(*number).copied().flatten();
        let is_since = selection.since.is_none_or(|since| at.is_some_and(|at| at >= since));
        let is_until = selection.until.is_none_or(|until| at.is_some_and(|at| at < until));
        let within = |range: &Option<Range<usize>>| range.as_ref().is_none_or(|range| range.contains(number));
        within(&selection.events) && within(&turns) && is_since && is_until
    };
    let chosen: BTreeSet<usize> = (0..events.len()).filter(selected).collect();
    let needed = needed(events);
    let mut goes: BTreeSet<usize> =
        chosen.iter().copied().filter(|number| needed.get(*number) != Some(&true)).collect();
    // What belongs together goes together: a result of a call whose response goes draws in its call, and so on.
    let bonds = bonds(events);
    loop {
        let count = goes.len();
        for (one, other) in &bonds {
            if goes.contains(one) || goes.contains(other) {
                goes.extend([*one, *other]);
            }
        }
        if goes.len() == count {
            break;
        }
    }
    let mut plan = Plan::of_count(events.len());
    goes.iter().for_each(|number| plan.remove(*number));
    keep_heads(events, &mut plan);
    goes.retain(|number| plan.fate(*number) == Fate::Goes);
    let drawn_in = goes.difference(&chosen).copied().collect();
    let kept = chosen.difference(&goes).copied().collect();
    Cut { plan, went: goes.into_iter().collect(), drawn_in, kept }
}

/// A fact that stands for a record stays when anything of the record does.
fn keep_heads(events: &Sketches, plan: &mut Plan) {
    for range in events.records() {
        let head = events.get(range.start).is_some_and(|event| event.kind == Kind::Fact);
        if head && range.clone().any(|number| plan.fate(number) != Fate::Goes) {
            plan.keep(range.start);
        }
    }
}

/// Where a conversation is divided.
#[derive(Debug)]
pub enum Split<'a> {
    /// After every so many turns.
    Every(usize),
    /// Before these events, by number, or where that would tear something, at the next place where nothing is torn.
    At(Vec<usize>),
    /// So that no piece has more than so many tokens, unless a single turn has; and how many tokens each event has.
    Tokens(u64, &'a [u64]),
}

/// One piece of a divided conversation.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The stretch of events that is its own.
    pub events: Range<usize>,
    /// How many turns it has.
    pub turns: usize,
}

/// A conversation in pieces.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// The pieces, in order. Every event is in at least one of them.
    pub pieces: Vec<Piece>,
    /// For each event whether every piece has it.
    repeated: Vec<bool>,
}

impl Pieces {
    /// What is left of the whole in a piece.
    pub fn plan<S: Sketched + ?Sized>(&self, events: &S, piece: &Piece) -> Plan {
        let events = &*events.sketches();
        let mut plan = Plan::of_count(events.len());
        for number in (0..events.len()).filter(|number| !piece.events.contains(number)) {
            // What only restates goes where that goes which it restates.
            if self.repeated.get(number) != Some(&true) && events.tie(number).is_none() {
                plan.remove(number);
            }
        }
        keep_heads(events, &mut plan);
        plan
    }

    /// The plan of a piece as a session of its own: where the format states which session a record belongs to, it names another
    /// one, which follows from the session and the stretch. `None` when no record states one.
    pub fn plan_of_its_own<S: Sketched + ?Sized>(&self, events: &S, piece: &Piece) -> Option<Plan> {
        let events = &*events.sketches();
        let mut plan = self.plan(events, piece);
        let named = |(number, event): (usize, &Sketch)| event.has_session && plan.fate(number) != Fate::Goes;
        let named = events.iter().enumerate().any(named);
        plan.own_session = Some(piece.events.clone());
        named.then_some(plan)
    }
}

/// Plans the pieces of a conversation.
pub fn split<S: Sketched + ?Sized>(events: &S, how: &Split<'_>) -> Pieces {
    let events = &*events.sketches();
    let units = Units::of(events);
    let prelude = units.units.first().map_or(events.len(), |unit| unit.events.start);
    let needed = needed(events);
    let repeated = |(number, event): (usize, &Sketch)| {
        needed.get(number) == Some(&true) || event.fact == Fact::Title || number < prelude && is_prompt(event)
    };
    let repeated: Vec<bool> = events.iter().enumerate().map(repeated).collect();
    let starts = match how {
        Split::Every(turns) => every(&units, (*turns).max(1)),
        Split::At(places) => at(events, places),
        Split::Tokens(most, tokens) => by_tokens(&units, &repeated, *most, tokens),
    };
    let mut bounds: Vec<usize> = std::iter::once(0).chain(starts).chain([events.len()]).collect();
    bounds.dedup();
    let mut pieces = Vec::new();
    for range in bounds.windows(2).filter_map(|pair| Some(*pair.first()?..*pair.last()?)) {
        let own = units.units.iter().filter(|unit| range.contains(&unit.events.start));
        pieces.push(Piece { turns: own.map(|unit| unit.turns).sum(), events: range });
    }
    Pieces { pieces, repeated }
}

fn every(units: &Units, turns: usize) -> Vec<usize> {
    let (mut starts, mut count) = (Vec::new(), 0);
    for unit in &units.units {
        if count >= turns {
            starts.push(unit.events.start);
            count = 0;
        }
        count += unit.turns;
    }
    starts
}

fn at(events: &Sketches, places: &[usize]) -> Vec<usize> {
    let mut starts: Vec<usize> = divisions(events, places).iter().filter_map(|division| division.at).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

fn by_tokens(units: &Units, repeated: &[bool], most: u64, tokens: &[u64]) -> Vec<usize> {
    let count = repeated.len();
    let tokens = |number: usize| match tokens.get(number) {
        Some(tokens) if units.is_told(number) => *tokens,
        _ => 0,
    };
    let again: u64 = (0..count).filter(|number| repeated.get(*number) == Some(&true)).map(tokens).sum();
    let own = |range: &Range<usize>| -> u64 {
        range.clone().filter(|number| repeated.get(*number) != Some(&true)).map(tokens).sum()
    };
    let prelude = 0..units.units.first().map_or(count, |unit| unit.events.start);
    let (mut starts, mut total, mut empty) = (Vec::new(), again + own(&prelude), true);
    for unit in &units.units {
        let size = own(&unit.events);
        if !empty && total + size > most {
            starts.push(unit.events.start);
            total = again;
        }
        total += size;
        empty = false;
    }
    starts
}

/// The events of these turns.
fn stretch(events: &Sketches, turns: &Range<usize>) -> Range<usize> {
    let starts = Units::turns(events);
    let at = |turn: usize| starts.get(turn).copied().unwrap_or(events.len());
    at(turns.start)..at(turns.end)
}

/// For each event whether the file needs it: headers, and what is told of in one.
fn needed(events: &Sketches) -> Vec<bool> {
    let shared = super::units::shared_places(events);
    let needs =
        |(event, shared): (&Sketch, bool)| shared || matches!(event.fact, Fact::Session | Fact::End) && !event.restates;
    let needed: Vec<bool> = events.iter().zip(shared).map(needs).collect();
    // The parts of a header go together: the instructions stand in it.
    let first = |number: usize| {
        let back = events.get(number).map_or(0, |event| event.part as usize);
        number.saturating_sub(back)
    };
    let whole = |number: usize| {
        let head = first(number);
        let places = events.get(head).zip(events.get(number)).map(|(head, event)| (head.place(), event.place()));
        let same = places.is_some_and(|(head, place)| head == place && head.is_some());
        needed.get(number) == Some(&true) || same && needed.get(head) == Some(&true)
    };
    (0..events.len()).map(whole).collect()
}

/// What every piece of a conversation is told first.
fn is_prompt(event: &Sketch) -> bool {
    matches!(event.role, Some(Role::System | Role::Developer | Role::User))
}

/// The moment of each event. One that states none happened when the one before it did, or where none did, the one after it.
fn moments(events: &Sketches) -> Vec<Option<jiff::Timestamp>> {
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
    use crate::model::{Body, Content, Event, Input};
    use crate::time::Time;

    fn said(role: Role, text: &'static str) -> Event<'static> {
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
            said(Role::System, "rules"),
            said(Role::User, "one"),
            call("a"),
            result("a"),
            said(Role::Assistant, "1"),
            said(Role::User, "two"),
            said(Role::Assistant, "2"),
            said(Role::User, "three"),
        ]
    }

    #[test]
    fn a_call_goes_with_its_result() {
        let found = cut(&conversation(), &Selection { events: Some(3..5), ..Selection::default() });
        assert_eq!((found.went, found.drawn_in), (vec![2, 3, 4], vec![2]));
    }

    #[test]
    fn turns_are_counted_by_what_users_said() {
        let found = cut(&conversation(), &Selection { turns: Some(1..2), ..Selection::default() });
        assert_eq!(found.went, [5, 6]);
    }

    #[test]
    fn a_stretch_of_time_is_taken_out_and_what_states_none_goes_with_the_one_before() {
        let mut events = conversation();
        for (number, time) in [(1, "2026-03-02T10:00:00Z"), (5, "2026-03-02T11:00:00Z"), (7, "2026-03-02T12:00:00Z")] {
            events[number].time = Time::iso(time.into());
        }
        let time = |text: &str| text.parse().ok();
        let since = Selection { since: time("2026-03-02T11:00:00Z"), ..Selection::default() };
        assert_eq!(cut(&events, &since).went, [5, 6, 7]);
        let both = Selection { until: time("2026-03-02T13:00:00+01:00"), ..since };
        assert_eq!(cut(&events, &both).went, [5, 6]);
    }

    #[test]
    fn a_header_stays() {
        let mut events = conversation();
        events.insert(0, Event::new(Body::Fact { fact: "session".into(), content: None }));
        let found = cut(&events, &Selection { events: Some(0..3), ..Selection::default() });
        assert_eq!(found.kept, [0]);
    }

    #[test]
    fn every_piece_has_the_system_prompt_and_every_event_is_in_one() {
        let events = conversation();
        let pieces = split(&events, &Split::Every(1));
        assert_eq!(pieces.pieces.iter().map(|piece| piece.turns).collect::<Vec<_>>(), [1, 1, 1]);
        let mut texts = Vec::new();
        for piece in &pieces.pieces {
            let left = pieces.plan(&events, piece).outcome(&events);
            assert_eq!(left[0].role(), Some(Role::System));
            texts.extend(left.into_iter().skip(1));
        }
        assert_eq!(texts, events[1..]);
    }

    #[test]
    fn a_place_that_would_tear_something_moves_to_the_next_one_that_does_not() {
        let events = conversation();
        let ranges = |places: &[usize]| -> Vec<Range<usize>> {
            split(&events, &Split::At(places.to_vec())).pieces.into_iter().map(|piece| piece.events).collect()
        };
        assert_eq!(ranges(&[3]), [0..4, 4..8]);
        assert_eq!(ranges(&[6, 4]), [0..4, 4..6, 6..8]);
        assert_eq!(ranges(&[0, 99]).len(), 1);
    }

    #[test]
    fn pieces_are_filled_up_to_a_number_of_tokens() {
        let words = Tokenizer::new("words", |text: &str| text.split_whitespace().count() as u64);
        let events = conversation();
        let tokens: Vec<u64> = events.iter().map(|event| words.event(event)).collect();
        let turns = |most| -> Vec<usize> {
            split(&events, &Split::Tokens(most, &tokens)).pieces.into_iter().map(|piece| piece.turns).collect()
        };
        // The system prompt is one word, the first turn five, the second two, the third one.
        assert_eq!(turns(8), [2, 1]);
        assert_eq!(turns(9), [3]);
        assert_eq!(turns(4), [1, 2]);
        assert_eq!(turns(1), [1, 1, 1]);
    }
}
