//! Chibi's entries: one message, call, result or marker per line. See `README.md` beside this file.

mod read;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::{CallWords, Outline, Verdict};
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `chibi`.
#[derive(Debug)]
pub struct Chibi;

const NAME: &str = "chibi";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "chibi",
    title: "Chibi's context and transcript entries",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[
        "{CHIBI_HOME|~/.chibi}/contexts/<session>/transcript_archive.jsonl",
        "{CHIBI_HOME|~/.chibi}/contexts/<session>/transcript.jsonl",
        "{CHIBI_HOME|~/.chibi}/contexts/<session>/transcript/partitions/*.jsonl",
        "{CHIBI_HOME|~/.chibi}/contexts/<session>/transcript/active.jsonl",
        "{CHIBI_HOME|~/.chibi}/contexts/<session>/context.jsonl",
    ],
    resume: Some("chibi -c {session}"),
    spec: "Chibi, docs/transcript-format.md",
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    spelling: &["entry_type", "role"],
    record_schema: &["*: id text, timestamp number, from text, to text, content text, entry_type text, \
         metadata object?, tool_call_id text?, role text?, flow_control flag?"],
    calls: CallWords {
        failure_prefixes: &["Error: "],
        verdict_prefixes: &[
            ("Error: Permission denied", Verdict::Blocked),
            ("Error: No permission handler configured", Verdict::Refused),
        ],
        ..CallWords::NONE
    },
    ..FormatInfo::BLANK
};

impl Format for Chibi {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let objects = head.objects();
        // The type of an entry comes after its content, which may be longer than the head.
        if let ([first], true) = (objects.as_slice(), head.is_first_line_cut()) {
            let keys = ["id", "timestamp", "from", "to"];
            let begins = keys.iter().all(|key| first.has(key)) && first.keys().count() == keys.len();
            return if begins { Sniff::Likely } else { Sniff::No };
        }
        let ours = objects.iter().filter(|object| {
            object.peek_str("entry_type").is_some() && object.has("from") && object.has("to") && object.has("content")
        });
        match (ours.count(), objects.len()) {
            (0, _) => Sniff::No,
            (ours, all) if ours == all => Sniff::Certain,
            _ => Sniff::Likely,
        }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::ChibiReader))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::ChibiWriter::new(outline))
    }
}
