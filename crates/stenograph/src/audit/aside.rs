//! What records say beside the conversation, in words of their format: twins of calls and results, verdicts and modes, records of side
//! conversations inside others, news of work that went on. The words are the formats'; see [`crate::format::Marks`].

use super::answer::Answer;
use super::keys::Task;
use super::report::{Call, CallOutcome};
use super::{Auditor, TEXT_SIZE_MAX};
use crate::calls::{CallStep, Calls as Fold, between, command_at, marks};
use crate::format::marks::{Judgement, Marks, Twin, word};
use crate::format::{Format, Want, named};
use crate::json::Object;
use crate::model::{Body, Event, Note, Residue};
use crate::nested::{NestedRecord, nested};
use crate::query::{Touch, TouchHow};
use crate::read::{Reading, Sink};
use crate::text::{Str, beginning};

/// How many files of one twin are looked at.
const CHANGES_MAX: usize = 256;

impl Auditor {
    /// Takes notice of what a record says beside the conversation.
    pub(super) fn aside(&mut self, event: &Event<'_>, step: &CallStep, thread: usize) {
        for (info, residue) in event.extra.known() {
            let Some(format) = named(info.name) else { continue };
            let marks = format.marks();
            self.mode(event, &marks, residue, thread);
            let Body::Fact { name, .. } = &event.body else { continue };
            for twin in marks.twins.iter().filter(|twin| twin.fact == name) {
                self.twin(twin, residue, step, thread);
            }
            for judgement in marks.judgements.iter().filter(|judgement| judgement.fact == name) {
                self.judgement(judgement, residue, thread);
            }
        }
        self.nested(event);
    }

    /// What may be done without asking, when that changes.
    fn mode(&mut self, event: &Event<'_>, marks: &Marks, residue: &Residue<'_>, thread: usize) {
        let mut words: Vec<Str<'_>> = marks.modes.iter().filter_map(|path| residue.word_at(path)).collect();
        if let Body::Fact { name, content: Some(content) } = &event.body
            && marks.mode_facts.contains(&name.as_ref())
        {
            words.push(Str::Owned(content.joined().decode().trim().to_owned()));
        }
        let mode = beginning(&words.join(", "), TEXT_SIZE_MAX).to_owned();
        let Some(course) = self.courses.get_mut(thread) else { return };
        if !mode.is_empty() && course.mode.as_ref() != Some(&mode) {
            course.mode = Some(mode.clone());
            self.approve(None, None, &mode, "", thread);
        }
    }

    /// A record that tells of a call once more, or of one that is told nowhere else.
    fn twin(&mut self, twin: &Twin, residue: &Residue<'_>, step: &CallStep, thread: usize) {
        let id = residue.word_at(twin.call);
        if let Some(name) = residue.word_at(twin.thread) {
            let agent = self.agents.of_call(Fold::id(id.as_deref())).or_else(|| {
                let text = |path: &str| residue.word_at(path).map(Str::into_owned);
                let task =
                    Task { kind: text(twin.kind), prompt: text(twin.task).unwrap_or_default(), ..Task::default() };
                self.agents.begin(&task, thread, Fold::id(id.as_deref()), self.place)
            });
            if let Some(agent) = agent {
                self.agents.thread(agent, &name);
            }
        }
        if self.calls.is_made(id.as_deref()) {
            return;
        }
        let is_good = residue.word_at(twin.success).is_none_or(|word| word == "true");
        let outcome = match step.decision {
            Some(decision) => decision.outcome,
            None if is_good => CallOutcome::Ok,
            None => CallOutcome::Failed,
        };
        self.changes(twin, residue, outcome, thread);
        let command = if twin.command.is_empty() { None } else { residue.at(twin.command).and_then(command_at) };
        if let (Some(command), Some(decision)) = (command, &step.decision) {
            self.audit.commands += 1;
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
                said: None,
                asks_after: None,
            });
        }
    }

    /// The files that a twin says were changed.
    fn changes(&mut self, twin: &Twin, residue: &Residue<'_>, outcome: CallOutcome, thread: usize) {
        if twin.changes.is_empty() {
            return;
        }
        let Some(changes) = residue.at(twin.changes).and_then(Object::parse) else { return };
        for (path, raw) in changes.pairs().take(CHANGES_MAX) {
            let kind = Object::parse(raw).and_then(|change| change.peek("type").and_then(word).map(Str::into_owned));
            let how = match kind.as_deref() {
                Some("add") => TouchHow::Written,
                Some("delete") => TouchHow::Deleted,
                _ => TouchHow::Edited,
            };
            let file = self.files.touch(&Touch { path: path.to_owned(), how }, outcome, None, self.place);
            if let (Some(file), Some(course)) = (file, self.courses.get_mut(thread)) {
                course.window.file(file, None);
            }
        }
    }

    fn judgement(&mut self, judgement: &Judgement, residue: &Residue<'_>, thread: usize) {
        let Some(said) = residue.word_at(judgement.field) else { return };
        let verdict = judgement.words.iter().find(|(word, _)| *word == said).map(|(_, verdict)| *verdict);
        if let Some(verdict) = verdict {
            let reason = residue.word_at(judgement.reason).unwrap_or_default().into_owned();
            self.approve(Some(verdict), None, "", &reason, thread);
        }
    }

    /// A record of a side conversation inside another record.
    fn nested(&mut self, event: &Event<'_>) {
        let Some(NestedRecord { thread: Some(thread), call, events }) = nested(event) else { return };
        if let Some(agent) = self.agents.of_call(Fold::id(call.as_deref())) {
            self.agents.thread(agent, &thread);
        }
        let place = self.place;
        for event in events {
            self.take(&event, Some(&thread));
        }
        self.place = place;
    }

    /// Whether a message only tells of work that went on; then it is taken notice of.
    pub(super) fn notice(&mut self, event: &Event<'_>, text: &str) -> bool {
        let found = marks(event).find_map(|(marks, _)| marks.notice.filter(|notice| text.starts_with(notice.begins)));
        let Some(notice) = found else { return false };
        let answer = Answer {
            state: between(text, notice.state),
            beginning: beginning(text, TEXT_SIZE_MAX).to_owned(),
            ..Answer::default()
        };
        let work = between(text, notice.handle).and_then(|name| self.agents.asked_for(&[name]));
        if let Some(agent) = work.and_then(|work| self.agents.get(work)?.agent) {
            self.agents.later(agent, &answer, CallOutcome::Ok, self.place);
        }
        true
    }
}

/// Keeps the events of records that stand inside of others.
pub(super) struct Inside(Vec<Event<'static>>);

impl Inside {
    /// The events of these records.
    pub(super) fn of(format: &dyn Format, records: &[&str]) -> Vec<Event<'static>> {
        let mut inside = Inside(Vec::new());
        let mut reading = Reading::new(format, Want::All);
        for record in records {
            reading.feed(record.as_bytes(), &mut inside);
            reading.feed(b"\n", &mut inside);
        }
        reading.end(&mut inside);
        inside.0
    }
}

impl Sink for Inside {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push(event.clone().into_owned());
    }

    fn note(&mut self, _note: Note) {}
}
