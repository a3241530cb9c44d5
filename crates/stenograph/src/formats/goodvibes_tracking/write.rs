//! Writes `agent-tracking.json` as JavaScript indents it. A session of another system becomes one agent, if what an agent
//! must have is known of it.

use super::NAME;
use crate::frame::{Items, is_item, is_prologue};
use crate::json::{Draft, indent, is_closed};
use crate::model::{Body, Event, Outline};
use crate::text::{Text, quote};
use crate::time::Time;
use crate::write::{Output, Writer};

/// Writes one member an agent.
#[derive(Debug)]
pub struct Agents {
    outline: Outline,
    written: u64,
    stage: Stage,
}

/// How far the document has come. After bytes that were cut short, it has ended without a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Members,
    Ended,
}

impl Agents {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Agents {
        Agents { outline: outline.clone(), written: 0, stage: Stage::Start }
    }

    fn begin(&mut self, out: &mut Output) {
        if self.stage == Stage::Start {
            out.glue("{");
            self.stage = Stage::Members;
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

    /// Bytes that never were a member return to the file they came from.
    fn unread(&mut self, bytes: &Text<'_>, out: &mut Output) {
        let bytes = bytes.bytes();
        if self.stage == Stage::Start && is_prologue(Items::Members, &bytes) {
            self.stage = Stage::Members;
        } else if bytes.starts_with(b"}") || bytes.starts_with(b"]") {
            self.begin(out);
            out.glue("\n");
            self.stage = Stage::Ended;
        } else if self.stage == Stage::Start && !is_item(Items::Members, &bytes) {
            // A file that never came to its first bracket.
            self.stage = Stage::Ended;
        } else {
            self.separate(out);
            if !is_closed(&bytes) {
                self.stage = Stage::Ended;
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

impl Writer for Agents {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        for event in events {
            if let Body::Other { bytes: Some(bytes), .. } = &event.body {
                if self.outline.origin == NAME {
                    self.unread(bytes, out);
                }
            } else if let Some(own) = event.extra.get(NAME) {
                let mut draft = Draft::new();
                draft.set_opt("agent_id", event.thread.as_deref());
                draft.set_opt("session_id", event.session.as_deref());
                draft.set_opt("project", event.cwd.as_deref());
                draft.set_opt("git_branch", event.branch.as_deref());
                draft.set_opt("started_at", event.time.as_ref().and_then(Time::to_iso).as_deref());
                self.put(event.id.as_deref().unwrap_or_default(), &draft.render(Some(own)), out);
            }
        }
    }

    fn finish(&mut self, out: &mut Output) {
        if self.written == 0
            && self.stage == Stage::Start
            && let Some((key, agent)) = self.session()
        {
            self.put(&key, &agent, out);
        }
        self.begin(out);
        if self.stage == Stage::Members {
            out.glue(if self.written == 0 { "}" } else { "\n}" });
        }
    }
}
