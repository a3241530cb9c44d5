//! `codex exec --json`: what a run of Codex prints, one object per line. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks, TEXT,
    Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, ExitCodeAt, Role, TotalPaths, UsageWords};

static INFO: FormatInfo = FormatInfo {
    name: "codex-exec",
    agent: "codex",
    title: "What `codex exec --json` prints",
    framing: Framing::Lines,
    extension: "jsonl",
    resume: Some("codex resume {session}"),
    spec: "openai/codex, codex-rs/exec, what release 0.166 prints",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    abridged: true,
    spelling: &["type", "item.type"],
    calls: CallWords { exit_codes: &[ExitCodeAt::Field("item.exit_code")], ..CallWords::NONE },
    usage: UsageWords {
        total: Some(TotalPaths {
            facts: &["turn.completed"],
            object: "usage",
            input: "input_tokens",
            output: "output_tokens",
            cache_read: "cached_input_tokens",
            cache_write: "cache_write_input_tokens",
            reasoning: "reasoning_output_tokens",
            cost: "",
        }),
        ..UsageWords::NONE
    },
    ..FormatInfo::BLANK
};

/// The format `codex-exec`.
pub static CODEX_EXEC: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "type", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    let item = word("item.type").unwrap_or_default();
    match (word("type")?.as_str(), item.as_str()) {
        ("thread.started", _) => Some(&THREAD),
        ("turn.started" | "turn.completed", _) => Some(&TURN),
        ("turn.failed", _) => Some(&TURN_FAILED),
        ("error", _) => Some(&ERROR),
        ("item.completed", "agent_message") => Some(&ANSWER),
        ("item.completed", "reasoning") => Some(&REASONING),
        ("item.completed", "error") => Some(&ITEM_ERROR),
        ("item.started", "command_execution") => Some(&COMMAND),
        ("item.completed", "command_execution") => Some(&OUTPUT),
        ("item.started", "mcp_tool_call") => Some(&TOOL),
        ("item.completed", "mcp_tool_call") => Some(&TOOL_RESULT),
        ("item.completed", "file_change") => Some(&FILES),
        ("item.completed", "web_search") => Some(&SEARCH),
        // The beginning and the progress of an item, which its end repeats.
        ("item.started" | "item.updated", "file_change" | "web_search" | "todo_list")
        | ("item.updated", "command_execution" | "mcp_tool_call") => Some(&PROGRESS),
        ("item.completed", "todo_list") => Some(&TODO),
        _ => None,
    }
}

static THREAD: RecordMap = RecordMap {
    fields: &[(RecordField::Session, "thread_id")],
    parts: &[PartMap::Stated("session")],
    ..RecordMap::NONE
};
static TURN: RecordMap = RecordMap { parts: &[PartMap::Named("type")], ..RecordMap::NONE };
static TURN_FAILED: RecordMap = RecordMap { parts: &[PartMap::Failed("", "error.message")], ..RecordMap::NONE };
static ERROR: RecordMap = RecordMap { parts: &[PartMap::Failed("", "message")], ..RecordMap::NONE };

const ITEM: RecordMap = RecordMap { fields: &[(RecordField::Id, "item.id")], ..RecordMap::NONE };
static ANSWER: RecordMap =
    RecordMap { parts: &[PartMap::Content("item.text", TEXT)], speaks: Speaks::As(Role::Assistant), ..ITEM };
static REASONING: RecordMap = RecordMap { parts: &[PartMap::Thinking("item.text", TEXT)], ..ITEM };
static ITEM_ERROR: RecordMap = RecordMap { parts: &[PartMap::Failed("", "item.message")], ..ITEM };
static PROGRESS: RecordMap = RecordMap { parts: &[PartMap::Named("type")], ..RecordMap::NONE };
static TODO: RecordMap = RecordMap { parts: &[PartMap::Stated("todo")], ..ITEM };

/// An item is a call when it starts and a result when it is complete.
static COMMAND: RecordMap = RecordMap {
    parts: &[PartMap::Call(CallMap {
        id: "item.id",
        name: "=item.type",
        input: InputAt::Fields(&[("command", "item.command")]),
    })],
    ..RecordMap::NONE
};

const RESULT: ResultMap = ResultMap {
    call: "item.id",
    name: "",
    content: "item.aggregated_output",
    texts: TEXT,
    error: ErrorAt::Word("item.status", &["failed", "declined"], &["completed"]),
};

static OUTPUT: RecordMap = RecordMap { parts: &[PartMap::Result(RESULT)], ..RecordMap::NONE };
static TOOL: RecordMap = RecordMap {
    parts: &[PartMap::Call(CallMap { id: "item.id", name: "item.tool", input: InputAt::Maybe("item.arguments") })],
    ..RecordMap::NONE
};
static TOOL_RESULT: RecordMap =
    RecordMap { parts: &[PartMap::Result(ResultMap { content: "item.result.content", ..RESULT })], ..RecordMap::NONE };
static FILES: RecordMap = RecordMap {
    parts: &[
        PartMap::Call(CallMap {
            id: "item.id",
            name: "=item.type",
            input: InputAt::Fields(&[("changes", "item.changes")]),
        }),
        PartMap::Answer(ResultMap { call: "", content: "item.status", error: RESULT.error, ..RESULT }, ""),
    ],
    ..RecordMap::NONE
};
static SEARCH: RecordMap = RecordMap {
    parts: &[PartMap::Call(CallMap {
        id: "item.id",
        name: "=item.type",
        input: InputAt::Fields(&[("query", "item.query")]),
    })],
    ..RecordMap::NONE
};

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_event = |object: &Object<'_>| match object.peek_str("type").as_deref() {
        Some("thread.started") => object.has("thread_id"),
        Some("turn.started") => object.keys().count() == 1,
        Some("turn.completed") => object.has("usage"),
        Some("turn.failed") => object.has("error"),
        Some("error") => object.has("message"),
        Some("item.started" | "item.updated" | "item.completed") => {
            object.peek_object("item").is_some_and(|item| item.has("id") && item.has("type"))
        }
        _ => false,
    };
    let starts = |object: &Object<'_>| object.peek_str("type").as_deref() == Some("thread.started");
    match objects.first() {
        Some(first) if starts(first) && objects.iter().all(is_event) => Sniff::Certain,
        Some(_) if objects.iter().any(|object| object.has("item")) && objects.iter().all(is_event) => Sniff::Likely,
        _ => Sniff::No,
    }
}
