//! `steno context`, `steno show --context`, and recording into a context, with real processes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::runner::{CHIBI, Folder};

const CHAT: &str = r#"{"role":"user","content":"What is Rust?"}
{"role":"assistant","content":"A language."}
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(".chibi/contexts/research")).unwrap();
    folder.write(".chibi/contexts/research/context.jsonl", CHIBI);
    folder
}

#[test]
fn contexts_are_listed_with_their_facts() {
    let folder = folder();
    folder.run("chibi inbox send --context research --root . hi").ends(0);
    let line = "research     3 entries  2024-01-13 05:24 UTC  1 message in the inbox\n";
    assert_eq!(folder.run("chibi context list --root .").ends(0).text(), line);
    folder.write(".chibi/contexts/research/.lock", "1705123456");
    folder.run("chibi context list --root .").ends(0).says("[stale]");
    folder.write(".chibi/contexts/research/.lock", "9999999999");
    let json = folder.run("chibi context list --root . --json").ends(0).json();
    assert_eq!((&json[0]["context"], &json[0]["status"]), (&"research".into(), &"active".into()));
    assert_eq!((&json[0]["entries"], &json[0]["last"]), (&3.into(), &"2024-01-13T05:24:26Z".into()));
    folder.run("chibi context clear --context research --root .").fails("another process is writing to it");
    Folder::new().run("chibi context list --root .").ends(1).talks("no contexts in");
}

#[test]
fn clearing_archives_and_showing_the_archive_shows_all_once() {
    let folder = folder();
    let done = folder.run("chibi context clear --context research --root .");
    done.ends(0).talks("cleared: 3 entries moved to").talks("only the anchor is left");
    assert_eq!(folder.read(".chibi/contexts/research/transcript_archive.jsonl"), CHIBI.as_bytes());
    assert_eq!(folder.read(".chibi/contexts/research/transcript.md"), b"[USER]: What is Rust?\n\n");
    let window = folder.run("show --context research --root . --json").ends(0).json();
    assert_eq!((window.len(), &window[0]["name"]), (1, &"archival".into()));
    assert_eq!(folder.run("show --context research --root . --json --archive").ends(0).json().len(), 4);
    assert_eq!(folder.run("show --context research --root . --json --archive --first 2").json().len(), 2);
    let again = folder.run("chibi context clear --context research --root .");
    again.ends(0).talks("nothing to clear: the window has no messages");
    let json = folder.run("chibi context clear .chibi/contexts/research --json").ends(0).json();
    assert_eq!((&json[0]["archived"], &json[0]["entries"]), (&0.into(), &1.into()));
    folder.run("chibi context clear --context none --root .").finds_nothing("no such context");
    folder.run("chibi context rebuild --context none --root . --json").finds_nothing("no such context");
    folder.run("show --context none --root .").finds_nothing("no such context");
}

#[test]
fn a_window_is_rebuilt_from_its_anchor() {
    let folder = folder();
    let marker = r#"{"id":"m","timestamp":1705123500,"from":"system","to":"research","content":"","entry_type":"compaction","metadata":{"summary":"Rust"}}"#;
    folder.write(".chibi/contexts/research/context.jsonl", format!("{CHIBI}{marker}\n{CHIBI}"));
    folder.run("show --context research --root . --last 1 --text").ends(0).says("[package]");
    let json = folder.run("chibi context rebuild --context research --root . --json").ends(0).json();
    assert_eq!((&json[0]["entries"], &json[0]["anchor"]), (&4.into(), &"compaction".into()));
    folder.run("chibi context rebuild --context research --root .").ends(0).talks("the window has 4 entries");
    let window = folder.read(".chibi/contexts/research/context.jsonl");
    assert_eq!(window, format!("{marker}\n{CHIBI}").as_bytes());
}

#[test]
fn an_empty_window_hints_at_the_archive() {
    let folder = folder();
    folder.write(".chibi/contexts/research/context.jsonl", "");
    folder.run("show --context research --root .").ends(1).talks("--archive");
    folder.run("show --archive x").ends(2);
    folder.run("show x --context y").ends(2);
}

#[test]
fn a_conversation_is_recorded_into_a_context_and_shown_from_it() {
    let folder = folder();
    let mut command = folder.command("record --from openai-chat --to chibi --set context=talk --set user=alice");
    command.env("CHIBI_HOME", folder.path(".chibi")).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(CHAT.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let shown = folder.run("show --context talk --root . --json").ends(0).json();
    assert_eq!((&shown[0]["from"], &shown[0]["to"]), (&"alice".into(), &"talk".into()));
    assert_eq!(shown.len(), 2);
    folder.run_with("record --from openai-chat --to chibi:.chibi/contexts/talk", CHAT.as_bytes()).ends(0);
    assert_eq!(folder.run("show .chibi/contexts/talk --json").ends(0).json().len(), 4);
    folder.run("check .chibi/contexts/talk/context.jsonl").ends(0);
    folder.run("record --to chibi --set context=../x").fails("is not a valid context name");
}

#[test]
fn a_word_that_chibi_reserves_is_not_a_context_name() {
    let folder = folder();
    for wish in ["new", "-", "new:x", "a.b"] {
        let line = format!("record --from openai-chat --to chibi:.chibi --set context={wish}");
        folder.run_with(&line, CHAT.as_bytes()).fails("is not a valid context name").talks("hint: use letters");
        let sent = folder.run(&format!("chibi inbox send --root . --context={wish} hi"));
        sent.fails("is not a valid context name").talks("hint: to use a folder, give its path");
    }
    assert_eq!(std::fs::read_dir(folder.path(".chibi/contexts")).unwrap().count(), 1);
}

#[test]
fn a_recorder_that_was_killed_is_not_waited_for_and_loses_nothing() {
    let folder = Folder::new();
    let mut first = folder.command("record --from openai-chat --to chibi:ctx --ack");
    let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = first.stdin.take().unwrap();
    input.write_all(CHAT.as_bytes()).unwrap();
    assert_eq!(BufReader::new(first.stdout.take().unwrap()).lines().take(2).count(), 2);
    let holder = format!("process {} is writing to it", first.id());
    folder.run_with("record --from openai-chat --to chibi:ctx", CHAT.as_bytes()).fails(&holder);
    folder.run("chibi context clear ctx").fails(&holder);
    folder.run("recover ctx").ends(0).talks("is still being recorded: not touched");
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(folder.path("ctx/.lock").exists());
    assert_eq!(
        folder.run("show ctx --json").ends(0).json().iter().filter(|event| event["kind"] == "message").count(),
        2
    );
    let done = folder.run_with("record --from openai-chat --to chibi:ctx", CHAT.as_bytes());
    done.ends(0).talks("left by a recorder that was killed");
    assert!(!folder.path("ctx/.lock").exists());
    let window = String::from_utf8(folder.read("ctx/context.jsonl")).unwrap();
    assert_eq!(window.lines().count(), 4);
    folder.run("recover ctx").ends(0).talks("already complete");
    let shown = folder.run("show ctx --json").ends(0).json();
    assert_eq!(shown.iter().filter(|event| event["kind"] == "message").count(), 4);
}

#[test]
fn clearing_that_is_killed_is_done_again_without_losing_or_repeating() {
    let folder = folder();
    let window = ".chibi/contexts/research/context.jsonl";
    for round in 0..40 {
        let id = format!("r{round}");
        let line = format!(
            "{{\"id\":\"{id}\",\"timestamp\":1705123456,\"from\":\"a\",\"to\":\"b\",\"content\":\"word {round}.\",\"entry_type\":\"message\"}}\n"
        );
        let mut bytes = folder.read(window);
        bytes.extend_from_slice(line.as_bytes());
        folder.write(window, bytes);
        let mut child: Command = folder.command("chibi context clear .chibi/contexts/research");
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(round * 200));
        child.kill().unwrap();
        child.wait().unwrap();
        folder.run("chibi context clear .chibi/contexts/research").ends(0);
    }
    let archive = String::from_utf8(folder.read(".chibi/contexts/research/transcript_archive.jsonl")).unwrap();
    let page = String::from_utf8(folder.read(".chibi/contexts/research/transcript.md")).unwrap();
    for round in 0..40 {
        assert_eq!(archive.matches(&format!("word {round}.")).count(), 1, "{round} in {archive}");
        assert_eq!(page.matches(&format!("[USER]: word {round}.\n\n")).count(), 1, "{round} in {page}");
    }
}

/// A context whose transcript was cleared after its window was written.
fn out_of_date() -> Folder {
    let folder = folder();
    let anchor = r#"{"id":"a","timestamp":1705123470,"from":"system","to":"research","content":"Context archived/cleared","entry_type":"archival"}"#;
    let next = r#"{"id":"9","timestamp":1705123480,"from":"alice","to":"research","content":"And ownership?","entry_type":"message"}"#;
    let last = r#"{"id":"10","timestamp":1705123481,"from":"research","to":"user","content":"Its key feature.","entry_type":"message"}"#;
    let more = format!("{next}\n{last}\n{}\n", next.replace("\"9\"", "\"11\"").replace("ownership", "borrowing"));
    folder.write(".chibi/contexts/research/transcript.jsonl", format!("{CHIBI}{anchor}\n{more}"));
    folder.write(".chibi/contexts/research/.dirty", "");
    folder
}

#[test]
fn a_window_that_is_marked_out_of_date_is_shown_and_listed_as_the_transcript_has_it() {
    let folder = out_of_date();
    let shown = folder.run("show --context research --root . --text").ends(0).text().to_owned();
    assert!(shown.contains("And ownership?") && !shown.contains("What is Rust?"), "{shown}");
    folder.run("chibi context list --root .").ends(0).says("4 entries");
    assert_eq!(folder.run("show --context research --root . --archive --json").ends(0).json().len(), 7);
    // Nobody requested a change.
    assert_eq!(folder.read(".chibi/contexts/research/context.jsonl"), CHIBI.as_bytes());
    let dry = folder.run("compact --context research --root . --keep 1 --dry-run --json").ends(0).json();
    assert_eq!(dry[0]["events"]["removed"], 2, "{dry:?}");
    assert_eq!(folder.read(".chibi/contexts/research/context.jsonl"), CHIBI.as_bytes());
}

#[test]
fn compaction_and_recording_work_on_the_rebuilt_window() {
    let folder = out_of_date();
    let done = folder.run("compact --context research --root . --keep 1 --summarise cat");
    let window = String::from_utf8(folder.read(".chibi/contexts/research/context.jsonl")).unwrap();
    done.ends(0).talks("out of date");
    assert!(
        window.contains("ownership") && window.contains("borrowing") && !window.contains("What is Rust?"),
        "{window}"
    );
    let folder = out_of_date();
    let done = folder.run_with("record --from openai-chat --to chibi:.chibi/contexts/research", CHAT.as_bytes());
    done.ends(0).talks("out of date");
    let shown = folder.run("show --context research --root . --text").ends(0).text().to_owned();
    assert!(shown.starts_with("Context archived") || shown.contains("And ownership?"), "{shown}");
    assert!(shown.contains("A language."), "{shown}");
    assert!(!folder.path(".chibi/contexts/research/.dirty").exists());
}

#[test]
fn a_cleared_context_has_one_status_by_every_name() {
    let folder = Folder::new();
    folder.run_with("record --from openai-chat --to chibi:.chibi/contexts/k", CHAT.as_bytes()).ends(0);
    folder.run("chibi context clear --context k --root .").ends(0);
    folder.run("index --root .").ends(0);
    let status = |name: &str| {
        let runs = folder.run(&format!("status --root . --json {name}")).json();
        let run = runs.first().unwrap();
        ["session", "state", "why"].map(|key| run[key].as_str().unwrap().to_owned())
    };
    let around = status("");
    assert_eq!((around[0].as_str(), around[1] == "unknown"), ("k", false), "{around:?}");
    assert_eq!((status("k"), status(".chibi/contexts/k")), (around.clone(), around));
}

#[test]
fn an_empty_file_in_a_context_is_not_reported() {
    let folder = folder();
    folder.write(".chibi/contexts/research/inbox.jsonl", "");
    for _ in 0..2 {
        let done = folder.run("index --root .");
        assert!(!done.ends(0).talk.contains("skipped"), "{}", done.talk);
    }
    folder.write(".chibi/contexts/research/inbox.jsonl", "odd");
    folder.run("index --root .").ends(0).talks("skipped 1 file that is not a transcript: 1 .jsonl; in ");
}

#[test]
fn a_transcript_beside_the_window_counts_once_and_is_named_by_its_path() {
    for (transcript, shown) in [("transcript.jsonl", "transcript.jsonl"), ("transcript/active.jsonl", "transcript")] {
        let folder = folder();
        let context = ".chibi/contexts/research";
        std::fs::create_dir_all(folder.path(&format!("{context}/{transcript}")).parent().unwrap()).unwrap();
        folder.write(&format!("{context}/{transcript}"), CHIBI);
        let done = folder.run_with(&format!("record --from openai-chat --to chibi:{context}"), CHAT.as_bytes());
        done.ends(0).talks(&format!("completed: {context}/{shown}, {context}/context.jsonl"));
        folder.run("compact --context research --root . --keep 1 --summary so-far").ends(0);
        folder.run("index --root .").ends(0);
        let listed = folder.run("list --root . --json").ends(0).json();
        assert_eq!(
            (listed.len(), &listed[0]["messages"], &listed[0]["calls"]),
            (1, &3.into(), &1.into()),
            "{listed:#?}"
        );
    }
}

#[test]
fn a_context_that_nobody_holds_does_not_run() {
    let folder = Folder::new();
    let context = ".chibi/contexts/k";
    folder.run_with(&format!("record --from openai-chat --to chibi:{context}"), CHAT.as_bytes()).ends(0);
    // The window alone does not state that the run ended.
    let _ = std::fs::remove_file(folder.path(&format!("{context}/journal.steno")));
    let state = || folder.run(&format!("status {context} --json")).json()[0]["state"].as_str().unwrap().to_owned();
    assert_eq!(state(), "idle");
    folder.write(&format!("{context}/.lock"), "9999999999");
    assert_eq!(state(), "running");
}
