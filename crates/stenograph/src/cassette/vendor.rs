//! The APIs that a tape can answer, and their common types: a request, an answer as a whole or in frames, an error. The file of each
//! vendor has its spelling.

use super::chat_item::{ChatItem, in_comparison_order};
use super::tape::{Answer, Failed, Tape};
use super::{anthropic, openai, responses};
use crate::json::Object;

/// An API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// OpenAI's Chat Completions.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
}

/// A request, independent of the vendor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The requested model.
    pub model: Option<String>,
    /// Whether the answer is streamed.
    pub delivery: Delivery,
    /// The conversation, in the order for comparison.
    pub(super) conversation: Vec<ChatItem>,
    /// The prompts.
    pub(super) prompts: Vec<String>,
    /// The texts that the agent injected.
    pub(super) injected: Vec<String>,
    /// The names of the offered tools.
    pub(super) tools: Vec<String>,
    /// The requested form of the answer.
    pub(super) form: Form,
    /// The most tokens of the answer.
    pub(super) tokens_max: Option<u64>,
}

/// The requested form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// Any text.
    #[default]
    Free,
    /// JSON.
    Json,
}

impl Form {
    /// The form that this field of a request states.
    pub fn stated(raw: Option<&str>) -> Form {
        let kind = raw.and_then(Object::parse).and_then(|format| format.peek_str("type").map(String::from));
        if kind.is_some_and(|kind| kind.starts_with("json")) { Form::Json } else { Form::Free }
    }
}

/// How an answer is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// As a whole.
    #[default]
    Whole,
    /// As a stream.
    Streamed,
    /// As a stream that ends with the usage.
    StreamedWithUsage,
}

/// One event of a stream, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFrame {
    /// The event, including the blank line at its end.
    pub text: String,
    /// The time between the request and the event.
    pub after_ms: u64,
}

/// Why a request gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is not a request of this API.
    Bad,
    /// The address does not exist.
    NotFound,
    /// The address does not support the method.
    Method,
    /// It asks for another protocol.
    Upgrade,
    /// It is too large.
    TooLarge,
    /// It did not arrive in time.
    TooSlow,
    /// Its origin is not allowed.
    Forbidden,
    /// It differs from the recorded request, and the mode is strict.
    Drifted,
    /// The recording has ended.
    Ended,
}

impl Trouble {
    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Trouble::Bad => 400,
            Trouble::Forbidden => 403,
            Trouble::NotFound => 404,
            Trouble::Method => 405,
            Trouble::TooSlow => 408,
            Trouble::Drifted => 409,
            Trouble::Ended => 410,
            Trouble::TooLarge => 413,
            Trouble::Upgrade => 426,
        }
    }
}

/// The fewest characters of a text delta, except the last.
const DELTA_CHARS: usize = 48;

/// The most deltas of one text.
const DELTAS_MAX: usize = 400;

impl Vendor {
    /// Reads a request. The error describes what is wrong with it.
    pub fn request(self, body: &[u8]) -> Result<Request, String> {
        let text = std::str::from_utf8(body).map_err(|_| "the body is not UTF-8".to_owned())?;
        let object = Object::parse(text).ok_or("the body is not a JSON object")?;
        let mut request = match self {
            Vendor::OpenAi => openai::request(&object)?,
            Vendor::Responses => responses::request(&object)?,
            Vendor::Anthropic => anthropic::request(&object)?,
        };
        let conversation = std::mem::take(&mut request.conversation);
        let (prompts, conversation): (Vec<ChatItem>, Vec<ChatItem>) =
            conversation.into_iter().partition(ChatItem::is_prompt);
        request.prompts.extend(prompts.iter().map(ChatItem::text));
        request.conversation = in_comparison_order(conversation, &mut request.injected);
        Ok(request)
    }

    /// An answer as one JSON object.
    pub fn whole(self, answer: &Answer, request: &Request) -> String {
        match self {
            Vendor::OpenAi => openai::whole(answer, request),
            Vendor::Responses => responses::whole(answer, request),
            Vendor::Anthropic => anthropic::whole(answer, request),
        }
    }

    /// An answer as the events of a stream.
    pub fn frames(self, answer: &Answer, request: &Request) -> Vec<StreamFrame> {
        match self {
            Vendor::OpenAi => openai::frames(answer, request),
            Vendor::Responses => responses::frames(answer, request),
            Vendor::Anthropic => anthropic::frames(answer, request),
        }
    }

    /// The text that keeps an idle stream alive.
    pub fn ping(self) -> &'static str {
        match self {
            Vendor::OpenAi | Vendor::Responses => ": wait\n\n",
            Vendor::Anthropic => anthropic::PING,
        }
    }

    /// An error.
    pub fn error(self, trouble: Trouble, message: &str) -> String {
        match self {
            Vendor::OpenAi | Vendor::Responses => openai::error(trouble, message),
            Vendor::Anthropic => anthropic::error(trouble, message),
        }
    }

    /// A recorded error of the service.
    pub fn failure(self, failed: &Failed) -> String {
        let recorded = format!("the recorded error {}", failed.status);
        let message = if failed.message.is_empty() { &recorded } else { &failed.message };
        match self {
            Vendor::OpenAi | Vendor::Responses => openai::failure(failed.status, message),
            Vendor::Anthropic => anthropic::failure(failed.status, message),
        }
    }

    /// The list of models on the tape.
    pub fn models(self, tape: &Tape) -> String {
        match self {
            Vendor::OpenAi | Vendor::Responses => openai::models(tape),
            Vendor::Anthropic => anthropic::models(tape),
        }
    }

    /// The model with this name, if it is on the tape.
    pub fn model(self, tape: &Tape, name: &str) -> Option<String> {
        tape.models().contains(&name).then(|| match self {
            Vendor::OpenAi | Vendor::Responses => openai::model_json(name),
            Vendor::Anthropic => anthropic::model_json(name),
        })
    }

    /// The approximate number of tokens in a request. The tokenizers of the vendors are not available here.
    pub fn count(request: &Request) -> String {
        let tokenizer = crate::edit::tokens::Tokenizer::default();
        let conversation: u64 = request.conversation.iter().map(|item| tokenizer.text(&item.text())).sum();
        let prompts: u64 = request.prompts.iter().map(|prompt| tokenizer.text(prompt)).sum();
        format!("{{\"input_tokens\":{}}}", conversation + prompts)
    }
}

/// The number of a field.
pub(super) fn number(object: &Object<'_>, key: &str) -> Option<u64> {
    object.peek(key)?.parse().ok()
}

/// The model that an answer names: the recorded one, or else the requested one.
pub(super) fn model<'a>(answer: &'a Answer, request: &'a Request) -> &'a str {
    answer.model.as_deref().or(request.model.as_deref()).unwrap_or("unknown")
}

/// The id of an answer: the recorded one if it has the prefix of this vendor, or else one made of its number.
pub(super) fn id(answer: &Answer, prefix: &str) -> String {
    let recorded = answer.id.as_deref().filter(|id| id.starts_with(prefix));
    recorded.map_or_else(|| format!("{prefix}steno{:06}", answer.number), str::to_owned)
}

/// Splits a text into the deltas of a stream.
pub(super) fn deltas(text: &str) -> Vec<&str> {
    let count = text.chars().count();
    let length = DELTA_CHARS.max(count.div_ceil(DELTAS_MAX));
    let mut pieces = Vec::with_capacity(count.div_ceil(length));
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(length).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Frames with their times. The frames of a block are spread evenly between the end of the block before it and its own end.
#[derive(Default)]
pub(super) struct Frames {
    frames: Vec<StreamFrame>,
    last_ms: u64,
}

impl Frames {
    /// Adds a frame at the time of the last one.
    pub fn push(&mut self, text: String) {
        self.frames.push(StreamFrame { text, after_ms: self.last_ms });
    }

    /// Adds the frames of a block that ended at this time.
    pub fn block(&mut self, texts: Vec<String>, after_ms: u64) {
        let (from, until) = (self.last_ms, after_ms.max(self.last_ms));
        let count = texts.len() as u64;
        for (at, text) in (1..).zip(texts) {
            self.frames.push(StreamFrame { text, after_ms: from + (until - from) * at / count.max(1) });
        }
        self.last_ms = until;
    }

    /// The frames.
    pub fn finish(self) -> Vec<StreamFrame> {
        self.frames
    }
}
