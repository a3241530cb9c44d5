//! One conversation: what was said last, how much its model was given, where it gets nowhere. A fold in bounded memory; what went wrong in it
//! is in `trouble.rs`, what a compaction puts aside in `window.rs`.

use std::collections::VecDeque;

use xxhash_rust::xxh3::xxh3_64;

use super::report::{CallOutcome, Context, Last, Phase, PhaseKind, Place, Step};
use super::trouble::OpenFailures;
use super::window::Window;
use crate::status::Watch;
use crate::text::beginning;

/// One conversation.
#[derive(Debug, Default)]
pub(super) struct Course {
    pub id: Option<String>,
    pub watch: Watch,
    pub cwd: Option<String>,
    pub calls: u64,
    pub failed: u64,
    pub context: Series,
    pub said: Said,
    pub window: Window,
    pub phases: Phases,
    pub troubles: OpenFailures,
    /// A fingerprint of what it was asked first.
    pub asked: Option<u64>,
    /// Whether anything was said or done in it.
    pub has_begun: bool,
    /// The compaction after which nobody has said yet how much is left.
    pub compacted: Option<usize>,
    /// The step that calls are made in: calls with nothing between them are one.
    pub step: u64,
    /// Whether something came since the last call.
    pub has_moved: bool,
    pub mode: Option<String>,
    /// The last result that went wrong, until one goes well.
    pub steps: VecDeque<Step>,
}

/// How many steps before something are told.
const STEPS_MAX: usize = 5;

/// How much of a step is told.
const STEP_SIZE_MAX: usize = 400;

impl Course {
    /// A step was taken.
    pub fn step(&mut self, mut step: Step) {
        step.text = beginning(step.text.trim(), STEP_SIZE_MAX).to_owned();
        self.troubles.tried(&step);
        if self.steps.len() >= STEPS_MAX {
            self.steps.pop_front();
        }
        self.steps.push_back(step);
    }

    /// The step that a call is made in.
    pub fn step_of_call(&mut self) -> u64 {
        if std::mem::take(&mut self.has_moved) {
            self.step += 1;
        }
        self.step
    }

    /// What a prompt begins with, to know the conversation by.
    pub fn print(text: &str) -> u64 {
        xxh3_64(text.trim().as_bytes())
    }
}

/// How much a model was given, call by call.
#[derive(Debug, Default)]
pub(super) struct Series {
    context: Context,
    group: Option<u64>,
    stride: u64,
}

/// How many calls of a series are kept; of a longer one every second, and so on.
const SERIES_MAX: usize = 4096;

impl Series {
    /// A call of the model took so many tokens. Records of one response tell of one call.
    pub fn add(&mut self, group: Option<&str>, tokens: u64, place: Place) {
        let group = group.map(|group| xxh3_64(group.as_bytes()));
        let is_same = group.is_some() && group == self.group;
        self.group = group;
        let context = &mut self.context;
        context.max = context.max.max(tokens);
        if is_same {
            context.last = context.last.max(tokens);
            // The last call is only in the series if its number is one of those that are kept.
            let is_kept = context.calls.saturating_sub(1).is_multiple_of(self.stride.max(1));
            if let Some(last) = context.series.last_mut().filter(|_| is_kept) {
                last.2 = last.2.max(tokens);
            }
            return;
        }
        if context.calls == 0 {
            context.first = tokens;
        }
        context.last = tokens;
        context.calls += 1;
        self.stride = self.stride.max(1);
        if context.series.len() >= SERIES_MAX {
            let mut at = 0;
            context.series.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
        }
        if (context.calls - 1).is_multiple_of(self.stride) {
            context.series.push((place.event, place.time_ms, tokens));
        }
    }

    /// How much was given with the last call.
    pub fn last(&self) -> Option<u64> {
        (self.context.calls > 0).then_some(self.context.last)
    }

    pub fn take(&mut self) -> Context {
        std::mem::take(&mut self.context)
    }
}

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Said {
    last: Option<Last>,
    group: Option<u64>,
    /// Whether the response is still being told: nothing else happened since.
    is_open: bool,
}

/// How long the last message may be. Nobody reads a longer one.
const LAST_SIZE_MAX: usize = 1 << 20;

impl Said {
    /// The model said something.
    pub fn say(&mut self, group: Option<&str>, text: &str, place: Place) {
        if text.trim().is_empty() {
            return;
        }
        let group = group.map(|group| xxh3_64(group.as_bytes()));
        let goes_on = if group.is_some() { group == self.group } else { self.is_open && self.group.is_none() };
        self.group = group;
        self.is_open = true;
        match self.last.as_mut().filter(|_| goes_on) {
            // A record may be told again as it grows.
            Some(last) if last.text.ends_with(text) => {}
            Some(last) if text.starts_with(last.text.as_str()) => text.clone_into(&mut last.text),
            Some(last) => {
                last.text.push_str("\n\n");
                last.text.push_str(text);
            }
            None => self.last = Some(Last { place, text: text.to_owned(), is_cut: false }),
        }
        if let Some(last) = self.last.as_mut().filter(|last| last.text.len() > LAST_SIZE_MAX) {
            last.text = beginning(&last.text, LAST_SIZE_MAX).to_owned();
            last.is_cut = true;
        }
    }

    /// Something else happened.
    pub fn close(&mut self) {
        self.is_open = false;
    }

    /// The final word, which mostly says again what was said.
    pub fn end(&mut self, text: &str, place: Place) {
        let is_said = self.last.as_ref().is_some_and(|last| last.text.contains(text.trim()));
        if !text.trim().is_empty() && !is_said {
            self.close();
            self.group = None;
            self.say(None, text, place);
        }
        self.close();
    }

    pub fn take(&mut self) -> Option<Last> {
        self.last.take()
    }
}

/// Where a conversation gets nowhere, by the rules of [`crate::status`].
#[derive(Debug, Default)]
pub(super) struct Phases {
    recent: VecDeque<Recent>,
    failing: Option<Phase>,
    failing_step: Option<u64>,
    repeating: Option<(u64, Phase)>,
}

#[derive(Debug)]
struct Recent {
    print: u64,
    place: Place,
}

/// Among so many calls,
const RECENT_MAX: usize = 10;

/// so many equal ones are too many.
const EQUAL_MIN: usize = 5;

/// So many steps that fail in a row are too many.
const FAILING_MIN: u64 = 3;

/// A result, for the phases.
pub(super) struct Result<'a> {
    pub thread: usize,
    pub call: Place,
    pub place: Place,
    pub step: u64,
    /// A fingerprint of the call, its input and its answer.
    pub print: u64,
    pub tool: &'a str,
    pub about: &'a str,
    pub outcome: CallOutcome,
}

impl Phases {
    /// A call was answered; gives the phases that are over with it.
    pub fn add(&mut self, result: &Result<'_>) -> impl Iterator<Item = Phase> + use<> {
        let failed = self.fail(result);
        let repeated = self.repeat(result);
        failed.into_iter().chain(repeated)
    }

    /// The phases that last to the end.
    pub fn end(&mut self) -> impl Iterator<Item = Phase> + use<> {
        let failing = self.failing.take().filter(|phase| phase.count >= FAILING_MIN);
        let repeating = self.repeating.take().map(|(_, phase)| phase);
        failing.into_iter().chain(repeating)
    }

    fn fail(&mut self, result: &Result<'_>) -> Option<Phase> {
        if !result.outcome.is_failure() {
            self.failing_step = None;
            return self.failing.take().filter(|phase| phase.count >= FAILING_MIN);
        }
        match &mut self.failing {
            // Calls that were made together fail together: that is one step.
            Some(phase) => {
                phase.count += u64::from(self.failing_step != Some(result.step));
                phase.to = result.place;
                phase.tool = result.tool.to_owned();
                phase.about = beginning(result.about, STEP_SIZE_MAX).to_owned();
            }
            None => self.failing = Some(result.phase(PhaseKind::Failing, result.call, 1)),
        }
        self.failing_step = Some(result.step);
        None
    }

    fn repeat(&mut self, result: &Result<'_>) -> Option<Phase> {
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent { print: result.print, place: result.call });
        let alike = |print: u64| self.recent.iter().filter(move |recent| recent.print == print);
        if let Some((print, phase)) = &mut self.repeating {
            if *print == result.print {
                phase.count += 1;
                phase.to = result.place;
                return None;
            }
            if alike(*print).count() >= EQUAL_MIN {
                return None;
            }
        }
        let over = self.repeating.take().map(|(_, phase)| phase);
        let count = alike(result.print).count();
        if count >= EQUAL_MIN
            && let Some(first) = alike(result.print).next()
        {
            let from = first.place;
            self.repeating = Some((result.print, result.phase(PhaseKind::Repeating, from, count as u64)));
        }
        over
    }
}

impl Result<'_> {
    fn phase(&self, kind: PhaseKind, from: Place, count: u64) -> Phase {
        Phase {
            kind,
            thread: self.thread,
            from,
            to: self.place,
            count,
            tool: self.tool.to_owned(),
            about: beginning(self.about, STEP_SIZE_MAX).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_not_in_the_series_changes_nothing_in_it() {
        let mut series = Series::default();
        let mut add = |number: usize, tokens: u64| {
            series.add(Some(&number.to_string()), tokens, Place::default());
            series.context.series.last().map(|(.., tokens)| *tokens)
        };
        // Once there are too many, every second call is kept: the first, the third, and so on.
        for number in 1..=SERIES_MAX + 2 {
            add(number, 1);
        }
        assert_eq!(add(SERIES_MAX + 2, 9), Some(1), "another record of a call that is left out");
        assert_eq!(add(SERIES_MAX + 3, 1), Some(1));
        assert_eq!(add(SERIES_MAX + 3, 9), Some(9), "another record of a call that is kept");
    }
}
