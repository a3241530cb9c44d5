//! What an answer means: for its tool, the files, other agents, and the conversation it stands in.

use crate::text::beginning;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::agents::Work;
use super::answer::Answer;
use super::calls::Open;
use super::report::{Approval, Fault, FaultKind, Outcome, Place, Step};
use super::trouble::{self, Trouble};
use super::{Auditor, LIST_MAX, TEXT_SIZE_MAX, Verdict, thread, todos};

impl Auditor {
    /// A call was answered.
    pub(super) fn settle(&mut self, open: &Open, mut answer: Answer, place: Place) {
        answer.believe(open.keys.commands);
        let answer = &answer;
        let exit = answer.exit.filter(|_| open.may_exit);
        let command = open.keys.command.as_deref();
        // What only the exit code calls a failure may be an answer like any other.
        let is_no = !answer.is_error && command.is_some_and(|command| trouble::is_no(command, exit));
        // Who asks after other work is told how that ended, not how the asking went.
        let own_exit = exit.filter(|_| open.after.is_none() && !is_no);
        let outcome = answer.outcome(own_exit);
        self.calls.settle(open, answer, place, outcome);
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
        if outcome == Outcome::Good
            && let Some(text) = &open.todo
        {
            let id = answer.handles.first().cloned().or_else(|| todos::number(&answer.beginning));
            todos::name(&mut self.audit.todos, text, id.as_deref(), place);
        }
        self.goes_on(open, answer, outcome, place);
        self.judge(open, answer, outcome, exit, place, &tool);
    }

    /// What goes on behind a call, and what is asked after it.
    fn goes_on(&mut self, open: &Open, answer: &Answer, outcome: Outcome, place: Place) {
        if let Some(agent) = open.agent {
            self.agents.answered(agent, answer, outcome);
        }
        if open.agent.is_some() || open.keys.command.is_some() {
            for name in &answer.handles {
                let work = Work { agent: open.agent, call: open.at, tool: open.tool, event: open.place.event };
                self.agents.work(name, work);
            }
        }
        let Some(work) = open.after.and_then(|after| self.agents.get(after)) else { return };
        if let Some(call) = open.at.and_then(|at| self.calls.kept.items.get_mut(at)) {
            call.asks_after = Some(work.event);
        }
        self.later(work, answer, outcome, place);
    }

    /// How work that went on is told to have ended.
    pub(super) fn later(&mut self, work: Work, answer: &Answer, outcome: Outcome, place: Place) {
        if let Some(agent) = work.agent {
            return self.agents.later(agent, answer, outcome, place);
        }
        let call = work.call.and_then(|call| self.calls.kept.items.get_mut(call));
        if let (Some(call), Some(exit)) = (call, answer.exit) {
            let is_no = call.command.as_deref().is_some_and(|command| trouble::is_no(command, Some(exit)));
            let has_failed = exit != 0 && !is_no && call.outcome == Outcome::Good;
            call.exit = Some(exit);
            if has_failed {
                call.outcome = Outcome::Failed;
                if let Some(tool) = self.calls.tools.get_mut(work.tool) {
                    tool.failed += 1;
                }
            }
        }
    }

    /// What an answer means for its conversation.
    fn judge(&mut self, open: &Open, answer: &Answer, outcome: Outcome, exit: Option<i64>, place: Place, tool: &str) {
        let Some(course) = self.courses.get_mut(open.thread) else { return };
        let is_bad = matches!(outcome, Outcome::Failed | Outcome::Denied);
        course.failed += u64::from(is_bad);
        let about = open.keys.about();
        let result = thread::Result {
            thread: open.thread,
            call: open.place,
            place,
            step: open.step,
            print: xxh3_64_with_seed(answer.beginning.as_bytes(), open.print),
            tool,
            about,
            outcome,
        };
        for phase in course.phases.add(&result) {
            self.audit.phases.push(phase, LIST_MAX);
        }
        course.has_moved = true;
        course.said.close();
        let step = Step {
            place: open.place,
            tool: Some(tool.to_owned()),
            text: about.to_owned(),
            outcome: Some(outcome),
            exit,
        };
        let kinds = trouble::kinds(open, tool);
        let is_no = open.keys.command.as_deref().is_some_and(|command| trouble::is_no(command, exit));
        if is_bad && !is_no {
            let fault = Fault {
                place,
                thread: open.thread,
                kind: if outcome == Outcome::Denied { FaultKind::Denied } else { FaultKind::Tool },
                name: Some(tool.to_owned()),
                text: answer.beginning.clone(),
                is_recovered: false,
            };
            let before = course.steps.iter().cloned().collect();
            let input = open.keys.fields.clone();
            let kind = kinds.first().copied().unwrap_or_default();
            course.step(step.clone());
            course.troubles.add(Trouble { fault, kind, call: Some(step), input, before });
        } else {
            course.step(step);
            course.troubles.good(&kinds);
            self.recover(open.thread);
        }
    }

    pub(super) fn unanswered(&mut self, open: &Open) {
        self.calls.unanswered(open);
        for touch in &open.touches {
            self.files.touch(touch, Outcome::Unanswered, None, open.place);
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
