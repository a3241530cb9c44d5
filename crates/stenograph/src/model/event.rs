//! One event: who said or did what, when, and where in the source it stands.

use std::borrow::Cow;

use super::{Content, Extra, Fact, Input, Usage};
use crate::text::{Raw, Str, Text};
use crate::time::Time;

/// A run of bytes in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// The line it begins on, from 1; [`Span::LINE_UNKNOWN`] where nobody counted.
    pub line: u64,
}

impl Span {
    /// The line of what was read from the end of a source: what stands before it was not looked at, and so not counted.
    pub const LINE_UNKNOWN: u64 = 0;

    /// The first byte after it.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// The span from here to the end of `last`.
    pub fn to(self, last: Span) -> Span {
        Span { length: last.end().saturating_sub(self.offset), ..self }
    }
}

/// Which of the events of one record this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 0.
    pub index: u32,
    /// How many the record gives.
    pub of: u32,
}

impl Default for Part {
    fn default() -> Self {
        Part { index: 0, of: 1 }
    }
}

/// Where a session left the history of another one.
#[derive(Clone, Debug, PartialEq)]
pub struct ForkOrigin<'a> {
    /// The other session.
    pub session: Str<'a>,
    /// The id of the last record that both have.
    pub record: Option<Str<'a>>,
}

impl ForkOrigin<'_> {
    /// The same, borrowing nothing.
    pub fn into_owned(self) -> ForkOrigin<'static> {
        let own = |text: Str<'_>| -> Str<'static> { Cow::Owned(text.into_owned()) };
        ForkOrigin { session: own(self.session), record: self.record.map(own) }
    }
}

/// One event. The fields from `session` to `forked_from` describe its record and stand on every part of it; `usage`, `carried`
/// and what is left of the record ride on part 0, what is left of a part on the part.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Event<'a> {
    /// Where its record stands in the source.
    pub at: Option<Span>,
    /// Which part of its record it is.
    pub part: Part,
    /// The session it belongs to.
    pub session: Option<Str<'a>>,
    /// The side conversation it belongs to: a sub-agent's id. `None` is the main one.
    pub thread: Option<Str<'a>>,
    /// The record's own id.
    pub id: Option<Str<'a>>,
    /// The id of the record it follows.
    pub parent: Option<Str<'a>>,
    /// What ties the records that one model response produced.
    pub group: Option<Str<'a>>,
    /// Whether it says again what another record of the source says.
    pub restates: bool,
    /// Who it is from, by name.
    pub from: Option<Str<'a>>,
    /// Who it is for, by name.
    pub to: Option<Str<'a>>,
    /// When.
    pub time: Option<Time<'a>>,
    /// The model that spoke or was asked.
    pub model: Option<Str<'a>>,
    /// The working folder.
    pub cwd: Option<Str<'a>>,
    /// The branch of version control.
    pub branch: Option<Str<'a>>,
    /// The version of the agent.
    pub version: Option<Str<'a>>,
    /// Why the model's answer ends with this record, in the source's word.
    pub stop_reason: Option<Str<'a>>,
    /// The id of the request to the model. Together with `group` it identifies a model call.
    pub request_id: Option<Str<'a>>,
    /// What its session was forked from.
    pub forked_from: Option<Box<ForkOrigin<'a>>>,
    /// What happened.
    pub body: Body<'a>,
    /// What it cost in tokens.
    pub usage: Option<Usage>,
    /// Fields that nobody took, by the format they come from.
    pub extra: Extra<'a>,
    /// The key that a conversion with `--carry` put on the record: the source it came from, to be restored.
    pub carried: Option<Raw<'a>>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<'a> {
    /// Something the record states that nobody said: a header, a title, a setting, a count.
    Fact {
        /// What it is about.
        name: Fact<'a>,
        /// The statement itself where it is text, such as a title.
        content: Option<Content<'a>>,
    },
    /// Somebody said something.
    Message {
        /// Who.
        role: Role,
        /// What.
        content: Content<'a>,
    },
    /// A model thought aloud.
    Thinking {
        /// What is readable of it; sealed thoughts stay in `extra`, for they are the vendor's own.
        content: Content<'a>,
    },
    /// A model asked for a tool.
    ToolCall {
        /// What ties call and result.
        call: Option<Str<'a>>,
        /// The tool.
        name: Str<'a>,
        /// What it was given.
        input: Input<'a>,
    },
    /// A tool answered.
    ToolResult {
        /// What ties call and result.
        call: Option<Str<'a>>,
        /// The tool, where the result names it.
        name: Option<Str<'a>>,
        /// The answer.
        content: Content<'a>,
        /// Whether it failed, where the source says so.
        error: Option<bool>,
    },
    /// What came before was put aside, and this stands in its place.
    Compaction {
        /// The summary, if it is in this record.
        summary: Option<Content<'a>>,
    },
    /// Something went wrong that was not a tool's failure.
    Failure {
        /// The kind of error, in the source's word.
        name: Option<Str<'a>>,
        /// What it says.
        content: Option<Content<'a>>,
    },
    /// The agent came to an end, or a turn did.
    Stop {
        /// Why.
        reason: Option<Str<'a>>,
        /// Whether it ended well, where the source says so.
        success: Option<bool>,
        /// The final word, where this record repeats or holds it.
        content: Option<Content<'a>>,
    },
    /// A record nobody understands.
    Other {
        /// Its type, in the source's word.
        name: Option<Str<'a>>,
        /// Its bytes, when they are not a JSON object (whose fields are in `extra`).
        bytes: Option<Text<'a>>,
    },
}

impl Default for Body<'_> {
    fn default() -> Self {
        Body::Other { name: None, bytes: None }
    }
}

/// The kinds of [`Body`], by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the body of the same name")]
pub enum Kind {
    Fact,
    Message,
    Thinking,
    ToolCall,
    ToolResult,
    Compaction,
    Failure,
    Stop,
    Other,
}

impl Kind {
    /// Every kind, in the order people expect them.
    pub const ALL: [Kind; 9] = [
        Kind::Message,
        Kind::Thinking,
        Kind::ToolCall,
        Kind::ToolResult,
        Kind::Compaction,
        Kind::Failure,
        Kind::Stop,
        Kind::Fact,
        Kind::Other,
    ];

    /// The word on the wire, in help and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fact => "fact",
            Kind::Message => "message",
            Kind::Thinking => "thinking",
            Kind::ToolCall => "tool_call",
            Kind::ToolResult => "tool_result",
            Kind::Compaction => "compaction",
            Kind::Failure => "failure",
            Kind::Stop => "stop",
            Kind::Other => "other",
        }
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    /// The source does not tell.
    Unknown,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 6] = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool, Role::Unknown];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Unknown => "unknown",
        }
    }

    /// The role of that name, in lower case.
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl<'a> Event<'a> {
    /// An event with this body and nothing else known.
    pub fn new(body: Body<'a>) -> Event<'a> {
        Event { body, ..Event::default() }
    }

    /// A record that nobody understands.
    pub fn unread(bytes: Text<'a>) -> Event<'a> {
        Event::new(Body::Other { name: None, bytes: Some(bytes) })
    }

    /// Whether it stands for a record over the limit, of which only the place is known.
    pub fn is_oversize(&self) -> bool {
        matches!(self.body, Body::Other { name: None, bytes: None }) && self.extra.iter().next().is_none()
    }

    /// What kind of thing happened.
    pub fn kind(&self) -> Kind {
        match self.body {
            Body::Fact { .. } => Kind::Fact,
            Body::Message { .. } => Kind::Message,
            Body::Thinking { .. } => Kind::Thinking,
            Body::ToolCall { .. } => Kind::ToolCall,
            Body::ToolResult { .. } => Kind::ToolResult,
            Body::Compaction { .. } => Kind::Compaction,
            Body::Failure { .. } => Kind::Failure,
            Body::Stop { .. } => Kind::Stop,
            Body::Other { .. } => Kind::Other,
        }
    }

    /// Who speaks, where the body says so.
    pub fn role(&self) -> Option<Role> {
        match &self.body {
            Body::Message { role, .. } => Some(*role),
            _ => None,
        }
    }

    /// The name in the body: of a tool, a fact, an error, an unknown type.
    pub fn name(&self) -> Option<&str> {
        match &self.body {
            Body::Fact { name, .. } => Some(name),
            Body::ToolCall { name, .. } => Some(name),
            Body::ToolResult { name, .. } | Body::Failure { name, .. } | Body::Other { name, .. } => name.as_deref(),
            Body::Stop { reason, .. } => reason.as_deref(),
            Body::Message { .. } | Body::Thinking { .. } | Body::Compaction { .. } => None,
        }
    }

    /// What ties call and result.
    pub fn call(&self) -> Option<&str> {
        match &self.body {
            Body::ToolCall { call, .. } | Body::ToolResult { call, .. } => call.as_deref(),
            _ => None,
        }
    }

    /// The content of the body, where it has one.
    pub fn content(&self) -> Option<&Content<'a>> {
        self.body.content()
    }

    /// Whether both say the same, wherever they stand.
    pub fn says_the_same(&self, other: &Event<'_>) -> bool {
        self.part == other.part
            && self.session == other.session
            && self.thread == other.thread
            && self.id == other.id
            && self.parent == other.parent
            && self.group == other.group
            && self.restates == other.restates
            && self.from == other.from
            && self.to == other.to
            && self.time == other.time
            && self.model == other.model
            && self.cwd == other.cwd
            && self.branch == other.branch
            && self.version == other.version
            && self.stop_reason == other.stop_reason
            && self.request_id == other.request_id
            && self.forked_from == other.forked_from
            && self.body == other.body
            && self.usage == other.usage
            && self.extra == other.extra
            && self.carried == other.carried
    }

    /// The same event, borrowing nothing.
    pub fn into_owned(self) -> Event<'static> {
        let own = |text: Option<Str<'a>>| text.map(|text| Cow::Owned(text.into_owned()));
        Event {
            at: self.at,
            part: self.part,
            session: own(self.session),
            thread: own(self.thread),
            id: own(self.id),
            parent: own(self.parent),
            group: own(self.group),
            restates: self.restates,
            from: own(self.from),
            to: own(self.to),
            time: self.time.map(Time::into_owned),
            model: own(self.model),
            cwd: own(self.cwd),
            branch: own(self.branch),
            version: own(self.version),
            stop_reason: own(self.stop_reason),
            request_id: own(self.request_id),
            forked_from: self.forked_from.map(|fork| Box::new(fork.into_owned())),
            body: self.body.into_owned(),
            usage: self.usage,
            extra: self.extra.into_owned(),
            carried: own(self.carried),
        }
    }
}

impl<'a> Body<'a> {
    /// What it says, where it says anything.
    pub fn content(&self) -> Option<&Content<'a>> {
        match self {
            Body::Message { content, .. } | Body::Thinking { content } | Body::ToolResult { content, .. } => {
                Some(content)
            }
            Body::Fact { content, .. } | Body::Failure { content, .. } | Body::Stop { content, .. } => content.as_ref(),
            Body::Compaction { summary } => summary.as_ref(),
            Body::ToolCall { .. } | Body::Other { .. } => None,
        }
    }

    /// The same body with another content. A body that has no place for one stays as it is.
    #[must_use]
    pub fn with_content(mut self, new: Content<'a>) -> Body<'a> {
        match &mut self {
            Body::Message { content, .. } | Body::Thinking { content } | Body::ToolResult { content, .. } => {
                *content = new;
            }
            Body::Fact { content, .. } | Body::Failure { content, .. } | Body::Stop { content, .. } => {
                *content = Some(new);
            }
            Body::Compaction { summary } => *summary = Some(new),
            Body::ToolCall { .. } | Body::Other { .. } => {}
        }
        self
    }

    /// The same body, borrowing nothing.
    pub fn into_owned(self) -> Body<'static> {
        let own = |text: Str<'_>| -> Str<'static> { Cow::Owned(text.into_owned()) };
        match self {
            Body::Fact { name, content } => {
                Body::Fact { name: name.into_owned(), content: content.map(Content::into_owned) }
            }
            Body::Message { role, content } => Body::Message { role, content: content.into_owned() },
            Body::Thinking { content } => Body::Thinking { content: content.into_owned() },
            Body::ToolCall { call, name, input } => {
                Body::ToolCall { call: call.map(own), name: own(name), input: input.into_owned() }
            }
            Body::ToolResult { call, name, content, error } => {
                Body::ToolResult { call: call.map(own), name: name.map(own), content: content.into_owned(), error }
            }
            Body::Compaction { summary } => Body::Compaction { summary: summary.map(Content::into_owned) },
            Body::Failure { name, content } => {
                Body::Failure { name: name.map(own), content: content.map(Content::into_owned) }
            }
            Body::Stop { reason, success, content } => {
                Body::Stop { reason: reason.map(own), success, content: content.map(Content::into_owned) }
            }
            Body::Other { name, bytes } => Body::Other { name: name.map(own), bytes: bytes.map(Text::into_owned) },
        }
    }
}
