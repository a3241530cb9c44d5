//! A range of events, each end given by a number, as a search prints it, or by the id of a record. One pass over the events
//! finds the range, and can then report an end that was not found.

use crate::model::Event;

/// A position in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventPosition {
    /// The event with this number, counted from 1 over all events of the source.
    Number(u64),
    /// The record with this id.
    Id(String),
}

impl EventPosition {
    /// Parses a position: digits are a number, anything else is an id.
    pub fn parse(text: &str) -> EventPosition {
        text.parse().map_or_else(|_| EventPosition::Id(text.to_owned()), EventPosition::Number)
    }

    fn is(&self, number: u64, event: &Event<'_>) -> bool {
        match self {
            EventPosition::Number(wanted) => *wanted == number,
            EventPosition::Id(id) => event.id.as_deref() == Some(id),
        }
    }
}

impl std::fmt::Display for EventPosition {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EventPosition::Number(number) => write!(formatter, "event {number}"),
            EventPosition::Id(id) => write!(formatter, "event with the id {id}"),
        }
    }
}

/// The position of an event relative to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// Before it.
    Before,
    /// In it.
    Inside,
    /// After it.
    After,
}

/// From one position to another, both included. An open end reaches to the first or last event.
#[derive(Clone, Debug)]
pub struct Range {
    start: Option<EventPosition>,
    end: Option<EventPosition>,
    started: bool,
    ended: bool,
    /// Whether the range contained any event.
    held: bool,
    seen: u64,
}

impl Range {
    /// A range before the first event.
    pub fn new(start: Option<EventPosition>, end: Option<EventPosition>) -> Range {
        let started = start.is_none();
        // No event comes before the first one, so this range is already over.
        let ended = end == Some(EventPosition::Number(0));
        Range { start, end, started, ended, held: false, seen: 0 }
    }

    /// Counts the next event and returns its number and whether it is in the range. All parts of the record whose id ends
    /// the range are in it.
    pub fn next(&mut self, event: &Event<'_>) -> (u64, Within) {
        self.seen += 1;
        let number = self.seen;
        self.started |= self.start.as_ref().is_some_and(|start| start.is(number, event));
        let is_end = self.end.as_ref().is_some_and(|end| end.is(number, event));
        let within = match (self.started, self.ended && !is_end) {
            (false, _) => Within::Before,
            (true, false) => Within::Inside,
            (true, true) => Within::After,
        };
        self.ended |= is_end;
        self.held |= within == Within::Inside;
        (number, within)
    }

    /// An end that no event has. Call it after the last event.
    pub fn missing(&self) -> Option<&EventPosition> {
        let start = self.start.as_ref().filter(|_| !self.started);
        let is_missing = |end: &&EventPosition| match end {
            EventPosition::Number(number) => *number == 0,
            EventPosition::Id(_) => !self.ended,
        };
        start.or_else(|| self.end.as_ref().filter(is_missing))
    }

    /// The end and the start, if the end comes before the start. Call it after the last event.
    pub fn backwards(&self) -> Option<(&EventPosition, &EventPosition)> {
        self.end.as_ref().zip(self.start.as_ref()).filter(|_| self.started && self.ended && !self.held)
    }

    /// The number of counted events.
    pub fn seen(&self) -> u64 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(id: &'static str) -> Event<'static> {
        Event { id: Some(id.into()), ..Event::default() }
    }

    fn inside(start: Option<&str>, end: Option<&str>) -> (Vec<u64>, Option<EventPosition>) {
        let mut range = Range::new(start.map(EventPosition::parse), end.map(EventPosition::parse));
        let events = ["a", "b", "b", "c"].map(named);
        let inside = events.iter().map(|event| range.next(event)).filter(|(_, within)| *within == Within::Inside);
        (inside.map(|(number, _)| number).collect(), range.missing().cloned())
    }

    #[test]
    fn both_ends_are_included() {
        assert_eq!(inside(None, None), (vec![1, 2, 3, 4], None));
        assert_eq!(inside(Some("2"), Some("3")), (vec![2, 3], None));
        assert_eq!(inside(Some("b"), Some("b")), (vec![2, 3], None));
        assert_eq!(inside(Some("3"), None), (vec![3, 4], None));
    }

    #[test]
    fn a_range_that_runs_backwards_is_told() {
        let backwards = |start: &str, end: &str| {
            let mut range = Range::new(Some(EventPosition::parse(start)), Some(EventPosition::parse(end)));
            for event in ["a", "b", "b", "c"].map(named) {
                range.next(&event);
            }
            range.backwards().is_some()
        };
        assert!(backwards("3", "2") && backwards("c", "a") && backwards("4", "b"));
        assert!(!backwards("2", "3") && !backwards("3", "b") && !backwards("2", "9"));
    }

    #[test]
    fn what_is_not_there_is_told() {
        assert_eq!(inside(None, Some("0")), (vec![], Some(EventPosition::Number(0))));
        assert_eq!(inside(Some("9"), None), (vec![], Some(EventPosition::Number(9))));
        assert_eq!(inside(None, Some("z")).1, Some(EventPosition::Id("z".into())));
        // An open end reaches to the last event.
        assert_eq!(inside(None, Some("9")), (vec![1, 2, 3, 4], None));
    }
}
