//! The status of a run, from the last events of its source and from how long nothing came. It works on the end of a source alone, reads no
//! clock and looks for no process. The rules are those of the fold [`RunState`]; this file adds what a person wants to see beside the state.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::json::Draft;
use crate::ledger::context_tokens;
use crate::model::{Event, Kind, SessionHeader};
use crate::repeat::{IsRepeat, RepeatCheck};
use crate::run_state::{ErrorRecovery, EventPlace, RunState, StateDecision};
use crate::text::quote;
use crate::time::{Time, TimeUnit};

pub use crate::run_state::{Patience, State, Why};

/// The status of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The state.
    pub state: State,
    /// Why it has this state.
    pub why: Why,
    /// What decided that.
    pub decision: StateDecision,
    /// The reason or the error in the words of the source.
    pub word: Option<String>,
    /// Whether the last error of the run is recovered.
    pub is_recovered: bool,
    /// The last error that was recovered.
    pub recovery: Option<ErrorRecovery>,
    /// The tool that was called last.
    pub tool: Option<String>,
    /// The tools of the calls without a result, oldest first.
    pub open: Vec<String>,
    /// The number of input tokens of the last request: new and cached ones.
    pub context: Option<u64>,
    /// The last moment that an event states, in milliseconds since 1970.
    pub active_ms: Option<i64>,
    /// The last model.
    pub model: Option<String>,
    /// The last title or summary.
    pub title: Option<String>,
    /// The beginning of what a person typed last.
    pub asked: Option<String>,
    /// The session's id.
    pub session: Option<String>,
    /// The side conversation, where all there is belongs to one.
    pub thread: Option<String>,
    /// The last working folder.
    pub cwd: Option<String>,
    /// The last branch.
    pub branch: Option<String>,
}

/// Everything about a run that its events decide, and nothing that depends on the time of asking. It can be saved; [`StatusSummary::status`]
/// adds the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusSummary {
    run: RunState,
    context: Option<u64>,
    /// Whether all there is belongs to a side conversation.
    is_side: bool,
    /// The last moment that an event states, in milliseconds since 1970.
    pub active_ms: Option<i64>,
    /// The last model.
    pub model: Option<String>,
    /// The last title or summary.
    pub title: Option<String>,
    /// The session's id.
    pub session: Option<String>,
    /// The side conversation, where all there is belongs to one.
    pub thread: Option<String>,
    /// The last working folder.
    pub cwd: Option<String>,
    /// The last branch.
    pub branch: Option<String>,
}

/// Follows the events of a source, or of its end.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    calls: Calls,
    repeats: RepeatCheck,
    main: Conversation,
    /// Side conversations in the same source. They decide only if there is no other.
    side: Conversation,
    events: u64,
    active_ms: Option<i64>,
    /// The model, title and branch.
    header: SessionHeader,
    session: Option<String>,
    thread: Option<String>,
    cwd: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct Conversation {
    run: RunState,
    context: Option<u64>,
}

/// How many characters are kept of what somebody said.
const BEGINNING_LENGTH_MAX: usize = 200;

impl Watch {
    /// Takes the time of an event that says nothing else about the run.
    pub fn saw_activity(&mut self, time_ms: Option<i64>) {
        self.active_ms = self.active_ms.max(time_ms);
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event<'_>) {
        let step = self.calls.add(event);
        self.events += 1;
        self.active_ms = self.active_ms.max(moment_ms(event));
        if self.repeats.is_repeat(event, &mut |_| {}) == IsRepeat::Yes {
            return;
        }
        self.header.add(event);
        let state = |slot: &mut Option<String>, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                *slot = Some(value.chars().take(BEGINNING_LENGTH_MAX).collect());
            }
        };
        state(&mut self.session, event.session.as_deref());
        state(&mut self.cwd, event.cwd.as_deref());
        state(&mut self.thread, event.thread.as_deref());
        let at = event.at.unwrap_or_default();
        let place =
            EventPlace { source: 0, event: self.events, line: at.line, offset: at.offset, time_ms: moment_ms(event) };
        let conversation = if event.thread.is_some() { &mut self.side } else { &mut self.main };
        conversation.run.add(event, &step, place);
        match context_tokens(event) {
            Some(tokens) => conversation.context = Some(tokens),
            // Only the next request tells how much is left.
            None if event.kind() == Kind::Compaction => conversation.context = None,
            None => {}
        }
    }

    /// What the events so far say about the run.
    pub fn summary(&self) -> StatusSummary {
        let is_side = self.main.run.is_empty() && !self.side.run.is_empty();
        let Conversation { run, context } = if is_side { &self.side } else { &self.main };
        StatusSummary {
            run: run.clone(),
            context: *context,
            is_side,
            active_ms: self.active_ms,
            model: self.header.model.clone(),
            title: self.header.title.clone(),
            session: self.session.clone(),
            thread: self.thread.clone().filter(|_| is_side),
            cwd: self.cwd.clone(),
            branch: self.header.branch.clone(),
        }
    }
}

impl StatusSummary {
    /// The status if nothing came for this long; `None` if nobody knows how long.
    pub fn status(&self, silence_ms: Option<u64>, patience: &Patience) -> Status {
        let run = &self.run;
        let decision = run.decide(silence_ms, patience);
        let decision = if self.is_side { decision.for_side_conversation() } else { decision };
        Status {
            state: decision.state,
            why: decision.why,
            decision,
            word: run.word().map(str::to_owned),
            is_recovered: run.is_recovered(),
            recovery: run.recovery(),
            tool: run.tool().map(str::to_owned),
            open: run.open_tools().map(str::to_owned).collect(),
            context: self.context,
            active_ms: self.active_ms,
            model: self.model.clone(),
            title: self.title.clone(),
            asked: run.asked().map(str::to_owned),
            session: self.session.clone(),
            thread: self.thread.clone(),
            cwd: self.cwd.clone(),
            branch: self.branch.clone(),
        }
    }
}

impl Status {
    /// Puts the status into an object, with names that stay as they are. `changed_ms` is when the source changed: the last
    /// activity if no event states a time.
    pub fn put(&self, changed_ms: Option<i64>, draft: &mut Draft<'static>) {
        let moment = |ms: i64| Time::number(ms.max(0).to_string().into(), TimeUnit::Millis)?.to_iso_millis();
        draft.set_opt("session", self.session.as_deref());
        draft.set_opt("thread", self.thread.as_deref());
        draft.set_str("state", self.state.name());
        draft.set_str("why", self.why.name());
        draft.set_opt("word", self.word.as_deref());
        draft.set("recovered", self.is_recovered.to_string());
        draft.set_opt("active", self.active_ms.or(changed_ms).and_then(moment).as_deref());
        draft.set_opt("changed", changed_ms.and_then(moment).as_deref());
        draft.set_opt("tool", self.tool.as_deref());
        let open: Vec<String> = self.open.iter().map(|tool| quote(tool)).collect();
        draft.set("open", format!("[{}]", open.join(",")));
        draft.set_number("context", self.context);
        draft.set_opt("model", self.model.as_deref());
        draft.set_opt("title", self.title.as_deref());
        draft.set_opt("asked", self.asked.as_deref());
        draft.set_opt("cwd", self.cwd.as_deref());
        draft.set_opt("branch", self.branch.as_deref());
    }
}

fn moment_ms(event: &Event<'_>) -> Option<i64> {
    event.time.as_ref()?.to_millis()
}
