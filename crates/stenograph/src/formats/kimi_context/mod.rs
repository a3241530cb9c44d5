//! Kimi CLI: the context of the model, one message per line. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, MappedFormat, MappedPlace, PartMap, RecordMap, ResultMap, Speaks, TEXT, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, FolderAt, FolderFile, Role};

const NAME: &str = "kimi-context";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "kimi",
    title: "Kimi CLI's context of the model (context.jsonl)",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &[
        "{KIMI_SHARE_DIR|~/.kimi}/sessions/<project>/<session>/context.jsonl",
        "{KIMI_SHARE_DIR|~/.kimi}/sessions/<project>/<session>/subagents/<thread>/context.jsonl",
        "{KIMI_SHARE_DIR|~/.kimi}/sessions/<project>/<session>.jsonl",
    ],
    folder_files: &[FolderFile {
        path: "../../../kimi.json",
        folder: FolderAt::List { list: "work_dirs", folder: "path", session: "last_session_id" },
    }],
    resume: Some("kimi -S {session}"),
    spec: "what Kimi CLI 1.51 writes",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    abridged: true,
    own_only: true,
    calls: CallWords { failure_prefixes: &["<system>ERROR: "], ..CallWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `kimi-context`.
pub static KIMI_CONTEXT: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "role", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match word("role")?.as_str() {
        "_system_prompt" | "system" => Some(&SYSTEM),
        "user" => Some(&USER),
        "assistant" => Some(&ASSISTANT),
        "tool" => Some(&RESULT),
        "_checkpoint" | "_usage" => Some(&FACT),
        _ => None,
    }
}

const MESSAGE: RecordMap = RecordMap {
    parts: &[
        PartMap::Content("content", TEXT),
        PartMap::Calls(
            "tool_calls",
            CallMap { id: "id", name: "function.name", input: InputAt::Text("function.arguments") },
        ),
    ],
    ..RecordMap::NONE
};

static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..MESSAGE };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..MESSAGE };
static RESULT: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "tool_call_id",
        name: "",
        content: "content",
        texts: TEXT,
        error: ErrorAt::Nowhere,
    })],
    ..RecordMap::NONE
};
static FACT: RecordMap = RecordMap { parts: &[PartMap::Named("role")], ..RecordMap::NONE };

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let role = |object: &Object<'_>| object.peek_str("role").map(std::borrow::Cow::into_owned);
    let is_own = |object: &Object<'_>| match role(object).as_deref() {
        Some("_system_prompt") => object.has("content"),
        Some("_checkpoint") => object.has("id"),
        Some("_usage") => object.has("token_count"),
        _ => false,
    };
    match objects.iter().any(is_own) && objects.iter().all(|object| role(object).is_some()) {
        true => Sniff::Certain,
        false => Sniff::No,
    }
}
