//! Results that are recorded before their calls. Agents write them when a tool is faster than the record of its call. Most
//! targets pair a result with an earlier call, so the conversion writes a result after its call. Only the order changes, and
//! the loss report says so.
//!
//! The first pass finds these results and keeps a few bytes per call. The writing pass buffers only those results.

use std::collections::{HashMap, HashSet};

use crate::model::{Body, Event, Part, Span, key};

/// How many bytes of the source may lie between the beginning of a result and its call: the results that are held back at one time are
/// never larger than that. A result that is further away is written where it is.
const HELD_SIZE_MAX: u64 = 16 << 20;

/// Finds the results that are recorded before their calls. It takes every event of the source, in order.
#[derive(Debug, Default)]
pub struct EarlyResultFinder {
    count: u64,
    /// Fingerprints of the ids of all calls so far.
    calls: HashSet<u64>,
    /// Results without a call so far, by the id of the call, with their numbers and offsets.
    waiting: HashMap<u64, (u64, u64)>,
    /// The numbers of the results whose calls came later, by the id of the call.
    found: HashMap<u64, u64>,
}

impl EarlyResultFinder {
    /// Adds one event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.count += 1;
        let Some(id) = event.call().filter(|_| !event.restates).map(key) else { return };
        let offset = event.at.map_or(0, |at: Span| at.offset);
        match &event.body {
            Body::ToolCall { .. } if self.calls.insert(id) => {
                if let Some((number, start)) = self.waiting.remove(&id)
                    && offset.saturating_sub(start) <= HELD_SIZE_MAX
                {
                    self.found.insert(id, number);
                }
            }
            // A call with a result after it does not need the one before it.
            Body::ToolResult { .. } if self.calls.contains(&id) => {
                self.found.remove(&id);
            }
            Body::ToolResult { .. } => {
                self.waiting.entry(id).or_insert((self.count, offset));
            }
            _ => {}
        }
    }

    /// The found results, for the writing pass.
    pub fn finish(self) -> EarlyResults {
        EarlyResults { numbers: self.found.into_values().collect(), ..EarlyResults::default() }
    }
}

/// Buffers results until their calls are written.
#[derive(Debug, Default)]
pub struct EarlyResults {
    /// The numbers of the results that are recorded before their calls.
    numbers: HashSet<u64>,
    count: u64,
    held: Vec<HeldResult>,
}

#[derive(Debug)]
struct HeldResult {
    event: Event<'static>,
    call: u64,
    /// Whether its call was written.
    is_due: bool,
}

impl EarlyResults {
    /// Takes the next event of the source and returns the buffered results to write before it: a result follows the whole
    /// record of its call.
    pub fn due_before(&mut self, event: &Event<'_>) -> Vec<Event<'static>> {
        self.count += 1;
        let is_due = |held: &mut HeldResult| event.part.index == 0 && held.is_due;
        let due = self.held.extract_if(.., is_due).map(|held| held.event).collect();
        if let (Body::ToolCall { .. }, Some(id)) = (&event.body, event.call().filter(|_| !event.restates).map(key)) {
            self.held.iter_mut().filter(|held| held.call == id).for_each(|held| held.is_due = true);
        }
        due
    }

    /// Whether the last event is a result that precedes its call.
    pub fn is_early(&self) -> bool {
        self.numbers.contains(&self.count)
    }

    /// Holds a result back.
    pub fn hold(&mut self, event: &Event<'_>) {
        let call = event.call().map_or(0, key);
        let event = Event { part: Part::default(), carried: None, ..event.clone() };
        self.held.push(HeldResult { event: event.into_owned(), call, is_due: false });
    }

    /// The results that are held back at the end of the source.
    pub fn rest(&mut self) -> Vec<Event<'static>> {
        self.held.drain(..).map(|held| held.event).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Content, Input};

    fn called(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "look".into(), input: Input::Json("{}".into()) })
    }

    fn answered(id: &'static str, text: &'static str) -> Event<'static> {
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content: Content::text(text), error: None })
    }

    fn at(offset: u64, event: Event<'static>) -> Event<'static> {
        Event { at: Some(Span { offset, length: 1, line: 1 }), ..event }
    }

    /// The order in which events are written: calls by id, results by text.
    fn written(events: &[Event<'static>]) -> Vec<String> {
        let mut finder = EarlyResultFinder::default();
        events.iter().for_each(|event| finder.add(event));
        let mut early = finder.finish();
        let mut out = Vec::new();
        for event in events {
            out.extend(early.due_before(event));
            if early.is_early() { early.hold(event) } else { out.push(event.clone()) }
        }
        out.extend(early.rest());
        let said = |event: &Event<'static>| match event.content() {
            Some(content) => content.joined().decode().into_owned(),
            None => event.call().unwrap_or_default().to_owned(),
        };
        out.iter().map(said).collect()
    }

    #[test]
    fn a_result_before_its_call_is_written_after_it() {
        let events = [answered("a", "ra"), called("a"), called("b"), answered("b", "rb")];
        assert_eq!(written(&events), ["a", "ra", "b", "rb"]);
        assert_eq!(written(&[answered("a", "ra"), called("a")]), ["a", "ra"]);
    }

    #[test]
    fn it_does_not_divide_the_record_of_its_call() {
        let part = |index, event: Event<'static>| Event { part: Part { index, of: 2 }, ..event };
        let events = [answered("a", "ra"), part(0, called("a")), part(1, called("b")), answered("b", "rb")];
        assert_eq!(written(&events), ["a", "b", "ra", "rb"]);
    }

    #[test]
    fn a_result_stays_where_it_is_when_no_call_needs_it() {
        assert_eq!(written(&[answered("a", "ra"), called("b")]), ["ra", "b"]);
        let answered_later = [answered("a", "early"), called("a"), answered("a", "late")];
        assert_eq!(written(&answered_later), ["early", "a", "late"]);
        let told_again = [called("a"), answered("a", "ra"), answered("a", "again"), called("a")];
        assert_eq!(written(&told_again), ["a", "ra", "again", "a"]);
    }

    #[test]
    fn what_is_held_back_is_bounded() {
        let far = HELD_SIZE_MAX + 1;
        assert_eq!(written(&[at(0, answered("a", "ra")), at(far, called("a"))]), ["ra", "a"]);
        assert_eq!(written(&[at(1, answered("a", "ra")), at(far, called("a"))]), ["a", "ra"]);
    }
}
