//! GoodVibes' `agent-tracking.json`: the running sub-agents, by their ids. See `README.md` beside this file.

mod read;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::{Framing, Items};
use crate::json::Object;
use crate::model::Outline;
use crate::read::Reader;
use crate::write::Writer;

/// The format `goodvibes-tracking`.
#[derive(Debug)]
pub struct GoodvibesTracking;

const NAME: &str = "goodvibes-tracking";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "goodvibes",
    title: "GoodVibes' list of the sub-agents at work",
    framing: Framing::Items(Items::Members),
    extension: "json",
    homes: &[".goodvibes/state/agent-tracking.json"],
    spec: "GoodVibes plugin, types/telemetry.ts",
    traits: Traits { pieces: false, carries: false, lossy: false, log: true },
    ..FormatInfo::BLANK
};

impl Format for GoodvibesTracking {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let Some(document) = head.document() else { return Sniff::No };
        let agents: Vec<bool> = document.pairs().map(|(key, raw)| is_agent(key, raw)).collect();
        // The last member may be cut off at the end of the head.
        match agents.split_last() {
            Some((true, [])) => Sniff::Certain,
            Some((_, before)) if !before.is_empty() && before.iter().all(|agent| *agent) => Sniff::Certain,
            // The document is empty while no agent runs.
            None => Sniff::Maybe,
            Some(_) => Sniff::No,
        }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(read::TrackingReader::default())
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::TrackingWriter::new(outline))
    }
}

/// Whether a member is an agent: it repeats its own key, and states its type, session and start.
fn is_agent(key: &str, raw: &str) -> bool {
    Object::parse(raw).is_some_and(|agent| {
        agent.peek_str("agent_id").as_deref() == Some(key)
            && ["agent_type", "session_id", "started_at"].iter().all(|field| agent.peek_str(field).is_some())
    })
}
