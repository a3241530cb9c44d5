//! OpenCode: the rows of a conversation in its database, one per line. See `README.md` beside this file.

mod table;

use super::record_map::MappedFormat;
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{
    CallWords, DatabaseTables, ExitCodeAt, LowerTable, RowTable, SessionTable, UsageWords, UserWords, Verdict,
};

static INFO: FormatInfo = FormatInfo {
    name: "opencode",
    agent: "opencode",
    title: "OpenCode's sessions, the rows of its database",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[
        "{XDG_DATA_HOME|~/.local/share}/opencode/opencode.db",
        "{XDG_DATA_HOME|~/.local/share}/opencode/opencode-*.db",
    ],
    database: Some(DATABASE),
    resume: Some("opencode -s {session}"),
    spec: "what release 1.18 writes",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    spelling: &["table", "data.role", "data.type"],
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

const DATABASE: DatabaseTables = DatabaseTables {
    session: SessionTable { table: "session", key: "id", title: Some("title"), updated: "time_updated" },
    rows: &[
        RowTable {
            table: "message",
            session: "session_id",
            order: &["time_created", "id"],
            inherits: &[("parent_id", "parent_id")],
            is_required: true,
            below: Some(LowerTable {
                table: "part",
                session: "session_id",
                upper: "message_id",
                upper_key: "id",
                order: &["id"],
                inherits: &[("role", "data.role"), ("model", "data.modelID"), ("parent_id", "session.parent_id")],
            }),
        },
        RowTable {
            table: "todo",
            session: "session_id",
            order: &["position"],
            inherits: &[("parent_id", "parent_id")],
            is_required: false,
            below: None,
        },
        // The messages of a generation that is not in use yet.
        RowTable {
            table: "session_message",
            session: "session_id",
            order: &["id"],
            inherits: &[("parent_id", "parent_id")],
            is_required: false,
            below: None,
        },
    ],
};

/// The format `opencode`.
pub static OPENCODE: MappedFormat = MappedFormat { info: &INFO, sniff, map_of: table::map_of, kind: "table" };

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_session = |object: &Object<'_>| {
        object.peek_str("table").as_deref() == Some("session")
            && ["id", "project_id", "directory", "slug"].iter().all(|key| object.has(key))
    };
    match objects.first().is_some_and(is_session) {
        true => Sniff::Certain,
        false if !objects.is_empty() && objects.iter().all(table::is_row) => Sniff::Likely,
        false => Sniff::No,
    }
}
