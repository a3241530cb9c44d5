//! devflow's `transcript.json`: one document a run, one record a turn. See `README.md` beside this file.
//! Compressing it and placing it in a folder is not done here.

mod header;
mod read;
mod spell;
mod turn;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Want};
use crate::frame::{Framing, Items};
use crate::json::{Object, indent};
use crate::model::{CallWords, ExitCodeAt, Outline, TotalPaths, UsageWords};
use crate::read::Reader;
use crate::write::Writer;

/// The format.
#[derive(Debug)]
pub struct Devflow;

const NAME: &str = "devflow";

/// The key of the list of turns.
const TURNS: &str = "turns";

/// The moment that Go writes where there is none.
pub const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// The size in bytes from which a transcript is kept as `transcript.json.gz`: the document says "at 100 KB and above".
pub const COMPRESS_SIZE_MIN: usize = 102_400;

/// A document of devflow's as Go's `MarshalIndent` spells it: two spaces a level, and escaped what HTML would mistake.
pub fn spelled(json: &str) -> String {
    indent(&spell::escaped(json), 0)
}

/// A map as Go writes it: the keys of every object sorted.
pub fn map(json: &str) -> String {
    spell::sorted(json).into_owned()
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
    // How a run ended is said by an event of its own.
    spelling: &["role", "turns", "content", "metadata.status", "metadata.error", "metadata.endedAt"],
    totals: &["metadata.totalTokensIn", "metadata.totalTokensOut", "metadata.totalCost", "metadata.turnCount"],
    // The words of the system that runs commands for it.
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
        let about_a_flow = metadata.is_some_and(|metadata| metadata.has("flowId"));
        let turns = document.peek(TURNS).and_then(crate::json::items);
        let talk = turns.is_some_and(|turns| {
            let turn = turns.first().copied().and_then(Object::parse);
            turn.is_some_and(|turn| turn.has("role") && turn.has("content"))
        });
        match (about_a_flow, talk) {
            (true, _) => Sniff::Certain,
            (false, true) => Sniff::Likely,
            (false, false) => Sniff::No,
        }
    }

    fn reader(&self, _want: Want) -> Box<dyn Reader> {
        Box::new(read::Turns::default())
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::Turns::new(outline))
    }
}
