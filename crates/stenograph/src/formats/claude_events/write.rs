//! Writes flat events: one line per call, result, text of the model, failure and stop; everything else becomes a bare message.

use super::NAME;
use crate::formats::anthropic::{below, block_of, content_blocks, content_value, is_sayable_content};
use crate::json::Draft;
use crate::model::{Body, Content, Event, ExtraFields, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::text::quote;
use crate::time::Time;
use crate::write::{Ownership, Writer, WriterOutput};

/// Writes one line per event.
#[derive(Debug)]
pub struct ClaudeEventsWriter {
    synthesizer: Synthesizer,
}

impl ClaudeEventsWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> ClaudeEventsWriter {
        ClaudeEventsWriter { synthesizer: Synthesizer::new(outline) }
    }
}

impl Writer for ClaudeEventsWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let Some(first) = events.first() else { return };
        if let Body::Other { bytes: Some(bytes), .. } = &first.body {
            // Bytes that never were an event return only to the file they came from.
            if self.synthesizer.outline().origin == NAME {
                out.line(bytes.bytes().into_owned());
            }
            return;
        }
        if let Some(extra) = first.extra.get(NAME) {
            out.line(own_line(events, first, extra));
            return;
        }
        for event in events {
            if let Some(line) = self.foreign_line(event) {
                out.line(line);
            }
        }
    }
}

/// A line that was read from this format.
fn own_line(events: &[Event<'_>], first: &Event<'_>, extra: &ExtraFields<'_>) -> String {
    let mut draft = Draft::new();
    // `type` and `role` come first if the original order of keys is unknown.
    for key in ["type", "role"] {
        if let Some(raw) = extra.raw(key) {
            draft.default(key, raw);
        }
    }
    match extra.text("type").as_deref() {
        None => {
            if let Some(content) = message_content(events, first) {
                draft.set("content", content);
            }
        }
        Some(_) => put_fields(&first.body, Some(extra), first.call(), &mut draft),
    }
    draft.set_opt("timestamp", first.time.as_ref().and_then(Time::to_iso).as_deref());
    draft.render(Some(extra))
}

fn message_content(events: &[Event<'_>], first: &Event<'_>) -> Option<String> {
    if let ([_], Body::Message { content: Content::Text(text), .. }) = (events, &first.body) {
        return Some(text.to_json());
    }
    let mut blocks = Vec::new();
    for event in events {
        if let Body::Message { content, .. } = &event.body {
            content_blocks(content, Ownership::Own, &mut blocks);
        } else {
            let extra = event.extra.get(NAME).and_then(|extra| below(extra, "content")).unwrap_or_default();
            blocks.extend(block_of(&event.body, event.call(), Some(&extra)));
        }
    }
    (!blocks.is_empty()).then(|| format!("[{}]", blocks.join(",")))
}

/// Writes the fields of a flat event.
fn put_fields(body: &Body<'_>, extra: Option<&ExtraFields<'_>>, call: Option<&str>, draft: &mut Draft<'_>) {
    match body {
        Body::ToolCall { name, input, .. } => {
            draft.set_opt("id", call);
            draft.set_str("name", name);
            draft.set("input", if extra.is_some() { input.to_json() } else { input.to_object() }.into_owned());
        }
        Body::ToolResult { content, error, .. } => {
            draft.set_opt("tool_use_id", call);
            put_output(content, extra, draft);
            if let Some(error) = error {
                draft.set("is_error", error.to_string());
            }
        }
        Body::Message { content, .. } => draft.set_text("text", &content.joined()),
        Body::Failure { name, content } => put_failure(name.as_deref(), content.as_ref(), extra, draft),
        Body::Stop { reason, success, content } => {
            if let Some(content) = content {
                draft.set_text("result", &content.joined());
            }
            draft.set_opt("stop_reason", reason.as_deref());
            if let Some(success) = success {
                draft.set("success", success.to_string());
            }
        }
        Body::Thinking { .. } | Body::Fact { .. } | Body::Compaction { .. } | Body::Other { .. } => {}
    }
}

fn put_output(content: &Content<'_>, extra: Option<&ExtraFields<'_>>, draft: &mut Draft<'_>) {
    let ownership = if extra.is_some() { Ownership::Own } else { Ownership::Foreign };
    match (content, ownership) {
        (Content::Text(text), _) => draft.set_text("output", text),
        (Content::Pieces(pieces), Ownership::Own) => match pieces.as_slice() {
            [] => {}
            [piece] if piece.extra.0.is_empty() && piece.as_text().is_some() => {
                draft.set_text("content", &content.joined());
            }
            _ => draft.set("content", content_value(content, ownership)),
        },
        (Content::Pieces(_), Ownership::Foreign) if content.others().next().is_some() => {
            draft.set("content", content_value(content, ownership));
        }
        (Content::Pieces(_), Ownership::Foreign) => draft.set_text("output", &content.joined()),
    }
}

fn put_failure(
    name: Option<&str>,
    content: Option<&Content<'_>>,
    extra: Option<&ExtraFields<'_>>,
    draft: &mut Draft<'_>,
) {
    let message = content.map(Content::joined);
    if let Some(error_text) = extra.and_then(|extra| extra.text("error")) {
        // The error is a string and still in the extra fields: only a different message is written beside it.
        if let Some(message) = message.filter(|message| message.decode() != error_text) {
            draft.set_text("message", &message);
        }
        return;
    }
    let mut inner = Draft::new();
    inner.set_opt("type", name);
    if let Some(message) = &message {
        inner.set_text("message", message);
    }
    if extra.is_none() || !inner.is_empty() {
        draft.nest("error", inner);
    }
}

impl ClaudeEventsWriter {
    /// The line for a foreign event; `None` if the format has no line for it.
    fn foreign_line(&mut self, event: &Event<'_>) -> Option<String> {
        let mut draft = Draft::new();
        let mut call = None;
        let kind = match &event.body {
            Body::ToolCall { call: stated, name, .. } => {
                call = Some(self.synthesizer.pairing.call(stated.as_deref(), name));
                "tool_use"
            }
            Body::ToolResult { call: stated, .. } => {
                let pair = self.synthesizer.pairing.result(stated.as_deref()).map(|(id, _)| id);
                call = stated.as_deref().map(str::to_owned).or(pair);
                "tool_result"
            }
            Body::Message { role: Role::Assistant, content } if content.others().next().is_none() => "text",
            Body::Message { content, .. } if !is_sayable_content(content) => return None,
            Body::Message { role, content } => {
                return Some(message(*role, &content_value(content, Ownership::Foreign)));
            }
            // A thought without readable text is encrypted by another vendor, so nothing of it fits here.
            Body::Thinking { content } if content.is_empty() => return None,
            Body::Thinking { .. } => {
                let block = block_of(&event.body, None, None)?;
                return Some(message(Role::Assistant, &format!("[{block}]")));
            }
            Body::Failure { .. } => "error",
            Body::Stop { content: Some(_), .. } => "result",
            Body::Stop { content: None, .. } => "stop",
            // The format has no line for a compaction, but the following messages depend on the summary: it becomes a user
            // message.
            Body::Compaction { summary } => {
                let summary = summary.as_ref().filter(|summary| is_sayable_content(summary))?;
                return Some(message(Role::User, &content_value(summary, Ownership::Foreign)));
            }
            Body::Fact { .. } | Body::Other { .. } => return None,
        };
        draft.set_str("type", kind);
        put_fields(&event.body, None, call.as_deref(), &mut draft);
        Some(draft.render(None))
    }
}

fn message(role: Role, content: &str) -> String {
    let name = match role {
        Role::System | Role::Developer => "system",
        Role::Assistant => "assistant",
        Role::User | Role::Tool | Role::Unknown => "user",
    };
    format!("{{\"role\":{},\"content\":{content}}}", quote(name))
}
