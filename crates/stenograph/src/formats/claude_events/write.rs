//! Writes flat events: calls, results, texts of the model, failures and endings a line each; everything else as bare messages.

use super::NAME;
use crate::formats::anthropic::{below, block_of, content_blocks, content_value, is_sayable_content};
use crate::json::Draft;
use crate::model::{Body, Content, Event, ExtraFields, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::text::quote;
use crate::time::Time;
use crate::write::{Output, Ownership, Writer};

/// Writes lines.
#[derive(Debug)]
pub struct Events {
    stand_ins: Synthesizer,
}

impl Events {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Events {
        Events { stand_ins: Synthesizer::new(outline) }
    }
}

impl Writer for Events {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        let Some(first) = events.first() else { return };
        if let Body::Other { bytes: Some(bytes), .. } = &first.body {
            // Bytes that never were an event return to the file they came from, and go nowhere else.
            if self.stand_ins.outline().origin == NAME {
                out.line(bytes.bytes().into_owned());
            }
            return;
        }
        if let Some(left) = first.extra.get(NAME) {
            out.line(own(events, first, left));
            return;
        }
        for event in events {
            if let Some(line) = self.made(event) {
                out.line(line);
            }
        }
    }
}

/// A line of this dialect's own.
fn own(events: &[Event<'_>], first: &Event<'_>, left: &ExtraFields<'_>) -> String {
    let mut draft = Draft::new();
    // What a line is stands first in it, where nothing tells the order that it had.
    for key in ["type", "role"] {
        if let Some(raw) = left.raw(key) {
            draft.default(key, raw);
        }
    }
    match left.text("type").as_deref() {
        None => {
            if let Some(content) = message_content(events, first) {
                draft.set("content", content);
            }
        }
        Some(_) => put(&first.body, Some(left), first.call(), &mut draft),
    }
    draft.set_opt("timestamp", first.time.as_ref().and_then(Time::to_iso).as_deref());
    draft.render(Some(left))
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
            let left = event.extra.get(NAME).and_then(|left| below(left, "content")).unwrap_or_default();
            blocks.extend(block_of(&event.body, event.call(), Some(&left)));
        }
    }
    (!blocks.is_empty()).then(|| format!("[{}]", blocks.join(",")))
}

/// Puts what a flat event states.
fn put(body: &Body<'_>, left: Option<&ExtraFields<'_>>, call: Option<&str>, draft: &mut Draft<'_>) {
    match body {
        Body::ToolCall { name, input, .. } => {
            draft.set_opt("id", call);
            draft.set_str("name", name);
            draft.set("input", if left.is_some() { input.to_json() } else { input.to_object() }.into_owned());
        }
        Body::ToolResult { content, error, .. } => {
            draft.set_opt("tool_use_id", call);
            put_output(content, left, draft);
            if let Some(error) = error {
                draft.set("is_error", error.to_string());
            }
        }
        Body::Message { content, .. } => draft.set_text("text", &content.joined()),
        Body::Failure { name, content } => put_failure(name.as_deref(), content.as_ref(), left, draft),
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

fn put_output(content: &Content<'_>, left: Option<&ExtraFields<'_>>, draft: &mut Draft<'_>) {
    let ownership = if left.is_some() { Ownership::Own } else { Ownership::Foreign };
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
    left: Option<&ExtraFields<'_>>,
    draft: &mut Draft<'_>,
) {
    let said = content.map(Content::joined);
    if let Some(beside) = left.and_then(|left| left.text("error")) {
        // The error is a string and still there: only a message that says something else is put beside it.
        if let Some(said) = said.filter(|said| said.decode() != beside) {
            draft.set_text("message", &said);
        }
        return;
    }
    let mut inner = Draft::new();
    inner.set_opt("type", name);
    if let Some(said) = &said {
        inner.set_text("message", said);
    }
    if left.is_none() || !inner.is_empty() {
        draft.nest("error", inner);
    }
}

impl Events {
    /// A line for an event from elsewhere; `None` for what the dialect has no line for.
    fn made(&mut self, event: &Event<'_>) -> Option<String> {
        let mut draft = Draft::new();
        let mut call = None;
        let kind = match &event.body {
            Body::ToolCall { call: stated, name, .. } => {
                call = Some(self.stand_ins.pairing.call(stated.as_deref(), name));
                "tool_use"
            }
            Body::ToolResult { call: stated, .. } => {
                let pair = self.stand_ins.pairing.result(stated.as_deref()).map(|(id, _)| id);
                call = stated.as_deref().map(str::to_owned).or(pair);
                "tool_result"
            }
            Body::Message { role: Role::Assistant, content } if content.others().next().is_none() => "text",
            Body::Message { content, .. } if !is_sayable_content(content) => return None,
            Body::Message { role, content } => {
                return Some(message(*role, &content_value(content, Ownership::Foreign)));
            }
            // What cannot be read of a thought is sealed by another vendor: nothing is left of it here.
            Body::Thinking { content } if content.is_empty() => return None,
            Body::Thinking { .. } => {
                let block = block_of(&event.body, None, None)?;
                return Some(message(Role::Assistant, &format!("[{block}]")));
            }
            Body::Failure { .. } => "error",
            Body::Stop { content: Some(_), .. } => "result",
            Body::Stop { content: None, .. } => "stop",
            // There is no line for it, but what follows rests on the summary: the user tells it.
            Body::Compaction { summary } => {
                let summary = summary.as_ref().filter(|summary| is_sayable_content(summary))?;
                return Some(message(Role::User, &content_value(summary, Ownership::Foreign)));
            }
            Body::Fact { .. } | Body::Other { .. } => return None,
        };
        draft.set_str("type", kind);
        put(&event.body, None, call.as_deref(), &mut draft);
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
