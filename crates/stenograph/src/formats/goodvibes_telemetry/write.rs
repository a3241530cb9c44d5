//! Writes GoodVibes' telemetry. A session of another system becomes one line, with the fields that are known.

use super::{COMPLETE, NAME, Shape};
use crate::json::{Draft, Object};
use crate::model::{Body, Event, ExtraFields, Input, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::text::quote;
use crate::time::Time;
use crate::write::{Writer, WriterOutput};

/// Writes the lines of its own format, and at the end one line for a session of another format.
#[derive(Debug)]
pub struct TelemetryWriter {
    synthesizer: Synthesizer,
    totals: SessionTotals,
    /// Whether lines of this format were written.
    has_own_lines: bool,
}

/// The fields of a session's line that are known only at its end.
#[derive(Debug, Default)]
struct SessionTotals {
    events: u64,
    tools: Vec<String>,
    files: Vec<String>,
    summary: Option<String>,
}

/// How many tools or files a line names.
const NAMES_MAX: usize = 1000;

/// How much of the final text GoodVibes keeps.
const SUMMARY_SIZE_MAX: usize = 500;

impl TelemetryWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> TelemetryWriter {
        TelemetryWriter {
            synthesizer: Synthesizer::new(outline),
            totals: SessionTotals::default(),
            has_own_lines: false,
        }
    }

    fn line_for_session(&self) -> String {
        let outline = self.synthesizer.outline();
        let session = self.synthesizer.session();
        let iso = |time: &Option<Time<'static>>| time.as_ref().and_then(Time::to_iso_millis);
        let mut draft = Draft::new();
        draft.set_str("event", COMPLETE);
        draft.set_str("agent_id", &session);
        draft.set_opt("agent_type", Some(outline.origin).filter(|origin| !origin.is_empty()));
        draft.set_str("session_id", &session);
        draft.set_opt("project", outline.header.cwd.as_deref());
        draft.set_opt("project_name", outline.header.cwd.as_deref().and_then(last_name));
        draft.set_opt("git_branch", outline.first_branch.as_deref());
        draft.set_opt("started_at", iso(&outline.started).as_deref());
        draft.set_opt("ended_at", iso(&outline.ended).as_deref());
        draft.set_number("duration_ms", duration_ms(outline));
        draft.set_str("status", if outline.success == Some(false) { "failed" } else { "completed" });
        // GoodVibes finds keywords with its own word lists; the key is always present.
        draft.set("keywords", "[]");
        draft.set("files_modified", list(&self.totals.files));
        draft.set("tools_used", list(&self.totals.tools));
        draft.set_opt("summary", self.totals.summary.as_deref());
        draft.render(None)
    }
}

impl Writer for TelemetryWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events {
            match (&event.body, event.extra.get(NAME)) {
                (Body::Other { bytes: Some(bytes), .. }, _) => {
                    if self.synthesizer.outline().origin == NAME {
                        self.has_own_lines = true;
                        out.line(bytes.bytes());
                    }
                }
                (_, Some(extra)) => {
                    self.has_own_lines = true;
                    out.line(own_format_line(event, extra));
                }
                (_, None) => self.totals.add(event),
            }
        }
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        if !self.has_own_lines && self.totals.events > 0 {
            out.line(self.line_for_session());
        }
    }
}

fn own_format_line(event: &Event<'_>, extra: &ExtraFields<'_>) -> String {
    let mut draft = Draft::new();
    if let Body::Stop { reason, success, content } = &event.body {
        let record = extra.text("event").as_deref() != Some(COMPLETE);
        let shape = if record { Shape::Record } else { Shape::Entry };
        draft.set_opt("agent_id", event.thread.as_deref());
        draft.set_opt("session_id", event.session.as_deref());
        draft.set_opt(shape.cwd(), event.cwd.as_deref());
        draft.set_opt("git_branch", event.branch.as_deref());
        draft.set_opt("ended_at", event.time.as_ref().and_then(Time::to_iso).as_deref());
        match (shape, success) {
            (Shape::Entry, _) => draft.set_opt("status", reason.as_deref()),
            (Shape::Record, Some(success)) => draft.set("success", success.to_string()),
            (Shape::Record, None) => {}
        }
        if let Some(content) = content {
            draft.set(shape.summary(), content.joined().to_json());
        }
    }
    draft.render(Some(extra))
}

impl SessionTotals {
    fn add(&mut self, event: &Event<'_>) {
        self.events += 1;
        match &event.body {
            Body::Message { role: Role::Assistant, content } | Body::Stop { content: Some(content), .. } => {
                if !content.is_empty() {
                    self.summary = Some(content.joined().decode().chars().take(SUMMARY_SIZE_MAX).collect());
                }
            }
            Body::ToolCall { name, input, .. } => {
                add_name(&mut self.tools, name);
                if let Some(file) = file_written(name, input) {
                    add_name(&mut self.files, &file);
                }
            }
            Body::Message { .. }
            | Body::Fact { .. }
            | Body::Thinking { .. }
            | Body::ToolResult { .. }
            | Body::Compaction { .. }
            | Body::Failure { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {}
        }
    }
}

/// The file that a call writes, by GoodVibes' own rule: it knows two tools and the name of their field.
fn file_written(tool: &str, input: &Input<'_>) -> Option<String> {
    match input {
        Input::Json(raw) if matches!(tool, "Write" | "Edit") => {
            Object::parse(raw)?.peek_str("file_path").map(std::borrow::Cow::into_owned)
        }
        Input::Json(_) | Input::Text(_) => None,
    }
}

fn add_name(names: &mut Vec<String>, name: &str) {
    if names.len() < NAMES_MAX && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
    format!("[{}]", names.join(","))
}

fn last_name(path: &str) -> Option<&str> {
    path.split(['/', '\\']).rfind(|name| !name.is_empty())
}

fn duration_ms(outline: &Outline) -> Option<u64> {
    let instant = |time: &Option<Time<'static>>| time.as_ref().and_then(Time::instant);
    let (from, to) = (instant(&outline.started)?, instant(&outline.ended)?);
    u64::try_from(to.as_millisecond() - from.as_millisecond()).ok()
}
