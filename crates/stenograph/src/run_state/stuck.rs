//! Detects runs without progress: their steps fail one after the other, or they repeat the same call.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::EventPlace;
use crate::calls::CallStep;

/// The kind of a stretch without progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StuckKind {
    /// Step after step failed.
    Failing,
    /// The same call was repeated and gave the same result.
    Repeating,
}

impl StuckKind {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            StuckKind::Failing => "failing",
            StuckKind::Repeating => "repeating",
        }
    }
}

/// A stretch in which a run makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// Its kind.
    pub kind: StuckKind,
    /// The first of its calls, or the result if the call is unknown.
    pub from: EventPlace,
    /// The last of its results.
    pub to: EventPlace,
    /// How many steps, or equal calls, it has.
    pub count: u64,
    /// The number of the last of its calls, as [`Calls`](crate::calls::Calls) numbers them.
    pub call: Option<u64>,
}

/// The last calls, as far as the rules need them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StuckRules {
    /// Calls without a result.
    made: VecDeque<MadeCall>,
    /// Calls with a result.
    answered: VecDeque<AnsweredCall>,
    failing: Option<Stuck>,
    failing_step: Option<u64>,
    repeating: Option<(u64, Stuck)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct MadeCall {
    number: u64,
    /// A fingerprint of the tool and its input.
    fingerprint: u64,
    step: u64,
    place: EventPlace,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct AnsweredCall {
    /// A fingerprint of the tool, its input and its result.
    fingerprint: u64,
    place: EventPlace,
}

/// How many calls that wait for their results are remembered.
const MADE_MAX: usize = 64;

/// Among this many answered calls, [`EQUAL_MIN`] equal ones mean that the run repeats itself.
const ANSWERED_MAX: usize = 10;
const EQUAL_MIN: usize = 5;

/// This many failed steps in a row mean that the run fails.
const FAILING_MIN: u64 = 3;

impl StuckRules {
    pub fn call(&mut self, number: u64, fingerprint: Option<u64>, step: u64, place: EventPlace) {
        if self.made.len() >= MADE_MAX {
            self.made.pop_front();
        }
        self.made.push_back(MadeCall { number, fingerprint: fingerprint.unwrap_or_default(), step, place });
    }

    /// Adds a result, and returns the stretches that end with it.
    pub fn result(&mut self, step: &CallStep, result: u64, place: EventPlace) -> Vec<Stuck> {
        let at = self.made.iter().position(|made| Some(made.number) == step.call);
        let made = at.and_then(|at| self.made.remove(at));
        let failed = if step.has_failed() {
            self.fail(made.as_ref(), place);
            None
        } else {
            self.failing_step = None;
            self.failing.take().filter(|stuck| stuck.count >= FAILING_MIN)
        };
        let repeated = made.and_then(|made| self.repeat(&made, result, place));
        failed.into_iter().chain(repeated).collect()
    }

    /// Ends the current stretches and returns them.
    pub fn end(&mut self) -> Vec<Stuck> {
        let ended = self.now().collect();
        (self.failing, self.failing_step, self.repeating) = (None, None, None);
        self.answered.clear();
        ended
    }

    /// The current stretches.
    pub fn now(&self) -> impl Iterator<Item = Stuck> {
        let failing = self.failing.filter(|stuck| stuck.count >= FAILING_MIN);
        failing.into_iter().chain(self.repeating.map(|(_, stuck)| stuck))
    }

    fn fail(&mut self, made: Option<&MadeCall>, place: EventPlace) {
        let (step, call) = (made.map(|made| made.step), made.map(|made| made.number));
        match &mut self.failing {
            // A result whose call is not known is a step of its own.
            Some(stuck) => {
                stuck.count += u64::from(step.is_none() || step != self.failing_step);
                (stuck.to, stuck.call) = (place, call);
            }
            None => {
                let from = made.map_or(place, |made| made.place);
                self.failing = Some(Stuck { kind: StuckKind::Failing, from, to: place, count: 1, call });
            }
        }
        self.failing_step = step;
    }

    fn repeat(&mut self, made: &MadeCall, result: u64, place: EventPlace) -> Option<Stuck> {
        let fingerprint = xxh3_64_with_seed(&result.to_le_bytes(), made.fingerprint);
        if self.answered.len() >= ANSWERED_MAX {
            self.answered.pop_front();
        }
        self.answered.push_back(AnsweredCall { fingerprint, place: made.place });
        let equal = |fingerprint: u64| self.answered.iter().filter(move |one| one.fingerprint == fingerprint);
        if let Some((repeated, stuck)) = &mut self.repeating {
            if *repeated == fingerprint {
                stuck.count += 1;
                (stuck.to, stuck.call) = (place, Some(made.number));
                return None;
            }
            if equal(*repeated).count() >= EQUAL_MIN {
                return None;
            }
        }
        let ended = self.repeating.take().map(|(_, stuck)| stuck);
        let count = equal(fingerprint).count();
        if count >= EQUAL_MIN
            && let Some(first) = equal(fingerprint).next()
        {
            let (from, call) = (first.place, Some(made.number));
            let stuck = Stuck { kind: StuckKind::Repeating, from, to: place, count: count as u64, call };
            self.repeating = Some((fingerprint, stuck));
        }
        ended
    }
}
