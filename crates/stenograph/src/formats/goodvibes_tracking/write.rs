//! Writes `agent-tracking.json` as JavaScript indents it. A session of another system becomes one agent, if what an agent
//! must have is known of it.

use super::NAME;
use crate::json::{Draft, indent};
use crate::model::{Body, Event, Outline};
use crate::text::quote;
use crate::time::Time;
use crate::write::{Output, Writer};

/// Writes one member an agent.
#[derive(Debug)]
pub struct Agents {
    outline: Outline,
    written: u64,
    /// Whether a bracket can still be written: not after bytes that were cut short.
    stage: Stage,
}

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
                    self.separate(out);
                    out.record(bytes.bytes());
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
