//! `steno pick` in a real terminal, which `terminal/drive.py` drives: it presses keys, reads the screen and checks that the
//! terminal is restored.

use std::fs;

use crate::list::{home, index};
use crate::replay::watched;
use crate::runner::{Folder, NATIVE};

const DOWN: &str = "\u{1b}[B";

/// Three sessions: two of them have titles, one is hostile.
fn sessions() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/notes")).unwrap();
    let texts =
        [("s1", "Fix the test."), ("s2", "Write the walrus guide."), ("s3", "\\u001b[2J\\u009b31m \u{202e}evil 漢字")];
    for (day, (name, text)) in texts.into_iter().enumerate() {
        let lines = NATIVE.replace("\"s1\"", &format!("\"{name}-0198f2c4\"")).replace("Fix the test.", text);
        let lines = lines
            .replace("2026-03-02", &format!("2026-03-0{}", day + 2))
            .replace("Run it first.", &format!("Think of {name}."));
        folder.write(&format!("home/notes/{name}.steno.jsonl"), lines);
    }
    index(&folder);
    folder
}

#[test]
fn a_session_is_found_by_typing_and_shown() {
    let folder = sessions();
    let steps = serde_json::json!([
        ["see", "Fix the test."],
        ["see", "Write the walrus guide."],
        ["see", "3/3"],
        // The preview of the newest one.
        ["see", "Think of s3."],
        ["type", "walrs"],
        ["see", "1/3"],
        ["gone", "Fix the test."],
        ["see", "Think of s2."],
        ["type", "\r"],
    ]);
    if let Some(done) = watched(&folder, "--no-pager pick", &steps) {
        done.ends(0).says("Write the walrus guide.").says("Think of s2.");
        assert!(done.0["colours"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_query_on_the_command_line_and_the_full_text() {
    let folder = sessions();
    let steps = serde_json::json!([["see", "1/3"], ["see", "Think of s1."], ["type", "\u{1b}"]]);
    if let Some(done) = watched(&folder, "pick fix test", &steps) {
        done.ends(1);
    }
    let steps =
        serde_json::json!([["see", "«Think»"], ["type", " s2"], ["see", "1/3"], ["see", ">2"], ["type", "\r"],]);
    if let Some(done) = watched(&folder, "--no-pager pick /think", &steps) {
        done.ends(0).says(">2").says("Think of s2.");
    }
}

#[test]
fn the_printed_id_is_the_only_output() {
    let folder = sessions();
    let binary = env!("CARGO_BIN_EXE_steno");
    fs::write(folder.path("run.sh"), format!("'{binary}' pick --print > out\n")).unwrap();
    let steps = serde_json::json!([["see", "3/3"], ["type", DOWN], ["see", "Think of s2."], ["type", "\r"]]);
    if let Some(done) = crate::replay::watched_program(&folder, "sh", &["run.sh"], &steps) {
        done.ends(0);
        assert_eq!(folder.read("out"), b"s2-0198f2c4\n");
    }
    let steps = serde_json::json!([["see", "3/3"], ["type", "\u{1b}"]]);
    if let Some(done) = crate::replay::watched_program(&folder, "sh", &["run.sh"], &steps) {
        done.ends(1);
        assert_eq!(folder.read("out"), b"");
    }
}

#[test]
fn actions_run_as_commands_after_the_terminal_is_restored() {
    let folder = sessions();
    let steps = serde_json::json!([["see", "Think of s3."], ["type", "\u{1b}y"]]);
    if let Some(done) = watched(&folder, "pick", &steps) {
        done.ends(0).says("s3-0198f2c4\n");
        // OSC 52 with the id in Base64.
        done.says("]52;c;czMtMDE5OGYyYzQ=");
    }
    // Resume is not possible here; the error is that of the command.
    let steps = serde_json::json!([["see", "1/3"], ["type", "\u{f}r"]]);
    if let Some(done) = watched(&folder, "pick fix", &steps) {
        done.ends(1).says("has no command to resume a session");
    }
    let steps = serde_json::json!([["see", "1/3"], ["type", "\u{1b}e"], ["see", "export to:"], ["type", "mark\r"]]);
    if let Some(done) = watched(&folder, "pick walrus", &steps) {
        done.ends(0).says("wrote s2-0198f2c4.md");
        assert!(String::from_utf8(folder.read("s2-0198f2c4.md")).unwrap().contains("Write the walrus guide."));
    }
    let steps = serde_json::json!([["see", "1/3"], ["type", "\u{1b}c"], ["see", "convert to:"], ["type", "steno\r"]]);
    if let Some(done) = watched(&folder, "pick walrus", &steps) {
        done.ends(0);
        assert!(folder.path("s2-0198f2c4.steno.jsonl").exists());
    }
    let steps = serde_json::json!([["see", "3/3"], ["type", format!("{DOWN}\t\t")], ["see", "*"], ["type", "\u{1b}d"]]);
    if let Some(done) = watched(&folder, "--no-pager pick", &steps) {
        done.ends(1).says("Write the walrus guide.").says("Fix the test.");
    }
}

#[test]
fn a_session_whose_file_is_gone_is_restored() {
    let folder = sessions();
    let file = folder.path("home/notes/s1.steno.jsonl");
    fs::remove_file(&file).unwrap();
    index(&folder);
    let steps = serde_json::json!([["see", "[gone]"], ["see", "Think of s1."], ["type", "\u{1b}R"]]);
    if let Some(done) = watched(&folder, "pick fix", &steps) {
        done.ends(0);
        assert!(file.exists());
    }
}

#[test]
fn the_terminal_is_restored_however_the_finder_ends() {
    let folder = sessions();
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let steps = serde_json::json!([["see", "3/3"], ["signal", signal]]);
        if let Some(done) = watched(&folder, "pick", &steps) {
            done.ends(code);
        }
    }
    let steps = serde_json::json!([["see", "3/3"], ["type", "\u{3}"]]);
    if let Some(done) = watched(&folder, "pick", &steps) {
        done.ends(130);
    }
    let steps = serde_json::json!([
        ["see", "3/3"],
        ["type", "fix\u{1a}"],
        ["stops"],
        ["signal", "CONT"],
        ["see", "1/3"],
        ["see", "Think of s1."],
        ["type", "\u{1b}"],
    ]);
    if let Some(done) = watched(&folder, "pick", &steps) {
        done.ends(1);
        assert_eq!(done.0["restored_when_stopped"], serde_json::json!([true]));
    }
}

/// A command that runs after the finder is ended by signals as usual.
#[test]
fn signals_end_what_runs_after_the_finder() {
    let folder = sessions();
    let binary = env!("CARGO_BIN_EXE_steno");
    fs::write(folder.path("run.sh"), format!("export PAGER='echo paging; sleep 3'\nexec '{binary}' pick\n")).unwrap();
    for (signal, code) in [("INT", -2), ("TERM", -15)] {
        let steps = serde_json::json!([["see", "3/3"], ["type", "\r"], ["see", "paging"], ["signal", signal]]);
        if let Some(done) = crate::replay::watched_program(&folder, "sh", &["run.sh"], &steps) {
            done.ends(code);
        }
    }
}

#[test]
fn every_size_will_do_and_hostile_text_does_nothing() {
    let folder = sessions();
    let steps = serde_json::json!([
        ["see", "␛[2J"],
        ["see", "Think of s3."],
        ["size", 40, 10],
        ["see", "Fix the test."],
        ["gone", "Think of"],
        ["size", 5, 2],
        ["see", ">"],
        ["size", 80, 24],
        ["see", "Think of s3."],
        ["type", "?"],
        ["see", "ctrl-o LETTER"],
        ["type", " "],
        ["see", "3/3"],
        ["type", "\u{1b}"],
    ]);
    if let Some(done) = watched(&folder, "pick", &steps) {
        done.ends(1);
        assert!(!done.0["said"].as_str().unwrap().contains(['\u{9b}', '\u{202e}']));
    }
    let steps = serde_json::json!([["size", 120, 40], ["see", "│"], ["see", "Think of s3."], ["type", "\u{1b}"]]);
    if let Some(done) = watched(&folder, "pick", &steps) {
        assert_eq!((&done.0["code"], &done.0["restored"]), (&1.into(), &true.into()), "{}", done.0);
        assert!(done.0["widest"].as_u64().unwrap() <= 120, "{}", done.0);
    }
}

#[test]
fn without_an_index_or_a_terminal_it_prints_a_hint() {
    sessions().run("pick").fails("steno pick needs a terminal");
    let steps = serde_json::json!([]);
    if let Some(done) = watched(&Folder::new(), "pick", &steps) {
        done.ends(2).says("hint: run steno index");
    }
    let folder = home();
    let steps = serde_json::json!([["see", "/"], ["type", "\u{1b}"]]);
    if let Some(done) = watched(&folder, "pick --root home", &steps) {
        done.ends(1);
    }
}
