//! Completes an audit after the last event.

use super::calls::OpenCall;
use super::conversation::ConversationState;
use super::failures::Ending;
use super::report::{Audit, AuditStep, CallOutcome, End, Thread};
use super::{Auditor, TURNS_MAX};
use crate::model::SessionHeader;

impl Auditor {
    /// The audit of all events.
    pub fn finish(mut self) -> Audit {
        if self.conversations.is_empty() {
            self.conversations.push(ConversationState::default());
        }
        self.audit.asked = self.turns.count();
        if let Some(turn) = self.turns.finish() {
            self.audit.turns.push(turn, TURNS_MAX);
        }
        for early in self.calls.take_early() {
            self.add_result_without_call(&early);
        }
        let open = self.calls.rest();
        for open in &open {
            self.unanswered(open);
        }
        for thread in 0..self.conversations.len() {
            let stuck = self.conversations.get(thread).map(|conversation| conversation.run.stuck().collect::<Vec<_>>());
            stuck.into_iter().flatten().for_each(|stuck| self.stuck(stuck, thread));
        }
        self.audit.phases.items.sort_by_key(|phase| (phase.from.source, phase.from.event));
        // A file may contain only a side conversation.
        let main = match self.conversations.first() {
            Some(conversation) if !conversation.has_begun() => {
                self.conversations.iter().position(ConversationState::has_begun).unwrap_or(0)
            }
            _ => 0,
        };
        self.agents.assign_conversations(&self.conversations, main);
        let open = open.into_iter().rev().find(|open| open.thread == main);
        self.ends(main, open.as_ref());
        let mut audit = self.audit;
        let SessionHeader { title, branch, started_ms, ended_ms, .. } = self.header;
        (audit.title, audit.branch, audit.started_ms, audit.ended_ms) = (title, branch, started_ms, ended_ms);
        audit.tools = self.calls.tools;
        audit.calls = self.calls.list;
        audit.files = self.files.list;
        audit.agents = self.agents.list;
        audit.jobs_more = self.agents.jobs_more;
        audit
    }

    /// Reports how each conversation ended, and the last message and the failure of the main one.
    fn ends(&mut self, main: usize, open: Option<&OpenCall>) {
        let open = open.map(|open| {
            let tool = Some(self.calls.name(open.tool).to_owned());
            let (text, outcome) = (open.keys.about().to_owned(), Some(CallOutcome::Unknown));
            (AuditStep { place: open.place, tool, text, outcome, exit: None }, open.keys.fields.clone())
        });
        let place = self.place;
        for (at, conversation) in self.conversations.iter_mut().enumerate() {
            let end = End::of(&conversation.run, conversation.id.is_some());
            let context = conversation.context.take();
            if at == main {
                self.audit.end = end.clone();
                self.audit.context = context.clone();
                self.audit.last = conversation.last_message.take();
                let steps = conversation.steps.drain(..).collect();
                let ending = Ending { end: &end, place, thread: at, steps, open: open.clone() };
                self.audit.failure = std::mem::take(&mut conversation.failures).failure_of(ending);
                self.audit.cwd = self.audit.cwd.take().or_else(|| conversation.cwd.clone());
            }
            let (calls, failed) = (conversation.calls, conversation.failed);
            self.audit.threads.push(Thread { id: conversation.id.clone(), calls, failed, end, context });
        }
    }
}
