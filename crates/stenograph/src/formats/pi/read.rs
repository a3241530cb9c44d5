//! Reads pi's entries, one at a time. The reader keeps nothing from one entry to the next.

use std::borrow::Cow;

use super::INFO;
use super::blocks::{events, take_content};
use crate::format::Wanted;
use crate::json::{Object, items};
use crate::model::{Body, Content, Event, Extra, ExtraFields, Fact, ForkOrigin, Held, NoteKind, Role, Usage};
use crate::read::{At, Objects, Sink};
use crate::text::Str;

/// The token counters of an answer: input without cached tokens, output with thinking.
pub(super) const COUNTERS: [&str; 5] = ["input", "output", "cacheRead", "cacheWrite", "reasoning"];

/// Reads one entry at a time.
#[derive(Debug)]
pub(super) struct PiReader {
    want: Wanted,
}

impl PiReader {
    /// A reader for the wanted fields.
    pub fn new(want: Wanted) -> PiReader {
        PiReader { want }
    }
}

impl Objects for PiReader {
    fn object(&mut self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let kind = object.peek_str("type");
        let body = match kind.as_deref() {
            Some("message") => return self.message_entry(object, at, out),
            Some("session") => return header(object, at, out),
            Some("model_change") => {
                let mut event = envelope(&mut object);
                event.model = object.take_name("modelId");
                return emit(object, event, fact("model_change", None), at, out);
            }
            Some("compaction") => Body::Compaction { summary: object.take_text("summary").map(Content::Text) },
            Some("branch_summary") => fact("summary", object.take_text("summary").map(Content::Text)),
            Some("session_info") => fact("title", object.take_text("name").map(Content::Text)),
            Some("label") => fact("label", object.take_text("label").map(Content::Text)),
            Some("thinking_level_change") => {
                fact("thinking_level_change", object.take_text("thinkingLevel").map(Content::Text))
            }
            Some("custom") => fact("custom", None),
            Some("ephemeral") => fact("ephemeral", None),
            Some("context_transform") => fact("context_transform", None),
            // An extension wrote it for the model, not a person.
            Some("custom_message") => match take_content(&mut object, "content") {
                Some(content) => Body::Message { role: Role::Developer, content },
                None => fact("custom_message", None),
            },
            name => return unknown(name.map(str::to_owned), object, at, out),
        };
        let event = envelope(&mut object);
        emit(object, event, body, at, out);
    }
}

fn fact<'a>(name: &'static str, content: Option<Content<'a>>) -> Body<'a> {
    Body::Fact { fact: name.into(), content }
}

/// An entry of an unknown type. It keeps its place in the tree.
fn unknown(name: Option<String>, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
    at.note_unknown(name.as_deref(), out);
    let event = envelope(&mut object);
    emit(object, event, Body::Other { name: name.map(Cow::Owned), bytes: None }, at, out);
}

fn envelope<'a>(object: &mut Object<'a>) -> Event<'a> {
    Event {
        id: object.take_name("id"),
        parent: object.take_name("parentId"),
        time: object.take_iso("timestamp"),
        ..Event::default()
    }
}

fn emit<'a>(object: Object<'a>, event: Event<'a>, body: Body<'a>, at: &At<'_>, out: &mut dyn Sink) {
    at.emit_one(Event { body, extra: Extra::of(&INFO, object.into_extra()), ..event }, out);
}

/// The header: its id is that of the session. The path of the parent session stays in `extra`; its name ends in the id of that session.
fn header(mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
    let parent = object.peek_str("parentSession").or_else(|| object.peek_str("branchedFrom"));
    let event = Event {
        session: object.take_name("id"),
        time: object.take_iso("timestamp"),
        cwd: object.take_name("cwd"),
        model: object.take_name("modelId"),
        forked_from: parent
            .as_deref()
            .and_then(session_of)
            .map(|session| Box::new(ForkOrigin { session: Cow::Owned(session.to_owned()), record: None })),
        ..Event::default()
    };
    emit(object, event, Body::Fact { fact: Fact::Session, content: None }, at, out);
}

/// The session in the path of its file: `…/<time>_<session>.jsonl`.
fn session_of(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?.strip_suffix(".jsonl")?;
    name.split_once('_').map(|(_, session)| session).filter(|session| !session.is_empty())
}

impl PiReader {
    fn message_entry(&self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let Some(mut message) = object.open("message") else {
            at.note(NoteKind::NotARecord, "the message of this entry is not an object", out);
            let event = envelope(&mut object);
            return emit(object, event, Body::Other { name: Some("message".into()), bytes: None }, at, out);
        };
        let mut event = envelope(&mut object);
        let role = message.peek_str("role");
        let parts = match role.as_deref() {
            Some("toolResult") => vec![(result(&mut message), None)],
            // A command that a person ran. The model reads its output with the next message.
            Some("bashExecution") => {
                vec![(fact("bash_execution", message.take_text("output").map(Content::Text)), None)]
            }
            Some("branchSummary" | "compactionSummary") => {
                vec![(fact("summary", message.take_text("summary").map(Content::Text)), None)]
            }
            Some("custom" | "hookMessage") => self.content(&mut message, Role::Developer),
            Some("assistant") => {
                event.group = message.take_name("responseId");
                event.model = message.take_name("model");
                event.stop_reason = message.take_name("stopReason");
                event.usage = take_usage(&mut message);
                self.content(&mut message, Role::Assistant)
            }
            other => match other.and_then(Role::named) {
                Some(role) => self.content(&mut message, role),
                None => {
                    let name = format!("message/{}", other.unwrap_or_default());
                    object.close("message", message);
                    at.note_unknown(Some(&name), out);
                    return emit(object, event, Body::Other { name: Some(Cow::Owned(name)), bytes: None }, at, out);
                }
            },
        };
        emit_parts(object, message, event, parts, at, out);
    }

    /// The parts of a message. An answer without content that states an error is a failure.
    fn content<'a>(&self, message: &mut Object<'a>, role: Role) -> Vec<(Body<'a>, Option<Object<'a>>)> {
        if self.want == Wanted::Usage {
            return vec![(Body::Message { role, content: Content::Pieces(Vec::new()) }, None)];
        }
        if let Some(text) = message.take_text("content") {
            return vec![(Body::Message { role, content: Content::Text(text) }, None)];
        }
        let list = message.take_as("content", |raw| items(raw).filter(|list| !list.is_empty()));
        if list.is_none() && role == Role::Assistant && message.peek_str("errorMessage").is_some() {
            let content = message.take_text("errorMessage").map(Content::Text);
            return vec![(Body::Failure { name: None, content }, None)];
        }
        events(list.unwrap_or_default(), role)
    }
}

fn result<'a>(message: &mut Object<'a>) -> Body<'a> {
    Body::ToolResult {
        call: message.take_name("toolCallId"),
        name: message.take_name("toolName"),
        content: take_content(message, "content").unwrap_or(Content::Pieces(Vec::new())),
        error: message.take_bool("isError"),
    }
}

fn take_usage(message: &mut Object<'_>) -> Option<Usage> {
    let mut stated = message.open("usage")?;
    // An answer that failed has zeros, and so has one that another program wrote without knowing its tokens.
    let counts_none = |key: &&str| matches!(stated.peek(key), None | Some("0"));
    if COUNTERS.iter().all(counts_none) {
        message.close("usage", stated);
        return None;
    }
    let mut usage = stated.take_usage(COUNTERS);
    if !usage.is_empty()
        && let Some(mut cost) = stated.open("cost")
    {
        usage.cost = cost.take_dollars("total");
        stated.close("cost", cost);
    }
    message.close("usage", stated);
    usage.stated()
}

/// Emits the parts of a message. The extra fields of a block stay in the place of the block, below `message.content`.
fn emit_parts<'a>(
    mut object: Object<'a>,
    mut message: Object<'a>,
    event: Event<'a>,
    parts: Vec<(Body<'a>, Option<Object<'a>>)>,
    at: &At<'_>,
    out: &mut dyn Sink,
) {
    let mut parts = parts.into_iter();
    let Some((body, block)) = parts.next() else { return };
    if let Some(block) = block {
        message.close("content", block);
    }
    let below = |block: Object<'a>| {
        let inner = |key: &'static str, fields| ExtraFields(vec![(Str::Borrowed(key), Held::Object(fields))]);
        inner("message", inner("content", block.into_extra()))
    };
    let rest = parts.map(|(body, block)| {
        let extra = Extra::of(&INFO, block.map(below).unwrap_or_default());
        Event { body, extra, usage: None, ..event.clone() }
    });
    let rest: Vec<Event<'a>> = rest.collect();
    object.close("message", message);
    let mut all = vec![Event { body, extra: Extra::of(&INFO, object.into_extra()), ..event }];
    all.extend(rest);
    at.emit(&mut all, out);
}
