//! One event: who said or did what, when, and where it is in the source.

use std::borrow::Cow;

use super::{Content, Extra, Fact, Input, Usage};
use crate::text::{Raw, Str, Text};
use crate::time::Time;

/// A range of bytes in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
    /// The line it begins on, from 1; [`Span::LINE_UNKNOWN`] if unknown.
    pub line: u64,
}

impl Span {
    /// The line of a record that was read from the end of a source, where the lines before it were not counted.
    pub const LINE_UNKNOWN: u64 = 0;

    /// The offset after the last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// The span from here to the end of `last`.
    pub fn to(self, last: Span) -> Span {
        Span { length: last.end().saturating_sub(self.offset), ..self }
    }
}

/// The number of an event within its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number, from 0.
    pub index: u32,
    /// The number of events in the record.
    pub of: u32,
}

impl Default for Part {
    fn default() -> Self {
        Part { index: 0, of: 1 }
    }
}

impl Part {
    /// Whether it is the next part of the record that `last` is a part of. Readers hand over the parts of a record one after the
    /// other; where each part has a line of its own, as in the native format, only this tells which lines are one record.
    pub fn follows(self, last: Part) -> bool {
        last.index.checked_add(1) == Some(self.index)
    }

    /// Whether it is the last part of its record.
    pub fn is_last(self) -> bool {
        self.index.saturating_add(1) >= self.of
    }
}

/// The point where a session branches off another one.
#[derive(Clone, Debug, PartialEq)]
pub struct ForkOrigin<'a> {
    /// The other session.
    pub session: Str<'a>,
    /// The id of the last record that both share.
    pub record: Option<Str<'a>>,
}

impl ForkOrigin<'_> {
    /// The same, borrowing nothing.
    pub fn into_owned(self) -> ForkOrigin<'static> {
        let own = |text: Str<'_>| -> Str<'static> { Cow::Owned(text.into_owned()) };
        ForkOrigin { session: own(self.session), record: self.record.map(own) }
    }
}

/// One event. The fields from `session` to `forked_from` describe its record and are the same on every part of it. Part 0 has
/// `usage`, `carried` and the extra fields of the record; every part has its own extra fields.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Event<'a> {
    /// The position of its record in the source.
    pub at: Option<Span>,
    /// Its part number within the record.
    pub part: Part,
    /// The session it belongs to.
    pub session: Option<Str<'a>>,
    /// The side conversation it belongs to: the id of a sub-agent. `None` is the main conversation.
    pub thread: Option<Str<'a>>,
    /// The id of the record.
    pub id: Option<Str<'a>>,
    /// The id of the record it follows.
    pub parent: Option<Str<'a>>,
    /// The id that all records of one model response share.
    pub group: Option<Str<'a>>,
    /// Whether it repeats another record of the source.
    pub restates: bool,
    /// The name of its sender.
    pub from: Option<Str<'a>>,
    /// The name of its recipient.
    pub to: Option<Str<'a>>,
    /// When it happened.
    pub time: Option<Time<'a>>,
    /// The model that answered or was asked.
    pub model: Option<Str<'a>>,
    /// The working folder.
    pub cwd: Option<Str<'a>>,
    /// The branch in version control.
    pub branch: Option<Str<'a>>,
    /// The version of the agent.
    pub version: Option<Str<'a>>,
    /// Why the model's answer ends with this record, in the word of the source.
    pub stop_reason: Option<Str<'a>>,
    /// The id of the request to the model. Together with `group` it identifies a model call.
    pub request_id: Option<Str<'a>>,
    /// The session that its session was forked from.
    pub forked_from: Option<Box<ForkOrigin<'a>>>,
    /// What happened.
    pub body: Body<'a>,
    /// The tokens and money that it cost.
    pub usage: Option<Usage>,
    /// The fields that the reader did not take, by format.
    pub extra: Extra<'a>,
    /// The key that `convert --carry` put on the record: the source that it came from, for restoring it.
    pub carried: Option<Raw<'a>>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<'a> {
    /// A statement that is not part of the conversation: a header, a title, a setting, a count.
    Fact {
        /// The subject.
        fact: Fact<'a>,
        /// The statement, if it is text, such as a title.
        content: Option<Content<'a>>,
    },
    /// A message.
    Message {
        /// The speaker.
        role: Role,
        /// The text.
        content: Content<'a>,
    },
    /// Visible thinking of a model.
    Thinking {
        /// The readable part; encrypted thinking stays in `extra`, because only the vendor can use it.
        content: Content<'a>,
    },
    /// A call of a tool by a model.
    ToolCall {
        /// The id that call and result share.
        call: Option<Str<'a>>,
        /// The tool.
        name: Str<'a>,
        /// The arguments.
        input: Input<'a>,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id that call and result share.
        call: Option<Str<'a>>,
        /// The tool, if the result names it.
        name: Option<Str<'a>>,
        /// The output.
        content: Content<'a>,
        /// Whether the call failed, if the source states it.
        error: Option<bool>,
    },
    /// A compaction: this event replaces the context before it.
    Compaction {
        /// The summary, if it is in this record.
        summary: Option<Content<'a>>,
    },
    /// An error other than a failed tool call.
    Failure {
        /// The kind of error, in the word of the source.
        name: Option<Str<'a>>,
        /// The message.
        content: Option<Content<'a>>,
    },
    /// The end of the agent's run or of a turn.
    Stop {
        /// The reason.
        reason: Option<Str<'a>>,
        /// Whether it ended well, if the source states it.
        success: Option<bool>,
        /// The final message, if this record repeats or contains it.
        content: Option<Content<'a>>,
    },
    /// A record that the reader does not understand.
    Other {
        /// Its type, in the word of the source.
        name: Option<Str<'a>>,
        /// Its bytes, if they are not a JSON object (the fields of an object are in `extra`).
        bytes: Option<Text<'a>>,
    },
}

impl Default for Body<'_> {
    fn default() -> Self {
        Body::Other { name: None, bytes: None }
    }
}

/// The kinds of [`Body`].
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
    /// Every kind, in display order.
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

    /// The name on the wire, in help and in reports.
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

    /// Every word that names a kind in a query or an option. The short word comes first; the name on the wire works too.
    pub const WORDS: [(&'static str, Kind); 12] = [
        ("message", Kind::Message),
        ("thinking", Kind::Thinking),
        ("call", Kind::ToolCall),
        ("result", Kind::ToolResult),
        ("compaction", Kind::Compaction),
        ("failure", Kind::Failure),
        ("stop", Kind::Stop),
        ("fact", Kind::Fact),
        ("other", Kind::Other),
        ("tool_call", Kind::ToolCall),
        ("tool_result", Kind::ToolResult),
        ("summary", Kind::Compaction),
    ];

    /// The kind that a word names.
    pub fn named(word: &str) -> Option<Kind> {
        Kind::WORDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
    }

    /// The short word for it in queries and options.
    pub fn word(self) -> &'static str {
        Kind::WORDS.iter().find(|(_, kind)| *kind == self).map_or("other", |(word, _)| word)
    }
}

/// The speaker of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    /// The source does not state it.
    Unknown,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 6] = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool, Role::Unknown];

    /// The name on the wire.
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

    /// The role with this name, in lower case.
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl<'a> Event<'a> {
    /// An event with this body and no other fields.
    pub fn new(body: Body<'a>) -> Event<'a> {
        Event { body, ..Event::default() }
    }

    /// A record that the reader does not understand.
    pub fn unread(bytes: Text<'a>) -> Event<'a> {
        Event::new(Body::Other { name: None, bytes: Some(bytes) })
    }

    /// Whether it represents an oversize record, of which only the position is known.
    pub fn is_oversize(&self) -> bool {
        matches!(self.body, Body::Other { name: None, bytes: None }) && self.extra.iter().next().is_none()
    }

    /// The kind of its body.
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

    /// The speaker of a message.
    pub fn role(&self) -> Option<Role> {
        match &self.body {
            Body::Message { role, .. } => Some(*role),
            _ => None,
        }
    }

    /// The name in the body: of a tool, a fact, an error or an unknown type.
    pub fn name(&self) -> Option<&str> {
        match &self.body {
            Body::Fact { fact: name, .. } => Some(name),
            Body::ToolCall { name, .. } => Some(name),
            Body::ToolResult { name, .. } | Body::Failure { name, .. } | Body::Other { name, .. } => name.as_deref(),
            Body::Stop { reason, .. } => reason.as_deref(),
            Body::Message { .. } | Body::Thinking { .. } | Body::Compaction { .. } => None,
        }
    }

    /// The id that call and result share.
    pub fn call(&self) -> Option<&str> {
        match &self.body {
            Body::ToolCall { call, .. } | Body::ToolResult { call, .. } => call.as_deref(),
            _ => None,
        }
    }

    /// The content of the body, if it has one.
    pub fn content(&self) -> Option<&Content<'a>> {
        self.body.content()
    }

    /// The text of its content, without images and the like; empty if it has none.
    pub fn text(&self) -> String {
        self.content().map(|content| content.joined().decode().into_owned()).unwrap_or_default()
    }

    /// Whether it is a further part of the record at this place, after another part of it. In the native format every part has its own
    /// place; see [`Part::follows`].
    pub fn continues_record_at(&self, at: Option<Span>) -> bool {
        self.part.index > 0 && self.at == at
    }

    /// The branch, unless the record says `HEAD`: then no branch was checked out.
    pub fn branch_name(&self) -> Option<&str> {
        self.branch.as_deref().filter(|branch| *branch != "HEAD")
    }

    /// Whether both events are equal except for their positions.
    pub fn equals_except_position(&self, other: &Event<'_>) -> bool {
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

    /// The event as an original: not as a restatement of another one. For an event that restates one which is missing.
    pub fn as_original(&self) -> Cow<'_, Event<'a>> {
        match self.restates {
            true => Cow::Owned(Event { restates: false, ..self.clone() }),
            false => Cow::Borrowed(self),
        }
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
    /// The content, if the body has one.
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

    /// The same body with another content. A body without a content field stays the same.
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
            Body::Fact { fact: name, content } => {
                Body::Fact { fact: name.into_owned(), content: content.map(Content::into_owned) }
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
