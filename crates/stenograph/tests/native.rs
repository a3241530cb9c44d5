//! The exact bytes that conversions between the two most common formats write: the loss report compares what our readers
//! understand, and these files are for somebody who knows the agents themselves.
//!
//! The golden files are in `tests/native`. `STENO_UPDATE=1` writes them; review them like code.

#![expect(clippy::expect_used, reason = "a test that cannot go on should say why")]

use std::fs;
use std::path::Path;

use stenograph::Registry;
use stenograph::convert::{Carry, convert};
use stenograph::format::Format;

fn format(name: &str) -> &'static dyn Format {
    Registry::built_in().named(name).expect("a format of that name")
}

fn converted(from: &str, source: &[u8], to: &str) -> String {
    let (mut out, mut source) = (Vec::new(), source);
    convert(format(from), &mut source, format(to), &mut out, Carry::Omit).expect("converts");
    String::from_utf8(out).expect("is UTF-8")
}

/// Converts a fixture and compares the result with its golden file.
fn golden(from: &str, fixture: &str, to: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = root.join("src/formats").join(from.replace('-', "_")).join("fixtures").join(fixture);
    let found = converted(from, &fs::read(source).expect("the fixture is there"), to);
    let path = root.join("tests/native").join(format!("{from}.{fixture}.{to}"));
    if std::env::var_os("STENO_UPDATE").is_some() {
        return fs::write(&path, found).expect("the golden can be written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    for (number, (golden, found)) in (1..).zip(golden.lines().zip(found.lines())) {
        assert_eq!(golden, found, "{} differs at line {number}", path.display());
    }
    assert!(golden == found, "{} has another number of lines", path.display());
}

#[test]
fn claude_code_becomes_codex() {
    golden("claude-code", "session.jsonl", "codex");
    golden("claude-code", "compaction.jsonl", "codex");
}

#[test]
fn codex_becomes_claude_code() {
    golden("codex", "session.jsonl", "claude-code");
    golden("codex", "compaction.jsonl", "claude-code");
    golden("codex", "rewind.jsonl", "claude-code");
}

#[test]
fn only_images_become_images() {
    let converted = |content: &str| {
        let source = format!("{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"see\"}},{content}]}}\n");
        self::converted("openai-chat", source.as_bytes(), "codex")
    };
    assert!(!converted(r#"{"type":"file","file":{"file_id":"file-x"}}"#).contains("input_image"));
    assert!(!converted(r#"{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}}"#).contains("input_image"));
    let address = "https://example.com/picture/7";
    let seen = converted(&format!("{{\"type\":\"image_url\",\"image_url\":{{\"url\":\"{address}\"}}}}"));
    assert!(seen.contains(&format!("{{\"type\":\"input_image\",\"image_url\":\"{address}\"}}")));
    assert!(seen.contains(&format!("\"images\":[\"{address}\"]")), "the event lists the images of the item");
}
