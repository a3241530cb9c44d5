//! Diffs of sessions, checked with the real git: applied to the original files, they give the final files.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may fail loudly")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use stenograph::changes::{Changes, ChangesOutcome};
use stenograph::formats::FORMATS;
use stenograph::model::{Body, Content, Event, Extra, ExtraFields, Held, Input};
use stenograph::text::quote;

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stenograph-changes-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn apply(&self, diff: &str) -> Result<(), String> {
        let mut git = Command::new("git")
            .args(["apply", "-"])
            .current_dir(&self.0)
            // The folder may be inside a repository, which git must ignore.
            .env("GIT_CEILING_DIRECTORIES", self.0.parent().unwrap())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut git.stdin.take().unwrap(), diff.as_bytes()).unwrap();
        let output = git.wait_with_output().unwrap();
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join(name)).ok()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn add_call(changes: &mut Changes, id: usize, tool: &str, input: String, output: String) {
    let call = Some(format!("call{id}").into());
    let input = Input::Json(input.into());
    let body = Body::ToolCall { call: call.clone(), name: tool.to_owned().into(), input };
    changes.add(&Event { cwd: Some("/w".into()), ..Event::new(body) });
    let content = Content::text(output);
    changes.add(&Event::new(Body::ToolResult { call, name: None, content, error: Some(false) }));
}

fn diff(outcome: &ChangesOutcome) -> String {
    outcome.files.iter().map(|file| file.diff.as_str()).collect()
}

/// A random operation on a text.
#[derive(Clone, Debug)]
enum Operation {
    Replace { at: usize, length: usize, new: String },
    Everywhere { old: String, new: String },
    Insert { after: usize, text: String },
    Patch { at: usize, length: usize, new: Vec<String> },
    Write(String),
    Look,
}

fn line() -> impl Strategy<Value = String> {
    // Few distinct lines, so that many are equal: diffs and searches go wrong there.
    prop_oneof!["[a-d]{0,2}", Just("-- x".to_owned()), Just("@@ -1 +1 @@".to_owned()), "é{1,2}"]
}

fn text() -> impl Strategy<Value = String> {
    (prop::collection::vec(line(), 0..30), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.join("\n");
        if ended && !text.is_empty() { text + "\n" } else { text }
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (any::<usize>(), 1_usize..12, "[a-d\n]{0,9}").prop_map(|(at, length, new)| Operation::Replace { at, length, new }),
        1 => ("[a-d]{1,2}", "[a-d\n]{0,3}").prop_map(|(old, new)| Operation::Everywhere { old, new }),
        2 => (any::<usize>(), "[a-d]{1,3}").prop_map(|(after, text)| Operation::Insert { after, text }),
        3 => (any::<usize>(), 1_usize..4, prop::collection::vec(line(), 0..4))
            .prop_map(|(at, length, new)| Operation::Patch { at, length, new }),
        1 => text().prop_map(Operation::Write),
        1 => Just(Operation::Look),
    ]
}

/// Applies an operation to the text and returns the call for it; `None` if a tool would refuse it.
fn apply_to(text: &mut String, operation: &Operation) -> Option<(&'static str, String, String)> {
    let path = r#""path":"a.txt""#;
    match operation {
        Operation::Replace { at, length, new } => {
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let from = *starts.get(at.checked_rem(starts.len())?)?;
            let old: String = text[from..].chars().take(*length).collect();
            let next = from + old.chars().next()?.len_utf8();
            if text.matches(old.as_str()).count() != 1 || text[next..].contains(old.as_str()) {
                return None;
            }
            *text = text.replacen(&old, new, 1);
            Some((
                "edit",
                format!("{{{path},\"old_string\":{},\"new_string\":{}}}", quote(&old), quote(new)),
                "ok".into(),
            ))
        }
        Operation::Everywhere { old, new } => {
            if !text.contains(old.as_str()) {
                return None;
            }
            *text = text.replace(old.as_str(), new);
            let input =
                format!("{{{path},\"old_str\":{},\"new_str\":{},\"replace_all\":true}}", quote(old), quote(new));
            Some(("str_replace", input, "ok".into()))
        }
        Operation::Insert { after, text: new } => {
            let lines: Vec<&str> = text.lines().collect();
            if text.is_empty() || !text.ends_with('\n') {
                return None;
            }
            let after = after % (lines.len() + 1);
            let mut out: Vec<&str> = lines.clone();
            out.insert(after, new);
            let input = format!("{{{path},\"command\":\"insert\",\"insert_line\":{after},\"new_str\":{}}}", quote(new));
            *text = out.join("\n") + "\n";
            Some(("editor", input, "ok".into()))
        }
        Operation::Patch { at, length, new } => {
            if text.is_empty() || !text.ends_with('\n') {
                return None;
            }
            let lines: Vec<&str> = text.lines().collect();
            let at = at % lines.len();
            let end = (at + length).min(lines.len());
            let marked =
                |mark: char, lines: &[&str]| -> String { lines.iter().map(|line| format!("{mark}{line}\n")).collect() };
            let fresh: Vec<&str> = new.iter().map(String::as_str).collect();
            let old = &lines[at..end];
            if old == fresh {
                return None;
            }
            let diff = format!(
                "--- a/a.txt\n+++ b/a.txt\n@@ -{},{} +{},{} @@\n{}{}",
                at + 1,
                old.len(),
                if fresh.is_empty() { at } else { at + 1 },
                fresh.len(),
                marked('-', old),
                marked('+', &fresh)
            );
            let out: Vec<&str> = lines[..at].iter().chain(&fresh).chain(&lines[end..]).copied().collect();
            *text = out.iter().map(|line| format!("{line}\n")).collect();
            Some(("apply_diff", format!("{{{path},\"diff\":{}}}", quote(&diff)), "ok".into()))
        }
        Operation::Write(new) => {
            text.clone_from(new);
            Some(("write_file", format!("{{{path},\"content\":{}}}", quote(new)), "ok".into()))
        }
        Operation::Look => Some(("read_file", format!("{{{path}}}"), listing(text)?)),
    }
}

/// The text with line numbers; `None` if it does not end with a newline, which a listing cannot show.
fn listing(text: &str) -> Option<String> {
    if !text.ends_with('\n') {
        return None;
    }
    Some(text.lines().enumerate().map(|(at, line)| format!("{:>6}\t{line}\n", at + 1)).collect())
}

/// Tries a property with the same sessions on every machine, so that failures are reproducible.
fn for_any<S: Strategy>(sessions: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng).run(&sessions, property).unwrap();
}

/// The number of sessions tried: each starts git once.
const CASES: u32 = 300;

#[test]
fn git_turns_the_first_state_into_the_last() {
    for_any((text(), prop::collection::vec(operation(), 1..12)), |(base, operations)| {
        let folder = Folder::new();
        fs::write(folder.0.join("a.txt"), &base).unwrap();
        let mut changes = Changes::default();
        let mut now = base.clone();
        first_sight(&mut changes, &base);
        for (id, operation) in operations.iter().enumerate() {
            if let Some((tool, input, output)) = apply_to(&mut now, operation) {
                add_call(&mut changes, id, tool, input, output);
            }
        }
        let outcome = changes.finish();
        prop_assert!(outcome.unseen.is_empty(), "{:?}", outcome.unseen);
        let diff = diff(&outcome);
        if base == now {
            prop_assert_eq!(diff, "");
        } else {
            prop_assert!(outcome.files.iter().all(|file| file.exact));
            let applied = folder.apply(&diff);
            prop_assert!(applied.is_ok(), "{diff}\n{applied:?}");
            prop_assert_eq!(folder.text("a.txt"), Some(now), "{}", diff);
        }
        Ok(())
    });
}

/// If only some lines are read, the diff has only the known changes, and they are right.
#[test]
fn changes_of_known_parts_apply_to_the_whole_file() {
    let sessions = (text(), prop::collection::vec(operation(), 1..8), 0_usize..20, 1_usize..15);
    let exact = std::cell::Cell::new(0);
    for_any(sessions, |(base, operations, from, length)| {
        let folder = Folder::new();
        fs::write(folder.0.join("a.txt"), &base).unwrap();
        let mut changes = Changes::default();
        let mut now = base.clone();
        let lines = base.lines().enumerate().skip(from).take(length);
        let shown: String = lines.map(|(at, line)| format!("{}\u{2192}{line}\n", at + 1)).collect();
        if base.ends_with('\n') {
            add_call(&mut changes, 1000, "read_file", r#"{"path":"a.txt","offset":1,"limit":2}"#.to_owned(), shown);
        }
        for (id, operation) in operations.iter().enumerate() {
            let is_numbered = matches!(operation, Operation::Patch { .. } | Operation::Insert { .. });
            let call = Some(operation).filter(|_| is_numbered).and_then(|operation| apply_to(&mut now, operation));
            if let Some((tool, input, output)) = call {
                add_call(&mut changes, id, tool, input, output);
            }
        }
        let outcome = changes.finish();
        prop_assert!(outcome.unseen.is_empty(), "{:?}", outcome.unseen);
        if outcome.files.iter().all(|file| file.exact) && !outcome.files.is_empty() {
            exact.set(exact.get() + 1);
            let diff = diff(&outcome);
            let applied = folder.apply(&diff);
            prop_assert!(applied.is_ok(), "{diff}\n{applied:?}");
            prop_assert_eq!(folder.text("a.txt"), Some(now), "{}", diff);
        }
        Ok(())
    });
    assert!(exact.get() > 10, "only {} diffs were exact", exact.get());
}

#[test]
fn git_creates_deletes_and_moves_files() {
    let folder = Folder::new();
    fs::write(folder.0.join("old name.txt"), "one\ntwo\n").unwrap();
    fs::write(folder.0.join("gone.txt"), "x\n").unwrap();
    fs::write(folder.0.join("unknown.txt"), "somewhere\nthis\n").unwrap();
    let mut changes = Changes::default();
    let calls = [
        ("read_file", r#"{"path":"old name.txt"}"#, "1\tone\n2\ttwo\n"),
        ("read_file", r#"{"path":"gone.txt"}"#, "1\tx\n"),
        ("edit", r#"{"path":"unknown.txt","old_string":"this","new_string":"that"}"#, "ok"),
        ("edit", r#"{"path":"old name.txt","old_string":"two","new_string":"2"}"#, "ok"),
        ("move_file", r#"{"path":"old name.txt","destination":"sub/new name.txt"}"#, "ok"),
        ("delete_file", r#"{"path":"gone.txt"}"#, "ok"),
        ("create_file", r#"{"path":"empty","content":""}"#, "ok"),
        ("create_file", r#"{"path":"tab\tand \"quote\"","content":"x"}"#, "ok"),
    ];
    for (id, (tool, input, output)) in calls.into_iter().enumerate() {
        add_call(&mut changes, id, tool, input.to_owned(), output.to_owned());
    }
    let diff = diff(&changes.finish());
    // Git skips the part without line numbers and applies the rest.
    assert!(diff.contains("-this\n+that\n"), "{diff}");
    folder.apply(&diff).unwrap_or_else(|error| panic!("{error}\n{diff}"));
    assert_eq!(folder.text("sub/new name.txt").as_deref(), Some("one\n2\n"));
    assert_eq!(folder.text("old name.txt"), None);
    assert_eq!(folder.text("gone.txt"), None);
    assert_eq!(folder.text("empty").as_deref(), Some(""), "{diff}");
    assert_eq!(folder.text("unknown.txt").as_deref(), Some("somewhere\nthis\n"));
}

/// Adds a result that shows a whole file, to the last byte, in a structured form.
fn first_sight(changes: &mut Changes, base: &str) {
    let call = Some("first".into());
    let input = Input::Json(r#"{"path":"a.txt"}"#.into());
    changes.add(&Event {
        cwd: Some("/w".into()),
        ..Event::new(Body::ToolCall { call: call.clone(), name: "read_file".into(), input })
    });
    let length = base.matches('\n').count() + 1;
    let content = quote(base);
    let shown =
        format!(r#"{{"file":{{"content":{content},"startLine":1,"numLines":{length},"totalLines":{length}}}}}"#);
    let formats = FORMATS.iter().map(|format| format.info());
    let info = formats.filter(|info| info.effects_call.is_none()).find(|info| !info.effects.is_empty()).unwrap();
    let extra = ExtraFields(vec![(info.effects[0].into(), Held::Raw(shown.into()))]);
    let result = Body::ToolResult { call, name: None, content: Content::text("shown"), error: None };
    changes.add(&Event { extra: Extra::of(info, extra), ..Event::new(result) });
}
