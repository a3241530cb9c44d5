//! Reads response items: the input and output of the model. An item is bare in old rollouts and inside a payload in current
//! ones; this file sees only the item.

use std::borrow::Cow;

use super::content;
use crate::json::Object;
use crate::model::{Body, Content, Data, Event, ExtraFields, Input, Piece, PieceKind, Role};
use crate::text::{Str, Text};

/// Known items that are not part of the conversation.
const FACTS: &[&str] = &["ghost_snapshot", "compaction_trigger", "additional_tools"];

/// The type of an item. Rollouts of some other tools leave out the type of a message.
pub fn kind<'a>(object: &Object<'a>) -> Option<Str<'a>> {
    let stated = object.peek_str("type");
    match stated {
        None if !object.has("type") && object.has("role") && object.has("content") => Some("message".into()),
        stated => stated,
    }
}

/// The events of an item; nothing is taken from an unknown one.
pub fn read<'a>(kind: &str, object: &mut Object<'a>) -> Option<Vec<Event<'a>>> {
    let body = match kind {
        "image_generation_call" => return Some(image(object)),
        "web_search_call" => {
            // The end of the search refers to this id.
            let call = object.take_name("id");
            Body::ToolCall { call, name: "web_search".into(), input: json_input(object, "action") }
        }
        "message" => message(object)?,
        "agent_message" => {
            let content = content::take(object, "content")?;
            Body::Message { role: Role::Unknown, content }
        }
        "reasoning" => Body::Thinking { content: Content::Pieces(thoughts(object)) },
        "function_call" => {
            let name = object.take_str("name")?;
            Body::ToolCall {
                name,
                call: object.take_name("call_id"),
                input: text_input(object, "arguments", Input::from_text),
            }
        }
        "custom_tool_call" => {
            let name = object.take_str("name")?;
            Body::ToolCall { name, call: object.take_name("call_id"), input: text_input(object, "input", Input::Text) }
        }
        "local_shell_call" => {
            let call = object.take_name("call_id");
            Body::ToolCall { call, name: "local_shell".into(), input: json_input(object, "action") }
        }
        "tool_search_call" => {
            let call = object.take_name("call_id");
            Body::ToolCall { call, name: "tool_search".into(), input: json_input(object, "arguments") }
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => result(object),
        "tool_search_output" => tool_search_result(object),
        "compaction" | "compaction_summary" | "context_compaction" => Body::Compaction { summary: None },
        name if FACTS.contains(&name) => Body::Fact { fact: name.to_owned().into(), content: None },
        _ => return None,
    };
    let mut event = Event { id: object.take_name("id"), ..Event::new(body) };
    if kind == "agent_message" {
        event.from = object.take_name("author");
        event.to = object.take_name("recipient");
    }
    Some(vec![event])
}

fn message<'a>(object: &mut Object<'a>) -> Option<Body<'a>> {
    let content = content::take(object, "content")?;
    let role = object.peek_str("role").and_then(|role| Role::named(&role)).filter(|role| *role != Role::Unknown);
    if role.is_some() {
        object.take("role");
    }
    Some(Body::Message { role: role.unwrap_or(Role::Unknown), content })
}

/// The readable parts of a thought: its summary, then the thought itself. A list with other elements than texts stays whole.
fn thoughts<'a>(object: &mut Object<'a>) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    for key in ["summary", "content"] {
        let Some(items) = object.peek(key).and_then(crate::json::items).filter(|items| !items.is_empty()) else {
            continue;
        };
        let texts: Option<Vec<Piece<'a>>> = items.into_iter().map(|raw| thought(raw, key)).collect();
        if let Some(texts) = texts {
            object.take(key);
            pieces.extend(texts);
        }
    }
    pieces
}

fn thought<'a>(raw: &'a str, key: &str) -> Option<Piece<'a>> {
    let mut object = Object::parse(raw)?;
    let kind = object.peek_str("type")?;
    // The writer distinguishes the two lists by this type.
    if (kind == SUMMARY_TEXT) != (key == "summary") {
        return None;
    }
    let text = object.take_text("text")?;
    Some(Piece { kind: PieceKind::Text(text), extra: object.into_extra() })
}

/// The type of the elements of a summary.
pub const SUMMARY_TEXT: &str = "summary_text";

/// An input that is a string. Some tools write the JSON itself instead of a string of it; an empty object in its place records
/// that. Any other value stays in the object, and the input is empty.
fn text_input<'a>(object: &mut Object<'a>, key: &str, read: impl FnOnce(Text<'a>) -> Input<'a>) -> Input<'a> {
    let raw = object.peek(key).filter(|raw| raw.starts_with(['{', '[']));
    if let (Some(raw), Some(marker)) = (raw, Object::parse("{}")) {
        object.take(key);
        object.close(key, marker);
        return Input::Json(Cow::Borrowed(raw));
    }
    object.take_text(key).map_or(Input::Text(Text::from("")), read)
}

/// An input that is JSON.
fn json_input<'a>(object: &mut Object<'a>, key: &str) -> Input<'a> {
    match object.peek(key) {
        Some(raw) if raw.starts_with('{') => {
            object.take(key);
            Input::Json(Cow::Borrowed(raw))
        }
        _ => Input::Text(Text::from("")),
    }
}

/// A result. Codex does not flag failures, except in the object that some releases wrote instead of the text.
fn result<'a>(object: &mut Object<'a>) -> Body<'a> {
    let call = object.take_name("call_id");
    let mut error = None;
    let content = content::take(object, "output").or_else(|| {
        let mut output = object.open("output")?;
        let text = output.take_text("content");
        error = output.take_bool("success").map(|success| !success);
        object.close("output", output);
        text.map(Content::Text)
    });
    let content = content.unwrap_or(Content::Pieces(Vec::new()));
    Body::ToolResult { call, name: None, content, error }
}

/// The result of a search for tools: their definitions.
fn tool_search_result<'a>(object: &mut Object<'a>) -> Body<'a> {
    let call = object.take_name("call_id");
    let whole = |raw| Piece { kind: PieceKind::Other(Cow::Borrowed(raw)), extra: ExtraFields::default() };
    let tools = object.peek("tools").and_then(crate::json::items).filter(|tools| !tools.is_empty());
    if tools.is_some() {
        object.take("tools");
    }
    let content = Content::Pieces(tools.unwrap_or_default().into_iter().map(whole).collect());
    Body::ToolResult { call, name: None, content, error: None }
}

/// A generated image: one record is both the call and its result.
fn image<'a>(object: &mut Object<'a>) -> Vec<Event<'a>> {
    let call = object.take_name("id");
    let input = text_input(object, "revised_prompt", Input::Text);
    let body = Body::ToolCall { call: call.clone(), name: "image_generation".into(), input };
    let mut events = vec![Event::new(body)];
    if let Some(data) = content::take_nonempty(object, "result") {
        let kind = PieceKind::Blob { media: None, data: Data::Inline(data) };
        let content = Content::Pieces(vec![Piece { kind, extra: ExtraFields::default() }]);
        events.push(Event::new(Body::ToolResult { call, name: None, content, error: None }));
    }
    events
}
