//! A conversion keeps the tokens of a source, or the loss report lists them.

#![expect(clippy::expect_used, reason = "a test that cannot go on should say why")]

use stenograph::Registry;
use stenograph::convert::{Carry, Outcome, convert};
use stenograph::format::Format;
use stenograph::ledger::{CallCounter, CallDetail};
use stenograph::loss::LossKind;
use stenograph::model::Kind;

fn format(name: &str) -> &'static dyn Format {
    Registry::built_in().named(name).expect("a format of that name")
}

fn converted(from: &str, source: &str, to: &str) -> (String, Outcome) {
    let mut out = Vec::new();
    let outcome = convert(format(from), &mut source.as_bytes(), format(to), &mut out, Carry::Omit).expect("converts");
    (String::from_utf8(out).expect("is UTF-8"), outcome)
}

/// The number of calls that a source states, and the sums of their input, output and cached tokens.
fn counted(name: &str, source: &str) -> (u32, [u64; 3]) {
    let mut counting = CallCounter::new(format(name).info().agent, CallDetail::Numbers);
    for event in stenograph::read::all(format(name), source.as_bytes()).events {
        counting.add(&event);
    }
    let usage = counting.finish();
    let mut sums = [0; 3];
    for row in &usage.rows {
        for (sum, tokens) in sums.iter_mut().zip([row.tokens.input, row.tokens.output, row.tokens.cache_read]) {
            *sum += tokens;
        }
    }
    (usage.rows.iter().map(|row| row.calls).sum(), sums)
}

fn record(kind: &str, payload: &str) -> String {
    format!("{{\"timestamp\":\"2026-04-30T08:09:01.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
}

fn head() -> String {
    let meta = r#"{"id":"019ddd6f-3680-7fb3-8f93-e567af97d303","timestamp":"2026-04-30T08:09:00.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.120.0","instructions":null}"#;
    let context = r#"{"cwd":"/w","approval_policy":"never","model":"gpt-5.4","summary":"auto"}"#;
    record("session_meta", meta) + &record("turn_context", context)
}

fn message(role: &str, text: &str) -> String {
    let kind = if role == "user" { "input_text" } else { "output_text" };
    let content = format!("[{{\"type\":\"{kind}\",\"text\":\"{text}\"}}]");
    record("response_item", &format!("{{\"type\":\"message\",\"role\":\"{role}\",\"content\":{content}}}"))
}

/// A token count: the total of all calls so far, and that of the last one.
fn count(total: [u64; 3], last: [u64; 3]) -> String {
    let numbers = |[input, cached, output]: [u64; 3]| {
        let all = input + output;
        format!(
            "{{\"input_tokens\":{input},\"cached_input_tokens\":{cached},\"output_tokens\":{output},\
             \"reasoning_output_tokens\":0,\"total_tokens\":{all}}}"
        )
    };
    let (total, last) = (numbers(total), numbers(last));
    let info = format!("{{\"total_token_usage\":{total},\"last_token_usage\":{last},\"model_context_window\":9}}");
    record("event_msg", &format!("{{\"type\":\"token_count\",\"info\":{info}}}"))
}

const FIRST: [u64; 3] = [1000, 600, 50];

#[test]
fn a_count_repeated_at_the_next_turn_stays_with_its_answer() {
    let first = head() + &message("user", "hello") + &message("assistant", "hi there") + &count(FIRST, FIRST);
    let second = message("user", "again") + &count(FIRST, FIRST) + &message("assistant", "yes");
    let source = first + &second + &count([3000, 1000, 70], [2000, 400, 20]);
    assert_eq!(counted("codex", &source), (2, [2000, 70, 1000]));
    let (back, outcome) = converted("codex", &source, "claude-code");
    assert_eq!(counted("claude-code", &back), (2, [2000, 70, 1000]));
    let dropped: Vec<_> = outcome.losses.losses.keys().filter(|(_, field, _)| field == "usage").collect();
    assert!(dropped.is_empty(), "{dropped:?}");
}

#[test]
fn tokens_without_an_answer_are_reported() {
    let source = head() + &count(FIRST, FIRST) + &message("user", "hello") + &message("assistant", "hi there");
    let (back, outcome) = converted("codex", &source, "claude-code");
    assert_eq!(counted("claude-code", &back), (0, [0; 3]));
    let found = outcome.losses.losses.get(&(Kind::Fact, "usage".to_owned(), LossKind::Dropped { why: "" }));
    assert_eq!(found.map(|count| count.times), Some(1));
}

#[test]
fn tokens_of_a_rolled_back_turn_are_reported() {
    let first = head() + &message("user", "hello") + &message("assistant", "hi") + &count(FIRST, FIRST);
    let back = record("event_msg", r#"{"type":"thread_rolled_back","num_turns":1}"#);
    let source = first + &back + &message("user", "again") + &message("assistant", "yes");
    let (_, outcome) = converted("codex", &source, "claude-code");
    let is_usage_loss = |(_, field, how): &&(Kind, String, LossKind)| field == "usage" && how.is_loss();
    assert_eq!(outcome.losses.losses.keys().filter(is_usage_loss).count(), 1, "{}", outcome.losses.to_json());
}

#[test]
fn an_answer_without_token_counts_is_not_a_call() {
    let source = "{\"role\":\"user\",\"content\":\"hello\"}\n{\"role\":\"assistant\",\"content\":\"hi there\"}\n";
    assert_eq!(counted("openai-chat", source).0, 0);
    let (back, outcome) = converted("openai-chat", source, "claude-code");
    assert_eq!(counted("claude-code", &back).0, 0);
    assert!(!back.contains("\"usage\"") && outcome.output_notes.is_empty(), "{back}");
}

#[test]
fn tokens_of_a_forwarded_call_are_reported() {
    let (_, outcome) = converted("claude-code", include_str!("ledger/claude-code-progress/main.jsonl"), "codex");
    let is_usage_loss = |(_, field, how): &&(Kind, String, LossKind)| field == "usage" && how.is_loss();
    assert_eq!(outcome.losses.losses.keys().filter(is_usage_loss).count(), 1, "{}", outcome.losses.to_json());
}
