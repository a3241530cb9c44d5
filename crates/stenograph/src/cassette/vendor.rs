//! The APIs that a tape can answer in, and what they have in common: a request, an answer as a whole or in frames, an error. How
//! each spells them is in the file of its vendor.

use super::chat_item::{ChatItem, normal};
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

/// What a request holds, in no vendor's words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The model that is asked.
    pub model: Option<String>,
    /// Whether the answer is to come in pieces.
    pub delivery: Delivery,
    /// The conversation, as it is compared.
    pub(super) told: Vec<ChatItem>,
    /// The prompts.
    pub(super) prompts: Vec<String>,
    /// What the agent added by itself.
    pub(super) asides: Vec<String>,
    /// The names of the tools that are offered.
    pub(super) tools: Vec<String>,
    /// In what form the answer is wanted.
    pub(super) form: Form,
    /// How many tokens the answer may have.
    pub(super) tokens_max: Option<u64>,
}

/// In what form an answer is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// As the model likes.
    #[default]
    Free,
    /// As JSON.
    Json,
}

impl Form {
    /// The form that this field of a request states.
    pub fn stated(raw: Option<&str>) -> Form {
        let kind = raw.and_then(Object::parse).and_then(|format| format.peek_str("type").map(String::from));
        if kind.is_some_and(|kind| kind.starts_with("json")) { Form::Json } else { Form::Free }
    }
}

/// How an answer is to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// At once.
    #[default]
    Whole,
    /// In pieces.
    Streamed,
    /// In pieces, with the usage as the last one.
    StreamedWithUsage,
}

/// One event of a stream, as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The event, with the blank line that ends it.
    pub text: String,
    /// How long after the question it came.
    pub after_ms: u64,
}

/// Why a request gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is no request of this API.
    Bad,
    /// There is no such address.
    NotFound,
    /// The address is not asked this way.
    Method,
    /// It wants another protocol.
    Upgrade,
    /// It is larger than requests may be.
    TooLarge,
    /// It did not come in time.
    TooSlow,
    /// It comes from where it may not.
    Forbidden,
    /// It is not the recorded one, and nothing else is taken.
    Drifted,
    /// The recording is at its end.
    Ended,
}

impl Trouble {
    /// The status by which HTTP knows it.
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

/// How many characters a piece of a stream holds at least.
const DELTA_CHARS: usize = 48;

/// How many pieces a text is sent in at most, however long it is.
const DELTAS_MAX: usize = 400;

impl Vendor {
    /// Reads a request; what is wrong with it otherwise.
    pub fn request(self, body: &[u8]) -> Result<Request, String> {
        let text = std::str::from_utf8(body).map_err(|_| "the body is not UTF-8".to_owned())?;
        let object = Object::parse(text).ok_or("the body is not a JSON object")?;
        let mut request = match self {
            Vendor::OpenAi => openai::request(&object)?,
            Vendor::Responses => responses::request(&object)?,
            Vendor::Anthropic => anthropic::request(&object)?,
        };
        let told = std::mem::take(&mut request.told);
        let (prompts, told): (Vec<ChatItem>, Vec<ChatItem>) = told.into_iter().partition(ChatItem::is_prompt);
        request.prompts.extend(prompts.iter().map(ChatItem::text));
        request.told = normal(told, &mut request.asides);
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
    pub fn frames(self, answer: &Answer, request: &Request) -> Vec<Frame> {
        match self {
            Vendor::OpenAi => openai::frames(answer, request),
            Vendor::Responses => responses::frames(answer, request),
            Vendor::Anthropic => anthropic::frames(answer, request),
        }
    }

    /// What keeps a stream alive while nothing comes.
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

    /// An error of the service that was recorded.
    pub fn failure(self, failed: &Failed) -> String {
        let recorded = format!("the recorded error {}", failed.status);
        let message = if failed.message.is_empty() { &recorded } else { &failed.message };
        match self {
            Vendor::OpenAi | Vendor::Responses => openai::failure(failed.status, message),
            Vendor::Anthropic => anthropic::failure(failed.status, message),
        }
    }

    /// The models that answer.
    pub fn models(self, tape: &Tape) -> String {
        match self {
            Vendor::OpenAi | Vendor::Responses => openai::models(tape),
            Vendor::Anthropic => anthropic::models(tape),
        }
    }

    /// The model of that name, if it answers.
    pub fn model(self, tape: &Tape, name: &str) -> Option<String> {
        tape.models().contains(&name).then(|| match self {
            Vendor::OpenAi | Vendor::Responses => openai::model_json(name),
            Vendor::Anthropic => anthropic::model_json(name),
        })
    }

    /// How many tokens a request holds, about: nothing here knows a vendor's vocabulary.
    pub fn count(request: &Request) -> String {
        let tokenizer = crate::edit::tokens::Tokenizer::default();
        let told: u64 = request.told.iter().map(|said| tokenizer.text(&said.text())).sum();
        let prompts: u64 = request.prompts.iter().map(|prompt| tokenizer.text(prompt)).sum();
        format!("{{\"input_tokens\":{}}}", told + prompts)
    }
}

/// The number of a field.
pub(super) fn number(object: &Object<'_>, key: &str) -> Option<u64> {
    object.peek(key)?.parse().ok()
}

/// The model that an answer names: the one that gave it, else the one that was asked.
pub(super) fn model<'a>(answer: &'a Answer, request: &'a Request) -> &'a str {
    answer.model.as_deref().or(request.model.as_deref()).unwrap_or("unknown")
}

/// The id of an answer: the recorded one where it looks like this vendor's, else one made of its place.
pub(super) fn id(answer: &Answer, prefix: &str) -> String {
    let recorded = answer.id.as_deref().filter(|id| id.starts_with(prefix));
    recorded.map_or_else(|| format!("{prefix}steno{:06}", answer.number), str::to_owned)
}

/// A text in the pieces in which a stream brings it.
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

/// Frames with the times at which they came: what a block is sent in is spread evenly from the block before to its own moment.
#[derive(Default)]
pub(super) struct Frames {
    frames: Vec<Frame>,
    last_ms: u64,
}

impl Frames {
    /// One frame, now.
    pub fn push(&mut self, text: String) {
        self.frames.push(Frame { text, after_ms: self.last_ms });
    }

    /// The frames of one block, which was whole at this moment.
    pub fn block(&mut self, texts: Vec<String>, after_ms: u64) {
        let (from, until) = (self.last_ms, after_ms.max(self.last_ms));
        let count = texts.len() as u64;
        for (at, text) in (1..).zip(texts) {
            self.frames.push(Frame { text, after_ms: from + (until - from) * at / count.max(1) });
        }
        self.last_ms = until;
    }

    /// All of them.
    pub fn finish(self) -> Vec<Frame> {
        self.frames
    }
}
