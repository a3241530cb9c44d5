//! Reads Claude Code's records, one at a time: those of its files and those of its stream. The reader keeps no state between
//! records: pairing, counting usage once and choosing a branch are folds.

use std::borrow::Cow;

use memchr::memmem;

use super::INFO;
use super::record::{Dialect, SUBTYPES, UNNAMED_THREAD, fact_type};
use crate::format::Wanted;
use crate::formats::anthropic::{BlockNote, blocks, take_content};
use crate::json::{Object, items};
use crate::model::{
    Body, Content, Event, Extra, ExtraFields, Fact, ForkOrigin, Held, NoteKind, Role, ServiceSpeed, ServiceTier, Usage,
};
use crate::read::{At, Objects, Sink};
use crate::text::Str;

/// Reads one record at a time.
#[derive(Debug)]
pub struct ClaudeCodeReader {
    want: Wanted,
    usage: memmem::Finder<'static>,
    head: memmem::Finder<'static>,
}

impl ClaudeCodeReader {
    /// A reader for the wanted fields.
    pub fn new(want: Wanted) -> ClaudeCodeReader {
        ClaudeCodeReader { want, usage: memmem::Finder::new(b"\"usage\""), head: memmem::Finder::new(b"\"init\"") }
    }
}

impl Objects for ClaudeCodeReader {
    fn object(&mut self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let kind = object.peek_str("type");
        match kind.as_deref() {
            Some("user" | "assistant") => self.message_record(object, kind.as_deref(), at, out),
            None if object.has("message") || object.is_open("message") => self.message_record(object, None, at, out),
            // Only these state usage, or the fields needed to count it.
            Some(name) if self.want == Wanted::Usage && !matches!(name, "result" | "progress" | "system") => {}
            Some("system") => system(object, at, out),
            Some("result") if !object.has("key") => {
                let body = result(&mut object);
                emit(object, kind.as_deref(), body, at, out);
            }
            Some("attachment") => {
                let mut notes = Vec::new();
                let body = attachment(&mut object, &mut notes);
                note_blocks(notes, at, out);
                emit(object, kind.as_deref(), body, at, out);
            }
            Some(name) => match fact_type(name) {
                Some(fact_type) => {
                    let mut notes = Vec::new();
                    let content = fact_type.text.and_then(|key| match name {
                        "queue-operation" => take_content(&mut object, key, &mut notes),
                        _ => object.take_text(key).map(Content::Text),
                    });
                    let body = Body::Fact { fact: fact_type.name.into(), content };
                    note_blocks(notes, at, out);
                    emit(object, kind.as_deref(), body, at, out);
                }
                None => unknown_record(object, kind.as_deref(), name, at, out),
            },
            None => at.emit_unknown(&INFO, None, object, out),
        }
    }

    fn opens(&self) -> Option<&'static [&'static str]> {
        (self.want == Wanted::Usage).then_some(&["message", "usage"])
    }

    fn skips(&self, line: &[u8]) -> bool {
        let states = || self.usage.find(line).is_some() || self.head.find(line).is_some();
        self.want == Wanted::Usage && !states()
    }
}

/// The model name of answers that Claude Code itself wrote. It is not a model, so it stays in `extra`.
pub const SYNTHETIC: &str = "<synthetic>";

/// Emits a record of one event.
fn emit(mut object: Object<'_>, kind: Option<&str>, body: Body<'_>, at: &At<'_>, out: &mut dyn Sink) {
    let mut event = Event { body, ..envelope(&mut object, kind) };
    event.restates = kind.and_then(fact_type).is_some_and(|fact_type| fact_type.restates);
    if kind == Some("result") && object.has("usage") {
        // The tokens are the sum of the messages' tokens and would count twice; no other record states the cost.
        event.usage = object.take_dollars("total_cost_usd").map(|cost| Usage { cost: Some(cost), ..Usage::default() });
    }
    event.extra = Extra::of(&INFO, object.into_extra());
    at.emit_one(event, out);
}

/// Emits a record of an unknown type. It keeps its place in the tree.
fn unknown_record(mut object: Object<'_>, kind: Option<&str>, name: &str, at: &At<'_>, out: &mut dyn Sink) {
    at.note(NoteKind::UnknownType, format!("unknown record type {name:?}"), out);
    let mut event = envelope(&mut object, kind);
    event.body = Body::Other { name: Some(Cow::Owned(name.to_owned())), bytes: None };
    event.extra = Extra::of(&INFO, object.into_extra());
    at.emit_one(event, out);
}

/// Takes the fields that a record of any type can have.
fn envelope<'a>(object: &mut Object<'a>, kind: Option<&str>) -> Event<'a> {
    let dialect = Dialect::of(object, kind);
    let side = object.peek("isSidechain") == Some("true");
    let thread = match dialect {
        Dialect::File if !side => None,
        Dialect::File if object.peek("agentId") == Some("\"sidechain\"") => Some(Cow::Borrowed(UNNAMED_THREAD)),
        Dialect::File => object.take_name("agentId").or(Some(Cow::Borrowed(UNNAMED_THREAD))),
        Dialect::Stream | Dialect::Journal => object.take_name(dialect.thread()),
    };
    Event {
        thread,
        session: dialect.session().and_then(|key| object.take_name(key)),
        id: object.take_name("uuid"),
        parent: object.take_name("parentUuid"),
        time: object.take_iso("timestamp"),
        cwd: object.take_name("cwd"),
        branch: object.take_name("gitBranch"),
        version: object.take_name("version"),
        request_id: object.take_name("requestId"),
        forked_from: fork(object),
        ..Event::default()
    }
}

/// The session and the record from which a record's session was forked.
fn fork<'a>(object: &mut Object<'a>) -> Option<Box<ForkOrigin<'a>>> {
    let mut fork = object.open("forkedFrom")?;
    let origin =
        fork.take_name("sessionId").map(|session| ForkOrigin { session, record: fork.take_name("messageUuid") });
    object.close("forkedFrom", fork);
    origin.map(Box::new)
}

impl ClaudeCodeReader {
    /// Reads a record with a message: consecutive texts and images are one event, every other block is its own.
    fn message_record(&self, mut object: Object<'_>, kind: Option<&str>, at: &At<'_>, out: &mut dyn Sink) {
        let Some(mut message) = object.open("message") else {
            at.note(
                NoteKind::NotARecord,
                format!("the message of this {} record is not an object", kind.unwrap_or("untyped")),
                out,
            );
            let mut event = envelope(&mut object, kind);
            event.body = Body::Other { name: kind.map(|kind| Cow::Owned(kind.to_owned())), bytes: None };
            event.extra = Extra::of(&INFO, object.into_extra());
            return at.emit_one(event, out);
        };
        let mut event = envelope(&mut object, kind);
        event.group = message.take_name("id");
        if message.peek_str("model").as_deref() != Some(SYNTHETIC) {
            event.model = message.take_name("model");
        }
        event.stop_reason = message.take_name("stop_reason");
        event.usage = take_usage(&mut message);
        if let Some(usage) = &mut event.usage {
            usage.cost = object.take_dollars("costUSD");
        }
        if self.want == Wanted::Usage {
            // The content is most of the record and is not needed.
            object.close("message", message);
            event.extra = Extra::of(&INFO, object.into_extra());
            return at.emit_one(event, out);
        }
        let role = message.peek_str("role").and_then(|role| Role::named(&role));
        let role = role.unwrap_or(if kind == Some("assistant") { Role::Assistant } else { Role::User });
        let mut notes = Vec::new();
        let parts = match message.take_text("content") {
            Some(text) => vec![(Body::Message { role, content: Content::Text(text) }, None)],
            None => {
                let list = message.peek("content").and_then(items).filter(|list| !list.is_empty());
                if list.is_some() {
                    message.take("content");
                }
                let parts = blocks(list.unwrap_or_default(), role, &mut notes);
                parts.into_iter().map(|part| (part.body, part.block)).collect()
            }
        };
        note_blocks(notes, at, out);
        emit_message(object, message, event, parts, at, out);
    }
}

/// Emits the parts of a record with a message. The extra fields of a block stay in the place of the block, below
/// `message.content`.
fn emit_message<'a>(
    mut object: Object<'a>,
    mut message: Object<'a>,
    event: Event<'a>,
    parts: Vec<(Body<'a>, Option<Object<'a>>)>,
    at: &At<'_>,
    out: &mut dyn Sink,
) {
    let only = parts.len() == 1;
    let mut parts = parts.into_iter();
    let Some((body, block)) = parts.next() else { return };
    if let Some(block) = block {
        message.close("content", block);
    }
    let has_only_usage = event.usage.is_some() && !message.has("content");
    let body = if only { message_body(&mut object, body, has_only_usage) } else { body };
    let mut rest: Vec<Event<'a>> = parts
        .map(|(body, block)| {
            let extra = Extra::of(&INFO, block.map(below_content).unwrap_or_default());
            Event { body, extra, usage: None, ..event.clone() }
        })
        .collect();
    object.close("message", message);
    let first = Event { body, extra: Extra::of(&INFO, object.into_extra()), ..event };
    if rest.is_empty() {
        return at.emit_one(first, out);
    }
    rest.insert(0, first);
    at.emit(&mut rest, out);
}

fn below_content(block: Object<'_>) -> ExtraFields<'_> {
    let content = ExtraFields(vec![(Cow::Borrowed("content"), Held::Object(block.into_extra()))]);
    ExtraFields(vec![(Cow::Borrowed("message"), Held::Object(content))])
}

/// The body of a message by the flags of its record: a summary, a failure, a bare token count, or a message.
fn message_body<'a>(object: &mut Object<'a>, body: Body<'a>, has_only_usage: bool) -> Body<'a> {
    let Body::Message { role, content } = body else { return body };
    let is_empty = matches!(&content, Content::Pieces(pieces) if pieces.is_empty());
    if is_empty && has_only_usage {
        return Body::Fact { fact: Fact::Usage, content: None };
    }
    if object.peek_true("isCompactSummary") {
        return Body::Compaction { summary: Some(content) };
    }
    if role == Role::Assistant && (object.peek_true("isApiErrorMessage") || object.peek("error").is_some_and(is_name)) {
        return Body::Failure { name: object.take_name("error"), content: Some(content) };
    }
    Body::Message { role, content }
}

fn is_name(raw: &str) -> bool {
    raw.starts_with('"') && raw.len() > 2
}

/// Takes the usage of a message.
fn take_usage(message: &mut Object<'_>) -> Option<Usage> {
    let mut stated = message.open("usage")?;
    let [input, output, cache_read, cache_write] = COUNTERS;
    let mut usage = stated.take_usage([input, output, cache_read, cache_write, ""]);
    [usage.reasoning] = take_numbers(&mut stated, "output_tokens_details", ["thinking_tokens"]);
    // A usage without counters is not a model call, whatever else it states.
    if !usage.is_empty() {
        [usage.cache_write_1h, usage.cache_write_5m] = take_numbers(&mut stated, "cache_creation", LIFETIMES);
        [usage.searches, usage.fetches] = take_numbers(&mut stated, "server_tool_use", SERVER_TOOLS);
        usage.service_tier = stated.take_word("service_tier", ServiceTier::named);
        usage.speed = stated.take_word("speed", ServiceSpeed::named);
    }
    message.close("usage", stated);
    usage.stated()
}

/// Takes the numbers of a nested object.
fn take_numbers<const N: usize>(object: &mut Object<'_>, key: &str, names: [&str; N]) -> [Option<u64>; N] {
    let Some(mut inner) = object.open(key) else { return [None; N] };
    let numbers = names.map(|name| inner.take_number(name));
    object.close(key, inner);
    numbers
}

/// The token counters of a usage.
pub const COUNTERS: [&str; 4] =
    ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];

/// The counters of cache writes with a lifetime of one hour and of five minutes.
pub const LIFETIMES: [&str; 2] = ["ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens"];

/// The counters of web searches and fetched pages.
pub const SERVER_TOOLS: [&str; 2] = ["web_search_requests", "web_fetch_requests"];

/// Reads a `system` record: a boundary, a failure, the head of a stream, or a fact.
fn system(mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
    let subtype = object.peek_str("subtype");
    let kind = Some("system");
    let mut header = (None, None);
    let body = match subtype.as_deref() {
        Some("compact_boundary") => Body::Compaction { summary: None },
        Some("api_error" | "error") => api_error(&mut object),
        Some("api_retry") => Body::Failure { name: object.take_name("error"), content: None },
        Some("init") => {
            header = (object.take_name("model"), object.take_name("claude_code_version"));
            Body::Fact { fact: Fact::Session, content: None }
        }
        Some(name) if !SUBTYPES.contains(&name) => {
            let name = format!("system/{name}");
            return unknown_record(object, kind, &name, at, out);
        }
        name => {
            let name: Str<'_> = name.map_or(Cow::Borrowed("system"), |name| Cow::Owned(name.to_owned()));
            let content = object.take_text("content").map(Content::Text);
            Body::Fact { fact: name.into(), content }
        }
    };
    let mut event = Event { body, ..envelope(&mut object, kind) };
    let (model, version) = header;
    event.model = model;
    event.version = version.or(event.version);
    event.extra = Extra::of(&INFO, object.into_extra());
    at.emit_one(event, out);
}

/// A failed request. Newer records state the error directly, formatted; older ones hold the service's response, three objects
/// deep.
fn api_error<'a>(object: &mut Object<'a>) -> Body<'a> {
    let (mut name, mut content) = (None, None);
    if let Some(mut error) = object.open("error") {
        if error.has("formatted") {
            content = error.take_text("message").map(Content::Text);
        } else if let Some(mut answer) = error.open("error") {
            if let Some(mut inner) = answer.open("error") {
                name = inner.take_name("type");
                content = inner.take_text("message").map(Content::Text);
                answer.close("error", inner);
            }
            error.close("error", answer);
        }
        object.close("error", error);
    }
    Body::Failure { name, content }
}

/// The last record of a stream. After a success the reason is why the model stopped, otherwise the kind of failure.
fn result<'a>(object: &mut Object<'a>) -> Body<'a> {
    let reason = match object.peek_str("subtype").as_deref() {
        Some("success") => object.take_name("stop_reason"),
        Some(_) => object.take_name("subtype"),
        None => None,
    };
    let success = object.take_bool("is_error").map(|failed| !failed);
    Body::Stop { reason, success, content: object.take_text("result").map(Content::Text) }
}

/// Content that Claude Code added. A message that the user typed while the agent worked appears only here.
fn attachment<'a>(object: &mut Object<'a>, notes: &mut Vec<BlockNote>) -> Body<'a> {
    let fact = Body::Fact { fact: "attachment".into(), content: None };
    let Some(mut inner) = object.open("attachment") else { return fact };
    let typed = inner.peek("type") == Some("\"queued_command\"") && inner.peek("commandMode") == Some("\"prompt\"");
    let prompt = if typed { take_content(&mut inner, "prompt", notes) } else { None };
    object.close("attachment", inner);
    prompt.map_or(fact, |content| Body::Message { role: Role::User, content })
}

fn note_blocks(notes: Vec<BlockNote>, at: &At<'_>, out: &mut dyn Sink) {
    for BlockNote(kind, text) in notes {
        at.note(kind, text, out);
    }
}
