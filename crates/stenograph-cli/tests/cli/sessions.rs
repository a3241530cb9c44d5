//! Which files form one session: recordings in every layout, conversions, agents by id. Each is listed once and opened by its
//! id.

use std::io::Write;
use std::process::Stdio;

use crate::runner::{Done, Folder, NATIVE};

const SESSION: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

/// Runs in a folder that is also the home folder.
fn run(folder: &Folder, line: &str, input: &[u8]) -> Done {
    let mut command = folder.command(line);
    command.env("HOME", folder.path("")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    Done { code: output.status.code().unwrap(), out: output.stdout, talk }
}

fn listed(folder: &Folder) -> Vec<serde_json::Value> {
    run(folder, "index --root .", b"").ends(0);
    run(folder, "list --root . --json", b"").ends(0).json()
}

/// Records the same four events; returns the folder.
fn recorded(to: &str) -> Folder {
    let folder = Folder::new();
    run(&folder, &format!("record --from steno {to}"), NATIVE.as_bytes()).ends(0);
    folder
}

#[test]
fn a_recording_is_one_session_in_every_layout_and_opens_by_its_id_with_everything() {
    for to in [
        "--to steno:out.steno.jsonl",
        "--to chibi:.chibi/contexts/walrus",
        "--to cycod:talk.jsonl",
        "--to cycod",
        "--to devflow",
        "--to devflow --set run=r-1",
        "--to leslie --set thread=t1",
        "--to claude-events --set session=s1 --set agent=a1",
    ] {
        let folder = recorded(to);
        for round in 0..2 {
            let sessions = listed(&folder);
            assert_eq!(sessions.len(), 1, "{to}: {sessions:#?} {:?}", folder.names());
            let id = sessions[0]["session"].as_str().unwrap_or_default().to_owned();
            assert_eq!(sessions[0]["calls"], 1, "{to} {round}: {sessions:#?}");
            let shown = run(&folder, &format!("show --root . {id} --json"), b"").ends(0).json();
            let kinds: Vec<&str> = shown.iter().filter_map(|event| event["kind"].as_str()).collect();
            for kind in ["message", "tool_call", "tool_result"] {
                assert_eq!(kinds.iter().filter(|other| **other == kind).count(), 1, "{to} {id}: {kinds:?}");
            }
            folder.run(&format!("audit --root . {id}")).ends(0).says("Bash");
            assert_eq!(folder.run("find --root . cargo --json").ends(0).json().len(), 2, "{to}: one hit and the sum");
        }
    }
}

/// A question, a thought that most documents have no place for, and an answer.
fn asked(question: &str) -> String {
    [
        format!(r#"{{"v":1,"kind":"message","role":"user","content":"{question}"}}"#),
        r#"{"v":1,"kind":"thinking","content":"Look for it on the ice."}"#.to_owned(),
        r#"{"v":1,"kind":"message","role":"assistant","content":"Here it is."}"#.to_owned(),
    ]
    .join("\n")
        + "\n"
}

#[test]
fn a_thread_of_texts_and_journals_is_read_whole_by_its_id() {
    let folder = Folder::new();
    let plain = r#"{"v":1,"kind":"message","role":"user","content":"Where is the seal?"}"#;
    run(&folder, "record --to leslie --set thread=t1", plain.as_bytes()).ends(0);
    run(&folder, "record --to leslie --set thread=t1", asked("Where is the walrus?").as_bytes()).ends(0);
    let sessions = listed(&folder);
    assert_eq!((sessions.len(), &sessions[0]["messages"]), (1, &serde_json::json!(3)), "{sessions:#?}");
    let shown = run(&folder, "show --root . t1", b"");
    shown.ends(0).says("the seal").says("the walrus").says("on the ice");
    assert_eq!(shown.talk, "");
    folder.run("audit --root . t1").ends(0).says("2 questions");
}

#[test]
fn a_recording_has_by_its_id_what_only_its_journal_has_in_every_layout() {
    let lines = [
        r#"{"v":1,"kind":"message","role":"user","content":"Where is the seal?"}"#,
        r#"{"v":1,"kind":"thinking","content":"Look for it on the ice."}"#,
        r#"{"v":1,"kind":"compaction","content":"They looked for a seal."}"#,
        r#"{"v":1,"kind":"message","role":"assistant","content":"Here it is."}"#,
        r#"{"v":1,"kind":"failure","name":"overloaded_error","content":"Overloaded"}"#,
    ];
    for to in [
        "--to chibi:.chibi/contexts/walrus",
        "--to cycod",
        "--to devflow --set run=r-1",
        "--to leslie --set thread=t1",
        "--to claude-events --set session=s1 --set agent=a1",
    ] {
        let folder = Folder::new();
        run(&folder, &format!("record --from steno {to}"), lines.join("\n").as_bytes()).ends(0);
        let sessions = listed(&folder);
        assert_eq!((sessions.len(), &sessions[0]["errors"]), (1, &serde_json::json!(1)), "{to}: {sessions:#?}");
        let id = sessions[0]["session"].as_str().unwrap_or_default();
        let shown = run(&folder, &format!("show --root . {id} --json"), b"").ends(0).json();
        for kind in ["thinking", "compaction", "failure"] {
            let count = shown.iter().filter(|event| event["kind"] == kind).count();
            assert_eq!(count, 1, "{to}: {kind} in {shown:#?}");
        }
        run(&folder, &format!("replay --root . {id}"), b"").says("Overloaded");
        assert_eq!(
            run(&folder, "find --root . Overloaded --json", b"").ends(0).json().len(),
            2,
            "{to}: a hit and the sum"
        );
    }
}

/// An answer with a count of tokens, in a session that has another id than the recording.
const COUNTED: &str = r#"{"v":1,"kind":"message","session":"another","role":"user","content":"Where is the seal?"}
{"v":1,"kind":"thinking","session":"another","content":"On the ice?"}
{"v":1,"kind":"message","session":"another","role":"assistant","model":"gpt-4o","content":"Here.","usage":{"input":100,"output":20}}
"#;

/// The same answer as lines that another agent writes.
const COUNTED_CHAT: &str = r#"{"role":"user","content":"Where is the seal?"}
{"role":"assistant","content":"Here.","model":"gpt-4o","usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}
"#;

#[test]
fn the_calls_of_a_recording_count_for_the_session_and_the_agent_that_list_shows() {
    for (from, input) in [("steno", COUNTED), ("openai-chat", COUNTED_CHAT)] {
        for to in [
            "chibi:.chibi/contexts/walrus",
            "devflow --set run=r-1",
            "leslie --set thread=t1",
            "claude-events --set session=s1 --set agent=a1",
        ] {
            let folder = Folder::new();
            run(&folder, &format!("record --from {from} --to {to}"), input.as_bytes()).ends(0);
            let sessions = listed(&folder);
            assert_eq!(sessions.len(), 1, "{to}: {sessions:#?}");
            let (id, agent) = (sessions[0]["session"].as_str().unwrap(), sessions[0]["agent"].as_str().unwrap());
            for index in ["", "--no-index"] {
                let line = format!("usage --root . {index} --by agent --session {id} --json");
                let usage = &run(&folder, &line, b"").ends(0).json()[0];
                assert_eq!(
                    (&usage["total"]["calls"], &usage["rows"][0]["agent"]),
                    (&1.into(), &agent.into()),
                    "{to}: {usage:#}"
                );
                let line = format!("usage --root . {index} --by session --json");
                let usage = &run(&folder, &line, b"").ends(0).json()[0];
                assert_eq!(usage["rows"][0]["session"], id, "{to}: {usage:#}");
            }
        }
    }
}

#[test]
fn a_session_without_times_has_the_time_of_its_file() {
    let folder = Folder::new();
    run(&folder, "record --from openai-chat --to cycod", COUNTED_CHAT.as_bytes()).ends(0);
    std::fs::create_dir_all(folder.path(".claude/projects/-work-app")).unwrap();
    folder.write(&format!(".claude/projects/-work-app/{SESSION}.jsonl"), claude(1, "user", "\"find the walrus\""));
    let sessions = listed(&folder);
    let agents: Vec<&str> = sessions.iter().filter_map(|session| session["agent"].as_str()).collect();
    assert_eq!(agents, ["cycod", "claude-code"], "the newest comes first: {sessions:#?}");
    assert_eq!((&sessions[0]["times_from"], &sessions[1]["times_from"]), (&"file".into(), &serde_json::Value::Null));
    assert!(sessions[0]["ended"].is_string() && sessions[0]["started"] == sessions[0]["ended"], "{sessions:#?}");
    run(&folder, "show --root . latest", b"").ends(0).says("the seal");
    run(&folder, "find --root . seal since:1d", b"").ends(0).says("«seal»");
    run(&folder, "find --root . /se.l/ since:1d", b"").ends(0).says("«seal»");
    run(&folder, "find --root . seal until:1d", b"").ends(1);
    run(&folder, "find --root . walrus since:1d", b"").ends(1);
    // No event gets a time from it.
    let shown = run(&folder, "show --root . latest --json", b"").ends(0).json();
    assert!(shown.iter().all(|event| event["time"].is_null()), "{shown:#?}");
}

#[test]
fn an_audit_reads_every_recorded_agent_of_a_session() {
    let folder = Folder::new();
    for agent in ["a1", "a2"] {
        let line = format!("record --to claude-events --set session=s1 --set agent={agent}");
        run(&folder, &line, asked(agent).as_bytes()).ends(0);
    }
    listed(&folder);
    folder.run("audit --root . s1").ends(0).says("2 questions");
    let tree = folder.run("list --root . --tree --json").ends(0).json();
    let mut agents: Vec<&str> = tree.iter().filter_map(|row| row["thread"].as_str()).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["a1", "a2"]);
}

fn claude(number: u32, role: &str, content: &str) -> String {
    let parent = if number == 1 { "null".to_owned() } else { format!("\"u{:07}\"", number - 1) };
    format!(
        r#"{{"type":"{role}","uuid":"u{number:07}","parentUuid":{parent},"sessionId":"{SESSION}","timestamp":"2026-01-02T03:0{number}:00.000Z","cwd":"/work/app","version":"2.0.0","message":{{"role":"{role}","content":{content}}}}}"#
    ) + "\n"
}

fn claude_session() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(&format!(".claude/projects/-work-app/{SESSION}/subagents"))).unwrap();
    let talk = claude(1, "user", "\"find the walrus\"")
        + &claude(2, "assistant", r#"[{"type":"text","text":"On the ice."}]"#)
        + &claude(3, "user", "\"thank you\"");
    folder.write(&format!(".claude/projects/-work-app/{SESSION}.jsonl"), talk);
    let side = claude(4, "user", "\"look around\"")
        .replace("\"type\"", "\"isSidechain\":true,\"agentId\":\"a77bc2\",\"type\"");
    folder.write(&format!(".claude/projects/-work-app/{SESSION}/subagents/agent-a77bc2.jsonl"), side);
    // Files written in the same tick of the clock have the same time.
    let path = folder.path(&format!(".claude/projects/-work-app/{SESSION}.jsonl"));
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(1);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(earlier).unwrap();
    folder
}

#[test]
fn a_conversion_is_known_as_a_copy_and_the_id_means_the_original() {
    let folder = claude_session();
    let source = format!(".claude/projects/-work-app/{SESSION}.jsonl");
    std::fs::create_dir_all(folder.path(".codex/sessions")).unwrap();
    for to in ["", "--carry"] {
        let target = format!(".codex/sessions/rollout-2026-01-02T03-01-00-{SESSION}.jsonl");
        let _ = std::fs::remove_file(folder.path(&target));
        folder.run(&format!("convert {source} --to codex {to} -o {target}"));
        let sessions = listed(&folder);
        assert_eq!(sessions.len(), 1, "{sessions:#?}");
        assert_eq!(sessions[0]["agent"], "claude-code");
        assert_eq!(sessions[0]["messages"], 4);
        folder.run(&format!("show --root . {SESSION}")).ends(0).says("On the ice");
        folder.run(&format!("show --root . {target}")).ends(0).says("On the ice");
    }
}

#[test]
fn an_agent_is_opened_by_its_id_alone_and_with_its_session() {
    let folder = claude_session();
    folder.run("index --root .").ends(0);
    let short = &SESSION[..8];
    for name in ["a77bc2".to_owned(), format!("{SESSION}/a77bc2"), format!("{short}/a77")] {
        let shown = folder.run(&format!("show --root . {name}"));
        shown.ends(0);
        assert!(
            shown.text().contains("look around") && !shown.text().contains("On the ice"),
            "{name}: {}",
            shown.text()
        );
        assert!(folder.run(&format!("tail --root . {name}")).ends(0).text().contains("look around"));
    }
    folder.run(&format!("show --root . {short}/nobody")).ends(2);
}

#[test]
fn hits_of_a_session_and_of_its_sub_agents_are_one_group() {
    let folder = claude_session();
    folder.run("index --root .").ends(0);
    let (found, short) = (folder.run("find --root . walrus OR around"), &SESSION[..8]);
    found.ends(0).says("user (sub-agent a77bc2)").talks("2 hits in 1 session");
    assert!(!found.text().trim_end().contains("\n\n"), "{}", found.text());
    found.says(&format!("steno show {short} --event 1\n"));
    found.says(&format!("steno show {short}/a77bc2 --event 1\n"));
    folder.run(&format!("show --root . {short}/a77bc2 --event 1")).ends(0).says("look around");
}

#[test]
fn an_empty_file_of_a_layout_is_not_an_unknown_format() {
    let folder = recorded("--to claude-events --set session=s1 --set agent=a1");
    assert_eq!(folder.read(".goodvibes/state/agent-tracking.json"), b"{}");
    let done = folder.run("index --root .");
    done.ends(0);
    assert!(!done.talk.contains("agent-tracking") && !done.text().contains("agent-tracking"), "{done:?}");
}

fn native(number: usize, content: &str) -> String {
    let minute = number / 60 % 60;
    let (second, hour) = (number % 60, number / 3600);
    format!(
        "{{\"v\":1,\"kind\":\"message\",\"time\":\"2026-03-02T{hour:02}:{minute:02}:{second:02}Z\",\"session\":\"{SESSION}\",\"id\":\"event-{number:08}\",\"role\":\"user\",\"content\":\"{content}\"}}\n"
    )
}

#[test]
fn the_last_events_of_a_huge_file_are_read_from_its_end() {
    let folder = Folder::with("a.steno.jsonl", native(1, "first"));
    let mut file = std::fs::File::options().write(true).open(folder.path("a.steno.jsonl")).unwrap();
    // A sparse file takes no space on the disk, but reading it would take minutes.
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(100 << 30)).unwrap();
    write!(file, "\n{}{}{}", native(2, "two"), native(3, "three"), native(4, "four")).unwrap();
    let shown = folder.run("show a.steno.jsonl --last 2 --text");
    assert_eq!(shown.ends(0).text(), "three\n\nfour\n");
}

#[test]
fn an_event_of_an_indexed_session_is_read_from_its_position() {
    let folder = Folder::new();
    let name = format!("{SESSION}.steno.jsonl");
    let text: Vec<String> =
        (1..=3000).map(|number| native(number, &format!("walrus {number} {}", "x".repeat(200)))).collect();
    folder.write(&name, text.concat());
    folder.run("index --root .").ends(0);
    // One record in the middle becomes two, which shifts the numbers after it.
    let modified = folder.path(&name).metadata().unwrap().modified().unwrap();
    let short = native(1000, "short");
    let rest = text[999].len() - short.len();
    let other = native(1000, &"y".repeat(rest - native(1000, "").len()));
    let mut changed = text.clone();
    changed[999] = short + &other;
    assert_eq!(changed[999].len(), text[999].len());
    folder.write(&name, changed.concat());
    std::fs::File::options().write(true).open(folder.path(&name)).unwrap().set_modified(modified).unwrap();
    for named in [SESSION, &name] {
        let shown = folder.run(&format!("show --root . {named} --event 2500 --text"));
        assert!(shown.ends(0).text().starts_with("walrus 2500 "), "{named}: {}", shown.text());
    }
}

#[test]
fn a_text_for_people_has_the_title_and_the_time_of_its_header() {
    let folder = Folder::new();
    let demo = include_str!("../../../stenograph/src/formats/leslie/fixtures/demo.txt");
    std::fs::create_dir_all(folder.path(".leslie/threads/t1/.meta/transcripts")).unwrap();
    folder.write(".leslie/threads/t1/.meta/transcripts/one.txt", demo);
    let sessions = listed(&folder);
    assert_eq!(sessions.len(), 1);
    assert!(sessions[0]["asked"].as_str().is_some_and(|asked| asked.contains("leap_days")), "{sessions:#?}");
    assert_eq!(sessions[0]["started"], "2026-03-02T09:14:05.061Z");
    folder.run("find --root . leap_days since:2026-03-01 until:2026-03-03").ends(0);
    assert_eq!(folder.run("find --root . leap_days since:2026-03-04").code, 1);
}

/// Converts the session for Codex; returns the path.
fn convert_to_codex(folder: &Folder) -> String {
    let codex = format!(".codex/sessions/2026/01/02/rollout-2026-01-02T03-01-00-{SESSION}.jsonl");
    std::fs::create_dir_all(folder.path(&codex).parent().unwrap()).unwrap();
    let line = format!("convert .claude/projects/-work-app/{SESSION}.jsonl --to codex -o {codex}");
    assert!(run(folder, &line, b"").code < 2);
    codex
}

/// Continues it there.
fn go_on(folder: &Folder, codex: &str, text: &str) {
    let content = serde_json::json!([{"type": "input_text", "text": text}]);
    let payload = serde_json::json!({"type": "message", "role": "user", "content": content});
    let line =
        serde_json::json!({"timestamp": "2026-11-16T08:00:00.000Z", "type": "response_item", "payload": payload});
    let mut bytes = folder.read(codex);
    bytes.extend(format!("{line}\n").into_bytes());
    folder.write(codex, bytes);
}

#[test]
fn a_session_continued_in_another_agent_is_two_sessions_whenever_the_index_ran() {
    let folder = claude_session();
    let codex = convert_to_codex(&folder);
    let sessions = listed(&folder);
    assert_eq!((sessions.len(), &sessions[0]["agent"]), (1, &serde_json::json!("claude-code")));
    go_on(&folder, &codex, "now the seal");
    let rows = |sessions: &[serde_json::Value]| {
        let row = |session: &serde_json::Value| format!("{} {}", session["agent"], session["messages"]);
        let mut rows: Vec<String> = sessions.iter().map(row).collect();
        rows.sort();
        rows
    };
    let grown = rows(&listed(&folder));
    std::fs::remove_dir_all(folder.path("store/index")).unwrap();
    let rebuilt = rows(&listed(&folder));
    assert_eq!((grown.len(), &grown), (2, &rebuilt));
    folder.run("find --root . seal agent:codex --json").ends(0).says("now the seal");
    // The id means the continuation, and the command of a hit names the right file.
    folder.run(&format!("show --root . {SESSION} --last 1")).ends(0).says("now the seal");
    folder.run(&format!("resume --root . {SESSION}")).says("codex resume");
    let hit = folder.run("find --root . seal").ends(0).out.clone();
    let hit = String::from_utf8(hit).unwrap();
    let way = hit.lines().find_map(|line| line.trim().strip_prefix("steno show ")).unwrap();
    let words: Vec<&str> = way.split("   ").next().unwrap().split(' ').collect();
    assert!(words[0].ends_with(&codex), "{hit}");
    folder.run(&format!("show {} --root .", words.join(" "))).ends(0).says("now the seal");
}

#[test]
fn a_session_that_went_on_in_another_agent_outlives_the_pruned_original() {
    let folder = claude_session();
    let codex = format!(".codex/sessions/2026/01/02/rollout-2026-01-02T03-01-00-{SESSION}.jsonl");
    std::fs::create_dir_all(folder.path(&codex).parent().unwrap()).unwrap();
    run(&folder, &format!("convert .claude/projects/-work-app/{SESSION}.jsonl --to codex -o {codex}"), b"");
    let more = |text: &str| {
        let content = serde_json::json!([{"type": "input_text", "text": text}]);
        let payload = serde_json::json!({"type": "message", "role": "user", "content": content});
        let line =
            serde_json::json!({"timestamp": "2026-11-16T08:00:00.000Z", "type": "response_item", "payload": payload});
        let mut bytes = folder.read(&codex);
        bytes.extend(format!("{line}\n").into_bytes());
        folder.write(&codex, bytes);
    };
    more("now the seal");
    listed(&folder);
    run(&folder, "archive prune agent:claude-code", b"").ends(0);
    std::fs::remove_dir_all(folder.path("store/index")).unwrap();
    let sessions = listed(&folder);
    assert_eq!((sessions.len(), &sessions[0]["agent"]), (1, &serde_json::json!("codex")), "{sessions:#?}");
    go_on(&folder, &codex, "and the penguin");
    listed(&folder);
    std::fs::remove_file(folder.path(&codex)).unwrap();
    run(&folder, "archive restore --root . latest", b"").ends(0);
    assert!(String::from_utf8(folder.read(&codex)).unwrap().contains("and the penguin"));
}
