//! OpenHands before its release 1: a trajectory, one array of actions and observations. See `README.md` beside this file.

use super::record_map::{
    CallMap, ErrorAt, InputAt, InputHas, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks,
    TEXT, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::json::Object;
use crate::model::{CallWords, ExitCodeAt, Role};

const NAME: &str = "openhands-trajectory";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "openhands",
    title: "OpenHands' trajectories before release 1",
    framing: Framing::Items(Items::Elements),
    extension: "json",
    spec: "OpenHands 0.x, openhands/events/serialization/event.py",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    restated: &["message", "tool_call_metadata.model_response.choices"],
    calls: CallWords { exit_codes: &[ExitCodeAt::Field("extras.metadata.exit_code")], ..CallWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `openhands-trajectory`.
pub static OPENHANDS_TRAJECTORY: MappedFormat =
    MappedFormat { info: &INFO, sniff, map_of, kind: "action", foreign: None };

fn map_of(place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    if place != MappedPlace::Record {
        return Some(&HEAD);
    }
    match (word("action").as_deref(), word("observation").as_deref()) {
        (Some("system"), _) => Some(&SYSTEM),
        (Some("message"), _) if word("source").as_deref() == Some("user") => Some(&USER),
        (Some("message"), _) => Some(&ANSWER),
        (Some("recall"), _) => Some(&RECALL),
        (Some("change_agent_state"), _) | (_, Some("agent_state_changed")) => Some(&STATE),
        (Some("condensation"), _) => Some(&CONDENSATION),
        (Some(_), _) => Some(&ACTION),
        (None, Some("recall")) => Some(&RECALLED),
        (None, Some("error")) => Some(&ERROR),
        (None, Some(_)) => Some(&OBSERVATION),
        (None, None) => None,
    }
}

static HEAD: RecordMap = RecordMap { parts: &[PartMap::Stated("session")], ..RecordMap::NONE };

const EVENT: RecordMap = RecordMap {
    fields: &[
        (RecordField::IdNumber, "id"),
        (RecordField::Time, "timestamp"),
        (RecordField::Model, "tool_call_metadata.model_response.model"),
        (RecordField::Group, "tool_call_metadata.model_response.id"),
    ],
    parts: &[PartMap::Content("args.content", TEXT)],
    ..RecordMap::NONE
};

static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..EVENT };
static USER: RecordMap = RecordMap { speaks: Speaks::As(Role::User), ..EVENT };
static ANSWER: RecordMap = RecordMap { speaks: Speaks::As(Role::Assistant), ..EVENT };
static RECALL: RecordMap = RecordMap { parts: &[PartMap::Stated("recall")], ..EVENT };
static STATE: RecordMap = RecordMap { parts: &[PartMap::Stated("state")], ..EVENT };
static RECALLED: RecordMap =
    RecordMap { parts: &[PartMap::Content("content", TEXT)], speaks: Speaks::Fact("recalled"), ..EVENT };
static ERROR: RecordMap = RecordMap { parts: &[PartMap::Content("content", TEXT)], speaks: Speaks::Failure, ..EVENT };
static CONDENSATION: RecordMap =
    RecordMap { parts: &[PartMap::Content("args.summary", TEXT)], speaks: Speaks::Summary, ..EVENT };

static ACTION: RecordMap = RecordMap {
    usage: Some(UsageMap {
        input: &["tool_call_metadata.model_response.usage.prompt_tokens"],
        output: &["tool_call_metadata.model_response.usage.completion_tokens"],
        cache_read: &["tool_call_metadata.model_response.usage.prompt_tokens_details.cached_tokens"],
        cache_write: &["tool_call_metadata.model_response.usage.cache_creation_input_tokens"],
        reasoning: &["tool_call_metadata.model_response.usage.completion_tokens_details.reasoning_tokens"],
        cost: &[],
        input_has: InputHas::Cache,
        ..UsageMap::NONE
    }),
    parts: &[PartMap::Call(CallMap {
        id: "tool_call_metadata.tool_call_id",
        name: "tool_call_metadata.function_name",
        input: InputAt::Json("args"),
    })],
    ..EVENT
};

static OBSERVATION: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "tool_call_metadata.tool_call_id",
        name: "tool_call_metadata.function_name",
        content: "content",
        texts: TEXT,
        error: ErrorAt::Nowhere,
    })],
    ..EVENT
};

fn sniff(head: &Head<'_>) -> Sniff {
    let events = head.elements();
    let is_event = |event: &Object<'_>| {
        let acts = event.has("action") && event.has("args");
        let observes = event.has("observation") && event.has("content") && event.has("extras");
        (acts || observes) && ["id", "timestamp", "source"].iter().all(|key| event.has(key))
    };
    // The last one may be cut off at the end of the head.
    match events.split_last() {
        Some((last, [])) if is_event(last) => Sniff::Certain,
        Some((_, before)) if !before.is_empty() && before.iter().all(is_event) => Sniff::Certain,
        Some(_) | None => Sniff::No,
    }
}
