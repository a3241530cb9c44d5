//! Commands agree: failed calls are the same for `find is:error`, `list`, `audit` and `status`, even if the file grows between
//! two runs of `index`; a file has one format for all of them, and an event one number.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::runner::{CHIBI, Folder};

const SESSION: &str = "0199aaaa-0000-7000-8000-000000000001";

fn item(payload: &Value) -> String {
    let now = jiff::Timestamp::now().to_string();
    json!({"timestamp": now, "type": "response_item", "payload": payload}).to_string() + "\n"
}

fn call(id: &str, command: &str) -> String {
    let arguments = json!({"cmd": command}).to_string();
    item(&json!({"type": "function_call", "name": "exec_command", "call_id": id, "arguments": arguments}))
}

fn poll(id: &str) -> String {
    let arguments = json!({"session_id": 7, "chars": ""}).to_string();
    item(&json!({"type": "function_call", "name": "write_stdin", "call_id": id, "arguments": arguments}))
}

fn result(id: &str, text: &str) -> String {
    item(&json!({"type": "function_call_output", "call_id": id, "output": text}))
}

fn exit(id: &str, code: i32) -> String {
    result(id, &format!("Chunk ID: x\nWall time: 1 seconds\nProcess exited with code {code}\nOutput:\nx"))
}

fn head() -> String {
    let now = jiff::Timestamp::now().to_string();
    let payload = json!({"id": SESSION, "timestamp": now, "cwd": "/w", "originator": "codex", "cli_version": "1"});
    let meta = json!({"timestamp": now, "type": "session_meta", "payload": payload}).to_string() + "\n";
    meta + &item(&json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}))
}

/// How many calls failed, according to each command.
fn counted(folder: &Folder) -> [u64; 3] {
    folder.run("index --root .").ends(0);
    let found = folder.run("find is:error --root . --json").json();
    let hits = found.iter().filter(|line| line.get("snippet").is_some()).count() as u64;
    let listed = folder.run("list --root . --json").ends(0).json()[0]["errors"].as_u64().unwrap();
    let audit = folder.run(&format!("audit {SESSION} --root . --json")).ends(0).json().remove(0);
    let tools = audit["tools"].as_array().unwrap();
    let failed = |key: &str| tools.iter().map(|tool| tool[key].as_u64().unwrap()).sum::<u64>();
    [hits, listed, failed("failed") + failed("denied")]
}

#[test]
fn failed_calls_are_the_same_for_all_also_on_growth() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(".codex/sessions/2026/01/01")).unwrap();
    let path = format!(".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{SESSION}.jsonl");
    folder.write(&path, head() + &call("call_00000001", "cargo test") + &exit("call_00000001", 101));
    assert_eq!(counted(&folder), [1, 1, 1]);
    let append = |text: String| {
        OpenOptions::new().append(true).open(folder.path(&path)).unwrap().write_all(text.as_bytes()).unwrap();
    };
    // The call is indexed before its result: its command is still known.
    append(call("call_00000002", "grep x y") + &call("call_00000003", "make"));
    assert_eq!(counted(&folder), [1, 1, 1]);
    append(exit("call_00000002", 1) + &result("call_00000003", "Process running with session ID 7\nOutput:\n"));
    assert_eq!(counted(&folder), [1, 1, 1]);
    append(poll("call_00000004"));
    assert_eq!(counted(&folder), [1, 1, 1]);
    append(exit("call_00000004", 2));
    assert_eq!(counted(&folder), [2, 2, 2]);
    append(
        call("call_00000005", "make")
            + &exit("call_00000005", 2)
            + &call("call_00000006", "make")
            + &exit("call_00000006", 2),
    );
    assert_eq!(counted(&folder), [4, 4, 4]);
    // Three steps in a row failed.
    let runs = folder.run(&format!("status {path} --json")).ends(3).json();
    assert_eq!((&runs[0]["state"], &runs[0]["why"]), (&"stuck".into(), &"failing".into()));
    // `find` also knows outcomes that no single record states.
    let hits = folder.run("find is:error --root . --json").json();
    let tools: Vec<&str> = hits.iter().filter_map(|hit| hit["tool"].as_str()).collect();
    assert_eq!(tools.len(), 4, "{hits:?}");
}

/// A folder with one Codex session that begins with the head.
fn codex(rest: &str) -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(".codex/sessions/2026/01/01")).unwrap();
    let path = format!(".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{SESSION}.jsonl");
    folder.write(&path, head() + rest);
    folder
}

fn notice(payload: &Value) -> String {
    let now = jiff::Timestamp::now().to_string();
    json!({"timestamp": now, "type": "event_msg", "payload": payload}).to_string() + "\n"
}

#[test]
fn a_failed_job_is_one_failure_however_many_records_state_its_end() {
    let end = json!({"type": "exec_command_end", "call_id": "call_00000001", "command": ["make"], "exit_code": 2,
        "stdout": "", "stderr": "", "aggregated_output": ""});
    let started = call("call_00000001", "make")
        + &result("call_00000001", "Process running with session ID 7\nOutput:\n")
        + &poll("call_00000002");
    assert_eq!(counted(&codex(&(started.clone() + &notice(&end) + &exit("call_00000002", 2)))), [1, 1, 1]);
    assert_eq!(counted(&codex(&(started + &exit("call_00000002", 2) + &notice(&end)))), [1, 1, 1]);
}

#[test]
fn a_failed_result_without_its_call_is_a_failure_for_all() {
    let folder = codex(&(exit("call_00000001", 101) + &exit("call_00000002", 0)));
    assert_eq!(counted(&folder), [1, 1, 1]);
    let audit = folder.run(&format!("audit {SESSION} --root . --json")).ends(0).json().remove(0);
    assert_eq!(audit["calls"].as_array().unwrap().len(), 1, "{audit}");
}

#[test]
fn an_interruption_is_not_a_failure_in_any_format() {
    let folder = codex(&notice(&json!({"type": "turn_aborted", "turn_id": "t", "reason": "interrupted"})));
    assert_eq!(counted(&folder), [0, 0, 0]);
    let audit = folder.run(&format!("audit {SESSION} --root . --json")).ends(0).json().remove(0);
    assert_eq!(audit["errors"][0]["kind"], "interrupted", "{audit}");
}

#[test]
fn several_files_of_one_session_are_all_audited() {
    let folder = codex(&(call("call_00000001", "make") + &exit("call_00000001", 2)));
    let other = head().replace("Go.", "Go on.") + &call("call_00000002", "make") + &exit("call_00000002", 2);
    folder.write(&format!(".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-01-{SESSION}.jsonl"), other);
    assert_eq!(counted(&folder), [2, 2, 2]);
    folder.run(&format!("export {SESSION} --root . --to markdown")).ends(0).talks("another file");
}

#[test]
fn a_file_has_the_same_format_for_usage_and_for_the_index() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("home/app/.goodvibes/transcripts/s1")).unwrap();
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let answer = json!({"role": "assistant", "content": "hello", "model": "gpt-5", "usage": usage});
    // Elsewhere this would be a chat with counted tokens.
    folder.write("home/app/.goodvibes/transcripts/s1/a1.jsonl", format!("{answer}\n"));
    folder.write("chat.jsonl", format!("{answer}\n"));
    folder.run("usage chat.jsonl").ends(0).says("gpt-5");
    folder.run("index --root home").ends(0);
    let sessions = folder.run("list --root home --json").ends(0).json();
    assert_eq!(sessions[0]["agent"], "claude-code", "{sessions:?}");
    folder.run("usage --root home").ends(1);
    std::fs::remove_dir_all(folder.path("store")).unwrap();
    folder.run("usage --root home").ends(1);
}

#[test]
fn an_error_is_recovered_for_status_and_audit_alike() {
    const ERROR: &str = r#"{"role":"user","content":"q"}
{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}
"#;
    let after = [
        ("", 0),
        (r#"{"type":"result","result":"Task completed successfully","success":true}"#, 1),
        (r#"{"type":"result","result":"Gave up","success":false}"#, 0),
        (r#"{"type":"text","text":"Here."}"#, 1),
        (r#"{"type":"thinking","thinking":"Hm."}"#, 0),
    ];
    for (line, recovered) in after {
        let folder = Folder::with("er.jsonl", format!("{ERROR}{line}\n"));
        let status = folder.run("status er.jsonl --json --from claude-events").json().remove(0);
        let audit = folder.run("audit er.jsonl --json --from claude-events").ends(0).json().remove(0);
        let errors = audit["errors"].as_array().unwrap();
        let counted = errors.iter().filter(|error| error["recovered"] == true).count();
        assert_eq!((&status["recovered"], counted), (&json!(recovered == 1), recovered), "{line}: {audit}");
    }
}

/// The events of one recording, with unique words.
fn recorded(minute: u32) -> String {
    let line = |second: u32, rest: &Value| {
        let mut line =
            json!({"v": 1, "time": format!("2026-03-02T09:{minute}:{second:02}Z"), "id": format!("{minute}-{second}")});
        line.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        line.to_string() + "\n"
    };
    let input =
        json!({"file_path": format!("/w/main{minute}.rs"), "old_string": format!("lynx{minute}"), "new_string": "b"});
    [
        json!({"kind": "message", "role": "user", "content": format!("Fix the walrus{minute}.")}),
        json!({"kind": "thinking", "content": format!("The otter{minute} first.")}),
        json!({"kind": "tool_call", "name": "Edit", "call": format!("c{minute}"), "input": input}),
        json!({"kind": "tool_result", "name": "Edit", "call": format!("c{minute}"), "content": format!("heron{minute}")}),
        json!({"kind": "message", "role": "assistant", "content": format!("The pelican{minute} is done.")}),
    ]
    .iter()
    .zip(5..)
    .map(|(rest, second)| line(second, rest))
    .collect()
}

/// Runs the binary with its own home folder.
fn at_home(folder: &Folder, line: &str, input: &str) {
    let mut command = folder.command(line);
    command.env("HOME", folder.path("home")).env("USERPROFILE", folder.path("home"));
    command.env("XDG_CONFIG_HOME", folder.path("home/.config")).stdin(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The one event that a command with `--event` shows.
fn shown(folder: &Folder, line: &str) -> Value {
    let mut events = folder.run(&format!("{line} --json")).ends(0).json();
    assert_eq!(events.len(), 1, "{line}");
    events.remove(0)
}

#[test]
fn an_event_has_one_number_wherever_a_journal_is_kept() {
    let layouts: [&[&str]; 5] = [
        &["record --to devflow:work/.devflow --set run=r"],
        &["record --to chibi:work/ctx", "record --to chibi:work/ctx"],
        &["record --to leslie:work --set thread=t1", "record --to leslie:work --set thread=t1"],
        &[
            "record --to claude-events:work --set session=s1 --set agent=a1",
            "record --to claude-events:work --set session=s1 --set agent=a2",
        ],
        &["record --to cycod:work/talk.jsonl", "record --load work/talk.jsonl --to cycod:work/talk.jsonl"],
    ];
    for lines in layouts {
        let folder = Folder::new();
        std::fs::create_dir_all(folder.path("work/ctx")).unwrap();
        std::fs::create_dir_all(folder.path("home")).unwrap();
        // The document begins with something that only it has.
        folder.write("work/ctx/context.jsonl", if lines[0].contains("chibi") { CHIBI } else { "" });
        for (line, minute) in lines.iter().zip(14..) {
            at_home(&folder, line, &recorded(minute));
        }
        folder.run("index --root work").ends(0);
        let (mut calls, mut session) = (0, String::new());
        for minute in (14..).take(lines.len()) {
            for word in ["walrus", "otter", "lynx", "heron", "pelican"] {
                let word = format!("{word}{minute}");
                let hits = folder.run(&format!("find {word} --json")).ends(0).json();
                for hit in hits.iter().filter(|hit| hit.get("snippet").is_some()) {
                    let show = hit["show"].as_str().unwrap();
                    assert!(show.ends_with(&format!(" --event {}", hit["event"])), "{show}");
                    let event = shown(&folder, show.strip_prefix("steno ").unwrap());
                    assert!(event.to_string().contains(&word), "{show}: {event}");
                    // The same number in everything shown under that name.
                    let (whole, number) = show.split_once(" --event ").unwrap();
                    let all = folder.run(&format!("{} --json", whole.strip_prefix("steno ").unwrap())).ends(0).json();
                    assert_eq!(all[number.parse::<usize>().unwrap() - 1], event, "{show}");
                    session = hit["session"].as_str().unwrap().to_owned();
                }
            }
            let file = format!("/w/main{minute}.rs");
            let touched = folder.run(&format!("find --file {file} --json")).ends(0).json();
            let show = touched[0]["show"].as_str().unwrap();
            assert!(shown(&folder, show.strip_prefix("steno ").unwrap()).to_string().contains(&file), "{show}");
        }
        let audit = folder.run(&format!("audit {session} --json")).ends(0).json().remove(0);
        for call in audit["calls"].as_array().unwrap() {
            let source = call["source"].as_u64().unwrap_or(0) as usize;
            let name = if source == 0 { session.as_str() } else { audit["paths"][source].as_str().unwrap() };
            let event = shown(&folder, &format!("show {name} --event {}", call["event"]));
            assert!(event["kind"] == "tool_call" && event["name"] == call["tool"], "{call}: {event}");
            calls += 1;
        }
        assert!(calls >= lines.len(), "{audit}");
    }
}

#[test]
fn a_file_with_a_journal_beside_it_is_searched_and_shown_by_the_same_numbers() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("home")).unwrap();
    at_home(&folder, "record --to cycod:talk.jsonl", &recorded(14));
    for file in ["talk.jsonl", "talk.jsonl.steno"] {
        let hits = folder.run(&format!("find pelican14 --in {file} --json")).ends(0).json();
        assert_eq!(hits[0]["show"], "steno show talk.jsonl --event 5");
    }
    assert!(shown(&folder, "show talk.jsonl --event 5").to_string().contains("pelican14"));
    // With `--from`, a path means that file alone.
    let alone = folder.run("show talk.jsonl.steno --from steno --event 6 --json").ends(0).json();
    assert!(alone[0].to_string().contains("pelican14"));
}

/// A manual change in a document is shown, even if the journal beside it has the recorded version.
#[test]
fn a_message_that_was_changed_beside_its_journal_is_shown_and_found() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("home")).unwrap();
    let line = |role: &str, content: &str| {
        json!({"v": 1, "kind": "message", "time": "2026-03-01T10:00:00Z", "role": role, "content": content}).to_string()
            + "\n"
    };
    let lines = [line("user", "ask"), line("assistant", "yes"), line("user", "thanks")].concat();
    at_home(&folder, "record --to cycod:talk.jsonl", &lines);
    let text = String::from_utf8(folder.read("talk.jsonl")).unwrap();
    assert!(text.contains("\"yes\""), "{text}");
    folder.write("talk.jsonl", text.replace("\"yes\"", "\"a walrus is no pelican\""));
    let shown = folder.run("show talk.jsonl --text").ends(0).text().to_owned();
    assert!(shown.contains("walrus") && shown.contains("yes"), "{shown}");
    let found = folder.run("find walrus --in talk.jsonl --json").ends(0).json().remove(0);
    let number = found["event"].as_u64().unwrap();
    folder.run(&format!("show talk.jsonl --event {number} --text")).ends(0).says("walrus");
}

/// A month's telemetry is a log, not a session: its name may begin like that of a run.
#[test]
fn a_hit_in_a_log_is_opened_by_its_path() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("home")).unwrap();
    let turn = |question: &str, answer: &str| {
        let line = |role: &str, content: &str| {
            json!({"v": 1, "kind": "message", "role": role, "content": content}).to_string()
        };
        format!("{}\n{}\n", line("user", question), line("assistant", answer))
    };
    at_home(&folder, "record --to devflow:work/.devflow", &turn("alpha", "a"));
    at_home(&folder, "record --to claude-events:work", &turn("beta", "b"));
    at_home(&folder, "record --to claude-events:work", &turn("gamma", "heron answer"));
    folder.run("index --root .").ends(0);
    let hits = folder.run("find heron --root . --json").ends(0).json();
    assert!(hits.iter().any(|hit| hit["path"].as_str().is_some_and(|path| path.contains("telemetry"))), "{hits:?}");
    for hit in hits.iter().filter(|hit| hit["show"].is_string()) {
        let show = hit["show"].as_str().unwrap().strip_prefix("steno ").unwrap().to_owned();
        let shown = folder.run(&format!("{show} --root . --json")).ends(0).json();
        assert!(shown[0].to_string().contains("heron"), "{show}: {shown:?}");
    }
}

#[test]
fn errors_in_a_text_for_people_are_listed_and_found() {
    const TEXT: &str = include_str!("../../../stenograph/src/formats/leslie/fixtures/demo.txt");
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(".leslie/threads/t1/.meta/transcripts")).unwrap();
    folder.write(".leslie/threads/t1/.meta/transcripts/20260208-1430-Fix.txt", TEXT);
    folder.run("index --root .").ends(0);
    let found = folder.run("find is:error --root . --json").json();
    let hits = found.iter().filter(|line| line.get("snippet").is_some()).count() as u64;
    let listed = folder.run("list --root . --json").ends(0).json()[0]["errors"].as_u64();
    assert_eq!((hits, listed), (1, Some(1)));
}

#[test]
fn records_of_one_unknown_type_are_counted_together_however_it_is_spaced() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(".codex/sessions/2026/01/01")).unwrap();
    let odd = json!({"timestamp": "2026-01-01T00:00:00Z", "type": "odd  type", "payload": {}}).to_string() + "\n";
    let path = format!(".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{SESSION}.jsonl");
    folder.write(&path, head() + &odd.repeat(3));
    folder.run("index --root .").ends(0);
    let unknown = folder.run("index --unknown --root . --json").ends(1).json().remove(0);
    folder.run("index --unknown --root .").ends(1).says("codex: 3 records of type \"odd type\" in 1 file, first at ");
    assert_eq!((&unknown["unknown"][0]["type"], &unknown["unknown"][0]["count"]), (&"odd type".into(), &3.into()));
}

/// A session that changes its model and its branch, whose first record is not the earliest, with a summary after its title.
fn renamed_session() -> String {
    let told = |id: &str, minute: u32, branch: &str, message: &Value| {
        let role = message["role"].as_str().unwrap();
        let time = format!("2026-03-02T09:{minute:02}:00.000Z");
        json!({"type": role, "uuid": id, "sessionId": SESSION, "timestamp": time, "cwd": "/gone/work/otter",
            "version": "2.0.1", "gitBranch": branch, "message": message})
    };
    let asked = |id: &str, minute: u32, branch: &str, text: &str| {
        told(id, minute, branch, &json!({"role": "user", "content": text}))
    };
    let answered = |id: &str, minute: u32, branch: &str, model: &str| {
        let usage = json!({"input_tokens": 10, "output_tokens": 5});
        let text = json!([{"type": "text", "text": "Done."}]);
        told(
            id,
            minute,
            branch,
            &json!({"id": id, "role": "assistant", "model": model, "content": text, "usage": usage}),
        )
    };
    let records = [
        asked("u1", 20, "main", "Why is\nthe otter wet?"),
        answered("u2", 10, "main", "claude-opus-4-1-20250805"),
        json!({"type": "custom-title", "customTitle": "Wet otters", "sessionId": SESSION}),
        asked("u3", 40, "dry", "Dry it."),
        answered("u4", 30, "dry", "claude-sonnet-4-5-20250929"),
        json!({"type": "summary", "summary": "Otters\nare dry now", "leafUuid": "u4"}),
    ];
    records.iter().map(|record| record.to_string() + "\n").collect()
}

#[test]
fn a_session_has_one_header_with_and_without_an_index() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(".claude/projects/-gone-work-otter")).unwrap();
    let path = format!(".claude/projects/-gone-work-otter/{SESSION}.jsonl");
    folder.write(&path, renamed_session());
    let header = |folder: &Folder| {
        let shown = folder.run(&format!("show {path} --root .")).ends(0).text().to_owned();
        shown.split("\n\n").next().unwrap().to_owned()
    };
    let without_index = header(&folder);
    let lines: Vec<&str> = without_index.lines().collect();
    assert_eq!(lines[0], "Otters are dry now");
    assert_eq!(lines[1], "claude-code · otter · dry · claude-sonnet-4-5-20250929");
    assert!(lines[2].starts_with("2026-03-02 09:10 to 09:40 UTC"), "{without_index}");
    folder.run("index --root .").ends(0);
    assert_eq!(header(&folder), without_index);
    let listed = folder.run("list --root . --json").ends(0).json().remove(0);
    let audit = folder.run(&format!("audit {path} --json")).ends(0).json().remove(0);
    for field in ["title", "branch"] {
        assert_eq!(listed[field], audit[field], "{field}");
    }
    assert_eq!((&listed["model"], &listed["title"]), (&"claude-sonnet-4-5-20250929".into(), &lines[0].into()));
}

#[test]
fn each_file_of_a_session_has_one_header_with_and_without_an_index() {
    let folder = Folder::new();
    let home = ".claude/projects/-gone-work-otter";
    std::fs::create_dir_all(folder.path(&format!("{home}/{SESSION}/subagents"))).unwrap();
    let main = format!("{home}/{SESSION}.jsonl");
    folder.write(&main, renamed_session());
    let line = |id: &str, minute: u32, model: Option<&str>, thread: Option<&str>| {
        let mut message = json!({"role": "user", "content": format!("Count the fish {id}")});
        if let Some(model) = model {
            let usage = json!({"input_tokens": 700, "output_tokens": 7});
            message = json!({"id": id, "role": "assistant", "model": model, "content": "Seven.", "usage": usage});
        }
        let mut record = json!({"type": message["role"], "uuid": id, "sessionId": SESSION, "cwd": "/gone/work/otter",
            "timestamp": format!("2026-03-02T11:{minute:02}:00.000Z"), "gitBranch": "side", "message": message});
        if let Some(thread) = thread {
            record["isSidechain"] = true.into();
            record["agentId"] = thread.into();
        }
        record.to_string() + "\n"
    };
    let agent = format!("{home}/{SESSION}/subagents/agent-a1b2.jsonl");
    let model = Some("claude-haiku-4-5");
    folder.write(&agent, line("s1", 1, None, Some("a1b2")) + &line("s2", 2, model, Some("a1b2")));
    // A second file of the same conversation.
    let more = format!("{home}/more.jsonl");
    folder.write(&more, line("m1", 30, None, None) + &line("m2", 31, model, None));
    let header = |path: &str| {
        let shown = folder.run(&format!("show {path} --root .")).ends(0).text().to_owned();
        shown.split("\n\n").next().unwrap().to_owned()
    };
    let paths = [main.as_str(), &agent, &more];
    let without_index = paths.map(header);
    assert!(
        without_index[1].starts_with("Count the fish s1\nclaude-code · otter · side · claude-haiku-4-5\n"),
        "{without_index:?}"
    );
    assert!(without_index[1].contains("2026-03-02 11:01 to 11:02 UTC · 707 tokens"), "{without_index:?}");
    assert!(without_index[2].starts_with("Count the fish m1\n"), "{without_index:?}");
    folder.run("index --root .").ends(0);
    assert_eq!(folder.run("list --root . --json").ends(0).json()[0]["sources"], 3);
    assert_eq!(paths.map(header), without_index);
    assert_eq!(header("a1b2"), without_index[1]);
}
