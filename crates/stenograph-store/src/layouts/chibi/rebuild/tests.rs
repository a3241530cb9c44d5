//! A window that Chibi marked as out of date is rebuilt before anything reads or changes it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::files::Disk;
use crate::systems::chibi::window::tests::{environment, held, ids, message, types};

fn anchor(id: &str, entry_type: &str) -> String {
    message(id, "ctx", "x").replace("\"message\"", &format!("\"{entry_type}\""))
}

/// The transcript was cleared and continued; the window still holds the earlier messages, under other ids.
fn out_of_date(folder: &Path) {
    let old = message("1", "ctx", "one") + &message("2", "user", "two");
    fs::write(folder.join("transcript.jsonl"), old + &anchor("a", "archival") + &message("3", "ctx", "three")).unwrap();
    let window = anchor("c", "context_created") + &message("x", "ctx", "one") + &message("y", "user", "two");
    fs::write(folder.join("context.jsonl"), window).unwrap();
    fs::write(folder.join(".dirty"), "").unwrap();
}

#[test]
fn holding_a_marked_window_shows_it_rebuilt_and_writes_nothing_yet() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    out_of_date(folder);
    let before = fs::read(folder.join("context.jsonl")).unwrap();
    let window = held(folder);
    assert_eq!(window.entries().iter().map(|entry| entry.id.clone().unwrap()).collect::<Vec<_>>(), ["a", "3"]);
    drop(window);
    assert_eq!(fs::read(folder.join("context.jsonl")).unwrap(), before);
    assert!(folder.join(".dirty").exists());
    let context = Context::at(folder);
    assert_eq!(context.window_entries(&Disk, 0).unwrap().len(), 2);
    assert_eq!(context.look(&Disk, 0).unwrap().entries, 2);
    // The transcript already has everything in the old window.
    assert_eq!(context.files_to_read(&Disk).unwrap(), [folder.join("transcript.jsonl")]);
}

#[test]
fn a_change_writes_the_rebuilt_window_first() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    out_of_date(folder);
    let changed = held(folder).clear().unwrap();
    assert_eq!((changed.archived, changed.entries), (2, 1));
    assert_eq!(types(&folder.join("transcript.jsonl")), ["message", "message", "archival", "message", "archival"]);
    assert!(!folder.join(".dirty").exists());
}

#[test]
fn a_recording_begins_after_the_rebuilt_window() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    out_of_date(folder);
    let warnings = refresh(&Context::at(folder), &environment(Arc::new(Disk))).unwrap();
    assert!(warnings[0].text.contains("out of date"), "{warnings:?}");
    assert_eq!(ids(&folder.join("context.jsonl")), ["a", "3"]);
    assert_eq!(ids(&folder.join("transcript.jsonl")), ["1", "2", "a", "3"]);
    assert!(!folder.join(".dirty").exists());
    assert!(refresh(&Context::at(folder), &environment(Arc::new(Disk))).unwrap().is_empty());
}

#[test]
fn entries_that_only_the_old_window_has_are_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    out_of_date(folder);
    let window = fs::read_to_string(folder.join("context.jsonl")).unwrap() + &message("z", "ctx", "only here");
    fs::write(folder.join("context.jsonl"), window).unwrap();
    held(folder).rebuild().unwrap();
    assert_eq!(ids(&folder.join("context.jsonl")), ["a", "3", "z"]);
    assert_eq!(ids(&folder.join("transcript.jsonl")), ["1", "2", "a", "3", "z"]);
}

#[test]
fn a_window_without_an_anchor_begins_when_chibi_created_the_context() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("contexts/talk");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        home.path().join("state.json"),
        r#"{"contexts":[{"name":"x","created_at":1},{"name":"talk","created_at":7}]}"#,
    )
    .unwrap();
    fs::write(folder.join("transcript.jsonl"), message("1", "ctx", "one")).unwrap();
    held(&folder).rebuild().unwrap();
    let first = entry::all(&Disk, &folder.join("context.jsonl")).unwrap().remove(0);
    assert_eq!((first.entry_type.as_deref(), first.seconds), (Some("context_created"), Some(7)));
}
