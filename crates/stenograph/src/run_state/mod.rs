//! The fold `RunState`: the state of a run. It follows the phase, the calls without a result, failing and repeated calls, why
//! the run stopped, and the last error. `status` and `audit` show its decisions and have no other rules.
//!
//! It takes each event together with the [`CallStep`] that [`Calls`] made of it, and does not pair calls with results itself.
//! Its memory is bounded. It can be saved between two events in a few kilobytes, and may start in the middle of a source.
//!
//! - *failing*: three steps in a row failed. Calls with nothing between them are one step: they fail together.
//! - *repeating*: five of the last ten answered calls are the same call with the same input and the same result. Calls of one
//!   tool alone are not enough: an agent that reads ten files makes progress, and so does one that polls and gets a new answer
//!   each time.
//! - *recovered*: an error of the run is recovered when the model answers, a call succeeds or the run states its success.
//!
//! A failed call is not an error of the run: agents read it and continue.

mod state;
mod stuck;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::calls::{CallStep, Calls};
use crate::evidence::UserMessage;
use crate::model::{Body, Content, Data, Event, PieceKind, Role, StopReason};
use crate::text::{Text, beginning};

pub use state::{Patience, RunRule, State, StateDecision, Why};
use stuck::StuckRules;
pub use stuck::{Stuck, StuckKind};

/// The position of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPlace {
    /// The number of its source, from 0.
    pub source: usize,
    /// Its number in the source, from 1. Every event counts. 0 if reading began in the middle of the source.
    pub event: u64,
    /// The line on which its record begins; 0 if it is unknown.
    pub line: u64,
    /// The first byte of its record.
    pub offset: u64,
    /// Its time in milliseconds since 1970.
    pub time_ms: Option<i64>,
}

/// The state of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunState {
    phase: RunPhase,
    /// The rule that decided the phase.
    rule: RunRule,
    /// The event that decided the phase.
    place: EventPlace,
    tool: Option<String>,
    error: Option<RunError>,
    recovery: Option<ErrorRecovery>,
    asked: Option<String>,
    open: VecDeque<OpenCall>,
    stuck: StuckRules,
    /// The step in which calls are made: calls with nothing between them are one step.
    step: u64,
    /// Whether something happened since the last call.
    has_moved: bool,
    record: RecordStop,
}

/// The phase of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunPhase {
    /// There is no message yet.
    #[default]
    Nothing,
    /// The model has its input and has not answered.
    Asked,
    /// The model thinks, calls a tool, or states that it continues.
    Thinking,
    /// The model answered, and no record states whether the answer is complete.
    Answered,
    /// An error without a later step.
    Broken,
    /// The turn or the run is over.
    Over(StopReason, Option<String>),
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OpenCall {
    number: u64,
    tool: String,
    /// A fingerprint of the model response; 0 for none.
    group: u64,
    place: EventPlace,
}

/// An error of the run that nothing recovered yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RunError {
    name: String,
    place: EventPlace,
}

/// An error of the run, and the event that shows that it is recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRecovery {
    /// The error.
    pub error: EventPlace,
    /// The event after it.
    pub by: EventPlace,
}

/// The stop reason of the record that is being read: its first event states it for all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct RecordStop {
    /// The offset of the record.
    offset: Option<u64>,
    reason: Option<String>,
}

/// The effect of one event on the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStep {
    /// Whether the event shows that errors before it are recovered.
    pub recovers: bool,
    /// The stretches without progress that end with the event.
    pub ended: Vec<Stuck>,
}

/// How many calls without a result are remembered. All of them are saved.
const OPEN_MAX: usize = 64;

/// The most bytes of the name of a tool, and of the words of a source.
const NAME_SIZE_MAX: usize = 128;

/// The most characters of a prompt.
const ASKED_LENGTH_MAX: usize = 200;

impl RunState {
    /// Takes the next event of the conversation, and what it means for the calls.
    pub fn add(&mut self, event: &Event<'_>, step: &CallStep, place: EventPlace) -> RunStep {
        let offset = event.at.map(|at| at.offset);
        if event.part.index == 0 || offset != self.record.offset {
            self.record = RecordStop { offset, reason: event.stop_reason.as_deref().map(shortened) };
        }
        let mut done = RunStep { recovers: recovers(event, step), ..RunStep::default() };
        match &event.body {
            Body::Message { role: Role::User, content } => {
                let message = UserMessage::of(event).unwrap_or(UserMessage::Typed);
                self.user(message, content, place);
                if message == UserMessage::Typed {
                    // A new prompt is a new attempt.
                    done.ended = self.stuck.end();
                }
            }
            Body::Message { role: Role::Assistant, .. } => self.answer(event, RunPhase::Answered, place),
            Body::Thinking { .. } => self.answer(event, RunPhase::Thinking, place),
            Body::ToolCall { .. } if step.is_again => {}
            Body::ToolCall { name, .. } => self.call(event, name, step, place),
            Body::ToolResult { .. } if step.is_again => {}
            Body::ToolResult { content, .. } => done.ended = self.result(step, content, place),
            Body::Failure { name, content } => {
                let text = content.as_ref().map(prompt_of).filter(|text| !text.is_empty());
                let name = name.as_deref().map(shortened).or(text).unwrap_or_default();
                self.error = Some(RunError { name, place });
                self.enter(RunPhase::Broken, RunRule::LastError, place);
            }
            Body::Stop { reason, success, content } => {
                let told = content
                    .as_ref()
                    .filter(|_| *success == Some(false))
                    .map(|content| content.joined().decode().into_owned());
                self.stop(reason.as_deref(), *success, told.as_deref(), place);
            }
            // Rules, facts and unknown records are not steps of the conversation.
            Body::Message { role: Role::System | Role::Developer | Role::Tool | Role::Unknown, .. }
            | Body::Fact { .. }
            | Body::Compaction { .. }
            | Body::Other { .. } => {}
        }
        if let Some(evicted) = step.evicted {
            self.open.retain(|open| open.number != evicted);
        }
        if done.recovers
            && let Some(error) = self.error.take()
        {
            self.recovery = Some(ErrorRecovery { error: error.place, by: place });
        }
        done
    }

    /// The state of the fold as one line of JSON, to continue later.
    pub fn save(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Restores a saved fold. If the text is invalid, the fold starts at the next event.
    pub fn restore(saved: &str) -> RunState {
        serde_json::from_str(saved).unwrap_or_default()
    }

    /// Whether no event was a step of a conversation.
    pub fn is_empty(&self) -> bool {
        self.phase == RunPhase::Nothing
    }

    /// The phase.
    pub fn phase(&self) -> &RunPhase {
        &self.phase
    }

    /// The tools of the calls without a result, oldest first.
    pub fn open_tools(&self) -> impl Iterator<Item = &str> {
        self.open.iter().map(|open| open.tool.as_str())
    }

    /// The tool that was called last.
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// The beginning of the last message that a person typed.
    pub fn asked(&self) -> Option<&str> {
        self.asked.as_deref()
    }

    /// Whether the last error of the run is recovered.
    pub fn is_recovered(&self) -> bool {
        self.error.is_none() && self.recovery.is_some()
    }

    /// The last error that was recovered.
    pub fn recovery(&self) -> Option<ErrorRecovery> {
        self.recovery
    }

    /// The reason or the error in the words of the source.
    pub fn word(&self) -> Option<&str> {
        match &self.phase {
            RunPhase::Over(_, word) => word.as_deref(),
            RunPhase::Broken => self.error.as_ref().map(|error| error.name.as_str()),
            RunPhase::Nothing | RunPhase::Asked | RunPhase::Thinking | RunPhase::Answered => None,
        }
    }

    /// The current stretches without progress.
    pub fn stuck(&self) -> impl Iterator<Item = Stuck> {
        self.stuck.now()
    }

    fn enter(&mut self, phase: RunPhase, rule: RunRule, place: EventPlace) {
        (self.phase, self.rule, self.place) = (phase, rule, place);
    }

    fn user(&mut self, message: UserMessage, content: &Content<'_>, place: EventPlace) {
        match message {
            UserMessage::Interruption => {
                self.open.clear();
                self.enter(RunPhase::Over(StopReason::Interrupted, None), RunRule::InterruptionMessage, place);
            }
            // Models rarely answer injected text.
            UserMessage::Injected if self.phase != RunPhase::Nothing => {}
            UserMessage::Injected => self.enter(RunPhase::Asked, RunRule::Prompt, place),
            UserMessage::JobNotice => {
                self.has_moved = true;
                self.enter(RunPhase::Asked, RunRule::Prompt, place);
            }
            UserMessage::Typed => {
                self.asked = Some(prompt_of(content)).filter(|text| !text.is_empty());
                self.has_moved = true;
                self.enter(RunPhase::Asked, RunRule::Prompt, place);
            }
        }
    }

    /// Adds a message or a thought of the model. `otherwise` is the phase if no record states how the answer ended.
    fn answer(&mut self, event: &Event<'_>, otherwise: RunPhase, place: EventPlace) {
        // After a new response, no call of the previous one is open.
        let group = Calls::id(event.group.as_deref());
        self.open.retain(|open| group != 0 && open.group == group);
        self.has_moved = true;
        let stop = self.record.reason.as_deref().map(|word| (StopReason::of(word), word.to_owned()));
        match stop {
            Some((StopReason::Continues, _)) => self.enter(RunPhase::Thinking, RunRule::StopReason, place),
            Some((reason, word)) => self.enter(RunPhase::Over(reason, Some(word)), RunRule::StopReason, place),
            None => self.enter(otherwise, RunRule::Answer, place),
        }
    }

    fn call(&mut self, event: &Event<'_>, name: &str, step: &CallStep, place: EventPlace) {
        if std::mem::take(&mut self.has_moved) {
            self.step += 1;
        }
        self.tool = Some(shortened(name));
        self.enter(RunPhase::Thinking, RunRule::Answer, place);
        let Some(number) = step.call else { return };
        self.stuck.call(number, step.fingerprint, self.step, place);
        if step.decision.is_some() || step.early.is_some() {
            return;
        }
        if self.open.len() >= OPEN_MAX {
            self.open.pop_front();
        }
        let group = Calls::id(event.group.as_deref());
        self.open.push_back(OpenCall { number, tool: shortened(name), group, place });
    }

    fn result(&mut self, step: &CallStep, content: &Content<'_>, place: EventPlace) -> Vec<Stuck> {
        if let Some(number) = step.call {
            self.open.retain(|open| open.number != number);
        }
        self.has_moved = true;
        self.enter(RunPhase::Asked, RunRule::Result, place);
        self.stuck.result(step, fingerprint(content), place)
    }

    fn stop(&mut self, reason: Option<&str>, success: Option<bool>, told: Option<&str>, place: EventPlace) {
        let stated = reason.map_or(StopReason::Ended, StopReason::of);
        let stop = match (stated, success) {
            // A turn that paused for a tool is not over, unless the record states its success.
            (StopReason::Continues, None) => return,
            (StopReason::Waiting, Some(true)) => StopReason::Waiting,
            (_, Some(true)) => StopReason::Ended,
            (StopReason::Continues | StopReason::Waiting | StopReason::Ended, Some(false)) => StopReason::Error,
            (StopReason::Waiting | StopReason::Ended, None) if self.error.is_some() => StopReason::Error,
            (stated, _) => stated,
        };
        let error = self.error.as_ref().filter(|_| stop == StopReason::Error).map(|error| error.name.clone());
        // "failed" repeats the state; the text of the record says why.
        let said = told.filter(|_| reason == Some("failed")).and_then(|told| told.lines().next()).map(str::trim);
        let said = said.filter(|said| !said.is_empty()).or(reason).map(shortened);
        let word = error.filter(|word| !word.is_empty()).or(said);
        self.open.clear();
        self.enter(RunPhase::Over(stop, word), RunRule::StopRecord, place);
    }
}

/// Whether an event shows that an error before it is recovered. Thinking alone proves nothing.
fn recovers(event: &Event<'_>, step: &CallStep) -> bool {
    match &event.body {
        Body::Message { role, .. } => *role == Role::Assistant,
        Body::ToolResult { .. } => !step.is_again && !step.has_failed(),
        // The servers of the vendor answer some calls in the same record.
        Body::ToolCall { .. } => step.decision.is_some() && !step.has_failed(),
        Body::Stop { success, .. } => *success == Some(true),
        Body::Thinking { .. }
        | Body::Failure { .. }
        | Body::Fact { .. }
        | Body::Compaction { .. }
        | Body::Other { .. } => false,
    }
}

fn shortened(text: &str) -> String {
    beginning(text, NAME_SIZE_MAX).to_owned()
}

fn prompt_of(content: &Content<'_>) -> String {
    content.joined().decode().trim().chars().take(ASKED_LENGTH_MAX).collect()
}

/// A fingerprint of all content of a result.
fn fingerprint(content: &Content<'_>) -> u64 {
    let texts = content.texts().map(Text::hash);
    let others = content.others().map(|piece| match &piece.kind {
        PieceKind::Text(text) => text.hash(),
        PieceKind::Blob { data: Data::Inline(text) | Data::Url(text) | Data::File(text), .. } => text.hash(),
        PieceKind::Other(raw) => Text::from(raw.as_ref()).hash(),
    });
    texts.chain(others).fold(0, |fingerprint, piece| xxh3_64_with_seed(&piece.to_le_bytes(), fingerprint))
}
