//! Applies the result of a call: to the totals of its tool, to files, to other agents and to its conversation.

use crate::calls::{CallStep, Decision, answers_with_one};
use crate::text::beginning;

use super::agents::Job;
use super::answer::Answer;
use super::calls::{EarlyResult, OpenCall};
use super::failures::{self, NewFailure};
use super::report::{Approval, AuditStep, CallOutcome, EventPlace, Fault, FaultKind};
use super::{Auditor, LIST_MAX, TEXT_SIZE_MAX, Verdict, todos};

impl Auditor {
    /// Adds the outcome of a call, as the fold decided it.
    pub(super) fn add_outcome(&mut self, open: &OpenCall, answer: &Answer, place: EventPlace, decision: &Decision) {
        let outcome = decision.outcome;
        self.calls.add_outcome(open, answer, place, decision);
        let tool = self.calls.name(open.tool).to_owned();
        for touch in &open.touches {
            let file = self.files.touch(touch, outcome, answer.is_new_file, open.place);
            if let (Some(file), Some(conversation)) = (file, self.conversations.get_mut(open.thread)) {
                conversation.window.file(file, Some(open.number));
            }
        }
        if let Some(verdict) = answer.verdict {
            let (about, reason) = (open.keys.about().to_owned(), answer.beginning.clone());
            self.approve(Some(verdict), Some(tool.clone()), &about, &reason, open.thread);
        }
        if !outcome.is_failure()
            && let Some(text) = &open.todo
        {
            let id = answer.handles.first().cloned().or_else(|| todos::number(&answer.beginning));
            todos::name(&mut self.audit.todos, text, id.as_deref(), place);
        }
        self.update_jobs(open, answer, outcome, place);
        self.update_conversation(open, answer, decision, place, &tool);
    }

    /// Adds the background job that a call starts, or the reports on the jobs that it polls.
    fn update_jobs(&mut self, open: &OpenCall, answer: &Answer, outcome: CallOutcome, place: EventPlace) {
        if let Some(agent) = open.agent {
            self.agents.add_result(agent, answer, outcome);
        }
        if open.agent.is_some() || open.keys.command.is_some() {
            for name in &answer.handles {
                self.agents.add_job(name, Job { agent: open.agent, event: open.place.event });
            }
        }
        if let (Some((_, job)), Some(call)) =
            (open.polled.first(), open.at.and_then(|at| self.calls.list.items.get_mut(at)))
        {
            call.asks_after = Some(job.event);
        }
        for (name, job) in &open.polled {
            if let Some(agent) = job.agent {
                self.agents.add_report(agent, name, answer, outcome, place);
            }
        }
    }

    /// Adds the outcome of a call to its conversation.
    fn update_conversation(
        &mut self,
        open: &OpenCall,
        answer: &Answer,
        decision: &Decision,
        place: EventPlace,
        tool: &str,
    ) {
        let Some(conversation) = self.conversations.get_mut(open.thread) else { return };
        let (outcome, exit) = (decision.outcome, decision.exit);
        let is_failure = outcome.is_failure();
        conversation.failed += u64::from(is_failure);
        let about = open.keys.about();
        conversation.last_message.close();
        let step = AuditStep {
            place: open.place,
            tool: Some(tool.to_owned()),
            text: about.to_owned(),
            outcome: Some(outcome),
            exit,
        };
        let kinds = failures::kinds(open, tool);
        // Some agents state an error for exit code 1 of commands such as `grep`, where it only means no.
        let is_answer_no = exit == Some(1) && open.keys.command.as_deref().is_some_and(answers_with_one);
        if is_failure && !is_answer_no {
            let fault = Fault {
                place,
                thread: open.thread,
                kind: if outcome == CallOutcome::Denied { FaultKind::Denied } else { FaultKind::Tool },
                name: Some(tool.to_owned()),
                text: answer.beginning.clone(),
                recovered_by: None,
            };
            let before = conversation.steps.iter().cloned().collect();
            let input = open.keys.fields.clone();
            let kind = kinds.first().copied().unwrap_or_default();
            conversation.step(step.clone());
            conversation.failures.add(NewFailure { fault, kind, call: Some(step), input, before });
        } else {
            conversation.step(step);
            conversation.failures.call_succeeded(&kinds);
        }
    }

    /// Changes the outcome of a call that this event reports on later.
    pub(super) fn decide_later(&mut self, step: &CallStep) {
        let Some(decision) = &step.later else { return };
        let Some(known) = self.calls.decide_later(decision, self.place) else { return };
        if !decision.outcome.is_failure() {
            return;
        }
        let call = self.calls.listed(&known);
        let tool = self.calls.name(known.tool).to_owned();
        let Some(conversation) = self.conversations.get_mut(known.thread) else { return };
        conversation.failed += 1;
        let step = AuditStep {
            place: call.map_or(self.place, |call| call.place),
            tool: Some(tool.clone()),
            text: call.map(|call| call.about().to_owned()).unwrap_or_default(),
            outcome: Some(decision.outcome),
            exit: decision.exit,
        };
        let input = call.map(|call| call.keys.clone()).unwrap_or_default();
        let before = conversation.decide_step(&step);
        let fault = Fault {
            place: self.place,
            thread: known.thread,
            kind: FaultKind::Tool,
            name: Some(tool),
            text: String::new(),
            recovered_by: None,
        };
        conversation.failures.add(NewFailure { fault, kind: known.kind, call: Some(step), input, before });
    }

    /// Adds a result whose call no record has. Only failures are reported.
    pub(super) fn add_result_without_call(&mut self, early: &EarlyResult) {
        if early.decision.outcome.is_failure() {
            let open = self.calls.add_result_without_call(early);
            self.add_outcome(&open, &early.answer, early.place, &early.decision);
        }
    }

    pub(super) fn unanswered(&mut self, open: &OpenCall) {
        self.calls.unanswered(open);
        for touch in &open.touches {
            self.files.touch(touch, CallOutcome::Unknown, None, open.place);
        }
    }

    pub(super) fn approve(
        &mut self,
        verdict: Option<Verdict>,
        tool: Option<String>,
        about: &str,
        reason: &str,
        thread: usize,
    ) {
        let text = |text: &str| beginning(text, TEXT_SIZE_MAX).to_owned();
        let approval = Approval { place: self.place, thread, verdict, tool, about: text(about), reason: text(reason) };
        self.audit.approvals.push(approval, LIST_MAX);
    }
}
