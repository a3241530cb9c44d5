//! Which events are meant by their numbers, as `steno find` and `steno audit` give them: from 1, every event counted that `steno show`
//! reads under the same name.

use std::collections::BTreeSet;

/// Events that are asked for by number, and how far around them is looked.
#[derive(Debug)]
pub struct Numbers {
    wanted: BTreeSet<u64>,
    around: u64,
    seen: u64,
}

/// What an event is to those that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Near {
    /// It is one of them.
    Meant,
    /// It stands around one of them.
    Beside,
    /// It is none of them.
    Far,
}

impl Numbers {
    /// These events, and so many before and after each of them.
    pub fn new(wanted: &[u64], around: u64) -> Numbers {
        Numbers { wanted: wanted.iter().copied().collect(), around, seen: 0 }
    }

    /// Counts one more event: its number, and whether it is to be shown.
    pub fn next(&mut self) -> (u64, Near) {
        self.seen += 1;
        let number = self.seen;
        let range = number.saturating_sub(self.around)..=number.saturating_add(self.around);
        let near = match (self.wanted.contains(&number), self.wanted.range(range).next()) {
            (true, _) => Near::Meant,
            (false, Some(_)) => Near::Beside,
            (false, None) => Near::Far,
        };
        (number, near)
    }

    /// The first event that is shown, from 0.
    pub fn first(&self) -> u64 {
        self.wanted.first().map_or(0, |first| first.saturating_sub(self.around).saturating_sub(1))
    }

    /// Passes over the events before this one, counted from 0.
    pub fn skip_to(&mut self, event: u64) {
        self.seen = event;
    }

    /// Whether nothing that comes can be asked for any more.
    pub fn is_past(&self) -> bool {
        self.wanted.last().is_none_or(|last| self.seen >= last.saturating_add(self.around))
    }

    /// Those that the source does not have, once it was read.
    pub fn missing(&self) -> Vec<u64> {
        self.wanted.iter().copied().filter(|number| *number > self.seen).collect()
    }

    /// How many events were counted.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// How many digits the longest number has.
    pub fn width(&self) -> usize {
        self.wanted.last().map_or(1, |last| last.saturating_add(self.around).to_string().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_is_shown_too() {
        let mut numbers = Numbers::new(&[6, 2], 1);
        let seen: Vec<Near> = (0..8).map(|_| numbers.next().1).collect();
        use Near::{Beside, Far, Meant};
        assert_eq!(seen, [Beside, Meant, Beside, Far, Beside, Meant, Beside, Far]);
        assert!(numbers.is_past() && numbers.missing().is_empty());
    }

    #[test]
    fn what_is_not_there_is_told() {
        let mut numbers = Numbers::new(&[1, 9], 0);
        assert_eq!(numbers.next(), (1, Near::Meant));
        assert_eq!((numbers.is_past(), numbers.missing()), (false, vec![9]));
        assert_eq!(Numbers::new(&[u64::MAX], u64::MAX).next().1, Near::Beside);
    }
}
