//! What an answer means: for its tool, the files, other agents, and the conversation it stands in.

use crate::calls::{Decision, answers_with_one};
use crate::text::beginning;

use super::agents::Job;
use super::answer::Answer;
use super::calls::{EarlyAnswer, Open};
use super::report::{Approval, CallOutcome, Fault, FaultKind, Place, Step};
use super::trouble::{self, Trouble};
use super::{Auditor, LIST_MAX, TEXT_SIZE_MAX, Verdict, todos};

impl Auditor {
    /// A call was answered, and the fold decided what came of it.
    pub(super) fn settle(&mut self, open: &Open, answer: &Answer, place: Place, decision: &Decision) {
        let outcome = decision.outcome;
        self.calls.settle(open, answer, place, decision);
        let tool = self.calls.name(open.tool).to_owned();
        for touch in &open.touches {
            let file = self.files.touch(touch, outcome, answer.made, open.place);
            if let (Some(file), Some(course)) = (file, self.courses.get_mut(open.thread)) {
                course.window.file(file, Some(open.number));
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
        self.goes_on(open, answer, outcome, place);
        self.judge(open, answer, decision, place, &tool);
    }

    /// What goes on behind a call, and what is asked after it.
    fn goes_on(&mut self, open: &Open, answer: &Answer, outcome: CallOutcome, place: Place) {
        if let Some(agent) = open.agent {
            self.agents.add_result(agent, answer, outcome);
        }
        if open.agent.is_some() || open.keys.command.is_some() {
            for name in &answer.handles {
                self.agents.add_job(name, Job { agent: open.agent, event: open.place.event });
            }
        }
        if let (Some((_, job)), Some(call)) =
            (open.polled.first(), open.at.and_then(|at| self.calls.kept.items.get_mut(at)))
        {
            call.asks_after = Some(job.event);
        }
        for (name, job) in &open.polled {
            if let Some(agent) = job.agent {
                self.agents.add_report(agent, name, answer, outcome, place);
            }
        }
    }

    /// What an answer means for its conversation.
    fn judge(&mut self, open: &Open, answer: &Answer, decision: &Decision, place: Place, tool: &str) {
        let Some(course) = self.courses.get_mut(open.thread) else { return };
        let (outcome, exit) = (decision.outcome, decision.exit);
        let is_bad = outcome.is_failure();
        course.failed += u64::from(is_bad);
        let about = open.keys.about();
        course.said.close();
        let step = Step {
            place: open.place,
            tool: Some(tool.to_owned()),
            text: about.to_owned(),
            outcome: Some(outcome),
            exit,
        };
        let kinds = trouble::kinds(open, tool);
        // Some agents state an error for an answer such as finding nothing: that is no trouble for the run.
        let is_no = exit == Some(1) && open.keys.command.as_deref().is_some_and(answers_with_one);
        if is_bad && !is_no {
            let fault = Fault {
                place,
                thread: open.thread,
                kind: if outcome == CallOutcome::Denied { FaultKind::Denied } else { FaultKind::Tool },
                name: Some(tool.to_owned()),
                text: answer.beginning.clone(),
                recovered_by: None,
            };
            let before = course.steps.iter().cloned().collect();
            let input = open.keys.fields.clone();
            let kind = kinds.first().copied().unwrap_or_default();
            course.step(step.clone());
            course.troubles.add(Trouble { fault, kind, call: Some(step), input, before });
        } else {
            course.step(step);
            course.troubles.good(&kinds);
        }
    }

    /// An answer whose call no record makes. Only a failure is worth a mention.
    pub(super) fn without_call(&mut self, early: &EarlyAnswer) {
        if early.decision.outcome.is_failure() {
            let open = self.calls.without_call(early);
            self.settle(&open, &early.answer, early.place, &early.decision);
        }
    }

    pub(super) fn unanswered(&mut self, open: &Open) {
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
