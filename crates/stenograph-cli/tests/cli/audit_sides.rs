//! `steno audit` of a file with sub-agents in other files: it reads them too, in the order of time.

use serde_json::{Value, json};

use crate::runner::Folder;

/// A record of a session at this second, of the main conversation or of a sub-agent.
fn record(second: u32, agent: Option<&str>, role: &str, content: &Value) -> String {
    let mut record = json!({
        "type": role, "uuid": format!("{}-000{second:02}", agent.unwrap_or("main")), "parentUuid": null,
        "isSidechain": agent.is_some(), "userType": "external", "cwd": "/w", "sessionId": "s1", "version": "2.1.0",
        "timestamp": format!("2026-01-02T03:00:{second:02}.000Z"),
        "message": {"role": role, "content": content},
    });
    if let Some(agent) = agent {
        record["agentId"] = json!(agent);
    }
    if role == "assistant" {
        record["message"]["id"] = json!(format!("msg_{second}"));
        record["message"]["model"] = json!("m");
        record["message"]["type"] = json!("message");
    }
    record.to_string() + "\n"
}

fn call(second: u32, agent: Option<&str>, id: &str, tool: &str, input: &Value) -> String {
    record(second, agent, "assistant", &json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]))
}

fn result(second: u32, agent: Option<&str>, id: &str, text: &str) -> String {
    record(second, agent, "user", &json!([{"type": "tool_result", "tool_use_id": id, "content": text}]))
}

/// The main conversation writes a file, has a sub-agent change it, and changes it again.
fn session() -> Folder {
    let edit = |old: &str, new: &str| json!({"file_path": "/w/a.txt", "old_string": old, "new_string": new});
    let done = "The file /w/a.txt has been updated.";
    let main = record(1, None, "user", &json!("Mend it."))
        + &call(2, None, "toolu_000001", "Write", &json!({"file_path": "/w/a.txt", "content": "one\n"}))
        + &result(3, None, "toolu_000001", "File created successfully at: /w/a.txt")
        + &call(
            4,
            None,
            "toolu_000002",
            "Task",
            &json!({"subagent_type": "mender", "description": "d", "prompt": "Go."}),
        )
        + &result(8, None, "toolu_000002", "Done.\nagentId: a77")
        + &call(9, None, "toolu_000003", "Edit", &edit("two", "three"))
        + &result(10, None, "toolu_000003", done)
        + &record(11, None, "assistant", &json!([{"type": "text", "text": "All done."}]));
    let side = record(5, Some("a77"), "user", &json!("Go."))
        + &call(6, Some("a77"), "toolu_000004", "Edit", &edit("one", "two"))
        + &result(7, Some("a77"), "toolu_000004", done);
    let folder = Folder::with("s1.jsonl", main);
    std::fs::create_dir_all(folder.path("s1/subagents")).unwrap();
    folder.write("s1/subagents/agent-a77.jsonl", side);
    folder
}

#[test]
fn sub_agents_beside_a_file_are_read_with_it() {
    let folder = session();
    let json = folder.run("audit s1.jsonl --json").ends(0).json().remove(0);
    assert_eq!(json["paths"].as_array().map(Vec::len), Some(2));
    let agent = &json["agents"][0];
    assert_eq!((&agent["id"], &agent["calls"], &agent["type"]), (&json!("a77"), &json!(1), &json!("mender")));
    assert_eq!((&json["files"][0]["change"], &json["files"][0]["edits"]), (&json!("created"), &json!(2)));
    // Each event has its number in its own file.
    assert_eq!((&json["calls"][2]["source"], &json["calls"][2]["event"]), (&json!(1), &json!(2)));
    assert_eq!((&json["calls"][3]["source"], &json["calls"][3]["event"]), (&Value::Null, &json!(6)));
    assert_eq!(json["last"]["text"], "All done.");
    folder
        .run("audit s1/subagents/agent-a77.jsonl --json")
        .ends(0)
        .says("\"paths\":[\"s1/subagents/agent-a77.jsonl\"]");
}

#[test]
fn changes_of_sub_agents_apply_in_the_order_of_time() {
    let done = session().run("audit s1.jsonl --diff --json");
    let json = done.ends(0).json().remove(0);
    assert_eq!(json["unseen"], json!([]));
    let diff = json["files"][0]["diff"].as_str().unwrap_or_default();
    assert!(diff.ends_with("@@ -0,0 +1 @@\n+three\n"), "{diff}");
}

#[test]
fn they_are_written_with_it_too() {
    let folder = session();
    folder.run("export s1.jsonl --to markdown --subagents").ends(0).says("## Side conversation: `a77`");
    assert!(!folder.run("export s1.jsonl --to markdown").ends(0).text().contains("Side conversation"));
}

#[test]
fn a_sub_agent_that_cannot_be_read_does_not_stop_the_rest() {
    let folder = session();
    folder.write("s1/subagents/agent-b88.jsonl", "");
    let done = folder.run("audit s1.jsonl --json");
    assert_eq!(done.ends(2).json()[0]["paths"].as_array().map(Vec::len), Some(2));
    done.talks("error: ").talks("agent-b88.jsonl");
}
