//! Writes rollouts. [`super::own`] writes records that come from a rollout back; events of other systems become the lines that
//! Codex itself reads when it resumes a session.

use std::collections::HashSet;

use super::content::{self, ContentKind};
use super::{NAME, own};
use crate::evidence::running_total;
use crate::formats::document::{DocumentFrame, DocumentPart, is_end};
use crate::frame::Items;
use crate::json::Draft;
use crate::model::{Body, Content, Event, Input, Outline, Role, Tokens, Usage, is_uuid};
use crate::synthesizer::Synthesizer;
use crate::text::Text;
use crate::time::Time;
use crate::write::{Ownership, Writer, WriterOutput};

/// Writes a rollout.
#[derive(Debug)]
pub struct CodexWriter {
    synthesizer: Synthesizer,
    /// The document that the records are items of; without one they are lines.
    document: Option<DocumentFrame>,
    /// Whether the file has its header.
    has_header: bool,
    model: Option<String>,
    cwd: Option<String>,
    /// The running total of tokens, which every count repeats.
    total: Usage,
    /// Unanswered calls with free text: their results have another type too.
    custom: HashSet<String>,
    /// The number of the last record, in a rollout that numbers them: Codex opens such a rollout only if every record has one.
    ordinal: Option<u64>,
    /// The time of a compaction whose summary has not come yet: other systems write it as a separate record.
    compacted: Option<Time<'static>>,
}

/// How many unanswered calls are remembered.
const CUSTOM_MAX: usize = 4096;

impl Writer for CodexWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let Some(first) = events.first() else { return };
        if let Some(extra) = first.extra.get(NAME) {
            self.has_header = true;
            self.compaction_without_summary(out);
            self.ordinal = extra.raw("ordinal").and_then(|number| number.parse().ok()).or(self.ordinal);
            if let Some(total) = events.iter().find_map(running_total) {
                self.total = usage_of(&total.tokens);
            }
            return self.place(own::record(events, extra), out);
        }
        for event in events {
            match &event.body {
                Body::Other { bytes: Some(bytes), .. } => {
                    // Bytes that never were a record return only to the file they came from.
                    if self.synthesizer.outline().origin == NAME {
                        self.place(self.unread_part(bytes.bytes().into_owned()), out);
                    }
                }
                _ if event.restates => {}
                _ => self.foreign_event(event, out),
            }
        }
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        self.compaction_without_summary(out);
        if self.document.as_ref().is_some_and(|document| document.part == DocumentPart::Items) {
            // A rollout that was cut off stays so.
            out.glue(if self.synthesizer.outline().origin == NAME { "\n" } else { "\n]}\n" });
        }
    }
}

impl CodexWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> CodexWriter {
        CodexWriter {
            has_header: outline.origin == NAME,
            synthesizer: Synthesizer::new(outline),
            document: None,
            model: None,
            cwd: None,
            total: Usage::default(),
            custom: HashSet::new(),
            ordinal: None,
            compacted: None,
        }
    }

    fn place(&mut self, written: own::RolloutPart, out: &mut WriterOutput) {
        match written {
            own::RolloutPart::Record(line) => self.put(line, out),
            own::RolloutPart::Prologue(head) => {
                out.record(head);
                self.document.insert(document()).part = DocumentPart::Items;
            }
            own::RolloutPart::Epilogue(end) => {
                self.document.get_or_insert_with(document).end(out);
                out.line(end);
            }
        }
    }

    /// The place of bytes that were not understood. No line contains a newline, so the first bytes with one are the head of a
    /// document; and no item begins like the end of a document.
    fn unread_part(&self, bytes: Vec<u8>) -> own::RolloutPart {
        match &self.document {
            None if bytes.contains(&b'\n') => own::RolloutPart::Prologue(bytes),
            Some(document) if document.part == DocumentPart::Items && is_end(&bytes) => {
                own::RolloutPart::Epilogue(bytes)
            }
            Some(_) | None => own::RolloutPart::Record(bytes),
        }
    }

    /// Writes a record, separated from the previous one.
    fn put(&mut self, record: impl Into<Vec<u8>>, out: &mut WriterOutput) {
        match &mut self.document {
            Some(document) if document.part == DocumentPart::Items => document.item(record, out),
            Some(_) | None => out.line(record),
        }
    }

    /// Writes a line with a payload; a document has a place only for items.
    fn line(&mut self, kind: &str, payload: &Draft<'_>, time: &Time<'_>, out: &mut WriterOutput) {
        if self.document.is_some() {
            if kind == "response_item" {
                self.put(payload.render(None), out);
            }
            return;
        }
        let mut draft = Draft::new();
        draft.set_str("timestamp", &time.to_iso_millis().unwrap_or_default());
        self.ordinal = self.ordinal.map(|last| last.saturating_add(1));
        draft.set_number("ordinal", self.ordinal);
        draft.set_str("type", kind);
        draft.set("payload", payload.render(None));
        self.put(draft.render(None), out);
    }

    fn foreign_event(&mut self, event: &Event<'_>, out: &mut WriterOutput) {
        let time = self.synthesizer.time(event);
        if !self.has_header {
            self.has_header = true;
            self.header(event, &time, out);
        }
        match &event.body {
            Body::Compaction { summary: None } => {}
            // These may come between a compaction and its summary.
            Body::Fact { .. } if event.usage.is_none() && event.name() != Some("title") => {}
            Body::Compaction { summary: Some(_) } => self.compacted = None,
            _ => self.compaction_without_summary(out),
        }
        self.context(event, &time, out);
        match &event.body {
            Body::Message { role, content } => self.message(*role, content, &time, out),
            Body::Thinking { content } => self.thinking(content, &time, out),
            Body::ToolCall { call, name, input } => {
                let call = self.synthesizer.pairing.call(call.as_deref(), name);
                self.tool_call(call, name, input, &time, out);
            }
            Body::ToolResult { call, content, .. } => self.tool_result(call.as_deref(), content, &time, out),
            Body::Compaction { summary: None } => self.compacted = Some(time.clone()),
            Body::Compaction { summary: Some(summary) } => self.compaction(&summary.joined(), &time, out),
            Body::Failure { name, content } => {
                let mut payload = typed("error");
                match (content, name) {
                    (Some(content), _) => payload.set("message", content.joined().to_json()),
                    (None, name) => payload.set_str("message", name.as_deref().unwrap_or("error")),
                }
                self.line("event_msg", &payload, &time, out);
            }
            Body::Stop { success, content, .. } => self.stop(*success, content.as_ref(), &time, out),
            Body::Fact { fact: name, content: Some(content) } if name == "title" => {
                let mut payload = typed("thread_name_updated");
                payload.set_str("thread_id", &self.session());
                payload.set("thread_name", content.joined().to_json());
                self.line("event_msg", &payload, &time, out);
            }
            Body::Fact { .. } | Body::Other { .. } => {}
        }
        if let Some(usage) = event.usage.as_ref().filter(|usage| counts_anything(usage)) {
            self.count(usage, &time, out);
        }
    }

    /// The session's id: Codex accepts only a UUID.
    fn session(&self) -> String {
        let outline = self.synthesizer.outline();
        let stated = outline.session.clone().filter(|id| is_uuid(id));
        stated.unwrap_or_else(|| outline.invent_uuid("session", 0))
    }

    fn header(&mut self, event: &Event<'_>, time: &Time<'_>, out: &mut WriterOutput) {
        let outline = self.synthesizer.outline();
        let cwd = event.cwd.as_deref().or(outline.header.cwd.as_deref()).unwrap_or("/").to_owned();
        let mut payload = Draft::new();
        payload.set_str("id", &self.session());
        payload.set_str("timestamp", &time.to_iso_millis().unwrap_or_default());
        payload.set_str("cwd", &cwd);
        payload.set_str("originator", "steno");
        payload
            .set_str("cli_version", event.version.as_deref().or(outline.first_version.as_deref()).unwrap_or("0.0.0"));
        payload.set_str("source", "cli");
        if let Some(branch) = event.branch.as_deref().or(outline.first_branch.as_deref()) {
            let mut git = Draft::new();
            git.set_str("branch", branch);
            payload.nest("git", git);
        }
        self.cwd = Some(cwd);
        self.line("session_meta", &payload, time, out);
    }

    fn compaction(&mut self, summary: &Text<'_>, time: &Time<'_>, out: &mut WriterOutput) {
        let mut payload = Draft::new();
        payload.set_text("message", summary);
        self.line("compacted", &payload, time, out);
    }

    /// Writes a compaction whose summary did not come.
    fn compaction_without_summary(&mut self, out: &mut WriterOutput) {
        if let Some(time) = self.compacted.take() {
            self.compaction(&Text::from(""), &time, out);
        }
    }

    /// Writes the model and the folder whenever one of them changes. A context requires a model.
    fn context(&mut self, event: &Event<'_>, time: &Time<'_>, out: &mut WriterOutput) {
        let changed = |known: &Option<String>, new: Option<&str>| new.is_some() && known.as_deref() != new;
        // An agent that speaks in place of a model uses a name in brackets.
        let model = event.model.as_deref().filter(|model| !model.is_empty() && !model.starts_with('<'));
        if !changed(&self.model, model) && !changed(&self.cwd, event.cwd.as_deref()) {
            return;
        }
        self.model = model.map(str::to_owned).or(self.model.take());
        self.cwd = event.cwd.as_deref().map(str::to_owned).or(self.cwd.take());
        let Some(model) = self.model.clone() else { return };
        let mut payload = Draft::new();
        payload.set_str("cwd", self.cwd.as_deref().unwrap_or("/"));
        payload.set_str("approval_policy", "on-request");
        payload.set("sandbox_policy", r#"{"type":"read-only"}"#);
        payload.set_str("model", &model);
        payload.set_str("summary", "auto");
        self.line("turn_context", &payload, time, out);
    }

    fn message(&mut self, role: Role, content: &Content<'_>, time: &Time<'_>, out: &mut WriterOutput) {
        let (role, kind, event_type) = match role {
            Role::Assistant => ("assistant", ContentKind::Output, Some("agent_message")),
            Role::System => ("system", ContentKind::Input, None),
            Role::Developer => ("developer", ContentKind::Input, None),
            Role::User | Role::Tool | Role::Unknown => ("user", ContentKind::Input, Some("user_message")),
        };
        let elements = content::elements(content, kind, Ownership::Foreign);
        if elements.is_empty() {
            return;
        }
        let mut payload = typed("message");
        payload.set_str("role", role);
        payload.set("content", content::array(&elements));
        self.line("response_item", &payload, time, out);
        // Codex lists and shows a session by its `event_msg` lines, so a message needs one too.
        if let Some(event_type) = event_type {
            let mut payload = typed(event_type);
            payload.set("message", content.joined().to_json());
            if event_type == "user_message" {
                payload.set("images", content::array(&content::image_urls(content)));
                payload.set("local_images", "[]");
                payload.set("text_elements", "[]");
            }
            self.line("event_msg", &payload, time, out);
        }
    }

    fn thinking(&mut self, content: &Content<'_>, time: &Time<'_>, out: &mut WriterOutput) {
        // An encrypted thought has no readable text.
        if content.is_empty() {
            return;
        }
        let elements = content::elements(content, ContentKind::Thought, Ownership::Foreign);
        if elements.is_empty() {
            return;
        }
        let mut payload = typed("reasoning");
        payload.set("summary", "[]");
        payload.set("content", content::array(&elements));
        payload.set("encrypted_content", "null");
        self.line("response_item", &payload, time, out);
    }

    fn tool_call(&mut self, call: String, name: &str, input: &Input<'_>, time: &Time<'_>, out: &mut WriterOutput) {
        let payload = match input {
            Input::Json(_) => {
                let mut payload = typed("function_call");
                payload.set_str("name", name);
                payload.set_text("arguments", &input.to_text());
                payload.set_str("call_id", &call);
                payload
            }
            Input::Text(text) => {
                let mut payload = typed("custom_tool_call");
                payload.set_str("status", "completed");
                payload.set_str("call_id", &call);
                payload.set_str("name", name);
                payload.set_text("input", text);
                if self.custom.len() < CUSTOM_MAX {
                    self.custom.insert(call);
                }
                payload
            }
        };
        self.line("response_item", &payload, time, out);
    }

    fn tool_result(&mut self, call: Option<&str>, content: &Content<'_>, time: &Time<'_>, out: &mut WriterOutput) {
        let pairing = &mut self.synthesizer.pairing;
        let paired = pairing.result(call).map(|(call, _)| call);
        let call = call.map(str::to_owned).or(paired).unwrap_or_else(|| pairing.orphan());
        let kind = if self.custom.remove(&call) { "custom_tool_call_output" } else { "function_call_output" };
        let mut payload = typed(kind);
        payload.set_str("call_id", &call);
        let output = content::render(content, ContentKind::Input, Ownership::Foreign);
        payload.set("output", if output == "[]" { "\"\"".to_owned() } else { output });
        self.line("response_item", &payload, time, out);
    }

    /// Writes the end of a turn. Codex has a few reasons of its own and accepts no others.
    fn stop(&mut self, success: Option<bool>, content: Option<&Content<'_>>, time: &Time<'_>, out: &mut WriterOutput) {
        let turn = self.synthesizer.uuid();
        let payload = if success == Some(false) {
            let mut payload = typed("turn_aborted");
            payload.set_str("turn_id", &turn);
            payload.set_str("reason", "interrupted");
            payload
        } else {
            let mut payload = typed("task_complete");
            payload.set_str("turn_id", &turn);
            let message = content.map(|content| content.joined().to_json());
            payload.set("last_agent_message", message.unwrap_or_else(|| "null".to_owned()));
            payload
        };
        self.line("event_msg", &payload, time, out);
    }

    fn count(&mut self, usage: &Usage, time: &Time<'_>, out: &mut WriterOutput) {
        let add = |total: &mut Option<u64>, new: Option<u64>| {
            if let Some(new) = new {
                *total = Some(total.unwrap_or(0).saturating_add(new));
            }
        };
        add(&mut self.total.input, usage.input);
        add(&mut self.total.output, usage.output);
        add(&mut self.total.cache_read, usage.cache_read);
        add(&mut self.total.cache_write, usage.cache_write);
        add(&mut self.total.reasoning, usage.reasoning);
        let mut info = Draft::new();
        info.nest("total_token_usage", required_numbers(&self.total));
        info.nest("last_token_usage", required_numbers(usage));
        info.set("model_context_window", "null");
        let mut payload = typed("token_count");
        payload.nest("info", info);
        payload.set("rate_limits", "null");
        self.line("event_msg", &payload, time, out);
    }
}

fn document() -> DocumentFrame {
    DocumentFrame::new(Items::Array("items"), "\n", "\n")
}

/// A payload of that type.
fn typed<'a>(kind: &str) -> Draft<'a> {
    let mut payload = Draft::new();
    payload.set_str("type", kind);
    payload
}

/// The usage with the counters of a running total, whose input includes the cache.
fn usage_of(total: &Tokens) -> Usage {
    let some = |number: u64| Some(number).filter(|number| *number > 0);
    Usage {
        input: some(total.input.saturating_sub(total.cache_read).saturating_sub(total.cache_write)),
        output: some(total.output),
        cache_read: some(total.cache_read),
        cache_write: some(total.cache_write),
        reasoning: some(total.reasoning),
        ..Usage::default()
    }
}

/// Whether a usage counts any tokens. A cost alone has no place here, and zeros are not a response.
fn counts_anything(usage: &Usage) -> bool {
    let numbers = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning];
    numbers.into_iter().flatten().any(|number| number > 0)
}

/// The numbers that Codex requires; unknown ones are 0.
fn required_numbers<'a>(usage: &Usage) -> Draft<'a> {
    let some = |number: Option<u64>| Some(number.unwrap_or(0));
    let all = Usage {
        input: some(usage.input),
        output: some(usage.output),
        cache_read: some(usage.cache_read),
        reasoning: some(usage.reasoning),
        ..*usage
    };
    let parts = [all.input, all.output, all.cache_read, all.cache_write];
    let mut numbers = own::numbers(&all);
    numbers.set_number("total_tokens", some(parts.into_iter().flatten().reduce(u64::saturating_add)));
    numbers
}
