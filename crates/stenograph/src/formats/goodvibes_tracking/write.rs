//! Writes `agent-tracking.json` with the indentation of JavaScript. A session of another system becomes one agent, if the
//! required fields are known.

use super::NAME;
use crate::formats::document::{DocumentFrame, DocumentPart};
use crate::frame::Items;
use crate::json::{Draft, indent};
use crate::model::{Body, Event, Outline};
use crate::text::quote;
use crate::time::Time;
use crate::write::{Writer, WriterOutput};

/// The beginning of the document.
const HEAD: &str = "{";

/// Writes one member per agent.
#[derive(Debug)]
pub struct TrackingWriter {
    outline: Outline,
    document: DocumentFrame,
}

impl TrackingWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> TrackingWriter {
        TrackingWriter { outline: outline.clone(), document: DocumentFrame::new(Items::Members, "\n  ", "\n") }
    }

    fn begin(&mut self, out: &mut WriterOutput) {
        if self.document.part == DocumentPart::Start {
            out.glue(HEAD);
            self.document.part = DocumentPart::Items;
        }
    }

    fn put(&mut self, key: &str, agent: &str, out: &mut WriterOutput) {
        self.begin(out);
        self.document.item(format!("{}: {}", quote(key), indent(agent, 1)), out);
    }

    fn session(&self) -> Option<(String, String)> {
        let outline = &self.outline;
        let (session, cwd) = (outline.session.as_deref()?, outline.header.cwd.as_deref()?);
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
        draft.set_opt("git_branch", outline.first_branch.as_deref());
        draft.set_str("started_at", &started);
        Some((session.to_owned(), draft.render(None)))
    }
}

impl Writer for TrackingWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events {
            if let Body::Other { bytes: Some(bytes), .. } = &event.body {
                if self.outline.origin == NAME {
                    self.document.unread(bytes.bytes().into_owned(), Some(HEAD), out);
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

    fn finish(&mut self, out: &mut WriterOutput) {
        if self.document.part == DocumentPart::Start
            && let Some((key, agent)) = self.session()
        {
            self.put(&key, &agent, out);
        }
        self.begin(out);
        if self.document.part == DocumentPart::Items {
            self.document.end(out);
            out.glue("}");
        }
    }
}
