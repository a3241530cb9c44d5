//! How a run stands: completed, failed, stuck, … from its last events and how long nothing came. Works on the end of a source alone.
//! This file reads no clock and looks for no process: whether an agent is still there is told from what it wrote, and from silence. Whether
//! calls failed the fold [`crate::calls::Calls`] decides.
//!
//! The rules, in the order they are asked:
//!
//! 1. *completed*, *failed*: the run or the turn is over. It says so itself (a stop, or a reason with the model's last answer), or the last
//!    thing is an answer that nothing followed for a while ([`Patience::settle_ms`]: many systems say nothing of how an answer ended, and
//!    write its next piece some seconds later). Failed is what ended without success, in the middle of an answer, by a refusal, by an
//!    interruption, or by an error that nothing followed. An error that a good result, an answer or a success followed is recovered.
//! 2. *error*: the last thing is an error, and nobody said that it is over.
//! 3. *stale*: it was going on, and nothing came for too long. While a tool works nobody writes, so an open call is given much more time
//!    ([`Patience::call_ms`]) than a model ([`Patience::silence_ms`]).
//! 4. *stuck*: three steps in a row failed, or five of the last ten calls are the very same call with the same input and the same answer.
//!    Calls of one name alone say nothing (an agent that reads ten files is well), nor do calls that fail together in one step, nor asking
//!    again and again for what goes on and hearing something new each time.
//! 5. *running*: everything else that goes on. *unknown*: nothing was said, or it is not known when.
//!
//! A tool's failure is no error of the run: agents read it and go on. Words such as "done" or "failed" in what is said decide nothing.

mod course;
#[cfg(test)]
mod tests;

use crate::calls::{CallStep, Calls};
use crate::model::{Body, Event};
use course::{ConversationState, Phase};
pub(crate) use course::{given, is_recovery};

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It came to its end, or a turn did and it waits for its user.
    Completed,
    /// It ended, and not well.
    Failed,
    /// Something went wrong, and nothing has followed.
    Error,
    /// It was going on, and nothing came for too long.
    Stale,
    /// It goes on, and gets nowhere.
    Stuck,
    /// It goes on.
    Running,
    /// Nothing tells.
    Unknown,
}

impl State {
    /// Every state.
    pub const ALL: [State; 7] =
        [State::Completed, State::Failed, State::Error, State::Stale, State::Stuck, State::Running, State::Unknown];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            State::Completed => "completed",
            State::Failed => "failed",
            State::Error => "error",
            State::Stale => "stale",
            State::Stuck => "stuck",
            State::Running => "running",
            State::Unknown => "unknown",
        }
    }

    /// Whether more is to come, as far as anybody can tell.
    pub fn goes_on(self) -> bool {
        match self {
            State::Running | State::Stuck | State::Error => true,
            State::Completed | State::Failed | State::Stale | State::Unknown => false,
        }
    }
}

/// Why a run is said to stand so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// A turn is over: an agent that talks with somebody waits for them.
    Waiting,
    /// The run says that it is over.
    Ended,
    /// Somebody broke it off.
    Interrupted,
    /// The model would not.
    Refused,
    /// A limit cut the model's answer off.
    CutOff,
    /// The last thing is an error.
    LastError,
    /// A tool was called and has not answered: it works, or somebody is asked whether it may.
    InCall,
    /// The model has what it needs and has not answered.
    Asked,
    /// The model is in the middle of an answer.
    Answering,
    /// Its last steps failed.
    Failing,
    /// It makes the same call over and over, and gets the same answer.
    Repeating,
    /// There is nothing to tell by.
    Nothing,
}

impl Why {
    /// The word for it.
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

/// How long silence may last before it means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// After an answer of which nobody said that it is the last: then it is.
    pub settle_ms: u64,
    /// While a model is to answer. One that thinks hard writes nothing for minutes.
    pub silence_ms: u64,
    /// While a tool has not answered. Builds, tests and other agents take their time.
    pub call_ms: u64,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { settle_ms: 30_000, silence_ms: 300_000, call_ms: 3_600_000 }
    }
}

/// How a run stands, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// How it stands.
    pub state: State,
    /// Why that is said.
    pub why: Why,
    /// The reason or the error, in the source's own words.
    pub word: Option<String>,
    /// How many errors were followed by something good.
    pub recovered: u64,
    /// The tool that was called last.
    pub tool: Option<String>,
    /// The tools that have not answered, oldest first.
    pub open: Vec<String>,
    /// How many tokens the model was given with the last request: new and cached ones.
    pub context: Option<u64>,
    /// The last moment that an event states, in milliseconds since 1970.
    pub active_ms: Option<i64>,
    /// The last model.
    pub model: Option<String>,
    /// The last title.
    pub title: Option<String>,
    /// The beginning of the last thing a user asked.
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

/// Follows the events of a source, or of its end.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    calls: Calls,
    main: ConversationState,
    /// Side conversations in the same source. They decide only where there is no other.
    side: ConversationState,
    active_ms: Option<i64>,
    model: Option<String>,
    title: Option<String>,
    session: Option<String>,
    thread: Option<String>,
    cwd: Option<String>,
    branch: Option<String>,
}

/// How many characters are kept of what somebody said.
const BEGINNING_LENGTH_MAX: usize = 200;

impl Watch {
    /// Takes notice of one event.
    pub fn add(&mut self, event: &Event<'_>) {
        let step = self.calls.add(event);
        self.add_step(event, &step);
    }

    /// Takes notice of one event, of which it is known what it means for the calls.
    pub(crate) fn add_step(&mut self, event: &Event<'_>, step: &CallStep) {
        self.active_ms = self.active_ms.max(moment_ms(event));
        if event.restates {
            return;
        }
        let state = |slot: &mut Option<String>, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                *slot = Some(value.chars().take(BEGINNING_LENGTH_MAX).collect());
            }
        };
        state(&mut self.session, event.session.as_deref());
        state(&mut self.cwd, event.cwd.as_deref());
        state(&mut self.branch, event.branch.as_deref());
        state(&mut self.model, event.model.as_deref());
        if let Body::Fact { name, content: Some(content) } = &event.body
            && name == "title"
        {
            state(&mut self.title, Some(content.joined().decode().trim()));
        }
        state(&mut self.thread, event.thread.as_deref());
        let course = if event.thread.is_some() { &mut self.side } else { &mut self.main };
        course.add(event, step);
    }

    /// The last moment that an event states, in milliseconds since 1970.
    pub fn active_ms(&self) -> Option<i64> {
        self.active_ms
    }

    /// How the run stands when nothing came for so long; `None` when nobody knows.
    pub fn status(&self, silence_ms: Option<u64>, patience: &Patience) -> Status {
        let is_side = self.main.is_empty() && !self.side.is_empty();
        let course = if is_side { &self.side } else { &self.main };
        let (state, why) = match judge(course, silence_ms, patience) {
            // Nobody talks with a side conversation: when its turn is over, so is all of it.
            (state, Why::Waiting) if is_side => (state, Why::Ended),
            judged => judged,
        };
        let word = match &course.phase {
            Phase::Over { word, .. } => word.clone(),
            Phase::Broken => course.failure.clone(),
            Phase::Nothing | Phase::Asked | Phase::Thinking | Phase::Answered => None,
        };
        Status {
            state,
            why,
            word,
            recovered: course.recovered,
            tool: course.tool.clone(),
            open: course.open_tools().map(str::to_owned).collect(),
            context: course.context,
            active_ms: self.active_ms,
            model: self.model.clone(),
            title: self.title.clone(),
            asked: course.asked.clone(),
            session: self.session.clone(),
            thread: self.thread.clone().filter(|_| is_side),
            cwd: self.cwd.clone(),
            branch: self.branch.clone(),
        }
    }
}

/// The rules, as the head of this file tells them.
fn judge(course: &ConversationState, silence_ms: Option<u64>, patience: &Patience) -> (State, Why) {
    let silent_for = |limit_ms: u64| silence_ms.is_none_or(|silence_ms| silence_ms >= limit_ms);
    let going = match &course.phase {
        Phase::Nothing => return (State::Unknown, Why::Nothing),
        Phase::Over { why: why @ (Why::Waiting | Why::Ended), .. } => return (State::Completed, *why),
        Phase::Over { why, .. } => return (State::Failed, *why),
        Phase::Broken => return (State::Error, Why::LastError),
        _ if course.open_tools().next().is_some() => Why::InCall,
        Phase::Answered if silent_for(patience.settle_ms) => return (State::Completed, Why::Waiting),
        Phase::Answered | Phase::Thinking => Why::Answering,
        Phase::Asked => Why::Asked,
    };
    let limit_ms = if going == Why::InCall { patience.call_ms } else { patience.silence_ms };
    match () {
        () if silence_ms.is_none() => (State::Unknown, going),
        () if silent_for(limit_ms) => (State::Stale, going),
        () if course.is_failing() => (State::Stuck, Why::Failing),
        () if course.is_repeating() => (State::Stuck, Why::Repeating),
        () => (State::Running, going),
    }
}

fn moment_ms(event: &Event<'_>) -> Option<i64> {
    Some(event.time.as_ref()?.instant()?.as_millisecond())
}
