//! Factory droid: the records of a session, one per line. See `README.md` beside this file.

use super::record_map::{
    ErrorAt, Foreign, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, Speaks, StopMap, TEXT, Words,
};
use super::record_templates::RecordTemplates;
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, ExitCodeAt, Placement, ProjectName, Role, SessionIdKind, UserWords};

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
    placement: Some(Placement {
        path: "~/.factory/sessions/-<project>/<session>.jsonl",
        project: ProjectName::Separators(&['/']),
        id: SessionIdKind::RandomUuid,
        folders: &["session_start: cwd"],
        sessions: &["session_start: id"],
        forks: &["session_start: parent"],
    }),
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    record_schema: &[
        "type=session_start: id text, title text, owner text, version number, cwd text",
        "type=compaction_state: id text, timestamp text, summaryText text, summaryKind text",
        "type=message: id text, parentId text?, timestamp text, message.role text, message.content list, \
         message.content[].type text",
    ],
    spelling: &["parentId"],
    restated: &["message.chatCompletionReasoningContent"],
    injected: &[REMINDER],
    user: UserWords { messages: &[REMINDER], ..UserWords::NONE },
    calls: CallWords { exit_codes: &[ExitCodeAt::Last("[Process exited with code ")], ..CallWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `droid`.
pub static DROID: MappedFormat =
    MappedFormat { info: &INFO, sniff, map_of, kind: "type", foreign: Some(Foreign::Templates(&TEMPLATES)) };

/// Droid shows the model the records from the last one back to the first. It takes only the record after an answer for its results,
/// and makes call ids of its own of those in the file.
static TEMPLATES: RecordTemplates = RecordTemplates {
    header: r#"{"type":"session_start","id":"<session>","title":"<title|\"\">","owner":"unknown","version":2,"cwd":"<cwd|/>"}"#,
    user: r#"{"type":"message","id":"<id>","parentId":"<parent>","timestamp":"<time>","message":{"role":"user",
        "content":"<content>"}}"#,
    answer: r#"{"type":"message","id":"<id>","parentId":"<parent>","timestamp":"<time>","message":{"role":"assistant",
        "content":"<content>","modelId":"<model|unknown>","openaiMessageId":"<group|>"}}"#,
    results: r#"{"type":"message","id":"<id>","parentId":"<parent>","timestamp":"<time>","message":{"role":"user",
        "content":"<results>"}}"#,
    result: r#"{"type":"tool_result","tool_use_id":"<call>","is_error":"<error|false>","content":"<result text>"}"#,
    compaction: r#"{"type":"compaction_state","id":"<id>","timestamp":"<time>","summaryText":"<text>","summaryTokens":0,
        "summaryKind":"llm_summary","anchorMessage":{"id":"<last>"},"removedCount":0}"#,
    text: r#"{"type":"text","text":"<text>"}"#,
    picture: r#"{"type":"image","source":{"type":"base64","media_type":"<media>","data":"<data>"}}"#,
    thought: r#"{"type":"thinking","signature":"","thinking":"<text>"}"#,
    call: r#"{"type":"tool_use","id":"<call>","name":"<name>","input":"<arguments>"}"#,
    ..RecordTemplates::NONE
};

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match (word("type")?.as_str(), word("message.role").as_deref()) {
        ("session_start", _) => Some(&START),
        ("message", Some("user")) => Some(&USER),
        ("message", Some("assistant")) => Some(&ASSISTANT),
        ("agent_turn_outcome", _) => Some(&OUTCOME),
        ("todo_state", _) => Some(&TODO),
        ("compaction_state", _) => Some(&COMPACTION),
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
static COMPACTION: RecordMap = RecordMap { parts: &[PartMap::Compacted("summaryText")], ..RECORD };
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
