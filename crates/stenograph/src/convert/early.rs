//! Results that are recorded before their calls. Agents write them when a tool is faster than the record of its call. Most
//! targets pair a result with an earlier call, so the conversion writes a result after its call. Only the order changes, and
//! the loss report says so.
//!
//! The first pass finds these results and keeps a few bytes per call. The writing pass buffers only those results.

use std::collections::{HashMap, HashSet};

use crate::model::{Body, Event, Part, Span, key};

/// The most bytes of the source between the beginning of a result and its call, which also bounds the size of the buffered
/// results. A result that is further away is written where it is.
const BUFFER_SIZE_MAX: u64 = 16 << 20;

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
                    && offset.saturating_sub(start) <= BUFFER_SIZE_MAX
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
    buffer: Vec<BufferedResult>,
}

#[derive(Debug)]
struct BufferedResult {
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
        let is_due = |result: &mut BufferedResult| event.part.index == 0 && result.is_due;
        let due = self.buffer.extract_if(.., is_due).map(|result| result.event).collect();
        if let (Body::ToolCall { .. }, Some(id)) = (&event.body, event.call().filter(|_| !event.restates).map(key)) {
            self.buffer.iter_mut().filter(|result| result.call == id).for_each(|result| result.is_due = true);
        }
        due
    }

    /// Whether the last event is a result that precedes its call.
    pub fn is_early(&self) -> bool {
        self.numbers.contains(&self.count)
    }

    /// Buffers a result.
    pub fn push(&mut self, event: &Event<'_>) {
        let call = event.call().map_or(0, key);
        let event = Event { part: Part::default(), carried: None, ..event.clone() };
        self.buffer.push(BufferedResult { event: event.into_owned(), call, is_due: false });
    }

    /// The results that are still buffered at the end of the source.
    pub fn drain(&mut self) -> Vec<Event<'static>> {
        self.buffer.drain(..).map(|result| result.event).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Content, Input};

    fn call(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "look".into(), input: Input::Json("{}".into()) })
    }

    fn result(id: &'static str, text: &'static str) -> Event<'static> {
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
            if early.is_early() { early.push(event) } else { out.push(event.clone()) }
        }
        out.extend(early.drain());
        let label = |event: &Event<'static>| match event.content() {
            Some(content) => content.joined().decode().into_owned(),
            None => event.call().unwrap_or_default().to_owned(),
        };
        out.iter().map(label).collect()
    }

    #[test]
    fn a_result_before_its_call_is_written_after_it() {
        let events = [result("a", "ra"), call("a"), call("b"), result("b", "rb")];
        assert_eq!(written(&events), ["a", "ra", "b", "rb"]);
        assert_eq!(written(&[result("a", "ra"), call("a")]), ["a", "ra"]);
    }

    #[test]
    fn a_late_result_does_not_split_the_record_of_its_call() {
        let part = |index, event: Event<'static>| Event { part: Part { index, of: 2 }, ..event };
        let events = [result("a", "ra"), part(0, call("a")), part(1, call("b")), result("b", "rb")];
        assert_eq!(written(&events), ["a", "b", "ra", "rb"]);
    }

    #[test]
    fn a_result_stays_in_place_if_no_call_needs_it() {
        assert_eq!(written(&[result("a", "ra"), call("b")]), ["ra", "b"]);
        let result_later = [result("a", "early"), call("a"), result("a", "late")];
        assert_eq!(written(&result_later), ["early", "a", "late"]);
        let repeated_call = [call("a"), result("a", "ra"), result("a", "again"), call("a")];
        assert_eq!(written(&repeated_call), ["a", "ra", "again", "a"]);
    }

    #[test]
    fn the_buffer_is_bounded() {
        let far = BUFFER_SIZE_MAX + 1;
        assert_eq!(written(&[at(0, result("a", "ra")), at(far, call("a"))]), ["ra", "a"]);
        assert_eq!(written(&[at(1, result("a", "ra")), at(far, call("a"))]), ["a", "ra"]);
    }
}
