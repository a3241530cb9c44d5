//! Inspect: a sample of an evaluation, a document each. See `README.md` beside this file.

use super::record_map::{
    CallMap, ElementMap, ErrorAt, InputAt, InputHas, MappedFormat, MappedPlace, OutputHas, PartMap, RecordField,
    RecordMap, ResultMap, Speaks, TEXT, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::model::{ArchiveMembers, DocumentMembers, Role};

const NAME: &str = "inspect";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "the samples in Inspect's logs of evaluations (.eval, .json)",
    framing: Framing::Items(Items::Array("messages")),
    extension: "json",
    archive: Some(ArchiveMembers {
        marks: &["header.json", "_journal/start.json"],
        prefix: "samples/",
        suffix: ".json",
    }),
    document: Some(DocumentMembers {
        marks: &["version", "status", "eval"],
        list: "samples",
        name: ["id", "epoch"],
        between: "_epoch_",
    }),
    spec: "UKGovernmentBEIS/inspect_ai, src/inspect_ai/log/_log.py, EvalSample",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    totals: &["model_usage"],
    ..FormatInfo::BLANK
};

/// The format `inspect`.
pub static INSPECT: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "role", foreign: None };

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&HEAD),
        MappedPlace::Tail => Some(&TAIL),
        MappedPlace::Record => match word("role")?.as_str() {
            "system" => Some(&SYSTEM),
            "user" => Some(&USER),
            "assistant" => Some(&ASSISTANT),
            "tool" => Some(&RESULT),
            _ => None,
        },
    }
}

static HEAD: RecordMap = RecordMap { parts: &[PartMap::Stated("session")], ..RecordMap::NONE };

/// The usage of all calls of each model.
const USAGE: UsageMap = UsageMap {
    input: &["input_tokens"],
    output: &["output_tokens"],
    cache_read: &["input_tokens_cache_read"],
    cache_write: &["input_tokens_cache_write"],
    reasoning: &["reasoning_tokens"],
    cost: &["total_cost"],
    input_has: InputHas::NoCache,
    output_has: OutputHas::Thinking,
};

static TAIL: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "uuid"),
        (RecordField::Model, "output.model"),
        (RecordField::Time, "completed_at"),
        (RecordField::StopReason, "limit.type"),
    ],
    parts: &[PartMap::Stated("session_end"), PartMap::UsageByModel("model_usage", USAGE)],
    ..RecordMap::NONE
};

const MESSAGE: RecordMap = RecordMap {
    fields: &[(RecordField::Id, "id"), (RecordField::Model, "model")],
    parts: &[
        PartMap::List("content", &[ElementMap::Thinking(&[("type", "reasoning")], "reasoning")]),
        PartMap::Calls("tool_calls", CallMap { id: "id", name: "function", input: InputAt::Json("arguments") }),
    ],
    ..RecordMap::NONE
};

static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..MESSAGE };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..MESSAGE };
static ASSISTANT: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..MESSAGE };
static RESULT: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "tool_call_id",
        name: "function",
        content: "content",
        texts: TEXT,
        error: ErrorAt::Word("error.type", FAILURES, &[]),
    })],
    ..MESSAGE
};

const FAILURES: &[&str] = &[
    "approval",
    "cancelled",
    "file_not_found",
    "is_a_directory",
    "limit",
    "output_limit",
    "parsing",
    "permission",
    "timeout",
    "unicode_decode",
    "unknown",
];

fn sniff(head: &Head<'_>) -> Sniff {
    let Some(document) = head.document() else { return Sniff::No };
    if ["id", "epoch", "input", "target", "messages"].iter().all(|key| document.has(key)) {
        Sniff::Certain
    } else {
        Sniff::No
    }
}
