//! `steno show`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::runner::{CHIBI, Folder, NATIVE};

#[test]
fn events_show_time_speaker_and_text() {
    let folder = Folder::with("a", NATIVE);
    let done = folder.run("show a");
    assert_eq!(
        done.ends(0).text(),
        "Fix the test.
steno
2026-03-02 09:14 UTC

── 2026-03-02 UTC ──────────────────────────────────────────────────────────────
    1  ❯ You                                                            09:14:05
       Fix the test.

    2  (thinking)
       Run it first.

    3  $ cargo test
    4  └ 1 line
         ok
"
    );
}

#[test]
fn the_first_the_last_and_both_ways_of_printing() {
    let folder = Folder::with("a", NATIVE);
    assert_eq!(folder.run("show a --last 1 --text").ends(0).text(), "ok\n");
    assert_eq!(folder.run("show a --first 1 --text").ends(0).text(), "Fix the test.\n");
    assert_eq!(folder.run("show a --text --last 2").ends(0).text(), "{\"command\":\"cargo test\"}\n\nok\n");
    let done = folder.run("show a --json --first 2");
    let json = done.ends(0).json();
    assert_eq!(json.len(), 2);
    assert_eq!((&json[1]["kind"], &json[1]["at"]["line"]), (&"thinking".into(), &2.into()));
    folder.run("show a --last 0").ends(1).talks("no events to show");
    folder.run("show a --first 1 --last 1").ends(2).talks("cannot be used with");
}

#[test]
fn kinds_are_ours_and_roles_and_types_are_the_formats_own_words() {
    let folder = Folder::with("a", NATIVE);
    folder.write("b", CHIBI);
    assert_eq!(folder.run("show a --kind user --text").ends(0).text(), "Fix the test.\n");
    assert_eq!(folder.run("show a --kind thinking,tool_result --text").text(), "Run it first.\n\nok\n");
    assert_eq!(folder.run("show a --kind thinking,result --text").text(), "Run it first.\n\nok\n");
    assert_eq!(folder.run("show a --kind thinking --kind user --text").text(), "Fix the test.\n\nRun it first.\n");
    let system = CHIBI.replace("\"message\"", "\"system_prompt_changed\"");
    folder.write("c", system);
    folder.run("show c --type system_prompt_changed").ends(0).says("What is Rust?");
    folder.run("show c --type system_prompt_changed --kind tool_call").finds_nothing("no events of kind call and type");
    folder.run("show c --kind system_prompt_changed").ends(2).talks("--type system_prompt_changed");
    let done = folder.run("show b --kind stop");
    done.ends(1).talks("no events of kind stop").talks("hint: the kinds in this file are call, message");
}

/// A user's words, a call, and its result in a record of type `user`.
const RESULT_OF_USER: &str = r#"{"type":"user","uuid":"u1","sessionId":"s","timestamp":"2026-01-02T03:00:00.000Z","message":{"role":"user","content":"Look at it."}}
{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","timestamp":"2026-01-02T03:00:01.000Z","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","uuid":"u3","parentUuid":"u2","sessionId":"s","timestamp":"2026-01-02T03:00:02.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"walrus.txt"}]}}
"#;

#[test]
fn a_users_message_differs_from_a_record_of_type_user() {
    let folder = Folder::with("a.jsonl", RESULT_OF_USER);
    assert_eq!(folder.run("show a.jsonl --kind user --text").ends(0).text(), "Look at it.\n");
    assert_eq!(folder.run("show a.jsonl --type user --text").ends(0).text(), "Look at it.\n\nwalrus.txt\n");
    assert_eq!(folder.run("show a.jsonl --type user --kind tool_result --text").ends(0).text(), "walrus.txt\n");
}

#[test]
fn results_are_shortened_for_people_only() {
    let long = (0..40).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\\n");
    let folder = Folder::with("a", NATIVE.replace("\"ok\"", &format!("\"{long}\"")));
    folder.run("show a").says("line 3").says("… 36 more lines");
    folder.run("show a --full").says("line 39");
    // Whoever asks for an event by its number gets all of it.
    folder.run("show a --event 4").says("line 39");
    folder.run("show a --event 3 --around 2").says("… 36 more lines");
    folder.run("show a --text").says("line 39");
}

#[test]
fn control_characters_are_shown_and_not_obeyed() {
    let evil = NATIVE.replace("Fix the test.", "a\\u001b]0;owned\\u0007\\r\u{9b}31m\u{202e}x\\ty\\nz\u{7f}");
    let folder = Folder::with("a", evil);
    for line in ["show a", "show a --text", "show a --json", "show a --last 4", "check a"] {
        let done = folder.run(line);
        let text = done.text().to_owned() + &done.talk;
        let bad = |char: &char| (char.is_control() && !matches!(char, '\n' | '\t')) || *char == '\u{202e}';
        assert_eq!(text.chars().find(bad), None, "{line}: {text:?}");
    }
    assert_eq!(folder.run("show a --text --first 1").text(), "a␛]0;owned␇␍\\u{9b}31m\\u{202e}x\ty\nz␡\n");
    let json = folder.run("show a --json --first 1").json();
    assert_eq!(json[0]["content"], "a\u{1b}]0;owned\u{7}\r\u{9b}31m\u{202e}x\ty\nz\u{7f}");
}

#[cfg(unix)]
#[test]
fn a_file_with_an_evil_name_is_named_harmlessly() {
    let folder = Folder::with("e\u{1b}vil", NATIVE);
    folder.run("check e\u{1b}vil").ends(0).says("e␛vil: steno");
    let done = folder.run("check no\u{1b}ne");
    done.ends(2).talks("no␛ne");
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
    let folder = Folder::with("a", NATIVE.repeat(20_000));
    for line in ["show a", "show a --json", "convert a --to chibi", "check a --json"] {
        let mut child = folder.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut out = BufReader::with_capacity(16, child.stdout.take().unwrap());
        if line != "check a --json" {
            out.read_line(&mut first).unwrap();
        }
        drop(out);
        let output = child.wait_with_output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), talk.as_str()), (Some(0), ""), "{line}");
    }
}

#[test]
fn an_event_is_shown_by_its_number_with_its_neighbours() {
    let folder = Folder::with("a", NATIVE);
    let done = folder.run("show a --event 3 --around 1");
    assert_eq!(
        done.ends(0).text(),
        "── 2026-03-02 UTC ──────────────────────────────────────────────────────────────
    2  (thinking)
       Run it first.

   >3  $ cargo test
    4  └ 1 line
         ok
"
    );
    let lines = |line: &str| folder.run(line).ends(0).text().lines().count();
    assert_eq!((lines("show a --event 1"), lines("show a --event 1 --around 2")), (3, 8));
    assert_eq!(lines("show a --event 1,4"), 6);
    assert_eq!(folder.run("show a --event 4 --text").ends(0).text(), "ok\n");
    assert_eq!(folder.run("show a --event 2 --json").ends(0).json()[0]["id"], "e2");
    folder
        .run("show a --event 2,9")
        .ends(1)
        .says("   >2  ")
        .talks("no such event: 9")
        .talks("hint: the transcript has 4 events");
    folder.run("show a --event 0").ends(2);
    folder.run("show a --around 1").ends(2).talks("--event");
}

#[test]
fn a_session_is_shown_with_its_side_conversations_on_request() {
    let folder = crate::list::home();
    let done = folder.run("show 0198aaaa-1");
    done.ends(0).says("Feed the walrus").talks("1 sub-agent hidden: show with --subagents");
    assert!(!done.text().contains("herring"));
    folder.run("show 0198aaaa-1 --subagents").ends(0).says("sub-agent a1b2: Count").says("Feed the walrus");
    let json = folder.run("find herring --json").json();
    let (path, event) = (json[0]["path"].as_str().unwrap(), json[0]["event"].as_u64().unwrap());
    folder.run(&format!("show {path} --event {event}")).ends(0).says(">1").says("Count the herring");
}

#[test]
fn a_session_whose_file_is_gone_is_shown_from_the_archive() {
    let folder = crate::list::home();
    let path = crate::list::path("ffff0000-1111-4222-8333-444455556666");
    let path = path.replace("-work-app", "-work-shop");
    let before = folder.run("show ffff").ends(0).text().to_owned();
    std::fs::remove_file(folder.path(&path)).unwrap();
    assert_eq!(folder.run("show ffff").ends(0).talks("is gone; reading the archived copy").text(), before);
    crate::list::index(&folder);
    assert_eq!(folder.run("show ffff").ends(0).text(), before);
    assert_eq!(folder.run(&format!("show {path}")).ends(0).text(), before);
    folder.run("show ffff --event 2 --around 0").ends(0).says(">2").says("It is fed.");
}
