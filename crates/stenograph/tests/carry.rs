//! Restoring a carried source after its carrying file was edited.

#![expect(clippy::expect_used, reason = "a test that cannot go on should say why")]

use std::fs;
use std::path::Path;

use stenograph::carry::{Carried, attach, seal};
use stenograph::convert::{Carry, ConversionMethod, convert};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::loss::LossKind;
use stenograph::{Detected, Registry};

const SOURCE: &str = concat!(
    "{\"id\":\"e1\",\"timestamp\":1705123456,\"from\":\"alice\",\"to\":\"default\",\"content\":\"What is  Rust?\",\"entry_type\":\"message\"}\n",
    "\n",
    "{\"entry_type\":\"message\", \"id\":\"e2\",\"timestamp\":1705123460,\"from\":\"default\",\"to\":\"user\",\"content\":\"A language.\",\"mood\":7}\n",
    "{\"id\":\"e3\",\"timestamp\":1705123470,\"from\":\"alice\",\"to\":\"default\",\"content\":\"More?\",\"entry_type\":\"message\"}",
);

fn format(name: &str) -> &'static dyn Format {
    Registry::built_in().named(name).expect("a format of that name")
}

fn carrying_file() -> String {
    let mut out = Vec::new();
    convert(format("chibi"), &mut SOURCE.as_bytes(), format("steno"), &mut out, Carry::Embed).expect("converts");
    String::from_utf8(out).expect("is UTF-8")
}

fn back(carried: &str) -> (String, ConversionMethod) {
    let mut out = Vec::new();
    let outcome = convert(format("steno"), &mut carried.as_bytes(), format("chibi"), &mut out, Carry::Omit);
    (String::from_utf8(out).expect("is UTF-8"), outcome.expect("converts").method)
}

#[test]
fn an_unedited_file_gives_the_source_byte_for_byte() {
    assert_eq!(back(&carrying_file()), (SOURCE.to_owned(), ConversionMethod::Restored));
}

#[test]
fn an_edited_record_changes_only_what_was_edited() {
    let edited = carrying_file().replacen("A language.", "A systems language.", 1);
    let (source, method) = back(&edited);
    assert_eq!(method, ConversionMethod::Merged { edited: 1, added: 0, missing: 0 });
    assert_eq!(source, SOURCE.replace("A language.", "A systems language.").replace("\", \"id", "\",\"id"));
}

#[test]
fn a_missing_run_is_detected() {
    let there = carrying_file();
    let fewer: Vec<&str> = there.lines().enumerate().filter(|(at, _)| *at != 1).map(|(_, line)| line).collect();
    let (source, method) = back(&(fewer.join("\n") + "\n"));
    assert_eq!(method, ConversionMethod::Merged { edited: 0, added: 0, missing: 1 });
    assert!(source.contains("What is  Rust?") && source.contains("More?") && !source.contains("A language."));
}

#[test]
fn a_missing_end_is_detected() {
    let there = carrying_file();
    let first = there.lines().next().expect("has a line");
    assert_eq!(back(&format!("{first}\n")).1, ConversionMethod::Merged { edited: 0, added: 0, missing: 1 });
}

#[test]
fn an_inserted_record_is_converted() {
    let mut lines: Vec<String> = carrying_file().lines().map(str::to_owned).collect();
    lines.insert(1, r#"{"v":1,"kind":"message","id":"n1","role":"user","content":"Put in between."}"#.to_owned());
    let (source, method) = back(&(lines.join("\n") + "\n"));
    assert_eq!(method, ConversionMethod::Merged { edited: 0, added: 1, missing: 0 });
    assert!(source.contains("\"content\":\"Put in between.\""));
    for line in source.lines().filter(|line| !line.is_empty()) {
        assert!(stenograph::json::is_valid(line), "{line}");
    }
}

const SESSION: &str = concat!(
    r#"{"type":"summary","summary":"A walk","leafUuid":"9d2f6c1e-0000-4000-8000-000000000004"}"#,
    "\n",
    r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"Look around."},"uuid":"9d2f6c1e-0000-4000-8000-000000000001","timestamp":"2026-03-02T09:14:05.000Z","sessionId":"9d2f6c1e-0000-4000-8000-00000000000f"}"#,
    "\n",
    r#"{"parentUuid":"9d2f6c1e-0000-4000-8000-000000000001","isSidechain":false,"type":"assistant","message":{"id":"msg_1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"list","input":{"path":"."}}]},"uuid":"9d2f6c1e-0000-4000-8000-000000000002","timestamp":"2026-03-02T09:14:06.000Z","sessionId":"9d2f6c1e-0000-4000-8000-00000000000f"}"#,
    "\n",
    r#"{"parentUuid":"9d2f6c1e-0000-4000-8000-000000000002","isSidechain":false,"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"a heron"}]},"uuid":"9d2f6c1e-0000-4000-8000-000000000003","timestamp":"2026-03-02T09:14:07.000Z","sessionId":"9d2f6c1e-0000-4000-8000-00000000000f"}"#,
    "\n",
    r#"{"parentUuid":"9d2f6c1e-0000-4000-8000-000000000003","isSidechain":false,"type":"assistant","message":{"id":"msg_2","role":"assistant","model":"m","content":[{"type":"text","text":"There is a lake nearby."}]},"uuid":"9d2f6c1e-0000-4000-8000-000000000004","timestamp":"2026-03-02T09:14:08.000Z","sessionId":"9d2f6c1e-0000-4000-8000-00000000000f"}"#,
    "\n",
);

/// Converts the session to a format that carries it, replaces one text outside the carried source, and converts back.
fn edited_through(name: &str, from: &str, to: &str) -> Option<(String, ConversionMethod, bool)> {
    let mut out = Vec::new();
    convert(format("claude-code"), &mut SESSION.as_bytes(), format(name), &mut out, Carry::Embed).ok()?;
    let carried = String::from_utf8(out).expect("is UTF-8");
    // The carried source has the same words: edit only the text outside it.
    let mut edited = String::new();
    let mut rest = carried.as_str();
    while let Some(at) = rest.find("\"steno\":{") {
        let (own, key) = rest.split_at(at);
        let end = key.find("\"src\":").map_or(key.len(), |at| at + 6);
        let end =
            key.get(end..).and_then(|tail| tail.find("\\n\"}").or(tail.find("\"}"))).map_or(key.len(), |at| end + at);
        let (key, tail) = key.split_at(end);
        edited.push_str(&own.replace(from, to));
        edited.push_str(key);
        rest = tail;
    }
    edited.push_str(&rest.replace(from, to));
    let mut back = Vec::new();
    let outcome =
        convert(format(name), &mut edited.as_bytes(), format("claude-code"), &mut back, Carry::Omit).expect("converts");
    Some((String::from_utf8(back).expect("is UTF-8"), outcome.method, outcome.losses.is_lossy()))
}

#[test]
fn an_edit_survives_every_carrying_format_and_nothing_else_changes() {
    for format in stenograph::formats::FORMATS.iter().filter(|format| format.info().traits.carries) {
        let name = format.info().name;
        for (from, to) in [("There is a lake nearby.", "There is a pond nearby."), ("a heron", "a stork")] {
            let Some((back, method, lossy)) = edited_through(name, from, to) else { continue };
            if back == SESSION {
                // That format does not have the text, or no event of the source corresponds to it: the report must say so.
                assert!(method == ConversionMethod::Restored || lossy, "{name}");
                continue;
            }
            let expected = SESSION.replace(from, to);
            assert_eq!(back.lines().count(), SESSION.lines().count(), "{name}: {back}");
            for (found, expected) in back.lines().zip(expected.lines()) {
                assert_eq!(stenograph::json::canonical(found), stenograph::json::canonical(expected), "{name}");
            }
        }
    }
}

#[test]
fn respelling_the_json_of_a_file_is_not_an_edit() {
    let mut out = Vec::new();
    convert(format("claude-code"), &mut SESSION.as_bytes(), format("codex"), &mut out, Carry::Embed).expect("converts");
    let respelled: Vec<String> = String::from_utf8(out)
        .expect("is UTF-8")
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("is JSON").to_string())
        .collect();
    let mut back = Vec::new();
    let file = respelled.join("\n") + "\n";
    let outcome = convert(format("codex"), &mut file.as_bytes(), format("claude-code"), &mut back, Carry::Omit);
    assert_eq!(outcome.expect("converts").method, ConversionMethod::Restored);
    assert_eq!(String::from_utf8(back).expect("is UTF-8"), SESSION);
}

#[test]
fn a_forwarded_source_is_restored() {
    let converted = |from: &str, source: &[u8], to: &str, carry: Carry| {
        let mut out = Vec::new();
        let outcome = convert(format(from), &mut { source }, format(to), &mut out, carry).expect("converts");
        (out, outcome)
    };
    let (chibi, outcome) = converted("claude-code", SESSION.as_bytes(), "chibi", Carry::Embed);
    assert_eq!(outcome.carries.as_deref(), Some("claude-code"));
    // Converting back gives only the carried source.
    let (back, outcome) = converted("chibi", &chibi, "claude-code", Carry::Embed);
    assert_eq!((outcome.method, outcome.carries), (ConversionMethod::Restored, None));
    assert_eq!(back, SESSION.as_bytes());
    // Converting further embeds the same source in the next file.
    let (codex, outcome) = converted("chibi", &chibi, "codex", Carry::Embed);
    assert_eq!((outcome.method, outcome.carries.as_deref()), (ConversionMethod::Written, Some("claude-code")));
    assert_eq!(converted("codex", &codex, "claude-code", Carry::Omit).0, SESSION.as_bytes());
}

/// The session with a record at its end that has no place in any other format.
fn with_closing_record() -> String {
    let last = r#"{"parentUuid":"9d2f6c1e-0000-4000-8000-000000000004","isSidechain":false,"type":"system","subtype":"turn_duration","durationMs":4100,"uuid":"9d2f6c1e-0000-4000-8000-000000000005","timestamp":"2026-03-02T09:14:09.000Z","sessionId":"9d2f6c1e-0000-4000-8000-00000000000f"}"#;
    format!("{SESSION}{last}\n")
}

#[test]
fn records_added_after_a_carried_source_come_after_all_of_it() {
    let source = with_closing_record();
    let mut out = Vec::new();
    convert(format("claude-code"), &mut source.as_bytes(), format("codex"), &mut out, Carry::Embed).expect("converts");
    let message = |role: &str, kind: &str, text: &str| {
        format!(
            "{{\"timestamp\":\"2026-03-02T09:20:00.000Z\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\
             \"role\":\"{role}\",\"content\":[{{\"type\":\"{kind}\",\"text\":\"{text}\"}}]}}}}\n"
        )
    };
    let more = message("user", "input_text", "And the reeds?") + &message("assistant", "output_text", "They rustle.");
    let continued = String::from_utf8(out).expect("is UTF-8") + &more;
    let mut back = Vec::new();
    let outcome = convert(format("codex"), &mut continued.as_bytes(), format("claude-code"), &mut back, Carry::Omit)
        .expect("converts");
    let back = String::from_utf8(back).expect("is UTF-8");
    let new = back.strip_prefix(&source).expect("the old file comes first");
    let lines: Vec<&str> = new.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("And the reeds?") && lines[1].contains("They rustle."), "{new}");
    assert_eq!(outcome.method, ConversionMethod::Merged { edited: 0, added: 2, missing: 0 });
    // Only fields that the new records need may be invented.
    for ((kind, field, how), count) in &outcome.losses.losses {
        assert!(*how != LossKind::Invented || count.times <= 2, "{} {field}: {}", kind.name(), count.times);
    }
    assert!(!outcome.losses.is_lossy(), "{:?}", outcome.losses.summary());
}

#[test]
fn forwarding_does_not_hide_an_edit() {
    let mut first = Vec::new();
    convert(format("claude-code"), &mut SESSION.as_bytes(), format("codex"), &mut first, Carry::Embed)
        .expect("converts");
    let edited = String::from_utf8(first).expect("is UTF-8").replacen("Look around.", "Look back.", 1);
    let mut second = Vec::new();
    convert(format("codex"), &mut edited.as_bytes(), format("chibi"), &mut second, Carry::Embed).expect("converts");
    let mut back = Vec::new();
    let outcome =
        convert(format("chibi"), &mut second.as_slice(), format("codex"), &mut back, Carry::Omit).expect("converts");
    assert_eq!((outcome.method, String::from_utf8(back).expect("is UTF-8")), (ConversionMethod::Restored, edited));
}

/// The file as another version of the writer would write it: every record has another text, with a valid seal.
fn written_differently(carried: &str) -> String {
    let mut out = String::new();
    for line in carried.lines() {
        let (run, plain) = Carried::open(line).expect("carries");
        let other = plain.replace("\"content\":\"", "\"content\":\"(said) ");
        let run = Carried { seal: seal(other.as_bytes()), ..run };
        out.push_str(&String::from_utf8(attach(other.as_bytes(), &run)).expect("is UTF-8"));
        out.push('\n');
    }
    out
}

#[test]
fn another_spelling_by_the_writer_is_not_an_edit() {
    let there = written_differently(&carrying_file());
    assert_eq!(back(&there), (SOURCE.to_owned(), ConversionMethod::Restored));
    let edited = there.replacen("(said) A language.", "A systems language.", 1);
    let (source, method) = back(&edited);
    assert_eq!(method, ConversionMethod::Merged { edited: 1, added: 0, missing: 0 });
    assert_eq!(source, SOURCE.replace("A language.", "A systems language.").replace("\", \"id", "\",\"id"));
}

#[test]
fn events_that_the_writer_omits_are_not_removed() {
    let lines: Vec<String> = written_differently(&carrying_file()).lines().map(str::to_owned).collect();
    // The second record has no event of the source, with a valid seal; the third one is edited.
    let (run, _) = Carried::open(&lines[1]).expect("carries");
    let silent = r#"{"v":1,"kind":"fact","name":"nothing"}"#;
    let silent = attach(silent.as_bytes(), &Carried { seal: seal(silent.as_bytes()), ..run });
    let silent = String::from_utf8(silent).expect("is UTF-8");
    let file = [lines[0].clone(), silent, lines[2].replace("(said) More?", "Less?")].join("\n");
    let (source, method) = back(&file);
    assert_eq!(method, ConversionMethod::Merged { edited: 1, added: 0, missing: 0 });
    assert_eq!(source, SOURCE.replace("More?", "Less?"));
}

#[test]
fn a_carrying_file_is_detected_as_its_own_format() {
    let mut tried = 0;
    for from in FORMATS {
        let folder = from.info().name.replace('-', "_");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats").join(folder).join("fixtures");
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() || matches!(path.extension().and_then(|end| end.to_str()), Some("golden" | "losses")) {
                continue;
            }
            let bytes = fs::read(&path).expect("can be read");
            for to in FORMATS.iter().filter(|to| to.info().traits.carries && to.info().name != from.info().name) {
                let mut there = Vec::new();
                if convert(*from, &mut bytes.as_slice(), *to, &mut there, Carry::Embed).is_err() || there.is_empty() {
                    continue;
                }
                let found = Registry::built_in().detect(&there);
                let known = matches!(&found, Detected::Format(found) if found.info().name == to.info().name);
                assert!(known, "{} as {}: {found:?}", path.display(), to.info().name);
                let mut back = Vec::new();
                convert(*to, &mut there.as_slice(), *from, &mut back, Carry::Omit).expect("converts back");
                assert!(back == bytes, "{} through {}", path.display(), to.info().name);
                tried += 1;
            }
        }
    }
    assert!(tried > 100, "{tried}");
}
