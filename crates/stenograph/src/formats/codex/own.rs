//! Writes records of rollouts back: the fields of the events return to their places, and the extra fields hold everything else.
//! This file synthesizes nothing.

use std::borrow::Cow;

use super::content::{self, ContentKind};
use super::{LINE_TYPES, items, notices};
use crate::formats::document::closed;
use crate::json::{Draft, Object};
use crate::model::{Body, Content, Event, ExtraFields, Fact, Held, Input, PieceKind, Role, Usage};
use crate::text::Text;
use crate::time::Time;
use crate::write::Ownership;

/// A record that was read from a rollout, by its place in the file.
#[derive(Debug)]
pub enum RolloutPart {
    /// A line, or an item of a document.
    Record(Vec<u8>),
    /// The head of a document.
    Prologue(Vec<u8>),
    /// The end of a document.
    Epilogue(Vec<u8>),
}

/// The record that these events were read from; `extra` holds its extra fields.
pub fn record(events: &[Event<'_>], extra: &ExtraFields<'_>) -> RolloutPart {
    let Some(event) = events.first() else { return RolloutPart::Record(Draft::new().render(Some(extra)).into()) };
    let name = extra.text("type");
    let time = event.time.as_ref().and_then(Time::to_iso);
    let mut draft = Draft::new();
    match &event.body {
        Body::Other { .. } => {}
        Body::Fact { fact: Fact::DocumentEnd, .. } if extra.text("record_type").as_deref() != Some("end") => {
            return epilogue(extra);
        }
        Body::Fact { fact: name, .. } if name == "session" && is_document_head(extra) => {
            let mut header = Draft::new();
            header.set_opt("timestamp", time.as_deref());
            session(events, &below(extra, "session"), Instructions::Plain, &mut header);
            draft.nest("session", header);
            // A brace on a line of its own distinguishes a document from lines.
            let whole = crate::json::indent(&draft.render(Some(extra)), 0);
            return RolloutPart::Prologue(whole.strip_suffix("]\n}").unwrap_or(&whole).into());
        }
        _ if extra.has("payload") || name.as_deref().is_some_and(|name| LINE_TYPES.contains(&name)) => {
            draft.set_opt("timestamp", time.as_deref());
            draft.nest("payload", payload(name.as_deref(), events, &below(extra, "payload")));
        }
        Body::Fact { fact: name, .. } if name == "session" => {
            session(events, extra, Instructions::Plain, &mut draft);
            draft.set_opt("timestamp", time.as_deref());
        }
        _ => item(events, extra, &mut draft),
    }
    RolloutPart::Record(draft.render(Some(extra)).into())
}

/// Whether a header is a document's: it has the session and an empty list of items, whereas a line has a payload.
fn is_document_head(extra: &ExtraFields<'_>) -> bool {
    extra.has("items") && (extra.object("session").is_some() || extra.has("session") && !extra.has("payload"))
}

/// The end of a document: the closing bracket of the items, and the fields after them.
fn epilogue(extra: &ExtraFields<'_>) -> RolloutPart {
    let after: Vec<_> = extra.0.iter().filter(|(_, held)| *held != Held::Hole).cloned().collect();
    RolloutPart::Epilogue(closed(&Draft::new().render(Some(&ExtraFields(after)))).into())
}

/// The extra fields of an object inside a record.
fn below<'a>(extra: &'a ExtraFields<'a>, key: &str) -> Cow<'a, ExtraFields<'a>> {
    match extra.object(key) {
        Some(inner) => Cow::Borrowed(inner),
        // A record that went through another file has its extra fields as plain JSON.
        None => Cow::Owned(extra.raw(key).and_then(Object::parse).map(Object::into_extra).unwrap_or_default()),
    }
}

/// Whether a field was taken from the record and must be written back: not if it is still there, nor if the record certainly
/// never had it.
fn was_taken(extra: &ExtraFields<'_>, key: &str) -> bool {
    match extra.0.iter().rev().find(|(name, _)| name == key) {
        Some((_, Held::Raw(_))) => false,
        Some((_, Held::Hole | Held::Object(_))) => true,
        None => extra.0.iter().all(|(_, held)| matches!(held, Held::Raw(_))),
    }
}

/// Whether an empty object is in the place of a field: the field was JSON, not a string of it.
fn has_marker(extra: &ExtraFields<'_>, key: &str) -> bool {
    match extra.0.iter().rev().find(|(name, _)| name == key) {
        Some((_, Held::Object(_))) => true,
        Some((_, Held::Raw(raw))) => raw == "{}",
        Some((_, Held::Hole)) | None => false,
    }
}

fn payload<'a>(name: Option<&str>, events: &[Event<'_>], extra: &ExtraFields<'_>) -> Draft<'a> {
    let mut draft = Draft::new();
    let Some(event) = events.first() else { return draft };
    match (name, &event.body) {
        (Some("session_meta"), _) => session(events, extra, Instructions::Base, &mut draft),
        (Some("turn_context"), _) => {
            draft.set_opt("model", event.model.as_deref());
            draft.set_opt("cwd", event.cwd.as_deref());
        }
        // A summary that was read from elsewhere in the record leaves the empty message in place.
        (Some("compacted"), Body::Compaction { summary }) if was_taken(extra, "message") => {
            text("message", summary.as_ref(), &mut draft);
        }
        (Some("inter_agent_communication"), Body::Fact { content, .. }) => {
            draft.set_opt("author", event.from.as_deref());
            draft.set_opt("recipient", event.to.as_deref());
            text("content", content.as_ref(), &mut draft);
        }
        (Some("event_msg"), _) => notice(event, extra, &mut draft),
        (Some("response_item"), _) => item(events, extra, &mut draft),
        _ => {}
    }
    draft
}

/// The key of a header's instructions, if the record itself no longer shows it.
#[derive(Clone, Copy)]
enum Instructions {
    Base,
    Plain,
}

fn session(events: &[Event<'_>], extra: &ExtraFields<'_>, otherwise: Instructions, draft: &mut Draft<'_>) {
    let Some(event) = events.first() else { return };
    draft.set_opt("id", event.session.as_deref());
    draft.set_opt("cwd", event.cwd.as_deref());
    draft.set_opt("cli_version", event.version.as_deref());
    draft.set_opt("forked_from_id", event.forked_from.as_ref().map(|fork| fork.session.as_ref()));
    let instructions = events.iter().find_map(|event| match &event.body {
        Body::Message { content, .. } => Some(content.joined().to_json()),
        _ => None,
    });
    if let Some(instructions) = instructions {
        let plain = extra.has("instructions") && !extra.has("base_instructions");
        match otherwise {
            Instructions::Base if !plain => {
                let mut base = Draft::new();
                base.set("text", instructions);
                draft.nest("base_instructions", base);
            }
            Instructions::Base | Instructions::Plain => draft.set("instructions", instructions),
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

fn notice(event: &Event<'_>, extra: &ExtraFields<'_>, draft: &mut Draft<'_>) {
    let kind = extra.text("type").unwrap_or_default();
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
        Body::Fact { .. } if event.usage.is_some() => token_count(event, draft),
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

fn token_count(event: &Event<'_>, draft: &mut Draft<'_>) {
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

/// Writes a usage with Codex's counters.
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

fn item(events: &[Event<'_>], extra: &ExtraFields<'_>, draft: &mut Draft<'_>) {
    let kind = extra.text("type").unwrap_or("message".into());
    for event in events {
        draft.set_opt("id", event.id.as_deref());
        match &event.body {
            Body::Message { role, content } => {
                if *role != Role::Unknown {
                    draft.set_str("role", role.name());
                }
                draft.set_opt("author", event.from.as_deref());
                draft.set_opt("recipient", event.to.as_deref());
                draft.set("content", content::render(content, ContentKind::Input, Ownership::Own));
            }
            Body::Thinking { content } => thinking(content, draft),
            Body::ToolCall { call, name, input } => tool_call(&kind, call.as_deref(), name, input, extra, draft),
            Body::ToolResult { call, content, error, .. } => {
                tool_result(&kind, call.as_deref(), content, *error, extra, draft);
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
        list.extend(content::element(piece, ContentKind::Thought, Ownership::Own));
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
    extra: &ExtraFields<'_>,
    draft: &mut Draft<'_>,
) {
    let key = match kind {
        "web_search_call" | "image_generation_call" => "id",
        _ => "call_id",
    };
    draft.set_opt(key, call);
    let has_input = match input {
        Input::Json(_) => true,
        Input::Text(text) => !text.is_empty(),
    };
    match kind {
        "function_call" | "custom_tool_call" => {
            draft.set_str("name", name);
            let key = if kind == "function_call" { "arguments" } else { "input" };
            if has_marker(extra, key) && has_input {
                draft.set(key, input.to_json().into_owned());
            } else if was_taken(extra, key) {
                draft.set_text(key, &input.to_text());
            }
        }
        "image_generation_call" if has_marker(extra, "revised_prompt") && has_input => {
            draft.set("revised_prompt", input.to_json().into_owned());
        }
        "image_generation_call" if was_taken(extra, "revised_prompt") => {
            draft.set_text("revised_prompt", &input.to_text());
        }
        "local_shell_call" | "web_search_call" if has_input => draft.set("action", input.to_json().into_owned()),
        "tool_search_call" if has_input => draft.set("arguments", input.to_json().into_owned()),
        _ => {}
    }
}

fn tool_result(
    kind: &str,
    call: Option<&str>,
    content: &Content<'_>,
    error: Option<bool>,
    extra: &ExtraFields<'_>,
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
                draft.set("tools", content::render(content, ContentKind::Input, Ownership::Own));
            }
        }
        _ => {
            draft.set_opt("call_id", call);
            if extra.object("output").is_some() {
                draft.nest("output", output_object(content, error));
            } else if was_taken(extra, "output") {
                draft.set("output", content::render(content, ContentKind::Input, Ownership::Own));
            }
        }
    }
}

/// The object that some releases wrote instead of a text.
fn output_object<'a>(content: &Content<'_>, error: Option<bool>) -> Draft<'a> {
    let mut output = Draft::new();
    if let Content::Text(text) = content {
        output.set_text("content", text);
    }
    if let Some(error) = error {
        output.set("success", (!error).to_string());
    }
    output
}
