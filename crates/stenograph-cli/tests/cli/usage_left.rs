//! `steno usage` reports what it does not count: invalid token counts, unknown and damaged files, calls without a time, and
//! filters that match nothing.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::runner::Folder;

fn call(id: &str, time: Option<&str>, usage: &Value) -> String {
    json!({"type": "assistant", "uuid": format!("uuid-of-the-record-{id}"), "sessionId": "otter-session", "timestamp": time,
        "cwd": "/work/app", "requestId": format!("req_{id}"), "message": {"id": format!("msg_{id}"),
        "model": "claude-sonnet-4-5-20250929", "role": "assistant", "content": [], "usage": usage}})
    .to_string()
        + "\n"
}

fn good(id: &str) -> String {
    call(id, Some("2026-01-31T12:00:00Z"), &json!({"input_tokens": 1, "output_tokens": 2}))
}

fn usage(folder: &Folder, line: &str) -> Value {
    folder.run(&format!("usage --root home --json {line}")).ends(0).json().remove(0)
}

fn packed(text: &str) -> Vec<u8> {
    let mut gzip = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut gzip.stdin.take().unwrap(), text.as_bytes()).unwrap();
    gzip.wait_with_output().unwrap().stdout
}

#[test]
fn an_invalid_count_is_reported() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home")).unwrap();
    folder.write("home/a.jsonl", good("1"));
    assert_eq!(usage(&folder, "")["odd_counts"], 0);
    let time = Some("2026-01-31T12:00:00Z");
    let odd = call("2", time, &json!({"input_tokens": -4, "output_tokens": 2}))
        + &call("3", time, &json!({"input_tokens": "7", "output_tokens": 1.5}))
        + &call("4", time, &json!({"input_tokens": null, "output_tokens": 2}));
    folder.write("home/a.jsonl", good("1") + &odd);
    let json = usage(&folder, "--explain");
    assert_eq!(
        (&json["odd_counts"], &json["total"]["calls"], &json["total"]["output"]),
        (&json!(2), &json!(3), &json!(6))
    );
    let is_odd = |decision: &&Value| decision["reason"] == "odd";
    let odd = json["decisions"].as_array().unwrap().iter().find(is_odd).unwrap().clone();
    assert_eq!((&odd["count"], &odd["merged"]), (&json!(2), &json!(false)));
    assert_eq!(
        odd["examples"].as_array().unwrap().iter().map(|place| place["line"].clone()).collect::<Vec<_>>(),
        [2, 3]
    );
    folder
        .run("usage --root home")
        .ends(0)
        .talks("2 records have an invalid token count")
        .talks("--explain shows where");
    folder.run("usage --root home --explain").ends(0).says("a.jsonl:2").says("negative");
}

#[test]
fn unknown_and_damaged_files_are_reported_and_the_readable_part_counts() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/notes")).unwrap();
    folder.write("home/notes/list.json", "{\"milk\":1}\n");
    folder.write("home/a.jsonl", good("1"));
    let whole = packed(&(good("2") + &good("3")));
    folder.write("home/b.jsonl.gz", &whole[..whole.len() - 6]);
    let json = usage(&folder, "");
    assert_eq!((&json["total"]["calls"], &json["unknown_files"]), (&json!(3), &json!(1)));
    let unread = json["unread"].as_array().unwrap();
    assert_eq!(unread.len(), 1);
    let (file, says) = (unread[0]["file"].as_str().unwrap(), unread[0]["says"].as_str().unwrap());
    assert!(file.ends_with("b.jsonl.gz") && !says.contains("b.jsonl.gz") && says.contains("gzip"), "{file}: {says}");
    folder.run("usage --root home --explain").ends(0).says("1 file left out: unknown format").says("list.json");
    folder.run("index --root home");
    assert_eq!(usage(&folder, ""), json);
}

#[test]
fn a_first_record_of_any_size_hides_no_format() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home")).unwrap();
    let large = format!("{{\"said\":\"{}\"}}\n", "x".repeat(33 << 20));
    folder.write("home/a.jsonl", large.clone() + &good("1"));
    folder.write("home/b.jsonl.gz", packed(&(large + &good("2"))));
    let json = usage(&folder, "--by agent");
    assert_eq!((&json["rows"][0]["key"], &json["total"]["calls"]), (&json!("claude-code"), &json!(2)));
    assert_eq!((&json["unknown_files"], &json["oversize_records"]), (&json!(0), &json!(2)));
    folder.run("usage --root home").ends(0).talks("2 records are too large to read, counted as 0");
    folder.run("index --root home").ends(0);
    assert_eq!(usage(&folder, "--by agent"), json);
}

#[test]
fn calls_that_filters_exclude_differ_from_no_calls_at_all() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home")).unwrap();
    folder.write("home/a.jsonl", good("1") + &call("2", None, &json!({"input_tokens": 1, "output_tokens": 2})));
    folder.run("usage --root home --since 2026-01").ends(0).talks("1 call is not counted because no time is recorded");
    let none = folder.run("usage --root home --since 2027 --csv");
    none.ends(1).talks("no calls match: 2 calls are excluded by your filters");
    assert_eq!(none.text().lines().count(), 1);
    folder.run("usage --root home --csv --explain").ends(2);
    fs::remove_file(folder.path("home/a.jsonl")).unwrap();
    folder.run("usage --root home").ends(1).talks("no model calls found");
}

/// A Claude Code session with calls of these numbers.
fn claude_calls(numbers: std::ops::Range<u32>) -> String {
    let session = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let each = |number: u32| {
        let (minute, asked, answered) = (number + 10, number * 2, number * 2 + 1);
        let head = |id: u32, kind: &str, second: u32| {
            format!(
                r#"{{"type":"{kind}","uuid":"u{id:07}","parentUuid":"u{:07}","sessionId":"{session}","timestamp":"2026-01-02T03:{minute}:0{second}.000Z","cwd":"/work/app","version":"2.0.0","message":"#,
                id - 1
            )
        };
        let question = format!(r#"{{"role":"user","content":"question {number}"}}}}"#);
        let usage = format!(
            r#"{{"input_tokens":{number},"output_tokens":{},"cache_read_input_tokens":{},"cache_creation_input_tokens":50}}"#,
            number * 7,
            number * 1000
        );
        let answer = format!(
            r#"{{"id":"m{number}","role":"assistant","model":"claude-opus-4-1","content":[{{"type":"text","text":"answer {number}"}}],"usage":{usage}}}}}"#
        );
        format!("{}{question}\n{}{answer}\n", head(asked, "user", 1), head(answered, "assistant", 2))
    };
    numbers.map(each).collect()
}

#[test]
fn a_conversion_and_its_source_count_once_however_they_are_counted() {
    let session = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let source = format!(".claude/projects/-work-app/{session}.jsonl");
    for (to, target) in [
        ("codex", format!(".codex/sessions/rollout-2026-01-02T03-11-00-{session}.jsonl")),
        ("codex --carry", format!(".codex/sessions/rollout-2026-01-02T03-11-00-{session}.jsonl")),
        ("steno", "session.steno.jsonl".to_owned()),
        ("devflow", "run.json".to_owned()),
        ("chibi-responses", "log.jsonl".to_owned()),
    ] {
        let folder = Folder::new();
        std::fs::create_dir_all(folder.path(".claude/projects/-work-app")).unwrap();
        std::fs::create_dir_all(folder.path(".codex/sessions")).unwrap();
        folder.write(&source, claude_calls(1..5));
        let totals = |line: &str| {
            let report = folder.run(&format!("usage --root . --json --by session {line}")).ends(0).json().remove(0);
            report["total"].clone()
        };
        let alone = totals("--no-index");
        assert_eq!(alone["calls"], 4, "{to}");
        folder.run(&format!("convert {source} --to {to} -o {target}"));
        assert_eq!(totals("--no-index"), alone, "{to}");
        folder.run("index --root .").ends(0);
        assert_eq!(totals(""), alone, "{to}");
        // The original continues, and so is written last.
        folder.write(&source, claude_calls(1..6));
        assert_eq!(totals("--no-index")["calls"], 5, "{to}");
        folder.run("index --root .").ends(0);
        assert_eq!(totals("")["calls"], 5, "{to}");
        let explained = folder.run("usage --root . --explain").ends(0).text().to_owned();
        assert!(to == "steno" || explained.contains("a call repeated in a converted file"), "{to}: {explained}");
    }
}

#[test]
fn a_session_continued_in_another_agent_counts_its_beginning_once() {
    let session = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(".claude/projects/-work-app")).unwrap();
    std::fs::create_dir_all(folder.path(".codex/sessions")).unwrap();
    let source = format!(".claude/projects/-work-app/{session}.jsonl");
    folder.write(&source, claude_calls(1..5));
    // The continuation is converted with its beginning; the original has only the beginning.
    let target = format!(".codex/sessions/rollout-2026-01-02T03-11-00-{session}.jsonl");
    folder.write("longer.jsonl", claude_calls(1..8));
    folder.run(&format!("convert longer.jsonl --to codex -o {target}"));
    std::fs::remove_file(folder.path("longer.jsonl")).unwrap();
    for index in [false, true] {
        if index {
            folder.run("index --root .").ends(0);
        }
        let line = format!("usage --root . --json --by agent {}", if index { "" } else { "--no-index" });
        let report = folder.run(&line).ends(0).json().remove(0);
        assert_eq!(report["total"]["calls"], 7, "{report:#}");
        assert_eq!(report["rows"].as_array().unwrap().len(), 2, "{report:#}");
    }
}

/// The total of all files, counted from the files and from an index.
fn totals(folder: &Folder) -> Value {
    let total =
        |line: &str| folder.run(&format!("usage --root . --json {line}")).ends(0).json().remove(0)["total"].clone();
    let plain = total("--no-index");
    folder.run("index --root .").ends(0);
    assert_eq!(total(""), plain);
    plain
}

#[test]
fn a_session_converted_back_and_forth_counts_once_and_later_calls_count() {
    let folder = Folder::new();
    folder.write("first.jsonl", claude_calls(1..5));
    let alone = totals(&folder);
    folder.run("convert first.jsonl --to codex -o second.jsonl");
    folder.run("convert second.jsonl --to claude-code -o third.jsonl");
    assert_eq!(totals(&folder), alone);
    let back = String::from_utf8(folder.read("third.jsonl")).unwrap();
    folder.write("third.jsonl", back + &claude_calls(7..8));
    let more = totals(&folder);
    assert_eq!((&more["calls"], &more["output"]), (&json!(5), &json!(7 * (1 + 2 + 3 + 4 + 7))));
}

#[test]
fn a_run_that_repeats_the_calls_of_a_session_counts_only_its_additional_calls() {
    let folder = Folder::new();
    folder.write("first.jsonl", claude_calls(1..5));
    let alone = totals(&folder);
    folder.run("convert first.jsonl --to devflow -o run.json");
    assert_eq!(totals(&folder), alone);
    let mut run: Value = serde_json::from_slice(&folder.read("run.json")).unwrap();
    assert_eq!(run["metadata"]["totalTokensOut"], 70);
    run["metadata"]["totalTokensOut"] = 75.into();
    run["metadata"]["totalCost"] = 0.25.into();
    folder.write("run.json", serde_json::to_vec(&run).unwrap());
    let more = totals(&folder);
    assert_eq!((&more["calls"], &more["output"], &more["stated_cost"]), (&json!(5), &json!(75), &json!(0.25)));
    assert_eq!(more["input"], alone["input"]);
}

#[test]
fn a_growing_log_without_a_session_counts_its_new_calls() {
    let folder = Folder::new();
    folder.write("first.jsonl", claude_calls(1..5));
    let alone = totals(&folder);
    // An answer without a model is not a call, and a conversion does not make it one.
    let nobody = call("9", Some("2026-01-02T03:40:00Z"), &json!({"input_tokens": 0, "output_tokens": 0}));
    let nobody = nobody.replace("claude-sonnet-4-5-20250929", "<synthetic>");
    let nobody = nobody.replace("otter-session", "0f8fad5b-d9cb-469f-a165-70867728950e");
    folder.write("first.jsonl", claude_calls(1..5) + &nobody);
    folder.run("convert first.jsonl --to chibi-responses -o log.jsonl");
    assert_eq!(totals(&folder), alone);
    let log = String::from_utf8(folder.read("log.jsonl")).unwrap();
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 3});
    let next = json!({"timestamp": 1_767_323_700, "response": {"id": "r", "model": "claude-opus-4-1", "usage": usage}});
    folder.write("log.jsonl", format!("{log}{next}\n"));
    let more = totals(&folder);
    assert_eq!((&more["calls"], &more["output"]), (&json!(5), &json!(73)));
    // A log that begins with another call is not a copy, and all of its answers count.
    folder.write("log.jsonl", format!("{next}\n{log}"));
    let first =
        json!({"timestamp": 1_767_323_400, "response": {"id": "q", "model": "claude-opus-4-1", "usage": usage}});
    folder.write("log.jsonl", format!("{first}\n{log}"));
    assert_eq!(totals(&folder)["calls"], 10);
}

#[test]
fn a_run_counts_once_beside_its_conversion() {
    let folder = Folder::new();
    let turn = |id: u32, role: &str, output: u32| {
        let time = format!("2026-01-02T03:1{id}:00Z");
        json!({"id": id, "role": role, "content": format!("turn {id}"), "tokensIn": output * 10, "tokensOut": output,
            "timestamp": time})
    };
    let metadata = json!({"flowId": "review", "startedAt": "2026-01-02T03:10:00Z", "endedAt": "2026-01-02T03:15:00Z",
        "status": "completed", "totalTokensIn": 120, "totalTokensOut": 12, "totalCost": 0.5});
    let turns = [turn(1, "user", 0), turn(2, "assistant", 5), turn(3, "user", 0), turn(4, "assistant", 7)];
    let run = json!({"runId": "0f8fad5b-d9cb-469f-a165-70867728950e", "metadata": metadata, "turns": turns});
    folder.write("run.json", serde_json::to_vec(&run).unwrap());
    let alone = totals(&folder);
    assert_eq!((&alone["output"], &alone["stated_cost"]), (&json!(12), &json!(0.5)));
    for to in ["codex", "claude-code"] {
        folder.run(&format!("convert run.json --to {to} -o {to}.jsonl"));
        assert_eq!(totals(&folder), alone, "{to}");
    }
}

#[test]
fn agents_models_and_projects_match_by_a_part_of_their_name_everywhere() {
    let folder = Folder::new();
    folder.write("first.jsonl", claude_calls(1..3));
    folder.run("index --root .").ends(0);
    for asked in ["--agent claude", "--agent CODE", "--agent claude-code", "--project App", "--project /work"] {
        folder.run(&format!("list --root . {asked}")).ends(0);
        assert_eq!(usage_of(&folder, asked), 2, "{asked}");
    }
    assert_eq!(usage_of(&folder, "--model OPUS-4"), 2);
    for asked in ["--agent codex", "--project api"] {
        folder.run(&format!("list --root . {asked}")).ends(1);
        folder.run(&format!("usage --root . {asked}")).ends(1);
    }
}

fn usage_of(folder: &Folder, asked: &str) -> Value {
    folder.run(&format!("usage --root . --json {asked}")).ends(0).json().remove(0)["total"]["calls"].clone()
}

#[test]
fn a_stream_without_a_session_whose_calls_are_minutes_apart_is_not_a_conversion() {
    let folder = Folder::new();
    folder.write(
        "first.jsonl",
        call("1", Some("2026-01-02T03:04:09Z"), &json!({"input_tokens": 100, "output_tokens": 50})),
    );
    let event = |minute: u32, input: u32, output: u32| {
        let time = format!("2026-01-02T03:{minute}:00Z");
        json!({"v": 1, "kind": "message", "time": time, "role": "assistant", "model": "claude-sonnet-4-5-20250929",
            "content": "unrelated", "usage": {"input": input, "output": output}})
    };
    folder.write("run.steno.jsonl", format!("{}\n{}\n", event(12, 100, 50), event(13, 5000, 700)));
    assert_eq!(totals(&folder)["calls"], 3);
}

/// Codex 0.166 writes only new records into the file of a fork, and names the file of the rest.
#[test]
fn the_calls_of_a_fork_that_replays_nothing_are_its_own() {
    let folder = Folder::new();
    let (own, parent) = ("01a1e18b-0000-7000-8000-000000000002", "01a1e18b-0000-7000-8000-000000000001");
    let meta = json!({"timestamp": "2026-11-15T23:29:16.196Z", "type": "session_meta", "payload": {"id": own, "forked_from_id": parent,
        "timestamp": "2026-11-15T23:29:16.177Z", "cwd": "/w", "originator": "codex_exec", "cli_version": "0.166.0",
        "history_base": {"thread_id": parent}}});
    let usage = json!({"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 10, "reasoning_output_tokens": 0, "total_tokens": 110});
    let count = json!({"timestamp": "2026-11-15T23:29:16.300Z", "type": "event_msg", "payload": {"type": "token_count",
        "info": {"total_token_usage": usage, "last_token_usage": usage}}});
    folder.write("rollout.jsonl", format!("{meta}\n{count}\n"));
    let report = folder.run("usage --root . --no-index --json --by session").ends(0).json().remove(0);
    assert_eq!(report["rows"][0]["session"], own, "{report}");
}
