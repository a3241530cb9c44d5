//! One conversation: its last message and the size of its context. A fold in bounded memory. [`crate::run_state`] has the state of its run,
//! `failures.rs` its open failures, and `window.rs` what a compaction removes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::context_parts::ContextParts;
use super::failures::OpenFailures;
use super::report::{AgentState, AuditStep, ContextSize, End, EventPlace, LastMessage};
use super::window::Window;
use crate::run_state::{RunPhase, RunState, State};
use crate::text::beginning;

/// The state of one conversation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ConversationState {
    pub id: Option<String>,
    pub run: RunState,
    pub cwd: Option<String>,
    pub calls: u64,
    pub failed: u64,
    pub context: ContextSeries,
    pub last_message: LastMessageBuilder,
    pub window: Window,
    pub failures: OpenFailures,
    /// A hash of its first user message.
    pub first_message_hash: Option<u64>,
    /// The last compaction, until a record states the size of the context after it.
    pub unmeasured_compaction: Option<usize>,
    pub mode: Option<String>,
    /// The last steps.
    pub steps: VecDeque<AuditStep>,
}

/// The most steps that are reported before a failure.
const STEPS_MAX: usize = 5;

/// The most bytes of a step.
pub(super) const STEP_SIZE_MAX: usize = 400;

impl ConversationState {
    /// Adds a step.
    pub fn step(&mut self, mut step: AuditStep) {
        step.text = beginning(step.text.trim(), STEP_SIZE_MAX).to_owned();
        self.failures.add_step(&step);
        if self.steps.len() >= STEPS_MAX {
            self.steps.pop_front();
        }
        self.steps.push_back(step);
    }

    /// Changes the outcome of a step that a later record decides. Returns the steps before it.
    pub fn decide_step(&mut self, decided: &AuditStep) -> Vec<AuditStep> {
        let change = |step: &mut AuditStep| (step.outcome, step.exit) = (decided.outcome, decided.exit);
        let is_same = |step: &AuditStep| step.tool.is_some() && step.place == decided.place;
        self.failures.steps().filter(|step| is_same(step)).for_each(change);
        let at = self.steps.iter().position(is_same);
        if let Some(step) = at.and_then(|at| self.steps.get_mut(at)) {
            change(step);
        }
        self.steps.iter().take(at.unwrap_or(self.steps.len())).cloned().collect()
    }

    /// Whether it has a message or a call, or states its end. A result alone belongs to a call of another conversation.
    pub fn has_begun(&self) -> bool {
        let is_over = matches!(self.run.phase(), RunPhase::Over(..));
        self.calls > 0 || self.first_message_hash.is_some() || self.last_message.last.is_some() || is_over
    }

    /// The state of the agent that had it.
    pub fn agent_state(&self) -> AgentState {
        match End::of(&self.run, self.id.is_some()).state {
            State::Idle | State::Completed => AgentState::Completed,
            State::Failed | State::Error => AgentState::Failed,
            State::Running | State::Stuck | State::Stalled | State::Unknown => AgentState::Unknown,
        }
    }

    /// The hash of a prompt, which identifies the conversation of an agent.
    pub fn hash(text: &str) -> u64 {
        xxh3_64(text.trim().as_bytes())
    }
}

/// The size of the context at each model call.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ContextSeries {
    context: ContextSize,
    group: Option<u64>,
    stride: u64,
}

/// The most calls in a series. A longer series keeps every second call, then every fourth, and so on.
const SERIES_MAX: usize = 4096;

impl ContextSeries {
    /// Adds a model call with this many tokens. All records of one response are one call.
    pub fn add(&mut self, group: Option<&str>, tokens: u64, place: EventPlace) {
        let group = group.map(|group| xxh3_64(group.as_bytes()));
        let is_same = group.is_some() && group == self.group;
        self.group = group;
        let context = &mut self.context;
        context.max = context.max.max(tokens);
        if is_same {
            context.last = context.last.max(tokens);
            // The series has the last call only if its number is a multiple of the stride.
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

    /// What it consists of.
    pub fn parts(&mut self) -> &mut ContextParts {
        &mut self.context.parts
    }

    /// The size at the last call.
    pub fn last(&self) -> Option<u64> {
        (self.context.calls > 0).then_some(self.context.last)
    }

    pub fn take(&mut self) -> ContextSize {
        std::mem::take(&mut self.context)
    }
}

/// Joins the records of the last response.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LastMessageBuilder {
    last: Option<LastMessage>,
    group: Option<u64>,
    /// Whether the response may continue: nothing else happened since.
    is_open: bool,
}

/// The most bytes of the last message. Nobody reads a longer one.
const LAST_SIZE_MAX: usize = 1 << 20;

impl LastMessageBuilder {
    /// Adds a message of the model.
    pub fn say(&mut self, group: Option<&str>, text: &str, place: EventPlace) {
        if text.trim().is_empty() {
            return;
        }
        let group = group.map(|group| xxh3_64(group.as_bytes()));
        let continues = if group.is_some() { group == self.group } else { self.is_open && self.group.is_none() };
        self.group = group;
        self.is_open = true;
        match self.last.as_mut().filter(|_| continues) {
            // A later record may repeat the text so far.
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

    /// Ends the response: something else happened.
    pub fn close(&mut self) {
        self.is_open = false;
    }

    /// Adds the final text of a run, which usually repeats the last message.
    pub fn end(&mut self, text: &str, place: EventPlace) {
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
    fn a_call_outside_the_series_does_not_change_it() {
        let mut series = ContextSeries::default();
        let mut add = |number: usize, tokens: u64| {
            series.add(Some(&number.to_string()), tokens, EventPlace::default());
            series.context.series.last().map(|(.., tokens)| *tokens)
        };
        // Beyond the limit, the series keeps every second call: the first, the third, and so on.
        for number in 1..=SERIES_MAX + 2 {
            add(number, 1);
        }
        assert_eq!(add(SERIES_MAX + 2, 9), Some(1), "another record of a call that is left out");
        assert_eq!(add(SERIES_MAX + 3, 1), Some(1));
        assert_eq!(add(SERIES_MAX + 3, 9), Some(9), "another record of a call that is kept");
    }
}
