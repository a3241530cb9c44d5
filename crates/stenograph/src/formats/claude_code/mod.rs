//! Claude Code: its session files, the files of its sub-agents, and the stream of `--output-format stream-json`. See
//! `README.md` beside this file.

mod answer;
mod foreign;
mod read;
mod record;
mod sniff;
mod words;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::{Outline, Placement, ProjectName, SessionIdKind, UserWords};
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `claude-code`.
#[derive(Debug)]
pub struct ClaudeCode;

pub(super) const NAME: &str = "claude-code";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "claude-code",
    title: "Claude Code's sessions",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[
        "{CLAUDE_CONFIG_DIR|~/.claude}/projects/<project>/agent-<thread>.jsonl",
        "{CLAUDE_CONFIG_DIR|~/.claude}/projects/<project>/<session>.jsonl",
        "{CLAUDE_CONFIG_DIR|~/.claude}/projects/<project>/<session>/subagents/agent-<thread>.jsonl",
        "{CLAUDE_CONFIG_DIR|~/.claude}/projects/<project>/<session>/subagents/workflows/*/agent-<thread>.jsonl",
        "{CLAUDE_CONFIG_DIR|~/.claude}/projects/<project>/<session>/subagents/workflows/*/*.jsonl",
        "{XDG_CONFIG_HOME|~/.config}/claude/projects/<project>/agent-<thread>.jsonl",
        "{XDG_CONFIG_HOME|~/.config}/claude/projects/<project>/<session>.jsonl",
        "{XDG_CONFIG_HOME|~/.config}/claude/projects/<project>/<session>/subagents/agent-<thread>.jsonl",
        "{XDG_CONFIG_HOME|~/.config}/claude/projects/<project>/<session>/subagents/workflows/*/agent-<thread>.jsonl",
        "{XDG_CONFIG_HOME|~/.config}/claude/projects/<project>/<session>/subagents/workflows/*/*.jsonl",
    ],
    resume: Some("claude --resume {session}"),
    placement: Some(Placement {
        path: "{CLAUDE_CONFIG_DIR|~/.claude}/projects/<project>/<session>.jsonl",
        project: ProjectName::Hyphens,
        id: SessionIdKind::RandomUuid,
        folders: &["cwd", "attachment: attachment.snapshot.workingDirectory"],
        sessions: &["sessionId"],
        forks: &["user: forkedFrom.sessionId", "assistant: forkedFrom.sessionId"],
    }),
    retention_days: Some(30),
    spec: "what Claude Code writes, releases 1.0 to 2.1",
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    spelling: &[
        "type",
        "subtype",
        "isSidechain",
        "userType",
        "parentUuid",
        "message.role",
        "message.type",
        "message.content.type",
        "isCompactSummary",
        "isVisibleInTranscriptOnly",
        "isApiErrorMessage",
        "attachment.type",
        "source.type",
    ],
    record_schema: &[
        "type=user: uuid text, parentUuid text|null, sessionId text, timestamp text, cwd text, \
         version text, userType text, isSidechain flag, message.role text, message.content text|list, \
         message.content[].type text",
        "type=assistant: uuid text, parentUuid text|null, sessionId text, timestamp text, cwd text, \
         version text, userType text, isSidechain flag, message.role text, message.id text, \
         message.type text, message.model text, message.content list, message.content[].type text, \
         message.stop_reason text|null, message.usage.input_tokens number?, \
         message.usage.output_tokens number?",
        "type=system: uuid text, parentUuid text|null, sessionId text, timestamp text, subtype text",
        "type=custom-title: customTitle text, sessionId text",
    ],
    restated: &["toolUseResult", "tool_use_result"],
    injected: &[("<system-reminder>", "</system-reminder>")],
    // A command for the model names its message first, a local one such as `/clear` its name.
    // It warms its caches with a message to each kind of sub-agent.
    user: UserWords {
        flags: &["isMeta"],
        messages: &[("Warmup", "Warmup")],
        commands: &["<command-message>"],
        ..UserWords::NONE
    },
    effects: &["toolUseResult", "tool_use_result"],
    calls: words::WORDS,
    usage: words::USAGE,
    session: words::SESSION,
    ..FormatInfo::BLANK
};

impl Format for ClaudeCode {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        sniff::sniff(&head.objects())
    }

    fn reader(&self, want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::ClaudeCodeReader::new(want)))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::ClaudeCodeWriter::new(outline))
    }
}
