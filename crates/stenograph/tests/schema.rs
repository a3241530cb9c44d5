//! The wire and its published schema: every native fixture, and every fixture of every format on the wire, is valid.

#![expect(clippy::expect_used, reason = "what is missing fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value;
use stenograph::formats::FORMATS;
use stenograph::model::{Kind, NoteKind, Role};
use stenograph::{convert, read, wire};

/// A fixture with lines of another version, which the schema does not describe.
const LATER: &str = "later.jsonl";

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn schema() -> Value {
    let text = fs::read_to_string(folder().join("../../docs/steno.schema.json")).expect("the schema is at hand");
    serde_json::from_str(&text).expect("the schema is JSON")
}

fn validator() -> Validator {
    let schema = schema();
    jsonschema::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::validator_for(&schema).expect("the schema can be used")
}

fn fixtures(format: &str) -> Vec<PathBuf> {
    let fixtures = folder().join("src/formats").join(format.replace('-', "_")).join("fixtures");
    let mut found: Vec<PathBuf> =
        fs::read_dir(fixtures).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.retain(|path| !path.extension().is_some_and(|ending| ending == "golden" || ending == "losses"));
    found.retain(|path| path.file_name().is_none_or(|name| name != LATER));
    found.sort();
    found
}

/// The errors of a line. The validator's parser rejects lone surrogates, which the wire allows, so they are replaced.
fn wrong(validator: &Validator, line: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(_) => match serde_json::from_str(&without_surrogates(line)) {
            Ok(value) => value,
            Err(error) => return Some(error.to_string()),
        },
    };
    let errors: Vec<String> =
        validator.iter_errors(&value).map(|error| format!("{error} at {}", error.instance_path())).collect();
    (!errors.is_empty()).then(|| errors.join("; "))
}

fn without_surrogates(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let code = escape.strip_prefix("\\u").and_then(|digits| digits.get(..4));
        let surrogate = code.and_then(|code| u32::from_str_radix(code, 16).ok()).is_some_and(|code| code >> 11 == 0x1b);
        let (escape, after) = escape.split_at_checked(if surrogate { 6 } else { 2 }).unwrap_or((escape, ""));
        out.push_str(if surrogate { "?" } else { escape });
        rest = after;
    }
    out + rest
}

fn check<'a>(path: &Path, lines: impl Iterator<Item = &'a str>) {
    let validator = validator();
    let wrong: Vec<String> = lines
        .filter(|line| !line.trim().is_empty())
        .filter_map(|line| wrong(&validator, line).map(|what| format!("{}:\n  {line}\n  {what}", path.display())))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn native_fixtures_match_the_schema() {
    for path in fixtures(wire::NAME) {
        let text = fs::read_to_string(&path).unwrap();
        // The note of a later version is in the fixture to be kept, not to be valid.
        check(&path, text.lines().filter(|line| !line.contains("of tomorrow")));
    }
}

#[test]
fn every_format_matches_the_schema_on_the_wire() {
    for format in FORMATS {
        for path in fixtures(format.info().name) {
            let found = read::all(*format, &fs::read(&path).unwrap());
            let at = found.events.iter().map(wire::event_at);
            let plain = found.events.iter().map(wire::event);
            let lines: Vec<String> = at.chain(plain).chain(found.notes.iter().map(wire::note)).collect();
            check(&path, lines.iter().map(String::as_str));
        }
    }
}

#[test]
fn a_carrying_file_matches_the_schema() {
    let native = stenograph::Registry::built_in().named(wire::NAME).unwrap();
    let chibi = stenograph::Registry::built_in().named("chibi").unwrap();
    for path in fixtures("chibi") {
        let mut out = Vec::new();
        let source = fs::read(&path).unwrap();
        convert::convert(chibi, &mut source.as_slice(), native, &mut out, convert::Carry::Embed).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.contains("\"seal\"")));
        check(&path, text.lines());
    }
}

#[test]
fn the_schema_lists_every_kind_role_and_note() {
    let schema = schema();
    let words = |pointer: &str| -> Vec<String> {
        let list = schema.pointer(pointer).and_then(Value::as_array).expect("a list of words");
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let sorted = |mut words: Vec<String>| {
        words.sort();
        words
    };
    let kinds = Kind::ALL.map(|kind| kind.name().to_owned()).to_vec();
    assert_eq!(sorted(words("/$defs/event/properties/kind/enum")), sorted(kinds));
    let roles = Role::ALL.map(|role| role.name().to_owned()).to_vec();
    assert_eq!(sorted(words("/$defs/message/properties/role/enum")), sorted(roles));
    let notes = NoteKind::ALL.map(|kind| kind.name().to_owned()).to_vec();
    assert_eq!(sorted(words("/$defs/note/properties/note/examples")), sorted(notes));
}

#[test]
fn invalid_lines_are_rejected() {
    let validator = validator();
    for line in [
        r#"{"kind":"stop"}"#,
        r#"{"v":2,"kind":"stop"}"#,
        r#"{"v":1,"kind":"dance"}"#,
        r#"{"v":1,"kind":"message","role":"choir","content":"la"}"#,
        r#"{"v":1,"kind":"message","role":"user"}"#,
        r#"{"v":1,"kind":"message","role":"user","content":[{"text":"a","url":"b"}]}"#,
        r#"{"v":1,"kind":"tool_call","name":"x"}"#,
        r#"{"v":1,"kind":"tool_result","content":"x","error":"no"}"#,
        r#"{"v":1,"kind":"stop","part":[1]}"#,
        r#"{"v":1,"kind":"stop","time":"noon"}"#,
        r#"{"v":1,"kind":"stop","usage":{"input":-1}}"#,
        r#"{"v":1,"kind":"stop","extra":{"codex":7}}"#,
        r#"{"v":1,"note":"torn","text":"where?"}"#,
        r#"{"v":1}"#,
    ] {
        assert!(wrong(&validator, line).is_some(), "{line}");
    }
    assert_eq!(wrong(&validator, r#"{"v":1,"kind":"stop","mood":"calm"}"#), None);
}
