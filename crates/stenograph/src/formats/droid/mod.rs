//! Factory droid: the records of a session, one per line. See `README.md` beside this file.

use super::record_map::{
    ErrorAt, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, Speaks, StopMap, TEXT, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, ExitCodeAt, Role, UserWords};

const REMINDER: (&str, &str) = ("<system-reminder>", "</system-reminder>");

static INFO: FormatInfo = FormatInfo {
    name: "droid",
    agent: "droid",
    title: "Factory droid's sessions",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &["~/.factory/sessions/<project>/<session>.jsonl", "~/.factory/sessions/<session>.jsonl"],
    resume: Some("droid --resume {session}"),
    spec: "what release 0.225 writes",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    spelling: &["parentId"],
    restated: &["message.chatCompletionReasoningContent"],
    injected: &[REMINDER],
    user: UserWords { messages: &[REMINDER], ..UserWords::NONE },
    calls: CallWords { exit_codes: &[ExitCodeAt::Last("[Process exited with code ")], ..CallWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `droid`.
pub static DROID: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "type", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match (word("type")?.as_str(), word("message.role").as_deref()) {
        ("session_start", _) => Some(&START),
        ("message", Some("user")) => Some(&USER),
        ("message", Some("assistant")) => Some(&ASSISTANT),
        ("agent_turn_outcome", _) => Some(&OUTCOME),
        ("todo_state", _) => Some(&TODO),
        _ => Some(&UNKNOWN),
    }
}

static START: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "id"),
        (RecordField::Cwd, "cwd"),
        (RecordField::ForkSession, "parent"),
        (RecordField::ForkRecord, "forkedAtMessageId"),
    ],
    parts: &[PartMap::Stated("session"), PartMap::Fact("title", "title", &[])],
    ..RecordMap::NONE
};

const RECORD: RecordMap = RecordMap {
    fields: &[(RecordField::Id, "id"), (RecordField::Parent, "parentId"), (RecordField::Time, "timestamp")],
    ..RecordMap::NONE
};

const MESSAGE: RecordMap = RecordMap {
    fields: &[
        (RecordField::Id, "id"),
        (RecordField::Parent, "parentId"),
        (RecordField::Time, "timestamp"),
        (RecordField::Model, "message.modelId"),
        (RecordField::Group, "message.openaiMessageId"),
    ],
    parts: &[PartMap::Blocks("message.content", TEXT, ErrorAt::Flag("is_error"))],
    ..RecordMap::NONE
};

static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..MESSAGE };
static TODO: RecordMap = RecordMap { parts: &[PartMap::Named("type")], ..RECORD };
static UNKNOWN: RecordMap = RecordMap { parts: &[PartMap::Unknown("type")], ..RECORD };

static OUTCOME: RecordMap =
    RecordMap { parts: &[PartMap::Ended(StopMap { reason: "reason", success: "", content: "" })], ..RecordMap::NONE };

fn sniff(head: &Head<'_>) -> Sniff {
    let is_start = |object: &Object<'_>| {
        object.peek_str("type").as_deref() == Some("session_start")
            && ["id", "title", "owner"].iter().all(|key| object.has(key))
    };
    if head.objects().first().is_some_and(is_start) { Sniff::Certain } else { Sniff::No }
}
