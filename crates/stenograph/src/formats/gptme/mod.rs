//! gptme's conversations, one message per line. See `README.md` beside this file.

mod marks;

use super::record_map::{
    ErrorAt, InputHas, MappedFormat, MappedPlace, PartMap, RecordField, RecordMap, ResultMap, Speaks, TEXT, UsageMap,
    Words,
};
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::{CallWords, ExitCodeAt, Role, UsageWords};

const NAME: &str = "gptme";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "gptme's conversations",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &["{XDG_DATA_HOME|~/.local/share}/gptme/logs/<session>/conversation.jsonl"],
    resume: Some("gptme --name {session}"),
    spec: "what gptme 0.35 writes",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    calls: CallWords {
        exit_codes: &[ExitCodeAt::Last("Return code: ")],
        failure_prefixes: &["Error during execution: "],
        ..CallWords::NONE
    },
    usage: UsageWords {
        counters: &[("metadata.usage", &["input_tokens", "output_tokens", "cache_read_tokens"])],
        ..UsageWords::NONE
    },
    ..FormatInfo::BLANK
};

/// The format `gptme`.
pub static GPTME: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "role", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match word("role")?.as_str() {
        // The id of the call is taken from a result, the tool that gave it is not.
        "system" if word("metadata.tool").is_some() => Some(&RESULT),
        "system" => Some(&SYSTEM),
        "user" => Some(&USER),
        "assistant" => Some(&ASSISTANT),
        _ => None,
    }
}

const MESSAGE: RecordMap = RecordMap {
    fields: &[(RecordField::Time, "timestamp"), (RecordField::Model, "metadata.model")],
    usage: Some(UsageMap {
        input: &["metadata.usage.input_tokens"],
        output: &["metadata.usage.output_tokens"],
        cache_read: &["metadata.usage.cache_read_tokens"],
        cache_write: &["metadata.usage.cache_creation_tokens"],
        reasoning: &["metadata.usage.reasoning_tokens"],
        cost: &["metadata.cost"],
        input_has: InputHas::NoCache,
        ..UsageMap::NONE
    }),
    parts: &[PartMap::Content("content", TEXT)],
    speaks: Speaks::As(Role::User),
    ..RecordMap::NONE
};

static USER: RecordMap = MESSAGE;
static SYSTEM: RecordMap = RecordMap { speaks: Speaks::As(Role::System), ..MESSAGE };
static ASSISTANT: RecordMap =
    RecordMap { parts: &[PartMap::Marked("content", marks::MARKS)], speaks: Speaks::As(Role::Assistant), ..MESSAGE };
static RESULT: RecordMap = RecordMap {
    parts: &[PartMap::Result(ResultMap {
        call: "call_id",
        name: "",
        content: "content",
        texts: TEXT,
        error: ErrorAt::Nowhere,
    })],
    ..MESSAGE
};

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_message = |object: &Object<'_>| {
        object.peek_str("role").is_some()
            && object.peek_str("timestamp").is_some_and(|time| time.get(10..11) == Some("T"))
            && object.peek_str("content").is_some()
            && object.keys().all(|key| KEYS.contains(&key))
    };
    let has_own = |object: &Object<'_>| OWN_KEYS.iter().any(|key| object.has(key));
    // Python, in which gptme is written, states UTC in another way.
    let is_of_others = |object: &Object<'_>| object.peek_str("timestamp").is_some_and(|time| time.ends_with('Z'));
    match (!objects.is_empty() && objects.iter().all(is_message), objects.iter().any(has_own)) {
        (true, true) => Sniff::Certain,
        (true, false) if objects.iter().any(is_of_others) => Sniff::Maybe,
        (true, false) => Sniff::Likely,
        (false, _) => Sniff::No,
    }
}

/// The keys of a message.
const KEYS: [&str; 11] = [
    "role",
    "content",
    "timestamp",
    "files",
    "file_hashes",
    "pinned",
    "hide",
    "quiet",
    "call_id",
    "metadata",
    crate::carry::KEY,
];

/// Keys that only gptme's messages have.
const OWN_KEYS: [&str; 3] = ["pinned", "hide", "file_hashes"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_with_times_that_python_does_not_write_are_not_claimed() {
        let sniffed = |time: &str| {
            let line = format!("{{\"role\":\"user\",\"content\":\"Why?\",\"timestamp\":\"{time}\"}}\n");
            sniff(&Head::new(line.as_bytes()))
        };
        assert_eq!(sniffed("2026-03-02T09:00:01.610095"), Sniff::Likely);
        assert_eq!(sniffed("2026-03-02T09:00:01+00:00"), Sniff::Likely);
        assert_eq!(sniffed("2026-03-02T09:00:01.610Z"), Sniff::Maybe);
    }
}
