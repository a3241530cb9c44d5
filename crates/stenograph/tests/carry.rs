//! Carrying a source along, when somebody touches what carries it.

#![expect(clippy::expect_used, reason = "a test that cannot go on should say why")]

use stenograph::convert::{Carry, Way, convert};
use stenograph::format::{Format, named};

const SOURCE: &str = concat!(
    "{\"id\":\"e1\",\"timestamp\":1705123456,\"from\":\"alice\",\"to\":\"default\",\"content\":\"What is  Rust?\",\"entry_type\":\"message\"}\n",
    "\n",
    "{\"entry_type\":\"message\", \"id\":\"e2\",\"timestamp\":1705123460,\"from\":\"default\",\"to\":\"user\",\"content\":\"A language.\",\"mood\":7}\n",
    "{\"id\":\"e3\",\"timestamp\":1705123470,\"from\":\"alice\",\"to\":\"default\",\"content\":\"More?\",\"entry_type\":\"message\"}",
);

fn format(name: &str) -> &'static dyn Format {
    named(name).expect("a format of that name")
}

fn there() -> String {
    let mut out = Vec::new();
    convert(format("chibi"), &mut SOURCE.as_bytes(), format("steno"), &mut out, Carry::Along).expect("converts");
    String::from_utf8(out).expect("is UTF-8")
}

fn back(carried: &str) -> (String, Way) {
    let mut out = Vec::new();
    let outcome = convert(format("steno"), &mut carried.as_bytes(), format("chibi"), &mut out, Carry::Not);
    (String::from_utf8(out).expect("is UTF-8"), outcome.expect("converts").way)
}

#[test]
fn untouched_it_comes_back_byte_for_byte() {
    assert_eq!(back(&there()), (SOURCE.to_owned(), Way::Restored));
}

#[test]
fn an_edited_record_changes_only_what_was_edited() {
    let edited = there().replacen("A language.", "A systems language.", 1);
    let (source, way) = back(&edited);
    assert_eq!(way, Way::Mended { edited: 1, missing: 0 });
    assert_eq!(source, SOURCE.replace("A language.", "A systems language.").replace("\", \"id", "\",\"id"));
}

#[test]
fn a_missing_run_is_noticed() {
    let there = there();
    let fewer: Vec<&str> = there.lines().enumerate().filter(|(at, _)| *at != 1).map(|(_, line)| line).collect();
    let (source, way) = back(&(fewer.join("\n") + "\n"));
    assert_eq!(way, Way::Mended { edited: 0, missing: 1 });
    assert!(source.contains("What is  Rust?") && source.contains("More?") && !source.contains("A language."));
}

#[test]
fn a_missing_end_is_noticed() {
    let there = there();
    let first = there.lines().next().expect("has a line");
    assert_eq!(back(&format!("{first}\n")).1, Way::Mended { edited: 0, missing: 1 });
}

#[test]
fn a_record_put_in_between_is_converted() {
    let mut lines: Vec<String> = there().lines().map(str::to_owned).collect();
    lines.insert(1, r#"{"v":1,"kind":"message","id":"n1","role":"user","content":"Put in between."}"#.to_owned());
    let (source, way) = back(&(lines.join("\n") + "\n"));
    assert_eq!(way, Way::Mended { edited: 1, missing: 0 });
    assert!(source.contains("\"content\":\"Put in between.\""));
    for line in source.lines().filter(|line| !line.is_empty()) {
        assert!(stenograph::json::is_valid(line), "{line}");
    }
}
