//! Reports what a session did: tools, files, commands, the last message, errors, approvals, other agents, to-dos, phases without progress,
//! compactions. A pure fold over events; nothing here names a format, reads a clock or prints.
//!
//! Abandoned branches count too: a file that a call changed there did change. A repeated record counts once: the fold skips restatements,
//! recognizes a call by its id, and treats a nested record of a side conversation like its copy in another file. Each part has limits;
//! items beyond them are counted.

mod agents;
mod answer;
mod calls;
mod context_parts;
mod conversation;
mod explain;
mod facts;
mod failures;
mod files;
mod finish;
mod json;
mod keys;
mod messages;
mod outcomes;
mod report;
mod save;
#[cfg(test)]
mod tests;
mod todos;
mod window;

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::calls::{CallStep, Calls as CallsFold};
use crate::evidence::{PlanChange, script_words};
use crate::ledger::context_tokens;
use crate::model::{Body, Content, Event, Input, Role, ScriptWords, SessionHeader, StopReason, is_lasting_id};
use crate::query::touches;
use crate::repeat::IsRepeat;
use crate::run_state::RunStep;
use crate::text::beginning;
use crate::turns::SessionTurns;
use agents::{Agents, Job};
use answer::Answer;
use calls::{Calls, EarlyResult, OpenCall};
pub use context_parts::ContextParts;
use conversation::ConversationState;
pub use explain::{Explained, Explanation};
use files::Files;
pub use json::{AuditPart, Parts};
use keys::Keys;
pub use report::{
    Agent, AgentState, Approval, Audit, AuditStep, Call, CallOutcome, Capped, Compaction, ContextSize, End, EventPlace,
    Failure, Fault, FaultKind, File, FileOutcome, LastMessage, OutcomeRule, Phase, StuckKind, Thread, Todos, Tool,
};
pub(crate) use save::SavedAudit;

pub use crate::model::Verdict;

/// Folds the events of a session into an [`Audit`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Auditor {
    #[serde(with = "save::SavedAudit")]
    audit: Audit,
    conversations: Vec<ConversationState>,
    names: HashMap<String, usize>,
    calls: Calls,
    files: Files,
    agents: Agents,
    /// The turns of the main conversation.
    turns: SessionTurns,
    /// The title, branch and times of the session.
    header: SessionHeader,
    place: EventPlace,
    /// The number of events of each source so far.
    event_counts: Vec<u64>,
    /// Hashes of records, to recognize copies in other sources.
    #[serde(with = "save::hashes")]
    records: HashSet<u64>,
}

/// The most side conversations. Further ones count as part of the last.
const THREADS_MAX: usize = 4096;

/// The most records that are remembered to recognize copies.
const RECORDS_MAX: usize = 4 << 20;

/// The most errors, approvals, phases and compactions in a report.
const LIST_MAX: usize = 1000;

/// The most turns in a report. A session of months has some thousands.
const TURNS_MAX: usize = 20_000;

/// The most models in a report.
const MODELS_MAX: usize = 32;

/// The most bytes of a text that only explains something.
const TEXT_SIZE_MAX: usize = 2000;

impl Auditor {
    /// Sets the source of the next events, numbered from 0. A session with a single source need not call this; events of several sources
    /// may alternate.
    pub fn source(&mut self, source: usize) {
        if self.event_counts.len() <= self.place.source {
            self.event_counts.resize(self.place.source + 1, 0);
        }
        if let Some(event_counts) = self.event_counts.get_mut(self.place.source) {
            *event_counts = self.place.event;
        }
        let event = self.event_counts.get(source).copied().unwrap_or_default();
        self.place = EventPlace { source, event, ..EventPlace::default() };
    }

    /// Adds the next event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.place.event += 1;
        let at = event.at.unwrap_or_default();
        (self.place.line, self.place.offset) = (at.line, at.offset);
        self.audit.events += 1;
        let is_repeat = self.add_to_thread(event, event.thread.as_deref());
        if is_repeat == IsRepeat::No {
            self.header.add(event);
        }
    }

    /// Adds an event to this conversation, and returns whether it only repeats another.
    fn add_to_thread(&mut self, event: &Event<'_>, thread: Option<&str>) -> IsRepeat {
        self.place.time_ms = event.time.as_ref().and_then(crate::time::Time::to_millis);
        let thread = self.thread(thread);
        let is_copy = !event.restates && self.is_copy(event);
        let is_repeated = event.restates || is_copy;
        let step = self.step(event, is_repeated, thread);
        if thread == 0
            && !is_copy
            && let Some(turn) = self.turns.add(event, &step, self.place)
        {
            self.audit.turns.push(turn, TURNS_MAX);
        }
        self.report(event, &step, thread);
        if is_repeated {
            // A user message ends the response before it, even if only a restatement records it.
            if let Body::Message { role: Role::User, .. } = &event.body
                && let Some(conversation) = self.conversations.get_mut(thread)
            {
                conversation.last_message.close();
            }
            self.decide_later(&step);
            return IsRepeat::Yes;
        }
        self.add_session_facts(event, thread);
        let Some(conversation) = self.conversations.get_mut(thread) else { return IsRepeat::No };
        let RunStep { recovers, ended } = conversation.run.add(event, &step, self.place);
        conversation.window.event(event.id.as_deref());
        conversation.context.parts().add(event);
        if let Some(tokens) = context_tokens(event) {
            conversation.context.add(event.group.as_deref(), tokens, self.place);
            if let Some(at) = conversation.unmeasured_compaction.take()
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
                        Some(open) => self.add_outcome(&open, &answer, self.place, decision),
                        None => {
                            let tool = step.tool.as_deref().map(str::to_owned);
                            let early = EarlyResult { answer, place: self.place, decision: *decision, thread, tool };
                            let evicted = self.calls.add_early(call.as_deref(), early);
                            evicted.into_iter().for_each(|early| self.add_result_without_call(&early));
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
                } else if let Some(conversation) = self.conversations.get_mut(thread) {
                    conversation.last_message.end(&text, self.place);
                }
            }
            Body::Message { role: Role::System | Role::Developer | Role::Tool | Role::Unknown, .. }
            | Body::Thinking { .. }
            | Body::Fact { .. }
            | Body::Other { .. } => {}
        }
        self.decide_later(&step);
        if recovers {
            self.recover(thread);
        }
        ended.into_iter().for_each(|stuck| self.stuck(stuck, thread));
        IsRepeat::No
    }

    /// Passes an event to the fold of calls. The fold does not see repeated events, except for facts: a fact reports on a call in its own words.
    fn step(&mut self, event: &Event<'_>, is_repeated: bool, thread: usize) -> CallStep {
        let is_known = match &event.body {
            Body::Fact { .. } => false,
            Body::ToolCall { call, name, input } if !is_repeated => {
                self.calls.is_known(call.as_deref(), CallsFold::fingerprint(name, input))
            }
            _ => is_repeated,
        };
        if is_known {
            return CallStep { is_again: true, ..CallStep::default() };
        }
        let name = self.conversations.get(thread).and_then(|conversation| conversation.id.as_deref());
        let step = self.calls.fold.add_in(event, name);
        if let Some(open) = step.evicted.and_then(|number| self.calls.take(number)) {
            self.unanswered(&open);
        }
        match &event.body {
            // The fold remembers few calls with a result. A result that is repeated after them is no new result.
            Body::ToolResult { call, .. } if step.has_no_call && self.calls.is_made(call.as_deref()) => {
                CallStep { is_again: true, ..CallStep::default() }
            }
            _ => step,
        }
    }

    /// Whether a record is a copy of an earlier one: from another file of the session, or inside another record.
    fn is_copy(&mut self, event: &Event<'_>) -> bool {
        let Some(id) = event.id.as_deref().filter(|id| is_lasting_id(id)) else { return false };
        let time = event.time.as_ref().map(|time| time.text.as_ref()).unwrap_or_default();
        let seed = xxh3_64_with_seed(time.as_bytes(), u64::from(event.part.index) << 8 | event.kind() as u64);
        self.records.len() < RECORDS_MAX && !self.records.insert(xxh3_64_with_seed(id.as_bytes(), seed))
    }

    /// The index of the conversation with this name.
    fn thread(&mut self, name: Option<&str>) -> usize {
        if self.conversations.is_empty() {
            self.conversations.push(ConversationState::default());
        }
        let Some(name) = name else { return 0 };
        if let Some(at) = self.names.get(name) {
            return *at;
        }
        let is_full = self.conversations.len() >= THREADS_MAX;
        if !is_full {
            self.conversations.push(ConversationState { id: Some(name.to_owned()), ..ConversationState::default() });
            self.names.insert(name.to_owned(), self.conversations.len() - 1);
        }
        self.conversations.len() - 1
    }

    /// Adds what an event states about the session besides its header: its id, the folder of each conversation, all models.
    fn add_session_facts(&mut self, event: &Event<'_>, thread: usize) {
        let set = |slot: &mut Option<String>, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty() && slot.as_deref() != Some(value)) {
                *slot = Some(beginning(value, TEXT_SIZE_MAX).to_owned());
            }
        };
        set(&mut self.audit.session, event.session.as_deref());
        if let Some(conversation) = self.conversations.get_mut(thread) {
            set(&mut conversation.cwd, event.cwd.as_deref());
        }
        if event.thread.is_none() {
            set(&mut self.audit.cwd, event.cwd.as_deref());
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
        let (Some(number), Some(fingerprint), false) = (step.call, step.fingerprint, step.is_again) else { return };
        let Some(conversation) = self.conversations.get_mut(thread) else { return };
        conversation.last_message.close();
        conversation.calls += 1;
        let touches = touches(name, input, conversation.cwd.as_deref().or(self.audit.cwd.as_deref()));
        let paths: Vec<String> = touches.iter().map(|touch| touch.path.clone()).collect();
        let keys = Keys::of(name, input, if matches!(input, Input::Text(_)) { &paths } else { &[] }, script);
        let window_number = conversation.window.call(keys.command.as_deref());
        self.audit.commands += u64::from(keys.command.is_some());
        let mut todo = None;
        match PlanChange::of(name, input, script) {
            Some(PlanChange::Added(text)) => todo = Some(text),
            Some(change) => todos::apply(&mut self.audit.todos, change, self.place),
            None => {}
        }
        let agent = keys.task.as_ref().and_then(|task| self.agents.start(task, thread, CallsFold::id(id), self.place));
        let names = keys.polled_names.iter().filter(|_| agent.is_none());
        let mut polled: Vec<(String, Job)> = Vec::new();
        for (name, job) in names.filter_map(|name| Some((name, self.agents.job(name)?))) {
            // Two fields of a call may name the same job.
            if polled.iter().all(|(_, known)| *known != job) {
                polled.push((name.clone(), job));
            }
        }
        let open = OpenCall {
            thread,
            tool: 0,
            fingerprint,
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
            let early = self.calls.early_result(number);
            if let (Some(early), Some(open)) = (early, self.calls.take(number)) {
                self.add_outcome(&open, &early.answer, early.place, decision);
            }
        } else if let Some(decision) = &step.decision
            && let Some(open) = self.calls.take(number)
        {
            // A hosted tool: no record states how long the call took.
            self.add_outcome(&open, &Answer::default(), EventPlace { time_ms: None, ..self.place }, decision);
        }
    }
}

/// The name of a side conversation. The main conversation has none.
fn thread_name(audit: &Audit, thread: usize) -> Option<&str> {
    audit.threads.get(thread)?.id.as_deref()
}

fn text_of(content: Option<&Content<'_>>) -> String {
    content.map(|content| content.joined().decode().trim().to_owned()).unwrap_or_default()
}
