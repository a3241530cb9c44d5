//! Reads one message. The reader keeps no state between messages.

use std::borrow::Cow;

use super::{Speaker, pieces};
use crate::json::{Object, items};
use crate::model::{Body, Content, Event, Extra, ExtraFields, FormatInfo, Held, Input, Role};
use crate::text::{Str, Text};

/// The keys of a message: those of the API, and those that compatible servers add.
const KEYS: [&str; 20] = [
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "refusal",
    "audio",
    "annotations",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "weight",
    "cache_control",
    "prefix",
    "partial",
    "provider_specific_fields",
    "model",
    "usage",
    crate::carry::KEY,
];

/// The types of content elements that only Chat Completions messages have.
const PIECES: [&str; 5] = ["text", "image_url", "input_audio", "file", "refusal"];

/// Whether an object is a message: it has a known role, only known keys, and no content of another vendor's shape.
pub fn is_message(object: &Object<'_>) -> bool {
    let role = object.peek_str("role");
    if role.and_then(|role| Speaker::named(&role)).is_none() || !object.keys().all(|key| KEYS.contains(&key)) {
        return false;
    }
    // Other vendors state token counts under other keys.
    let counts = |usage: Object<'_>| usage.has("prompt_tokens") || usage.has("completion_tokens");
    if object.peek("usage").is_some_and(|raw| raw != "null" && !Object::parse(raw).is_some_and(counts)) {
        return false;
    }
    match object.peek("content") {
        None => ["tool_calls", "function_call", "refusal", "audio"].iter().any(|key| object.has(key)),
        Some(raw) if raw == "null" || raw.starts_with('"') => true,
        Some(raw) => items(raw).is_some_and(|items| {
            items.into_iter().all(|item| {
                let kind = Object::parse(item).and_then(|item| item.peek_str("type"));
                kind.is_some_and(|kind| PIECES.contains(&kind.as_ref()))
            })
        }),
    }
}

/// Whether an object of which only the first keys are visible can be a message: it has a known role and only known keys.
pub fn may_be_message(object: &Object<'_>) -> bool {
    let role = object.peek_str("role");
    role.and_then(|role| Speaker::named(&role)).is_some()
        && object.keys().all(|key| KEYS.contains(&key))
        && (object.peek("content").is_none() || is_message(object))
}

/// The events of one message; its extra fields and those of its calls belong to `format`. Returns the object if it is not a
/// message: its role is unknown, or it has no content.
pub fn message<'a>(mut object: Object<'a>, format: &'static FormatInfo) -> Result<Vec<Event<'a>>, Object<'a>> {
    let Some(speaker) = object.peek_str("role").and_then(|role| Speaker::named(&role)) else { return Err(object) };
    let bodies = match speaker {
        Speaker::Tool => result_body(&mut object).into_iter().map(|body| (body, None)).collect(),
        Speaker::Role(Role::Assistant) => assistant(&mut object),
        Speaker::Role(role) => message_body(role, &mut object).into_iter().map(|body| (body, None)).collect(),
    };
    if bodies.is_empty() {
        return Err(object);
    }
    let from = match speaker {
        Speaker::Role(_) => object.take_name("name"),
        Speaker::Tool => None,
    };
    let mut message_extra = object.into_extra();
    let mut events = Vec::with_capacity(bodies.len());
    for (at, (body, call)) in bodies.into_iter().enumerate() {
        let mut extra = if at == 0 { std::mem::take(&mut message_extra) } else { ExtraFields::default() };
        if let Some((key, call_extra)) = call {
            put_call_extra(&mut extra, key, call_extra);
        }
        events.push(Event { from: from.clone(), extra: Extra::of(format, extra), ..Event::new(body) });
    }
    Ok(events)
}

/// The extra fields of a call, and the key of the message that held the call.
type CallExtra<'a> = (&'static str, ExtraFields<'a>);

/// Puts the extra fields of a call below its key. In the first event of a message they replace the hole of the taken field.
fn put_call_extra<'a>(extra: &mut ExtraFields<'a>, key: &'static str, call_extra: ExtraFields<'a>) {
    match extra.0.iter_mut().rev().find(|(name, _)| name == key) {
        Some((_, held)) => *held = Held::Object(call_extra),
        None => extra.0.push((Cow::Borrowed(key), Held::Object(call_extra))),
    }
}

fn assistant<'a>(object: &mut Object<'a>) -> Vec<(Body<'a>, Option<CallExtra<'a>>)> {
    let mut bodies = Vec::new();
    if let Some(content) = thought(object) {
        bodies.push((Body::Thinking { content }, None));
    }
    let calls = calls(object);
    // Beside thoughts and calls an empty content is only a spelling; a refusal replaces the content.
    let is_empty = matches!(object.peek("content"), None | Some("null" | "\"\"" | "[]"));
    let refused = match object.has("content") && is_empty {
        true => object.take_name("refusal"),
        false => None,
    };
    if let Some(refusal) = refused {
        bodies.push((Body::Message { role: Role::Assistant, content: Content::text(refusal) }, None));
    } else if !is_empty || (bodies.is_empty() && calls.is_empty()) {
        bodies.extend(message_body(Role::Assistant, object).map(|body| (body, None)));
    }
    bodies.extend(calls.into_iter().map(|(body, call_extra)| (body, Some(call_extra))));
    bodies
}

/// The API has no field for thoughts; compatible servers use two names.
fn thought<'a>(object: &mut Object<'a>) -> Option<Content<'a>> {
    let key = ["reasoning_content", "reasoning"]
        .into_iter()
        .find(|key| object.peek(key).and_then(Text::from_json).is_some_and(|text| !text.is_empty()))?;
    object.take_text(key).map(Content::Text)
}

fn message_body<'a>(role: Role, object: &mut Object<'a>) -> Option<Body<'a>> {
    Some(Body::Message { role, content: content(object)? })
}

/// The content. For `null` it is empty, and the value stays in the object.
fn content<'a>(object: &mut Object<'a>) -> Option<Content<'a>> {
    match object.peek("content")? {
        "null" | "[]" => Some(Content::text("")),
        _ => match object.take_text("content") {
            Some(text) => Some(Content::Text(text)),
            None => object.take_items("content").map(pieces::read),
        },
    }
}

fn result_body<'a>(object: &mut Object<'a>) -> Option<Body<'a>> {
    let content = content(object)?;
    Some(Body::ToolResult {
        call: object.take_str("tool_call_id"),
        name: object.take_name("name"),
        content,
        error: None,
    })
}

/// The calls of a message. A list with an element of unknown shape stays whole.
fn calls<'a>(object: &mut Object<'a>) -> Vec<(Body<'a>, CallExtra<'a>)> {
    if object.has("tool_calls") {
        let elements = object.peek("tool_calls").and_then(items).unwrap_or_default();
        let calls: Option<Vec<_>> = elements.into_iter().map(call).collect();
        let calls = calls.unwrap_or_default();
        if !calls.is_empty() {
            object.take("tool_calls");
        }
        return calls.into_iter().map(|(body, call_extra)| (body, ("tool_calls", call_extra))).collect();
    }
    let legacy = object.peek("function_call").and_then(Object::parse).and_then(|mut function| {
        let (name, input) = function_of(&mut function)?;
        Some((Body::ToolCall { call: None, name, input }, ("function_call", function.into_extra())))
    });
    if legacy.is_some() {
        object.take("function_call");
    }
    legacy.into_iter().collect()
}

fn call(raw: &str) -> Option<(Body<'_>, ExtraFields<'_>)> {
    let mut object = Object::parse(raw)?;
    let (name, input) = if object.peek_str("type").as_deref() == Some("custom") {
        let mut custom = object.open("custom")?;
        let found = (custom.take_str("name")?, Input::Text(custom.take_text("input")?));
        object.close("custom", custom);
        found
    } else {
        let mut function = object.open("function")?;
        let found = function_of(&mut function)?;
        object.close("function", function);
        found
    };
    Some((Body::ToolCall { call: object.take_str("id"), name, input }, object.into_extra()))
}

/// The name and the arguments of a call. Arguments are a string of JSON. Some servers write the JSON itself; an empty object in
/// its place records that.
fn function_of<'a>(function: &mut Object<'a>) -> Option<(Str<'a>, Input<'a>)> {
    let input = match function.take_text("arguments") {
        Some(text) => Input::from_text(text),
        None => {
            let raw = function.peek("arguments").filter(|raw| raw.starts_with('{'))?;
            let marker = Object::parse("{}")?;
            function.take("arguments");
            function.close("arguments", marker);
            Input::Json(Cow::Borrowed(raw))
        }
    };
    Some((function.take_str("name")?, input))
}
