//! The real agents work on sessions that `steno move` brought to them, and the sessions come back. A scripted model answers: each
//! turn is a call and then a text. The tests run if two variables name the programs, as in continuous integration; else they say
//! so and skip.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use crate::real::{OFFLINE, program};
use crate::runner::Folder;

/// A question, the command that the model calls, its output, and the answer. The output is not in the command.
pub struct Turn {
    pub question: &'static str,
    pub command: &'static str,
    pub output: &'static str,
    pub answer: &'static str,
}

pub const TURNS: [Turn; 3] = [
    Turn {
        question: "Which birds are there?",
        command: "echo her''ons",
        output: "herons",
        answer: "Only the long ones.",
    },
    Turn { question: "Which fish is there?", command: "echo mul''let", output: "mullet", answer: "Only the grey one." },
    Turn {
        question: "Which plants are there?",
        command: "echo sam''phire",
        output: "samphire",
        answer: "Only the salty one.",
    },
];

/// The tokens that every answer states.
pub const OUTPUT_TOKENS: u64 = 11;

/// Both programs, a home for them, and the model.
struct Agents {
    claude: PathBuf,
    codex: PathBuf,
    folder: Folder,
    address: String,
    requests: Receiver<Value>,
}

impl Agents {
    fn new() -> Option<Agents> {
        let (claude, codex) = (program("STENO_CLAUDE")?, program("STENO_CODEX")?);
        let folder = Folder::new();
        for made in ["work", "home/.codex"] {
            std::fs::create_dir_all(folder.path(made)).unwrap();
        }
        let (address, requests) = serve();
        let provider = format!(
            "model = \"gpt-5\"\nmodel_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nwire_api = \"responses\"\n\
             request_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\nbase_url = \"{address}/v1\"\n"
        );
        folder.write("home/.codex/config.toml", provider);
        folder.write("home/.codex/auth.json", "{\"OPENAI_API_KEY\":\"none\"}");
        Some(Agents { claude, codex, folder, address, requests })
    }

    /// Asks Claude Code; returns the longest request with the question.
    fn ask_claude(&self, resume: Option<&str>, turn: &Turn) -> String {
        let mut command = Command::new(&self.claude);
        command.args(["-p", turn.question, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash"]);
        command.args(resume.into_iter().flat_map(|id| ["--resume", id]));
        command.env("ANTHROPIC_API_KEY", "none").env("ANTHROPIC_BASE_URL", &self.address);
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        self.ask(command, turn)
    }

    /// Asks Codex; returns the longest request with the question.
    fn ask_codex(&self, resume: Option<&str>, turn: &Turn) -> String {
        let mut command = Command::new(&self.codex);
        command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]);
        command.args(resume.into_iter().flat_map(|id| ["resume", id])).arg(turn.question);
        self.ask(command, turn)
    }

    fn ask(&self, mut command: Command, turn: &Turn) -> String {
        command.current_dir(self.folder.path("work")).stdin(Stdio::null()).envs(OFFLINE);
        let done = command.env("HOME", self.folder.path("home")).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(said.contains(turn.answer), "{said}");
        let requests: Vec<String> = self.requests.try_iter().map(|request| request.to_string()).collect();
        // A request for a title has only the question.
        let asked = requests.into_iter().filter(|request| request.contains(turn.question));
        asked.max_by_key(String::len).expect("a request with the question")
    }

    /// The newest session file below a folder of the home.
    fn session(&self, below: &str) -> PathBuf {
        let found = sessions(&self.folder.path(below));
        found.into_iter().max_by_key(|path| path.metadata().unwrap().modified().unwrap()).expect("a session file")
    }

    fn steno(&self, line: &str) -> Value {
        self.folder.run(line).ends(0).json().remove(0)
    }

    /// The calls and output tokens in the home, from the files and from an index.
    fn usage(&self) -> Value {
        let total = |line: &str| self.steno(&format!("usage --root home --json {line}"))["total"].clone();
        let plain = total("--no-index");
        self.folder.run("index --root home").ends(0);
        assert_eq!(total(""), plain);
        plain
    }
}

fn sessions(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(sessions(&path)),
            false if path.extension().is_some_and(|end| end == "jsonl") => found.push(path),
            false => {}
        }
    }
    found
}

/// Every message, call and result of these turns is in the request.
#[track_caller]
fn assert_has(request: &str, turns: &[&Turn]) {
    for turn in turns {
        for expected in [turn.question, turn.command, turn.output, turn.answer] {
            assert!(request.contains(expected), "{expected:?} is not in the request: {request}");
        }
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap()
}

#[test]
fn a_session_of_claude_code_goes_on_in_codex_and_comes_back() {
    let Some(agents) = Agents::new() else { return };
    let [first, second, third] = &TURNS;
    agents.ask_claude(None, first);
    let original = agents.session("home/.claude/projects");
    let before = std::fs::read(&original).unwrap();
    let moved = agents.steno(&format!("move {} --to codex --root home --json", original.display()));
    assert_eq!(text(&moved, "result"), "placed");
    assert_has(&agents.ask_codex(Some(text(&moved, "session")), second), &[first]);
    let back = agents.steno(&format!("move {} --to claude-code --root home --json", text(&moved, "path")));
    assert_eq!(text(&back, "result"), "appended", "{back:#}");
    assert_eq!(PathBuf::from(text(&back, "path")), original);
    assert!(std::fs::read(&original).unwrap().starts_with(&before));
    assert_has(&agents.ask_claude(Some(text(&back, "session")), third), &[first, second]);
    assert_counted(&agents);
}

#[test]
fn a_session_of_codex_goes_on_in_claude_code_and_comes_back() {
    let Some(agents) = Agents::new() else { return };
    let [first, second, third] = &TURNS;
    agents.ask_codex(None, first);
    let original = agents.session("home/.codex/sessions");
    let before = std::fs::read(&original).unwrap();
    let moved = agents.steno(&format!("move {} --to claude-code --root home --json", original.display()));
    assert_eq!(text(&moved, "result"), "placed");
    assert_has(&agents.ask_claude(Some(text(&moved, "session")), second), &[first]);
    let back = agents.steno(&format!("move {} --to codex --root home --json --force", text(&moved, "path")));
    assert_eq!(text(&back, "result"), "appended", "{back:#}");
    assert_eq!(PathBuf::from(text(&back, "path")), original);
    assert!(std::fs::read(&original).unwrap().starts_with(&before));
    assert_has(&agents.ask_codex(Some(text(&back, "session")), third), &[first, second]);
    assert_counted(&agents);
}

#[cfg(unix)]
#[test]
fn claude_code_resumes_a_session_that_followed_its_folder() {
    let Some(agents) = Agents::new() else { return };
    let [first, second, _] = &TURNS;
    agents.ask_claude(None, first);
    let original = agents.session("home/.claude/projects");
    std::fs::rename(agents.folder.path("work"), agents.folder.path("renamed")).unwrap();
    let moved = agents.steno(&format!("move {} --cwd renamed --root home --json", original.display()));
    assert_eq!(text(&moved, "result"), "followed");
    assert!(!original.exists());
    // The agent works in the new folder.
    std::os::unix::fs::symlink("renamed", agents.folder.path("work")).unwrap();
    assert_has(&agents.ask_claude(Some(text(&moved, "session")), second), &[first]);
}

/// Three turns of two model calls each, wherever their copies are.
fn assert_counted(agents: &Agents) {
    let total = agents.usage();
    assert_eq!((&total["calls"], &total["output"]), (&json!(6), &json!(6 * OUTPUT_TOKENS)), "{total:#}");
}

/// A model for all agents. Returns its address, and the requests for answers.
pub fn serve() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (found, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let found = found.clone();
            std::thread::spawn(move || answer(stream, &found));
        }
    });
    (address, requests)
}

fn answer(mut stream: TcpStream, found: &Sender<Value>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut length, mut line, mut first) = (0, String::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if first.is_empty() {
            first.clone_from(&line);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let path = first.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let events = match path {
        "/v1/messages" => messages(&request),
        "/v1/responses" => responses(&request),
        _ => Vec::new(),
    };
    let reply: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
        .collect();
    let (status, kind) =
        if events.is_empty() { ("404 Not Found", "application/json") } else { ("200 OK", "text/event-stream") };
    let reply = if events.is_empty() { "{}".to_owned() } else { reply };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{reply}",
        reply.len()
    );
    let _ = stream.flush();
    if !events.is_empty() {
        let _ = found.send(request);
    }
}

/// The turn that a request is about: the one with the last question in it.
fn turn(items: &Value) -> &'static Turn {
    let said = items.to_string();
    let last = TURNS.iter().filter_map(|turn| Some((said.rfind(turn.question)?, turn))).max_by_key(|(at, _)| *at);
    last.map_or(&TURNS[0], |(_, turn)| turn)
}

/// A stream of the Messages API: a call, or an answer once the result is there.
fn messages(request: &Value) -> Vec<Value> {
    let all = request["messages"].as_array().cloned().unwrap_or_default();
    let turn = turn(&request["messages"]);
    let has_result = all.last().is_some_and(|last| last.to_string().contains("\"tool_result\""));
    // Agents spell the name of this tool differently.
    let tools = request["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
    let shell = tools.into_iter().find(|name| name.eq_ignore_ascii_case("bash"));
    let number = all.len();
    let id = format!("msg_{number:024}");
    let (block, delta, stop) = match shell.filter(|_| !has_result) {
        Some(shell) => (
            json!({"type": "tool_use", "id": format!("toolu_{number:024}"), "name": shell, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": json!({"command": turn.command}).to_string()}),
            "tool_use",
        ),
        None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": turn.answer}), "end_turn"),
    };
    let usage = json!({"input_tokens": 100 + number, "output_tokens": OUTPUT_TOKENS});
    vec![
        json!({"type": "message_start", "message": {"id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"input_tokens": 100 + number, "output_tokens": OUTPUT_TOKENS}}),
        json!({"type": "message_stop"}),
    ]
}

/// The same of the Responses API.
fn responses(request: &Value) -> Vec<Value> {
    let all = request["input"].as_array().cloned().unwrap_or_default();
    let turn = turn(&request["input"]);
    let has_result = all.last().is_some_and(|last| last["type"].as_str().is_some_and(|kind| kind.ends_with("_output")));
    let number = all.len();
    let item = match has_result {
        false => {
            json!({"type": "function_call", "id": format!("fc_{number:024}"), "call_id": format!("call_{number:020}"),
            "name": "exec_command", "arguments": json!({"cmd": turn.command}).to_string(), "status": "completed"})
        }
        true => {
            json!({"type": "message", "id": format!("msg_{number:024}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": turn.answer, "annotations": []}]})
        }
    };
    let id = format!("resp_{number:024}");
    let input = 200 + number as u64;
    let usage = json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": input + OUTPUT_TOKENS});
    vec![
        json!({"type": "response.created", "response": {"id": id, "object": "response", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": id, "object": "response", "status": "completed",
            "output": [item], "usage": usage}}),
    ]
}
