//! A session as a tape: the items that the model received, and its answers. The tape has only the spine. Other modules decide whether a
//! request matches it and how a vendor spells an answer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::chat_item::{ChatItem, extra_text, in_comparison_order};
use crate::calls::Calls;
use crate::model::{Event, ExtraFields, Kind, Role, Spine, StopReason, Usage};
use crate::time::Time;

/// A recording in the order in which it is played.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tape {
    /// Everything that the model received and answered, without prompts, in the order for comparison.
    conversation: Vec<ChatItem>,
    /// The prompts, in order.
    prompts: Vec<String>,
    /// The texts that the agent injected, in order.
    injected: Vec<String>,
    answers: Vec<Answer>,
}

/// The answer of a model to one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its number on the tape, from 1.
    pub number: usize,
    /// Its parts, in order.
    pub blocks: Vec<AnswerPart>,
    /// The model that gave it.
    pub model: Option<String>,
    /// The id the vendor gave it.
    pub id: Option<String>,
    /// Its usage, as far as it is recorded.
    pub usage: Usage,
    /// Why it ended.
    pub stop: Stop,
    /// Its time, in seconds since 1970.
    pub time_seconds: Option<i64>,
    /// The error of the service instead of an answer.
    pub failed: Option<Failed>,
    /// The items of a request for it.
    conversation: Range<usize>,
    /// The number of prompts before it.
    prompts: usize,
    /// The injected texts of a request for it.
    injected: Range<usize>,
    /// The time of the request, in milliseconds since 1970.
    asked_ms: Option<i64>,
}

/// A recorded error of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The HTTP status.
    pub status: u16,
    /// The message; empty if it is not recorded.
    pub message: String,
}

/// Whether a tape plays recorded errors of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Errors {
    /// It leaves them out: the client gets the answer of the successful retry.
    #[default]
    Left,
    /// It plays each one at its position.
    Played,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerPart {
    /// The item.
    pub item: ChatItem,
    /// The time between the request and this part.
    pub after_ms: u64,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// The model was done.
    #[default]
    End,
    /// It calls tools.
    Tools,
    /// It reached the limit of its length.
    Length,
    /// The model refused.
    Refusal,
}

/// The most side conversations that are listed by name.
const THREADS_MAX: usize = 1000;

/// The most bytes of text on a tape. A tape stays in memory while it is played.
const SIZE_MAX: usize = 1 << 30;

/// The longest recorded wait that counts. Agents give up earlier.
const WAIT_MS_MAX: i64 = 10 * 60 * 1000;

/// The paths in `extra` where a record of an error may state its status.
const STATUS: [&str; 2] = ["error.status", "status"];

/// The longest id that every vendor accepts.
const ID_LENGTH_MAX: usize = 64;

impl Tape {
    /// The tape of these events: of the main conversation, or of the side conversation with this name.
    pub fn of(events: &[Event<'_>], thread: Option<&str>) -> Tape {
        let mut builder = TapeBuilder::new(thread);
        events.iter().for_each(|event| builder.notice(event));
        builder.decide();
        events.iter().for_each(|event| builder.add(event));
        builder.finish()
    }

    /// The answers, in order.
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// The items of a request for this answer.
    pub(super) fn conversation(&self, answer: &Answer) -> &[ChatItem] {
        self.conversation.get(answer.conversation.clone()).unwrap_or_default()
    }

    /// The prompts before this answer.
    pub(super) fn prompts(&self, answer: &Answer) -> &[String] {
        self.prompts.get(..answer.prompts).unwrap_or_default()
    }

    /// The texts that the agent injected before this answer.
    pub(super) fn injected(&self, answer: &Answer) -> &[String] {
        self.injected.get(answer.injected.clone()).unwrap_or_default()
    }

    /// The models that answered, each once, in order.
    pub fn models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = Vec::new();
        for model in self.answers.iter().filter_map(|answer| answer.model.as_deref()) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        models
    }
}

/// One entry of a tape under construction.
enum Item {
    /// An item that the model receives.
    Input(ChatItem),
    /// The answer of that index.
    Answer(usize),
    /// A compaction: later requests have no item from before it.
    Cut,
}

/// Builds a tape in two passes over the events of a session: [`TapeBuilder::notice`] for each event, [`TapeBuilder::decide`], then
/// [`TapeBuilder::add`] for each event.
#[derive(Default)]
pub struct TapeBuilder {
    thread: Option<String>,
    errors: Errors,
    threads: Vec<String>,
    spine: Spine,
    /// The bytes of text on the tape.
    size: usize,
    items: Vec<Item>,
    answers: Vec<Answer>,
    prompts: Vec<String>,
    calls: Calls,
    /// The ids of calls, by the number that `calls` gives them.
    ids: HashMap<u64, String>,
    model: Option<String>,
    /// The time of the last event that is not an answer.
    input_ms: Option<i64>,
    state: State,
}

/// The last entry of the tape.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Something that asks for an answer.
    #[default]
    Asked,
    /// A part of the last answer.
    Answering,
    /// The last answer, and since then only results of its calls.
    Answered,
}

impl std::fmt::Debug for TapeBuilder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TapeBuilder").field("answers", &self.answers.len()).finish_non_exhaustive()
    }
}

impl TapeBuilder {
    /// A builder for the main conversation, or for the side conversation with this name.
    pub fn new(thread: Option<&str>) -> TapeBuilder {
        TapeBuilder { thread: thread.map(str::to_owned), ..TapeBuilder::default() }
    }

    /// The same builder, with this choice about errors of the service.
    pub fn with_errors(self, errors: Errors) -> TapeBuilder {
        TapeBuilder { errors, ..self }
    }

    /// The event, if it belongs to the conversation of this tape.
    fn own<'e, 'a>(&self, event: &'e Event<'a>) -> Option<Cow<'e, Event<'a>>> {
        match &self.thread {
            None => Some(Cow::Borrowed(event)),
            Some(thread) if event.thread.as_deref() == Some(thread) => {
                // A side conversation is the main one of its own tape.
                Some(Cow::Owned(Event { thread: None, ..event.clone() }))
            }
            Some(_) => None,
        }
    }

    /// The first pass: gives an event to the spine.
    pub fn notice(&mut self, event: &Event<'_>) {
        if let Some(thread) = event.thread.as_deref()
            && self.threads.len() < THREADS_MAX
            && !self.threads.iter().any(|known| known == thread)
        {
            self.threads.push(thread.to_owned());
        }
        if let Some(event) = self.own(event) {
            self.spine.add(&event);
        }
    }

    /// Between the passes: decides which events go on the tape.
    pub fn decide(&mut self) {
        self.spine.decide();
    }

    /// The names of the side conversations that the first pass found.
    pub fn threads(&self) -> &[String] {
        &self.threads
    }

    /// Whether the session is larger than a tape, so that the rest of it is missing.
    pub fn is_full(&self) -> bool {
        self.size > SIZE_MAX
    }

    /// The second pass: puts an event on the tape.
    pub fn add(&mut self, event: &Event<'_>) {
        if let Some(event) = self.own(event)
            && self.spine.left_out(&event).is_none()
            && !self.is_full()
        {
            self.put(&event);
        }
    }

    fn put(&mut self, event: &Event<'_>) {
        if let Some(model) = event.model.as_deref().filter(|_| !event.restates) {
            self.model = Some(model.to_owned());
        }
        let instant = event.time.as_ref().and_then(Time::instant);
        let time_ms = instant.map(jiff::Timestamp::as_millisecond);
        match event.kind() {
            Kind::Message if event.role() == Some(Role::Assistant) => self.answer(event, time_ms),
            Kind::Thinking | Kind::ToolCall => self.answer(event, time_ms),
            Kind::Message | Kind::ToolResult => self.input(event, time_ms),
            Kind::Compaction => self.compaction(event),
            Kind::Stop if self.state == State::Answering => {
                if let (Some(answer), Some(reason)) = (self.answers.last_mut(), event.name()) {
                    answer.stop = stop(reason).unwrap_or(answer.stop);
                }
            }
            // An error in the middle of an answer does not answer a request.
            Kind::Failure if self.errors == Errors::Played && self.state != State::Answering => {
                self.failure(event, time_ms);
            }
            Kind::Stop | Kind::Fact | Kind::Failure | Kind::Other => {}
        }
        // Some agents state the usage of an answer only after it.
        if let (Some(usage), Some(answer)) = (event.usage, self.answers.last_mut()) {
            answer.usage = larger(answer.usage, usage);
        }
    }

    fn answer(&mut self, event: &Event<'_>, time_ms: Option<i64>) {
        // A message that the agent wrote in the name of the model has a word in angle brackets as its model.
        if event.model.is_none() && extra_text(event, "model").is_some_and(|model| model.starts_with('<')) {
            return;
        }
        let group = event.group.as_deref();
        let continues = match self.state {
            State::Answering => true,
            // An agent may record a result while the rest of the answer is still coming.
            State::Answered => group.is_some() && self.answers.last().is_some_and(|last| last.id.as_deref() == group),
            State::Asked => false,
        };
        if !continues {
            let number = self.answers.len() + 1;
            self.items.push(Item::Answer(self.answers.len()));
            self.answers.push(Answer {
                number,
                id: group.map(str::to_owned),
                prompts: self.prompts.len(),
                asked_ms: self.input_ms.or(time_ms),
                ..Answer::default()
            });
        }
        let id = self.call_id(event);
        let mut items = ChatItem::of(&event.body, &id);
        if let Some(ChatItem::Thinking { signature, redacted, encrypted, .. }) = items.first_mut() {
            *signature = extra_text(event, "signature").filter(|signature| !signature.is_empty());
            *redacted = extra_text(event, "data");
            *encrypted = extra_text(event, "encrypted_content");
        }
        let Some(answer) = self.answers.last_mut() else { return };
        let after_ms = time_ms.zip(answer.asked_ms).map_or(0, |(time, asked)| (time - asked).clamp(0, WAIT_MS_MAX));
        let after_ms = u64::try_from(after_ms).unwrap_or_default();
        self.size += items.iter().map(ChatItem::size).sum::<usize>();
        answer.blocks.extend(items.into_iter().map(|item| AnswerPart { item, after_ms }));
        answer.model = event.model.as_deref().or(self.model.as_deref()).map(str::to_owned).or(answer.model.take());
        answer.time_seconds = answer.time_seconds.or(time_ms.map(|time| time / 1000));
        answer.stop = match event.stop_reason.as_deref().map(stop) {
            Some(Some(stop)) => stop,
            _ if event.kind() == Kind::ToolCall => Stop::Tools,
            _ => answer.stop,
        };
        self.state = State::Answering;
    }

    /// Puts an error of the service on the tape like an answer, if its status is recorded.
    fn failure(&mut self, event: &Event<'_>, time_ms: Option<i64>) {
        let stated =
            |(_, extra): (_, &ExtraFields<'_>)| STATUS.iter().find_map(|path| extra.word_at(path)?.parse().ok());
        let Some(status) = event.extra.iter().find_map(stated).filter(|status| (400..600).contains(status)) else {
            return;
        };
        let message = event.content().map(|content| content.joined().decode().into_owned()).unwrap_or_default();
        self.size += message.len();
        self.items.push(Item::Answer(self.answers.len()));
        self.answers.push(Answer {
            number: self.answers.len() + 1,
            prompts: self.prompts.len(),
            asked_ms: self.input_ms.or(time_ms),
            failed: Some(Failed { status, message }),
            ..Answer::default()
        });
        self.state = State::Asked;
    }

    fn input(&mut self, event: &Event<'_>, time_ms: Option<i64>) {
        let id = self.call_id(event);
        for item in ChatItem::of(&event.body, &id) {
            self.size += item.size();
            match item {
                ChatItem::Message { text, .. } if event.role().is_some_and(is_prompt) => self.prompts.push(text),
                item => self.items.push(Item::Input(item)),
            }
        }
        if event.role().is_some_and(is_prompt) {
            return;
        }
        self.input_ms = time_ms.or(self.input_ms);
        self.state = match (event.kind(), self.state) {
            (Kind::ToolResult, State::Answering | State::Answered) => State::Answered,
            _ => State::Asked,
        };
    }

    /// The id of the call that an event makes or answers: the stated one, or one that is made up. Empty for every other event.
    fn call_id(&mut self, event: &Event<'_>) -> String {
        let number = self.calls.add(event).call;
        let known = number.and_then(|number| self.ids.get(&number)).cloned();
        let stated = event.call().filter(|id| !id.is_empty()).map(fitting);
        let Some(id) = known.or(stated).or_else(|| Some(format!("call_tape_{}", number?))) else {
            return String::new();
        };
        if let Some(number) = number {
            self.ids.insert(number, id.clone());
        }
        id
    }

    /// Replaces everything before a compaction by its summary, which the model receives as a message of the user.
    fn compaction(&mut self, event: &Event<'_>) {
        self.items.push(Item::Cut);
        if let Some(summary) = event.content() {
            let text = summary.joined().decode().into_owned();
            self.items.push(Item::Input(ChatItem::Message { role: Role::User, text }));
        }
        self.state = State::Asked;
    }

    /// The tape.
    pub fn finish(self) -> Tape {
        let mut tape = Tape { prompts: self.prompts, answers: self.answers, ..Tape::default() };
        let (mut from, mut injected_from, mut held) = (0, 0, Vec::new());
        for item in self.items {
            match item {
                Item::Input(item) => held.push(item),
                Item::Cut => {
                    tape.conversation.extend(in_comparison_order(std::mem::take(&mut held), &mut tape.injected));
                    (from, injected_from) = (tape.conversation.len(), tape.injected.len());
                }
                Item::Answer(index) => {
                    // Sorting results needs the calls before them, so both stay together until then.
                    let compared = in_comparison_order(std::mem::take(&mut held), &mut tape.injected);
                    let Some(answer) = tape.answers.get_mut(index) else { continue };
                    let until = tape.conversation.len() + compared.len();
                    answer.conversation = from..until;
                    answer.injected = injected_from..tape.injected.len();
                    tape.conversation.extend(compared);
                    held = answer.blocks.iter().map(|block| block.item.clone()).collect();
                }
            }
        }
        tape
    }
}

fn is_prompt(role: Role) -> bool {
    matches!(role, Role::System | Role::Developer)
}

/// An id that every vendor accepts: the recorded one, or a hash of it.
fn fitting(id: &str) -> String {
    let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if !id.is_empty() && id.len() <= ID_LENGTH_MAX && id.chars().all(fits) {
        return id.to_owned();
    }
    format!("call_{:016x}", xxhash_rust::xxh3::xxh3_64(id.as_bytes()))
}

/// The larger of each counter: the records of one answer repeat its usage while it grows.
fn larger(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.max(other.input),
        output: one.output.max(other.output),
        cache_read: one.cache_read.max(other.cache_read),
        cache_write: one.cache_write.max(other.cache_write),
        reasoning: one.reasoning.max(other.reasoning),
        cost: one.cost.or(other.cost),
        ..other
    }
}

/// Why an answer ended, if the word of the source states it.
fn stop(reason: &str) -> Option<Stop> {
    match StopReason::of(reason) {
        StopReason::Waiting => Some(Stop::End),
        StopReason::CutOff => Some(Stop::Length),
        StopReason::Refused => Some(Stop::Refusal),
        // The recorded calls show whether the answer waits for tools.
        StopReason::Continues | StopReason::Ended | StopReason::Interrupted | StopReason::Error => None,
    }
}

#[cfg(test)]
mod tests;
