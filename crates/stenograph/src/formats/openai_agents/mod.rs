//! OpenAI Agents SDK: the items of a session in its database, one per line. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks, TEXT,
    Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{DatabaseTables, Role, RowTable, SessionTable};

static INFO: FormatInfo = FormatInfo {
    name: "openai-agents",
    agent: "openai-agents",
    title: "OpenAI Agents SDK's sessions, the rows of its database",
    framing: Framing::Lines,
    extension: "jsonl",
    database: Some(DatabaseTables {
        owner: None,
        session: SessionTable { table: "agent_sessions", key: "session_id", title: None, updated: "updated_at" },
        rows: &[RowTable { columns: &["message_data"], ..RowTable::of("agent_messages", "session_id", &["id"]) }],
    }),
    spec: "openai/openai-agents-python, SQLiteSession, what release 0.24 writes",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    spelling: &["table", "message_data.type", "message_data.role"],
    ..FormatInfo::BLANK
};

/// The format `openai-agents`.
pub static OPENAI_AGENTS: MappedFormat =
    MappedFormat { info: &INFO, sniff, map_of, kind: "message_data.type", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    if word("table")? == "agent_sessions" {
        return Some(&SESSION);
    }
    match (word("message_data.type").as_deref(), word("message_data.role").as_deref()) {
        (None | Some("message"), Some("user")) => Some(&USER),
        (None | Some("message"), Some("assistant")) => Some(&ASSISTANT),
        (None | Some("message"), Some("system")) => Some(&SYSTEM),
        (None | Some("message"), Some("developer")) => Some(&DEVELOPER),
        (Some("reasoning"), _) => Some(&REASONING),
        (Some("function_call"), _) => Some(&CALL),
        (Some("function_call_output"), _) => Some(&RESULT),
        _ => Some(&UNKNOWN),
    }
}

static SESSION: RecordMap = RecordMap {
    fields: &[(RecordField::Session, "session_id"), (RecordField::Time, "created_at")],
    parts: &[PartMap::Stated("session")],
    ..RecordMap::NONE
};

const ITEM: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "session_id"),
        (RecordField::Time, "created_at"),
        (RecordField::Id, "message_data.id"),
    ],
    parts: &[PartMap::Content("message_data.content", TEXT)],
    ..RecordMap::NONE
};

static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..ITEM };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..ITEM };
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..ITEM };
static DEVELOPER: RecordMap = RecordMap { speaks: Speaks::As(Role::Developer), ..ITEM };
static UNKNOWN: RecordMap = RecordMap { parts: &[PartMap::Unknown("message_data.type")], ..ITEM };
static REASONING: RecordMap = RecordMap {
    // An encrypted thought has an empty summary.
    parts: &[PartMap::Content("message_data.summary", TEXT)],
    speaks: Speaks::Thinking,
    ..ITEM
};
static CALL: RecordMap = RecordMap {
    parts: &[PartMap::Call(CallMap {
        id: "message_data.call_id",
        name: "message_data.name",
        input: InputAt::Text("message_data.arguments"),
    })],
    ..ITEM
};
static RESULT: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "message_data.call_id",
        name: "",
        content: "message_data.output",
        texts: TEXT,
        error: ErrorAt::Nowhere,
    })],
    ..ITEM
};

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is = |object: &Object<'_>, table: &str, keys: &[&str]| {
        object.peek_str("table").as_deref() == Some(table) && keys.iter().all(|key| object.has(key))
    };
    let is_session = |object: &Object<'_>| is(object, "agent_sessions", &["session_id", "updated_at"]);
    let is_item = |object: &Object<'_>| is(object, "agent_messages", &["session_id", "message_data"]);
    match objects.first() {
        Some(first) if is_session(first) => Sniff::Certain,
        Some(_) if objects.iter().all(is_item) => Sniff::Certain,
        _ => Sniff::No,
    }
}
