//! Grok CLI: the updates of a session, one per line. See `README.md` beside this file.

use super::record_map::{InputHas, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, UsageMap, Words};
use super::session_updates;
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, ExitCodeAt, UsageWords};

const NAME: &str = "grok";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "Grok CLI's sessions (updates.jsonl)",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &["~/.grok/sessions/<project>/<session>/updates.jsonl"],
    resume: Some("grok -r {session}"),
    spec: "what Grok CLI 1.0 writes",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    restated: &["params.update.rawOutput"],
    calls: CallWords { exit_codes: &[ExitCodeAt::Field("params.update.rawOutput.exit_code")], ..CallWords::NONE },
    usage: UsageWords { calls: &["params.update.usage.modelCalls"], ..UsageWords::NONE },
    ..FormatInfo::BLANK
};

/// The format `grok`.
pub static GROK: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: session_updates::KIND, foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    session_updates::map_of(word).or_else(|| match word(session_updates::KIND)?.as_str() {
        "turn_completed" => Some(&TURN),
        "background_tasks" => Some(&TASKS),
        _ => None,
    })
}

static TASKS: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "params.sessionId"),
        (RecordField::Millis, "params._meta.agentTimestampMs"),
        (RecordField::Model, "params.update._meta.modelId"),
    ],
    parts: &[PartMap::Stated("background_tasks")],
    ..RecordMap::NONE
};

static TURN: RecordMap = RecordMap {
    fields: &[
        (RecordField::Session, "params.sessionId"),
        (RecordField::Millis, "params._meta.agentTimestampMs"),
        (RecordField::Group, "params.update.prompt_id"),
        (RecordField::StopReason, "params.update.stop_reason"),
        (RecordField::ModelKey, "params.update.usage.modelUsage"),
    ],
    usage: Some(UsageMap {
        input: &["params.update.usage.inputTokens"],
        output: &["params.update.usage.outputTokens"],
        cache_read: &["params.update.usage.cachedReadTokens"],
        cache_write: &["params.update.usage.cacheCreationTokens"],
        reasoning: &["params.update.usage.reasoningTokens"],
        cost: &["params.update.usage.costUsd"],
        input_has: InputHas::Cache,
        ..UsageMap::NONE
    }),
    parts: &[PartMap::Stated("usage")],
    ..RecordMap::NONE
};

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_update = |object: &Object<'_>| {
        let method = object.peek_str("method");
        matches!(method.as_deref(), Some("session/update" | "_x.ai/session/update"))
            && object.has("timestamp")
            && object.peek_object("params").is_some_and(|params| params.has("sessionId") && params.has("update"))
    };
    if !objects.is_empty() && objects.iter().all(is_update) { Sniff::Certain } else { Sniff::No }
}
