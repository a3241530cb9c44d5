//! GoodVibes' telemetry: a line for each finished sub-agent. See `README.md` beside this file.

mod read;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::Outline;
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `goodvibes-telemetry`.
#[derive(Debug)]
pub struct GoodvibesTelemetry;

const NAME: &str = "goodvibes-telemetry";

/// The only event that is reported.
const COMPLETE: &str = "subagent_complete";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "goodvibes",
    title: "GoodVibes' monthly telemetry of sub-agents",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[".goodvibes/telemetry/*.jsonl"],
    spec: "GoodVibes plugin, types/telemetry.ts",
    traits: Traits { pieces: true, carries: true, lossy: false, log: true },
    spelling: &["event", "type"],
    record_schema: &[
        "*: event text, agent_id text, agent_type text, session_id text, started_at text?, ended_at text?, \
         duration_ms number?, status text, keywords list?, files_modified list, tools_used list, summary text?",
    ],
    ..FormatInfo::BLANK
};

impl Format for GoodvibesTelemetry {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let objects = head.objects();
        let ours = objects.iter().filter(|object| Shape::of(object).is_some() && object.has("agent_id")).count();
        match (ours, objects.len()) {
            (0, _) => Sniff::No,
            (ours, all) if ours == all => Sniff::Certain,
            _ => Sniff::Likely,
        }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::TelemetryReader))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::TelemetryWriter::new(outline))
    }
}

/// The two shapes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `event`, `project`, `status`, `summary`: the shape on disk.
    Entry,
    /// `type`, `cwd`, `success`, `final_summary`: the other type in GoodVibes' code.
    Record,
}

impl Shape {
    fn of(object: &Object<'_>) -> Option<Shape> {
        if object.peek_str("event").as_deref() == Some(COMPLETE) {
            Some(Shape::Entry)
        } else if object.peek_str("type").as_deref() == Some(COMPLETE) {
            Some(Shape::Record)
        } else {
            None
        }
    }

    /// The key of the working folder.
    fn cwd(self) -> &'static str {
        match self {
            Shape::Entry => "project",
            Shape::Record => "cwd",
        }
    }

    /// The key of the final text.
    fn summary(self) -> &'static str {
        match self {
            Shape::Entry => "summary",
            Shape::Record => "final_summary",
        }
    }
}
