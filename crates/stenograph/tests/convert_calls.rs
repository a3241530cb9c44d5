//! A conversion keeps the calls of a source, each with its own result, or the loss report lists them.

#![expect(clippy::expect_used, reason = "a test that cannot go on should say why")]

use stenograph::Registry;
use stenograph::convert::{Carry, Outcome, convert};
use stenograph::format::Format;
use stenograph::loss::LossKind;
use stenograph::model::Body;
use stenograph::read::all;

fn format(name: &str) -> &'static dyn Format {
    Registry::built_in().named(name).expect("a format of that name")
}

fn converted(from: &str, source: &str, to: &str, carry: Carry) -> (String, Outcome) {
    let mut out = Vec::new();
    let outcome = convert(format(from), &mut source.as_bytes(), format(to), &mut out, carry).expect("converts");
    (String::from_utf8(out).expect("is UTF-8"), outcome)
}

/// A Claude Code record: its number, that of its parent, its type and its message.
fn record(number: u32, parent: Option<u32>, kind: &str, message: &str) -> String {
    let id = |number: u32| format!("\"5b0c7f4e-0000-4000-8000-{number:012}\"");
    let (uuid, parent) = (id(number), parent.map_or("null".to_owned(), id));
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":false,\"cwd\":\"/w\",\"sessionId\":\"5b0c7f4e-0000-4000-8000-00000000ffff\",\
         \"version\":\"2.1.0\",\"type\":\"{kind}\",\"message\":{message},\"uuid\":{uuid},\
         \"timestamp\":\"2026-01-01T00:00:{number:02}.000Z\"}}\n"
    )
}

fn call(number: u32, parent: u32, call: &str) -> String {
    let content = format!(
        "{{\"type\":\"tool_use\",\"id\":\"{call}\",\"name\":\"Read\",\"input\":{{\"file_path\":\"/w/{call}\"}}}}"
    );
    let message = format!("{{\"role\":\"assistant\",\"id\":\"m1\",\"model\":\"m\",\"content\":[{content}]}}");
    record(number, Some(parent), "assistant", &message)
}

fn result(number: u32, parent: u32, call: &str) -> String {
    let content = format!("{{\"type\":\"tool_result\",\"tool_use_id\":\"{call}\",\"content\":\"text of {call}\"}}");
    record(number, Some(parent), "user", &format!("{{\"role\":\"user\",\"content\":[{content}]}}"))
}

/// A session in which two results are recorded before their calls.
fn with_early_results() -> String {
    [
        record(1, None, "user", r#"{"role":"user","content":"Look."}"#),
        result(2, 3, "t1"),
        call(3, 1, "t1"),
        result(4, 6, "t3"),
        call(5, 3, "t2"),
        call(6, 5, "t3"),
        result(7, 5, "t2"),
        record(
            8,
            Some(7),
            "assistant",
            r#"{"role":"assistant","id":"m2","model":"m","content":[{"type":"text","text":"Done."}]}"#,
        ),
    ]
    .concat()
}

#[test]
fn a_result_recorded_before_its_call_belongs_to_that_call() {
    let source = with_early_results();
    for to in ["openai-chat", "chibi-requests", "cycod-trajectory", "codex", "chibi", "leslie", "devflow"] {
        let (out, outcome) = converted("claude-code", &source, to, Carry::Omit);
        assert!(!out.contains("not called"), "{to}: {out}");
        let events = all(format(to), out.as_bytes()).events;
        let mut calls = Vec::new();
        for event in events.iter().filter(|event| !event.restates) {
            match &event.body {
                Body::ToolCall { call, .. } => calls.push(call.as_deref().unwrap_or_default().to_owned()),
                Body::ToolResult { call, .. } => {
                    assert!(calls.iter().any(|known| known == call.as_deref().unwrap_or_default()), "{to}: {out}");
                }
                _ => {}
            }
        }
        assert_eq!(calls.len(), 3, "{to}: {out}");
        let is_invented = |how: &LossKind, field: &str| *how == LossKind::Invented && field.is_empty();
        let mut invented = outcome.losses.losses.keys().filter(|(_, field, how)| is_invented(how, field));
        assert!(invented.all(|(kind, _, _)| !kind.name().starts_with("tool_")), "{to}: {:?}", outcome.losses.summary());
    }
}

#[test]
fn a_buffered_result_is_carried_too() {
    let source = with_early_results();
    for (to, next) in [("codex", "chibi"), ("chibi", "openai-chat"), ("openai-chat", "codex"), ("steno", "openai-chat")]
    {
        let (there, _) = converted("claude-code", &source, to, Carry::Embed);
        assert_eq!(converted(to, &there, "claude-code", Carry::Omit).0, source, "{to}");
        let (further, _) = converted(to, &there, next, Carry::Embed);
        assert_eq!(converted(next, &further, "claude-code", Carry::Omit).0, source, "{to} {next}");
    }
}

#[test]
fn the_source_format_and_the_native_one_keep_the_order_of_the_source() {
    let source = with_early_results();
    let (native, outcome) = converted("claude-code", &source, "steno", Carry::Omit);
    assert!(!outcome.losses.is_reordered());
    let (back, _) = converted("steno", &native, "claude-code", Carry::Omit);
    let ids = |text: &str| -> Vec<Option<String>> {
        let events = all(format("claude-code"), text.as_bytes()).events;
        events.iter().map(|event| event.id.as_deref().map(str::to_owned)).collect()
    };
    assert_eq!(ids(&back), ids(&source));
}

/// A record of a sub-agent inside a record of the main conversation: a message and a call, with usage.
fn nested(number: u32) -> String {
    let inner = "\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"id\":\"m9\",\"model\":\"m\",\"content\":[{\"type\":\"text\",\
                 \"text\":\"I look.\"},{\"type\":\"tool_use\",\"id\":\"t9\",\"name\":\"Grep\",\"input\":{\"pattern\":\"x\"}}],\
                 \"usage\":{\"input_tokens\":5,\"output_tokens\":7}},\"uuid\":\"5b0c7f4e-0000-4000-8000-000000000099\",\
                 \"timestamp\":\"2026-01-01T00:00:09.000Z\"";
    let outer = record(number, Some(1), "progress", "null");
    let data = format!("\"data\":{{\"message\":{{{inner}}},\"type\":\"agent_progress\",\"agentId\":\"a1\"}}");
    outer.replace("\"message\":null", &format!("{data},\"parentToolUseID\":\"t1\""))
}

fn with_nested_record() -> String {
    let done = r#"{"role":"assistant","id":"m2","model":"m","content":[{"type":"text","text":"Done."}]}"#;
    let first = record(1, None, "user", r#"{"role":"user","content":"Look."}"#);
    [first, call(2, 1, "t1"), nested(3), result(4, 2, "t1"), record(5, Some(4), "assistant", done)].concat()
}

/// How often an event or field of a kind was dropped for a reason.
fn left_out(outcome: &Outcome, kind: &str, field: &str, why: &str) -> u64 {
    let found = outcome.losses.losses.iter().filter(|((of, name, how), _)| {
        of.name() == kind && name == field && matches!(how, LossKind::Dropped { why: found } if *found == why)
    });
    found.map(|(_, count)| count.times).sum()
}

#[test]
fn a_nested_record_without_a_place_in_the_target_is_reported() {
    let source = with_nested_record();
    for to in ["codex", "chibi", "openai-chat"] {
        let (_, outcome) = converted("claude-code", &source, to, Carry::Omit);
        for (kind, field) in [("message", ""), ("tool_call", ""), ("fact", ""), ("message", "usage")] {
            assert_eq!(left_out(&outcome, kind, field, "in a side conversation"), 1, "{to} {kind} {field}");
            assert_eq!(left_out(&outcome, kind, field, "repeats another record"), 0, "{to} {kind} {field}");
        }
        assert!(outcome.losses.is_lossy());
    }
    let (native, outcome) = converted("claude-code", &source, "steno", Carry::Omit);
    assert!(!outcome.losses.is_lossy(), "{:?}", outcome.losses.summary());
    let (_, outcome) = converted("steno", &native, "codex", Carry::Omit);
    assert_eq!(left_out(&outcome, "tool_call", "", "in a side conversation"), 1);
}

#[test]
fn a_progress_report_is_not_reported_as_a_repetition() {
    let hook = nested(3)
        .replace("\"type\":\"agent_progress\"", "\"type\":\"hook_progress\"")
        .replace("\"message\"", "\"hook\"");
    let (_, outcome) = converted("claude-code", &(with_nested_record() + &hook), "codex", Carry::Omit);
    assert_eq!(left_out(&outcome, "fact", "", "repeats another record"), 0);
    assert_eq!(left_out(&outcome, "fact", "", "repeats another record or reports on it"), 1);
}

#[test]
fn a_nested_record_is_a_repetition_if_the_source_has_it_too() {
    let own = nested(3).split_once("\"message\":{\"type\"").map(|(_, inner)| format!("{{\"type\"{inner}"));
    let own = own.and_then(|inner| inner.split_once("},\"type\":\"agent_progress\"").map(|(own, _)| own.to_owned()));
    let own = own.expect("a nested record") + ",\"isSidechain\":true,\"agentId\":\"a1\"}\n";
    assert!(stenograph::json::is_valid(own.trim_end()), "{own}");
    let (_, outcome) = converted("claude-code", &(with_nested_record() + &own), "codex", Carry::Omit);
    assert_eq!(left_out(&outcome, "fact", "", "repeats another record"), 1);
    assert_eq!(left_out(&outcome, "tool_call", "", "in a side conversation"), 1);
}

#[test]
fn arguments_that_are_an_object_are_the_input_of_the_call() {
    let item = |payload: &str| {
        format!("{{\"timestamp\":\"2026-04-30T08:09:01.000Z\",\"type\":\"response_item\",\"payload\":{payload}}}\n")
    };
    let source = item(r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."}]}"#)
        + &item(r#"{"type":"function_call","name":"shell","arguments":{"command":["ls"]},"call_id":"call_1"}"#)
        + &item(r#"{"type":"function_call_output","call_id":"call_1","output":"a.txt"}"#);
    let (out, _) = converted("codex", &source, "claude-code", Carry::Omit);
    assert!(out.contains(r#""input":{"command":["ls"]}"#), "{out}");
    let (native, _) = converted("codex", &source, "steno", Carry::Omit);
    let (back, _) = converted("steno", &native, "codex", Carry::Omit);
    assert!(back.contains(r#""arguments":{"command":["ls"]}"#), "{back}");
}
