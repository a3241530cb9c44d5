//! Reads one message. Nothing is remembered from one message to the next.

use std::borrow::Cow;

use super::{Speaker, pieces};
use crate::json::{Object, items};
use crate::model::{Body, Content, Event, Extra, ExtraFields, FormatInfo, Held, Input, Role};
use crate::text::{Str, Text};

/// The keys a message may have, in the API's own words and those that other servers of it added.
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

/// The types of content elements that only messages of Chat Completions have.
const PIECES: [&str; 5] = ["text", "image_url", "input_audio", "file", "refusal"];

/// Whether an object is such a message and nothing speaks against it: a known role, known keys only, and no content of
/// another vendor's shape.
pub fn is_message(object: &Object<'_>) -> bool {
    let role = object.peek_str("role");
    if role.and_then(|role| Speaker::named(&role)).is_none() || !object.keys().all(|key| KEYS.contains(&key)) {
        return false;
    }
    // Other vendors state what a response took in other words.
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

/// Whether an object of which only the first keys can be seen may be such a message: a known role, and no key that it has not.
pub fn may_be_message(object: &Object<'_>) -> bool {
    let role = object.peek_str("role");
    role.and_then(|role| Speaker::named(&role)).is_some()
        && object.keys().all(|key| KEYS.contains(&key))
        && (object.peek("content").is_none() || is_message(object))
}

/// The events of one message, what is left of it and of its calls in the words of `format`. The object comes back when it is no
/// message: its role is unknown, or it says nothing.
pub fn message<'a>(mut object: Object<'a>, format: &'static FormatInfo) -> Result<Vec<Event<'a>>, Object<'a>> {
    let Some(speaker) = object.peek_str("role").and_then(|role| Speaker::named(&role)) else { return Err(object) };
    let bodies = match speaker {
        Speaker::Tool => answer(&mut object).into_iter().map(|body| (body, None)).collect(),
        Speaker::Role(Role::Assistant) => assistant(&mut object),
        Speaker::Role(role) => said(role, &mut object).into_iter().map(|body| (body, None)).collect(),
    };
    if bodies.is_empty() {
        return Err(object);
    }
    let from = match speaker {
        Speaker::Role(_) => object.take_name("name"),
        Speaker::Tool => None,
    };
    let mut rest = object.into_extra();
    let mut events = Vec::with_capacity(bodies.len());
    for (at, (body, call)) in bodies.into_iter().enumerate() {
        let mut residue = if at == 0 { std::mem::take(&mut rest) } else { ExtraFields::default() };
        if let Some((key, left)) = call {
            leave_call(&mut residue, key, left);
        }
        events.push(Event { from: from.clone(), extra: Extra::of(format, residue), ..Event::new(body) });
    }
    Ok(events)
}

/// What is left of a call, and the key of the message it stood below.
type LeftOfCall<'a> = (&'static str, ExtraFields<'a>);

/// Puts what is left of a call below its key: in the place of the taken field, where this is the message's first event.
fn leave_call<'a>(residue: &mut ExtraFields<'a>, key: &'static str, left: ExtraFields<'a>) {
    match residue.0.iter_mut().rev().find(|(name, _)| name == key) {
        Some((_, held)) => *held = Held::Object(left),
        None => residue.0.push((Cow::Borrowed(key), Held::Object(left))),
    }
}

fn assistant<'a>(object: &mut Object<'a>) -> Vec<(Body<'a>, Option<LeftOfCall<'a>>)> {
    let mut bodies = Vec::new();
    if let Some(content) = thought(object) {
        bodies.push((Body::Thinking { content }, None));
    }
    let calls = calls(object);
    // Beside thoughts and calls an empty content is only spelling; a refusal stands where the content would.
    let silent = matches!(object.peek("content"), None | Some("null" | "\"\"" | "[]"));
    let refused = match object.has("content") && silent {
        true => object.take_name("refusal"),
        false => None,
    };
    if let Some(refusal) = refused {
        bodies.push((Body::Message { role: Role::Assistant, content: Content::text(refusal) }, None));
    } else if !silent || (bodies.is_empty() && calls.is_empty()) {
        bodies.extend(said(Role::Assistant, object).map(|body| (body, None)));
    }
    bodies.extend(calls.into_iter().map(|(body, left)| (body, Some(left))));
    bodies
}

/// Thoughts have no place in the API, and two names among those who serve it.
fn thought<'a>(object: &mut Object<'a>) -> Option<Content<'a>> {
    let key = ["reasoning_content", "reasoning"]
        .into_iter()
        .find(|key| object.peek(key).and_then(Text::from_json).is_some_and(|text| !text.is_empty()))?;
    object.take_text(key).map(Content::Text)
}

fn said<'a>(role: Role, object: &mut Object<'a>) -> Option<Body<'a>> {
    Some(Body::Message { role, content: content(object)? })
}

/// The content; an empty one for `null`, which stays where it is.
fn content<'a>(object: &mut Object<'a>) -> Option<Content<'a>> {
    match object.peek("content")? {
        "null" | "[]" => Some(Content::text("")),
        _ => match object.take_text("content") {
            Some(text) => Some(Content::Text(text)),
            None => object.take_items("content").map(pieces::read),
        },
    }
}

fn answer<'a>(object: &mut Object<'a>) -> Option<Body<'a>> {
    let content = content(object)?;
    Some(Body::ToolResult {
        call: object.take_str("tool_call_id"),
        name: object.take_name("name"),
        content,
        error: None,
    })
}

/// The calls of a message. A list with an element of unknown shape is left as a whole.
fn calls<'a>(object: &mut Object<'a>) -> Vec<(Body<'a>, LeftOfCall<'a>)> {
    if object.has("tool_calls") {
        let elements = object.peek("tool_calls").and_then(items).unwrap_or_default();
        let calls: Option<Vec<_>> = elements.into_iter().map(call).collect();
        let calls = calls.unwrap_or_default();
        if !calls.is_empty() {
            object.take("tool_calls");
        }
        return calls.into_iter().map(|(body, left)| (body, ("tool_calls", left))).collect();
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

/// The name and the arguments of a call. Arguments are a string of JSON; some servers give the JSON itself, of which an empty
/// object stays in the place as a sign.
fn function_of<'a>(function: &mut Object<'a>) -> Option<(Str<'a>, Input<'a>)> {
    let input = match function.take_text("arguments") {
        Some(text) => Input::from_text(text),
        None => {
            let raw = function.peek("arguments").filter(|raw| raw.starts_with('{'))?;
            let sign = Object::parse("{}")?;
            function.take("arguments");
            function.close("arguments", sign);
            Input::Json(Cow::Borrowed(raw))
        }
    };
    Some((function.take_str("name")?, input))
}
