//! The tables of OpenCode's database, which its forks have too, and the records that their rows are. It names no agent.

use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::formats::record_map::{
    CallMap, ErrorAt, InputAt, InputHas, MappedPlace, OutputHas, PartMap, RecordField, RecordMap, ResultMap, Speaks,
    TEXT, UsageMap, Words,
};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{
    CallWords, DatabaseTables, ExitCodeAt, LowerTable, Role, RowFolder, RowTable, SessionTable, UsageWords, UserWords,
    Verdict,
};

/// What all agents with these tables have in common. The name, the homes and the like are missing.
pub(super) const INFO: FormatInfo = FormatInfo {
    framing: Framing::Lines,
    extension: "jsonl",
    database: Some(DATABASE),
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    spelling: &["table", "database.agent", "data.role", "data.type"],
    totals: &["cost", "tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write"],
    user: UserWords { flags: &["data.synthetic"], ..UserWords::NONE },
    calls: CallWords {
        exit_codes: &[ExitCodeAt::Field("data.state.metadata.exit")],
        verdict_prefixes: &[
            ("The user rejected permission to use this specific tool call", Verdict::Denied),
            ("The user has specified a rule which prevents you from using this specific tool call", Verdict::Refused),
        ],
        ..CallWords::NONE
    },
    usage: UsageWords { do_forks_rename: true, ..UsageWords::NONE },
    ..FormatInfo::BLANK
};

/// The session of a sub-agent has a parent.
const PARENT: &[(&str, &str)] = &[("parent_id", "parent_id")];

pub(super) const DATABASE: DatabaseTables = DatabaseTables {
    owner: None,
    session: SessionTable { table: "session", key: "id", title: Some("title"), updated: "time_updated" },
    rows: &[
        RowTable {
            columns: &["data"],
            inherits: PARENT,
            below: Some(LowerTable {
                table: "part",
                session: "session_id",
                upper: "message_id",
                upper_key: "id",
                order: &["id"],
                columns: &["data"],
                inherits: &[("role", "data.role"), ("model", "data.modelID"), ("parent_id", "session.parent_id")],
            }),
            ..RowTable::of("message", "session_id", &["time_created", "id"])
        },
        RowTable { inherits: PARENT, ..RowTable::of("todo", "session_id", &["position"]) },
        // The messages of a generation that is not in use yet.
        RowTable { inherits: PARENT, ..RowTable::of("session_message", "session_id", &["id"]) },
    ],
};

/// The files from before the database: the same fields, with the ids in each file.
pub(super) const FOLDER: RowFolder = RowFolder {
    name: "storage",
    columns: &[
        (
            "session",
            &[
                ("id", "id"),
                ("projectID", "project_id"),
                ("parentID", "parent_id"),
                ("slug", "slug"),
                ("directory", "directory"),
                ("title", "title"),
                ("version", "version"),
            ],
        ),
        ("message", &[("id", "id"), ("sessionID", "session_id")]),
        ("part", &[("id", "id"), ("messageID", "message_id"), ("sessionID", "session_id")]),
    ],
    created: &["time.created", "time.start", "state.time.start"],
};

/// How sure the agent whose databases have this owner is that these are its rows.
pub(super) fn sniff(head: &Head<'_>, owner: Option<&str>) -> Sniff {
    let objects = head.objects();
    let Some(first) = objects.first() else { return Sniff::No };
    let is_session = first.peek_str("table").as_deref() == Some("session")
        && ["id", "project_id", "directory", "version"].iter().all(|key| first.has(key));
    let stated = first.peek_object("database").and_then(|database| database.peek_str("agent").map(String::from));
    match is_session && stated.as_deref() == owner {
        true => Sniff::Certain,
        false if owner.is_none() && objects.iter().all(is_row) => Sniff::Likely,
        false => Sniff::No,
    }
}

pub(super) fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    let is = |path: &str, value: &str| word(path).as_deref() == Some(value);
    match word("table")?.as_str() {
        "session" | "message" | "part" | "todo" if word("unread").is_some() => Some(&UNREAD),
        "session" => Some(&SESSION),
        "message" if is("data.role", "user") => Some(&QUESTION),
        "message" if is("data.role", "assistant") && word("data.error.name").is_some() => Some(&FAILED_ANSWER),
        "message" if is("data.role", "assistant") => Some(&ANSWER),
        "part" => Some(part(word)),
        "todo" => Some(&TODO),
        "message" | "session_message" => Some(&UNKNOWN),
        _ => None,
    }
}

fn part(word: &Words<'_>) -> &'static RecordMap {
    let is = |path: &str, value: &str| word(path).as_deref() == Some(value);
    match word("data.type").as_deref() {
        Some("text") if is("message.role", "user") => &USER_TEXT,
        Some("text") if is("message.role", "assistant") => &ASSISTANT_TEXT,
        Some("reasoning") => &REASONING,
        Some("tool") if is("data.state.status", "completed") => &DONE,
        Some("tool") if is("data.state.status", "error") => &FAILED,
        Some("tool") => &CALLED,
        Some("retry") => &RETRY,
        Some("compaction") => &COMPACTION,
        Some("subtask") => &SUBTASK,
        Some("agent" | "file" | "patch" | "snapshot" | "step-start" | "step-finish") => &FACT,
        _ => &UNKNOWN_PART,
    }
}

/// Whether an object is a row of one of the tables with messages.
fn is_row(object: &Object<'_>) -> bool {
    matches!(object.peek_str("table").as_deref(), Some("message" | "part"))
        && ["id", "session_id", "time_created", "time_updated", "data"].iter().all(|key| object.has(key))
}

const SESSION_ID: (RecordField, &str) = (RecordField::Session, "session_id");
/// The session of a sub-agent has a parent.
const OUTER: (RecordField, &str) = (RecordField::OuterSession, "session.parent_id");
const CREATED: (RecordField, &str) = (RecordField::Millis, "time_created");

static SESSION: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "id"),
        (RecordField::OuterSession, "parent_id"),
        CREATED,
        (RecordField::Cwd, "directory"),
        (RecordField::Version, "version"),
        (RecordField::Model, "model.id"),
    ],
    parts: &[PartMap::Stated("session"), PartMap::Fact("title", "title", &[])],
    ..RecordMap::NONE
};

static QUESTION: RecordMap = RecordMap {
    fields: &[SESSION_ID, OUTER, CREATED, (RecordField::Group, "id")],
    parts: &[PartMap::Stated("message")],
    ..RecordMap::NONE
};

/// One model call. Its parts state its text; `step-finish` repeats its usage.
const CALLED_MODEL: RecordMap = RecordMap {
    fields: &[
        SESSION_ID,
        OUTER,
        CREATED,
        (RecordField::Group, "id"),
        (RecordField::Model, "data.modelID"),
        (RecordField::Cwd, "data.path.cwd"),
        (RecordField::StopReason, "data.finish"),
    ],
    usage: Some(UsageMap {
        input: &["data.tokens.input"],
        output: &["data.tokens.output"],
        cache_read: &["data.tokens.cache.read"],
        cache_write: &["data.tokens.cache.write"],
        reasoning: &["data.tokens.reasoning"],
        cost: &["data.cost"],
        input_has: InputHas::NoCache,
        output_has: OutputHas::NoThinking,
    }),
    parts: &[PartMap::Stated("answer")],
    ..RecordMap::NONE
};

static ANSWER: RecordMap = CALLED_MODEL;
static FAILED_ANSWER: RecordMap =
    RecordMap { parts: &[PartMap::Stated("answer"), PartMap::Failed("", "data.error.data.message")], ..CALLED_MODEL };

static TODO: RecordMap =
    RecordMap { fields: &[SESSION_ID, OUTER, CREATED], parts: &[PartMap::Stated("todo")], ..RecordMap::NONE };

static UNKNOWN: RecordMap = RecordMap {
    fields: &[SESSION_ID, OUTER, (RecordField::Id, "id"), CREATED],
    parts: &[PartMap::Unknown("table")],
    ..RecordMap::NONE
};

/// A file that is not JSON.
static UNREAD: RecordMap = RecordMap {
    fields: &[SESSION_ID, (RecordField::Id, "id")],
    parts: &[PartMap::Unread("unread")],
    ..RecordMap::NONE
};

const PART: RecordMap = RecordMap {
    fields: &[
        SESSION_ID,
        (RecordField::OuterSession, "message.parent_id"),
        (RecordField::Id, "id"),
        CREATED,
        (RecordField::Group, "message_id"),
    ],
    ..RecordMap::NONE
};

static FACT: RecordMap = RecordMap { parts: &[PartMap::Named("data.type")], ..PART };
static UNKNOWN_PART: RecordMap = RecordMap { parts: &[PartMap::Unknown("data.type")], ..PART };

const SAID: RecordMap = RecordMap { parts: &[PartMap::Content("data.text", TEXT)], ..PART };
static USER_TEXT: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..SAID };
static ASSISTANT_TEXT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..SAID };
static REASONING: RecordMap = RecordMap { speaks: Speaks::Thinking, ..SAID };

const CALL: PartMap =
    PartMap::Call(CallMap { id: "data.callID", name: "data.tool", input: InputAt::Json("data.state.input") });

const RESULT: ResultMap = ResultMap {
    call: "",
    name: "",
    content: "data.state.output",
    texts: TEXT,
    error: ErrorAt::Word("data.state.status", &["error"], &["completed"]),
};

/// What the tool states about its result, such as an exit code.
const DETAILS: &str = "data.state.metadata";

static CALLED: RecordMap = RecordMap { parts: &[CALL], ..PART };
/// The row is from when the model made the call.
const ANSWERED: RecordMap = RecordMap {
    fields: &[
        SESSION_ID,
        (RecordField::Id, "id"),
        CREATED,
        (RecordField::Group, "message_id"),
        (RecordField::ResultMillis, "data.state.time.end"),
    ],
    parts: &[CALL, PartMap::Answer(RESULT, DETAILS)],
    ..RecordMap::NONE
};
static DONE: RecordMap = ANSWERED;
static FAILED: RecordMap = RecordMap {
    parts: &[CALL, PartMap::Answer(ResultMap { content: "data.state.error", ..RESULT }, DETAILS)],
    ..ANSWERED
};

static RETRY: RecordMap = RecordMap { parts: &[PartMap::Failed("data.error.name", "data.error.data.message")], ..PART };
/// The agent asks for a summary, which the next answer is.
static COMPACTION: RecordMap = RecordMap { parts: &[PartMap::Compacted("")], ..PART };
static SUBTASK: RecordMap = RecordMap { parts: &[PartMap::Fact("subtask", "data.prompt", &[])], ..PART };
