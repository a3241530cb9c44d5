//! Requests of OpenAI's Responses API, one document each. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks, TEXT,
    Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::model::{Role, SessionWords};

static INFO: FormatInfo = FormatInfo {
    name: "openai-responses",
    agent: "openai-api",
    title: "requests of OpenAI's Responses API",
    framing: Framing::Items(Items::Array("input")),
    extension: "json",
    spec: "platform.openai.com, POST /v1/responses",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    session: SessionWords { tools: &["tools"], ..SessionWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `openai-responses`.
pub static OPENAI_RESPONSES: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "type", foreign: None };

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => Some(&TAIL),
        MappedPlace::Record => match (word("type").as_deref(), word("role").as_deref()) {
            (None | Some("message"), Some("user")) => Some(&USER),
            (None | Some("message"), Some("assistant")) => Some(&ASSISTANT),
            (None | Some("message"), Some("system")) => Some(&SYSTEM),
            (None | Some("message"), Some("developer")) => Some(&DEVELOPER),
            (Some("reasoning"), _) => Some(&REASONING),
            (Some("function_call"), _) => Some(&CALL),
            (Some("function_call_output" | "custom_tool_call_output"), _) => Some(&RESULT),
            (Some("custom_tool_call"), _) => Some(&CUSTOM_CALL),
            _ => None,
        },
    }
}

/// The instructions come before or after the items.
const FIELDS: RecordMap =
    RecordMap { fields: &[(RecordField::Model, "model")], speaks: Speaks::As(Role::System), ..RecordMap::NONE };
static HEAD: RecordMap =
    RecordMap { parts: &[PartMap::Stated("session"), PartMap::Content("instructions", TEXT)], ..FIELDS };
static TAIL: RecordMap =
    RecordMap { parts: &[PartMap::Stated("session_end"), PartMap::Content("instructions", TEXT)], ..FIELDS };

const ITEM: RecordMap =
    RecordMap { fields: &[(RecordField::Id, "id")], parts: &[PartMap::Content("content", TEXT)], ..RecordMap::NONE };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..ITEM };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..ITEM };
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..ITEM };
static DEVELOPER: RecordMap = RecordMap { speaks: Speaks::As(Role::Developer), ..ITEM };
static REASONING: RecordMap =
    RecordMap { parts: &[PartMap::Content("summary", TEXT)], speaks: Speaks::Thinking, ..ITEM };

static CALL: RecordMap = RecordMap {
    parts: &[PartMap::Call(CallMap { id: "call_id", name: "name", input: InputAt::Text("arguments") })],
    ..ITEM
};
static CUSTOM_CALL: RecordMap = RecordMap {
    parts: &[PartMap::Call(CallMap { id: "call_id", name: "name", input: InputAt::Text("input") })],
    ..ITEM
};
static RESULT: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "call_id",
        name: "",
        content: "output",
        texts: TEXT,
        error: ErrorAt::Nowhere,
    })],
    ..ITEM
};

fn sniff(head: &Head<'_>) -> Sniff {
    let Some(document) = head.document() else { return Sniff::No };
    let has_items = document.peek("input").is_some_and(|raw| raw.trim_start().starts_with('['));
    let is_request = document.peek_str("model").is_some() && has_items;
    let is_its_own =
        ["instructions", "store", "include", "reasoning", "previous_response_id", "prompt_cache_key", "stream"];
    match (is_request, is_its_own.iter().any(|key| document.has(key))) {
        (true, true) => Sniff::Certain,
        (true, false) => Sniff::Maybe,
        (false, _) => Sniff::No,
    }
}
