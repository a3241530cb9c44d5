//! `steno status`.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::runner::{Folder, NATIVE};

const CALL: &str = r#"{"v":1,"kind":"message","session":"s1","role":"user","content":"Build it","cwd":"/work/shop"}
{"v":1,"kind":"tool_call","session":"s1","name":"Bash","call":"c1","input":{"command":"make"},"model":"m-1","usage":{"input":1000,"cache_read":44000}}
"#;

const STOP: &str = "{\"v\":1,\"kind\":\"stop\",\"session\":\"s1\",\"reason\":\"end_turn\"}\n";

const FAILURE: &str = "{\"v\":1,\"kind\":\"failure\",\"session\":\"s1\",\"name\":\"overloaded\"}\n";

/// Makes a file as old as this.
fn age(folder: &Folder, name: &str, minutes: u64) {
    let then = SystemTime::now() - Duration::from_secs(60 * minutes);
    File::options().write(true).open(folder.path(name)).unwrap().set_modified(then).unwrap();
}

fn state(folder: &Folder, line: &str) -> (String, String) {
    let json = folder.run(line).json();
    (json[0]["state"].as_str().unwrap().to_owned(), json[0]["why"].as_str().unwrap().to_owned())
}

fn pair(state: &str, why: &str) -> (String, String) {
    (state.to_owned(), why.to_owned())
}

#[test]
fn a_run_is_told_in_one_row() {
    let folder = Folder::with("a.jsonl", CALL);
    let done = folder.run("status a.jsonl");
    let lines: Vec<&str> = done.ends(0).text().lines().collect();
    assert!(lines[0].starts_with("AGENT  SESSION  STATE"), "{lines:?}");
    for word in ["steno", "s1", "running: in Bash", "ago", "Bash", "45k", "shop"] {
        assert!(lines[1].contains(word), "{word} is not in {}", lines[1]);
    }
    let json = folder.run("status a.jsonl --json").json();
    assert_eq!((&json[0]["open"][0], &json[0]["context"]), (&"Bash".into(), &45_000.into()));
    assert_eq!((&json[0]["model"], &json[0]["asked"]), (&"m-1".into(), &"Build it".into()));
}

#[test]
fn silence_makes_stale_and_an_open_call_has_more_time() {
    let folder = Folder::with("a", CALL);
    age(&folder, "a", 30);
    assert_eq!(state(&folder, "status a --json"), pair("running", "in_call"));
    assert_eq!(state(&folder, "status a --json --call-silence 10m"), pair("stale", "in_call"));
    age(&folder, "a", 90);
    assert_eq!(state(&folder, "status a --json"), pair("stale", "in_call"));
    folder.write("b", NATIVE);
    assert_eq!(state(&folder, "status b --json"), pair("running", "asked"));
    age(&folder, "b", 10);
    assert_eq!(state(&folder, "status b --json"), pair("stale", "asked"));
    assert_eq!(state(&folder, "status b --json --silence 1h"), pair("running", "asked"));
}

#[test]
fn a_last_line_without_a_newline_counts_and_half_a_line_does_not() {
    let folder = Folder::with("a", (CALL.to_owned() + STOP).trim_end());
    assert_eq!(state(&folder, "status a --json"), pair("completed", "waiting"));
    let all = CALL.to_owned() + STOP;
    folder.write("b", &all[..all.len() - 10]);
    assert_eq!(state(&folder, "status b --json"), pair("running", "in_call"));
}

#[test]
fn exit_codes_tell_scripts() {
    let folder = Folder::with("running", CALL);
    folder.write("completed", CALL.to_owned() + STOP);
    folder.write("failed", CALL.to_owned() + FAILURE + STOP);
    folder.write("error", CALL.to_owned() + FAILURE);
    folder.write("stale", CALL);
    age(&folder, "stale", 100);
    folder.write("empty", "");
    for (name, code) in [("running", 0), ("completed", 0), ("stale", 1), ("failed", 3), ("error", 3)] {
        folder.run(&format!("status {name}")).ends(code).says(name);
    }
    folder.run("status empty").ends(1).says("unknown");
    folder.run("status running stale").ends(1);
    folder.run("status stale failed running").ends(3);
    let done = folder.run("status running none failed");
    done.ends(2).says("running").says("failed: overloaded").talks("none: no such file");
    folder.run("status running --silence soon").ends(2).talks("90s, 30m");
}

#[test]
fn an_error_that_success_followed_is_recovered() {
    let answer = "{\"v\":1,\"kind\":\"message\",\"role\":\"assistant\",\"content\":\"Here.\"}\n";
    let folder = Folder::with("a", CALL.to_owned() + FAILURE + answer + STOP);
    folder.run("status a").ends(0).says("completed: waits for its user, recovered");
}

#[test]
fn without_names_all_are_told_that_were_written_lately() {
    let folder = Folder::new();
    folder.run("status --root .").finds_nothing("no transcripts");
    for (name, minutes) in [("new", 1), ("older", 60 * 5), ("old", 60 * 50)] {
        fs::create_dir_all(folder.path(&format!(".chibi/contexts/{name}"))).unwrap();
        let path = format!(".chibi/contexts/{name}/context.jsonl");
        folder.write(&path, crate::runner::CHIBI);
        age(&folder, &path, minutes);
    }
    let contexts = |line: &str| -> usize { folder.run(line).ends(0).json().len() };
    assert_eq!(contexts("status --root . --json"), 2);
    assert_eq!(contexts("status --root . --json --active-within 1h"), 1);
    assert_eq!(contexts("status --root . --json --active-within 7d"), 3);
}

#[test]
fn the_end_of_a_run_can_be_waited_for() {
    let folder = Folder::with("a", CALL);
    let mut waiting = folder.command("status a --wait --json").stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(waiting.stdout.take().unwrap());
    OpenOptions::new().append(true).open(folder.path("a")).unwrap().write_all(STOP.as_bytes()).unwrap();
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(json["state"], "completed");
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
}

#[test]
fn a_watcher_gets_a_line_for_each_change() {
    let folder = Folder::with("a", CALL);
    let mut watching = folder.command("status a --watch --json").stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(watching.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        serde_json::from_str::<serde_json::Value>(&line).unwrap()
    };
    assert_eq!(next()["state"], "running");
    OpenOptions::new().append(true).open(folder.path("a")).unwrap().write_all(FAILURE.as_bytes()).unwrap();
    assert_eq!(next()["state"], "error");
    OpenOptions::new().append(true).open(folder.path("a")).unwrap().write_all(STOP.as_bytes()).unwrap();
    assert_eq!(next()["state"], "failed");
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn names_from_a_transcript_do_nothing_to_a_terminal() {
    let folder = Folder::with("a", CALL.replace("Bash", "Ba\\u001b[31msh").replace("shop", "sh\\u0007op"));
    let done = folder.run("status a");
    assert_eq!(done.ends(0).text().chars().find(|char| char.is_control() && *char != '\n'), None);
    done.says("Ba␛[31msh");
}
