//! pi: its session files, one entry a line, each with the id of the entry it follows. See `README.md` beside this file.

mod blocks;
mod read;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, ExitCodeAt, Outline, Placement, ProjectName, SessionIdKind, UsageWords};
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `pi`.
#[derive(Debug)]
pub struct Pi;

const NAME: &str = "pi";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "pi's sessions",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &["{PI_CODING_AGENT_DIR|~/.pi/agent}/sessions/<project>/*_<session>.jsonl"],
    resume: Some("pi --session {session}"),
    placement: Some(Placement {
        path: "{PI_CODING_AGENT_DIR|~/.pi/agent}/sessions/--<project>--/<utc>_<session>.jsonl",
        project: ProjectName::Separators(&['/', '\\', ':']),
        id: SessionIdKind::TimedUuid,
        folders: &["session: cwd"],
        sessions: &["session: id"],
        forks: &[],
    }),
    spec: "pi, docs/session.md, and what releases 0.12 to 0.87 write",
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    spelling: &["type", "parentId", "message.role", "message.content.type"],
    record_schema: &[
        "type=session: version number, id text, timestamp text, cwd text",
        "type=message: id text, parentId text|null, timestamp text, message.role text, message.content text|list, \
         message.content[].type text?, message.timestamp number?",
        "type=message & message.role=assistant: message.content list, message.api text, message.provider text, \
         message.model text, message.stopReason text, message.usage.input number, message.usage.output number, \
         message.usage.cacheRead number, message.usage.cacheWrite number, message.usage.cost.total number",
        "type=message & message.role=toolResult: message.toolCallId text, message.toolName text, message.content list, \
         message.isError flag",
        "type=compaction: id text, parentId text|null, timestamp text, summary text, firstKeptEntryId text",
    ],
    calls: CallWords {
        exit_codes: &[ExitCodeAt::Last("Command exited with code ")],
        interruption_prefixes: &["Operation aborted", "Command aborted"],
        compaction_tokens: Some(("tokensBefore", "")),
        ..CallWords::NONE
    },
    usage: UsageWords { counters: &[("message.usage", &read::COUNTERS)], ..UsageWords::NONE },
    ..FormatInfo::BLANK
};

impl Format for Pi {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        if head.objects().iter().any(is_entry) { Sniff::Certain } else { Sniff::No }
    }

    fn reader(&self, want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::PiReader::new(want)))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::PiWriter::new(outline))
    }
}

/// Whether only pi writes this record: its header, or a message with fields that no other agent has.
fn is_entry(object: &Object<'_>) -> bool {
    let is = |key: &str, word: &str| object.peek_str(key).as_deref() == Some(word);
    if is("type", "session") {
        let versioned = object.has("version") && object.has("cwd");
        let first = object.has("provider") && object.has("modelId") && object.has("thinkingLevel");
        return object.has("id") && object.has("timestamp") && (versioned || first);
    }
    if is("type", "model_change") {
        return object.has("provider") && object.has("modelId");
    }
    let message = object.peek_object("message").filter(|_| is("type", "message") && object.has("timestamp"));
    message.is_some_and(|message| match message.peek_str("role").as_deref() {
        Some("assistant") => message.has("api") && message.has("provider") && message.has("stopReason"),
        Some("toolResult") => message.has("toolCallId") && message.has("toolName"),
        Some("bashExecution") => message.has("command"),
        _ => false,
    })
}
