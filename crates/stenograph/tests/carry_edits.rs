//! Edits of a carrying file are merged into the source in the spelling of its format, or the loss report lists them.

#![expect(clippy::expect_used, reason = "a test that cannot go on should say why")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use stenograph::Registry;
use stenograph::convert::{Carry, Outcome, convert};
use stenograph::format::Format;
use stenograph::loss::LossKind;
use stenograph::model::Kind;

/// JSON Lines formats, each of which can carry every other.
const FORMATS: [&str; 6] = ["claude-code", "codex", "openai-chat", "chibi", "claude-events", "steno"];

const MARK: &str = "EDITED: ";

fn format(name: &str) -> &'static dyn Format {
    Registry::built_in().named(name).expect("a format of that name")
}

fn demo(name: &str) -> Vec<u8> {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats");
    fs::read(formats.join(name.replace('-', "_")).join("fixtures/demo.jsonl")).expect("the fixture is there")
}

fn converted(from: &str, source: &[u8], to: &str, carry: Carry) -> (String, Outcome) {
    let (mut out, mut source) = (Vec::new(), source);
    let outcome = convert(format(from), &mut source, format(to), &mut out, carry).expect("converts");
    (String::from_utf8(out).expect("is UTF-8"), outcome)
}

/// Puts the mark before the first longer text outside the carried source; returns whether there is one.
fn edit(value: &mut Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter_mut().any(|(key, value)| match (key.as_str(), value) {
            ("steno" | "extra", _) => false,
            ("text" | "content" | "message" | "prompt", Value::String(text)) if text.len() > 15 => {
                text.insert_str(0, MARK);
                true
            }
            (_, value) => edit(value),
        }),
        Value::Array(items) => items.iter_mut().any(edit),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Collects the values of all keys `type`.
fn types(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("type").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| types(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| types(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn types_of(lines: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in lines.lines().filter(|line| !line.is_empty()) {
        types(&serde_json::from_str(line).expect("is JSON"), &mut found);
    }
    found
}

/// The file with the text of one record edited, once for each record that has a text, and the edited record.
fn each_edit(carried: &str) -> Vec<(Value, String)> {
    let lines: Vec<&str> = carried.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let mut record: Value = serde_json::from_str(line).expect("is JSON");
        if edit(&mut record) {
            let spelled = record.to_string();
            let edited: Vec<&str> =
                lines.iter().enumerate().map(|(other, line)| if other == at { &spelled } else { *line }).collect();
            found.push((record, edited.join("\n") + "\n"));
        }
    }
    found
}

#[test]
fn an_edit_is_merged_in_the_spelling_of_the_source_or_reported() {
    for of in FORMATS {
        let source = demo(of);
        let notes = stenograph::read::all(format(of), &source).notes.len();
        let known = types_of(&String::from_utf8_lossy(&source));
        for through in FORMATS.into_iter().filter(|through| *through != of) {
            let (carried, _) = converted(of, &source, through, Carry::Embed);
            for (record, edited) in each_edit(&carried) {
                let (back, outcome) = converted(through, edited.as_bytes(), of, Carry::Omit);
                let what = format!("{of} through {through}: {record}");
                assert_eq!(types_of(&back).difference(&known).next(), None, "{what}");
                assert!(stenograph::read::all(format(of), back.as_bytes()).notes.len() <= notes, "{what}");
                assert!(back.contains(MARK) || outcome.losses.is_lossy(), "{what}");
            }
        }
    }
}

#[test]
fn an_edit_of_a_restatement_is_reported() {
    let (carried, _) = converted("claude-code", &demo("claude-code"), "codex", Carry::Embed);
    let edits = each_edit(&carried);
    let repeats = edits.iter().filter(|(record, _)| record["payload"]["type"] == "user_message");
    let mut count = 0;
    for (_, edited) in repeats {
        let (back, outcome) = converted("codex", edited.as_bytes(), "claude-code", Carry::Omit);
        assert!(!back.contains(MARK));
        let why = "edited, but it only repeats another record";
        let found = outcome.losses.losses.get(&(Kind::Message, String::new(), LossKind::Dropped { why }));
        assert_eq!(found.map(|count| count.times), Some(1));
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn an_edit_of_a_record_and_its_restatement_is_one_edit() {
    let (carried, _) = converted("claude-code", &demo("claude-code"), "codex", Carry::Embed);
    let edited: Vec<String> = carried
        .lines()
        .map(|line| {
            let mut record: Value = serde_json::from_str(line).expect("is JSON");
            let kind = record["payload"]["type"].as_str().unwrap_or_default();
            let is_user_text = kind == "user_message" || record["payload"]["role"] == "user";
            if is_user_text && edit(&mut record) { record.to_string() } else { line.to_owned() }
        })
        .collect();
    let (back, outcome) = converted("codex", (edited.join("\n") + "\n").as_bytes(), "claude-code", Carry::Omit);
    assert!(back.contains(MARK));
    assert!(!outcome.losses.to_json().contains("only repeats"), "{}", outcome.losses.to_json());
}

#[test]
fn blocks_added_to_a_list_become_blocks_of_the_source_format() {
    let line = r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"text","text":"Where is the heron?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},"uuid":"9d2f6c1e-0000-4000-8000-000000000001","timestamp":"2026-03-02T09:14:05.000Z","sessionId":"9d2f6c1e-0000-4000-8000-00000000000f"}"#;
    let (carried, _) = converted("claude-code", format!("{line}\n").as_bytes(), "codex", Carry::Embed);
    let edited = carried.replacen(
        r#"{"type":"input_text","text":"Where is the heron?"}"#,
        r#"{"type":"input_text","text":"Look."},{"type":"input_text","text":"Where is the heron?"}"#,
        1,
    );
    assert_ne!(edited, carried);
    let (back, _) = converted("codex", edited.as_bytes(), "claude-code", Carry::Omit);
    let record: Value = serde_json::from_str(back.lines().next().expect("has a line")).expect("is JSON");
    let content = serde_json::json!([
        {"type": "text", "text": "Look."},
        {"type": "text", "text": "Where is the heron?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    ]);
    assert_eq!(record["message"]["content"], content);
}
