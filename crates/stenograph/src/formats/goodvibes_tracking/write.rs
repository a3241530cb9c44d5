//! Writes `agent-tracking.json` with the indentation of JavaScript. A session of another system becomes one agent, if the
//! required fields are known.

use super::NAME;
use crate::frame::{Items, is_item, is_prologue};
use crate::json::{Draft, indent, is_closed};
use crate::model::{Body, Event, Outline};
use crate::text::{Text, quote};
use crate::time::Time;
use crate::write::{Output, Writer};

/// Writes one member per agent.
#[derive(Debug)]
pub struct TrackingWriter {
    outline: Outline,
    written: u64,
    part: DocumentPart,
}

/// The current part of the document. Bytes that were cut off end it without a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DocumentPart {
    Start,
    Members,
    Ended,
}

impl TrackingWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> TrackingWriter {
        TrackingWriter { outline: outline.clone(), written: 0, part: DocumentPart::Start }
    }

    fn begin(&mut self, out: &mut Output) {
        if self.part == DocumentPart::Start {
            out.glue("{");
            self.part = DocumentPart::Members;
        }
    }

    fn separate(&mut self, out: &mut Output) {
        self.begin(out);
        out.glue(if self.written == 0 { "\n  " } else { ",\n  " });
        self.written += 1;
    }

    fn put(&mut self, key: &str, agent: &str, out: &mut Output) {
        self.separate(out);
        out.record(format!("{}: {}", quote(key), indent(agent, 1)));
    }

    /// Writes bytes that never were a member back to the file they came from.
    fn unread(&mut self, bytes: &Text<'_>, out: &mut Output) {
        let bytes = bytes.bytes();
        if self.part == DocumentPart::Start && is_prologue(Items::Members, &bytes) {
            self.part = DocumentPart::Members;
        } else if bytes.starts_with(b"}") || bytes.starts_with(b"]") {
            self.begin(out);
            out.glue("\n");
            self.part = DocumentPart::Ended;
        } else if self.part == DocumentPart::Start && !is_item(Items::Members, &bytes) {
            // The file ends before its first bracket.
            self.part = DocumentPart::Ended;
        } else {
            self.separate(out);
            if !is_closed(&bytes) {
                self.part = DocumentPart::Ended;
            }
        }
        out.record(bytes);
    }

    fn session(&self) -> Option<(String, String)> {
        let outline = &self.outline;
        let (session, cwd) = (outline.session.as_deref()?, outline.cwd.as_deref()?);
        let started = outline.started.as_ref()?.to_iso_millis()?;
        if outline.origin.is_empty() || outline.origin == NAME {
            return None;
        }
        let mut draft = Draft::new();
        draft.set_str("agent_id", session);
        draft.set_str("agent_type", outline.origin);
        draft.set_str("session_id", session);
        draft.set_str("project", cwd);
        draft.set_str("project_name", cwd.split(['/', '\\']).rfind(|name| !name.is_empty())?);
        draft.set_opt("git_branch", outline.branch.as_deref());
        draft.set_str("started_at", &started);
        Some((session.to_owned(), draft.render(None)))
    }
}

impl Writer for TrackingWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        for event in events {
            if let Body::Other { bytes: Some(bytes), .. } = &event.body {
                if self.outline.origin == NAME {
                    self.unread(bytes, out);
                }
            } else if let Some(extra) = event.extra.get(NAME) {
                let mut draft = Draft::new();
                draft.set_opt("agent_id", event.thread.as_deref());
                draft.set_opt("session_id", event.session.as_deref());
                draft.set_opt("project", event.cwd.as_deref());
                draft.set_opt("git_branch", event.branch.as_deref());
                draft.set_opt("started_at", event.time.as_ref().and_then(Time::to_iso).as_deref());
                self.put(event.id.as_deref().unwrap_or_default(), &draft.render(Some(extra)), out);
            }
        }
    }

    fn finish(&mut self, out: &mut Output) {
        if self.written == 0
            && self.part == DocumentPart::Start
            && let Some((key, agent)) = self.session()
        {
            self.put(&key, &agent, out);
        }
        self.begin(out);
        if self.part == DocumentPart::Members {
            out.glue(if self.written == 0 { "}" } else { "\n}" });
        }
    }
}
