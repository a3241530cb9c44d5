//! The flat events that some tools believe to be Claude Code's transcript: one call, result, text or stop per line, among bare
//! messages. See `README.md` beside this file.

mod read;
mod sniff;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::{CallWords, ExitCodeAt, Outline, Verdict};
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `claude-events`.
#[derive(Debug)]
pub struct ClaudeEvents;

const NAME: &str = "claude-events";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "claude-code",
    title: "flat Claude Code events",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[
        "{CLAUDE_CONFIG_DIR|~/.claude}/projects/<project>/<session>/transcripts/<thread>.jsonl",
        ".goodvibes/transcripts/<session>/<thread>.jsonl",
    ],
    spec: "GoodVibes, Claude Code Transcript Format",
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    spelling: &["type", "role", "content.type", "source.type"],
    record_schema: &[
        "type=tool_use: name text, input object, id text?",
        "type=tool_result: output text?, is_error flag?, tool_use_id text?",
        "type=text: text text",
        "type=error: error object|text",
        "type=stop: stop_reason text?, success flag?",
        "type=result: result text?, success flag?",
        "role=user: content text|list",
        "role=assistant: content text|list",
    ],
    calls: CallWords {
        exit_codes: &[ExitCodeAt::First("Exit code ")],
        verdict_prefixes: &[("The user doesn't want to proceed with this tool use", Verdict::Denied)],
        ..CallWords::NONE
    },
    ..FormatInfo::BLANK
};

impl Format for ClaudeEvents {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        sniff::sniff(&head.objects())
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::ClaudeEventsReader))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::ClaudeEventsWriter::new(outline))
    }
}
