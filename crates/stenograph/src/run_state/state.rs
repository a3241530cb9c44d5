//! Decides the state of a run from its phase and the time since its last event. Nothing here reads a clock.
//!
//! The rules, in this order:
//!
//! 1. *idle*: a turn is over. *completed*, *failed*: the run is over. A record states it, or the last record is an answer and nothing
//!    followed for a while ([`Patience::answer_ms`]: many systems do not state how an answer ended, and write its next piece
//!    some seconds later). A run failed if it ended without success, in the middle of an answer, by a refusal, by an
//!    interruption, or by an error.
//! 2. *error*: the last record is an error, and no record states that the run is over.
//! 3. *stalled*: the run is not over, but nothing came for too long. No records are written while a tool works, so a call without
//!    a result gets much more time ([`Patience::call_ms`]) than a model ([`Patience::silence_ms`]).
//! 4. *stuck*: the run fails or repeats itself, see `stuck.rs`.
//! 5. *running*: any other run that is not over. *unknown*: there is no message, or the time since the last event is unknown.

use serde::{Deserialize, Serialize};

use super::{EventPlace, RunPhase, RunState, StopReason, StuckKind};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// A turn is over, and the user is next.
    Idle,
    /// The run is over.
    Completed,
    /// The run ended without success.
    Failed,
    /// The last record is an error.
    Error,
    /// The run is not over, but nothing came for too long.
    Stalled,
    /// The run continues without progress.
    Stuck,
    /// The run continues.
    Running,
    /// No record decides.
    Unknown,
}

impl State {
    /// Every state.
    pub const ALL: [State; 8] = [
        State::Idle,
        State::Completed,
        State::Failed,
        State::Error,
        State::Stalled,
        State::Stuck,
        State::Running,
        State::Unknown,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Error => "error",
            State::Stalled => "stalled",
            State::Stuck => "stuck",
            State::Running => "running",
            State::Unknown => "unknown",
        }
    }
}

/// Why a run has its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Why {
    /// A turn is over, and the user is next.
    Waiting,
    /// The run states that it is over.
    Ended,
    /// The user interrupted it.
    Interrupted,
    /// The model refused.
    Refused,
    /// A limit cut the answer off.
    CutOff,
    /// The last record is an error.
    LastError,
    /// A call has no result: the tool works, or waits for a permission.
    InCall,
    /// The model has its input and has not answered.
    Asked,
    /// The model is in the middle of an answer.
    Answering,
    /// The last steps failed.
    Failing,
    /// The run repeats the same call and gets the same result.
    Repeating,
    /// No record decides.
    Nothing,
}

impl Why {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Why::Waiting => "waiting",
            Why::Ended => "ended",
            Why::Interrupted => "interrupted",
            Why::Refused => "refused",
            Why::CutOff => "cut_off",
            Why::LastError => "last_error",
            Why::InCall => "in_call",
            Why::Asked => "asked",
            Why::Answering => "answering",
            Why::Failing => "failing",
            Why::Repeating => "repeating",
            Why::Nothing => "nothing",
        }
    }
}

/// The rule that decided a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RunRule {
    /// No record decides.
    #[default]
    NoRecord,
    /// A message asks the model for an answer.
    Prompt,
    /// A result arrived, and it is the model's turn.
    Result,
    /// The model answers, thinks or calls a tool.
    Answer,
    /// The answer states why it stopped.
    StopReason,
    /// A record states that the turn or the run is over.
    StopRecord,
    /// A message states that the user interrupted the run.
    InterruptionMessage,
    /// A record states an error, and nothing followed.
    LastError,
    /// A call has no result.
    OpenCall,
    /// Three steps in a row failed.
    FailingSteps,
    /// Five of the last ten calls are identical and have identical results.
    RepeatedCalls,
}

impl RunRule {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            RunRule::NoRecord => "no_record",
            RunRule::Prompt => "prompt",
            RunRule::Result => "result",
            RunRule::Answer => "answer",
            RunRule::StopReason => "stop_reason",
            RunRule::StopRecord => "stop_record",
            RunRule::InterruptionMessage => "interruption_message",
            RunRule::LastError => "last_error",
            RunRule::OpenCall => "open_call",
            RunRule::FailingSteps => "failing_steps",
            RunRule::RepeatedCalls => "repeated_calls",
        }
    }

    /// The rule for people.
    pub fn sentence(self) -> &'static str {
        match self {
            RunRule::NoRecord => "no record shows the state",
            RunRule::Prompt => "a message asks the model for an answer",
            RunRule::Result => "a result arrived, and it is the model's turn",
            RunRule::Answer => "the last record is an answer, thinking or a call by the model",
            RunRule::StopReason => "the answer states why it stopped",
            RunRule::StopRecord => "the record states that the turn or the run is over",
            RunRule::InterruptionMessage => "the message states that the user interrupted the run",
            RunRule::LastError => "the record states an error, and nothing followed",
            RunRule::OpenCall => "the call has no result",
            RunRule::FailingSteps => "three or more steps in a row failed",
            RunRule::RepeatedCalls => "at least five of ten calls are identical and have identical results",
        }
    }
}

/// The longest times without events that are normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// After an answer that may continue. After this time it counts as complete.
    pub answer_ms: u64,
    /// While it is the model's turn. A model that thinks may write nothing for minutes.
    pub silence_ms: u64,
    /// While a call has no result. Builds, tests and sub-agents may take long.
    pub call_ms: u64,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { answer_ms: 30_000, silence_ms: 300_000, call_ms: 3_600_000 }
    }
}

/// The state of a run, and what decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateDecision {
    /// The state.
    pub state: State,
    /// Why.
    pub why: Why,
    /// The rule that decided it.
    pub rule: RunRule,
    /// The event that decided it, or the first event of a stretch.
    pub from: EventPlace,
    /// The last event of a stretch, otherwise the same as `from`.
    pub to: EventPlace,
}

impl StateDecision {
    /// The decision about a side conversation. Nobody talks with it: when its turn is over, it is over.
    pub(crate) fn for_side_conversation(self) -> StateDecision {
        match self.state {
            State::Idle => StateDecision { state: State::Completed, why: Why::Ended, ..self },
            _ => self,
        }
    }
}

impl RunState {
    /// Decides the state of a run without events for this long. With `None`, the time is unknown, as in an audit: an answer at
    /// the end then counts as complete, because nothing shows that it continues, and the state in any other open phase is
    /// unknown.
    pub fn decide(&self, silence_ms: Option<u64>, patience: &Patience) -> StateDecision {
        let silent_for = |limit_ms: u64| silence_ms.is_none_or(|silence_ms| silence_ms >= limit_ms);
        let here = |state: State, why: Why| self.decision(state, why, self.rule, self.place);
        let open = self.open.front();
        let going = match &self.phase {
            RunPhase::Nothing => return here(State::Unknown, Why::Nothing),
            RunPhase::Over(reason, _) => {
                let (state, why) = over(*reason);
                return here(state, why);
            }
            RunPhase::Broken => return here(State::Error, Why::LastError),
            RunPhase::Asked | RunPhase::Thinking | RunPhase::Answered if open.is_some() => Why::InCall,
            RunPhase::Answered if silent_for(patience.answer_ms) => return here(State::Idle, Why::Waiting),
            RunPhase::Answered | RunPhase::Thinking => Why::Answering,
            RunPhase::Asked => Why::Asked,
        };
        let decide = |state: State| match open {
            Some(open) => self.decision(state, going, RunRule::OpenCall, open.place),
            None => here(state, going),
        };
        let limit_ms = if going == Why::InCall { patience.call_ms } else { patience.silence_ms };
        match (silence_ms, self.stuck().next()) {
            (None, _) => decide(State::Unknown),
            (Some(_), _) if silent_for(limit_ms) => decide(State::Stalled),
            (Some(_), Some(stuck)) => {
                let (why, rule) = match stuck.kind {
                    StuckKind::Failing => (Why::Failing, RunRule::FailingSteps),
                    StuckKind::Repeating => (Why::Repeating, RunRule::RepeatedCalls),
                };
                StateDecision { to: stuck.to, ..self.decision(State::Stuck, why, rule, stuck.from) }
            }
            (Some(_), None) => decide(State::Running),
        }
    }

    fn decision(&self, state: State, why: Why, rule: RunRule, place: EventPlace) -> StateDecision {
        StateDecision { state, why, rule, from: place, to: place }
    }
}

fn over(reason: StopReason) -> (State, Why) {
    match reason {
        StopReason::Waiting => (State::Idle, Why::Waiting),
        StopReason::Ended | StopReason::Continues => (State::Completed, Why::Ended),
        StopReason::CutOff => (State::Failed, Why::CutOff),
        StopReason::Refused => (State::Failed, Why::Refused),
        StopReason::Interrupted => (State::Failed, Why::Interrupted),
        StopReason::Error => (State::Failed, Why::LastError),
    }
}
