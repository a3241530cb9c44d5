//! Writes messages, one per line, with the keys in CycoD's order.

use super::{CONVERSATION, NAME, TITLE_LOCKED, TOOLS, chat};
use crate::json::Draft;
use crate::model::{Body, Event, Outline};
use crate::write::{Writer, WriterOutput};

/// Writes one message per line.
#[derive(Debug)]
pub struct ChatWriter {
    composer: chat::Composer,
    /// The title of another system's session, until the first line is written.
    title: Option<String>,
    /// Whether the title is locked, as JSON.
    locked: &'static str,
    origin: &'static str,
}

impl ChatWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> ChatWriter {
        let title = if outline.origin == NAME { None } else { outline.stated_title.clone() };
        ChatWriter { composer: chat::Composer::new(outline), title, locked: "false", origin: outline.origin }
    }

    fn put(&mut self, lines: Vec<String>, out: &mut WriterOutput) {
        if let Some(title) = self.title.take_if(|_| !lines.is_empty()) {
            let mut meta = Draft::new();
            meta.set_str("title", &title);
            meta.set("titleLocked", self.locked);
            let mut draft = Draft::new();
            draft.nest("_meta", meta);
            out.line(draft.render(None));
        }
        for line in lines {
            out.line(line);
        }
    }
}

impl Writer for ChatWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let mut lines = Vec::new();
        let Some(first) = events.first() else { return };
        if let Body::Other { bytes: Some(bytes), .. } = &first.body {
            // Bytes that never were a message return only to the file they came from.
            if self.origin == NAME {
                self.composer.finish(&mut lines);
                self.put(lines, out);
                out.line(bytes.bytes());
            }
            return;
        }
        if first.extra.get(NAME).is_some() {
            self.composer.finish(&mut lines);
            lines.push(own_line(first, events));
        } else {
            if is_locked(events) {
                self.locked = "true";
            }
            for event in events {
                self.composer.event(event, &mut lines);
            }
        }
        self.put(lines, out);
    }

    fn held(&self, out: &mut WriterOutput) {
        let mut lines = Vec::new();
        self.composer.held(&mut lines);
        lines.into_iter().for_each(|line| out.line(line));
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        let mut lines = Vec::new();
        self.composer.finish(&mut lines);
        self.put(lines, out);
    }
}

/// A line that was read from this format.
fn own_line(first: &Event<'_>, events: &[Event<'_>]) -> String {
    let extra = first.extra.get(NAME);
    let mut draft = Draft::new();
    match &first.body {
        Body::Fact { fact: name, .. } if name == CONVERSATION => {
            let inside = events.get(1..).unwrap_or_default();
            chat::put_tools(inside, TOOLS, NAME, &mut draft);
            draft.set("messages", chat::list(inside, NAME));
        }
        Body::Fact { content, .. } => {
            let mut meta = Draft::new();
            if let Some(title) = content {
                meta.set_text("title", &title.joined());
            }
            if is_locked(events) {
                meta.set("titleLocked", "true");
            }
            if !meta.is_empty() {
                draft.nest("_meta", meta);
            }
        }
        Body::Other { .. } => {}
        Body::Message { .. }
        | Body::Thinking { .. }
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Compaction { .. }
        | Body::Failure { .. }
        | Body::Stop { .. } => {
            let (mut draft, extra) = chat::drafted(events, NAME);
            draft.set_opt("model", first.model.as_deref());
            if let Some(usage) = &first.usage {
                draft.nest("usage", chat::usage::draft(usage));
            }
            return draft.render(extra);
        }
    }
    draft.render(extra)
}

fn is_locked(events: &[Event<'_>]) -> bool {
    events.iter().any(|event| matches!(&event.body, Body::Fact { fact: name, .. } if name == TITLE_LOCKED))
}
