//! Adds messages, errors and compactions to their conversation. `mod.rs` adds calls, and `outcomes.rs` their results.

use super::conversation::{ConversationState, STEP_SIZE_MAX};
use super::failures::{self, NewFailure};
use super::report::{AuditStep, Capped, Compaction, Fault, FaultKind, Phase};
use super::window::{Preserved, RemovedFromContext};
use super::{Auditor, LIST_MAX, TEXT_SIZE_MAX};
use crate::evidence::{CompactionDetails, UserMessage};
use crate::model::{Body, Content, Event, Role};
use crate::run_state::Stuck;
use crate::text::beginning;

/// The most files in the report of a compaction.
const REMOVED_FILES_MAX: usize = 100;

impl Auditor {
    pub(super) fn user(&mut self, event: &Event<'_>, content: &Content<'_>, thread: usize) {
        let joined = content.joined();
        let text = joined.decode();
        let text = text.trim();
        if self.notice(event, text) {
            return;
        }
        let message = UserMessage::of(event);
        if message == Some(UserMessage::Interruption) {
            return self.fault(FaultKind::Interrupted, None, text, thread);
        }
        let Some(conversation) = self.conversations.get_mut(thread) else { return };
        conversation.first_message_hash.get_or_insert_with(|| ConversationState::hash(text));
        conversation.last_message.close();
        conversation.window.message(text);
        if message != Some(UserMessage::Typed) {
            return;
        }
        conversation.failures.clear();
        let text = text.to_owned();
        conversation.step(AuditStep {
            place: self.place,
            tool: None,
            text: format!("user: {text}"),
            outcome: None,
            exit: None,
        });
    }

    pub(super) fn assistant(&mut self, event: &Event<'_>, content: &Content<'_>, thread: usize) {
        let joined = content.joined();
        let text = joined.decode();
        let Some(conversation) = self.conversations.get_mut(thread) else { return };
        conversation.window.message(&text);
        conversation.last_message.say(event.group.as_deref(), text.trim(), self.place);
        self.audit.answered += u64::from(thread == 0);
        if !text.trim().is_empty() {
            let text = text.trim().to_owned();
            conversation.step(AuditStep { place: self.place, tool: None, text, outcome: None, exit: None });
        }
    }

    /// A stretch without progress ended.
    pub(super) fn stuck(&mut self, stuck: Stuck, thread: usize) {
        let Stuck { kind, from, to, count, call } = stuck;
        let (tool, about) = call.map(|number| self.calls.about(number)).unwrap_or_default();
        let about = beginning(about, STEP_SIZE_MAX).to_owned();
        let phase = Phase { kind, thread, from, to, count, tool: tool.to_owned(), about };
        self.audit.phases.push(phase, LIST_MAX);
    }

    /// Marks the errors of a conversation as recovered.
    pub(super) fn recover(&mut self, thread: usize) {
        if let Some(conversation) = self.conversations.get_mut(thread) {
            conversation.failures.recovered();
        }
        let mine = self.audit.errors.items.iter_mut().rev().filter(|fault| fault.thread == thread);
        for fault in mine.take_while(|fault| fault.recovered_by.is_none()) {
            fault.recovered_by = Some(self.place);
        }
    }

    pub(super) fn fault(&mut self, kind: FaultKind, name: Option<&str>, text: &str, thread: usize) {
        let fault = Fault {
            place: self.place,
            thread,
            kind,
            name: name.map(|name| beginning(name, TEXT_SIZE_MAX).to_owned()),
            text: beginning(text, TEXT_SIZE_MAX).to_owned(),
            recovered_by: None,
        };
        self.audit.errors.push(fault.clone(), LIST_MAX);
        let Some(conversation) = self.conversations.get_mut(thread) else { return };
        conversation.last_message.close();
        let before = conversation.steps.iter().cloned().collect();
        let kind = failures::kind_of(kind, name);
        conversation.failures.add(NewFailure { fault, kind, call: None, input: Vec::new(), before });
    }

    pub(super) fn compaction(&mut self, event: &Event<'_>, summary: Option<&Content<'_>>, thread: usize) {
        let length = summary.map_or(0, |summary| summary.joined().decode().chars().count() as u64);
        let details = CompactionDetails::of(event);
        let Some(conversation) = self.conversations.get_mut(thread) else { return };
        conversation.last_message.close();
        // A boundary and its summary may be two records.
        let before = self.audit.compactions.items.iter_mut().rev().find(|before| before.thread == thread);
        if conversation.window.is_fresh()
            && let Some(before) = before
        {
            before.summary_length = before.summary_length.max(length);
            return;
        }
        let RemovedFromContext { events, messages, calls, files, commands, kept_messages, kept_calls } =
            conversation.window.compact(&preserved(&details));
        let mut names = Capped::default();
        for file in files {
            let path = self.files.list.items.get(file).map(|file| file.path.clone());
            names.push(path.unwrap_or_default(), REMOVED_FILES_MAX);
        }
        let compaction = Compaction {
            place: self.place,
            thread,
            events,
            messages,
            calls,
            kept_messages,
            kept_calls,
            tokens_before: details.tokens_before.or_else(|| conversation.context.last()),
            tokens_after: details.tokens_after,
            summary_length: length,
            files: names,
            commands,
        };
        conversation.unmeasured_compaction = self.audit.compactions.push(compaction, LIST_MAX);
    }
}

/// What a compaction keeps in the context.
fn preserved(details: &CompactionDetails) -> Preserved {
    let mut preserved = Preserved::default();
    details.preserved_ids.iter().for_each(|id| preserved.record(id));
    for event in &details.preserved_events {
        if let Body::Message { role: Role::User | Role::Assistant, content } = &event.body {
            preserved.message(&content.joined().decode());
        }
    }
    preserved
}
