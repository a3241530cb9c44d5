//! Factory droid: the settings of a session, a document beside its transcript. See `README.md` beside this file.

use super::record_map::{
    InputHas, MappedFormat, MappedPlace, OutputHas, PartMap, RecordField, RecordMap, UsageMap, Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::{Framing, Items};
use crate::model::UsageWords;

static INFO: FormatInfo = FormatInfo {
    name: "droid-settings",
    agent: "droid",
    title: "the settings of Factory droid's sessions, with the sum of their tokens",
    framing: Framing::Items(Items::Array("messages")),
    extension: "json",
    homes: &["~/.factory/sessions/<project>/<session>.settings.json", "~/.factory/sessions/<session>.settings.json"],
    spec: "what release 0.225 writes",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    totals: &["tokenUsage", "inclusiveTokenUsage"],
    usage: UsageWords {
        counters: &[(
            "tokenUsage",
            &["inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens", "thinkingTokens"],
        )],
        ..UsageWords::NONE
    },
    ..FormatInfo::BLANK
};

/// The format `droid-settings`.
pub static DROID_SETTINGS: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "type", foreign: None };

fn map_of(place: MappedPlace, _word: &Words<'_>) -> Option<&'static RecordMap> {
    match place {
        MappedPlace::Head => Some(&SETTINGS),
        // The document has no list of records, and nothing after it.
        MappedPlace::Tail => Some(&REST),
        MappedPlace::Record => None,
    }
}

static SETTINGS: RecordMap = RecordMap {
    fields: &[(RecordField::Model, "model"), (RecordField::Time, "providerLockTimestamp")],
    usage: Some(UsageMap {
        input: &["tokenUsage.inputTokens"],
        output: &["tokenUsage.outputTokens"],
        cache_read: &["tokenUsage.cacheReadTokens"],
        cache_write: &["tokenUsage.cacheCreationTokens"],
        reasoning: &["tokenUsage.thinkingTokens"],
        cost: &[],
        input_has: InputHas::NoCache,
        output_has: OutputHas::Thinking,
    }),
    parts: &[PartMap::Stated("session")],
    ..RecordMap::NONE
};

static REST: RecordMap = RecordMap { parts: &[PartMap::Stated("session_end")], ..RecordMap::NONE };

fn sniff(head: &Head<'_>) -> Sniff {
    let Some(document) = head.document() else { return Sniff::No };
    let keys = ["assistantActiveTimeMs", "interactionMode", "autonomyLevel", "tokenUsage"];
    if keys.iter().all(|key| document.has(key)) { Sniff::Certain } else { Sniff::No }
}
