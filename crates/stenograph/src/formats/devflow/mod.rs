//! devflow's `transcript.json`: one document per run, one record per turn. See `README.md` beside this file. This module
//! neither compresses the document nor chooses its folder.

mod go_json;
mod header;
mod read;
mod turn;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::{Framing, Items};
use crate::json::{Object, indent};
use crate::model::{CallWords, ExitCodeAt, Outline, TotalPaths, UsageWords};
use crate::read::Reader;
use crate::write::Writer;

/// The format `devflow`.
#[derive(Debug)]
pub struct Devflow;

const NAME: &str = "devflow";

/// The key of the list of turns.
const TURNS: &str = "turns";

/// The time that Go writes if there is none.
pub const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// The size in bytes from which a transcript is kept as `transcript.json.gz`: the document says "at 100 KB and above".
pub const COMPRESS_SIZE_MIN: usize = 102_400;

/// A devflow document as Go's `MarshalIndent` writes it: two spaces per level, and HTML characters escaped.
pub fn spelled(json: &str) -> String {
    indent(&go_json::escaped(json), 0)
}

/// A map as Go writes it: with sorted keys at every level.
pub fn map(json: &str) -> String {
    go_json::sorted(json).into_owned()
}

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "devflow",
    title: "devflow's transcript of a run",
    framing: Framing::Items(Items::Array(TURNS)),
    extension: "json",
    homes: &[
        ".devflow/runs/<session>/transcript.json",
        ".devflow/transcripts/runs/<session>/transcript.json",
        ".devflow/runs/runs/<session>/transcript.json",
    ],
    spec: "devflow, ADR-011: Transcript Format",
    traits: Traits { pieces: false, carries: true, lossy: false, log: false },
    // A separate event states how a run ended.
    spelling: &["role", "turns", "content", "metadata.status", "metadata.error", "metadata.endedAt"],
    totals: &["metadata.totalTokensIn", "metadata.totalTokensOut", "metadata.totalCost", "metadata.turnCount"],
    // The text comes from the system that runs commands for devflow.
    calls: CallWords { exit_codes: &[ExitCodeAt::Last("exit status ")], ..CallWords::NONE },
    usage: UsageWords {
        counters: &[("", &["tokensIn", "tokensOut"]), ("metadata", &["totalTokensIn", "totalTokensOut"])],
        total: Some(TotalPaths {
            facts: &["session", "session_end"],
            object: "metadata",
            input: "totalTokensIn",
            output: "totalTokensOut",
            cache_read: "",
            cache_write: "",
            reasoning: "",
            cost: "totalCost",
        }),
        ..UsageWords::NONE
    },
    ..FormatInfo::BLANK
};

impl Format for Devflow {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let Some(document) = head.document() else { return Sniff::No };
        if document.peek_str("runId").is_none() {
            return Sniff::No;
        }
        let metadata = document.peek("metadata").and_then(Object::parse);
        let has_flow = metadata.is_some_and(|metadata| metadata.has("flowId"));
        let turns = document.peek(TURNS).and_then(crate::json::items);
        let has_turn = turns.is_some_and(|turns| {
            let turn = turns.first().copied().and_then(Object::parse);
            turn.is_some_and(|turn| turn.has("role") && turn.has("content"))
        });
        match (has_flow, has_turn) {
            (true, _) => Sniff::Certain,
            (false, true) => Sniff::Likely,
            (false, false) => Sniff::No,
        }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(read::DevflowReader::default())
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::DevflowWriter::new(outline))
    }
}
