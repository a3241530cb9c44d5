//! The tables of OpenCode's database, which its forks have too, and the records that their rows are. An exported conversation has
//! the same records with other paths. It names no agent.

use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::formats::record_map::{
    CallMap, ErrorAt, InputAt, InputHas, MappedPlace, OutputHas, PartMap, RecordField, RecordMap, ResultMap, Speaks,
    TEXT, UsageMap, Words,
};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{
    CallWords, DatabaseTables, ExitCodeAt, LowerTable, Role, RowFolder, RowTable, SessionTable, SessionWords,
    UsageWords, UserWords, Verdict,
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
    session: SessionWords { moved_from: &["metadata.steno.format"], ..SessionWords::NONE },
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
    match word("table")?.as_str() {
        "session" | "message" | "part" | "todo" if word("unread").is_some() => Some(&UNREAD),
        "session" => Some(&SESSION),
        "message" => Some(rows::message(word).unwrap_or(&UNKNOWN)),
        "part" => Some(rows::part(word, word("message.role").as_deref())),
        "todo" => Some(&TODO),
        "session_message" => Some(&UNKNOWN),
        _ => None,
    }
}

/// Whether an object is a row of one of the tables with messages.
fn is_row(object: &Object<'_>) -> bool {
    matches!(object.peek_str("table").as_deref(), Some("message" | "part"))
        && ["id", "session_id", "time_created", "time_updated", "data"].iter().all(|key| object.has(key))
}

static SESSION: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "id"),
        (RecordField::OuterSession, "parent_id"),
        (RecordField::ForkSession, "metadata.steno.session"),
        (RecordField::Millis, "time_created"),
        (RecordField::Cwd, "directory"),
        (RecordField::Version, "version"),
        (RecordField::Model, "model.id"),
    ],
    parts: &[PartMap::Stated("session"), PartMap::Fact("title", "title", &[])],
    ..RecordMap::NONE
};

const ROW: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "session_id"),
        // The session of a sub-agent has a parent.
        (RecordField::OuterSession, "session.parent_id"),
        (RecordField::Id, "id"),
        (RecordField::Millis, "time_created"),
    ],
    ..RecordMap::NONE
};

static TODO: RecordMap = RecordMap { parts: &[PartMap::Stated("todo")], ..ROW };

static UNKNOWN: RecordMap = RecordMap { parts: &[PartMap::Unknown("table")], ..ROW };

/// A file that is not JSON.
static UNREAD: RecordMap = RecordMap { parts: &[PartMap::Unread("unread")], ..ROW };

// What the tool states about its result, such as an exit code.
macro_rules! details {
    ($part:literal) => {
        concat!($part, "state.metadata")
    };
}

// The tables of messages and parts whose fields have these paths. `$message` and `$part` come before the names of fields that both
// spellings have.
macro_rules! records {
    ($module:ident, $message:literal $message_fields:tt, $part:literal $part_fields:tt, $inner:tt) => {
        pub(super) mod $module {
            use super::*;

            /// The table of a message; `None` if its speaker is unknown.
            pub fn message(word: &Words<'_>) -> Option<&'static RecordMap> {
                match word(concat!($message, "role")).as_deref() {
                    Some("user") => Some(&QUESTION),
                    Some("assistant") if word(concat!($message, "error.name")).is_some() => Some(&FAILED_ANSWER),
                    Some("assistant") => Some(&ANSWER),
                    _ => None,
                }
            }

            /// The table of a part of a message of this speaker.
            pub fn part(word: &Words<'_>, role: Option<&str>) -> &'static RecordMap {
                let status = || word(concat!($part, "state.status"));
                match (word(concat!($part, "type")).as_deref(), role) {
                    (Some("text"), Some("user")) => &USER_TEXT,
                    (Some("text"), Some("assistant")) => &ASSISTANT_TEXT,
                    (Some("reasoning"), _) => &REASONING,
                    (Some("tool"), _) => match status().as_deref() {
                        Some("completed") => &DONE,
                        Some("error") => &FAILED,
                        _ => &CALLED,
                    },
                    (Some("retry"), _) => &RETRY,
                    (Some("compaction"), _) => &COMPACTION,
                    (Some("subtask"), _) => &SUBTASK,
                    (Some("agent" | "file" | "patch" | "snapshot" | "step-start" | "step-finish"), _) => &FACT,
                    _ => &UNKNOWN_PART,
                }
            }

            records!(@message $message $message_fields $inner);
            records!(@part $part $part_fields);
        }
    };
    (@message $message:literal [$($field:tt)*] [$($inner:expr)?]) => {
        static QUESTION: RecordMap =
            RecordMap { fields: &[$($field)*], parts: &[PartMap::Stated("message"), $($inner)?], ..RecordMap::NONE };


        /// One model call. Its parts state its text; `step-finish` repeats its usage.
        const CALLED_MODEL: RecordMap = RecordMap {
            fields: &[
                $($field)*
                (RecordField::Model, concat!($message, "modelID")),
                (RecordField::Cwd, concat!($message, "path.cwd")),
                (RecordField::StopReason, concat!($message, "finish")),
            ],
            usage: Some(UsageMap {
                input: &[concat!($message, "tokens.input")],
                output: &[concat!($message, "tokens.output")],
                cache_read: &[concat!($message, "tokens.cache.read")],
                cache_write: &[concat!($message, "tokens.cache.write")],
                reasoning: &[concat!($message, "tokens.reasoning")],
                cost: &[concat!($message, "cost")],
                input_has: InputHas::NoCache,
                output_has: OutputHas::NoThinking,
            }),
            parts: &[PartMap::Stated("answer"), $($inner)?],
            ..RecordMap::NONE
        };

        static ANSWER: RecordMap = CALLED_MODEL;
        static FAILED_ANSWER: RecordMap = RecordMap {
            parts: &[PartMap::Stated("answer"), PartMap::Failed("", concat!($message, "error.data.message")), $($inner)?],
            ..CALLED_MODEL
        };
    };
    (@part $part:literal [$($field:tt)*]) => {
        const PART: RecordMap = RecordMap { fields: &[$($field)*], ..RecordMap::NONE };

        static FACT: RecordMap = RecordMap { parts: &[PartMap::Named(concat!($part, "type"))], ..PART };
        static UNKNOWN_PART: RecordMap = RecordMap { parts: &[PartMap::Unknown(concat!($part, "type"))], ..PART };

        const SAID: RecordMap = RecordMap { parts: &[PartMap::Content(concat!($part, "text"), TEXT)], ..PART };
        static USER_TEXT: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..SAID };
        static ASSISTANT_TEXT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..SAID };
        static REASONING: RecordMap = RecordMap { speaks: Speaks::Thinking, ..SAID };

        const CALL: PartMap = PartMap::Call(CallMap {
            id: concat!($part, "callID"),
            name: concat!($part, "tool"),
            input: InputAt::Json(concat!($part, "state.input")),
        });

        const RESULT: ResultMap = ResultMap {
            call: "",
            name: "",
            content: concat!($part, "state.output"),
            texts: TEXT,
            error: ErrorAt::Word(concat!($part, "state.status"), &["error"], &["completed"]),
        };

        static CALLED: RecordMap = RecordMap { parts: &[CALL], ..PART };
        /// The record is from when the model made the call.
        const ANSWERED: RecordMap = RecordMap {
            fields: &[$($field)* (RecordField::ResultMillis, concat!($part, "state.time.end"))],
            parts: &[CALL, PartMap::Answer(RESULT, details!($part))],
            ..RecordMap::NONE
        };
        static DONE: RecordMap = ANSWERED;
        static FAILED: RecordMap = RecordMap {
            parts: &[
                CALL,
                PartMap::Answer(ResultMap { content: concat!($part, "state.error"), ..RESULT }, details!($part)),
            ],
            ..ANSWERED
        };

        static RETRY: RecordMap = RecordMap {
            parts: &[PartMap::Failed(concat!($part, "error.name"), concat!($part, "error.data.message"))],
            ..PART
        };
        /// The agent asks for a summary, which the next answer is.
        static COMPACTION: RecordMap = RecordMap { parts: &[PartMap::Compacted("")], ..PART };
        static SUBTASK: RecordMap =
            RecordMap { parts: &[PartMap::Fact("subtask", concat!($part, "prompt"), &[])], ..PART };
    };
}

records!(
    rows,
    "data." [
        (RecordField::Session, "session_id"),
        (RecordField::OuterSession, "session.parent_id"),
        (RecordField::Millis, "time_created"),
        (RecordField::Group, "id"),
    ],
    "data." [
        (RecordField::Session, "session_id"),
        (RecordField::OuterSession, "message.parent_id"),
        (RecordField::Id, "id"),
        (RecordField::Millis, "time_created"),
        (RecordField::Group, "message_id"),
    ],
    // The parts are rows of their own.
    []
);

// A part has the time of its message.
records!(
    export,
    "info." [
        (RecordField::Session, "info.sessionID"),
        (RecordField::Millis, "info.time.created"),
        (RecordField::Group, "info.id"),
    ],
    "" [
        (RecordField::Session, "sessionID"),
        (RecordField::Id, "id"),
        (RecordField::Group, "messageID"),
    ],
    [PartMap::LowerRecords("parts", |message, part| export::part(part, message("info.role").as_deref()))]
);
