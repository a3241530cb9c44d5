//! A recording has several files: the same answer by file, folder and id, and after the recorder was killed.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::runner::{Done, Folder};

/// A question and an answer with thinking, and the response that states their tokens.
const TALK: &str = r#"{"v":1,"kind":"message","role":"user","time":"2026-11-18T05:00:00Z","content":"What is Rust?"}
{"v":1,"kind":"thinking","time":"2026-11-18T05:00:01Z","content":"A short answer."}
{"v":1,"kind":"message","role":"assistant","time":"2026-11-18T05:00:02Z","content":"A language."}
{"v":1,"kind":"fact","time":"2026-11-18T05:00:03Z","name":"response","model":"anthropic/claude-sonnet-4","group":"chatcmpl-1","usage":{"input":1234,"output":567}}
"#;

fn calls(done: &Done) -> serde_json::Value {
    done.ends(0).json()[0]["total"]["calls"].clone()
}

#[test]
fn a_recorded_call_counts_once_by_file_folder_and_id() {
    let folder = Folder::new();
    folder.run_with("record --from steno --to chibi:.chibi/contexts/mix --debug", TALK.as_bytes()).ends(0);
    folder.run("index --root .").ends(0);
    assert_eq!(calls(&folder.run("usage --root . --session mix --json")), 1);
    // Of two recordings of the same call, one has it.
    folder.run_with("record --from steno --to chibi:ctx --debug", TALK.as_bytes()).ends(0);
    folder.run("index --root .").ends(0);
    assert_eq!(calls(&folder.run("usage --root . --json")), 1);
    for name in ["ctx", "ctx/context.jsonl", "mix --root .", ".chibi/contexts/mix", ".chibi/contexts/mix/context.jsonl"]
    {
        assert_eq!(calls(&folder.run(&format!("usage {name} --json"))), 1, "{name}");
        assert_eq!(calls(&folder.run(&format!("usage {name} --json --explain"))), 1, "{name}");
    }
    folder.run("usage ctx --by session").ends(0).says("ctx ");
}

#[test]
fn a_response_without_a_time_counts_once() {
    let folder = Folder::new();
    let response = r#"{"response":{"id":"r1","model":"gpt-4o","usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}}"#;
    folder.run_with("record --from chibi-responses --to chibi:ctx --debug", response.as_bytes()).ends(0);
    assert_eq!(calls(&folder.run("usage ctx --json")), 1);
}

#[test]
fn a_document_is_shown_with_its_journal() {
    let folder = Folder::new();
    folder.run_with("record --from steno --to chibi:ctx", TALK.as_bytes()).ends(0);
    folder.run_with("record --from steno --to devflow:.devflow --set run=r1", TALK.as_bytes()).ends(0);
    for path in ["ctx", "ctx/context.jsonl", ".devflow/runs/r1", ".devflow/runs/r1/transcript.json"] {
        folder.run(&format!("show {path}")).ends(0).says("A short answer.");
    }
}

#[test]
fn a_run_that_is_recorded_again_keeps_its_total() {
    let folder = Folder::new();
    folder.write(
        "run.json",
        r#"{"runId":"r0","metadata":{"flowId":"f","startedAt":"2025-01-15T10:30:00Z","endedAt":"2025-01-15T10:45:32Z","status":"completed","totalTokensIn":5200,"totalTokensOut":8400,"totalCost":0.12},"turns":[{"id":1,"role":"user","content":"Go.","tokensIn":1500,"timestamp":"2025-01-15T10:30:01Z"},{"id":2,"role":"assistant","content":"Done.","tokensOut":2500,"timestamp":"2025-01-15T10:30:45Z"}]}"#,
    );
    folder.run("convert run.json --to steno -o run.steno.jsonl").ends(0);
    let run = folder.read("run.steno.jsonl");
    folder.run_with("record --from steno --to devflow:.devflow --set run=r1", &run).ends(0);
    let transcript = String::from_utf8(folder.read(".devflow/runs/r1/transcript.json")).unwrap();
    assert!(transcript.contains("\"totalTokensIn\": 5200") && transcript.contains("\"totalTokensOut\": 8400"));
    for path in [".devflow/runs/r1", ".devflow/runs/r1/transcript.json"] {
        let total = folder.run(&format!("usage {path} --json")).ends(0).json()[0]["total"].clone();
        assert_eq!((&total["calls"], &total["stated_cost"]), (&1.into(), &0.12.into()), "{path}: {total}");
    }
}

#[test]
fn the_newest_question_of_a_thread_is_its_status() {
    let folder = Folder::new();
    let long = "x".repeat(500);
    let events = format!(
        r#"{{"role":"user","content":"First"}}
{{"type":"tool_use","id":"t1","name":"Bash","input":{{"command":"ls"}}}}
{{"type":"tool_result","tool_use_id":"t1","output":"{long}","is_error":false}}
{{"type":"stop","stop_reason":"end_turn","success":true}}
{{"role":"user","content":"Second"}}
{{"type":"text","text":"Half an ans"}}
{{"type":"stop","stop_reason":"max_tokens"}}
"#
    );
    folder.run_with("record --from claude-events --to leslie --set thread=t", events.as_bytes()).ends(0);
    let run = folder.run("status .leslie/threads/t --json").ends(3).json();
    assert_eq!((&run[0]["asked"], &run[0]["why"]), (&"Second".into(), &"cut_off".into()));
}

#[test]
fn a_killed_recorder_is_not_running_and_its_stream_can_be_completed() {
    let folder = Folder::new();
    let mut recorder = folder.command("record --from openai-chat --to steno:k.steno.jsonl --ack");
    let mut recorder = recorder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = recorder.stdin.take().unwrap();
    input.write_all(b"{\"role\":\"user\",\"content\":\"hi\"}\n").unwrap();
    let mut ack = String::new();
    BufReader::new(recorder.stdout.take().unwrap()).read_line(&mut ack).unwrap();
    folder.run("status k.steno.jsonl").ends(0).says("running");
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    folder.run("status k.steno.jsonl").ends(3).says("the recorder was killed");
    folder.run("recover k.steno.jsonl").ends(0).talks("1 recording completed");
    folder.run("status k.steno.jsonl").ends(3).says("interrupted");
    folder.run("recover k.steno.jsonl").ends(0).talks("already complete");
}

#[test]
fn a_failed_command_is_named_in_the_status() {
    let folder = Folder::new();
    let mut command = folder.command("record --from openai-chat --to steno:y.steno.jsonl --");
    let script = "echo '{\"role\":\"user\",\"content\":\"hi\"}'; exit 3";
    assert_eq!(command.args(["sh", "-c", script]).output().unwrap().status.code(), Some(3));
    folder.run("status y.steno.jsonl").ends(3).says("failed: exit status");
}

#[test]
fn an_unknown_entry_keeps_its_id_and_time() {
    let folder = Folder::new();
    let entry = r#"{"id":"u-1","timestamp":1705123456,"from":"a","to":"b","content":"x","entry_type":"mystery"}"#;
    let message =
        r#"{"id":"u-0","timestamp":1705123455,"from":"alice","to":"c3","content":"hi","entry_type":"message"}"#;
    let lines = format!("{message}\n{entry}\n");
    folder.run_with("record --from chibi --to chibi:c3", lines.as_bytes()).ends(0);
    let written = String::from_utf8(folder.read("c3/context.jsonl")).unwrap();
    let parsed =
        |lines: &str| lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<serde_json::Value>>();
    assert_eq!(parsed(&written), parsed(&lines));
}
