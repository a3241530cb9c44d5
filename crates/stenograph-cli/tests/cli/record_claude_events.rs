//! `steno record --to claude-events`: concurrent agent processes in one project, refused, killed and recovered.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::Value;

use crate::runner::Folder;

/// The requests and responses of a program that calls a model.
const CHAT: &str = r#"{"role":"user","content":"Fix the bug in auth.ts"}
{"role":"assistant","content":"I will.","tool_calls":[{"id":"c1","type":"function","function":{"name":"Edit","arguments":"{\"file_path\":\"/src/auth.ts\"}"}}]}
{"role":"tool","tool_call_id":"c1","content":"edited"}
{"role":"assistant","content":"It is fixed."}
"#;

/// A process that records an agent and waits for more.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    acks: Lines<BufReader<ChildStdout>>,
}

impl Agent {
    fn start(folder: &Folder, id: &str) -> Agent {
        let line = format!(
            "record --from openai-chat --to claude-events --ack --set session=s1 --set type=goodvibes:tester --set agent={id}"
        );
        let mut command = folder.command(&line);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let acks = BufReader::new(child.stdout.take().unwrap()).lines();
        Agent { input: child.stdin.take(), child, acks }
    }

    /// Sends everything and waits until all five events are acknowledged.
    fn works(&mut self) {
        self.input.as_mut().unwrap().write_all(CHAT.as_bytes()).unwrap();
        assert_eq!(self.acks.by_ref().take(5).count(), 5);
    }

    fn ends(mut self) {
        drop(self.input.take());
        let output = self.child.wait_with_output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && talk.contains("5 events recorded, completed"), "{talk}");
    }
}

fn tracking(folder: &Folder) -> Value {
    serde_json::from_slice(&folder.read(".goodvibes/state/agent-tracking.json")).unwrap()
}

fn telemetry(folder: &Folder) -> Vec<Value> {
    let months = std::fs::read_dir(folder.path(".goodvibes/telemetry")).unwrap();
    let text: String = months.map(|month| std::fs::read_to_string(month.unwrap().path()).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn eight_processes_in_one_project_lose_nothing_of_each_other() {
    let folder = Folder::new();
    let ids: Vec<String> = (0..8).map(|number| format!("a{number}")).collect();
    let mut agents: Vec<Agent> = ids.iter().map(|id| Agent::start(&folder, id)).collect();
    agents.iter_mut().for_each(Agent::works);
    let list = tracking(&folder);
    assert_eq!(list.as_object().unwrap().len(), 8);
    for id in &ids {
        assert_eq!(list[id]["agent_id"], **id);
        let log = list[id]["transcript_path"].as_str().unwrap();
        assert!(log.ends_with(&format!(".goodvibes/transcripts/s1/{id}.jsonl")) && std::path::Path::new(log).is_file());
    }
    folder.run("check --laws .goodvibes/state/agent-tracking.json").ends(0).says("goodvibes-tracking");
    std::thread::scope(|scope| agents.into_iter().for_each(|agent| drop(scope.spawn(|| agent.ends()))));
    assert_eq!(folder.read(".goodvibes/state/agent-tracking.json"), b"{}");
    let mut lines = telemetry(&folder);
    lines.sort_by_key(|line| line["agent_id"].to_string());
    assert_eq!(lines.len(), 8);
    for (line, id) in lines.iter().zip(&ids) {
        assert_eq!((&line["agent_id"], &line["status"]), (&Value::from(id.as_str()), &"completed".into()));
        assert_eq!((&line["files_modified"][0], &line["tools_used"][0]), (&"/src/auth.ts".into(), &"Edit".into()));
        assert_eq!(line["summary"], "It is fixed.");
        assert!(line["duration_ms"].is_u64());
    }
    for log in ids.iter().map(|id| format!(".goodvibes/transcripts/s1/{id}.jsonl")) {
        folder.run(&format!("check --laws {log}")).ends(0).says("claude-events, 6 records");
        // It contains everything that was sent.
        assert!(!folder.path(&format!("{log}.steno")).exists());
    }
    // The project contains every agent's words, each once.
    let messages = folder.run("show . --json --kind message").ends(0).json();
    assert_eq!(messages.len(), 8 * 3);
}

#[test]
fn an_agent_that_is_recorded_already_is_refused_with_the_process_that_does() {
    let folder = Folder::new();
    let mut agent = Agent::start(&folder, "a1");
    agent.works();
    let holder = format!("process {} is writing to it", agent.child.id());
    let again = "record --from openai-chat --to claude-events --set session=s1 --set agent=a1";
    folder.run_with(again, CHAT.as_bytes()).fails(&holder);
    agent.ends();
    assert_eq!(telemetry(&folder).len(), 1);
    folder.run_with(again, CHAT.as_bytes()).ends(0);
    assert_eq!(telemetry(&folder).len(), 2);
}

#[test]
fn killed_agents_are_completed_while_another_one_records() {
    let folder = Folder::new();
    let mut agents: Vec<Agent> = ["a1", "a2", "a3"].into_iter().map(|id| Agent::start(&folder, id)).collect();
    agents.iter_mut().for_each(Agent::works);
    let alive = agents.pop().unwrap();
    for mut agent in agents {
        agent.child.kill().unwrap();
        agent.child.wait().unwrap();
    }
    assert_eq!(tracking(&folder).as_object().unwrap().len(), 3);
    let recovered = folder.run("recover .");
    recovered.ends(0).talks("a1.jsonl").talks("is still being recorded: not touched");
    folder.run("recover . --json").ends(0);
    let left: Vec<String> = tracking(&folder).as_object().unwrap().keys().cloned().collect();
    assert_eq!(left, ["a3"]);
    alive.ends();
    assert_eq!(folder.read(".goodvibes/state/agent-tracking.json"), b"{}");
    let mut ended: Vec<(String, String)> =
        telemetry(&folder).iter().map(|line| (line["agent_id"].to_string(), line["status"].to_string())).collect();
    ended.sort();
    let expected = [("a1", "failed"), ("a2", "failed"), ("a3", "completed")];
    assert_eq!(ended, expected.map(|(id, status)| (format!("\"{id}\""), format!("\"{status}\""))));
    for id in ["a1", "a2", "a3"] {
        let shown = folder.run(&format!("show .goodvibes/transcripts/s1/{id}.jsonl --json")).ends(0).json();
        let kinds: Vec<&str> = shown.iter().map(|event| event["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["message", "message", "tool_call", "tool_result", "message", "stop"], "{id}");
    }
}

#[test]
fn a_command_that_fails_is_a_failed_agent() {
    let folder = Folder::with("script.sh", format!("cat <<'END'\n{CHAT}END\nexit 3\n"));
    let line = "record --from openai-chat --to claude-events:project --set agent=a1 --set session=s1 -- sh script.sh";
    folder.run(line).ends(3).talks("failed: project/.goodvibes/transcripts/s1/a1.jsonl");
    let line = std::fs::read_dir(folder.path("project/.goodvibes/telemetry")).unwrap().next().unwrap().unwrap();
    let line: Value = serde_json::from_slice(&std::fs::read(line.path()).unwrap()).unwrap();
    assert_eq!((&line["status"], &line["project_name"]), (&"failed".into(), &"project".into()));
    assert_eq!(line["project"], std::path::absolute(folder.path("project")).unwrap().to_str().unwrap());
}

#[test]
fn an_invalid_list_is_moved_away_and_reported_once() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(".goodvibes/state")).unwrap();
    folder.write(".goodvibes/state/agent-tracking.json", "{\"a1\":");
    let done = folder.run_with("record --from openai-chat --to claude-events", CHAT.as_bytes());
    assert_eq!(done.ends(0).talk.matches("agent-tracking.json.torn-1").count(), 1, "{}", done.talk);
    assert_eq!(folder.read(".goodvibes/state/agent-tracking.json.torn-1"), b"{\"a1\":");
    assert_eq!(tracking(&folder), serde_json::json!({}));
}

#[test]
fn wrong_names_are_refused() {
    let folder = Folder::new();
    folder.run("record --to claude-events --set agent=../a").fails("is not a valid file or folder name");
    folder.run("record --to claude-events --set colour=red").fails("unknown key");
    assert!(folder.names().is_empty());
}
