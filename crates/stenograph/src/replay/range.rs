//! From which event to which: by number, as a search gives it, or by the id of a record. The range is found on one way through the
//! events, and what was not found can be told afterwards.

use crate::model::Event;

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The event of this number, from 1, every event of the source counted.
    Number(u64),
    /// The record of this id.
    Id(String),
}

impl Place {
    /// What somebody means: digits are a number, all else an id.
    pub fn parse(text: &str) -> Place {
        text.parse().map_or_else(|_| Place::Id(text.to_owned()), Place::Number)
    }

    fn is(&self, number: u64, event: &Event<'_>) -> bool {
        match self {
            Place::Number(wanted) => *wanted == number,
            Place::Id(id) => event.id.as_deref() == Some(id),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Number(number) => write!(formatter, "event {number}"),
            Place::Id(id) => write!(formatter, "event with the id {id}"),
        }
    }
}

/// Where an event is in relation to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// It stands before it.
    Before,
    /// It is in it.
    Inside,
    /// It stands behind it.
    After,
}

/// From one place to another, both included; an open end goes as far as there is.
#[derive(Clone, Debug)]
pub struct Range {
    start: Option<Place>,
    end: Option<Place>,
    started: bool,
    ended: bool,
    /// Whether any event was in it.
    held: bool,
    seen: u64,
}

impl Range {
    /// A range that nothing was asked about yet.
    pub fn new(start: Option<Place>, end: Option<Place>) -> Range {
        let started = start.is_none();
        // Nothing comes before the first event: such a range is over before it begins.
        let ended = end == Some(Place::Number(0));
        Range { start, end, started, ended, held: false, seen: 0 }
    }

    /// Counts the next event: its number, and whether it is in the range. The parts of a record with the id at the end are all in it.
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

    /// A place that no event has, once all were counted.
    pub fn missing(&self) -> Option<&Place> {
        let start = self.start.as_ref().filter(|_| !self.started);
        let is_missing = |end: &&Place| match end {
            Place::Number(number) => *number == 0,
            Place::Id(_) => !self.ended,
        };
        start.or_else(|| self.end.as_ref().filter(is_missing))
    }

    /// The end and the start, once all were counted, if the end comes before the start.
    pub fn backwards(&self) -> Option<(&Place, &Place)> {
        self.end.as_ref().zip(self.start.as_ref()).filter(|_| self.started && self.ended && !self.held)
    }

    /// How many events were counted.
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

    fn inside(start: Option<&str>, end: Option<&str>) -> (Vec<u64>, Option<Place>) {
        let mut range = Range::new(start.map(Place::parse), end.map(Place::parse));
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
            let mut range = Range::new(Some(Place::parse(start)), Some(Place::parse(end)));
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
        assert_eq!(inside(None, Some("0")), (vec![], Some(Place::Number(0))));
        assert_eq!(inside(Some("9"), None), (vec![], Some(Place::Number(9))));
        assert_eq!(inside(None, Some("z")).1, Some(Place::Id("z".into())));
        // As far as there is.
        assert_eq!(inside(None, Some("9")), (vec![1, 2, 3, 4], None));
    }
}
