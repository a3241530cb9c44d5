//! Requests of Anthropic's Messages API, one document each. See `README.md` beside this file.

use super::record_map::{ErrorAt, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, Speaks, TEXT, Words};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::json::{Object, items};
use crate::model::{Role, SessionWords};

static INFO: FormatInfo = FormatInfo {
    name: "anthropic-messages",
    agent: "anthropic-api",
    title: "requests of Anthropic's Messages API",
    framing: Framing::Items(Items::Array("messages")),
    extension: "json",
    spec: "docs.anthropic.com, POST /v1/messages",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    session: SessionWords { tools: &["tools"], ..SessionWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `anthropic-messages`.
pub static ANTHROPIC_MESSAGES: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "role", foreign: None };

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => Some(&TAIL),
        MappedPlace::Record => match word("role")?.as_str() {
            "user" => Some(&USER),
            "assistant" => Some(&ASSISTANT),
            _ => None,
        },
    }
}

/// The system prompt comes before or after the messages.
const FIELDS: RecordMap =
    RecordMap { fields: &[(RecordField::Model, "model")], speaks: Speaks::As(Role::System), ..RecordMap::NONE };
static HEAD: RecordMap = RecordMap { parts: &[PartMap::Stated("session"), PartMap::Content("system", TEXT)], ..FIELDS };
static TAIL: RecordMap =
    RecordMap { parts: &[PartMap::Stated("session_end"), PartMap::Content("system", TEXT)], ..FIELDS };

const MESSAGE: RecordMap =
    RecordMap { parts: &[PartMap::Blocks("content", TEXT, ErrorAt::Flag("is_error"))], ..RecordMap::NONE };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..MESSAGE };

fn sniff(head: &Head<'_>) -> Sniff {
    let Some(document) = head.document() else { return Sniff::No };
    let elements = |object: &Object<'_>, key: &str| -> Vec<String> {
        object.peek(key).and_then(items).unwrap_or_default().into_iter().map(str::to_owned).collect()
    };
    let is_request = document.keys().all(|key| KEYS.contains(&key)) && document.peek_str("model").is_some();
    if !is_request || !document.has("messages") {
        return Sniff::No;
    }
    let has_block = |raw: &String| {
        let blocks = Object::parse(raw).map(|message| elements(&message, "content")).unwrap_or_default();
        blocks.iter().any(|raw| {
            let kind = Object::parse(raw).and_then(|block| block.peek_str("type").map(String::from));
            matches!(kind.as_deref(), Some("tool_use" | "tool_result" | "thinking"))
        })
    };
    let is_tool = |raw: &String| Object::parse(raw).is_some_and(|tool| tool.has("input_schema"));
    let is_its_own = document.has("system")
        || elements(&document, "tools").iter().any(is_tool)
        || elements(&document, "messages").iter().any(has_block);
    if is_its_own { Sniff::Certain } else { Sniff::Maybe }
}

/// The parameters of a request.
const KEYS: [&str; 21] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "metadata",
    "max_tokens",
    "thinking",
    "context_management",
    "output_config",
    "output_format",
    "stream",
    "temperature",
    "top_k",
    "top_p",
    "stop_sequences",
    "service_tier",
    "mcp_servers",
    "container",
    "betas",
    "speed",
];
