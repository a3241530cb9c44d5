//! goose: the rows of a conversation in its database, one per line. See `README.md` beside this file.

use super::record_map::{
    CallMap, ElementMap, ErrorAt, InputAt, InputHas, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap,
    ResultMap, Speaks, TEXT, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, DatabaseTables, ExitCodeAt, Role, RowTable, SessionTable, UserWords};

static INFO: FormatInfo = FormatInfo {
    name: "goose",
    agent: "goose",
    title: "goose's sessions, the rows of its database",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &["{XDG_DATA_HOME|~/.local/share}/goose/sessions/sessions.db"],
    database: Some(DatabaseTables {
        owner: None,
        session: SessionTable { table: "sessions", key: "id", title: Some("name"), updated: "updated_at" },
        rows: &[
            RowTable { columns: &["role", "content_json"], ..RowTable::of("messages", "session_id", &["id"]) },
            RowTable::of("usage_ledger", "session_id", &["id"]),
        ],
    }),
    resume: Some("goose session --resume --session-id {session}"),
    spec: "what release 1.52 writes",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    spelling: &["table", "role", "content_json.type"],
    totals: &[
        "accumulated_input_tokens",
        "accumulated_output_tokens",
        "accumulated_total_tokens",
        "accumulated_cache_read_tokens",
        "accumulated_cache_write_tokens",
        "accumulated_cost",
    ],
    user: UserWords { flags: &["metadata_json.turnContext"], ..UserWords::NONE },
    calls: CallWords {
        exit_codes: &[ExitCodeAt::Field("content_json.toolResult.value.structuredContent.exit_code")],
        ..CallWords::NONE
    },
    ..FormatInfo::BLANK
};

/// The format `goose`.
pub static GOOSE: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "table", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match (word("table")?.as_str(), word("role").as_deref()) {
        ("sessions", _) => Some(&SESSION),
        ("messages", Some("user")) => Some(&USER),
        ("messages", Some("assistant")) => Some(&ASSISTANT),
        ("messages", _) => Some(&UNKNOWN),
        ("usage_ledger", _) => Some(&USAGE),
        _ => None,
    }
}

static SESSION: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "id"),
        (RecordField::Time, "created_at"),
        (RecordField::Cwd, "working_dir"),
        (RecordField::Model, "model_config_json.model_name"),
    ],
    parts: &[PartMap::Stated("session"), PartMap::Fact("title", "name", &[])],
    ..RecordMap::NONE
};

const ROW: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "session_id"),
        (RecordField::Id, "message_id"),
        (RecordField::Seconds, "created_timestamp"),
    ],
    ..RecordMap::NONE
};

static UNKNOWN: RecordMap = RecordMap { parts: &[PartMap::Unknown("role")], ..ROW };

const MESSAGE: RecordMap = RecordMap { parts: &[PartMap::List("content_json", ELEMENTS)], ..ROW };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..MESSAGE };

const RESULT: ResultMap = ResultMap {
    call: "id",
    name: "",
    content: "toolResult.value.content",
    texts: TEXT,
    error: ErrorAt::Flag("toolResult.value.isError"),
};

const ELEMENTS: &[ElementMap] = &[
    ElementMap::Thinking(&[("type", "thinking")], "thinking"),
    ElementMap::Call(
        &[("type", "toolRequest"), ("toolCall.status", "success")],
        CallMap { id: "id", name: "toolCall.value.name", input: InputAt::Maybe("toolCall.value.arguments") },
    ),
    ElementMap::Result(
        &[("type", "toolResponse"), ("toolResult.status", "error")],
        ResultMap { content: "toolResult.error", error: ErrorAt::Word("toolResult.status", &["error"], &[]), ..RESULT },
    ),
    ElementMap::Result(&[("type", "toolResponse")], RESULT),
];

/// One per model call, also those that write the summary of a compaction. A message repeats the usage of its call.
static USAGE: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "session_id"),
        (RecordField::Seconds, "created_timestamp"),
        (RecordField::Model, "model"),
    ],
    usage: Some(UsageMap {
        input: &["input_tokens"],
        output: &["output_tokens"],
        cache_read: &["cache_read_tokens"],
        cache_write: &["cache_write_tokens"],
        cost: &["cost"],
        input_has: InputHas::Cache,
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
    let is_session = |object: &Object<'_>| is(object, "sessions", &["id", "working_dir", "goose_mode"]);
    let is_message = |object: &Object<'_>| is(object, "messages", &["message_id", "session_id", "content_json"]);
    match objects.first() {
        Some(first) if is_session(first) => Sniff::Certain,
        Some(_) if objects.iter().all(is_message) => Sniff::Likely,
        _ => Sniff::No,
    }
}
