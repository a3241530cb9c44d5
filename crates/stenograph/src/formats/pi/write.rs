//! Writes pi's entries. An entry that came from pi returns as it was; the others are made with [`TEMPLATES`].

use super::NAME;
use super::blocks::{block_of, content_value, piece_block};
use super::read::COUNTERS;
use crate::formats::anthropic::below;
use crate::formats::record_templates::{RecordTemplates, TemplateWriter};
use crate::json::Draft;
use crate::model::{Body, Content, Event, ExtraFields, Held, Outline, StopReason, Usage};
use crate::time::Time;
use crate::write::{Writer, WriterOutput};

/// pi shows the model every entry from the last one back to the first, and converts an answer of another service to its own. It
/// requires all counters of every answer.
static TEMPLATES: RecordTemplates = RecordTemplates {
    header: r#"{"type":"session","version":3,"id":"<session>","timestamp":"<time>","cwd":"<cwd|/>"}"#,
    user: r#"{"type":"message","id":"<id>","parentId":"<parent|null>","timestamp":"<time>","message":{"role":"user",
        "content":"<content>","timestamp":"<millis>"}}"#,
    answer: r#"{"type":"message","id":"<id>","parentId":"<parent|null>","timestamp":"<time>","message":{"role":"assistant",
        "content":"<content>","api":"unknown","provider":"unknown","model":"<model|unknown>","usage":{"input":"<input|0>",
        "output":"<output|0>","cacheRead":"<cache read|0>","cacheWrite":"<cache write|0>","reasoning":"<reasoning|>",
        "totalTokens":"<total|0>","cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":"<cost|0>"}},
        "stopReason":"<stop>","timestamp":"<millis>","responseId":"<group>"}}"#,
    result: r#"{"type":"message","id":"<id>","parentId":"<parent|null>","timestamp":"<time>","message":{"role":"toolResult",
        "toolCallId":"<call>","toolName":"<name|unknown>","content":"<result content>","isError":"<error|false>",
        "timestamp":"<millis>"}}"#,
    compaction: r#"{"type":"compaction","id":"<id>","parentId":"<parent|null>","timestamp":"<time>","summary":"<text>",
        "firstKeptEntryId":"<id>","tokensBefore":0}"#,
    failure: r#"{"type":"message","id":"<id>","parentId":"<parent|null>","timestamp":"<time>","message":{"role":"assistant",
        "content":[],"api":"unknown","provider":"unknown","model":"<model|unknown>","usage":{"input":0,"output":0,
        "cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},
        "stopReason":"error","errorMessage":"<text>","timestamp":"<millis>"}}"#,
    title: r#"{"type":"session_info","id":"<id>","parentId":"<parent|null>","timestamp":"<time>","name":"<text>"}"#,
    text: r#"{"type":"text","text":"<text>"}"#,
    picture: r#"{"type":"image","data":"<data>","mimeType":"<media>"}"#,
    thought: r#"{"type":"thinking","thinking":"<text>"}"#,
    call: r#"{"type":"toolCall","id":"<call>","name":"<name>","arguments":"<arguments>"}"#,
    stops: &[(StopReason::Continues, "toolUse"), (StopReason::Waiting, "stop"), (StopReason::CutOff, "length")],
    ..RecordTemplates::NONE
};

/// Writes one line per entry.
#[derive(Debug)]
pub(super) struct PiWriter {
    /// Whether the events come from this format.
    own: bool,
    foreign: TemplateWriter,
}

impl PiWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> PiWriter {
        PiWriter { own: outline.origin == NAME, foreign: TemplateWriter::new(&TEMPLATES, outline, NAME) }
    }
}

impl Writer for PiWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let Some(first) = events.first() else { return };
        match (&first.body, first.extra.get(NAME)) {
            (Body::Other { bytes: Some(bytes), .. }, _) => {
                if self.own {
                    self.foreign.release(out);
                    out.line(bytes.bytes().into_owned());
                }
            }
            (_, Some(extra)) => {
                self.foreign.follow(events, out);
                out.line(entry(events, first, extra));
            }
            (_, None) => self.foreign.record(events, out),
        }
    }

    fn held(&self, out: &mut WriterOutput) {
        self.foreign.clone().release(out);
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        self.foreign.release(out);
    }
}

fn entry(events: &[Event<'_>], first: &Event<'_>, extra: &ExtraFields<'_>) -> String {
    let mut draft = Draft::new();
    let kind = extra.text("type");
    let is_header = kind.as_deref() == Some("session");
    draft.set_opt("id", if is_header { first.session.as_deref() } else { first.id.as_deref() });
    match first.parent.as_deref() {
        // An edit removed the entry that this one followed.
        None if extra.0.iter().any(|(key, held)| key == "parentId" && *held == Held::Hole) => {
            draft.set("parentId", "null");
        }
        parent => draft.set_opt("parentId", parent),
    }
    draft.set_opt("timestamp", first.time.as_ref().and_then(Time::to_iso).as_deref());
    draft.set_opt("cwd", first.cwd.as_deref());
    let text = |key: &'static str, draft: &mut Draft<'_>| {
        if let Some(content) = first.content() {
            draft.set_text(key, &content.joined());
        }
    };
    match kind.as_deref() {
        Some("message") => put_message(events, first, extra, &mut draft),
        Some("session" | "model_change") => draft.set_opt("modelId", first.model.as_deref()),
        Some("compaction" | "branch_summary") => text("summary", &mut draft),
        Some("session_info") => text("name", &mut draft),
        Some("label") => text("label", &mut draft),
        Some("thinking_level_change") => text("thinkingLevel", &mut draft),
        Some("custom_message") => {
            if let Some(value) = first.content().and_then(content_value) {
                draft.set("content", value);
            }
        }
        _ => {}
    }
    draft.render(Some(extra))
}

fn put_message(events: &[Event<'_>], first: &Event<'_>, extra: &ExtraFields<'_>, draft: &mut Draft<'_>) {
    let mut message = Draft::new();
    message.set_opt("responseId", first.group.as_deref());
    message.set_opt("model", first.model.as_deref());
    message.set_opt("stopReason", first.stop_reason.as_deref());
    if let Some(usage) = &first.usage {
        message.nest("usage", usage_draft(usage));
    }
    match &first.body {
        Body::ToolResult { call, name, content, error } => {
            message.set_opt("toolCallId", call.as_deref());
            message.set_opt("toolName", name.as_deref());
            if let Some(value) = content_value(content) {
                message.set("content", value);
            }
            if let Some(error) = error {
                message.set("isError", error.to_string());
            }
        }
        Body::Failure { content: Some(content), .. } => message.set_text("errorMessage", &content.joined()),
        Body::Fact { content: Some(content), .. } => {
            let role =
                below(extra, "message").and_then(|message| message.text("role").map(std::borrow::Cow::into_owned));
            let key = if role.as_deref() == Some("bashExecution") { "output" } else { "summary" };
            message.set_text(key, &content.joined());
        }
        Body::Message { .. } | Body::Thinking { .. } | Body::ToolCall { .. } => {
            if let Some(value) = content(events, first) {
                message.set("content", value);
            }
        }
        _ => {}
    }
    if !message.is_empty() {
        draft.nest("message", message);
    }
}

/// The content of a message: one string if it was one, or else the blocks of all parts.
fn content(events: &[Event<'_>], first: &Event<'_>) -> Option<String> {
    if let ([_], Body::Message { content: Content::Text(text), .. }) = (events, &first.body) {
        return Some(text.to_json());
    }
    let mut blocks = Vec::new();
    for event in events {
        match &event.body {
            Body::Message { content: Content::Pieces(pieces), .. } => blocks.extend(pieces.iter().map(piece_block)),
            Body::Message { content, .. } => blocks.extend(content_value(content)),
            body => {
                let extra = event.extra.get(NAME).and_then(|extra| below(extra, "message"));
                let extra = extra.as_ref().and_then(|message| below(message, "content")).unwrap_or_default();
                blocks.extend(block_of(body, &extra));
            }
        }
    }
    (!blocks.is_empty()).then(|| format!("[{}]", blocks.join(",")))
}

fn usage_draft(usage: &Usage) -> Draft<'static> {
    let mut draft = Draft::new();
    let numbers = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning];
    COUNTERS.into_iter().zip(numbers).for_each(|(name, number)| draft.set_number(name, number));
    if let Some(total) = usage.cost {
        let mut cost = Draft::new();
        cost.set("total", total.to_string());
        draft.nest("cost", cost);
    }
    draft
}
