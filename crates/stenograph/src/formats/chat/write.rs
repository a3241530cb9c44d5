//! Writes one message from the events that make it.

use std::borrow::Cow;

use super::pieces::Takes;
use super::{Speaker, below, pieces};
use crate::json::Draft;
use crate::model::{Body, Content, Event, ExtraFields, Held, Input, Role};
use crate::write::Ownership;

/// The message that these events make. Those that were read from a message of `origin` give that message back.
pub fn render(events: &[Event<'_>], origin: &str) -> String {
    let (draft, rest) = drafted(events, origin);
    draft.render(rest)
}

/// The same before it is spelled, with what is left of the message it was read from: a file may have more to say about it.
pub fn drafted<'e, 'd>(events: &'e [Event<'_>], origin: &str) -> (Draft<'d>, Option<&'e ExtraFields<'e>>) {
    // What is left of a whole message has its role: anything else is the rest of a message whose beginning was cut off.
    let rest = events.first().and_then(|event| event.extra.get(origin)).filter(|rest| rest.has("role"));
    let mut draft = Draft::new();
    put_role(events, rest, &mut draft);
    for event in events {
        if let Body::ToolResult { call, name, content, .. } = &event.body {
            draft.set_opt("tool_call_id", call.as_deref());
            put_content(content, event, origin, rest, &mut draft);
            draft.set_opt("name", name.as_deref());
        }
        if let Body::Message { content, .. } | Body::Compaction { summary: Some(content) } = &event.body {
            put_content(content, event, origin, rest, &mut draft);
        }
    }
    put_silence(events, &mut draft);
    put_name(events, rest, &mut draft);
    put_calls(events, origin, rest, &mut draft);
    for event in events {
        if let Body::Thinking { content } = &event.body {
            draft.set_text(thought_key(rest), &content.joined());
        }
    }
    (draft, rest)
}

fn whose(event: &Event<'_>, origin: &str, rest: Option<&ExtraFields<'_>>) -> Ownership {
    // After a way through a native stream a later event of a message may have nothing left of it; the first one has.
    if rest.is_some() || event.extra.get(origin).is_some() { Ownership::Own } else { Ownership::Foreign }
}

fn put_role(events: &[Event<'_>], rest: Option<&ExtraFields<'_>>, draft: &mut Draft<'_>) {
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
    let stated = rest.and_then(|rest| rest.text("role")).and_then(|name| Speaker::named(&name));
    if rest.is_none() || stated == Some(Speaker::Role(role)) {
        draft.default_str("role", name);
    } else {
        draft.set_str("role", name);
    }
}

/// Puts what is said. Where a message has kept an empty content, what is said was a refusal, or nothing.
fn put_content(
    content: &Content<'_>,
    event: &Event<'_>,
    origin: &str,
    rest: Option<&ExtraFields<'_>>,
    draft: &mut Draft<'_>,
) {
    let kept = match rest.and_then(|rest| rest.held("content")) {
        Some(Held::Raw(raw)) => matches!(raw.as_ref(), "null" | "\"\"" | "[]"),
        _ => false,
    };
    match (kept, content.is_empty()) {
        (true, true) => {}
        (true, false) => draft.set_text("refusal", &content.joined()),
        (false, _) => draft.set(
            "content",
            match whose(event, origin, rest) {
                Ownership::Own => pieces::own(content),
                Ownership::Foreign => pieces::foreign(content, takes(event)),
            },
        ),
    }
}

/// What the API takes from whoever says this.
fn takes(event: &Event<'_>) -> Takes {
    match &event.body {
        Body::Message { role: Role::User | Role::Tool | Role::Unknown, .. } | Body::Compaction { .. } => {
            Takes::Anything
        }
        Body::Message { role: Role::System | Role::Developer | Role::Assistant, .. } => Takes::Text,
        Body::ToolResult { .. } | Body::ToolCall { .. } | Body::Thinking { .. } => Takes::Text,
        Body::Fact { .. } | Body::Failure { .. } | Body::Stop { .. } | Body::Other { .. } => Takes::Text,
    }
}

/// The longest name the API takes.
const NAME_SIZE_MAX: usize = 64;

/// Puts who speaks, by name: in a new message only a name that the API takes. Whoever only thinks or calls speaks too.
fn put_name(events: &[Event<'_>], rest: Option<&ExtraFields<'_>>, draft: &mut Draft<'_>) {
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
    draft.set_opt("name", from.filter(|name| rest.is_some() || fits(name)));
}

/// A message in which nothing is said has a content nevertheless.
fn put_silence(events: &[Event<'_>], draft: &mut Draft<'_>) {
    let calls = events.iter().any(|event| matches!(event.body, Body::ToolCall { .. }));
    let silent = events.iter().all(|event| matches!(event.body, Body::ToolCall { .. } | Body::Thinking { .. }));
    match (calls, silent) {
        (false, true) => draft.default_str("content", ""),
        (true, true) => draft.default("content", "null"),
        (_, false) => {}
    }
}

fn put_calls(events: &[Event<'_>], origin: &str, rest: Option<&ExtraFields<'_>>, draft: &mut Draft<'_>) {
    let calls: Vec<&Event<'_>> = events.iter().filter(|event| matches!(event.body, Body::ToolCall { .. })).collect();
    let Some(first) = calls.first() else { return };
    if rest.is_some() && is_legacy(first, origin) {
        let left = first.extra.get(origin).map(|own| below(own, "function_call").unwrap_or_default());
        if let Some(function) = function(first, left.as_deref()) {
            draft.set("function_call", function.render(left.as_deref()));
        }
        return;
    }
    let calls: Vec<String> = calls.into_iter().filter_map(|event| call(event, origin, rest)).collect();
    draft.set("tool_calls", format!("[{}]", calls.join(",")));
}

/// Whether a call was the one `function_call` of an old message. After a way through a native stream nothing may be left of
/// it: then it is the call that has neither an id nor a type.
fn is_legacy(event: &Event<'_>, origin: &str) -> bool {
    let Some(rest) = event.extra.get(origin) else { return false };
    match (rest.held("function_call"), rest.held("tool_calls")) {
        (Some(Held::Object(_)), _) => true,
        (_, None) => event.call().is_none(),
        _ => false,
    }
}

fn call(event: &Event<'_>, origin: &str, message: Option<&ExtraFields<'_>>) -> Option<String> {
    let Body::ToolCall { call, name, input } = &event.body else { return None };
    let own = event.extra.get(origin);
    let rest = match whose(event, origin, message) {
        Ownership::Own => Some(own.and_then(|own| below(own, "tool_calls")).unwrap_or_default()),
        Ownership::Foreign => None,
    };
    let rest = rest.as_deref();
    let mut draft = Draft::new();
    draft.set_opt("id", call.as_deref());
    if rest.and_then(|rest| rest.text("type")).as_deref() == Some("custom") {
        let mut custom = Draft::new();
        custom.set_str("name", name);
        custom.set_text("input", &input.to_text());
        draft.nest("custom", custom);
    } else {
        let left = rest.map(|rest| below(rest, "function").unwrap_or_default());
        draft.nest("function", function(event, left.as_deref())?);
    }
    draft.default_str("type", "function");
    Some(draft.render(rest))
}

fn function<'d>(event: &Event<'_>, rest: Option<&ExtraFields<'_>>) -> Option<Draft<'d>> {
    let Body::ToolCall { name, input, .. } = &event.body else { return None };
    let mut function = Draft::new();
    function.set_str("name", name);
    // A sign in the place of the arguments says that they were JSON there, not a string of it.
    let plain = rest.and_then(|rest| rest.held("arguments")).is_some_and(|held| *held != Held::Hole);
    match rest {
        _ if plain => function.set("arguments", input.to_json().into_owned()),
        Some(_) => function.set_text("arguments", &input.to_text()),
        None => function.set_str("arguments", &arguments(input)),
    }
    Some(function)
}

/// The arguments of another system's call: an object, because functions take nothing else. The API has calls with free text
/// too, but CycoD cannot load them, so that text goes below the key `input`.
fn arguments<'i>(input: &'i Input<'_>) -> Cow<'i, str> {
    let nothing = match input {
        Input::Json(raw) => raw.trim() == "null",
        Input::Text(text) => text.is_empty(),
    };
    if nothing { Cow::Borrowed("{}") } else { input.to_object() }
}

fn thought_key(rest: Option<&ExtraFields<'_>>) -> &'static str {
    let taken = |key: &str| rest.and_then(|rest| rest.held(key)) == Some(&Held::Hole);
    if taken("reasoning") && !taken("reasoning_content") { "reasoning" } else { "reasoning_content" }
}
