//! The events to play, in order: for each one its number, its time, and the wait before it. This takes a few bytes per
//! event, whatever its size.

use crate::model::Event;
use crate::turns::begins_turn;

/// One event to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Its number in the source, from 1.
    pub number: u64,
    /// The time, in milliseconds since 1970.
    pub time: Option<i64>,
    /// Whether a user begins a turn with it.
    pub begins: Begins,
}

/// Whether a user begins a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// A user begins one.
    Turn,
    /// The turn continues.
    Nothing,
}

impl Beat {
    /// The beat of an event.
    pub fn of(number: u64, event: &Event<'_>) -> Beat {
        let begins = if begins_turn(event) { Begins::Turn } else { Begins::Nothing };
        let time = event.time.as_ref().and_then(crate::time::Time::to_millis);
        Beat { number, time, begins }
    }
}

/// The wait before an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// In milliseconds, at the original speed.
    pub played_ms: u64,
    /// The original duration, if it is known.
    pub recorded_ms: Option<u64>,
}

impl Wait {
    /// The original duration, if the wait is shorter.
    pub fn skipped(&self) -> Option<u64> {
        self.recorded_ms.filter(|recorded| *recorded > self.played_ms)
    }
}

/// The longest wait: a longer pause means that the user was away.
const WAIT_MAX_MS: u64 = 3_000;

/// The wait before an event without a known time: long enough to read a line.
const WAIT_UNKNOWN_MS: u64 = 1_000;

/// The events to play, in order.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    beats: Vec<Beat>,
}

impl Timeline {
    /// Adds the next event.
    pub fn push(&mut self, beat: Beat) {
        self.beats.push(beat);
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        self.beats.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.beats.is_empty()
    }

    /// The beat at this place.
    pub fn beat(&self, at: usize) -> Option<Beat> {
        self.beats.get(at).copied()
    }

    /// The wait before the event at this place. A time that goes back causes no wait.
    pub fn wait(&self, at: usize) -> Wait {
        let Some(before) = at.checked_sub(1).and_then(|before| self.beat(before)) else { return Wait::default() };
        let times = (before.time, self.beat(at).and_then(|beat| beat.time));
        let (Some(before), Some(here)) = times else { return Wait { played_ms: WAIT_UNKNOWN_MS, recorded_ms: None } };
        let recorded = u64::try_from(here.saturating_sub(before)).unwrap_or(0);
        Wait { played_ms: recorded.min(WAIT_MAX_MS), recorded_ms: Some(recorded) }
    }

    /// The time from the first known time to the event at this place, in milliseconds. An event without a time has that of
    /// the event before it.
    pub fn since_start(&self, at: usize) -> Option<u64> {
        let first = self.beats.iter().find_map(|beat| beat.time)?;
        let here = self.beats.get(..=at)?.iter().rev().find_map(|beat| beat.time)?;
        Some(u64::try_from(here.saturating_sub(first)).unwrap_or(0))
    }

    /// The place of the event with this number, or of the next one to play; the last one if none follows.
    pub(crate) fn place_of(&self, number: u64) -> usize {
        let place = self.beats.partition_point(|beat| beat.number < number);
        place.min(self.beats.len().saturating_sub(1))
    }

    /// The next place after this one where a user begins a turn.
    pub(crate) fn next_turn(&self, at: usize) -> Option<usize> {
        let after = at.saturating_add(1);
        let found = self.beats.get(after..)?.iter().position(|beat| beat.begins == Begins::Turn)?;
        Some(after + found)
    }

    /// The last place before this one where a user begins a turn.
    pub(crate) fn previous_turn(&self, at: usize) -> Option<usize> {
        self.beats.get(..at)?.iter().rposition(|beat| beat.begins == Begins::Turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn at(number: u64, seconds: Option<i64>) -> Beat {
        Beat { number, time: seconds.map(|seconds| seconds * 1000), begins: Begins::Nothing }
    }

    #[test]
    fn a_night_is_short_and_what_was_skipped_is_known() {
        let mut timeline = Timeline::default();
        [Some(0), Some(2), Some(30_002), Some(1), None].into_iter().for_each(|time| timeline.push(at(1, time)));
        assert_eq!(timeline.wait(0), Wait::default());
        assert_eq!((timeline.wait(1).played_ms, timeline.wait(1).skipped()), (2_000, None));
        assert_eq!((timeline.wait(2).played_ms, timeline.wait(2).skipped()), (WAIT_MAX_MS, Some(30_000_000)));
        assert_eq!((timeline.wait(3).played_ms, timeline.wait(3).skipped()), (0, None));
        assert_eq!((timeline.wait(4).played_ms, timeline.wait(4).skipped()), (WAIT_UNKNOWN_MS, None));
        assert_eq!((timeline.since_start(2), timeline.since_start(4)), (Some(30_002_000), Some(1_000)));
    }

    #[test]
    fn an_event_that_is_not_played_leads_to_the_next_one() {
        let mut timeline = Timeline::default();
        [3, 5, 9].into_iter().for_each(|number| timeline.push(at(number, None)));
        assert_eq!([0, 3, 4, 9, 99].map(|number| timeline.place_of(number)), [0, 0, 1, 2, 2]);
        assert_eq!(Timeline::default().place_of(7), 0);
    }

    #[test]
    fn a_beat_takes_few_bytes() {
        assert!(size_of::<Beat>() <= 32);
    }
}
