//! One conversation: what was said last, and how much its model was given. A fold in bounded memory; its state is in
//! [`crate::run_state`], what went wrong in it in `trouble.rs`, what a compaction puts aside in `window.rs`.

use std::collections::VecDeque;

use xxhash_rust::xxh3::xxh3_64;

use super::report::{Context, LastMessage, Place, Step};
use super::trouble::OpenFailures;
use super::window::Window;
use crate::run_state::RunState;
use crate::text::beginning;

/// One conversation.
#[derive(Debug, Default)]
pub(super) struct Course {
    pub id: Option<String>,
    pub run: RunState,
    pub cwd: Option<String>,
    pub calls: u64,
    pub failed: u64,
    pub context: Series,
    pub said: Said,
    pub window: Window,
    pub troubles: OpenFailures,
    /// A fingerprint of what it was asked first.
    pub asked: Option<u64>,
    /// The compaction after which nobody has said yet how much is left.
    pub compacted: Option<usize>,
    pub mode: Option<String>,
    /// The last steps.
    pub steps: VecDeque<Step>,
}

/// How many steps before something are told.
const STEPS_MAX: usize = 5;

/// How much of a step is told.
pub(super) const STEP_SIZE_MAX: usize = 400;

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

    /// Whether anybody said or called something in it. A result alone belongs to a call of another conversation.
    pub fn has_begun(&self) -> bool {
        self.calls > 0 || self.asked.is_some() || self.said.last.is_some()
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
    last: Option<LastMessage>,
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
            None => self.last = Some(LastMessage { place, text: text.to_owned(), is_cut: false }),
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

    pub fn take(&mut self) -> Option<LastMessage> {
        self.last.take()
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
