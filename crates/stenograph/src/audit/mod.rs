//! What a session did: tools, files, commands, what was said last, what went wrong, who allowed it, other agents, what is to do, where it got
//! nowhere, what was put aside. A pure fold over events; nothing here names a format, reads a clock or prints.
//!
//! Everything that happened counts, also what was taken back later: a file that was changed on a branch that nobody went on with was
//! changed all the same. What is told twice counts once: restatements are passed over, a call is known again by its id, and a record of a
//! side conversation inside another record is the same as in a file of its own. Memory is bounded by the limits of each part; what does not
//! fit is counted.

mod agents;
mod answer;
mod calls;
mod close;
mod explain;
mod files;
mod json;
mod keys;
mod report;
mod reports;
mod settle;
mod talk;
#[cfg(test)]
mod tests;
mod thread;
mod todos;
mod trouble;
mod window;

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::calls::{CallStep, Calls as Fold};
use crate::evidence::{PlanChange, script_words};
use crate::ledger::context_tokens;
use crate::model::{Body, Content, Event, Input, Role, ScriptWords, is_lasting_id};
use crate::query::touches;
use crate::run_state::{RunStep, StopReason};
use crate::text::beginning;
use crate::turns::SessionTurns;
use agents::Agents;
use answer::Answer;
use calls::{Calls, EarlyAnswer, Open};
pub use explain::{Explained, Explanation};
use files::Files;
pub use json::{Part, Parts};
use keys::Keys;
pub use report::{
    Agent, AgentState, Approval, Audit, Call, CallOutcome, Capped, Change, Compaction, Context, End, Failure, Fault,
    FaultKind, File, LastMessage, OutcomeRule, Phase, Place, Step, StuckKind, Thread, Todos, Tool,
};
use thread::Course;

pub use crate::model::Verdict;

/// Follows the events of a session.
#[derive(Debug, Default)]
pub struct Auditor {
    audit: Audit,
    courses: Vec<Course>,
    names: HashMap<String, usize>,
    calls: Calls,
    files: Files,
    agents: Agents,
    /// The turns of the main conversation.
    turns: SessionTurns,
    place: Place,
    /// How many events of each source were given.
    given: Vec<u64>,
    /// Fingerprints of records, to know one again that another source copied.
    records: HashSet<u64>,
}

/// How many side conversations are told apart. What is more counts as one.
const THREADS_MAX: usize = 4096;

/// How many records are remembered to know them again.
const RECORDS_MAX: usize = 4 << 20;

/// How many errors, approvals, phases and compactions are kept.
const LIST_MAX: usize = 1000;

/// How many models are named.
const MODELS_MAX: usize = 32;

/// How much of a text is kept where it only explains.
const TEXT_SIZE_MAX: usize = 2000;

impl Auditor {
    /// The next events are those of this source of the session, numbered from 0. Of a session with several they may come in the order of
    /// their times; a single one needs no word.
    pub fn source(&mut self, source: usize) {
        if self.given.len() <= self.place.source {
            self.given.resize(self.place.source + 1, 0);
        }
        if let Some(given) = self.given.get_mut(self.place.source) {
            *given = self.place.event;
        }
        let event = self.given.get(source).copied().unwrap_or_default();
        self.place = Place { source, event, ..Place::default() };
    }

    /// Takes notice of the next event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.place.event += 1;
        let at = event.at.unwrap_or_default();
        (self.place.line, self.place.offset) = (at.line, at.offset);
        self.audit.events += 1;
        self.take(event, event.thread.as_deref());
    }

    /// Takes notice of an event of this conversation.
    fn take(&mut self, event: &Event<'_>, thread: Option<&str>) {
        let time_ms = event.time.as_ref().and_then(crate::time::Time::to_millis);
        self.place.time_ms = time_ms;
        if let Some(time_ms) = time_ms {
            self.audit.started_ms = Some(self.audit.started_ms.map_or(time_ms, |first| first.min(time_ms)));
            self.audit.ended_ms = self.audit.ended_ms.max(Some(time_ms));
        }
        let thread = self.thread(thread);
        let is_copy = !event.restates && self.is_copy(event);
        let is_told = event.restates || is_copy;
        let step = self.step(event, is_told, thread);
        if thread == 0
            && !is_copy
            && let Some(turn) = self.turns.add(event, &step, self.place)
        {
            self.audit.turns.push(turn, LIST_MAX);
        }
        self.report(event, &step, thread);
        if is_told {
            // Whoever asks ends what was said, also where only the record for people tells of it.
            if let Body::Message { role: Role::User, .. } = &event.body
                && let Some(course) = self.courses.get_mut(thread)
            {
                course.said.close();
            }
            return;
        }
        self.state(event, thread);
        let Some(course) = self.courses.get_mut(thread) else { return };
        let RunStep { recovers, ended } = course.run.add(event, &step, self.place);
        course.window.event(event.id.as_deref());
        if let Some(tokens) = context_tokens(event) {
            course.context.add(event.group.as_deref(), tokens, self.place);
            if let Some(at) = course.compacted.take()
                && let Some(compaction) = self.audit.compactions.items.get_mut(at)
            {
                compaction.tokens_after = compaction.tokens_after.or(Some(tokens));
            }
        }
        match &event.body {
            Body::Message { role: Role::User, content } => self.user(event, content, thread),
            Body::Message { role: Role::Assistant, content } => self.assistant(event, content, thread),
            Body::ToolCall { call, name, input } => {
                let script = script_words(event);
                self.call(call.as_deref(), name, input, script, thread, &step);
            }
            Body::ToolResult { call, content, .. } => {
                if let (Some(decision), Some(evidence)) = (&step.decision, &step.evidence) {
                    let answer = Answer::of(event, content, evidence);
                    match self.calls.take(decision.call) {
                        Some(open) => self.settle(&open, &answer, self.place, decision),
                        None => {
                            let tool = step.tool.as_deref().map(str::to_owned);
                            let early = EarlyAnswer { answer, place: self.place, decision: *decision, thread, tool };
                            let given_up = self.calls.keep_early(call.as_deref(), early);
                            given_up.into_iter().for_each(|early| self.without_call(&early));
                        }
                    }
                }
            }
            Body::Compaction { summary } => self.compaction(event, summary.as_ref(), thread),
            Body::Failure { name, content } => {
                self.fault(FaultKind::Failure, name.as_deref(), &text_of(content.as_ref()), thread);
            }
            Body::Stop { reason, success, content } => {
                let text = text_of(content.as_ref());
                if *success == Some(false) {
                    let is_failure = StopReason::is_failure(reason.as_deref(), *success);
                    let kind = if is_failure { FaultKind::Stop } else { FaultKind::Interrupted };
                    self.fault(kind, reason.as_deref(), &text, thread);
                } else if let Some(course) = self.courses.get_mut(thread) {
                    course.said.end(&text, self.place);
                }
            }
            Body::Message { role: Role::System | Role::Developer | Role::Tool | Role::Unknown, .. }
            | Body::Thinking { .. }
            | Body::Fact { .. }
            | Body::Other { .. } => {}
        }
        if recovers {
            self.recover(thread);
        }
        ended.into_iter().for_each(|stuck| self.stuck(stuck, thread));
    }

    /// What an event means for the calls. What was told already means nothing, except for facts: they report on calls in words of their own.
    fn step(&mut self, event: &Event<'_>, is_told: bool, thread: usize) -> CallStep {
        let is_known = match &event.body {
            Body::Fact { .. } => false,
            Body::ToolCall { call, name, input } if !is_told => {
                self.calls.is_known(call.as_deref(), Fold::print(name, input))
            }
            _ => is_told,
        };
        if is_known {
            return CallStep { is_again: true, ..CallStep::default() };
        }
        let name = self.courses.get(thread).and_then(|course| course.id.as_deref());
        let step = self.calls.fold.add_in(event, name);
        if let Some(open) = step.evicted.and_then(|number| self.calls.take(number)) {
            self.unanswered(&open);
        }
        if let Some(decision) = &step.later {
            self.calls.decide_later(decision, self.place);
        }
        step
    }

    /// Whether a record was told already, word for word: by another file of the session, or inside another record.
    fn is_copy(&mut self, event: &Event<'_>) -> bool {
        let Some(id) = event.id.as_deref().filter(|id| is_lasting_id(id)) else { return false };
        let time = event.time.as_ref().map(|time| time.text.as_ref()).unwrap_or_default();
        let seed = xxh3_64_with_seed(time.as_bytes(), u64::from(event.part.index) << 8 | event.kind() as u64);
        self.records.len() < RECORDS_MAX && !self.records.insert(xxh3_64_with_seed(id.as_bytes(), seed))
    }

    /// The conversation of that name.
    fn thread(&mut self, name: Option<&str>) -> usize {
        if self.courses.is_empty() {
            self.courses.push(Course::default());
        }
        let Some(name) = name else { return 0 };
        if let Some(at) = self.names.get(name) {
            return *at;
        }
        let is_full = self.courses.len() >= THREADS_MAX;
        if !is_full {
            self.courses.push(Course { id: Some(name.to_owned()), ..Course::default() });
            self.names.insert(name.to_owned(), self.courses.len() - 1);
        }
        self.courses.len() - 1
    }

    /// What an event states beside what it says.
    fn state(&mut self, event: &Event<'_>, thread: usize) {
        let set = |slot: &mut Option<String>, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty() && slot.as_deref() != Some(value)) {
                *slot = Some(beginning(value, TEXT_SIZE_MAX).to_owned());
            }
        };
        set(&mut self.audit.session, event.session.as_deref());
        set(&mut self.audit.branch, event.branch.as_deref());
        if let Some(course) = self.courses.get_mut(thread) {
            set(&mut course.cwd, event.cwd.as_deref());
        }
        if event.thread.is_none() {
            set(&mut self.audit.cwd, event.cwd.as_deref());
        }
        if let Body::Fact { fact: crate::model::Fact::Title, content: Some(content) } = &event.body {
            set(&mut self.audit.title, Some(content.joined().decode().trim()));
        }
        if let Some(model) = event.model.as_deref().filter(|model| !model.is_empty())
            && self.audit.models.len() < MODELS_MAX
            && self.audit.models.iter().all(|known| known != model)
        {
            self.audit.models.push(beginning(model, TEXT_SIZE_MAX).to_owned());
        }
    }

    fn call(
        &mut self,
        id: Option<&str>,
        name: &str,
        input: &Input<'_>,
        script: Option<ScriptWords>,
        thread: usize,
        step: &CallStep,
    ) {
        let (Some(number), Some(print), false) = (step.call, step.print, step.is_again) else { return };
        let Some(course) = self.courses.get_mut(thread) else { return };
        course.said.close();
        course.calls += 1;
        let touches = touches(name, input, course.cwd.as_deref().or(self.audit.cwd.as_deref()));
        let paths: Vec<String> = touches.iter().map(|touch| touch.path.clone()).collect();
        let keys = Keys::of(name, input, if matches!(input, Input::Text(_)) { &paths } else { &[] }, script);
        let window_number = course.window.call(keys.command.as_deref());
        self.audit.commands += u64::from(keys.command.is_some());
        let mut todo = None;
        match PlanChange::of(name, input, script) {
            Some(PlanChange::Added(text)) => todo = Some(text),
            Some(change) => todos::apply(&mut self.audit.todos, change, self.place),
            None => {}
        }
        let agent = keys.task.as_ref().and_then(|task| self.agents.start(task, thread, Fold::id(id), self.place));
        let names = keys.asks_for.iter().filter(|_| agent.is_none());
        let polled = names.filter_map(|name| Some((name.clone(), self.agents.job(name)?))).collect();
        let open = Open {
            thread,
            tool: 0,
            print,
            place: self.place,
            at: None,
            keys,
            touches,
            number: window_number,
            polled,
            todo,
            agent,
        };
        self.calls.begin(number, open, name);
        if let Some(decision) = &step.early {
            let early = self.calls.early(number);
            if let (Some(early), Some(open)) = (early, self.calls.take(number)) {
                self.settle(&open, &early.answer, early.place, decision);
            }
        } else if let Some(decision) = &step.decision
            && let Some(open) = self.calls.take(number)
        {
            // The tool runs where the model does, and how long it took is not known.
            self.settle(&open, &Answer::default(), Place { time_ms: None, ..self.place }, decision);
        }
    }
}

/// The name of a side conversation; the main one has none.
fn thread_name(audit: &Audit, thread: usize) -> Option<&str> {
    audit.threads.get(thread)?.id.as_deref()
}

fn text_of(content: Option<&Content<'_>>) -> String {
    content.map(|content| content.joined().decode().trim().to_owned()).unwrap_or_default()
}
