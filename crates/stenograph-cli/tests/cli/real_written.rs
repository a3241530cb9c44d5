//! A real agent resumes a session that was written with templates, and the request that it sends has every message, call and
//! result of the session, each result with the id of its call. Then the session comes back with the new turn. A scripted model
//! answers. The test runs if a variable names the program, as in continuous integration; else it says so and skips.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stenograph::Registry;
use stenograph::model::{Body, Event, Role};

use crate::real::{OFFLINE, program};
use crate::real_move::{OUTPUT_TOKENS, TURNS, serve};
use crate::runner::Folder;

const SESSION: &str = "3a9d1b1e-6c52-4f0e-8f1b-2d7c5e904a61";

/// A session with parallel calls, a failed call, a thought, and texts that are hard to spell.
fn session(work: &str) -> String {
    let call =
        |id: &str, name: &str, input: Value| json!({"kind": "tool_call", "call": id, "name": name, "input": input});
    let result =
        |id: &str, text: &str, error: bool| json!({"kind": "tool_result", "call": id, "content": text, "error": error});
    let usage = json!({"input": 40, "output": 9, "cache_read": 3});
    let mut events = vec![
        json!({"kind": "message", "role": "user", "content": "Which owls are there? \"Both\" \u{1f989}"}),
        json!({"kind": "thinking", "content": "The list has them.", "group": "msg_1", "usage": usage}),
        json!({"kind": "message", "role": "assistant", "content": "I look twice.", "group": "msg_1"}),
        call("toolu_1", "Read", json!({"file_path": "owls.txt"})),
        call("toolu_2", "Bash", json!({"command": "cat missing"})),
        result("toolu_1", "tawny owl\nbarn owl\n", false),
        result("toolu_2", "cat: missing: No such file", true),
        json!({"kind": "message", "role": "assistant", "content": "Tawny owls\nand barn owls.", "group": "msg_2", "usage": usage}),
        json!({"kind": "message", "role": "user", "content": "And which jays?"}),
        json!({"kind": "message", "role": "assistant", "content": "Only one jay.", "group": "msg_3", "usage": usage}),
    ];
    let mut text = String::new();
    for (at, event) in events.iter_mut().enumerate() {
        event["v"] = json!(1);
        event["session"] = json!(SESSION);
        event["cwd"] = json!(work);
        event["model"] = json!("claude-sonnet-4-5");
        event["id"] = json!(format!("3a9d1b1e-0000-4000-8000-0000000000{at:02}"));
        event["time"] = json!(format!("2026-03-02T09:14:{at:02}.000Z"));
        text += &format!("{event}\n");
    }
    text
}

/// All texts in a request.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// How many of the events a model must know are in a request.
fn assert_sent(request: &Value, events: &[Event<'_>]) -> usize {
    let mut sent = Vec::new();
    texts(request, &mut sent);
    let mut count = 0;
    for event in events {
        let said = match &event.body {
            Body::Message { role: Role::User | Role::Assistant, .. } | Body::ToolResult { .. } => event.text(),
            Body::ToolCall { name, input, call } => {
                let of_call = sent.iter().filter(|text| Some(text.as_str()) == call.as_deref()).count();
                assert_eq!(of_call, 2, "{call:?} and its result");
                let input: Value = serde_json::from_str(&input.to_json()).unwrap();
                assert!(sent.iter().any(|text| text == name), "{name}");
                let argument = input.as_object().unwrap().values().next().unwrap();
                argument.as_str().unwrap().to_owned()
            }
            _ => continue,
        };
        assert!(sent.iter().any(|text| text.contains(said.trim())), "{said:?} is not in the request: {request:#}");
        count += 1;
    }
    count
}

fn ask_pi(pi: &Path, folder: &Folder, address: &str, session: &str, question: &str) -> String {
    let models = json!([{"id": "local", "name": "local", "reasoning": false, "input": ["text"], "contextWindow": 100_000,
        "maxTokens": 8000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]);
    let provider = json!({"baseUrl": address, "apiKey": "none", "api": "anthropic-messages", "models": models});
    folder.write("home/.pi/agent/models.json", json!({"providers": {"local": provider}}).to_string());
    let mut command = Command::new(pi);
    command.args(["--provider", "local", "--model", "local", "--session", session, "-p", question]);
    command.current_dir(folder.path("work")).stdin(Stdio::null()).env("HOME", folder.path("home"));
    command.envs(OFFLINE).envs([("PI_OFFLINE", "1"), ("PI_TELEMETRY", "0"), ("PI_SKIP_VERSION_CHECK", "1")]);
    let done = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

#[test]
fn pi_resumes_a_session_of_another_agent_which_then_comes_back() {
    let Some(pi) = program("STENO_PI") else { return };
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("work")).unwrap();
    std::fs::create_dir_all(folder.path("home/.pi/agent")).unwrap();
    let work = folder.path("work").canonicalize().unwrap().display().to_string();
    let slug: String = work.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect();
    let original = format!("home/.claude/projects/{slug}/{SESSION}.jsonl");
    std::fs::create_dir_all(folder.path(&original).parent().unwrap()).unwrap();
    folder.write("native.jsonl", session(&work));
    folder.run(&format!("convert native.jsonl --to claude-code -o {original}")).ends(0);
    let before = folder.read(&original);

    let moved = folder.run(&format!("move {original} --to pi --root home --json")).ends(0).json().remove(0);
    let path = moved["path"].as_str().unwrap();
    let (address, requests) = serve();
    let said = ask_pi(&pi, &folder, &address, moved["session"].as_str().unwrap(), TURNS[0].question);
    assert!(said.contains(TURNS[0].answer), "{said}");

    let format = Registry::built_in().named("pi").unwrap();
    let written = stenograph::read::all(format, &std::fs::read(path).unwrap()).events;
    let request = requests.try_iter().last().unwrap();
    // The last answer is not in the request that it answers.
    assert_eq!(assert_sent(&request["messages"], &written[..written.len() - 1]), 9 + 3);

    let back = folder.run(&format!("move {path} --to claude-code --root home --json")).ends(0).json().remove(0);
    assert_eq!(back["result"], "appended", "{back:#}");
    let after = folder.read(&original);
    assert!(after.starts_with(&before));
    let new = String::from_utf8_lossy(&after[before.len()..]).into_owned();
    assert!([TURNS[0].question, TURNS[0].output, TURNS[0].answer].iter().all(|text| new.contains(text)), "{new}");
    let total = folder.run("usage --root home --json --no-index").ends(0).json().remove(0)["total"].clone();
    assert_eq!((&total["calls"], &total["output"]), (&json!(5), &json!(3 * 9 + 2 * OUTPUT_TOKENS)), "{total:#}");
}
