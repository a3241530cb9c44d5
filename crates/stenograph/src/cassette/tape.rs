//! A session as a tape: what a model was told, and each answer it gave. Made of the spine alone; whether a request fits is not
//! decided here, nor how an answer is spelled.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::said::{Said, left, normal};
use crate::calls::Calls;
use crate::model::{Event, ExtraFields, Kind, Role, Spine, Usage};
use crate::time::Time;

/// A recording in the order in which it is played.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tape {
    /// Everything that was said, as it is compared, without prompts.
    told: Vec<Said>,
    /// The prompts, in order.
    prompts: Vec<String>,
    /// What the agent added by itself, in order.
    asides: Vec<String>,
    answers: Vec<Answer>,
}

/// What a model said to one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its place on the tape, from 1.
    pub number: usize,
    /// What it holds, in order.
    pub blocks: Vec<Block>,
    /// The model that gave it.
    pub model: Option<String>,
    /// The id the vendor gave it.
    pub id: Option<String>,
    /// What it took, as far as that was recorded.
    pub usage: Usage,
    /// Why it ended.
    pub stop: Stop,
    /// When it was given, in seconds since 1970.
    pub time_seconds: Option<i64>,
    /// The error that the service gave instead.
    pub failed: Option<Failed>,
    /// The part of the tape that a request for it holds.
    told: Range<usize>,
    /// How many prompts stand before it.
    prompts: usize,
    /// The part of what the agent added by itself that a request for it holds.
    asides: Range<usize>,
    /// When it was asked for, in milliseconds since 1970.
    asked_ms: Option<i64>,
}

/// An error of the service, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The status by which HTTP knows it.
    pub status: u16,
    /// What it says, where that was recorded.
    pub message: String,
}

/// What is done with errors of the service that were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Errors {
    /// They are left out: whoever asks gets the answer that came at last.
    #[default]
    Left,
    /// They are on the tape, each where it came.
    Played,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// What it says.
    pub said: Said,
    /// How long after the question it was there.
    pub after_ms: u64,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// There was nothing more to say.
    #[default]
    End,
    /// Tools are to answer.
    Tools,
    /// It was as long as it may be.
    Length,
    /// The model would not.
    Refusal,
}

/// How many side conversations are remembered by name.
const THREADS_MAX: usize = 1000;

/// How many bytes of text a tape holds: it is kept in memory while it is played.
const SIZE_MAX: usize = 1 << 30;

/// No answer takes longer than this, whatever a clock said: agents give up before.
const WAIT_MS_MAX: i64 = 10 * 60 * 1000;

/// Where a record of an error may state its status, in what is left of it.
const STATUS: [&str; 2] = ["error.status", "status"];

/// How long an id may be that vendors take.
const ID_LENGTH_MAX: usize = 64;

impl Tape {
    /// The tape of these events: of the main conversation, or of the side conversation of that name.
    pub fn of(events: &[Event<'_>], thread: Option<&str>) -> Tape {
        let mut taping = TapeBuilder::new(thread);
        events.iter().for_each(|event| taping.notice(event));
        taping.decide();
        events.iter().for_each(|event| taping.add(event));
        taping.finish()
    }

    /// The answers, in order.
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// What a request for this answer holds.
    pub(super) fn told(&self, answer: &Answer) -> &[Said] {
        self.told.get(answer.told.clone()).unwrap_or_default()
    }

    /// The prompts that were given before this answer.
    pub(super) fn prompts(&self, answer: &Answer) -> &[String] {
        self.prompts.get(..answer.prompts).unwrap_or_default()
    }

    /// What the agent had added by itself before this answer.
    pub(super) fn asides(&self, answer: &Answer) -> &[String] {
        self.asides.get(answer.asides.clone()).unwrap_or_default()
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

/// What stands on the tape, while it is made.
enum Item {
    Said(Said),
    /// The answer of that index.
    Answer(usize),
    /// What came before is told no more.
    Cut,
}

/// A tape being made, in two passes over the events of a session: [`TapeBuilder::notice`] each, [`TapeBuilder::decide`], then [`TapeBuilder::add`] each.
#[derive(Default)]
pub struct TapeBuilder {
    thread: Option<String>,
    errors: Errors,
    threads: Vec<String>,
    spine: Spine,
    /// How many bytes of text are on the tape.
    size: usize,
    items: Vec<Item>,
    answers: Vec<Answer>,
    prompts: Vec<String>,
    calls: Calls,
    /// The ids of calls, by the number that `calls` gives them.
    ids: HashMap<u64, String>,
    model: Option<String>,
    /// When the last thing was said that is no answer.
    told_ms: Option<i64>,
    state: State,
}

/// What was said last.
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
    /// A tape of the main conversation, or of the side conversation of that name.
    pub fn new(thread: Option<&str>) -> TapeBuilder {
        TapeBuilder { thread: thread.map(str::to_owned), ..TapeBuilder::default() }
    }

    /// The same, with this done about errors of the service.
    pub fn with_errors(self, errors: Errors) -> TapeBuilder {
        TapeBuilder { errors, ..self }
    }

    /// The event as one of the conversation that is taped, if it belongs to it.
    fn own<'e, 'a>(&self, event: &'e Event<'a>) -> Option<Cow<'e, Event<'a>>> {
        match &self.thread {
            None => Some(Cow::Borrowed(event)),
            Some(thread) if event.thread.as_deref() == Some(thread) => {
                // A side conversation that is taped is the main one of its tape.
                Some(Cow::Owned(Event { thread: None, ..event.clone() }))
            }
            Some(_) => None,
        }
    }

    /// The first pass: takes notice of an event.
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

    /// Decides between the passes which events go on the tape.
    pub fn decide(&mut self) {
        self.spine.decide();
    }

    /// The names of the side conversations that were noticed.
    pub fn threads(&self) -> &[String] {
        &self.threads
    }

    /// Whether the session is larger than a tape: the rest of it is not on it.
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
            Kind::Message | Kind::ToolResult => self.told(event, time_ms),
            Kind::Compaction => self.compaction(event),
            Kind::Stop if self.state == State::Answering => {
                if let (Some(answer), Some(reason)) = (self.answers.last_mut(), event.name()) {
                    answer.stop = stop(reason).unwrap_or(answer.stop);
                }
            }
            // What went wrong in the middle of an answer was no answer to a request.
            Kind::Failure if self.errors == Errors::Played && self.state != State::Answering => {
                self.failure(event, time_ms);
            }
            Kind::Stop | Kind::Fact | Kind::Failure | Kind::Other => {}
        }
        // Some agents state what an answer took only after it.
        if let (Some(usage), Some(answer)) = (event.usage, self.answers.last_mut()) {
            answer.usage = larger(answer.usage, usage);
        }
    }

    fn answer(&mut self, event: &Event<'_>, time_ms: Option<i64>) {
        // Words that an agent puts into a model's mouth have a name in brackets where the model's would be.
        if event.model.is_none() && left(event, "model").is_some_and(|model| model.starts_with('<')) {
            return;
        }
        let group = event.group.as_deref();
        let goes_on = match self.state {
            State::Answering => true,
            // A result may be written down while the rest of the answer is still coming.
            State::Answered => group.is_some() && self.answers.last().is_some_and(|last| last.id.as_deref() == group),
            State::Asked => false,
        };
        if !goes_on {
            let number = self.answers.len() + 1;
            self.items.push(Item::Answer(self.answers.len()));
            self.answers.push(Answer {
                number,
                id: group.map(str::to_owned),
                prompts: self.prompts.len(),
                asked_ms: self.told_ms.or(time_ms),
                ..Answer::default()
            });
        }
        let id = self.call_id(event);
        let mut said = Said::of(&event.body, &id);
        if let Some(Said::Thinking { signature, redacted, encrypted, .. }) = said.first_mut() {
            *signature = left(event, "signature").filter(|signature| !signature.is_empty());
            *redacted = left(event, "data");
            *encrypted = left(event, "encrypted_content");
        }
        let Some(answer) = self.answers.last_mut() else { return };
        let after_ms = time_ms.zip(answer.asked_ms).map_or(0, |(time, asked)| (time - asked).clamp(0, WAIT_MS_MAX));
        let after_ms = u64::try_from(after_ms).unwrap_or_default();
        self.size += said.iter().map(Said::size).sum::<usize>();
        answer.blocks.extend(said.into_iter().map(|said| Block { said, after_ms }));
        answer.model = event.model.as_deref().or(self.model.as_deref()).map(str::to_owned).or(answer.model.take());
        answer.time_seconds = answer.time_seconds.or(time_ms.map(|time| time / 1000));
        answer.stop = match event.stop_reason.as_deref().map(stop) {
            Some(Some(stop)) => stop,
            _ if event.kind() == Kind::ToolCall => Stop::Tools,
            _ => answer.stop,
        };
        self.state = State::Answering;
    }

    /// An error of the service stands on the tape like an answer, if the status is known by which it was told.
    fn failure(&mut self, event: &Event<'_>, time_ms: Option<i64>) {
        let stated =
            |(_, residue): (_, &ExtraFields<'_>)| STATUS.iter().find_map(|path| residue.word_at(path)?.parse().ok());
        let Some(status) = event.extra.iter().find_map(stated).filter(|status| (400..600).contains(status)) else {
            return;
        };
        let message = event.content().map(|content| content.joined().decode().into_owned()).unwrap_or_default();
        self.size += message.len();
        self.items.push(Item::Answer(self.answers.len()));
        self.answers.push(Answer {
            number: self.answers.len() + 1,
            prompts: self.prompts.len(),
            asked_ms: self.told_ms.or(time_ms),
            failed: Some(Failed { status, message }),
            ..Answer::default()
        });
        self.state = State::Asked;
    }

    fn told(&mut self, event: &Event<'_>, time_ms: Option<i64>) {
        let id = self.call_id(event);
        for said in Said::of(&event.body, &id) {
            self.size += said.size();
            match said {
                Said::Message { text, .. } if event.role().is_some_and(is_prompt) => self.prompts.push(text),
                said => self.items.push(Item::Said(said)),
            }
        }
        if event.role().is_some_and(is_prompt) {
            return;
        }
        self.told_ms = time_ms.or(self.told_ms);
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

    /// A summary takes the place of everything before it, and is told like a user's words.
    fn compaction(&mut self, event: &Event<'_>) {
        self.items.push(Item::Cut);
        if let Some(summary) = event.content() {
            let text = summary.joined().decode().into_owned();
            self.items.push(Item::Said(Said::Message { role: Role::User, text }));
        }
        self.state = State::Asked;
    }

    /// The tape.
    pub fn finish(self) -> Tape {
        let mut tape = Tape { prompts: self.prompts, answers: self.answers, ..Tape::default() };
        let (mut from, mut asides_from, mut held) = (0, 0, Vec::new());
        for item in self.items {
            match item {
                Item::Said(said) => held.push(said),
                Item::Cut => {
                    tape.told.extend(normal(std::mem::take(&mut held), &mut tape.asides));
                    (from, asides_from) = (tape.told.len(), tape.asides.len());
                }
                Item::Answer(index) => {
                    // Results are put in the order of the calls before them, so both stay together until they are.
                    let settled = normal(std::mem::take(&mut held), &mut tape.asides);
                    let Some(answer) = tape.answers.get_mut(index) else { continue };
                    let until = tape.told.len() + settled.len();
                    answer.told = from..until;
                    answer.asides = asides_from..tape.asides.len();
                    tape.told.extend(settled);
                    held = answer.blocks.iter().map(|block| block.said.clone()).collect();
                }
            }
        }
        tape
    }
}

fn is_prompt(role: Role) -> bool {
    matches!(role, Role::System | Role::Developer)
}

/// An id as every vendor takes it: the recorded one, or one made of it.
fn fitting(id: &str) -> String {
    let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if !id.is_empty() && id.len() <= ID_LENGTH_MAX && id.chars().all(fits) {
        return id.to_owned();
    }
    format!("call_{:016x}", xxhash_rust::xxh3::xxh3_64(id.as_bytes()))
}

/// Of each number the larger: the parts of an answer may state what it took again and again, while it grows.
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

/// Why an answer ended, in the words of any vendor.
fn stop(reason: &str) -> Option<Stop> {
    match reason {
        "end_turn" | "stop" | "stop_sequence" => Some(Stop::End),
        "tool_use" | "tool_calls" => Some(Stop::Tools),
        "max_tokens" | "length" | "max_output_tokens" => Some(Stop::Length),
        "refusal" | "content_filter" => Some(Stop::Refusal),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
