//! Writes records of rollouts back: what the events state goes to the places it was taken from, everything else stands in the
//! leftovers. This file must not invent anything.

use std::borrow::Cow;

use super::content::{self, Voice, Words};
use super::{LINE_TYPES, items, notices};
use crate::json::{Draft, Object};
use crate::model::{Body, Content, Event, ExtraFields, Held, Input, PieceKind, Role, Usage};
use crate::text::Text;
use crate::time::Time;

/// A record of a rollout that was read, and where it goes.
#[derive(Debug)]
pub enum Written {
    /// A line, or an item of a document.
    Record(Vec<u8>),
    /// The head of a document.
    Prologue(Vec<u8>),
    /// The end of a document.
    Epilogue(Vec<u8>),
}

/// The record that these events were read from. `rest` is what was left of it.
pub fn record(events: &[Event<'_>], rest: &ExtraFields<'_>) -> Written {
    let Some(event) = events.first() else { return Written::Record(Draft::new().render(Some(rest)).into()) };
    let name = rest.text("type");
    let time = event.time.as_ref().and_then(Time::to_iso);
    let mut draft = Draft::new();
    match &event.body {
        Body::Other { .. } => {}
        Body::Fact { name, .. } if name == "end" && rest.text("record_type").as_deref() != Some("end") => {
            return epilogue(rest);
        }
        Body::Fact { name, .. } if name == "session" && is_head(rest) => {
            let mut header = Draft::new();
            header.set_opt("timestamp", time.as_deref());
            session(events, &below(rest, "session"), Instructions::Plain, &mut header);
            draft.nest("session", header);
            // A brace on a line of its own is what tells a document from lines.
            let whole = crate::json::indent(&draft.render(Some(rest)), 0);
            return Written::Prologue(whole.strip_suffix("]\n}").unwrap_or(&whole).into());
        }
        _ if rest.has("payload") || name.as_deref().is_some_and(|name| LINE_TYPES.contains(&name)) => {
            draft.set_opt("timestamp", time.as_deref());
            draft.nest("payload", payload(name.as_deref(), events, &below(rest, "payload")));
        }
        Body::Fact { name, .. } if name == "session" => {
            session(events, rest, Instructions::Plain, &mut draft);
            draft.set_opt("timestamp", time.as_deref());
        }
        _ => item(events, rest, &mut draft),
    }
    Written::Record(draft.render(Some(rest)).into())
}

/// Whether a header was a document's: that has the session and an empty list of items, where a line has a payload.
fn is_head(rest: &ExtraFields<'_>) -> bool {
    rest.has("items") && (rest.object("session").is_some() || rest.has("session") && !rest.has("payload"))
}

/// The end of a document: the list of items is closed, and what stood after it follows.
fn epilogue(rest: &ExtraFields<'_>) -> Written {
    let after: Vec<_> = rest.0.iter().filter(|(_, held)| *held != Held::Hole).cloned().collect();
    let whole = Draft::new().render(Some(&ExtraFields(after)));
    let fields = whole.strip_prefix('{').unwrap_or(&whole);
    let comma = if fields == "}" { "" } else { "," };
    Written::Epilogue(format!("]{comma}{fields}").into())
}

/// What is left of an object in what is left of a record.
fn below<'a>(rest: &'a ExtraFields<'a>, key: &str) -> Cow<'a, ExtraFields<'a>> {
    match rest.object(key) {
        Some(inner) => Cow::Borrowed(inner),
        // A record that went through another file has its leftovers as plain JSON.
        None => Cow::Owned(rest.raw(key).and_then(Object::parse).map(Object::into_extra).unwrap_or_default()),
    }
}

/// Whether a field was taken from the record, so that it must be put back: not when it is still there, nor when the record is
/// known never to have had it.
fn was_taken(rest: &ExtraFields<'_>, key: &str) -> bool {
    match rest.0.iter().rev().find(|(name, _)| name == key) {
        Some((_, Held::Raw(_))) => false,
        Some((_, Held::Hole | Held::Object(_))) => true,
        None => rest.0.iter().all(|(_, held)| matches!(held, Held::Raw(_))),
    }
}

/// Whether an empty object stands in the place of a field: the field was JSON there, not a string of it.
fn is_sign(rest: &ExtraFields<'_>, key: &str) -> bool {
    match rest.0.iter().rev().find(|(name, _)| name == key) {
        Some((_, Held::Object(_))) => true,
        Some((_, Held::Raw(raw))) => raw == "{}",
        Some((_, Held::Hole)) | None => false,
    }
}

fn payload<'a>(name: Option<&str>, events: &[Event<'_>], rest: &ExtraFields<'_>) -> Draft<'a> {
    let mut draft = Draft::new();
    let Some(event) = events.first() else { return draft };
    match (name, &event.body) {
        (Some("session_meta"), _) => session(events, rest, Instructions::Base, &mut draft),
        (Some("turn_context"), _) => {
            draft.set_opt("model", event.model.as_deref());
            draft.set_opt("cwd", event.cwd.as_deref());
        }
        // A summary that was read elsewhere in the record leaves an empty message where it is.
        (Some("compacted"), Body::Compaction { summary }) if was_taken(rest, "message") => {
            text("message", summary.as_ref(), &mut draft);
        }
        (Some("inter_agent_communication"), Body::Fact { content, .. }) => {
            draft.set_opt("author", event.from.as_deref());
            draft.set_opt("recipient", event.to.as_deref());
            text("content", content.as_ref(), &mut draft);
        }
        (Some("event_msg"), _) => notice(event, rest, &mut draft),
        (Some("response_item"), _) => item(events, rest, &mut draft),
        _ => {}
    }
    draft
}

/// Where a header keeps the instructions, when the record itself does not tell any more.
#[derive(Clone, Copy)]
enum Instructions {
    Base,
    Plain,
}

fn session(events: &[Event<'_>], rest: &ExtraFields<'_>, otherwise: Instructions, draft: &mut Draft<'_>) {
    let Some(event) = events.first() else { return };
    draft.set_opt("id", event.session.as_deref());
    draft.set_opt("cwd", event.cwd.as_deref());
    draft.set_opt("cli_version", event.version.as_deref());
    draft.set_opt("forked_from_id", event.forked_from.as_ref().map(|fork| fork.session.as_ref()));
    let told = events.iter().find_map(|event| match &event.body {
        Body::Message { content, .. } => Some(content.joined().to_json()),
        _ => None,
    });
    if let Some(told) = told {
        let plain = rest.has("instructions") && !rest.has("base_instructions");
        match otherwise {
            Instructions::Base if !plain => {
                let mut base = Draft::new();
                base.set("text", told);
                draft.nest("base_instructions", base);
            }
            Instructions::Base | Instructions::Plain => draft.set("instructions", told),
        }
    }
    if let Some(branch) = &event.branch {
        let mut git = Draft::new();
        git.set_str("branch", branch);
        draft.nest("git", git);
    }
}

fn text(key: &'static str, content: Option<&Content<'_>>, draft: &mut Draft<'_>) {
    if let Some(content) = content {
        draft.set(key, content.joined().to_json());
    }
}

fn notice(event: &Event<'_>, rest: &ExtraFields<'_>, draft: &mut Draft<'_>) {
    let kind = rest.text("type").unwrap_or_default();
    let key = notices::text_key(&kind);
    match &event.body {
        Body::Failure { name, content } if kind == "task_complete" || kind == "turn_complete" => {
            let mut error = Draft::new();
            text("message", content.as_ref(), &mut error);
            error.set_opt("codex_error_info", name.as_deref());
            draft.nest("error", error);
        }
        Body::Failure { name, content } => {
            text("message", content.as_ref(), draft);
            draft.set_opt("codex_error_info", name.as_deref());
        }
        Body::Stop { reason, content, .. } => {
            text(key.unwrap_or("last_agent_message"), content.as_ref(), draft);
            draft.set_opt("reason", reason.as_deref());
        }
        Body::Fact { .. } if event.usage.is_some() => counts(event, draft),
        Body::Fact { content: Some(turns), .. } if kind == "thread_rolled_back" => {
            draft.set_number("num_turns", crate::json::number(&turns.joined().decode()));
        }
        Body::Fact { .. } | Body::Message { .. } | Body::Thinking { .. } | Body::Compaction { .. } => {
            if let (Some(key), Some(content)) = (key, event.content()) {
                text(key, Some(content), draft);
            }
        }
        Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Other { .. } => {}
    }
}

fn counts(event: &Event<'_>, draft: &mut Draft<'_>) {
    let Some(usage) = &event.usage else { return };
    let mut info = Draft::new();
    if let Some(total) = &event.group {
        let mut all = Draft::new();
        all.set("total_tokens", total.to_string());
        info.nest("total_token_usage", all);
    }
    info.nest("last_token_usage", numbers(usage));
    draft.nest("info", info);
}

/// The numbers of a usage that are stated, counted as Codex counts.
pub fn numbers<'a>(usage: &Usage) -> Draft<'a> {
    let mut draft = Draft::new();
    let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    draft.set_number(notices::INPUT, usage.input.map(|input| input.saturating_add(cached)));
    draft.set_number(notices::CACHED, usage.cache_read);
    draft.set_number(notices::CACHE_WRITE, usage.cache_write);
    draft.set_number(notices::OUTPUT, usage.output);
    draft.set_number(notices::REASONING, usage.reasoning);
    draft
}

fn item(events: &[Event<'_>], rest: &ExtraFields<'_>, draft: &mut Draft<'_>) {
    let kind = rest.text("type").unwrap_or("message".into());
    for event in events {
        draft.set_opt("id", event.id.as_deref());
        match &event.body {
            Body::Message { role, content } => {
                if *role != Role::Unknown {
                    draft.set_str("role", role.name());
                }
                draft.set_opt("author", event.from.as_deref());
                draft.set_opt("recipient", event.to.as_deref());
                draft.set("content", content::render(content, Voice::Input, Words::Ours));
            }
            Body::Thinking { content } => thinking(content, draft),
            Body::ToolCall { call, name, input } => tool_call(&kind, call.as_deref(), name, input, rest, draft),
            Body::ToolResult { call, content, error, .. } => {
                tool_result(&kind, call.as_deref(), content, *error, rest, draft);
            }
            Body::Fact { .. }
            | Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {}
        }
    }
}

fn thinking(content: &Content<'_>, draft: &mut Draft<'_>) {
    let (mut summary, mut thoughts) = (Vec::new(), Vec::new());
    let Content::Pieces(pieces) = content else { return };
    for piece in pieces {
        let is_summary = piece.extra.text("type").as_deref() == Some(items::SUMMARY_TEXT);
        let list = if is_summary { &mut summary } else { &mut thoughts };
        list.extend(content::element(piece, Voice::Thought, Words::Ours));
    }
    for (key, list) in [("summary", summary), ("content", thoughts)] {
        if !list.is_empty() {
            draft.set(key, content::array(&list));
        }
    }
}

fn tool_call(
    kind: &str,
    call: Option<&str>,
    name: &str,
    input: &Input<'_>,
    rest: &ExtraFields<'_>,
    draft: &mut Draft<'_>,
) {
    let key = match kind {
        "web_search_call" | "image_generation_call" => "id",
        _ => "call_id",
    };
    draft.set_opt(key, call);
    let said = match input {
        Input::Json(_) => true,
        Input::Text(text) => !text.is_empty(),
    };
    match kind {
        "function_call" | "custom_tool_call" => {
            draft.set_str("name", name);
            let key = if kind == "function_call" { "arguments" } else { "input" };
            if is_sign(rest, key) && said {
                draft.set(key, input.to_json().into_owned());
            } else if was_taken(rest, key) {
                draft.set_text(key, &input.to_text());
            }
        }
        "image_generation_call" if is_sign(rest, "revised_prompt") && said => {
            draft.set("revised_prompt", input.to_json().into_owned());
        }
        "image_generation_call" if was_taken(rest, "revised_prompt") => {
            draft.set_text("revised_prompt", &input.to_text());
        }
        "local_shell_call" | "web_search_call" if said => draft.set("action", input.to_json().into_owned()),
        "tool_search_call" if said => draft.set("arguments", input.to_json().into_owned()),
        _ => {}
    }
}

fn tool_result(
    kind: &str,
    call: Option<&str>,
    content: &Content<'_>,
    error: Option<bool>,
    rest: &ExtraFields<'_>,
    draft: &mut Draft<'_>,
) {
    match (kind, content) {
        ("image_generation_call", Content::Pieces(pieces)) => {
            let data = pieces.iter().find_map(|piece| match &piece.kind {
                PieceKind::Blob { data: crate::model::Data::Inline(data), .. } => Some(data),
                PieceKind::Blob { .. } | PieceKind::Text(_) | PieceKind::Other(_) => None,
            });
            draft.set("result", data.map_or(Text::from("").to_json(), Text::to_json));
        }
        ("tool_search_output", Content::Pieces(pieces)) => {
            draft.set_opt("call_id", call);
            if !pieces.is_empty() {
                draft.set("tools", content::render(content, Voice::Input, Words::Ours));
            }
        }
        _ => {
            draft.set_opt("call_id", call);
            if rest.object("output").is_some() {
                draft.nest("output", flagged(content, error));
            } else if was_taken(rest, "output") {
                draft.set("output", content::render(content, Voice::Input, Words::Ours));
            }
        }
    }
}

/// The object that some releases wrote in the place of a text.
fn flagged<'a>(content: &Content<'_>, error: Option<bool>) -> Draft<'a> {
    let mut output = Draft::new();
    if let Content::Text(said) = content {
        output.set_text("content", said);
    }
    if let Some(error) = error {
        output.set("success", (!error).to_string());
    }
    output
}
