//! Selects events by number, as `steno find` and `steno audit` state them: counted from 1 over all events that `steno show`
//! reads under the same name.

use std::collections::BTreeSet;

/// The requested events, and how many neighbours of each to show.
#[derive(Debug)]
pub struct NumberSelection {
    wanted: BTreeSet<u64>,
    around: u64,
    seen: u64,
}

/// The relation of an event to the requested ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearness {
    Requested,
    Neighbour,
    Far,
}

impl NumberSelection {
    pub fn new(wanted: &[u64], around: u64) -> NumberSelection {
        NumberSelection { wanted: wanted.iter().copied().collect(), around, seen: 0 }
    }

    /// Counts an event; returns its number and its relation.
    pub fn next(&mut self) -> (u64, Nearness) {
        self.seen += 1;
        let number = self.seen;
        let range = number.saturating_sub(self.around)..=number.saturating_add(self.around);
        let nearness = match (self.wanted.contains(&number), self.wanted.range(range).next()) {
            (true, _) => Nearness::Requested,
            (false, Some(_)) => Nearness::Neighbour,
            (false, None) => Nearness::Far,
        };
        (number, nearness)
    }

    /// The first event to show, from 0.
    pub fn first(&self) -> u64 {
        self.wanted.first().map_or(0, |first| first.saturating_sub(self.around).saturating_sub(1))
    }

    /// Skips the events before `event`, which counts from 0.
    pub fn skip_to(&mut self, event: u64) {
        self.seen = event;
    }

    /// Whether no further event can be requested.
    pub fn is_past(&self) -> bool {
        self.wanted.last().is_none_or(|last| self.seen >= last.saturating_add(self.around))
    }

    /// The requested events that the source does not have, once it is read.
    pub fn missing(&self) -> Vec<u64> {
        self.wanted.iter().copied().filter(|number| *number > self.seen).collect()
    }

    pub fn seen(&self) -> u64 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_a_requested_event_are_shown_too() {
        let mut numbers = NumberSelection::new(&[6, 2], 1);
        let seen: Vec<Nearness> = (0..8).map(|_| numbers.next().1).collect();
        use Nearness::{Far, Neighbour, Requested};
        assert_eq!(seen, [Neighbour, Requested, Neighbour, Far, Neighbour, Requested, Neighbour, Far]);
        assert!(numbers.is_past() && numbers.missing().is_empty());
    }

    #[test]
    fn missing_events_are_reported() {
        let mut numbers = NumberSelection::new(&[1, 9], 0);
        assert_eq!(numbers.next(), (1, Nearness::Requested));
        assert_eq!((numbers.is_past(), numbers.missing()), (false, vec![9]));
        assert_eq!(NumberSelection::new(&[u64::MAX], u64::MAX).next().1, Nearness::Neighbour);
    }
}
