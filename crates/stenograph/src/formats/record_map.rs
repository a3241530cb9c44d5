//! Tables that say where a JSON record holds the fields of its events. A format states each of its records once as a
//! [`RecordMap`]; reading and writing back follow the same table. The tables know no format. Records for the events of another
//! format are made with [`RecordTemplates`](super::record_templates::RecordTemplates).

mod blocks;
mod conversations;
mod fields;
mod format;
mod read;
mod write;

pub use format::{Foreign, MappedFormat, MappedPlace, MappedWriter, Words};

use crate::model::{Body, Content, Role};

/// Where a record holds the fields of its events. Dots separate the keys of a path. A field that is missing or has another
/// type stays where it is. A content at a path that ends in `{}` is the text of a database row: a row embeds a text that is JSON.
#[derive(Clone, Copy, Debug)]
pub struct RecordMap {
    /// The fields of the record itself.
    pub fields: &'static [(RecordField, &'static str)],
    /// The usage of the model call.
    pub usage: Option<UsageMap>,
    /// The events, in this order.
    pub parts: &'static [PartMap],
    /// What the content of the record is.
    pub speaks: Speaks,
    /// What it repeats of other records.
    pub restates: Restates,
}

impl RecordMap {
    /// A record without any field.
    pub const NONE: RecordMap = RecordMap {
        fields: &[],
        usage: None,
        parts: &[],
        speaks: Speaks::As(Role::Unknown),
        restates: Restates::Nothing,
    };
}

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordField {
    Id,
    /// An id that is a number.
    IdNumber,
    /// The record that this one follows. If an edit removes it, `null` takes its place.
    Parent,
    Group,
    RequestId,
    Session,
    /// The sub-agent whose conversation has the record.
    Thread,
    /// The session of a sub-agent that has a session of its own, which is then the sub-agent. It counts only after a
    /// [`RecordField::Session`].
    OuterSession,
    /// The session that this one was forked from.
    ForkSession,
    /// The last record that both share. It counts only after a [`RecordField::ForkSession`].
    ForkRecord,
    From,
    Model,
    /// The model is the only key of an object. It stays in the record.
    ModelKey,
    Cwd,
    Branch,
    Version,
    StopReason,
    /// A flag which states that the record repeats another one. It stays in the record.
    Restates,
    /// When the result in the record came, in milliseconds since 1970. It stays in the record.
    ResultMillis,
    /// A time in RFC 3339. Text without a UTC offset is read as UTC.
    Time,
    /// A time in milliseconds since 1970.
    Millis,
    /// A time in seconds since 1970.
    Seconds,
}

/// What a record repeats of other records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restates {
    Nothing,
    /// All of it.
    Everything,
    /// The results: the records of their calls have them too.
    Results,
    /// If a line has calls, its agent wrote the same line without them before: texts and thinking are in both. Calls and
    /// thinking among the parts of the message repeat those in lists of their own.
    TextBesideCalls,
}

/// Where a record states the usage of a model call. Each counter has several possible paths; the first one with a number
/// counts.
#[derive(Clone, Copy, Debug)]
pub struct UsageMap {
    pub input: &'static [&'static str],
    pub output: &'static [&'static str],
    pub cache_read: &'static [&'static str],
    pub cache_write: &'static [&'static str],
    pub reasoning: &'static [&'static str],
    pub cost: &'static [&'static str],
    pub input_has: InputHas,
    pub output_has: OutputHas,
}

/// Whether the input of a usage includes tokens of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputHas {
    /// All tokens that were sent, including those read from and written to a cache.
    Cache,
    /// The tokens that were sent, without those read from or written to a cache.
    NoCache,
}

/// Whether the output of a usage includes tokens of thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputHas {
    Thinking,
    NoThinking,
}

impl UsageMap {
    /// No counters.
    pub const NONE: UsageMap = UsageMap {
        input: &[],
        output: &[],
        cache_read: &[],
        cache_write: &[],
        reasoning: &[],
        cost: &[],
        input_has: InputHas::Cache,
        output_has: OutputHas::Thinking,
    };
}

/// Where a record holds one event, or a list of events.
#[derive(Clone, Copy, Debug)]
pub enum PartMap {
    /// A fact that the record states by existing.
    Stated(&'static str),
    /// A fact that the record states by having a value at this path. The value stays in the record.
    StatedAt(&'static str, &'static str),
    /// A fact whose name is the word at this path. It stays in the record.
    Named(&'static str),
    /// A record that is not understood, of the type at this path. It stays in the record.
    Unknown(&'static str),
    /// A record whose content could not be read, for the reason at this path. It stays in the record.
    Unread(&'static str),
    /// A fact whose content is the text at this path. These texts are not such a fact and stay in the record.
    Fact(&'static str, &'static str, &'static [&'static str]),
    /// A fact whose content is the number at this path.
    Count(&'static str, &'static str),
    /// Thinking: text, or a list of elements with text under one of these keys.
    Thinking(&'static str, &'static [&'static str]),
    /// What the record says: text, or a list of elements with text under one of these keys.
    Content(&'static str, &'static [&'static str]),
    /// A call whose fields are in the record itself.
    Call(CallMap),
    /// A list of calls.
    Calls(&'static str, CallMap),
    /// A result whose fields are in the record itself.
    Result(ResultMap),
    /// The result of the call in the same record, which comes before it, and the path of an object whose fields belong to it.
    Answer(ResultMap, &'static str),
    /// A list of results.
    Results(&'static str, ResultMap),
    /// A list of calls, each with its result, if it has one. The result needs no id of its own.
    CallsWithResults(&'static str, CallMap, ResultMap),
    /// A list of Anthropic's content blocks, or one text. Results may have elements with text under one of these keys.
    Blocks(&'static str, &'static [&'static str], ErrorAt),
    /// A list of the parts of Google's Gemini API.
    Parts(&'static str, PartsForm),
    /// A list of earlier messages, which other records usually state too.
    History(&'static str, HistoryMap),
    /// A list of elements of several kinds, each described by the first of these that fits it; or one text. Other elements are
    /// pieces of a message.
    List(&'static str, &'static [ElementMap]),
    /// A list of objects that are records of their own, each with the table that this finds by the words of the record and those of
    /// the object. What they do not state is that of the record.
    LowerRecords(&'static str, fn(&Words<'_>, &Words<'_>) -> &'static RecordMap),
    /// The reason why a run ended.
    Stop(&'static str),
    /// The end of a run, which the record states by existing.
    Ended(StopMap),
    /// A compaction, which the record states by existing, and its summary.
    Compacted(&'static str),
    /// An error, which the record states by existing: its name and its text.
    Failed(&'static str, &'static str),
    /// An object with the usage of each model, by its name. It stays in the record; each is the fact `usage`.
    UsageByModel(&'static str, UsageMap),
    /// A text in which an agent marks thinking and calls.
    Marked(&'static str, MarkedText),
    /// A list of whole conversations of sub-agents.
    Conversations(&'static str, &'static ConversationMap),
    /// A list of records: the whole conversation is one record. A list with an element that is no object stays whole.
    Records(&'static str, RecordsMap),
}

/// The fields of the conversation of a sub-agent in a list. A list with an element of another form stays whole.
#[derive(Clone, Copy, Debug)]
pub struct ConversationMap {
    /// The name of the sub-agent. It stays in the element.
    pub thread: &'static str,
    /// The fact that the element states by existing.
    pub fact: &'static str,
    /// The fields of that fact.
    pub fields: &'static [(RecordField, &'static str)],
    /// The key of the list of its records.
    pub records: &'static str,
    pub record: RecordsMap,
}

/// The records of a list.
#[derive(Clone, Copy, Debug)]
pub struct RecordsMap {
    /// The path of the word that names the type of a record.
    pub kind: &'static str,
    /// The table of a record.
    pub map_of: fn(MappedPlace, &Words<'_>) -> Option<&'static RecordMap>,
}

/// An element of a list that is one event, or a piece of a message: it has these words at these paths, which stay in the element, and
/// these fields. The word `*` is any value, which is taken or not.
#[derive(Clone, Copy, Debug)]
pub enum ElementMap {
    Thinking(&'static [(&'static str, &'static str)], &'static str),
    Call(&'static [(&'static str, &'static str)], CallMap),
    Result(&'static [(&'static str, &'static str)], ResultMap),
    /// A text of a message under this key. Without such a map texts have the key `text`.
    Text(&'static [(&'static str, &'static str)], &'static str),
}

impl ElementMap {
    /// The words by which an element is recognized.
    fn words(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            ElementMap::Thinking(words, _) | ElementMap::Text(words, _) => words,
            ElementMap::Call(words, _) => words,
            ElementMap::Result(words, _) => words,
        }
    }

    /// Whether a list with these elements may hold an event. Messages are in every list.
    fn may_hold(maps: &[ElementMap], body: &Body<'_>) -> bool {
        let has = |test: fn(&ElementMap) -> bool| maps.iter().any(test);
        match body {
            Body::Thinking { .. } => has(|map| matches!(map, ElementMap::Thinking(..))),
            Body::ToolCall { .. } => has(|map| matches!(map, ElementMap::Call(..))),
            Body::ToolResult { .. } => has(|map| matches!(map, ElementMap::Result(..))),
            _ => true,
        }
    }

    /// The keys of texts in a list with these elements.
    fn texts(maps: &'static [ElementMap]) -> &'static [&'static str] {
        let key = |map: &'static ElementMap| match map {
            ElementMap::Text(_, key) => Some(std::slice::from_ref(key)),
            ElementMap::Thinking(..) | ElementMap::Call(..) | ElementMap::Result(..) => None,
        };
        maps.iter().find_map(key).unwrap_or(BLOCK_TEXT)
    }

    /// The first of these maps that fits an element. `has` tells whether this word is at a path of it.
    fn of(maps: &'static [ElementMap], has: &dyn Fn(&str, &str) -> bool) -> Option<&'static ElementMap> {
        maps.iter().find(|map| map.words().iter().all(|(path, word)| has(path, word)))
    }
}

/// How a text with marks becomes events, and how events become that text.
#[derive(Clone, Copy, Debug)]
pub struct MarkedText {
    pub split: fn(&str) -> Vec<Body<'static>>,
    pub join: fn(&[&Body<'_>]) -> String,
}

/// How a record spells a message of one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartsForm {
    /// As a list of one part.
    List,
    /// As a list, or as the text alone.
    ListOrText,
}

/// The fields of a message in a list of earlier messages.
#[derive(Clone, Copy, Debug)]
pub struct HistoryMap {
    /// The word that names the speaker. It stays in the message.
    pub speaker: &'static str,
    /// The meaning of that word. Other speakers are systems.
    pub roles: &'static [(&'static str, Role)],
    pub content: &'static str,
}

/// The fields of the end of a run. An empty path means that it has no such field.
#[derive(Clone, Copy, Debug)]
pub struct StopMap {
    pub reason: &'static str,
    /// A flag that is true for a success.
    pub success: &'static str,
    pub content: &'static str,
}

/// The fields of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallMap {
    pub id: &'static str,
    /// A path that begins with `=` has the word that names the type of the record. It stays in the record.
    pub name: &'static str,
    pub input: InputAt,
}

/// Where a call has its arguments.
#[derive(Clone, Copy, Debug)]
pub enum InputAt {
    /// A JSON value.
    Json(&'static str),
    /// A text, usually of JSON.
    Text(&'static str),
    /// A JSON value, a text of no special form, or nothing.
    Maybe(&'static str),
    /// JSON values in fields of their own: the keys of the arguments, and their paths.
    Fields(&'static [(&'static str, &'static str)]),
}

/// The fields of a result. An empty path means that it has no such field; a path that ends in `[]` has a list of one.
#[derive(Clone, Copy, Debug)]
pub struct ResultMap {
    pub call: &'static str,
    pub name: &'static str,
    pub content: &'static str,
    /// The keys under which the elements of a content list have their text.
    pub texts: &'static [&'static str],
    pub error: ErrorAt,
}

/// Where a result states whether its call failed.
#[derive(Clone, Copy, Debug)]
pub enum ErrorAt {
    Nowhere,
    /// The form of the result states that it failed.
    Failed,
    /// A flag that is true for a failure.
    Flag(&'static str),
    /// A word at this path, and the words that mean a failure and a success. It stays in the record.
    Word(&'static str, &'static [&'static str], &'static [&'static str]),
    /// A flag in each element of the content that is true for a success. It stays in the element. A flag of the result itself,
    /// which is true for a failure, counts instead of them, and is written if they are lost.
    Elements(&'static str, &'static str),
}

/// What the content of a record is.
#[derive(Clone, Copy, Debug)]
pub enum Speaks {
    /// A message of this role.
    As(Role),
    /// Thinking of the model.
    Thinking,
    /// An error of the agent.
    Failure,
    /// A summary that replaces the context.
    Summary,
    /// A fact.
    Fact(&'static str),
}

impl Speaks {
    fn body(self, content: Content<'_>) -> Body<'_> {
        match self {
            Speaks::As(role) => Body::Message { role, content },
            Speaks::Thinking => Body::Thinking { content },
            Speaks::Failure => Body::Failure { name: None, content: Some(content) },
            Speaks::Summary => Body::Compaction { summary: Some(content) },
            Speaks::Fact(name) => Body::Fact { fact: name.into(), content: Some(content) },
        }
    }
}

/// The end of the path of a text that a database row may embed.
const EMBEDDED: &str = "{}";

/// The keys of elements that are plain text.
pub const TEXT: &[&str] = &["text"];

/// The keys of Anthropic's blocks that are plain text: an attached file has its text under the second one.
const BLOCK_TEXT: &[&str] = &["text", "content"];
