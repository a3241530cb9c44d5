//! Grok CLI: the context of the model, one message per line. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks, TEXT,
    Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, ExitCodeAt, Role};

const NAME: &str = "grok-history";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "grok",
    title: "Grok CLI's context of the model (chat_history.jsonl)",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &["~/.grok/sessions/<project>/<session>/chat_history.jsonl"],
    resume: Some("grok -r {session}"),
    spec: "what Grok CLI 1.0 writes",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    abridged: true,
    own_only: true,
    typed: &[("<user_query>", "</user_query>")],
    calls: CallWords { exit_codes: &[ExitCodeAt::First("exit: ")], ..CallWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `grok-history`.
pub static GROK_HISTORY: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "type", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match word("type")?.as_str() {
        "system" => Some(&SYSTEM),
        "user" => Some(&USER),
        "assistant" => Some(&ASSISTANT),
        "reasoning" => Some(&REASONING),
        "tool_result" => Some(&RESULT),
        _ => None,
    }
}

const MESSAGE: RecordMap = RecordMap {
    fields: &[(RecordField::Model, "model_id")],
    parts: &[
        PartMap::Content("content", TEXT),
        PartMap::Calls("tool_calls", CallMap { id: "id", name: "name", input: InputAt::Text("arguments") }),
    ],
    ..RecordMap::NONE
};

static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..MESSAGE };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..MESSAGE };
static REASONING: RecordMap = RecordMap {
    fields: &[(RecordField::Id, "id")],
    parts: &[PartMap::Content("summary", TEXT)],
    speaks: Speaks::Thinking,
    ..RecordMap::NONE
};
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

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_message = |object: &Object<'_>| match object.peek_str("type").as_deref() {
        Some("system") => object.keys().all(|key| matches!(key, "type" | "content")),
        Some("user") => object.has("content") && !object.has("message") && !object.has("uuid"),
        Some("assistant") => object.has("content") && object.has("model_id"),
        Some("reasoning") => object.has("summary"),
        Some("tool_result") => object.has("tool_call_id") && object.has("content"),
        _ => false,
    };
    let has_own =
        |object: &Object<'_>| ["prompt_index", "synthetic_reason", "model_id"].iter().any(|key| object.has(key));
    match (!objects.is_empty() && objects.iter().all(is_message), objects.iter().any(has_own)) {
        (true, true) => Sniff::Certain,
        (true, false) => Sniff::Maybe,
        (false, _) => Sniff::No,
    }
}
