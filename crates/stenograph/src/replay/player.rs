//! The position of a replay, and how commands change it. The caller passes the time; without it, nothing moves.

use std::time::Duration;

use super::timeline::Timeline;

/// The speed relative to the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

/// A slower replay looks like a pause, and a faster one is too fast to see.
const SPEED_MIN: f64 = 0.0625;
const SPEED_MAX: f64 = 1024.0;

impl Default for Speed {
    fn default() -> Speed {
        Speed(1.0)
    }
}

impl Speed {
    /// Parses a speed as people write it: `4x`, `0.5x`, `2`.
    pub fn parse(text: &str) -> Option<Speed> {
        let number: f64 = text.strip_suffix(['x', 'X']).unwrap_or(text).parse().ok()?;
        (SPEED_MIN..=SPEED_MAX).contains(&number).then_some(Speed(number))
    }

    fn times(self, factor: f64) -> Speed {
        Speed((self.0 * factor).clamp(SPEED_MIN, SPEED_MAX))
    }

    /// The duration of a stretch of recorded time at this speed.
    fn takes(self, ms: u64) -> Duration {
        Duration::from_secs_f64(ms as f64 / 1000.0 / self.0)
    }
}

impl std::fmt::Display for Speed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}x", self.0)
    }
}

/// Whether time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayState {
    /// It passes.
    Playing,
    /// It is paused.
    Paused,
}

/// A command of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Pause or resume.
    Pause,
    /// Show the next event now.
    Step,
    /// Go back by one event.
    Back,
    /// Go to the next user message.
    NextTurn,
    /// Go to the previous user message.
    PreviousTurn,
    /// Go to the event with this number.
    Go(u64),
    /// Go to the first event.
    First,
    /// Go to the last event.
    Last,
    /// Double the speed.
    Faster,
    /// Halve the speed.
    Slower,
}

/// Whether the screen must change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It must.
    Yes,
    /// It need not.
    No,
}

/// The position of a replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayClock {
    /// The number of events that are shown.
    shown: usize,
    state: PlayState,
    speed: Speed,
    /// The elapsed part of the wait for the next event.
    waited: Duration,
}

impl ReplayClock {
    /// A replay at its start.
    pub fn new(speed: Speed) -> ReplayClock {
        ReplayClock { shown: 0, state: PlayState::Playing, speed, waited: Duration::ZERO }
    }

    /// The place of the newest event that is shown.
    pub fn at(&self) -> Option<usize> {
        self.shown.checked_sub(1)
    }

    /// Whether time passes.
    pub fn state(&self) -> PlayState {
        self.state
    }

    /// The speed.
    pub fn speed(&self) -> Speed {
        self.speed
    }

    /// Whether all events are shown.
    pub fn is_at_end(&self, timeline: &Timeline) -> bool {
        self.shown >= timeline.len()
    }

    /// The time until the next event, if time passes and an event follows.
    pub fn due(&self, timeline: &Timeline) -> Option<Duration> {
        let waits = self.state == PlayState::Playing && !self.is_at_end(timeline);
        waits.then(|| self.speed.takes(timeline.wait(self.shown).played_ms).saturating_sub(self.waited))
    }

    /// Advances the time. At most one event becomes due, so that each one is seen.
    pub fn pass(&mut self, time: Duration, timeline: &Timeline) -> Changed {
        let Some(due) = self.due(timeline) else { return Changed::No };
        if due > time {
            self.waited += time;
            return Changed::No;
        }
        self.waited = Duration::ZERO;
        self.shown += 1;
        Changed::Yes
    }

    /// Carries out a command.
    pub fn obey(&mut self, command: Command, timeline: &Timeline) -> Changed {
        let before = (self.shown, self.state, self.speed);
        let here = self.at().unwrap_or(0);
        match command {
            Command::Pause => {
                self.state = match self.state {
                    PlayState::Playing => PlayState::Paused,
                    PlayState::Paused => PlayState::Playing,
                };
            }
            Command::Step => {
                self.state = PlayState::Paused;
                self.to(here + usize::from(self.shown > 0), timeline);
            }
            Command::Back => {
                self.state = PlayState::Paused;
                self.to(here.saturating_sub(1), timeline);
            }
            Command::NextTurn => self.to(timeline.next_turn(here).unwrap_or(usize::MAX), timeline),
            Command::PreviousTurn => self.to(timeline.previous_turn(here).unwrap_or(0), timeline),
            Command::Go(number) => self.to(timeline.place_of(number), timeline),
            Command::First => self.to(0, timeline),
            Command::Last => self.to(usize::MAX, timeline),
            Command::Faster => self.speed = self.speed.times(2.0),
            Command::Slower => self.speed = self.speed.times(0.5),
        }
        if before == (self.shown, self.state, self.speed) { Changed::No } else { Changed::Yes }
    }

    fn to(&mut self, place: usize, timeline: &Timeline) {
        self.waited = Duration::ZERO;
        self.shown = place.saturating_add(1).min(timeline.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Beat, Begins};

    const SECOND: Duration = Duration::from_secs(1);

    /// Five events, two seconds apart; the first and the fourth are the user's.
    fn timeline() -> Timeline {
        let mut timeline = Timeline::default();
        for number in 1..=5 {
            let begins = if matches!(number, 1 | 4) { Begins::Turn } else { Begins::Nothing };
            timeline.push(Beat { number: number * 10, time: Some(2_000 * number as i64), begins });
        }
        timeline
    }

    #[test]
    fn events_come_when_they_are_due() {
        let timeline = timeline();
        let mut player = ReplayClock::new(Speed::default());
        assert_eq!(player.pass(Duration::ZERO, &timeline), Changed::Yes);
        assert_eq!(player.pass(SECOND, &timeline), Changed::No);
        assert_eq!(player.due(&timeline), Some(SECOND));
        assert_eq!(player.pass(SECOND, &timeline), Changed::Yes);
        assert_eq!(player.at(), Some(1));
        player.obey(Command::Faster, &timeline);
        player.obey(Command::Faster, &timeline);
        assert_eq!(player.speed().to_string(), "4x");
        assert_eq!(player.due(&timeline), Some(SECOND / 2));
    }

    #[test]
    fn nothing_moves_while_it_is_paused() {
        let timeline = timeline();
        let mut player = ReplayClock::new(Speed::default());
        player.pass(SECOND, &timeline);
        assert_eq!(player.obey(Command::Pause, &timeline), Changed::Yes);
        assert_eq!((player.pass(60 * SECOND, &timeline), player.due(&timeline)), (Changed::No, None));
        assert_eq!((player.obey(Command::Step, &timeline), player.at()), (Changed::Yes, Some(1)));
        assert_eq!((player.obey(Command::Back, &timeline), player.at()), (Changed::Yes, Some(0)));
        assert_eq!(player.obey(Command::Back, &timeline), Changed::No);
    }

    #[test]
    fn one_can_go_anywhere_and_no_further() {
        let timeline = timeline();
        let mut player = ReplayClock::new(Speed::default());
        let mut to = |command| {
            player.obey(command, &timeline);
            player.at()
        };
        assert_eq!(to(Command::NextTurn), Some(3));
        assert_eq!(to(Command::PreviousTurn), Some(0));
        assert_eq!(to(Command::Go(25)), Some(2));
        assert_eq!(to(Command::Go(999)), Some(4));
        assert_eq!(to(Command::Step), Some(4));
        assert_eq!(to(Command::First), Some(0));
        assert_eq!(to(Command::Last), Some(4));
        assert!(player.is_at_end(&timeline));
    }

    #[test]
    fn nothing_can_be_played_of_nothing() {
        let (timeline, mut player) = (Timeline::default(), ReplayClock::new(Speed::default()));
        for command in [Command::Step, Command::Back, Command::NextTurn, Command::Go(3), Command::Last] {
            player.obey(command, &timeline);
            assert_eq!((player.at(), player.due(&timeline)), (None, None));
        }
    }

    #[test]
    fn a_speed_is_a_number_with_limits() {
        let spelled = ["4x", "0.5", "1024X"].map(|text| Speed::parse(text).unwrap().to_string());
        assert_eq!(spelled, ["4x", "0.5x", "1024x"]);
        for bad in ["", "x", "0", "-1", "nan", "inf", "2000x", "4xx"] {
            assert_eq!(Speed::parse(bad), None, "{bad}");
        }
    }
}
