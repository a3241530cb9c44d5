//! Writes Claude Code's records. A record that came from Claude Code returns unchanged; `foreign.rs` makes all others as Claude
//! Code itself would write them.

use super::NAME;
use super::foreign::ForeignWriter;
use super::read::{LIFETIMES, SERVER_TOOLS};
use super::record::{Dialect, UNNAMED_THREAD, fact_type};
use crate::formats::anthropic::{below, block_of, content_blocks, content_value};
use crate::json::Draft;
use crate::model::{Body, Content, Event, ExtraFields, Held, Outline, ServiceSpeed, ServiceTier, Usage};
use crate::text::Str;
use crate::time::Time;
use crate::write::{Ownership, Writer, WriterOutput};

/// Writes one line per record.
#[derive(Debug)]
pub struct ClaudeCodeWriter {
    foreign: ForeignWriter,
    origin: &'static str,
}

impl ClaudeCodeWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> ClaudeCodeWriter {
        ClaudeCodeWriter { foreign: ForeignWriter::new(outline), origin: outline.origin }
    }
}

impl Writer for ClaudeCodeWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let Some(first) = events.first() else { return };
        if let Body::Other { bytes: Some(bytes), .. } = &first.body {
            // Bytes that never were a record return only to the file they came from.
            if self.origin == NAME {
                self.foreign.release(out);
                out.line(bytes.bytes().into_owned());
            }
            return;
        }
        match first.extra.get(NAME) {
            Some(extra) => {
                self.foreign.release(out);
                self.foreign.follow(events);
                out.line(record(events, first, extra));
            }
            None => self.foreign.record(events, out),
        }
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        self.foreign.release(out);
    }
}

/// A record that was read from this format.
fn record(events: &[Event<'_>], first: &Event<'_>, extra: &ExtraFields<'_>) -> String {
    let kind = extra.text("type");
    let kind = kind.as_deref();
    let mut draft = Draft::new();
    envelope(first, extra, kind, &mut draft);
    match kind {
        Some("user" | "assistant") | None => put_message(events, first, extra, &mut draft),
        Some("system") => system(first, extra, &mut draft),
        Some("attachment") => {
            if let Body::Message { content, .. } = &first.body {
                let mut inner = Draft::new();
                inner.set("prompt", content_value(content, Ownership::Own));
                draft.nest("attachment", inner);
            }
        }
        Some("result") if extra.raw("key").is_none() => result(first, extra, &mut draft),
        Some(_) if matches!(first.body, Body::Other { .. }) => {}
        Some(kind) => {
            let text = fact_type(kind).and_then(|fact_type| fact_type.text);
            if let (Some(key), Some(content)) = (text, first.content()) {
                draft.set(key, content_value(content, Ownership::Own));
            }
        }
    }
    draft.render(Some(extra))
}

fn envelope(event: &Event<'_>, extra: &ExtraFields<'_>, kind: Option<&str>, draft: &mut Draft<'_>) {
    let dialect = Dialect::of_extra(extra, kind, event.thread.as_deref());
    match event.parent.as_deref() {
        // An edit removed the parent that this record had: the record now begins a conversation.
        None if extra.0.iter().any(|(key, held)| key == "parentUuid" && *held == Held::Hole) => {
            draft.set("parentUuid", "null");
        }
        parent => draft.set_opt("parentUuid", parent),
    }
    draft.set_opt(dialect.thread(), event.thread.as_deref().filter(|thread| *thread != UNNAMED_THREAD));
    draft.set_opt("cwd", event.cwd.as_deref());
    if let Some(key) = dialect.session() {
        draft.set_opt(key, event.session.as_deref());
    }
    let header = kind == Some("system") && extra.text("subtype").is_some_and(|subtype| subtype == "init");
    draft.set_opt(if header { "claude_code_version" } else { "version" }, event.version.as_deref());
    if header {
        draft.set_opt("model", event.model.as_deref());
    }
    draft.set_opt("gitBranch", event.branch.as_deref());
    if let Some(fork) = &event.forked_from {
        let mut inner = Draft::new();
        inner.set_str("sessionId", &fork.session);
        inner.set_opt("messageUuid", fork.record.as_deref());
        draft.nest("forkedFrom", inner);
    }
    draft.set_opt("requestId", event.request_id.as_deref());
    draft.set_opt("uuid", event.id.as_deref());
    draft.set_opt("timestamp", event.time.as_ref().and_then(Time::to_iso).as_deref());
}

fn put_message(events: &[Event<'_>], first: &Event<'_>, extra: &ExtraFields<'_>, draft: &mut Draft<'_>) {
    let mut message = Draft::new();
    message.set_opt("id", first.group.as_deref());
    message.set_opt("model", first.model.as_deref());
    message.set_opt("stop_reason", first.stop_reason.as_deref());
    if let Some(content) = content(events, first) {
        message.set("content", content);
    }
    if let Some(usage) = &first.usage {
        message.nest("usage", usage_draft(usage));
        put_cost(usage, draft);
    }
    if let Body::Failure { name, .. } = &first.body {
        draft.set_opt("error", name.as_deref());
    }
    // The reader took nothing from a record whose message is not an object.
    let whole = extra.raw("message").is_some_and(|raw| !raw.starts_with('{'));
    if !whole && !message.is_empty() {
        draft.nest("message", message);
    }
}

/// The content of a message: one string if it was one, or else the blocks of all parts. An empty content is still in the extra
/// fields.
fn content(events: &[Event<'_>], first: &Event<'_>) -> Option<String> {
    if let ([_], Some(Content::Text(text)), Body::Message { .. } | Body::Compaction { .. } | Body::Failure { .. }) =
        (events, first.content(), &first.body)
    {
        return Some(text.to_json());
    }
    let mut blocks = Vec::new();
    for event in events {
        match &event.body {
            Body::Message { content, .. }
            | Body::Compaction { summary: Some(content) }
            | Body::Failure { content: Some(content), .. } => content_blocks(content, Ownership::Own, &mut blocks),
            Body::Thinking { .. } | Body::ToolCall { .. } | Body::ToolResult { .. } => {
                let extra = event.extra.get(NAME).and_then(|extra| below(extra, "message"));
                let extra = extra.as_ref().and_then(|message| below(message, "content")).unwrap_or_default();
                blocks.extend(block_of(&event.body, event.call(), Some(&extra)));
            }
            Body::Compaction { summary: None }
            | Body::Failure { content: None, .. }
            | Body::Fact { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {}
        }
    }
    (!blocks.is_empty()).then(|| format!("[{}]", blocks.join(",")))
}

/// Writes a usage in Claude Code's fields.
pub fn usage_draft(usage: &Usage) -> Draft<'static> {
    let mut draft = Draft::new();
    draft.set_number("input_tokens", usage.input);
    draft.set_number("cache_creation_input_tokens", usage.cache_write);
    draft.set_number("cache_read_input_tokens", usage.cache_read);
    draft.set_number("output_tokens", usage.output);
    let mut nest = |key: &'static str, numbers: &[(&'static str, Option<u64>)]| {
        let mut inner = Draft::new();
        numbers.iter().for_each(|(name, number)| inner.set_number(*name, *number));
        if !inner.is_empty() {
            draft.nest(key, inner);
        }
    };
    let ([hour, minutes], [searches, fetches]) = (LIFETIMES, SERVER_TOOLS);
    nest("server_tool_use", &[(searches, usage.searches), (fetches, usage.fetches)]);
    nest("cache_creation", &[(hour, usage.cache_write_1h), (minutes, usage.cache_write_5m)]);
    nest("output_tokens_details", &[("thinking_tokens", usage.reasoning)]);
    draft.set_opt("service_tier", usage.service_tier.map(ServiceTier::name));
    draft.set_opt("speed", usage.speed.map(ServiceSpeed::name));
    draft
}

/// Writes the cost beside the message, as releases before 1.1 did.
pub fn put_cost(usage: &Usage, draft: &mut Draft<'_>) {
    if let Some(cost) = usage.cost {
        draft.set("costUSD", cost.to_string());
    }
}

fn system(event: &Event<'_>, extra: &ExtraFields<'_>, draft: &mut Draft<'_>) {
    match &event.body {
        Body::Failure { name, content } if extra.text("subtype").is_some_and(|subtype| subtype != "api_retry") => {
            let flat = below(extra, "error").is_some_and(|error| error.has("formatted"));
            let mut inner = Draft::new();
            inner.set_opt("type", name.as_deref());
            if let Some(content) = content {
                inner.set_text("message", &content.joined());
            }
            if inner.is_empty() {
                return;
            }
            draft.nest("error", if flat { inner } else { nested(nested(inner)) });
        }
        Body::Failure { name, .. } => draft.set_opt("error", name.as_deref()),
        Body::Fact { content: Some(content), .. } => draft.set("content", content_value(content, Ownership::Own)),
        Body::Fact { content: None, .. }
        | Body::Message { .. }
        | Body::Thinking { .. }
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Compaction { .. }
        | Body::Stop { .. }
        | Body::Other { .. } => {}
    }
}

/// An object below the key `error`.
pub fn nested(inner: Draft<'_>) -> Draft<'_> {
    let mut outer = Draft::new();
    outer.nest("error", inner);
    outer
}

fn result(event: &Event<'_>, extra: &ExtraFields<'_>, draft: &mut Draft<'_>) {
    let Body::Stop { reason, success, content } = &event.body else { return };
    let success_stated: Option<Str<'_>> = extra.text("subtype");
    draft.set_opt(if success_stated.is_some() { "stop_reason" } else { "subtype" }, reason.as_deref());
    if let Some(success) = success {
        draft.set("is_error", (!success).to_string());
    }
    if let Some(content) = content {
        draft.set("result", content_value(content, Ownership::Own));
    }
    if let Some(cost) = event.usage.and_then(|usage| usage.cost) {
        draft.set("total_cost_usd", cost.to_string());
    }
}
