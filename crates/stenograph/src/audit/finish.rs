//! What a whole session came to, when all of its events were given.

use super::calls::Open;
use super::report::{Audit, CallOutcome, End, Step, Thread};
use super::thread::Course;
use super::trouble::Ending;
use super::{Auditor, LIST_MAX};

impl Auditor {
    /// What all of it came to.
    pub fn finish(mut self) -> Audit {
        if self.courses.is_empty() {
            self.courses.push(Course::default());
        }
        self.audit.asked = self.turns.count();
        if let Some(turn) = self.turns.finish() {
            self.audit.turns.push(turn, LIST_MAX);
        }
        for early in self.calls.rest_of_early() {
            self.without_call(&early);
        }
        let open = self.calls.rest();
        for open in &open {
            self.unanswered(open);
        }
        for thread in 0..self.courses.len() {
            let stuck = self.courses.get(thread).map(|course| course.run.stuck().collect::<Vec<_>>());
            stuck.into_iter().flatten().for_each(|stuck| self.stuck(stuck, thread));
        }
        self.audit.phases.items.sort_by_key(|phase| (phase.from.source, phase.from.event));
        // A file may hold nothing but a side conversation.
        let main = match self.courses.first() {
            Some(course) if !course.has_begun() => self.courses.iter().position(Course::has_begun).unwrap_or(0),
            _ => 0,
        };
        self.agents.assign_conversations(&self.courses, main);
        let open = open.into_iter().rev().find(|open| open.thread == main);
        self.ends(main, open.as_ref());
        let mut audit = self.audit;
        audit.tools = self.calls.tools;
        audit.calls = self.calls.kept;
        audit.files = self.files.kept;
        audit.agents = self.agents.list;
        audit.jobs_more = self.agents.jobs_more;
        audit
    }

    /// How each conversation ended, and what the main one leaves.
    fn ends(&mut self, main: usize, open: Option<&Open>) {
        let open = open.map(|open| {
            let tool = Some(self.calls.name(open.tool).to_owned());
            let (text, outcome) = (open.keys.about().to_owned(), Some(CallOutcome::Unknown));
            (Step { place: open.place, tool, text, outcome, exit: None }, open.keys.fields.clone())
        });
        let place = self.place;
        for (at, course) in self.courses.iter_mut().enumerate() {
            let end = End::of(&course.run, course.id.is_some());
            let context = course.context.take();
            if at == main {
                self.audit.end = end.clone();
                self.audit.context = context.clone();
                self.audit.last = course.said.take();
                let steps = course.steps.drain(..).collect();
                let ending = Ending { end: &end, place, thread: at, steps, open: open.clone() };
                self.audit.failure = std::mem::take(&mut course.troubles).verdict(ending);
                self.audit.cwd = self.audit.cwd.take().or_else(|| course.cwd.clone());
            }
            let (calls, failed) = (course.calls, course.failed);
            self.audit.threads.push(Thread { id: course.id.clone(), calls, failed, end, context });
        }
    }
}
