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

/// Sets the age of a file.
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

#[cfg(target_os = "linux")]
#[test]
fn an_answer_is_complete_as_soon_as_its_agent_is_gone() {
    let now = jiff::Timestamp::now();
    let line =
        |kind: &str, payload: &str| format!("{{\"timestamp\":\"{now}\",\"type\":\"{kind}\",\"payload\":{payload}}}\n");
    let header = r#"{"id":"8c1f5a52-3d0e-7c6b-9a57-2f1e0b7d4c10","cwd":"/work/nowhere","cli_version":"0.166.0"}"#;
    let said =
        |role: &str| format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"text","text":"Go."}}]}}"#);
    let asked = line("session_meta", header) + &line("response_item", &said("user"));
    let folder = Folder::with("asked.jsonl", &asked);
    folder.write("answered.jsonl", &(asked + &line("response_item", &said("assistant"))));
    assert_eq!(state(&folder, "status asked.jsonl --json"), pair("running", "asked"));
    assert_eq!(state(&folder, "status answered.jsonl --json"), pair("idle", "waiting"));
}

#[test]
fn a_run_takes_one_row() {
    let folder = Folder::with("a.jsonl", CALL);
    let done = folder.run("status a.jsonl");
    let lines: Vec<&str> = done.ends(0).text().lines().collect();
    assert!(lines[0].starts_with("SESSION  AGENT  PROJECT"), "{lines:?}");
    for word in ["steno", "s1", "running: in Bash", "ago", "Bash", "45k", "shop"] {
        assert!(lines[1].contains(word), "{word} is not in {}", lines[1]);
    }
    let json = folder.run("status a.jsonl --json").json();
    assert_eq!((&json[0]["open"][0], &json[0]["context"]), (&"Bash".into(), &45_000.into()));
    assert_eq!((&json[0]["model"], &json[0]["asked"]), (&"m-1".into(), &"Build it".into()));
}

/// A session of Claude Code in a project, with a last record of this age: a prompt, and what follows it.
fn session(folder: &Folder, number: u32, minutes: i64, tool: Option<&str>, ends: Option<&str>) {
    let id = format!("{number:08}-2222-4333-8444-555555555555");
    let then = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(minutes);
    let record = |kind: &str, message: serde_json::Value| {
        serde_json::json!({
            "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": "/work/a-project-with-a-long-name",
            "sessionId": id, "version": "2.1.0", "timestamp": then.to_string(), "type": kind,
            "uuid": format!("{id}-{kind}"), "message": message,
        })
    };
    let mut text = format!("{}\n", record("user", serde_json::json!({"role": "user", "content": "Go."})));
    if tool.is_some() || ends.is_some() {
        let content = match tool {
            Some(tool) => serde_json::json!([{"type": "tool_use", "id": "t1", "name": tool, "input": {}}]),
            None => serde_json::json!([{"type": "text", "text": "Well."}]),
        };
        let message = serde_json::json!({
            "id": "m1", "type": "message", "role": "assistant", "model": "m", "stop_reason": ends, "content": content,
        });
        text += &format!("{}\n", record("assistant", message));
    }
    fs::create_dir_all(folder.path(".claude/projects/p")).unwrap();
    folder.write(&format!(".claude/projects/p/{id}.jsonl"), text);
}

#[test]
fn runs_that_need_the_user_come_first_and_fit_a_terminal() {
    let folder = Folder::new();
    session(&folder, 1, 0, None, None);
    session(&folder, 2, 2, None, Some("end_turn"));
    session(&folder, 3, 3, None, Some("refusal"));
    session(&folder, 4, 4, Some("AskUserQuestion"), Some("tool_use"));
    session(&folder, 5, 5, Some("ExitPlanMode"), Some("tool_use"));
    session(&folder, 6, 30, None, None);
    (7..20).for_each(|number| session(&folder, number, 60 * 50, None, None));
    let done = folder.run("status --root . --active-within 7d");
    let rows: Vec<&str> = done.ends(0).text().lines().collect();
    let states = [
        "STATE",
        "needs your answer",
        "needs your permission",
        "idle: waiting for you",
        "failed",
        "stalled",
        "running",
    ];
    assert_eq!(rows.len(), states.len(), "{rows:?}");
    for (row, state) in rows.iter().zip(states) {
        assert!(row.contains(state), "{state}: {row}");
    }
    done.talks("13 agents stalled more than a day ago: show with --all");
    let all = folder.run("status --root . --active-within 7d --all");
    assert_eq!(all.ends(0).text().lines().count(), 20);
    let needs: Vec<String> =
        folder.run("status --root . --json").json().iter().map(|run| run["needs"].to_string()).collect();
    assert_eq!(needs.iter().filter(|need| *need == "\"look\"").count(), 2, "{needs:?}");
    assert!(needs.contains(&"\"answer\"".to_owned()) && needs.contains(&"null".to_owned()), "{needs:?}");
    // On a terminal of 80 columns and 24 lines.
    (20..60).for_each(|number| session(&folder, number, 10, None, Some("end_turn")));
    let steps = serde_json::json!([["see", "show with --all"]]);
    if let Some(seen) = super::replay::watched(&folder, "status --root .", &steps) {
        let output = seen.output();
        assert!(output.lines().all(|line| line.trim_end().chars().count() <= 80), "{output}");
        assert!(output.lines().count() <= 24, "{output}");
        assert!(output.contains("1 to answer, 1 to permit, 41 idle, 1 failed, 1 stalled"), "{output}");
        assert!(output.contains("27 more: show with --all"), "{output}");
    }
}

#[test]
fn silence_makes_stale_and_an_open_call_has_more_time() {
    let folder = Folder::with("a", CALL);
    age(&folder, "a", 30);
    assert_eq!(state(&folder, "status a --json"), pair("running", "in_call"));
    assert_eq!(state(&folder, "status a --json --call-silence 10m"), pair("stalled", "in_call"));
    age(&folder, "a", 90);
    assert_eq!(state(&folder, "status a --json"), pair("stalled", "in_call"));
    let asked = CALL.lines().next().unwrap().to_owned() + "\n";
    folder.write("b", &asked);
    assert_eq!(state(&folder, "status b --json"), pair("running", "asked"));
    age(&folder, "b", 10);
    assert_eq!(state(&folder, "status b --json"), pair("stalled", "asked"));
    assert_eq!(state(&folder, "status b --json --silence 1h"), pair("running", "asked"));
}

#[test]
fn a_last_line_without_a_newline_counts_and_half_a_line_does_not() {
    let folder = Folder::with("a", (CALL.to_owned() + STOP).trim_end());
    assert_eq!(state(&folder, "status a --json"), pair("idle", "waiting"));
    let all = CALL.to_owned() + STOP;
    folder.write("b", &all[..all.len() - 10]);
    assert_eq!(state(&folder, "status b --json"), pair("running", "in_call"));
}

#[test]
fn records_decide_the_state_even_if_the_file_was_touched() {
    // The records are from March, the file is from now: nothing runs.
    let folder = Folder::with("a", NATIVE);
    assert_eq!(state(&folder, "status a --json"), pair("stalled", "asked"));
    folder.run("status a --wait").ends(1).says("stalled");
    let ahead = NATIVE.replace("2026-03-02", "2999-03-02");
    folder.write("b", ahead);
    age(&folder, "b", 10);
    assert_eq!(state(&folder, "status b --json"), pair("stalled", "asked"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_has_the_file_open_is_alive() {
    let folder = Folder::with("a", CALL);
    age(&folder, "a", 90);
    assert_eq!(state(&folder, "status a --json"), pair("stalled", "in_call"));
    let held = OpenOptions::new().append(true).open(folder.path("a")).unwrap();
    assert_eq!(state(&folder, "status a --json"), pair("running", "in_call"));
    drop(held);
    assert_eq!(state(&folder, "status a --json"), pair("stalled", "in_call"));
}

/// The records of an agent of a session at this second: a call, and optionally an answer.
fn agent(session: &str, thread: Option<&str>, ends: Option<&str>) -> String {
    let now = jiff::Timestamp::now();
    let mut base = serde_json::json!({
        "parentUuid": null, "isSidechain": thread.is_some(), "userType": "external", "cwd": "/w", "sessionId": session,
        "version": "2.1.0", "timestamp": now.to_string(), "type": "user", "uuid": format!("{session}-{thread:?}-1"),
        "message": {"role": "user", "content": "Go."},
    });
    if let Some(thread) = thread {
        base["agentId"] = thread.into();
    }
    let mut answer = base.clone();
    answer["type"] = "assistant".into();
    answer["uuid"] = format!("{session}-{thread:?}-2").into();
    answer["message"] = serde_json::json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": ends,
        "content": [{"type": "text", "text": "Well."}],
    });
    if ends.is_some() { format!("{base}\n{answer}\n") } else { format!("{base}\n") }
}

#[test]
fn each_agent_has_one_row_and_active_runs_come_first() {
    let folder = Folder::new();
    let session = "11111111-2222-4333-8444-555555555555";
    fs::create_dir_all(folder.path(&format!(".claude/projects/p/{session}/subagents"))).unwrap();
    folder.write(&format!(".claude/projects/p/{session}.jsonl"), agent(session, None, Some("end_turn")));
    let side = |name: &str| format!(".claude/projects/p/{session}/subagents/agent-{name}.jsonl");
    folder.write(&side("a1"), agent(session, Some("a1"), None));
    folder.write(&side("a2"), agent(session, Some("a2"), Some("refusal")));
    // Other files beside a conversation are not agents.
    fs::create_dir_all(folder.path(".chibi/contexts/main")).unwrap();
    folder.write(
        ".chibi/contexts/main/inbox.jsonl",
        "{\"id\":\"1\",\"timestamp\":1772442840,\"from\":\"a\",\"to\":\"main\",\"content\":\"Look.\"}\n",
    );
    let runs = folder.run("status --root . --json").ends(0).json();
    let rows: Vec<(&str, &str)> =
        runs.iter().map(|run| (run["id"].as_str().unwrap(), run["state"].as_str().unwrap())).collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(rows[0], (format!("{session}/a1").as_str(), "running"));
    assert!(rows.contains(&(session, "idle")) && rows.contains(&(format!("{session}/a2").as_str(), "failed")));
    // A session is as bad as the worst of its agents.
    folder.run("index --root .").ends(0);
    let runs = folder.run(&format!("status {session} --root . --json"));
    assert_eq!(runs.ends(3).json().len(), 3);
}

#[test]
fn an_error_is_printed_once_however_often_steno_looks() {
    let folder = Folder::with("a", CALL);
    let done = folder.run("status a none.jsonl --wait --call-silence 2s --silence 2s");
    assert_eq!(done.ends(2).says("stalled").talk.matches("none.jsonl").count(), 1, "{}", done.talk);
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
    let states = [
        ("running", 0, "running"),
        ("completed", 0, "idle"),
        ("stale", 1, "stalled"),
        ("failed", 3, "failed"),
        ("error", 3, "error"),
    ];
    for (name, code, word) in states {
        folder.run(&format!("status {name}")).ends(code).says(word);
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
    folder.run("status a").ends(0).says("idle: waiting for you, recovered");
}

#[test]
fn without_names_all_recently_written_runs_are_listed() {
    let folder = Folder::new();
    folder.run("status --root .").finds_nothing("no transcripts");
    for (name, minutes) in [("new", 1), ("older", 60 * 5), ("old", 60 * 50)] {
        fs::create_dir_all(folder.path(&format!(".chibi/contexts/{name}"))).unwrap();
        let path = format!(".chibi/contexts/{name}/context.jsonl");
        let now = jiff::Timestamp::now().as_second();
        let then = (now - 60 * i64::try_from(minutes).unwrap()).to_string();
        let mut records = crate::runner::CHIBI.to_owned();
        for time in ["1705123456", "1705123465", "1705123466"] {
            records = records.replace(time, &then);
        }
        folder.write(&path, records);
        age(&folder, &path, minutes);
    }
    let contexts = |line: &str| -> usize { folder.run(line).ends(0).json().len() };
    assert_eq!(contexts("status --root . --json"), 2);
    assert_eq!(contexts("status --root . --json --active-within 1h"), 1);
    assert_eq!(contexts("status --root . --json --active-within 7d"), 3);
}

#[test]
fn the_records_of_a_session_count_and_not_a_newer_file_without_times() {
    let folder = Folder::new();
    let place = ".openhands/conversations/8be95a86000000000000000000000001";
    fs::create_dir_all(folder.path(&format!("{place}/events"))).unwrap();
    folder.write(
        &format!("{place}/base_state.json"),
        r#"{"id":"8be95a86-0000-0000-0000-000000000001","agent":{"llm":{"model":"gull"},"kind":"Agent"},"max_iterations":500}"#,
    );
    folder.write(
        &format!("{place}/events/event-00000-00000000-0000-0000-0000-000000000001.json"),
        r#"{"id":"00000000-0000-0000-0000-000000000001","timestamp":"2025-01-02T03:04:05.000000","source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"There are three boats."}]},"kind":"MessageEvent"}"#,
    );
    folder.run("status --root .").finds_nothing("no agent was active");
    let runs = folder.run("status --root . --json --active-within 100y --all").ends(0).json();
    assert_eq!((runs.len(), &runs[0]["state"]), (1, &"idle".into()), "{runs:?}");
}

#[test]
fn a_run_that_the_index_knows_as_finished_is_hidden_until_it_continues() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path(".claude/projects/-work-app")).unwrap();
    let path = |number: u32| format!(".claude/projects/-work-app/{number:08}-d9cb-469f-a165-70867728950e.jsonl");
    let line = |number: u32, time: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u\",\"sessionId\":\"{number:08}-d9cb-469f-a165-70867728950e\",\"timestamp\":\"{time}\",\"message\":{{\"role\":\"user\",\"content\":\"Build it\"}}}}\n"
        )
    };
    for number in 0..40 {
        folder.write(&path(number), line(number, "2025-01-02T03:04:05.000Z"));
        // Written a minute ago, so that the index trusts the file's time.
        age(&folder, &path(number), 1);
    }
    folder.run("status --root .").finds_nothing("no agent was active");
    folder.run("index --root .").ends(0);
    folder.run("status --root .").finds_nothing("no agent was active");
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string();
    let mut file = OpenOptions::new().append(true).open(folder.path(&path(7))).unwrap();
    file.write_all(line(7, &now).as_bytes()).unwrap();
    let runs = folder.run("status --root . --json").ends(0).json();
    assert_eq!((runs.len(), &runs[0]["session"]), (1, &"00000007-d9cb-469f-a165-70867728950e".into()));
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
    assert_eq!(json["state"], "idle");
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

/// Most documents cannot hold thinking and tokens, so a journal stays beside them.
const TALK: &str = r#"{"v":1,"kind":"message","session":"s1","role":"user","content":"Build it"}
{"v":1,"kind":"thinking","session":"s1","content":"Hm."}
{"v":1,"kind":"message","session":"s1","role":"assistant","content":"Done.","usage":{"input":10,"output":20}}
"#;

/// Every layout of another system at its usual location, with the agent and the id of the session.
const LAYOUTS: [(&str, &str, &str); 5] = [
    ("chibi:.chibi/contexts/w", "chibi", "w"),
    (
        "cycod:.cycod/history/chat-history-17.jsonl --set auto_save_chat_history=false --set auto_save_trajectory=false",
        "cycod",
        "17",
    ),
    ("devflow --set run=r1", "devflow", "r1"),
    ("leslie --set thread=t1", "leslie", "t1"),
    ("claude-events --set session=s7 --set agent=a7", "claude-code", "s7/a7"),
];

#[test]
fn a_recording_that_ended_has_one_row_and_the_state_of_its_journal() {
    for (to, agent, id) in LAYOUTS {
        let folder = Folder::new();
        folder.run_with(&format!("record --to {to}"), TALK.as_bytes()).ends(0).talks(".steno");
        let runs = folder.run("status --root . --json").ends(0).json();
        let rows: Vec<_> = runs.iter().map(|run| (&run["agent"], &run["id"], &run["state"], &run["context"])).collect();
        assert_eq!(rows, [(&agent.into(), &id.into(), &"completed".into(), &10.into())], "{to}");
        folder.run("status --root .").ends(0).says(agent);
    }
}

#[test]
fn a_running_recording_has_one_row() {
    for (to, agent, id) in LAYOUTS {
        let folder = Folder::new();
        let mut recording = folder.command(&format!("record --ack --to {to}"));
        let mut recording = recording.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = recording.stdin.take().unwrap();
        input.write_all(TALK.as_bytes()).unwrap();
        let mut acks = BufReader::new(recording.stdout.take().unwrap()).lines();
        (0..3).for_each(|_| drop(acks.next().unwrap().unwrap()));
        let runs = folder.run("status --root . --json").ends(0).json();
        let rows: Vec<_> = runs.iter().map(|run| (&run["agent"], &run["id"], &run["state"], &run["context"])).collect();
        assert_eq!(rows, [(&agent.into(), &id.into(), &"running".into(), &10.into())], "{to}");
        drop(input);
        assert!(recording.wait().unwrap().success());
    }
}

#[test]
fn a_document_that_its_agent_continued_after_the_recording_decides_the_state() {
    let folder = Folder::new();
    folder.run_with("record --to chibi:.chibi/contexts/w", TALK.as_bytes()).ends(0);
    let later = jiff::Timestamp::now().as_second() + 2;
    let asked = format!(
        "{{\"id\":\"9\",\"timestamp\":{later},\"from\":\"alice\",\"to\":\"w\",\"content\":\"And now?\",\"entry_type\":\"message\"}}\n"
    );
    let document = folder.path(".chibi/contexts/w/context.jsonl");
    OpenOptions::new().append(true).open(document).unwrap().write_all(asked.as_bytes()).unwrap();
    let runs = folder.run("status --root . --json").ends(0).json();
    assert_eq!((runs.len(), &runs[0]["why"], &runs[0]["asked"]), (1, &"asked".into(), &"And now?".into()));
}

#[test]
fn names_from_a_transcript_do_nothing_to_a_terminal() {
    let folder = Folder::with("a", CALL.replace("Bash", "Ba\\u001b[31msh").replace("shop", "sh\\u0007op"));
    let done = folder.run("status a");
    assert_eq!(done.ends(0).text().chars().find(|char| char.is_control() && *char != '\n'), None);
    done.says("Ba␛[31msh");
}

#[test]
fn a_state_names_its_record_and_its_rule() {
    let folder = Folder::with("a", CALL);
    let found = folder.run("status a --json --explain").json().remove(0);
    assert_eq!((&found["explain"]["rule"], &found["explain"]["line"]), (&"open_call".into(), &2.into()));
    folder.run("status a --explain").ends(0).says("s1: running: the call has no result (line 2)");
    let answer = "{\"v\":1,\"kind\":\"message\",\"session\":\"s1\",\"role\":\"assistant\",\"content\":\"Done\"}\n";
    folder.write("b", format!("{CALL}{FAILURE}{answer}{STOP}"));
    folder
        .run("status b --explain")
        .ends(0)
        .says("(line 5)")
        .says("the error at line 3 was followed by a success at line 4");
    // Line numbers are also right for a large file that is read from its end.
    let many = format!("{}{STOP}", answer.repeat(5000));
    folder.write("c", &many);
    folder
        .run("status c --explain")
        .ends(0)
        .says("s1: idle: the record states that the turn or the run is over (line 5001)");
    assert!(folder.run("status a --json").json()[0].get("explain").is_none());
}

#[test]
fn progress_of_a_sub_agent_does_not_push_its_call_out_of_view() {
    let head = r#""sessionId":"s1","cwd":"/w","version":"2.1.0","isSidechain":false,"userType":"external""#;
    let mut file = format!(
        "{{\"type\":\"user\",\"uuid\":\"u1\",\"parentUuid\":null,{head},\"message\":{{\"role\":\"user\",\"content\":\"Look\"}}}}\n\
         {{\"type\":\"assistant\",\"uuid\":\"u2\",\"parentUuid\":\"u1\",{head},\"message\":{{\"role\":\"assistant\",\"id\":\"m1\",\
         \"model\":\"m\",\"stop_reason\":\"tool_use\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Task\",\
         \"input\":{{\"prompt\":\"look\",\"subagent_type\":\"e\"}}}}]}}}}\n"
    );
    for number in 0..200 {
        file += &format!(
            "{{\"type\":\"progress\",\"uuid\":\"p{number}\",\"parentUuid\":\"u2\",{head},\"parentToolUseID\":\"t1\",\
             \"data\":{{\"type\":\"agent_progress\",\"agentId\":\"a1\",\"message\":{{\"type\":\"user\",\"uuid\":\"i{number}\",\
             \"message\":{{\"role\":\"user\",\"content\":\"step {number}\"}}}}}}}}\n"
        );
    }
    let folder = Folder::with("a.jsonl", &file);
    assert_eq!(state(&folder, "status a.jsonl --json"), pair("running", "in_call"));
}
