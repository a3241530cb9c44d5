//! `steno audit` where an agent's own words state the outcome of a call: in the output of a script, in the call itself, in a
//! compaction.

use serde_json::{Value, json};

use crate::runner::Folder;

/// A rollout of these items, a second apart.
fn rollout(items: &[Value]) -> Value {
    let mut text = String::new();
    let meta = json!({"id": "0198-77", "timestamp": "2026-01-02T03:00:00.000Z", "cwd": "/w", "originator": "o", "cli_version": "0.144.0"});
    let lines = [("session_meta", meta)].into_iter().chain(items.iter().map(|item| match item.get("compacted") {
        Some(payload) => ("compacted", payload.clone()),
        None => ("response_item", item.clone()),
    }));
    for (second, (kind, payload)) in lines.enumerate() {
        let time = format!("2026-01-02T03:00:{second:02}.000Z");
        text += &(json!({"timestamp": time, "type": kind, "payload": payload}).to_string() + "\n");
    }
    Folder::with("r.jsonl", text).run("audit r.jsonl --json").ends(0).json().remove(0)
}

fn message(role: &str, text: &str) -> Value {
    let kind = if role == "user" { "input_text" } else { "output_text" };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn script(id: &str, source: &str) -> Value {
    json!({"type": "custom_tool_call", "status": "completed", "call_id": id, "name": "exec", "input": source})
}

/// The output of a script, text by text.
fn printed(id: &str, texts: &[&str]) -> Value {
    let head = json!({"type": "input_text", "text": "Script completed\nWall time 0.1 seconds\nOutput:\n"});
    let texts = texts.iter().map(|text| json!({"type": "input_text", "text": text}));
    let output: Vec<Value> = [head].into_iter().chain(texts).collect();
    json!({"type": "custom_tool_call_output", "call_id": id, "output": output})
}

fn commands_of(json: &Value) -> Vec<(String, Value, String)> {
    let commands = json["commands"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    commands
        .iter()
        .map(|command| (text(&command["command"]), command["exit_code"].clone(), text(&command["outcome"])))
        .collect()
}

#[test]
fn exit_codes_are_read_from_the_output_of_a_script() {
    let run = |cmd: &str| format!("const r = await tools.exec_command({{cmd:\"{cmd}\"}}); text(JSON.stringify(r))");
    let json = rollout(&[
        message("user", "Mend it."),
        script("call_0001", &run("make pump")),
        printed("call_0001", &[r#"{"chunk_id":"1","wall_time_seconds":0.2,"exit_code":2,"output":"no rule"}"#]),
        script("call_0002", &run("make all")),
        printed("call_0002", &[r#"{"chunk_id":"2","wall_time_seconds":1.0,"session_id":607,"output":""}"#]),
        script("call_0003", "const r = await tools.write_stdin({session_id:607,chars:\"\"}); text(JSON.stringify(r))"),
        printed("call_0003", &[r#"{"chunk_id":"3","wall_time_seconds":0.2,"exit_code":0,"output":"built"}"#]),
        // The output of a command is not a tool's result.
        script("call_0004", "const r = await tools.exec_command({cmd:\"cat a.json\"}); text(r.output)"),
        printed("call_0004", &[r#"{"exit_code":1}"#]),
        // One of two commands states no outcome, so the outcome of both is unknown.
        script("call_0005", "tools.exec_command({cmd:\"a\"}); tools.exec_command({cmd:\"b\"})"),
        printed("call_0005", &[r#"{"wall_time_seconds":0.2,"exit_code":0,"output":""}"#]),
        message("assistant", "Done."),
    ]);
    let good = |command: &str, exit: Value| (command.to_owned(), exit, "ok".to_owned());
    assert_eq!(
        commands_of(&json),
        [
            ("make pump".to_owned(), json!(2), "failed".to_owned()),
            good("make all", json!(0)),
            good("cat a.json", Value::Null),
            good("a\nb", Value::Null),
        ]
    );
    assert_eq!((&json["tools"][0]["calls"], &json["tools"][0]["failed"]), (&json!(5), &json!(1)));
    assert_eq!(json["calls"][2]["asks_after"], json["calls"][1]["event"]);
}

#[test]
fn a_call_that_states_its_own_outcome_has_a_result() {
    let search = |id: &str, status: &str| {
        let action = json!({"type": "search", "query": "valves"});
        json!({"type": "web_search_call", "id": id, "status": status, "action": action})
    };
    let json = rollout(&[
        message("user", "Look."),
        search("ws_000001", "completed"),
        search("ws_000002", "failed"),
        search("ws_000003", "in_progress"),
        message("assistant", "Done."),
    ]);
    let tool = &json["tools"][0];
    assert_eq!((&tool["calls"], &tool["failed"], &tool["unanswered"]), (&json!(3), &json!(1), &json!(1)));
    assert_eq!(json["calls"][0]["outcome"], "ok");
}

#[test]
fn signs_between_quotes_do_not_end_a_command() {
    let call = |id: &str, cmd: &str| {
        let arguments = json!({"cmd": cmd}).to_string();
        json!({"type": "function_call", "name": "exec_command", "call_id": id, "arguments": arguments})
    };
    let answer = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "Process exited with code 1\nOutput:\n"});
    let json = rollout(&[
        message("user", "Look."),
        call("call_0001", "rg -n \"pump|valve\" src"),
        answer("call_0001"),
        call("call_0002", "rg pump | make"),
        answer("call_0002"),
    ]);
    let outcomes: Vec<String> = commands_of(&json).into_iter().map(|(_, _, outcome)| outcome).collect();
    assert_eq!(outcomes, ["ok", "failed"]);
}

#[test]
fn events_that_a_compaction_keeps_are_not_counted_as_removed() {
    let json = rollout(&[
        message("user", "Mend it."),
        message("assistant", "I look."),
        script("call_0001", "await tools.exec_command({cmd:\"make\"})"),
        printed("call_0001", &[]),
        json!({"compacted": {"message": "", "replacement_history": [message("user", "Mend it."), {"type": "compaction", "encrypted_content": "x"}]}}),
        message("assistant", "Done."),
    ]);
    let compaction = &json["compactions"][0];
    assert_eq!((&compaction["messages"], &compaction["kept_messages"]), (&json!(1), &json!(1)));
    assert_eq!((&compaction["calls"], &compaction["kept_calls"]), (&json!(1), &json!(0)));
    assert_eq!(compaction["commands"], json!(["make"]));
}

#[test]
fn records_that_a_compaction_names_are_not_put_aside() {
    let record = |number: u32, role: &str, content: Value| {
        let mut message = json!({"role": role, "content": content});
        if role == "assistant" {
            message["id"] = json!(format!("msg_{number}"));
            message["type"] = json!("message");
            message["model"] = json!("m");
        }
        json!({
            "type": role, "uuid": format!("record-{number}"), "parentUuid": null, "isSidechain": false, "userType": "external",
            "cwd": "/w", "sessionId": "s1", "version": "2.1.0", "timestamp": format!("2026-01-02T03:00:{number:02}.000Z"),
            "message": message,
        })
    };
    let call = |number: u32, path: &str| {
        let block = json!({"type": "tool_use", "id": format!("toolu_00{number}"), "name": "Read", "input": {"file_path": path}});
        record(number, "assistant", json!([block]))
    };
    let result = |number: u32, of: u32| {
        record(number, "user", json!([{"type": "tool_result", "tool_use_id": format!("toolu_00{of}"), "content": "x"}]))
    };
    let boundary = json!({
        "type": "system", "subtype": "compact_boundary", "uuid": "record-6", "parentUuid": null, "sessionId": "s1",
        "timestamp": "2026-01-02T03:00:06.000Z", "content": "Conversation compacted",
        "compactMetadata": {"trigger": "auto", "preTokens": 900, "postTokens": 100,
            "preservedMessages": {"anchorUuid": "record-7", "uuids": ["record-4", "record-5"]}},
    });
    let records = [
        record(1, "user", json!("Mend it.")),
        call(2, "/w/a.c"),
        result(3, 2),
        call(4, "/w/b.c"),
        result(5, 4),
        boundary,
        record(8, "assistant", json!([{"type": "text", "text": "Done."}])),
    ];
    let text: String = records.iter().map(|record| record.to_string() + "\n").collect();
    let folder = Folder::with("s1.jsonl", text);
    let json = folder.run("audit s1.jsonl --json").ends(0).json().remove(0);
    let compaction = &json["compactions"][0];
    assert_eq!(
        (&compaction["events"], &compaction["messages"], &compaction["calls"]),
        (&json!(3), &json!(1), &json!(1))
    );
    assert_eq!((&compaction["files"], &compaction["kept_calls"]), (&json!(["/w/a.c"]), &json!(1)));
    folder.run("audit s1.jsonl").ends(0).says("kept 0 messages and 1 call");
}
