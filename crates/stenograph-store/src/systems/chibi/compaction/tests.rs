//! What compacting a context keeps, archives and brings back, even with a crash after any single step.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::layouts::chibi::context::Context;
use crate::systems::chibi::window::tests::{Crashing, environment, held, ids, message, types};

fn line(id: &str, from: &str, to: &str, content: &str, rest: &str) -> String {
    format!(
        "{{\"id\":\"{id}\",\"timestamp\":1000,\"from\":\"{from}\",\"to\":\"{to}\",\"content\":\"{content}\",{rest}}}\n"
    )
}

/// A conversation with a prompt in its middle and a call that is answered a turn later.
fn conversation() -> String {
    [
        line("0", "system", "ctx", "Context created", "\"entry_type\":\"context_created\""),
        message("1", "ctx", "one"),
        message("2", "user", "first  answer"),
        line("3", "system", "ctx", "Be brief.", "\"entry_type\":\"message\",\"role\":\"system\", \"x\":1.50"),
        message("4", "ctx", "two"),
        line("5", "ctx", "read_file", "{}", "\"entry_type\":\"tool_call\",\"tool_call_id\":\"c\""),
        message("6", "ctx", "three"),
        line("7", "read_file", "ctx", "late", "\"entry_type\":\"tool_result\",\"tool_call_id\":\"c\""),
        message("8", "user", "third answer"),
        message("9", "ctx", "four"),
    ]
    .concat()
}

fn compacted(folder: &Path, turns: usize, summary: &str) -> WindowChange {
    let window = held(folder);
    let choice = window.choose(Keep::Turns(turns), &Tokenizer::default()).unwrap();
    window.compact(&choice, summary).unwrap()
}

fn undone(folder: &Path) -> WindowChange {
    held(folder).undo_compaction().unwrap().unwrap()
}

/// All files of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.path().is_file());
    files.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn kept_entries_follow_the_marker_unchanged_and_the_rest_is_archived() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("context.jsonl"), conversation()).unwrap();
    let changed = compacted(folder, 1, "They talked.");
    assert_eq!((changed.archived, changed.entries), (8, 3));
    let window = fs::read_to_string(folder.join("context.jsonl")).unwrap();
    let lines: Vec<&str> = window.lines().collect();
    assert!(
        lines[0].contains("\"from\":\"system\"") && lines[0].contains("\"metadata\":{\"summary\":\"They talked.\"}")
    );
    assert!(lines[1].ends_with("\"role\":\"system\", \"x\":1.50}"));
    assert_eq!(lines[2].to_owned() + "\n", message("9", "ctx", "four"));
    assert_eq!(ids(&folder.join("transcript_archive.jsonl")), ["0", "1", "2", "4", "5", "6", "7", "8"]);
    let page = fs::read_to_string(folder.join("transcript.md")).unwrap();
    assert!(page.starts_with("[USER]: one\n\n[ASSISTANT]: first  answer\n\n[USER]: two\n\n"), "{page}");
    // A call stays with its result, in whichever turn that is.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("context.jsonl"), conversation()).unwrap();
    compacted(folder, 2, "They talked.");
    assert_eq!(ids(&folder.join("context.jsonl"))[1..], ["3", "4", "5", "6", "7", "8", "9"]);
    held(folder).rebuild().unwrap();
    assert_eq!(ids(&folder.join("context.jsonl"))[1..], ["3", "4", "5", "6", "7", "8", "9"]);
    assert!(held(folder).choose(Keep::Turns(3), &Tokenizer::default()).is_none());
}

#[test]
fn undo_restores_every_file_and_keeps_later_messages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("context.jsonl"), conversation()).unwrap();
    fs::write(folder.join("transcript.md"), "[USER]: long ago\n\n").unwrap();
    fs::write(folder.join("transcript_archive.jsonl"), message("before", "ctx", "long ago")).unwrap();
    let before = files(folder);
    compacted(folder, 1, "They talked.");
    let once = files(folder);
    compacted(folder, 0, "They talked a lot.");
    assert_eq!(undone(folder).archived, 2);
    assert_eq!(files(folder), once);
    let later = message("10", "user", "fourth answer");
    let window = fs::read_to_string(folder.join("context.jsonl")).unwrap() + &later;
    fs::write(folder.join("context.jsonl"), window).unwrap();
    let changed = undone(folder);
    assert_eq!((changed.archived, changed.entries), (8, 11));
    let mut expected = before;
    expected.get_mut("context.jsonl").unwrap().extend_from_slice(later.as_bytes());
    assert_eq!(files(folder), expected);
    assert!(held(folder).undo_compaction().unwrap().is_none());
}

#[test]
fn the_undo_file_may_be_missing_or_no_longer_fit() {
    for change in ["gone", "written anew"] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("context.jsonl"), conversation()).unwrap();
        compacted(folder, 1, "They talked.");
        let window = fs::read_to_string(folder.join("context.jsonl")).unwrap();
        match change {
            "gone" => fs::remove_file(folder.join("context.jsonl.undo")).unwrap(),
            _ => fs::write(folder.join("context.jsonl"), window.replace("four", "four!")).unwrap(),
        }
        assert_eq!(undone(folder).archived, 8, "{change}");
        let mut back = ids(&folder.join("context.jsonl"));
        back.sort();
        assert_eq!(back, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"], "{change}");
        assert_eq!(ids(&folder.join("transcript_archive.jsonl")), [] as [&str; 0], "{change}");
    }
}

#[test]
fn in_the_current_transcript_an_anchor_states_what_came_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("transcript")).unwrap();
    fs::write(folder.join("transcript/active.jsonl"), conversation()).unwrap();
    fs::write(folder.join("context.jsonl"), conversation()).unwrap();
    compacted(folder, 1, "They talked.");
    assert_eq!(ids(&folder.join("context.jsonl"))[1..], ["3", "9"]);
    held(folder).rebuild().unwrap();
    assert_eq!(ids(&folder.join("context.jsonl"))[1..], ["3", "9"]);
    let changed = undone(folder);
    assert_eq!((changed.archived, changed.entries), (8, 10));
    for _ in 0..2 {
        assert_eq!(types(&folder.join("context.jsonl"))[0], "context_created");
        assert_eq!(ids(&folder.join("context.jsonl"))[1..], ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
        held(folder).rebuild().unwrap();
    }
}

#[test]
fn a_crash_at_any_step_loses_nothing_and_another_summary_completes_it() {
    for today in [false, true] {
        for steps in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            fs::write(folder.join("context.jsonl"), conversation()).unwrap();
            fs::write(folder.join("transcript.md"), "[USER]: before\n\n").unwrap();
            let history = if today { "transcript/active.jsonl" } else { "transcript_archive.jsonl" };
            if today {
                fs::create_dir(folder.join("transcript")).unwrap();
                fs::write(folder.join(history), conversation()).unwrap();
            }
            let crashing = Arc::new(Crashing { left: Arc::new(AtomicUsize::new(steps)) });
            let first = Window::lock(&Context::at(folder), &environment(crashing)).and_then(|window| {
                let choice = window.choose(Keep::Turns(1), &Tokenizer::default()).unwrap();
                window.compact(&choice, "first try")
            });
            let mut everywhere = ids(&folder.join("context.jsonl"));
            everywhere.extend(ids(&folder.join(history)));
            for id in 0..10 {
                assert!(everywhere.contains(&id.to_string()), "{id} is lost after {steps} steps");
            }
            let again = held(folder);
            if let Some(choice) = again.choose(Keep::Turns(1), &Tokenizer::default()) {
                again.compact(&choice, "second try").unwrap();
            } else {
                drop(again);
            }
            assert_eq!(ids(&folder.join("context.jsonl"))[1..], ["3", "9"], "after {steps} steps");
            let archived = ids(&folder.join(history));
            for id in ["0", "1", "2", "4", "5", "6", "7", "8"] {
                assert_eq!(archived.iter().filter(|found| *found == id).count(), 1, "{id} after {steps} steps");
            }
            let page = fs::read_to_string(folder.join("transcript.md")).unwrap();
            assert_eq!(page.matches("[USER]: one\n").count(), 1, "after {steps} steps: {page}");
            assert_eq!(undone(folder).archived, 8, "after {steps} steps");
            assert_eq!(ids(&folder.join("context.jsonl"))[1..], ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
            if first.is_ok() {
                assert!(steps > 8, "the crash came nowhere");
                break;
            }
        }
    }
}

#[test]
fn a_crash_at_any_step_of_the_way_back_loses_nothing() {
    for today in [false, true] {
        for steps in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            fs::write(folder.join("context.jsonl"), conversation()).unwrap();
            let history = if today { "transcript/active.jsonl" } else { "transcript_archive.jsonl" };
            if today {
                fs::create_dir(folder.join("transcript")).unwrap();
                fs::write(folder.join(history), conversation()).unwrap();
            }
            compacted(folder, 1, "They talked.");
            let crashing = Arc::new(Crashing { left: Arc::new(AtomicUsize::new(steps)) });
            let first = Window::lock(&Context::at(folder), &environment(crashing)).and_then(Window::undo_compaction);
            let done = first.is_ok();
            let mut everywhere = ids(&folder.join("context.jsonl"));
            everywhere.extend(ids(&folder.join(history)));
            for id in 0..10 {
                assert!(everywhere.contains(&id.to_string()), "{id} is lost after {steps} steps");
            }
            drop(held(folder).undo_compaction().unwrap());
            held(folder).rebuild().unwrap();
            let window = ids(&folder.join("context.jsonl"));
            assert_eq!(window[1..], ["1", "2", "3", "4", "5", "6", "7", "8", "9"], "after {steps} steps");
            if done {
                assert!(steps > 0, "the crash came nowhere");
                break;
            }
        }
    }
}
