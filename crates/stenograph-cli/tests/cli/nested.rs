//! Events of sub-agents nested in records of the main conversation: found, shown and counted once.

use std::fs;

use crate::list::{index, message_line, path};
use crate::runner::Folder;

const SESSION: &str = "0198aaaa-1111-4222-8333-444455556666";

/// The nested record: a call of the sub-agent, with its own id and time.
const INNER: &str = r#""message":{"role":"assistant","id":"m1","content":[{"type":"text","text":"Count the porpoises"},{"type":"tool_use","id":"t1","name":"Edit","input":{"file_path":"src/sea.rs","old_string":"a","new_string":"b"}}],"usage":{"input_tokens":5,"output_tokens":7}},"uuid":"0198aaaa-1111-0000-8333-000000000099","timestamp":"2026-01-02T03:03:00.000Z","type":"assistant""#;

fn home() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/.claude/projects/-work-app")).unwrap();
    let outer = format!(
        r#"{{"type":"progress","uuid":"0198aaaa-1111-0000-8333-000000000002","sessionId":"{SESSION}","timestamp":"2026-01-02T03:02:00.000Z","cwd":"/work/app","parentToolUseID":"t0","data":{{"message":{{{INNER}}},"type":"agent_progress","agentId":"a1b2"}}}}"#
    );
    let text = message_line(SESSION, 1, "user", "Feed the walrus")
        + &outer
        + "\n"
        + &message_line(SESSION, 5, "assistant", "It is fed.");
    folder.write(&path(SESSION), text);
    index(&folder);
    folder
}

/// The same record in the file of the sub-agent.
fn with_own_file(folder: &Folder) {
    let threads = format!("home/.claude/projects/-work-app/{SESSION}/subagents");
    fs::create_dir_all(folder.path(&threads)).unwrap();
    let own = format!(r#"{{"isSidechain":true,"agentId":"a1b2","sessionId":"{SESSION}","cwd":"/work/app",{INNER}}}"#);
    folder.write(&format!("{threads}/agent-a1b2.jsonl"), own + "\n");
    index(folder);
}

#[test]
fn events_of_a_sub_agent_nested_in_a_record_are_found() {
    let folder = home();
    let json = folder.run("find porpoises --root home --json").ends(0).json();
    assert_eq!((json.len(), &json[0]["line"], &json[0]["event"]), (2, &2.into(), &2.into()));
    let file = path(SESSION);
    let json = folder.run(&format!("find porpoises --json --in {file}")).ends(0).json();
    assert_eq!((json.len(), &json[0]["event"]), (2, &2.into()));
    let json = folder.run("find --file src/sea.rs --root home --json").ends(0).json();
    assert_eq!((&json[0]["how"]["edited"], &json[0]["events"][0]), (&1.into(), &2.into()));
    // A pattern is matched against the record itself.
    assert_eq!(folder.run("find /porp.ises/ --root home --json").ends(0).json().len(), 2);
}

#[test]
fn a_hit_inside_a_record_can_be_opened() {
    let folder = home();
    let shown = folder.run(&format!("show {SESSION} --root home --event 2"));
    assert!(shown.ends(0).text().contains("Count the porpoises"), "{}", shown.text());
    let json = folder.run(&format!("show {} --event 2 --json", path(SESSION))).ends(0).json();
    let kinds: Vec<&str> = json.iter().map(|json| json["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["fact", "message", "tool_call"]);
    assert_eq!((&json[1]["thread"], &json[1]["id"]), (&"a1b2".into(), &"0198aaaa-1111-0000-8333-000000000099".into()));
}

#[test]
fn it_is_shown_as_the_thread_of_the_sub_agent() {
    let folder = home();
    let shown = folder.run(&format!("show {SESSION} --root home"));
    assert!(!shown.ends(0).text().contains("porpoises"), "{}", shown.text());
    assert!(shown.talk.contains("2 events of sub-agents") && shown.talk.contains("--subagents"), "{}", shown.talk);
    let shown = folder.run(&format!("show {SESSION} --root home --subagents"));
    assert!(shown.ends(0).text().contains("Count the porpoises"), "{}", shown.text());
    let exported = folder.run(&format!("export {SESSION} --root home --to markdown --subagents"));
    assert!(exported.ends(0).text().contains("Count the porpoises"), "{}", exported.text());
}

#[test]
fn where_the_sub_agent_has_a_file_it_is_counted_and_shown_once() {
    let folder = home();
    let usage = |folder: &Folder| folder.run("usage --root home --json").ends(0).text().to_owned();
    let before = usage(&folder);
    with_own_file(&folder);
    let json = folder.run("find porpoises --root home --json").ends(0).json();
    assert_eq!((json.len(), &json[1]["total"]), (2, &1.into()), "{json:?}");
    let shown = folder.run(&format!("show {SESSION} --root home --subagents"));
    assert_eq!(shown.ends(0).text().matches("Count the porpoises").count(), 1, "{}", shown.text());
    let tokens = |text: &str| text.matches("\"output\":7").count();
    assert_eq!(tokens(&before), tokens(&usage(&folder)));
}

/// The result of the sub-agent's call, which failed.
const FAILED: &str = r#""message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no such file"}]},"uuid":"0198aaaa-1111-0000-8333-000000000100","timestamp":"2026-01-02T03:03:01.000Z","type":"user""#;

#[test]
fn a_failed_call_of_a_sub_agent_counts_once_for_list_find_audit_and_export() {
    let folder = home();
    let counted = |calls: u64| {
        index(&folder);
        let listed = folder.run("list --root home --json").ends(0).json().remove(0);
        let found = folder.run("find is:error --root home --json").ends(0).json();
        let audit = folder.run(&format!("audit {SESSION} --root home --json")).ends(0).json().remove(0);
        let failed = audit["tools"][0]["failed"].clone();
        let exported = folder.run(&format!("export {SESSION} --root home --to json --subagents"));
        let exported: serde_json::Value = serde_json::from_str(exported.ends(0).text()).unwrap();
        let exported = &exported["session"];
        let output = &exported["usage"]["output"];
        assert_eq!(
            (&listed["calls"], &listed["errors"], &exported["tool_calls"]),
            (&calls.into(), &1.into(), &calls.into())
        );
        assert_eq!((&found.last().unwrap()["total"], &failed, output), (&1.into(), &1.into(), &7.into()), "{audit}");
    };
    let outer = format!(
        r#"{{"type":"progress","uuid":"0198aaaa-1111-0000-8333-000000000003","sessionId":"{SESSION}","timestamp":"2026-01-02T03:03:02.000Z","cwd":"/work/app","parentToolUseID":"t0","data":{{"message":{{{FAILED}}},"type":"agent_progress","agentId":"a1b2"}}}}"#
    );
    let text = String::from_utf8(folder.read(&path(SESSION))).unwrap();
    folder.write(&path(SESSION), text + &outer + "\n");
    counted(1);
    with_own_file(&folder);
    let own = format!("home/.claude/projects/-work-app/{SESSION}/subagents/agent-a1b2.jsonl");
    let text = String::from_utf8(folder.read(&own)).unwrap();
    let failed =
        format!(r#"{{"isSidechain":true,"agentId":"a1b2","sessionId":"{SESSION}","cwd":"/work/app",{FAILED}}}"#);
    folder.write(&own, text + &failed + "\n");
    counted(1);
}

#[test]
fn a_conversion_that_lacks_it_reports_that_and_differs() {
    let folder = home();
    let file = path(SESSION);
    let converted = folder.run(&format!("convert {file} --to codex -o c.jsonl"));
    converted.ends(0).talks("tool_call    0 of 1 kept, 1 left out (in a side conversation; line 2)");
    let diff = folder.run(&format!("diff {file} c.jsonl"));
    let text = diff.ends(1).text();
    assert!(text.contains("Count the porpoises") && text.contains("B lacks 2 steps of sub-agents in A"), "{text}");
    folder.run(&format!("diff {file} {file}")).ends(0);
}
