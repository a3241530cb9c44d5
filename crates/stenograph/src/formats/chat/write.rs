//! Writes one message from the events that make it.

use std::borrow::Cow;

use super::pieces::Accepts;
use super::{Speaker, below, pieces};
use crate::json::Draft;
use crate::model::{Body, Content, Event, ExtraFields, Held, Input, Role};
use crate::write::Ownership;

/// Writes the message that these events form. Events read from a message of `origin` give that message back.
pub fn render(events: &[Event<'_>], origin: &str) -> String {
    let (draft, extra) = drafted(events, origin);
    draft.render(extra)
}

/// The draft of the message, and the extra fields of the message it was read from: a file may add fields to it.
pub fn drafted<'e, 'd>(events: &'e [Event<'_>], origin: &str) -> (Draft<'d>, Option<&'e ExtraFields<'e>>) {
    // The extra fields of a whole message include its role; others belong to a message whose beginning was cut off.
    let extra = events.first().and_then(|event| event.extra.get(origin)).filter(|extra| extra.has("role"));
    let mut draft = Draft::new();
    put_role(events, extra, &mut draft);
    for event in events {
        if let Body::ToolResult { call, name, content, .. } = &event.body {
            draft.set_opt("tool_call_id", call.as_deref());
            put_content(content, event, origin, extra, &mut draft);
            draft.set_opt("name", name.as_deref());
        }
        if let Body::Message { content, .. } | Body::Compaction { summary: Some(content) } = &event.body {
            put_content(content, event, origin, extra, &mut draft);
        }
    }
    put_empty_content(events, &mut draft);
    put_name(events, extra, &mut draft);
    put_calls(events, origin, extra, &mut draft);
    for event in events {
        if let Body::Thinking { content } = &event.body {
            draft.set_text(thought_key(extra), &content.joined());
        }
    }
    (draft, extra)
}

fn ownership(event: &Event<'_>, origin: &str, extra: Option<&ExtraFields<'_>>) -> Ownership {
    // After a round trip through a native stream a later event of a message may have no extra fields; the first one has them.
    if extra.is_some() || event.extra.get(origin).is_some() { Ownership::Own } else { Ownership::Foreign }
}

fn put_role(events: &[Event<'_>], extra: Option<&ExtraFields<'_>>, draft: &mut Draft<'_>) {
    let (role, name) = match events.iter().find_map(Event::role) {
        Some(Role::System) => (Role::System, "system"),
        Some(Role::Developer) => (Role::Developer, "developer"),
        Some(Role::User | Role::Tool | Role::Unknown) => (Role::User, "user"),
        Some(Role::Assistant) => (Role::Assistant, "assistant"),
        None => {
            let name = match events.first().map(|event| &event.body) {
                Some(Body::ToolResult { .. }) => "tool",
                Some(Body::Compaction { .. }) => "user",
                _ => "assistant",
            };
            return draft.default_str("role", name);
        }
    };
    let stated = extra.and_then(|extra| extra.text("role")).and_then(|name| Speaker::named(&name));
    if extra.is_none() || stated == Some(Speaker::Role(role)) {
        draft.default_str("role", name);
    } else {
        draft.set_str("role", name);
    }
}

/// Writes the content. If the extra fields hold an empty content, the text is a refusal, or there is none.
fn put_content(
    content: &Content<'_>,
    event: &Event<'_>,
    origin: &str,
    extra: Option<&ExtraFields<'_>>,
    draft: &mut Draft<'_>,
) {
    let kept = match extra.and_then(|extra| extra.held("content")) {
        Some(Held::Raw(raw)) => matches!(raw.as_ref(), "null" | "\"\"" | "[]"),
        _ => false,
    };
    match (kept, content.is_empty()) {
        (true, true) => {}
        (true, false) => draft.set_text("refusal", &content.joined()),
        (false, _) => draft.set(
            "content",
            match ownership(event, origin, extra) {
                Ownership::Own => pieces::write_own(content),
                Ownership::Foreign => pieces::write_foreign(content, accepted(event)),
            },
        ),
    }
}

/// The pieces that the API accepts from the speaker of this event.
fn accepted(event: &Event<'_>) -> Accepts {
    match &event.body {
        Body::Message { role: Role::User | Role::Tool | Role::Unknown, .. } | Body::Compaction { .. } => {
            Accepts::Anything
        }
        Body::Message { role: Role::System | Role::Developer | Role::Assistant, .. } => Accepts::Text,
        Body::ToolResult { .. } | Body::ToolCall { .. } | Body::Thinking { .. } => Accepts::Text,
        Body::Fact { .. } | Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => Accepts::Text,
    }
}

/// The longest name that the API accepts.
const NAME_SIZE_MAX: usize = 64;

/// Writes the name of the speaker; in a new message only a name that the API accepts. A thought or a call also names its
/// speaker.
fn put_name(events: &[Event<'_>], extra: Option<&ExtraFields<'_>>, draft: &mut Draft<'_>) {
    let speaks = |event: &&Event<'_>| match &event.body {
        Body::Message { .. } | Body::Thinking { .. } | Body::ToolCall { .. } => true,
        Body::ToolResult { .. } | Body::Compaction { .. } | Body::Failure { .. } => false,
        Body::Stop { .. } | Body::Fact { .. } | Body::Other { .. } => false,
    };
    let from = events.iter().filter(speaks).find_map(|event| event.from.as_deref());
    let fits = |name: &str| {
        (1..=NAME_SIZE_MAX).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    draft.set_opt("name", from.filter(|name| extra.is_some() || fits(name)));
}

/// Writes the empty content that a message without content must have.
fn put_empty_content(events: &[Event<'_>], draft: &mut Draft<'_>) {
    let calls = events.iter().any(|event| matches!(event.body, Body::ToolCall { .. }));
    let has_no_content = events.iter().all(|event| matches!(event.body, Body::ToolCall { .. } | Body::Thinking { .. }));
    match (calls, has_no_content) {
        (false, true) => draft.default_str("content", ""),
        (true, true) => draft.default("content", "null"),
        (_, false) => {}
    }
}

fn put_calls(events: &[Event<'_>], origin: &str, extra: Option<&ExtraFields<'_>>, draft: &mut Draft<'_>) {
    let calls: Vec<&Event<'_>> = events.iter().filter(|event| matches!(event.body, Body::ToolCall { .. })).collect();
    let Some(first) = calls.first() else { return };
    if extra.is_some() && is_legacy(first, origin) {
        let call_extra = first.extra.get(origin).map(|own| below(own, "function_call").unwrap_or_default());
        if let Some(function) = function(first, call_extra.as_deref()) {
            draft.set("function_call", function.render(call_extra.as_deref()));
        }
        return;
    }
    let calls: Vec<String> = calls.into_iter().filter_map(|event| call(event, origin, extra)).collect();
    draft.set("tool_calls", format!("[{}]", calls.join(",")));
}

/// Whether a call is the `function_call` of an old message. After a round trip through a native stream its extra fields may be
/// missing: then it is the call that has neither an id nor a type.
fn is_legacy(event: &Event<'_>, origin: &str) -> bool {
    let Some(extra) = event.extra.get(origin) else { return false };
    match (extra.held("function_call"), extra.held("tool_calls")) {
        (Some(Held::Object(_)), _) => true,
        (_, None) => event.call().is_none(),
        _ => false,
    }
}

fn call(event: &Event<'_>, origin: &str, message: Option<&ExtraFields<'_>>) -> Option<String> {
    let Body::ToolCall { call, name, input } = &event.body else { return None };
    let own = event.extra.get(origin);
    let extra = match ownership(event, origin, message) {
        Ownership::Own => Some(own.and_then(|own| below(own, "tool_calls")).unwrap_or_default()),
        Ownership::Foreign => None,
    };
    let extra = extra.as_deref();
    let mut draft = Draft::new();
    draft.set_opt("id", call.as_deref());
    if extra.and_then(|extra| extra.text("type")).as_deref() == Some("custom") {
        let mut custom = Draft::new();
        custom.set_str("name", name);
        custom.set_text("input", &input.to_text());
        draft.nest("custom", custom);
    } else {
        let call_extra = extra.map(|extra| below(extra, "function").unwrap_or_default());
        draft.nest("function", function(event, call_extra.as_deref())?);
    }
    draft.default_str("type", "function");
    Some(draft.render(extra))
}

fn function<'d>(event: &Event<'_>, extra: Option<&ExtraFields<'_>>) -> Option<Draft<'d>> {
    let Body::ToolCall { name, input, .. } = &event.body else { return None };
    let mut function = Draft::new();
    function.set_str("name", name);
    // A value in the place of the arguments records that they were JSON, not a string of it.
    let plain = extra.and_then(|extra| extra.held("arguments")).is_some_and(|held| *held != Held::Hole);
    match extra {
        _ if plain => function.set("arguments", input.to_json().into_owned()),
        Some(_) => function.set_text("arguments", &input.to_text()),
        None => function.set_str("arguments", &arguments(input)),
    }
    Some(function)
}

/// The arguments of another system's call: an object, because functions accept nothing else. The API also has calls with free
/// text, but CycoD cannot load them, so that text goes below the key `input`.
fn arguments<'i>(input: &'i Input<'_>) -> Cow<'i, str> {
    let nothing = match input {
        Input::Json(raw) => raw.trim() == "null",
        Input::Text(text) => text.is_empty(),
    };
    if nothing { Cow::Borrowed("{}") } else { input.to_object() }
}

fn thought_key(extra: Option<&ExtraFields<'_>>) -> &'static str {
    let taken = |key: &str| extra.and_then(|extra| extra.held(key)) == Some(&Held::Hole);
    if taken("reasoning") && !taken("reasoning_content") { "reasoning" } else { "reasoning_content" }
}
