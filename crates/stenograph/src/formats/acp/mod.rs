//! The Agent Client Protocol: what an agent and an editor say to each other, as JSON lines. See `README.md` beside this file.

use super::record_map::{
    InputHas, MappedFormat, MappedPlace, OutputHas, PartMap, RecordField, RecordMap, Speaks, TEXT, UsageMap, Words,
};
use super::session_updates;
use crate::format::{FormatInfo, Head, Sniff, Traits};
use crate::frame::Framing;
use crate::json::Object;
use crate::model::Role;

const NAME: &str = "acp";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "messages of the Agent Client Protocol",
    framing: Framing::Lines,
    extension: "jsonl",
    spec: "Agent Client Protocol, version 1: JSON-RPC between agents and editors",
    traits: Traits { pieces: true, carries: false, lossy: false, log: false },
    own_only: true,
    restated: &["params.update.rawOutput"],
    ..FormatInfo::BLANK
};

/// The format `acp`.
pub static ACP: MappedFormat = MappedFormat { info: &INFO, sniff, map_of, kind: "method", foreign: None };

fn map_of(_place: MappedPlace, word: &Words<'_>) -> Option<&'static RecordMap> {
    match word("method").as_deref() {
        Some("session/update") => session_updates::map_of(word),
        Some("session/prompt") => Some(&PROMPT),
        Some("session/new") => Some(&NEW),
        Some(_) => Some(&REQUEST),
        None if word("error.code").is_some() => Some(&ERROR),
        None if word("id").is_some() => Some(&RESPONSE),
        None => None,
    }
}

const MESSAGE: RecordMap = RecordMap { fields: &[(RecordField::Session, "params.sessionId")], ..RecordMap::NONE };

static PROMPT: RecordMap =
    RecordMap { parts: &[PartMap::Content("params.prompt", TEXT)], speaks: Speaks::As(Role::User), ..MESSAGE };

static NEW: RecordMap =
    RecordMap { fields: &[(RecordField::Cwd, "params.cwd")], parts: &[PartMap::Named("method")], ..MESSAGE };

static REQUEST: RecordMap = RecordMap { parts: &[PartMap::Named("method")], ..MESSAGE };

static ERROR: RecordMap = RecordMap { parts: &[PartMap::Failed("", "error.message")], ..RecordMap::NONE };

/// The response to a prompt is the end of a turn. Its usage is that of all model calls of the turn.
static RESPONSE: RecordMap = RecordMap {
    fields: &[(RecordField::Session, "result.sessionId")],
    usage: Some(UsageMap {
        input: &["result.usage.inputTokens"],
        output: &["result.usage.outputTokens"],
        cache_read: &["result.usage.cachedReadTokens"],
        cache_write: &["result.usage.cachedWriteTokens"],
        reasoning: &["result.usage.thoughtTokens"],
        input_has: InputHas::NoCache,
        output_has: OutputHas::NoThinking,
        ..UsageMap::NONE
    }),
    parts: &[PartMap::Stated("response"), PartMap::Stop("result.stopReason")],
    ..RecordMap::NONE
};

fn sniff(head: &Head<'_>) -> Sniff {
    let objects = head.objects();
    let is_message = |object: &Object<'_>| object.peek_str("jsonrpc").as_deref() == Some("2.0");
    let is_of_session = |object: &Object<'_>| {
        let method = object.peek_str("method");
        matches!(method.as_deref(), Some("session/new" | "session/load" | "session/prompt" | "session/update"))
    };
    match !objects.is_empty() && objects.iter().all(is_message) && objects.iter().any(is_of_session) {
        true => Sniff::Certain,
        false => Sniff::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    #[test]
    fn a_turn_is_counted_once_and_a_failed_call_fails() {
        let session = Session::from_bytes(include_bytes!("fixtures/demo.acp.jsonl")).unwrap();
        let usage = session.usage().total();
        assert_eq!((usage.input, usage.cache_read, usage.output), (Some(40), Some(900), Some(33)));
        let failed: Vec<bool> = session.calls().map(|call| call.outcome().is_failure()).collect();
        assert_eq!(failed, [false, true]);
    }

    #[test]
    fn messages_of_other_protocols_are_not_claimed() {
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
        assert_eq!(sniff(&Head::new(line.as_bytes())), Sniff::No);
    }
}
