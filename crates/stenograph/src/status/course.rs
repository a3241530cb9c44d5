//! The course of one conversation: where it has come to, which calls are open, what failed and what is said over and over. A fold in
//! bounded memory; what all that means is not decided here.

use std::collections::VecDeque;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{BEGINNING_LENGTH_MAX, Why};
use crate::calls::CallStep;
use crate::evidence::UserMessage;
use crate::model::{Body, Content, Data, Event, Kind, PieceKind, Role, Span, Usage};
use crate::text::Text;

/// Where a conversation has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was said.
    #[default]
    Nothing,
    /// It is the model's turn.
    Asked,
    /// The model thinks, or says that it will go on.
    Thinking,
    /// The model answered, and said nothing of how its answer ended.
    Answered,
    /// Something went wrong.
    Broken,
    /// It is over.
    Over {
        /// In which way.
        why: Why,
        /// The reason, in the source's own word.
        word: Option<String>,
    },
}

#[derive(Clone, Debug, Default)]
pub(super) struct ConversationState {
    pub phase: Phase,
    /// The tool that was called last.
    pub tool: Option<String>,
    /// An error that nothing good has followed.
    pub failure: Option<String>,
    /// How many errors something good followed.
    pub recovered: u64,
    /// How many tokens the model was given with the last request.
    pub context: Option<u64>,
    /// The beginning of the last thing a user asked.
    pub asked: Option<String>,
    open: VecDeque<Open>,
    recent: VecDeque<Recent>,
    /// The step that calls are made in: calls with nothing between them are one.
    step: u64,
    /// Whether something came since the last call.
    answered: bool,
    /// How many steps failed in a row, and the last of them.
    failing: (u32, Option<u64>),
    /// The record under way, and why the model's answer ends with it.
    record: (Option<Span>, Option<String>),
}

#[derive(Clone, Debug)]
struct Open {
    call: Option<String>,
    name: String,
    group: Option<String>,
    step: u64,
    number: u64,
}

/// A call that was made lately, by fingerprint.
#[derive(Clone, Debug)]
struct Recent {
    number: u64,
    print: u64,
    answer: Option<u64>,
}

/// How many open calls are remembered.
const OPEN_MAX: usize = 256;

/// Among so many calls.
const RECENT_MAX: usize = 10;

/// So many equal ones are too many.
const EQUAL_MIN: usize = 5;

/// So many steps that fail in a row are too many.
const FAILING_MIN: u32 = 3;

impl ConversationState {
    pub fn is_empty(&self) -> bool {
        self.phase == Phase::Nothing
    }

    /// The tools that have not answered, oldest first.
    pub fn open_tools(&self) -> impl Iterator<Item = &str> {
        self.open.iter().map(|open| open.name.as_str())
    }

    /// Whether step after step fails.
    pub fn is_failing(&self) -> bool {
        self.failing.0 >= FAILING_MIN
    }

    /// Whether the same call with the same input is made over and over, and its answer is the same.
    pub fn is_repeating(&self) -> bool {
        let same = |one: &Recent| {
            self.recent.iter().filter(|other| other.print == one.print && other.answer == one.answer).count()
        };
        self.recent.iter().any(|one| same(one) >= EQUAL_MIN)
    }

    /// Takes notice of one event.
    pub fn add(&mut self, event: &Event<'_>, step: &CallStep) {
        if event.part.index == 0 || event.at != self.record.0 {
            self.record = (event.at, event.stop_reason.as_deref().map(str::to_owned));
        }
        match event.usage.as_ref().map(given) {
            Some(tokens) if tokens > 0 => self.context = Some(tokens),
            // What was put aside is not given again, and how much is left only the next request tells.
            _ if event.kind() == Kind::Compaction => self.context = None,
            _ => {}
        }
        match &event.body {
            Body::Message { role: Role::User, content } => {
                self.user(UserMessage::of(event).unwrap_or(UserMessage::Typed), content);
            }
            Body::Message { role: Role::Assistant, .. } => self.assistant(event, Phase::Answered),
            Body::Thinking { .. } => self.assistant(event, Phase::Thinking),
            Body::ToolCall { call, name, input } => {
                let print = xxh3_64_with_seed(input.to_text().decode().as_bytes(), Text::from(name.as_ref()).hash());
                self.call(call.as_deref(), name, event.group.as_deref(), print);
            }
            Body::ToolResult { call, content, .. } => {
                self.result(call.as_deref(), print(content), step.has_failed());
            }
            Body::Failure { name, content } => {
                let said = content.as_ref().map(beginning).filter(|said| !said.is_empty());
                self.failure = Some(name.as_deref().map(str::to_owned).or(said).unwrap_or_default());
                self.phase = Phase::Broken;
            }
            Body::Stop { reason, success, .. } => self.stop(reason.as_deref(), *success),
            // What rules say, facts and what nobody understands is no step of the conversation.
            Body::Message { role: Role::System | Role::Developer | Role::Tool | Role::Unknown, .. }
            | Body::Fact { .. }
            | Body::Compaction { .. }
            | Body::Other { .. } => {}
        }
        if is_recovery(event, step) {
            self.recovered += u64::from(self.failure.take().is_some());
        }
    }

    fn user(&mut self, message: UserMessage, content: &Content<'_>) {
        match message {
            UserMessage::Interruption => {
                self.open.clear();
                self.phase = Phase::Over { why: Why::Interrupted, word: None };
            }
            // Mostly nothing that a model answers.
            UserMessage::Injected => {
                if self.phase == Phase::Nothing {
                    self.phase = Phase::Asked;
                }
            }
            UserMessage::JobNotice => {
                self.answered = true;
                self.phase = Phase::Asked;
            }
            UserMessage::Typed => {
                self.asked = Some(beginning(content)).filter(|said| !said.is_empty());
                self.answered = true;
                self.phase = Phase::Asked;
            }
        }
    }

    /// The model says or thinks something; `then` is where that leads when nobody says how it ended.
    fn assistant(&mut self, event: &Event<'_>, then: Phase) {
        // A new answer means that the calls of the one before are done with.
        let group = event.group.as_deref();
        self.open.retain(|open| group.is_some() && open.group.as_deref() == group);
        self.answered = true;
        self.phase = match self.record.1.as_deref().map(|word| (word, ending(word))) {
            Some((_, Ending::GoesOn)) => Phase::Thinking,
            Some((word, Ending::Over(why))) => Phase::Over { why, word: Some(word.to_owned()) },
            None => then,
        };
    }

    fn call(&mut self, call: Option<&str>, name: &str, group: Option<&str>, print: u64) {
        if self.answered {
            self.step += 1;
            self.answered = false;
        }
        let number = self.recent.back().map_or(0, |last| last.number + 1);
        if self.open.len() >= OPEN_MAX {
            self.open.pop_front();
        }
        let own = |text: Option<&str>| text.map(str::to_owned);
        self.open.push_back(Open {
            call: own(call),
            name: name.chars().take(BEGINNING_LENGTH_MAX).collect(),
            group: own(group),
            step: self.step,
            number,
        });
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent { number, print, answer: None });
        self.tool = self.open.back().map(|open| open.name.clone());
        self.phase = Phase::Thinking;
    }

    fn result(&mut self, call: Option<&str>, answer: u64, has_failed: bool) {
        // Without an id it answers the oldest call that has none, else the oldest of all.
        let at = match call {
            Some(_) => self.open.iter().position(|open| open.call.as_deref() == call),
            None => self.open.iter().position(|open| open.call.is_none()).or(Some(0)),
        };
        let open = at.and_then(|at| self.open.remove(at));
        if let Some(open) = &open
            && let Some(recent) = self.recent.iter_mut().find(|recent| recent.number == open.number)
        {
            recent.answer = Some(answer);
        }
        if has_failed {
            // Calls that were made together fail together: that is one step. A result whose call is not known is one of its own.
            let step = open.map(|open| open.step);
            if step.is_none() || self.failing.1 != step {
                self.failing = (self.failing.0.saturating_add(1), step);
            }
        } else {
            self.failing = (0, None);
        }
        self.answered = true;
        self.phase = Phase::Asked;
    }

    fn stop(&mut self, reason: Option<&str>, success: Option<bool>) {
        let ending = reason.map_or(Ending::Over(Why::Ended), ending);
        let why = match (ending, success) {
            // A turn that paused for a tool is not over, unless somebody says how it went.
            (Ending::GoesOn, None) => return,
            (Ending::Over(why @ Why::Waiting), Some(true)) => why,
            (_, Some(true)) => Why::Ended,
            (Ending::GoesOn | Ending::Over(Why::Waiting | Why::Ended), Some(false)) => Why::LastError,
            (Ending::Over(Why::Waiting | Why::Ended), None) if self.failure.is_some() => Why::LastError,
            (Ending::Over(why), _) => why,
        };
        let word = if why == Why::LastError { self.failure.clone() } else { None };
        let word = word.filter(|word| !word.is_empty()).or_else(|| reason.map(str::to_owned));
        self.open.clear();
        self.phase = Phase::Over { why, word };
    }
}

/// Whether an event shows that an error before it is recovered: the model answers, a call went well, or the run states its success. Thinking
/// alone is no proof.
pub(crate) fn is_recovery(event: &Event<'_>, step: &CallStep) -> bool {
    match &event.body {
        Body::Message { role, .. } => *role == Role::Assistant,
        Body::ToolResult { .. } => !step.has_failed(),
        // The vendor's servers answer some calls at once.
        Body::ToolCall { .. } => step.decision.is_some() && !step.has_failed(),
        Body::Stop { success, .. } => *success == Some(true),
        Body::Thinking { .. }
        | Body::Failure { .. }
        | Body::Fact { .. }
        | Body::Compaction { .. }
        | Body::Other { .. } => false,
    }
}

/// What a reason to stop means.
enum Ending {
    GoesOn,
    Over(Why),
}

/// The words that services and agents have for the same few reasons.
fn ending(word: &str) -> Ending {
    let word = word.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| word.contains(part));
    match word.as_str() {
        "tool_use" | "tool_calls" | "function_call" | "pause_turn" | "running" => Ending::GoesOn,
        "end_turn" | "stop" | "stop_sequence" => Ending::Over(Why::Waiting),
        "length" => Ending::Over(Why::CutOff),
        _ if has(&["max_tokens", "max_turns", "window_exceeded"]) => Ending::Over(Why::CutOff),
        _ if has(&["refus", "content_filter", "safety"]) => Ending::Over(Why::Refused),
        _ if has(&["interrupt", "cancel", "abort"]) => Ending::Over(Why::Interrupted),
        _ if has(&["error", "fail"]) => Ending::Over(Why::LastError),
        _ => Ending::Over(Why::Ended),
    }
}

/// How many tokens a model was given.
pub(crate) fn given(usage: &Usage) -> u64 {
    let parts = [usage.input, usage.cache_read, usage.cache_write];
    parts.into_iter().flatten().fold(0, u64::saturating_add)
}

fn beginning(content: &Content<'_>) -> String {
    content.joined().decode().trim().chars().take(BEGINNING_LENGTH_MAX).collect()
}

/// A fingerprint of an answer, pictures and all.
fn print(content: &Content<'_>) -> u64 {
    let texts = content.texts().map(Text::hash);
    let others = content.others().map(|piece| match &piece.kind {
        PieceKind::Text(text) => text.hash(),
        PieceKind::Blob { data: Data::Inline(text) | Data::Url(text) | Data::File(text), .. } => text.hash(),
        PieceKind::Other(raw) => Text::from(raw.as_ref()).hash(),
    });
    texts.chain(others).fold(0, |print, piece| xxh3_64_with_seed(&piece.to_le_bytes(), print))
}
