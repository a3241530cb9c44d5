//! The fold `Calls` decides the outcome of each tool call, once for all features: `find is:error`, `list`, `status`, `audit` and `diff`.
//!
//! Readers have no memory, so a single event only gives [`Evidence`]: a stated error, an exit code, a refusal. This fold knows the call as
//! well, and decides a [`CallOutcome`] from both. It returns each decision together with the event that made it possible, and the
//! decision names its [`OutcomeRule`]. The rules are in `outcome.rs`. A later record may decide the call of a job again, but a call that
//! failed stays failed.
//!
//! The fold keeps a bounded window of calls, and the ids of the calls without a result that left it. It can be saved between two events in a few kilobytes, and it may start in the middle of a
//! source: a result whose call is unknown is decided by its own evidence alone.

mod command;
mod outcome;
mod save;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::evidence::{CallInput, CallReport, JobNotice, script_words, touches};
use crate::model::{Body, Event, Input, Role, is_lasting_id};
use crate::text::beginning;

pub use crate::evidence::Evidence;
pub(crate) use command::{answers_with_one, program};
pub use outcome::{CallOutcome, OutcomeRule};
use save::is_default;

/// Follows the calls of one conversation, or of several in one source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calls {
    /// Calls without a result.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    open: VecDeque<TrackedCall>,
    /// The ids and numbers of calls without a result that left the window of open calls.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    forgotten: VecDeque<(u64, u64)>,
    /// Calls that have a result: a record may repeat the result, and a later record may add an exit code.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    answered: VecDeque<TrackedCall>,
    /// Results that came before their calls.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    early: VecDeque<EarlyResult>,
    /// Commands that keep running after their call returned.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    jobs: VecDeque<Job>,
    /// How many calls were numbered.
    count: u64,
}

/// What one event means for the calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallStep {
    /// The number of the call that the event makes, answers or reports on, from 1.
    pub call: Option<u64>,
    /// The tool that was called, or that answered.
    pub tool: Option<Arc<str>>,
    /// A fingerprint of the tool and its input, for a new call.
    pub fingerprint: Option<u64>,
    /// Whether an earlier event has the same call or the same result.
    pub is_again: bool,
    /// Whether the event is a result whose call no earlier event makes. The call may follow.
    pub has_no_call: bool,
    /// What the result itself shows: an error flag, an exit code, a refusal.
    pub evidence: Option<Evidence>,
    /// What the event decides about the call that it makes or answers.
    pub decision: Option<Decision>,
    /// What the event decides about another call: one that this event reports on later.
    pub later: Option<Decision>,
    /// The decision about a call whose result preceded it.
    pub early: Option<Decision>,
    /// A call whose result the fold no longer expects.
    pub evicted: Option<u64>,
}

impl CallStep {
    /// Whether the event decides that a call failed.
    pub fn has_failed(&self) -> bool {
        self.decision.iter().chain(&self.later).any(|decision| decision.outcome.is_failure())
    }
}

/// A decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Decision {
    /// The number of the call.
    pub call: u64,
    /// Its outcome.
    pub outcome: CallOutcome,
    /// Why.
    pub rule: OutcomeRule,
    /// The exit code, where one is stated.
    pub exit: Option<i64>,
}

/// What the fold remembers of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct TrackedCall {
    #[serde(rename = "n")]
    number: u64,
    /// A fingerprint of the id that call and result share; 0 for a call without an id.
    #[serde(rename = "i", skip_serializing_if = "is_default")]
    id: u64,
    /// A short fingerprint of the tool and its input.
    #[serde(rename = "f", skip_serializing_if = "is_default")]
    fingerprint: u32,
    /// A short fingerprint of the side conversation; 0 for the main one.
    #[serde(rename = "t", skip_serializing_if = "is_default")]
    thread: u32,
    #[serde(with = "save::shared_text")]
    tool: Arc<str>,
    /// Whether exit code 1 is an answer of its command.
    #[serde(rename = "o", skip_serializing_if = "is_default")]
    answers_with_one: bool,
    /// Whether its result may state an exit code.
    #[serde(rename = "e", skip_serializing_if = "is_default")]
    may_exit: bool,
    /// Whether it runs a command.
    #[serde(rename = "r", skip_serializing_if = "is_default")]
    runs: bool,
    /// How many commands a script runs.
    #[serde(rename = "c", skip_serializing_if = "is_default")]
    commands: u32,
    /// The number of the call whose job it polls.
    #[serde(rename = "p", skip_serializing_if = "is_default")]
    polls: Option<u64>,
    /// The exit code that a record about the call stated before its result came.
    #[serde(rename = "x", skip_serializing_if = "is_default")]
    exit: Option<i64>,
    /// Whether it was decided that it failed.
    #[serde(rename = "failed", skip_serializing_if = "is_default")]
    has_failed: bool,
}

/// A result that came before its call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct EarlyResult {
    number: u64,
    id: u64,
    exit: Option<i64>,
    /// The exit codes that a script printed.
    printed: Vec<i64>,
    /// The names of jobs that keep running.
    handles: Vec<String>,
    /// Whether the result alone decided the outcome.
    decided: Option<(CallOutcome, OutcomeRule)>,
}

/// A command that still runs after its call returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    /// A fingerprint of the name by which later records refer to it.
    name: u64,
    /// The number of the call that started it.
    call: u64,
    answers_with_one: bool,
    /// Whether its end is decided: a record stated it, or its call failed.
    has_ended: bool,
}

/// How many calls without a result are remembered. All of them are saved with every source.
const OPEN_MAX: usize = 128;

/// How many calls that left this window are remembered by their ids.
const FORGOTTEN_MAX: usize = 384;

/// How many calls with a result are remembered.
const ANSWERED_MAX: usize = 32;

/// How many results may come before their calls.
const EARLY_MAX: usize = 16;

/// How many jobs and how many printed exit codes of such a result are remembered, and how long the names of jobs may be.
const EARLY_HANDLES_MAX: usize = 8;
const HANDLE_LENGTH_MAX: usize = 128;

/// How many jobs are remembered.
const JOBS_MAX: usize = 64;

/// The most bytes of the name of a tool.
const NAME_SIZE_MAX: usize = 128;

impl Calls {
    /// The fingerprint of the id that a call and its result share; 0 if there is none.
    pub(crate) fn id(id: Option<&str>) -> u64 {
        id.filter(|id| !id.is_empty()).map_or(0, |id| xxh3_64(id.as_bytes()).max(1))
    }

    /// The fingerprint of a tool and its input.
    pub(crate) fn fingerprint(name: &str, input: &Input<'_>) -> u64 {
        xxh3_64_with_seed(input.to_text().decode().as_bytes(), xxh3_64(name.as_bytes()))
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event<'_>) -> CallStep {
        self.add_in(event, event.thread.as_deref())
    }

    /// Takes the next event, which belongs to this side conversation.
    pub(crate) fn add_in(&mut self, event: &Event<'_>, thread: Option<&str>) -> CallStep {
        let thread = short(Calls::id(thread));
        match &event.body {
            Body::Fact { .. } => self.fact(event),
            Body::ToolCall { name, .. } if event.restates => {
                CallStep { tool: Some(self.known_name(name)), is_again: true, ..CallStep::default() }
            }
            Body::ToolResult { call, .. } if event.restates => self.repeated_result(Calls::id(call.as_deref())),
            Body::ToolCall { call, name, input } => self.call(event, call.as_deref(), name, input, thread),
            Body::ToolResult { call, name, .. } => {
                let mut step = self.result(event, call.as_deref(), thread);
                if let Some(name) = name.as_deref().filter(|name| !name.is_empty()) {
                    step.tool = Some(self.known_name(name));
                }
                step
            }
            Body::Message { role: Role::User, .. } => self.notice(event),
            Body::Message { .. }
            | Body::Thinking { .. }
            | Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => CallStep::default(),
        }
    }

    fn call(
        &mut self,
        event: &Event<'_>,
        stated: Option<&str>,
        name: &str,
        input: &Input<'_>,
        thread: u32,
    ) -> CallStep {
        let (id, full) = (Calls::id(stated), Calls::fingerprint(name, input));
        let fingerprint = short(full);
        let tool = self.known_name(name);
        let is_lasting = stated.is_some_and(is_lasting_id);
        if let Some(known) = self.again(id, fingerprint, thread, is_lasting) {
            return CallStep { call: Some(known), tool: Some(tool), is_again: true, ..CallStep::default() };
        }
        let script = script_words(event);
        let call_input = CallInput::of(name, input, script, || !touches(name, input, event.cwd.as_deref()).is_empty());
        let job = call_input.polled_jobs.iter().find_map(|name| self.job(name)).map(|job| job.call);
        let early = self.early.iter().position(|early| early.id == id && id != 0);
        let early = early.and_then(|at| self.early.remove(at));
        let number = early.as_ref().map_or_else(|| self.next_number(), |early| early.number);
        let call = TrackedCall {
            number,
            id,
            fingerprint,
            thread,
            tool: Arc::clone(&tool),
            answers_with_one: call_input.command.as_deref().is_some_and(answers_with_one),
            may_exit: call_input.may_exit() || job.is_some(),
            runs: call_input.command.is_some(),
            commands: u32::try_from(call_input.commands).unwrap_or(u32::MAX),
            polls: job,
            exit: None,
            has_failed: false,
        };
        let mut step =
            CallStep { call: Some(number), tool: Some(tool), fingerprint: Some(full), ..CallStep::default() };
        if let Some(early) = early {
            return self.answer_early(call, &early, step);
        }
        if let Some(evidence) = Evidence::of_hosted(event) {
            step.decision = Some(self.decide(call, &evidence));
            return step;
        }
        step.evicted = self.evicted();
        self.open.push_back(call);
        step
    }

    /// The number of an earlier equal call. Two equal calls are one call if only one of them has an id.
    fn again(&mut self, id: u64, fingerprint: u32, thread: u32, is_lasting: bool) -> Option<u64> {
        let same = |call: &&mut TrackedCall| call.fingerprint == fingerprint && call.thread == thread;
        let mut open = self.open.iter_mut().filter(same);
        if let Some(call) = open.find(|call| call.id == id && id != 0 || (call.id == 0) != (id == 0)) {
            call.id = call.id.max(id);
            return Some(call.number);
        }
        let answered = self.answered.iter().find(|call| call.id == id && id != 0 && call.fingerprint == fingerprint);
        answered.filter(|_| is_lasting).map(|call| call.number)
    }

    /// Adds a call whose result came before it.
    fn answer_early(&mut self, mut call: TrackedCall, early: &EarlyResult, mut step: CallStep) -> CallStep {
        let (printed, handles) = (early.printed.clone(), early.handles.clone());
        let mut evidence = Evidence { exit: early.exit, printed, handles, ..Evidence::default() };
        evidence.exit = evidence.exit.or_else(|| evidence.printed_exit(call.commands));
        // A result without evidence counts as a success only until the record of its call states what it ran.
        let decided = early.decided.filter(|(_, rule)| *rule != OutcomeRule::Result);
        let (outcome, rule) = decided.unwrap_or_else(|| evidence.outcome(Some(&call)));
        call.has_failed = outcome.is_failure();
        self.remember_jobs(&call, &evidence);
        let exit = evidence.exit.filter(|_| call.may_exit);
        let decision = Decision { call: call.number, outcome, rule, exit };
        step.early = Some(decision);
        // The event of the result already returned this decision.
        step.decision = (early.decided != Some((outcome, rule))).then_some(decision);
        push(&mut self.answered, call, ANSWERED_MAX);
        step
    }

    fn result(&mut self, event: &Event<'_>, stated: Option<&str>, thread: u32) -> CallStep {
        let id = Calls::id(stated);
        let at = match id {
            // A result without an id answers the oldest call without one, else the oldest of its conversation.
            0 => {
                let mine = |call: &TrackedCall| call.thread == thread;
                let nameless = self.open.iter().position(|call| call.id == 0 && mine(call));
                nameless.or_else(|| self.open.iter().position(mine))
            }
            id => self.open.iter().position(|call| call.id == id),
        };
        let mut evidence = Evidence::of(event);
        if let Some(call) = at.and_then(|at| self.open.remove(at)) {
            let (number, tool) = (call.number, Arc::clone(&call.tool));
            evidence.exit = evidence.exit.or_else(|| evidence.printed_exit(call.commands)).or(call.exit);
            let later = self.job_report(call.polls, &evidence);
            let decision = Some(self.decide(call, &evidence));
            let evidence = Some(evidence);
            return CallStep { call: Some(number), tool: Some(tool), evidence, decision, later, ..CallStep::default() };
        }
        let is_known = self.answered.iter().any(|call| call.id == id) || self.early.iter().any(|early| early.id == id);
        if id != 0 && is_known {
            return self.repeated_result(id);
        }
        let forgotten = self.forgotten.iter().position(|(known, _)| *known == id && id != 0);
        if let Some((_, number)) = forgotten.and_then(|at| self.forgotten.remove(at)) {
            let (outcome, rule) = evidence.outcome(None);
            let decision = Some(Decision { call: number, outcome, rule, exit: evidence.exit });
            return CallStep { call: Some(number), evidence: Some(evidence), decision, ..CallStep::default() };
        }
        CallStep { evidence: Some(evidence.clone()), ..self.orphan(id, &evidence) }
    }

    /// A result whose call is unknown: the call may follow, or precede the position where reading began.
    fn orphan(&mut self, id: u64, evidence: &Evidence) -> CallStep {
        let number = self.next_number();
        let (outcome, rule) = evidence.outcome(None);
        let decided = (outcome != CallOutcome::Unknown).then_some((outcome, rule));
        if id != 0 {
            let handles = evidence.handles.iter().take(EARLY_HANDLES_MAX);
            let handles = handles.map(|name| beginning(name, HANDLE_LENGTH_MAX).to_owned()).collect();
            let printed = evidence.printed.iter().copied().take(EARLY_HANDLES_MAX).collect();
            let early = EarlyResult { number, id, exit: evidence.exit, printed, handles, decided };
            push(&mut self.early, early, EARLY_MAX);
        }
        let decision = Some(Decision { call: number, outcome, rule, exit: evidence.exit });
        CallStep { call: Some(number), has_no_call: true, decision, ..CallStep::default() }
    }

    fn repeated_result(&self, id: u64) -> CallStep {
        let known = self.open.iter().chain(&self.answered).find(|call| call.id == id && id != 0);
        CallStep {
            call: known.map(|call| call.number),
            tool: known.map(|call| Arc::clone(&call.tool)),
            is_again: true,
            ..CallStep::default()
        }
    }

    /// Decides the outcome of a call that has its result, and moves the call to those with a result.
    fn decide(&mut self, mut call: TrackedCall, evidence: &Evidence) -> Decision {
        let (outcome, rule) = evidence.outcome(Some(&call));
        call.has_failed = outcome.is_failure();
        self.remember_jobs(&call, evidence);
        let decision = Decision { call: call.number, outcome, rule, exit: evidence.exit.filter(|_| call.may_exit) };
        push(&mut self.answered, call, ANSWERED_MAX);
        decision
    }

    /// Remembers the jobs that keep running after a call returned.
    fn remember_jobs(&mut self, call: &TrackedCall, evidence: &Evidence) {
        if !call.runs || evidence.exit.is_some() {
            return;
        }
        for name in &evidence.handles {
            let job = Job {
                name: Calls::id(Some(name)),
                call: call.number,
                answers_with_one: call.answers_with_one,
                // A call that failed stays failed, however its jobs end.
                has_ended: call.has_failed,
            };
            push(&mut self.jobs, job, JOBS_MAX);
        }
    }

    /// Decides the call of a job when a poll or a notice states its exit code.
    fn job_report(&mut self, polls: Option<u64>, evidence: &Evidence) -> Option<Decision> {
        let (call, exit) = (polls?, evidence.exit?);
        let job = self.jobs.iter_mut().rev().find(|job| job.call == call && !job.has_ended)?;
        job.has_ended = true;
        let (outcome, rule) = outcome::of_exit(exit, job.answers_with_one);
        if outcome.is_failure() {
            self.jobs.iter_mut().filter(|job| job.call == call).for_each(|job| job.has_ended = true);
            self.answered.iter_mut().filter(|known| known.number == call).for_each(|known| known.has_failed = true);
        }
        let rule = if rule == OutcomeRule::ExitCode { OutcomeRule::JobExitCode } else { rule };
        Some(Decision { call, outcome, rule, exit: Some(exit) })
    }

    /// Adds a message that only reports on a job.
    fn notice(&mut self, event: &Event<'_>) -> CallStep {
        let Some(notice) = JobNotice::of(event) else { return CallStep::default() };
        let call = notice.name.and_then(|name| self.job(&name)).map(|job| job.call);
        CallStep { later: self.job_report(call, &notice.evidence), ..CallStep::default() }
    }

    /// Adds a fact that reports on a call.
    fn fact(&mut self, event: &Event<'_>) -> CallStep {
        let Some(report) = CallReport::of(event) else { return CallStep::default() };
        let evidence = report.evidence();
        let id = Calls::id(report.call().as_deref());
        if let Some(call) = self.open.iter_mut().find(|call| call.id == id && id != 0) {
            call.exit = call.exit.or(evidence.exit);
            return CallStep { call: Some(call.number), ..CallStep::default() };
        }
        let known = self.answered.iter_mut().find(|call| call.id == id && id != 0);
        if let Some(call) = known {
            let (outcome, rule) = evidence.outcome(Some(call));
            let adds = evidence.exit.is_some() && outcome.is_failure() && !call.has_failed && call.may_exit;
            call.has_failed |= adds;
            let later = Decision { call: call.number, outcome, rule, exit: evidence.exit };
            // A poll that states the end of a job after this record decides nothing.
            if evidence.exit.is_some() {
                self.jobs.iter_mut().filter(|job| job.call == later.call).for_each(|job| job.has_ended = true);
            }
            return CallStep { call: Some(later.call), later: adds.then_some(later), ..CallStep::default() };
        }
        // Without a command, the record is not a call of its own.
        let command = report.command();
        if self.early.iter().any(|early| early.id == id && id != 0) || command.is_none() {
            return CallStep::default();
        }
        // This is the only record of the call: a script made it.
        let call = TrackedCall {
            number: self.next_number(),
            id,
            may_exit: true,
            runs: command.is_some(),
            answers_with_one: command.as_deref().is_some_and(answers_with_one),
            ..TrackedCall::default()
        };
        let number = call.number;
        CallStep { call: Some(number), decision: Some(self.decide(call, &evidence)), ..CallStep::default() }
    }

    fn job(&self, name: &str) -> Option<&Job> {
        let name = Calls::id(Some(name));
        self.jobs.iter().rev().find(|job| job.name == name && name != 0)
    }

    fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Makes room for one more call. Returns a call whose result could no longer be recognized.
    fn evicted(&mut self) -> Option<u64> {
        let call = if self.open.len() < OPEN_MAX { None } else { self.open.pop_front() }?;
        if call.id == 0 {
            return Some(call.number);
        }
        let oldest = if self.forgotten.len() < FORGOTTEN_MAX { None } else { self.forgotten.pop_front() };
        self.forgotten.push_back((call.id, call.number));
        oldest.map(|(_, number)| number)
    }

    /// The name of a tool, cut to the saved length. Calls of one tool share the name where possible.
    fn known_name(&self, tool: &str) -> Arc<str> {
        let tool = beginning(tool, NAME_SIZE_MAX);
        let known = self.open.iter().chain(&self.answered).find(|call| &*call.tool == tool);
        known.map_or_else(|| Arc::from(tool), |call| Arc::clone(&call.tool))
    }
}

/// The upper half of a fingerprint, for values that are saved in large numbers.
fn short(fingerprint: u64) -> u32 {
    u32::try_from(fingerprint >> 32).unwrap_or_default()
}

fn push<T>(list: &mut VecDeque<T>, item: T, most: usize) {
    if list.len() >= most {
        list.pop_front();
    }
    list.push_back(item);
}
