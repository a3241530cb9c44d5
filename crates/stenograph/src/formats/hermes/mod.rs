//! Hermes Agent: the rows of a session in its database, one per line. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, InputHas, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks,
    TEXT, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, DatabaseTables, ExitCodeAt, Role, RowTable, SessionTable, SessionWords, UsageWords};

const NAME: &str = "hermes";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "Hermes Agent's sessions, the rows of its database",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &["{HERMES_HOME|~/.hermes}/state.db"],
    database: Some(DatabaseTables {
        owner: None,
        session: SessionTable { table: "sessions", key: "id", title: Some("title"), updated: "started_at" },
        rows: &[
            RowTable { columns: &["role", "content"], ..RowTable::of("messages", "session_id", &["id"]) },
            RowTable::of("session_model_usage", "session_id", &["first_seen", "model", "task"]),
        ],
    }),
    resume: Some("hermes chat --resume {session}"),
    spec: "what release 0.19 writes",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    spelling: &["table", "role"],
    restated: &["reasoning", "api_content"],
    totals: &["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"],
    calls: CallWords { exit_codes: &[ExitCodeAt::Json("exit_code")], ..CallWords::NONE },
    usage: UsageWords { calls: &["api_call_count"], ..UsageWords::NONE },
    session: SessionWords { instructions: &["system_prompt"], ..SessionWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `hermes`.
pub static HERMES: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "table", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match (word("table")?.as_str(), word("role").as_deref()) {
        ("sessions", _) => Some(&SESSION),
        ("messages", Some("user")) => Some(&USER),
        ("messages", Some("assistant")) => Some(&ASSISTANT),
        ("messages", Some("system")) => Some(&SYSTEM),
        ("messages", Some("tool")) => Some(&RESULT),
        ("messages", _) => Some(&UNKNOWN),
        ("session_model_usage", _) => Some(&USAGE),
        _ => None,
    }
}

static SESSION: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "id"),
        (RecordField::Seconds, "started_at"),
        (RecordField::Model, "model"),
        (RecordField::Cwd, "cwd"),
        (RecordField::Branch, "git_branch"),
    ],
    parts: &[PartMap::Stated("session"), PartMap::Fact("title", "title", &[])],
    ..RecordMap::NONE
};

const ROW: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "session_id"),
        (RecordField::IdNumber, "id"),
        (RecordField::Seconds, "timestamp"),
        (RecordField::StopReason, "finish_reason"),
    ],
    parts: &[
        PartMap::Thinking("reasoning_content", TEXT),
        PartMap::Content("content{}", TEXT),
        PartMap::Calls(
            "tool_calls",
            CallMap { id: "id", name: "function.name", input: InputAt::Text("function.arguments") },
        ),
    ],
    ..RecordMap::NONE
};

static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..ROW };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..ROW };
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..ROW };
static UNKNOWN: RecordMap = RecordMap { parts: &[PartMap::Unknown("role")], ..ROW };
static RESULT: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "tool_call_id",
        name: "tool_name",
        content: "content{}",
        texts: TEXT,
        error: ErrorAt::Nowhere,
    })],
    ..ROW
};

/// The calls of one model for one purpose, summed up. The row of the session sums these up again.
static USAGE: RecordMap = RecordMap {
    fields: &[(RecordField::Session, "session_id"), (RecordField::Seconds, "last_seen"), (RecordField::Model, "model")],
    usage: Some(UsageMap {
        input: &["input_tokens"],
        output: &["output_tokens"],
        cache_read: &["cache_read_tokens"],
        cache_write: &["cache_write_tokens"],
        reasoning: &["reasoning_tokens"],
        input_has: InputHas::NoCache,
        ..UsageMap::NONE
    }),
    parts: &[PartMap::Stated("usage")],
    ..RecordMap::NONE
};

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is = |object: &Object<'_>, table: &str, keys: &[&str]| {
        object.peek_str("table").as_deref() == Some(table) && keys.iter().all(|key| object.has(key))
    };
    let is_session = |object: &Object<'_>| is(object, "sessions", &["id", "source", "started_at", "api_call_count"]);
    let is_message = |object: &Object<'_>| is(object, "messages", &["session_id", "tool_call_id", "finish_reason"]);
    match objects.first() {
        Some(first) if is_session(first) => Sniff::Certain,
        Some(_) if objects.iter().all(is_message) => Sniff::Likely,
        _ => Sniff::No,
    }
}
