//! Records that are not part of the conversation: reports on calls, decisions about calls, permission modes, nested records, notices about jobs.

use super::answer::Answer;
use super::report::{Call, CallOutcome};
use super::{Auditor, TEXT_SIZE_MAX};
use crate::calls::{CallStep, Calls as CallsFold};
use crate::evidence::Task;
use crate::evidence::{AgentEvidence, CallReport, JobNotice, Judgement, NestedRecord, nested, permission_mode};
use crate::model::Event;
use crate::query::{Touch, TouchHow};
use crate::text::beginning;

impl Auditor {
    /// Adds what an event reports besides the conversation.
    pub(super) fn report(&mut self, event: &Event<'_>, step: &CallStep, thread: usize) {
        if let Some(mode) = permission_mode(event) {
            self.mode(beginning(&mode, TEXT_SIZE_MAX), thread);
        }
        if let Some(report) = CallReport::of(event) {
            self.call_report(&report, step, thread);
        }
        if let Some(judgement) = Judgement::of(event) {
            self.approve(Some(judgement.verdict), None, "", &judgement.reason, thread);
        }
        self.nested(event);
    }

    /// Adds a permission mode, if it differs from the last.
    fn mode(&mut self, mode: &str, thread: usize) {
        let Some(conversation) = self.conversations.get_mut(thread) else { return };
        if conversation.mode.as_deref() != Some(mode) {
            conversation.mode = Some(mode.to_owned());
            self.approve(None, None, mode, "", thread);
        }
    }

    /// Adds a report on a call, as far as no other record has it: the agent that the call started, and a call without another record.
    fn call_report(&mut self, report: &CallReport<'_>, step: &CallStep, thread: usize) {
        let id = report.call();
        if let Some(started) = report.agent() {
            let call = CallsFold::id(id.as_deref());
            let agent = self.agents.started_by(call).or_else(|| {
                let task = Task { kind: started.kind, prompt: started.task.unwrap_or_default(), ..Task::default() };
                self.agents.start(&task, thread, call, self.place)
            });
            if let Some(agent) = agent {
                self.agents.set_thread(agent, &started.thread);
            }
        }
        if self.calls.is_made(id.as_deref()) {
            return;
        }
        let outcome = match (step.decision, report.success()) {
            (Some(decision), _) => decision.outcome,
            (None, Some(false)) => CallOutcome::Failed,
            (None, Some(true) | None) => CallOutcome::Ok,
        };
        for (path, kind) in report.changed_files() {
            let how = match kind.as_deref() {
                Some("add") => TouchHow::Written,
                Some("delete") => TouchHow::Deleted,
                _ => TouchHow::Edited,
            };
            let file = self.files.touch(&Touch { path, how }, outcome, None, self.place);
            if let (Some(file), Some(conversation)) = (file, self.conversations.get_mut(thread)) {
                conversation.window.file(file, None);
            }
        }
        if let (Some(command), Some(decision)) = (report.command(), &step.decision) {
            self.audit.commands += 1;
            if let Some(conversation) = self.conversations.get_mut(thread) {
                conversation.calls += 1;
                conversation.failed += u64::from(outcome.is_failure());
            }
            self.calls.keep(Call {
                place: self.place,
                thread,
                tool: None,
                keys: vec![("command".to_owned(), command.clone())],
                is_cut: false,
                command: Some(command),
                outcome,
                rule: decision.rule,
                exit: decision.exit,
                took_ms: None,
                is_retry: false,
                answer: Some(self.place),
                decided: Some(self.place),
                error_text: None,
                asks_after: None,
            });
        }
    }

    /// Adds a record of a side conversation that is nested in another record.
    fn nested(&mut self, event: &Event<'_>) {
        let Some(NestedRecord { thread: Some(thread), call, events }) = nested(event) else { return };
        if let Some(agent) = self.agents.started_by(CallsFold::id(call.as_deref())) {
            self.agents.set_thread(agent, &thread);
        }
        let place = self.place;
        for event in events {
            self.add_to_thread(&event, Some(&thread));
        }
        self.place = place;
    }

    /// Adds a message that only reports on a job. Returns false for any other message.
    pub(super) fn notice(&mut self, event: &Event<'_>, text: &str) -> bool {
        let Some(notice) = JobNotice::of(event) else { return false };
        let Some(name) = notice.name else { return true };
        if let Some(agent) = self.agents.job(&name).and_then(|job| job.agent) {
            let agents = AgentEvidence { state: notice.state, ..AgentEvidence::default() };
            let answer = Answer { agents, beginning: beginning(text, TEXT_SIZE_MAX).to_owned(), ..Answer::default() };
            self.agents.add_report(agent, &name, &answer, CallOutcome::Ok, self.place);
        }
        true
    }
}
