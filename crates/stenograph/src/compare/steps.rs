//! The steps of a conversation for the comparison. Everything that compares two conversations builds their steps here, so that
//! all of them align the same way.

use super::diff_step::DiffStep;
use crate::calls::{CallStep, Calls};
use crate::evidence::nested_events;
use crate::model::{Event, LeftOut, Spine};
use crate::run_state::EventPlace;
use crate::turns::SessionTurns;

/// Builds the steps in a second pass over the events, after the spine is decided.
#[derive(Debug)]
pub struct DiffStepsBuilder {
    spine: Spine,
    calls: Calls,
    turns: SessionTurns,
    number: u64,
    steps: Vec<DiffStep>,
}

/// The steps of one conversation.
#[derive(Clone, Debug, Default)]
pub struct DiffSteps {
    /// The steps, in the order of their events.
    pub steps: Vec<DiffStep>,
    /// How many turns the conversation has.
    pub turns: u64,
}

impl DiffStepsBuilder {
    /// A builder for the source of this spine, which is decided.
    pub fn new(spine: Spine) -> DiffStepsBuilder {
        let (calls, turns) = (Calls::default(), SessionTurns::default());
        DiffStepsBuilder { spine, calls, turns, number: 0, steps: Vec::new() }
    }

    /// Adds the next event. Returns its number if it has steps.
    pub fn add(&mut self, event: &Event<'_>) -> Option<u64> {
        self.number += 1;
        let number = self.number;
        let left_out = self.spine.left_out(event);
        let call_step = self.calls.add(event);
        if left_out.is_none() {
            // No other record has its content.
            self.turns.add(&event.as_original(), &call_step, EventPlace::default());
        }
        let is_repeat = left_out.is_some_and(LeftOut::is_said_elsewhere);
        let step_of = |event: &Event<'_>, call_step: &CallStep| {
            DiffStep::of(number, event).map(|step| step.with_decision(call_step))
        };
        let before = self.steps.len();
        self.steps.extend(step_of(event, &call_step).filter(|_| !is_repeat));
        // A nested record of a side conversation that the source has nowhere else.
        for inner in nested_events(event) {
            if self.spine.is_only_nested(&inner) {
                self.steps.extend(step_of(&inner, &self.calls.add(&inner)));
            }
        }
        (self.steps.len() > before).then_some(number)
    }

    /// The steps, after the last event.
    pub fn finish(self) -> DiffSteps {
        DiffSteps { steps: self.steps, turns: self.turns.count() }
    }
}
