//! Cline 3: the messages of a session, one document each. See `README.md` beside this file.

use super::record_map::{
    ErrorAt, InputHas, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, Speaks, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::model::{CallWords, ExitCodeAt, FolderAt, FolderFile, Role, SessionWords, UsageWords};

const NAME: &str = "cline";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "cline",
    title: "Cline's sessions, release 3",
    framing: Framing::Items(Items::Array("messages")),
    extension: "json",
    homes: &["{CLINE_DATA_DIR|~/.cline/data}/sessions/*/<session>.messages.json"],
    folder_files: &[FolderFile { path: "<session>.json", folder: FolderAt::Key("cwd") }],
    resume: Some("cline --id {session}"),
    spec: "what Cline 3.0 writes; cline/cline, sdk/packages/core/src/session",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    typed: &[
        ("<user_input mode=\"act\">", "</user_input>"),
        ("<user_input mode=\"plan\">", "</user_input>"),
        ("<user_input mode=\"yolo\">", "</user_input>"),
    ],
    calls: CallWords { exit_codes: &[ExitCodeAt::First("[Command exited with code ")], ..CallWords::NONE },
    usage: UsageWords {
        counters: &[("metrics", &["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"])],
        ..UsageWords::NONE
    },
    session: SessionWords { instructions: &["system_prompt"], ..SessionWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `cline`.
pub static CLINE: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "role", foreign: None };

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => Some(&TAIL),
        MappedPlace::Record if word("metadata.kind").as_deref() == Some("compaction") => Some(&SUMMARY),
        MappedPlace::Record => match word("role")?.as_str() {
            "user" => Some(&USER),
            "assistant" => Some(&ASSISTANT),
            _ => None,
        },
    }
}

static HEAD: RecordMap = RecordMap {
    fields: &[(RecordField::Session, "sessionId"), (RecordField::Version, "origin.version")],
    parts: &[PartMap::Stated("session")],
    ..RecordMap::NONE
};

static TAIL: RecordMap = RecordMap { parts: &[PartMap::Stated("session_end")], ..RecordMap::NONE };

const MESSAGE: RecordMap = RecordMap {
    fields: &[(RecordField::Id, "id"), (RecordField::Millis, "ts"), (RecordField::Model, "modelInfo.id")],
    usage: Some(UsageMap {
        input: &["metrics.inputTokens"],
        output: &["metrics.outputTokens"],
        cache_read: &["metrics.cacheReadTokens"],
        cache_write: &["metrics.cacheWriteTokens"],
        cost: &["metrics.cost"],
        input_has: InputHas::Cache,
        ..UsageMap::NONE
    }),
    parts: &[PartMap::Blocks("content", &["result", "text"], ErrorAt::Elements("success", "is_error"))],
    speaks: Speaks::As(Role::Assistant),
    ..RecordMap::NONE
};

static ASSISTANT: RecordMap = MESSAGE;
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static SUMMARY: RecordMap = RecordMap { speaks: Speaks::Summary, ..MESSAGE };

fn sniff(head: &Head<'_>) -> Sniff {
    let Some(document) = head.document() else { return Sniff::No };
    let is_session = ["version", "updated_at", "agent", "sessionId"].iter().all(|key| document.has(key));
    if is_session && document.has("messages") { Sniff::Certain } else { Sniff::No }
}
