//! The rollouts of OpenAI Codex CLI, all generations. See `README.md` beside this file.

mod content;
mod items;
mod notices;
mod own;
mod read;
mod words;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::{Framing, Items};
use crate::json::Object;
use crate::model::{Outline, Placement, ProjectName, SessionIdKind, UserWords};
use crate::read::Reader;
use crate::write::Writer;

/// The format `codex`.
#[derive(Debug)]
pub struct Codex;

/// The name of the format.
pub(super) const NAME: &str = "codex";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "codex",
    title: "OpenAI Codex CLI: rollouts",
    framing: Framing::LinesOrItems(Items::Array("items")),
    extension: "jsonl",
    homes: &[
        "{CODEX_HOME|~/.codex}/sessions/*/*/*/rollout-????-??-??T??-??-??-<session>_*.jsonl",
        "{CODEX_HOME|~/.codex}/sessions/*/*/*/rollout-????-??-??T??-??-??-<session>.jsonl",
        "{CODEX_HOME|~/.codex}/sessions/*/*/*/rollout-*.jsonl",
        "{CODEX_HOME|~/.codex}/sessions/rollout-????-??-??T??-??-??-<session>_*.jsonl",
        "{CODEX_HOME|~/.codex}/sessions/rollout-????-??-??T??-??-??-<session>.jsonl",
        "{CODEX_HOME|~/.codex}/sessions/rollout-????-??-??-<session>.json",
        "{CODEX_HOME|~/.codex}/sessions/rollout-*.json",
        "{CODEX_HOME|~/.codex}/sessions/rollout-*.jsonl",
        "{CODEX_HOME|~/.codex}/archived_sessions/*/*/*/rollout-????-??-??T??-??-??-<session>_*.jsonl",
        "{CODEX_HOME|~/.codex}/archived_sessions/*/*/*/rollout-????-??-??T??-??-??-<session>.jsonl",
        "{CODEX_HOME|~/.codex}/archived_sessions/*/*/*/rollout-*.jsonl",
        "{CODEX_HOME|~/.codex}/archived_sessions/rollout-????-??-??T??-??-??-<session>_*.jsonl",
        "{CODEX_HOME|~/.codex}/archived_sessions/rollout-????-??-??T??-??-??-<session>.jsonl",
        "{CODEX_HOME|~/.codex}/archived_sessions/rollout-*.jsonl",
    ],
    resume: Some("codex resume {session}"),
    placement: Some(Placement {
        path: "{CODEX_HOME|~/.codex}/sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl",
        project: ProjectName::Nowhere,
        id: SessionIdKind::TimedUuid,
        folders: &[
            "session_meta: payload.cwd",
            "session_meta: payload.runtime_workspace_roots",
            "turn_context: payload.cwd",
            "turn_context: payload.workspace_roots",
            "event_msg: payload.thread_settings.cwd",
            "event_msg: payload.thread_settings.runtime_workspace_roots",
            "world_state: payload.state.environments.environments.local.cwd",
        ],
        sessions: &[
            "session_meta: payload.id",
            "session_meta: payload.session_id",
            "event_msg: payload.thread_id",
            "token_usage_record: payload.thread_id",
            "token_usage_record: payload.session_id",
        ],
        forks: &["session_meta: payload.forked_from_id"],
    }),
    spec: "openai/codex, codex-rs/history and codex-rs/protocol",
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    spelling: &["type", "record_type", "items", "payload.type"],
    record_schema: &[
        "*: timestamp text, type text, payload object",
        "type=session_meta: payload.id text, payload.timestamp text, payload.cwd text, \
         payload.originator text, payload.cli_version text",
        "type=turn_context: payload.cwd text, payload.approval_policy text, \
         payload.sandbox_policy object, payload.model text, payload.summary text",
        "type=response_item & payload.type=message: payload.role text, payload.content list, \
         payload.content[].type text",
        "type=response_item & payload.type=function_call: payload.name text, payload.arguments text, \
         payload.call_id text",
        "type=response_item & payload.type=function_call_output: payload.call_id text, \
         payload.output text|list",
        "type=response_item & payload.type=custom_tool_call: payload.name text, payload.input text, \
         payload.call_id text",
        "type=response_item & payload.type=custom_tool_call_output: payload.call_id text, \
         payload.output text|list",
        "type=response_item & payload.type=reasoning: payload.summary list, payload.content list|null?, \
         payload.encrypted_content text|null?",
        "type=event_msg: payload.type text",
        "type=event_msg & payload.type=user_message: payload.message text",
        "type=event_msg & payload.type=agent_message: payload.message text",
        "type=event_msg & payload.type=token_count: payload.info object|null, \
         payload.info.total_token_usage.input_tokens number?, \
         payload.info.last_token_usage.total_tokens number?",
        "type=compacted: payload.message text",
    ],
    injected: &[
        ("<environment_context>", "</environment_context>"),
        ("<user_instructions>", "</user_instructions>"),
        ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
    ],
    user: UserWords {
        messages: &[
            ("Warning: apply_patch was requested via ", "Use the apply_patch tool instead of exec_command."),
            ("Warning: The maximum number of unified exec processes you can keep open is ", ""),
            ("Warning: Your account was flagged for potentially high-risk cyber activity", ""),
        ],
        ..UserWords::NONE
    },
    changing_lines: &["Chunk ID: ", "Wall time: "],
    effects: &["payload"],
    effects_call: Some("payload.call_id"),
    calls: words::WORDS,
    usage: words::USAGE,
    session: words::SESSION,
    ..FormatInfo::BLANK
};

/// The types of lines that wrap a payload.
const LINE_TYPES: &[&str] = &[
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "world_state",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
    "security_risk_score",
    "token_usage_record",
    "retained_context",
    "realtime_item",
];

impl Format for Codex {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        if head.text().trim_start().lines().next().is_some_and(|line| line.trim() == "{") {
            return head.document().map_or(Sniff::No, |document| sniff_document(document));
        }
        let objects = head.objects();
        let Some(first) = objects.first() else { return Sniff::No };
        if is_bare_header(first) {
            return Sniff::Certain;
        }
        let ours = objects.iter().filter(|object| is_line(object)).count();
        match (is_session_meta(first), ours == objects.len()) {
            (true, _) => Sniff::Certain,
            // The end of a rollout, which begins at any line.
            (false, true) => Sniff::Likely,
            (false, false) => Sniff::No,
        }
    }

    fn reader(&self, want: Wanted) -> Box<dyn Reader> {
        Box::new(read::CodexReader::new(want))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::CodexWriter::new(outline))
    }
}

/// Whether an object is a line of the current generation.
fn is_line(object: &Object<'_>) -> bool {
    let known = object.peek_str("type").is_some_and(|name| LINE_TYPES.contains(&name.as_ref()));
    known && object.has("timestamp") && object.peek("payload").is_some_and(|payload| payload.starts_with('{'))
}

fn is_session_meta(object: &Object<'_>) -> bool {
    let id = object.peek("payload").and_then(Object::parse).and_then(|payload| payload.peek_str("id"));
    is_line(object) && id.is_some() && object.peek_str("type").as_deref() == Some("session_meta")
}

/// Whether an object is the first line of the previous generation: a header without a type.
fn is_bare_header(object: &Object<'_>) -> bool {
    let text = |key: &str| object.peek_str(key).is_some();
    let known = object.keys().all(|key| matches!(key, "id" | "timestamp" | "instructions" | "git" | crate::carry::KEY));
    known && text("id") && text("timestamp") && object.has("instructions")
}

/// How certainly this is a document of the first generation.
fn sniff_document(mut document: Object<'_>) -> Sniff {
    let Some(session) = document.open("session") else { return Sniff::No };
    let named = session.peek_str("id").is_some() && session.peek_str("timestamp").is_some();
    let items = document.peek("items").is_some_and(|items| items.starts_with('['));
    match (named && items, session.has("instructions")) {
        (true, true) => Sniff::Certain,
        (true, false) => Sniff::Likely,
        (false, _) => Sniff::No,
    }
}
