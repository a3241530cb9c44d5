//! The native stream: one event per line. [`crate::wire`] describes the lines; see `README.md` beside this file.

mod read;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::Outline;
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `steno`.
#[derive(Debug)]
pub struct Steno;

pub(crate) static INFO: FormatInfo = FormatInfo {
    name: crate::wire::NAME,
    agent: "steno",
    title: "Stenograph's native stream: one event per line, with everything kept",
    framing: Framing::Lines,
    extension: "steno.jsonl",
    homes: &[
        "<session>.steno.jsonl",
        "{CHIBI_HOME|~/.chibi}/contexts/<session>/journal.steno",
        "{CLAUDE_CONFIG_DIR|~/.claude}/projects/<project>/<session>/transcripts/<thread>.jsonl.steno",
        ".goodvibes/transcripts/<session>/<thread>.jsonl.steno",
        "~/.cycod/history/chat-history-<session>.jsonl.steno",
        "~/.cycod/history/trajectory-<session>.md.steno",
        "~/.cycod/history/*.steno",
        ".cycod/history/chat-history-<session>.jsonl.steno",
        ".cycod/history/*.steno",
        "chat-history-<session>.jsonl.steno",
        "chat-history*.jsonl.steno",
        ".devflow/runs/<session>/journal.steno",
        ".devflow/transcripts/runs/<session>/journal.steno",
        ".devflow/runs/runs/<session>/journal.steno",
        ".leslie/threads/<session>/.meta/transcripts/*.steno",
        "~/.leslie/threads/<session>/.meta/transcripts/*.steno",
    ],
    spec: "docs/steno.schema.json",
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    record_schema: &["*: v number, kind text"],
    ..FormatInfo::BLANK
};

impl Format for Steno {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let objects = head.objects();
        let ours = objects.iter().filter(|object| {
            let says = object.peek_str("kind").or_else(|| object.peek_str("note"));
            object.peek("v").and_then(crate::json::number).is_some() && says.is_some()
        });
        match (ours.count(), objects.len()) {
            (0, _) => Sniff::No,
            (ours, all) if ours == all => Sniff::Certain,
            _ => Sniff::Likely,
        }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::StenoReader))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::StenoWriter::new(outline))
    }
}
