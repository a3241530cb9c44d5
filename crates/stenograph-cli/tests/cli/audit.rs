//! `steno audit` on transcripts of several agents.

use serde_json::Value;

use crate::list::{index, message_line, path};
use crate::runner::{Done, Folder};

/// A session that reads, writes, runs commands, is refused something, starts a sub-agent and keeps a to-do list.
const CLAUDE: &str = r#"{"type":"user","uuid":"u0000001","sessionId":"s1","timestamp":"2026-01-02T03:00:00.000Z","cwd":"/w","permissionMode":"default","message":{"role":"user","content":"Mend the pump."}}
{"type":"assistant","uuid":"u0000002","sessionId":"s1","timestamp":"2026-01-02T03:00:01.000Z","cwd":"/w","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_0001","name":"Bash","input":{"command":"make pump","description":"Build"}}],"usage":{"input_tokens":100,"output_tokens":1}}}
{"type":"user","uuid":"u0000003","sessionId":"s1","timestamp":"2026-01-02T03:00:04.000Z","cwd":"/w","toolUseResult":"Error: Exit code 2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0001","content":"Exit code 2\nno rule","is_error":true}]}}
{"type":"assistant","uuid":"u0000004","sessionId":"s1","timestamp":"2026-01-02T03:00:05.000Z","cwd":"/w","message":{"id":"m2","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_0002","name":"Write","input":{"file_path":"/w/pump.mk","content":"pump:"}}],"usage":{"input_tokens":200,"output_tokens":1}}}
{"type":"user","uuid":"u0000005","sessionId":"s1","timestamp":"2026-01-02T03:00:06.000Z","cwd":"/w","toolUseResult":{"type":"create","filePath":"/w/pump.mk"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0002","content":"File created"}]}}
{"type":"assistant","uuid":"u0000006","sessionId":"s1","timestamp":"2026-01-02T03:00:07.000Z","cwd":"/w","message":{"id":"m3","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_0003","name":"Edit","input":{"file_path":"main.c","old_string":"a","new_string":"b"}}]}}
{"type":"user","uuid":"u0000007","sessionId":"s1","timestamp":"2026-01-02T03:00:08.000Z","cwd":"/w","toolUseResult":"User rejected tool use","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0003","content":"The user doesn't want to proceed with this tool use. The tool use was rejected.","is_error":true}]}}
{"type":"assistant","uuid":"u0000008","sessionId":"s1","timestamp":"2026-01-02T03:00:09.000Z","cwd":"/w","message":{"id":"m4","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_0004","name":"Task","input":{"subagent_type":"Explore","description":"Look at valves","prompt":"Look at all valves."}}]}}
{"type":"progress","uuid":"u0000009","sessionId":"s1","timestamp":"2026-01-02T03:00:10.000Z","cwd":"/w","parentToolUseID":"toolu_0004","toolUseID":"agent_msg","data":{"type":"agent_progress","agentId":"a77","prompt":"Look at all valves.","message":{"type":"assistant","uuid":"n0000001","timestamp":"2026-01-02T03:00:10.000Z","message":{"id":"n1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_n001","name":"Read","input":{"file_path":"/w/valve.c"}}]}}}}
{"type":"user","uuid":"u0000010","sessionId":"s1","timestamp":"2026-01-02T03:00:12.000Z","cwd":"/w","toolUseResult":{"isAsync":true,"status":"async_launched","agentId":"a77"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0004","content":"Launched. agentId: a77"}]}}
{"type":"assistant","uuid":"u0000011","sessionId":"s1","timestamp":"2026-01-02T03:00:13.000Z","cwd":"/w","message":{"id":"m5","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_0005","name":"TaskOutput","input":{"task_id":"a77","block":true}},{"type":"tool_use","id":"toolu_0006","name":"TodoWrite","input":{"todos":[{"content":"mend","status":"completed"},{"content":"paint","status":"pending"}]}}]}}
{"type":"user","uuid":"u0000012","sessionId":"s1","timestamp":"2026-01-02T03:00:14.000Z","cwd":"/w","toolUseResult":{"retrieval_status":"success","task":{"status":"completed"}},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0005","content":"All valves hold."},{"type":"tool_result","tool_use_id":"toolu_0006","content":"ok"}]}}
{"type":"assistant","uuid":"u0000013","sessionId":"s1","timestamp":"2026-01-02T03:00:15.000Z","cwd":"/w","message":{"id":"m6","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_0007","name":"Bash","input":{"command":"make pump","description":"Build"}}]}}
{"type":"user","uuid":"u0000014","sessionId":"s1","timestamp":"2026-01-02T03:00:16.000Z","cwd":"/w","toolUseResult":{"stdout":"built","stderr":"","interrupted":false},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0007","content":"built"}]}}
{"type":"assistant","uuid":"u0000015","sessionId":"s1","timestamp":"2026-01-02T03:00:17.000Z","cwd":"/w","message":{"id":"m7","role":"assistant","model":"m","content":[{"type":"text","text":"The pump runs."}],"usage":{"input_tokens":300,"cache_read_input_tokens":50,"output_tokens":1}}}
{"type":"assistant","uuid":"u0000016","sessionId":"s1","timestamp":"2026-01-02T03:00:18.000Z","cwd":"/w","message":{"id":"m7","role":"assistant","model":"m","content":[{"type":"text","text":"It needs paint."}],"stop_reason":"end_turn","usage":{"input_tokens":300,"cache_read_input_tokens":50,"output_tokens":9}}}
"#;

/// Commands as one agent records them: in the head of the answer, as JSON, only by a record of their end, and one still
/// running.
const CODEX: &str = r#"{"timestamp":"2026-01-02T03:00:00.000Z","type":"session_meta","payload":{"id":"0198aaaa-7777-4222-8333-444455556666","timestamp":"2026-01-02T03:00:00.000Z","cwd":"/w","cli_version":"1"}}
{"timestamp":"2026-01-02T03:00:00.100Z","type":"turn_context","payload":{"cwd":"/w","model":"m","approval_policy":"on-request","sandbox_policy":{"type":"read-only"}}}
{"timestamp":"2026-01-02T03:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Mend it."}]}}
{"timestamp":"2026-01-02T03:00:01.000Z","type":"event_msg","payload":{"type":"user_message","message":"Mend it."}}
{"timestamp":"2026-01-02T03:00:02.000Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":"call_000001","arguments":"{\"cmd\":\"make pump\"}"}}
{"timestamp":"2026-01-02T03:00:03.000Z","type":"event_msg","payload":{"type":"exec_command_end","call_id":"call_000001","command":["bash","-lc","make pump"],"exit_code":2}}
{"timestamp":"2026-01-02T03:00:03.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_000001","output":"Chunk ID: 1\nProcess exited with code 2\nOutput:\nno rule"}}
{"timestamp":"2026-01-02T03:00:04.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","call_id":"call_000002","arguments":"{\"command\":[\"bash\",\"-lc\",\"ls | wc\"]}"}}
{"timestamp":"2026-01-02T03:00:05.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_000002","output":"{\"output\":\"3\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}"}}
{"timestamp":"2026-01-02T03:00:06.000Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","call_id":"call_000003","input":"*** Begin Patch\n*** Update File: pump.mk\n@@\n-a\n+b\n*** Add File: valve.mk\n+c\n*** Delete File: old.mk\n*** End Patch"}}
{"timestamp":"2026-01-02T03:00:06.500Z","type":"event_msg","payload":{"type":"patch_apply_end","call_id":"call_000003","success":true,"changes":{"/w/pump.mk":{"type":"update"}}}}
{"timestamp":"2026-01-02T03:00:07.000Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"call_000003","output":"Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."}}
{"timestamp":"2026-01-02T03:00:08.000Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":"call_000004","arguments":"{\"cmd\":\"make all\"}"}}
{"timestamp":"2026-01-02T03:00:09.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_000004","output":"Process running with session ID 77\nOutput:\n"}}
{"timestamp":"2026-01-02T03:00:10.000Z","type":"response_item","payload":{"type":"function_call","name":"write_stdin","call_id":"call_000005","arguments":"{\"session_id\":77,\"chars\":\"\"}"}}
{"timestamp":"2026-01-02T03:00:11.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_000005","output":"Process exited with code 1\nOutput:\nbroken"}}
{"timestamp":"2026-01-02T03:00:12.000Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":"call_000006","arguments":"{\"cmd\":\"rm -r /\"}"}}
{"timestamp":"2026-01-02T03:00:13.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_000006","output":"exec command rejected by user"}}
{"timestamp":"2026-01-02T03:00:14.000Z","type":"event_msg","payload":{"type":"exec_command_end","call_id":"inner_00001","command":["bash","-lc","make inner"],"exit_code":0}}
{"timestamp":"2026-01-02T03:00:14.500Z","type":"response_item","payload":{"type":"function_call","name":"update_plan","call_id":"call_000007","arguments":"{\"plan\":[{\"step\":\"mend\",\"status\":\"completed\"},{\"step\":\"paint\",\"status\":\"pending\"}]}"}}
{"timestamp":"2026-01-02T03:00:14.600Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_000007","output":"Plan updated"}}
{"timestamp":"2026-01-02T03:00:15.000Z","type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted"}}
"#;

const CYCOD: &str = r#"{"role":"user","content":"Mend it."}
{"role":"assistant","content":null,"tool_calls":[{"id":"call_c1","type":"function","function":{"name":"RunBashCommand","arguments":"{\"command\":\"make pump\"}"}}]}
{"role":"tool","tool_call_id":"call_c1","content":"no rule\n<exited with exit code 2>"}
{"role":"assistant","content":null,"tool_calls":[{"id":"call_c2","type":"function","function":{"name":"CreateFile","arguments":"{\"path\":\"pump.mk\",\"fileText\":\"a\"}"}}]}
{"role":"tool","tool_call_id":"call_c2","content":"Created."}
{"role":"assistant","content":"It does not build."}
"#;

const DEVFLOW: &str = r#"{"runId":"2026-03-05-mend","metadata":{"flowId":"mend","startedAt":"2026-03-05T11:02:00Z","endedAt":"2026-03-05T11:02:41Z","status":"failed","error":"agent gave up"},
"turns":[{"id":1,"role":"user","content":"Mend it.","timestamp":"2026-03-05T11:02:00Z"},
{"id":2,"role":"assistant","content":"I build.","timestamp":"2026-03-05T11:02:30Z","toolCalls":[{"id":"t1","name":"bash","input":{"command":"make pump"},"output":"no rule","error":"exit status 2"}]},
{"id":3,"role":"assistant","content":"I cannot.","timestamp":"2026-03-05T11:02:40Z"}]}
"#;

const CHIBI: &str = r#"{"id":"0198-0001","timestamp":1705123456,"from":"alice","to":"default","content":"Mend it.","entry_type":"message"}
{"id":"0198-0002","timestamp":1705123460,"from":"default","to":"write_file","content":"{\"path\":\"/w/a.mk\",\"content\":\"x\"}","entry_type":"tool_call"}
{"id":"0198-0003","timestamp":1705123461,"from":"write_file","to":"default","content":"Error: Permission denied by hook","entry_type":"tool_result"}
{"id":"0198-0004","timestamp":1705123462,"from":"default","to":"read_file","content":"{\"path\":\"/w/b.mk\"}","entry_type":"tool_call"}
{"id":"0198-0005","timestamp":1705123463,"from":"read_file","to":"default","content":"all:","entry_type":"tool_result"}
{"id":"0198-0006","timestamp":1705123464,"from":"default","to":"user","content":"I may not write.","entry_type":"message"}
"#;

/// The same calls flat and nested, once with ids and once without.
const FLAT: &str = r#"{"type":"tool_use","id":"toolu_flat01","name":"Write","input":{"file_path":"/w/a.c","content":"x"}}
{"role":"assistant","content":[{"type":"tool_use","id":"toolu_flat01","name":"Write","input":{"file_path":"/w/a.c","content":"x"}}]}
{"type":"tool_result","tool_use_id":"toolu_flat01","output":"ok","is_error":false}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_flat01","content":"ok"}]}
{"type":"tool_use","name":"Edit","input":{"file_path":"/w/b.c","old_string":"a","new_string":"b"}}
{"role":"assistant","content":[{"type":"tool_use","id":"toolu_flat02","name":"Edit","input":{"file_path":"/w/b.c","old_string":"a","new_string":"b"}}]}
{"type":"tool_result","tool_use_id":"toolu_flat02","output":"no such text","is_error":true}
{"type":"error","error":{"type":"overloaded","message":"later"}}
{"type":"stop","stop_reason":"error","success":false}
"#;

fn audit(name: &str, text: &str, options: &str) -> Done {
    Folder::with(name, text).run(&format!("audit {name} {options}"))
}

fn json(name: &str, text: &str) -> Value {
    audit(name, text, "--json").ends(0).json().remove(0)
}

/// The values of these fields, one line each.
fn lines(json: &Value, list: &str, keys: &[&str]) -> Vec<String> {
    let spell = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let items = json[list].as_array().unwrap_or_else(|| panic!("no {list} in {json}"));
    items.iter().map(|item| keys.iter().map(|key| spell(&item[*key])).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn an_audit_has_all_parts_of_a_session() {
    let json = json("s.jsonl", CLAUDE);
    let tools = lines(&json, "tools", &["name", "calls", "failed", "denied", "retries"]);
    assert_eq!(
        tools,
        [
            "Bash 2 1 0 1",
            "Write 1 0 0 0",
            "Edit 1 0 1 0",
            "Task 1 0 0 0",
            "Read 1 0 0 0",
            "TaskOutput 1 0 0 0",
            "TodoWrite 1 0 0 0"
        ]
    );
    assert_eq!(json["tools"][0]["longest_ms"], 3000);
    let commands = lines(&json, "commands", &["event", "command", "exit_code", "outcome"]);
    assert_eq!(commands, ["2 make pump 2 failed", "15 make pump null ok"]);
    let files = lines(&json, "files", &["change", "path"]);
    assert_eq!(files, ["created /w/pump.mk", "tried /w/main.c", "read /w/valve.c"]);
    assert_eq!(json["last"]["text"], "The pump runs.\n\nIt needs paint.");
    assert_eq!(lines(&json, "approvals", &["verdict", "about"]), ["mode default", "denied main.c"]);
    let agent = &json["agents"][0];
    assert_eq!(
        (&agent["type"], &agent["id"], &agent["status"]),
        (&"Explore".into(), &"a77".into(), &"completed".into())
    );
    assert_eq!(
        (&agent["calls"], &agent["later"][0], &agent["answer"]),
        (&1.into(), &13.into(), &"All valves hold.".into())
    );
    assert_eq!(lines(&json["todos"], "items", &["status", "text"]), ["completed mend", "pending paint"]);
    assert_eq!(
        (&json["context"]["first"], &json["context"]["max"], &json["context"]["calls"]),
        (&100.into(), &350.into(), &3.into())
    );
    assert_eq!((&json["failure"], &json["state"]), (&Value::Null, &"idle".into()));
    assert_eq!(json["calls"][0]["input"], serde_json::json!({"command": "make pump", "description": "Build"}));
}

#[test]
fn people_read_it_by_part() {
    let folder = Folder::with("s.jsonl", CLAUDE);
    let all = folder.run("audit s.jsonl");
    for part in [
        "tools  8 calls, 1 failed, 1 denied",
        "files  1 created",
        "commands  2 commands, 1 failed",
        "todos  1 of 2 done",
    ] {
        all.ends(0).says(part);
    }
    assert_eq!(folder.run("audit s.jsonl --only last").ends(0).text(), "The pump runs.\n\nIt needs paint.\n");
    folder.run("audit s.jsonl --only commands").ends(0).says("exit 2     make pump");
    folder.run("audit s.jsonl --only agents").ends(0).says("Explore: Look at valves  (completed, 1 call");
    folder.run("audit s.jsonl --only todos").ends(0).says("[ ] paint");
    folder.run("audit s.jsonl --only tools").ends(0).says("command: make pump  description: Build");
    folder.run("audit s.jsonl --only failure").ends(1).talks("it did not fail");
    let json = folder.run("audit s.jsonl --only files --json").ends(0).json();
    assert!(json[0].get("files").is_some() && json[0].get("tools").is_none());
    folder.run("audit s.jsonl --only everything").ends(2);
    folder.run("audit nowhere.jsonl").fails("nowhere.jsonl");
}

#[test]
fn exit_codes_stand_in_many_places() {
    let json = json("r.jsonl", CODEX);
    let commands = lines(&json, "commands", &["command", "exit_code", "outcome"]);
    assert_eq!(
        commands,
        ["make pump 2 failed", "ls | wc 0 ok", "make all 1 failed", "rm -r / null denied", "make inner 0 ok"]
    );
    let files = lines(&json, "files", &["change", "path", "edits"]);
    assert_eq!(files, ["changed /w/pump.mk 1", "created /w/valve.mk 0", "deleted /w/old.mk 0"]);
    assert_eq!(lines(&json, "approvals", &["verdict", "about"]), ["mode on-request, read-only", "denied rm -r /"]);
    assert_eq!(json["calls"][4]["asks_after"], 13);
    assert_eq!(lines(&json["todos"], "items", &["text"]), ["mend", "paint"]);
    assert_eq!((&json["state"], &json["failure"]["name"]), (&"failed".into(), &"exec_command".into()));
    assert_eq!(json["failure"]["input"]["cmd"], "make pump");
    audit("r.jsonl", CODEX, "--only failure")
        .ends(0)
        .says("exec_command failed")
        .says("cmd: make pump")
        .says("no rule");
}

#[test]
fn other_agents_say_it_in_other_words() {
    let report = json("c.jsonl", CYCOD);
    assert_eq!(lines(&report, "commands", &["command", "exit_code", "outcome"]), ["make pump 2 failed"]);
    assert_eq!(lines(&report, "files", &["change", "path"]), ["created pump.mk"]);
    assert_eq!(report["last"]["text"], "It does not build.");
    let report = json("transcript.json", DEVFLOW);
    assert_eq!(lines(&report, "commands", &["command", "exit_code", "outcome"]), ["make pump 2 failed"]);
    assert_eq!((&report["failure"]["name"], &report["state"]), (&"bash".into(), &"failed".into()));
    assert_eq!(lines(&report["failure"], "before", &["text"]), ["user: Mend it.", "I build."]);
    let report = json("context.jsonl", CHIBI);
    assert_eq!(lines(&report, "tools", &["name", "calls", "denied"]), ["write_file 1 1", "read_file 1 0"]);
    assert_eq!(lines(&report, "files", &["change", "path"]), ["tried /w/a.mk", "read /w/b.mk"]);
    assert_eq!((&report["last"]["text"], &report["failure"]), (&"I may not write.".into(), &Value::Null));
}

#[test]
fn flat_and_nested_calls_count_once() {
    let report = json("f.jsonl", FLAT);
    assert_eq!(lines(&report, "tools", &["name", "calls", "failed", "unanswered"]), ["Write 1 0 0", "Edit 1 1 0"]);
    assert_eq!(lines(&report, "files", &["change", "path", "writes"]), ["created /w/a.c 1", "tried /w/b.c 0"]);
    assert_eq!((&report["failure"]["kind"], &report["failure"]["name"]), (&"tool".into(), &"Edit".into()));
    assert_eq!(lines(&report, "errors", &["kind", "recovered"]), ["failure false", "stop false"]);
}

#[test]
fn a_query_audits_every_session_that_has_a_hit() {
    let folder = crate::list::home();
    let session = "0198aaaa-1111-4222-8333-444455556666";
    folder.run(&format!("audit {session} --root home --only last")).ends(0).says("It is fed.");
    let json = folder.run(&format!("audit {session} --root home --json")).ends(0).json();
    assert_eq!((json[0]["paths"].as_array().unwrap().len(), &json[0]["agents"][0]["id"]), (2, &"a1b2".into()));
    let json = folder.run("audit --query walrus --root home --json").ends(0).json();
    assert_eq!((json.len(), &json[3]["total"]["sessions"]), (4, &3.into()));
    let json = folder.run("audit role:user herring --root home --json").ends(0).json();
    assert_eq!((json.len(), &json[1]["total"]["sessions"]), (2, &1.into()));
    folder.run("audit role:user walrus --root home").ends(0).says("total: 3 sessions");
    folder.run("audit --query penguin --root home").finds_nothing("nothing found");
    folder.run("audit projct:x --root home").fails("hint:");
    let text = message_line(session, 40, "user", "again");
    let mut whole = folder.read(&path(session));
    whole.extend(text.as_bytes());
    folder.write(&path(session), whole);
    index(&folder);
    folder.run("audit --query again --root home --only failure").ends(0).says("the transcript ends");
}

#[test]
fn bad_input_is_audited_as_far_as_it_is_readable() {
    let cut = CLAUDE.get(..CLAUDE.len() / 2).unwrap();
    audit("s.jsonl", cut, "--json").ends(0);
    audit("s.jsonl", &CLAUDE.replace("2026-01-02T03:00:04.000Z", "never"), "").ends(0).says("tools");
    let hostile = CLAUDE.replace("make pump", "make \\u001b[31mpump");
    let text = audit("s.jsonl", &hostile, "").ends(0).text().to_owned();
    assert!(!text.contains('\x1b') && text.contains("␛[31mpump"), "{text}");
    audit("e.jsonl", "", "").ends(2);
}

const EXPLAINED: &str = r#"{"v":1,"kind":"message","role":"user","content":"Build it"}
{"v":1,"kind":"tool_call","name":"Bash","call":"call-0001","input":{"command":"make"}}
{"v":1,"kind":"tool_result","call":"call-0001","content":"no rule","error":true}
{"v":1,"kind":"tool_call","name":"Bash","call":"call-0002","input":{"command":"make"}}
{"v":1,"kind":"tool_result","call":"call-0002","content":"no rule","error":true}
{"v":1,"kind":"tool_call","name":"Bash","call":"call-0003","input":{"command":"make"}}
{"v":1,"kind":"tool_result","call":"call-0003","content":"no rule","error":true}
{"v":1,"kind":"failure","name":"overloaded"}
{"v":1,"kind":"message","role":"assistant","content":"There is no rule."}
{"v":1,"kind":"stop","reason":"max_tokens"}
"#;

#[test]
fn each_outcome_names_its_record_and_its_rule() {
    let report = audit("a.jsonl", EXPLAINED, "--json --explain").ends(0).json().remove(0);
    assert_eq!(
        lines(&report, "explain", &["what", "outcome", "rule", "event", "line"]),
        [
            "run failed stop_record 10 10",
            "call failed stated_error 3 3",
            "call failed stated_error 5 5",
            "call failed stated_error 7 7",
            "stuck failing failing_steps 7 7",
            "error failure error_record 8 8",
            "recovery recovered recovery 9 9",
        ]
    );
    assert_eq!((&report["explain"][1]["of"]["event"], &report["explain"][4]["of"]["event"]), (&2.into(), &2.into()));
    let text = audit("a.jsonl", EXPLAINED, "--explain");
    text.ends(0)
        .says("explain  7 outcomes")
        .says("run cut_off: failed by event 10 (line 10): the record states that the turn or the run is over")
        .says("call Bash: failed by event 3 (line 3): the record states an error, called in event 2 (line 2)")
        .says("recovery overloaded: recovered by event 9 (line 9)");
    assert!(json("a.jsonl", EXPLAINED).get("explain").is_none());
}

#[test]
fn the_head_and_the_total_state_what_usage_counts() {
    let folder = Folder::new();
    let text = CLAUDE.replace("\"model\":\"m\"", "\"model\":\"claude-sonnet-4-5\"");
    folder.write("a.jsonl", &text);
    folder.write("b.jsonl", text.replace("s1", "s2").replace("\"m1\"", "\"k1\""));
    let counted = folder.run("usage a.jsonl --json").ends(0).json();
    let audited = folder.run("audit a.jsonl --json").ends(0).json();
    assert_eq!(audited[0]["cost"], counted[0]["total"]["cost"]);
    let sum = ["input", "output", "cache_read", "cache_write"];
    let sum: u64 = sum.iter().filter_map(|key| counted[0]["total"][key].as_u64()).sum();
    assert_eq!(audited[0]["tokens"], sum);
    folder.run("audit a.jsonl").ends(0).says(&format!("  {sum} tokens, $0.00"));
    folder.run("audit a.jsonl b.jsonl").ends(0).says(" deleted; 1,").says(" tokens, $0.00");
    // Standard input is read once, and a part has no head.
    assert!(folder.run_with("audit - --json", text.as_bytes()).ends(0).json()[0].get("cost").is_none());
    assert!(!folder.run("audit a.jsonl --only tools").ends(0).text().contains("$0"));
}
