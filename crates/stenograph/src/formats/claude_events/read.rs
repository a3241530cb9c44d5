//! Reads flat events and bare messages. Calls and results often lack ids; a fold pairs them by position.

use std::borrow::Cow;

use super::INFO;
use crate::formats::anthropic::{BlockEvent, BlockNote, blocks, take_content, tool_call};
use crate::json::{Object, items};
use crate::model::{Body, Content, Event, Extra, ExtraFields, Held, Piece, Role};
use crate::read::{At, Objects, Sink};
use crate::text::Text;

/// Reads one line at a time.
#[derive(Debug)]
pub struct ClaudeEventsReader;

impl Objects for ClaudeEventsReader {
    fn object(&mut self, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let kind = object.peek_str("type");
        let mut notes = Vec::new();
        if kind.is_none() && object.peek_str("role").is_some() {
            return message(object, at, out);
        }
        let Some(body) = body(kind.as_deref(), &mut object, &mut notes) else {
            return at.emit_unknown(&INFO, kind.as_deref(), object, out);
        };
        note_blocks(notes, at, out);
        let mut event = Event { body, time: object.take_iso("timestamp"), ..Event::default() };
        event.extra = Extra::of(&INFO, object.into_extra());
        at.emit_one(event, out);
    }
}

/// The body of a flat event. `None` for an unknown type, and for an event without the fields its type needs.
fn body<'a>(kind: Option<&str>, object: &mut Object<'a>, notes: &mut Vec<BlockNote>) -> Option<Body<'a>> {
    Some(match kind? {
        "tool_use" => tool_call(object)?,
        "tool_result" => Body::ToolResult {
            content: output(object, notes),
            call: object.take_str("tool_use_id"),
            name: None,
            error: object.take_bool("is_error"),
        },
        "text" => Body::Message { role: Role::Assistant, content: Content::Text(object.take_text("text")?) },
        "error" => error(object),
        "stop" => {
            Body::Stop { reason: object.take_name("stop_reason"), success: object.take_bool("success"), content: None }
        }
        "result" => Body::Stop {
            content: object.take_text("result").map(Content::Text),
            reason: object.take_name("stop_reason"),
            success: object.take_bool("success"),
        },
        _ => return None,
    })
}

/// The content of a tool result: text is in `output`, pieces are in `content`. A bare string in `content` becomes one piece
/// without extra fields.
fn output<'a>(object: &mut Object<'a>, notes: &mut Vec<BlockNote>) -> Content<'a> {
    if let Some(text) = object.take_text("output") {
        return Content::Text(text);
    }
    match object.peek("content") {
        Some(raw) if raw.starts_with('"') => {
            let text = object.take_text("content").unwrap_or(Text::from(""));
            return Content::Pieces(vec![Piece::text(text)]);
        }
        // The writer would write a list of one bare string as that string, so the list stays in the object.
        Some(raw) if items(raw).is_some_and(|list| matches!(list.as_slice(), [one] if one.starts_with('"'))) => {}
        _ => {
            if let Some(content) = take_content(object, "content", notes) {
                return content;
            }
        }
    }
    Content::Pieces(Vec::new())
}

/// A failure: an object with type and message, or a string with a message beside it. A string stays in the object, which tells
/// the writer which of the two it was.
fn error<'a>(object: &mut Object<'a>) -> Body<'a> {
    if let Some(mut inner) = object.open("error") {
        let name = inner.take_name("type");
        let content = inner.take_text("message").map(Content::Text);
        object.close("error", inner);
        return Body::Failure { name, content };
    }
    let Some(text) = object.peek_str("error") else { return Body::Failure { name: None, content: None } };
    if object.peek_str("message").is_some_and(|message| message != text) {
        let content = object.take_text("message").map(Content::Text);
        return Body::Failure { name: Some(text), content };
    }
    Body::Failure { name: None, content: Some(Content::Text(text.into())) }
}

/// A bare message. The extra fields of a block stay in the place of the block, below `content`.
fn message(mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
    let role = object.peek_str("role").and_then(|role| Role::named(&role)).unwrap_or(Role::Unknown);
    let mut notes = Vec::new();
    let mut event = Event { time: object.take_iso("timestamp"), ..Event::default() };
    if let Some(text) = object.take_text("content") {
        event.body = Body::Message { role, content: Content::Text(text) };
        event.extra = Extra::of(&INFO, object.into_extra());
        return at.emit_one(event, out);
    }
    let list = object.peek("content").and_then(items).unwrap_or_default();
    if !list.is_empty() {
        object.take("content");
    }
    let mut block_events = blocks(list, role, &mut notes).into_iter();
    note_blocks(notes, at, out);
    let Some(BlockEvent { body, block }) = block_events.next() else { return };
    if let Some(block) = block {
        object.close("content", block);
    }
    let first = Event { body, extra: Extra::of(&INFO, object.into_extra()), ..event.clone() };
    let rest = block_events.map(|block_events| {
        let extra = block_events
            .block
            .map(|block| ExtraFields(vec![(Cow::Borrowed("content"), Held::Object(block.into_extra()))]));
        Event { body: block_events.body, extra: Extra::of(&INFO, extra.unwrap_or_default()), ..event.clone() }
    });
    let mut events: Vec<Event<'_>> = std::iter::once(first).chain(rest).collect();
    at.emit(&mut events, out);
}

fn note_blocks(notes: Vec<BlockNote>, at: &At<'_>, out: &mut dyn Sink) {
    for BlockNote(kind, text) in notes {
        at.note(kind, text, out);
    }
}
