//! `steno record` and `steno recover` on the native stream: real pipes, real commands, real signals.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::runner::{Folder, NATIVE};

#[test]
fn arriving_events_are_recorded_and_acknowledged() {
    let folder = Folder::new();
    let done = folder.run_with("record --to steno:run.jsonl --ack", NATIVE.as_bytes());
    done.ends(0).talks("4 events recorded, completed: run.jsonl");
    let acks = done.json();
    assert_eq!(acks.iter().map(|ack| ack["ack"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(acks[3]["line"], 4);
    let shown = folder.run("show run.jsonl --json").ends(0).json();
    assert_eq!(shown.len(), 5);
    assert_eq!((&shown[1]["content"], &shown[4]["reason"]), (&"Run it first.".into(), &"completed".into()));
}

#[test]
fn a_recording_continues_where_it_stopped_and_half_a_line_is_moved_away() {
    let folder = Folder::with("run.jsonl", format!("{NATIVE}{{\"v\":1,\"ki"));
    let done = folder.run_with("record --to steno:run.jsonl --json", NATIVE.as_bytes());
    done.ends(0).talks("run.jsonl.torn-1");
    assert_eq!(done.json()[0]["recorded"], 4);
    assert_eq!(folder.read("run.jsonl.torn-1"), b"{\"v\":1,\"ki");
    assert_eq!(folder.run("show run.jsonl --json").ends(0).json().len(), 9);
    folder.run("check run.jsonl").ends(0);
}

#[test]
fn recover_sets_half_a_line_aside_and_is_done_the_second_time() {
    let folder = Folder::with("run.jsonl", format!("{NATIVE}{{\"v\":1,\"ki"));
    folder.run("recover run.jsonl").ends(0).talks("run.jsonl.torn-1");
    folder.run("recover run.jsonl").ends(0).talks("already complete");
    assert_eq!(folder.read("run.jsonl"), NATIVE.as_bytes());
    assert_eq!(folder.run("recover run.jsonl --json").ends(0).json()[0]["remarks"].as_array().unwrap().len(), 0);
    folder.run("recover nothing-here").fails("no such file");
}

#[test]
fn a_folder_of_native_streams_is_shown_and_completed() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("runs")).unwrap();
    folder.run_with("record --to steno:runs", NATIVE.as_bytes()).ends(0);
    let name = crate::runner::names(&folder.path("runs")).remove(0);
    let half = [folder.read(&format!("runs/{name}")), b"{\"v\":1,\"ki".to_vec()].concat();
    folder.write(&format!("runs/{name}"), half);
    folder.run("recover runs").ends(0).talks(&format!("{name}.torn-1"));
    folder.run("recover runs").ends(0).talks("already complete");
    assert_eq!(folder.run("show runs --json").ends(0).json().len(), 5);
    assert_ne!(folder.run("audit runs --json").ends(0).json()[0]["agent"], "", "an unknown agent has no name");
}

#[test]
fn a_command_is_passed_through_and_its_exit_code_too() {
    let folder = Folder::with("script.sh", format!("cat <<'END'\n{NATIVE}END\necho oops >&2\nexit 3\n"));
    let done = folder.run("record --to steno:run.jsonl --ack -- sh script.sh");
    done.ends(3).talks("oops").talks("{\"ack\":4,").talks("failed: run.jsonl");
    assert_eq!(done.text(), NATIVE);
    let shown = folder.run("show run.jsonl --json --last 1").ends(0).json();
    assert_eq!(shown[0]["success"], false);
    folder.run("record --to steno:other.jsonl -- no-such-command-here").fails("cannot run");
    assert_eq!(folder.names(), ["run.jsonl", "script.sh"]);
    folder.run("record --to steno:run.jsonl -- ./script.sh").fails("cannot run");
    let last = folder.run("show run.jsonl --json --last 1").ends(0).json();
    assert_eq!(last[0]["reason"], "failed");
}

#[test]
fn output_of_an_unknown_format_is_kept_as_it_is() {
    let folder = Folder::new();
    folder.run("record --to steno:run.jsonl -- echo plain words").ends(0).talks("has no known format");
    assert_eq!(folder.run("show run.jsonl --json").ends(0).json()[0]["bytes"], "plain words");
    folder.run_with("record --to steno:other.jsonl", b"plain words\n").fails("unknown format");
}

#[test]
fn a_document_that_a_command_prints_is_kept_as_it_is() {
    let document = include_str!("../../../stenograph/src/formats/devflow/fixtures/empty.json");
    let folder = Folder::with("script.sh", format!("cat <<'END'\n{document}\nEND\nsleep 1\necho later\n"));
    let done = folder.run("record --to steno:run.jsonl -- sh script.sh");
    assert_eq!(done.ends(0).text(), format!("{document}\nlater\n"));
    let shown = folder.run("show run.jsonl --json").json();
    assert_eq!(shown.iter().filter(|event| event["kind"] == "other").count(), 14);
}

#[test]
fn a_second_recorder_is_refused_and_names_the_first_and_a_signal_cancels() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let folder = Folder::new();
        let mut first = folder.command("record --from steno --to steno:run.jsonl --ack");
        let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = first.stdin.take().unwrap();
        input.write_all(NATIVE.as_bytes()).unwrap();
        let mut acks = BufReader::new(first.stdout.take().unwrap()).lines();
        assert_eq!(acks.by_ref().take(4).count(), 4);
        let holder = format!("process {} is writing to it", first.id());
        folder.run_with("record --from steno --to steno:run.jsonl", b"").fails(&holder);
        folder.run("recover run.jsonl").fails(&holder);
        let killed = std::process::Command::new("kill").args([format!("-{signal}"), first.id().to_string()]).status();
        assert!(killed.unwrap().success());
        assert_eq!(first.wait().unwrap().code(), Some(code));
        let last = folder.run("show run.jsonl --json --last 1").ends(0).json();
        assert_eq!(last[0]["reason"], "canceled");
    }
}

#[test]
fn a_signal_ends_a_command_even_if_its_children_live_on() {
    let folder = Folder::with("in.jsonl", NATIVE);
    let mut command = folder.command("record --to steno:run.jsonl -- sh -c");
    // The signal ends the shell; its child holds the output open for longer than anybody waits.
    let mut child =
        command.arg("sleep 300 & echo $! > left; cat in.jsonl; wait").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.by_ref().take(4).count(), 4);
    let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(143));
    // The child lives on; without this, a reader of the test output would wait for it.
    let left = String::from_utf8(folder.read("left")).unwrap();
    assert!(std::process::Command::new("kill").arg(left.trim()).status().unwrap().success());
    let last = folder.run("show run.jsonl --json --last 1").ends(0).json();
    assert_eq!(last[0]["reason"], "canceled");
}

#[test]
fn loading_continues_a_conversation_or_branches_from_it() {
    let folder = Folder::with("before.jsonl", NATIVE);
    let new = "{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"more\"}\n";
    folder.run_with("record --load before.jsonl --to steno:branch.jsonl", new.as_bytes()).ends(0);
    assert_eq!(folder.read("before.jsonl"), NATIVE.as_bytes());
    assert_eq!(folder.run("show branch.jsonl --json").ends(0).json().len(), 6);
    folder.run_with("record --load before.jsonl --to steno:before.jsonl", new.as_bytes()).ends(0);
    assert_eq!(folder.run("show before.jsonl --json").ends(0).json().len(), 6);
}

#[test]
fn wrong_words_are_refused_with_a_way_out() {
    let folder = Folder::new();
    folder.run("record --to nowhere:x").fails("unknown layout: nowhere");
    folder.run("record --to steno:y --to steno:./y").fails("given twice");
    folder.run("record --to steno:x --set flow=a").fails("has no settings");
    folder.run("record --to steno:x --set flow").fails("expected KEY=VALUE");
    assert_eq!(folder.run("record --to steno:x --sync sometimes").code, 2);
    folder.run("record --load missing --to steno:x").fails("no such file");
    assert_eq!(folder.names(), ["y"]);
}

#[test]
fn output_is_recorded_even_if_nobody_reads_it() {
    let folder = Folder::with("in.jsonl", NATIVE);
    let steno = env!("CARGO_BIN_EXE_steno");
    for (name, tail) in [("a", "--ack < in.jsonl"), ("b", "-- sh -c 'cat in.jsonl; sleep 0.2; cat in.jsonl'")] {
        let line = format!("{steno} record --to steno:{name} {tail} | head -c 1");
        let done = std::process::Command::new("sh").args(["-c", &line]).current_dir(folder.path(".")).status();
        assert!(done.unwrap().success());
    }
    assert_eq!(folder.run("show a --json").ends(0).json().len(), 5);
    assert_eq!(folder.run("show b --json").ends(0).json().len(), 9);
    let line = format!(
        "({steno} record --to steno:c -- sh -c 'cat in.jsonl; sleep 0.2; cat in.jsonl; exit 4'; echo $? >&2) | head -c 1"
    );
    let done = std::process::Command::new("sh").args(["-c", &line]).current_dir(folder.path(".")).output().unwrap();
    assert!(String::from_utf8(done.stderr).unwrap().ends_with("4\n"));
}

#[test]
fn output_that_is_not_a_transcript_is_kept_with_few_notes() {
    let folder = Folder::new();
    let done = folder.run_with("record --from openai-chat --to steno:a", "noise\n".repeat(500).as_bytes());
    done.ends(0).talks("480 notes more about the input").talks("500 events recorded");
    assert!(done.talk.lines().count() < 30, "{}", done.talk);
}

#[test]
fn recording_into_the_same_file_again_reports_that_it_appends() {
    let folder = Folder::new();
    let first = folder.run_with("record --to steno:run.jsonl", NATIVE.as_bytes());
    assert!(!first.ends(0).talk.contains("already"));
    folder.run_with("record --to steno:run.jsonl", NATIVE.as_bytes()).ends(0).talks("this one is appended");
    assert_eq!(folder.run("show run.jsonl --json").ends(0).json().len(), 10);
    let line = "record --load run.jsonl --to steno:run.jsonl";
    assert!(!folder.run_with(line, NATIVE.as_bytes()).ends(0).talk.contains("already"));
}

#[test]
fn a_native_line_with_a_wrong_field_is_kept_and_the_field_is_named() {
    let folder = Folder::new();
    let wrong = NATIVE.replace("\"input\"", "\"arguments\"").replace("\"role\":\"user\"", "\"role\":\"boss\"");
    let done = folder.run_with("record --from steno --to steno:run.jsonl", wrong.as_bytes());
    done.ends(0).talks("line 3 of the input: not a tool_call: \"input\" is missing (unknown keys: \"arguments\")");
    done.talks("line 1 of the input: not a message: \"role\" has the wrong type");
    let shown = folder.run("show run.jsonl --json").ends(0).text().to_owned();
    assert!(shown.contains("cargo test"), "{shown}");
}

#[test]
fn chat_lines_that_state_model_and_usage_are_counted() {
    let folder = Folder::new();
    let chat = "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assistant\",\"content\":\"Hi.\",\"model\":\"gpt-4o\",\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3}}\n";
    for (to, file) in [("steno:run.jsonl", "run.jsonl"), ("cycod:talk.jsonl", "talk.jsonl")] {
        let line = format!("record --set auto_save_chat_history=false --set auto_save_trajectory=false --to {to}");
        let line = if to.starts_with("cycod") { line } else { format!("record --to {to}") };
        folder.run_with(&line, chat.as_bytes()).ends(0);
        let counted = folder.run(&format!("usage {file} --json")).ends(0).text().to_owned();
        assert!(counted.contains("gpt-4o") && counted.contains("12"), "{counted}");
    }
    assert_eq!(folder.read("talk.jsonl"), chat.as_bytes());
}

#[test]
fn a_request_that_cannot_be_written_is_reported() {
    let folder = Folder::new();
    let request = r#"{"v":1,"kind":"fact","name":"request","extra":{"chibi-requests":{"request":{"model":"m","messages":[{"role":"user","content":"Go."}]}}}}"#;
    let response =
        r#"{"v":1,"kind":"fact","name":"response","model":"m","group":"r1","usage":{"input":12,"output":5}}"#;
    let bare = r#"{"v":1,"kind":"fact","name":"request","content":"{\"model\":\"m\"}"}"#;
    let done = folder.run_with("record --debug --to chibi:a", format!("{request}\n{response}\n").as_bytes());
    assert!(!done.ends(0).talk.contains("only in the journal"), "{}", done.talk);
    let sent = String::from_utf8(folder.read("a/requests.jsonl")).unwrap();
    assert!(
        sent.ends_with("\"request\":{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Go.\"}]}}\n"),
        "{sent}"
    );
    let empty = r#"{"v":1,"kind":"fact","name":"response","model":"m"}"#;
    let done = folder.run_with("record --debug --to chibi:b", format!("{request}\n{bare}\n{empty}\n").as_bytes());
    done.ends(0);
    done.talks("requests.jsonl: native facts without the request (extra.chibi-requests.request) are");
    done.talks("response_meta.jsonl: native facts without the usage are only in the journal: 1");
    assert_eq!(folder.read("b/requests.jsonl").iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[test]
fn keys_stand_in_the_order_of_the_documents() {
    let folder = Folder::new();
    let marker = r#"{"id":"4","timestamp":1705123500,"from":"system","to":"w","content":"","entry_type":"compaction","metadata":{"summary":"Rust basics"}}"#;
    folder.run_with("record --from chibi --to chibi:w", format!("{marker}\n").as_bytes()).ends(0);
    assert_eq!(String::from_utf8(folder.read("w/context.jsonl")).unwrap(), format!("{marker}\n"));
    let lines = [
        r#"{"type":"text","text":"hi"}"#,
        r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}"#,
        r#"{"type":"tool_result","tool_use_id":"t1","content":"x","is_error":false}"#,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"Let me"},{"type":"tool_use","id":"t2","name":"Read","input":{}}]}"#,
        r#"{"role":"user","content":"q"}"#,
        r#"{"type":"result","result":"ok","success":true}"#,
    ];
    let line = "record --from claude-events --to claude-events --set session=s --set agent=a";
    folder.run_with(line, (lines.join("\n") + "\n").as_bytes()).ends(0);
    let written = String::from_utf8(folder.read(".goodvibes/transcripts/s/a.jsonl")).unwrap();
    for (written, given) in written.lines().zip(lines) {
        assert!(written.starts_with(given.strip_suffix('}').unwrap()), "{written} is not {given}");
    }
}
