//! The real agents continue converted sessions. Each test runs if a variable names the agent's program, as in continuous
//! integration; else it says so and skips.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use stenograph::json::Object;

use crate::runner::Folder;

/// The time limit of a real program.
const PATIENCE: Duration = Duration::from_secs(120);

/// All other network access goes to a closed port.
pub const OFFLINE: [(&str, &str); 4] = [
    ("HTTP_PROXY", "http://127.0.0.1:9"),
    ("HTTPS_PROXY", "http://127.0.0.1:9"),
    ("ALL_PROXY", "http://127.0.0.1:9"),
    ("NO_PROXY", "127.0.0.1"),
];

pub fn program(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    if found.is_none() {
        eprintln!("{variable} names no program: the real agent is not asked");
    }
    found
}

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../stenograph/src/formats").join(path)
}

fn converted(folder: &Folder, from: &str, to: &str, name: &str) {
    let line = format!("convert {} --to {to} -o {name}", fixture(from).display());
    folder.run(&line).ends(0);
}

#[test]
fn codex_lists_reads_and_resumes_a_session_of_another_agent() {
    let Some(codex) = program("STENO_CODEX") else { return };
    let folder = Folder::new();
    let sessions = folder.path("home/sessions/2026/03/02");
    std::fs::create_dir_all(&sessions).unwrap();
    let id = "8c1f5a52-3d0e-4c6b-9a57-2f1e0b7d4c10";
    let name = format!("home/sessions/2026/03/02/rollout-2026-03-02T09-14-05-{id}.jsonl");
    converted(&folder, "claude_code/fixtures/demo.jsonl", "codex", &name);
    let mut server = Command::new(codex)
        .arg("app-server")
        .env("CODEX_HOME", folder.path("home"))
        .envs(OFFLINE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ask = server.stdin.take().unwrap();
    let answers = lines(server.stdout.take().unwrap());
    let mut call = |number: u32, method: &str, params: &str| {
        writeln!(ask, "{{\"id\":{number},\"method\":\"{method}\",\"params\":{params}}}").unwrap();
        answer(&answers, number)
    };
    call(1, "initialize", "{\"clientInfo\":{\"name\":\"test\",\"version\":\"0\"}}");
    assert!(call(2, "thread/list", "{\"limit\":9}").contains(id));
    let read = call(3, "thread/read", &format!("{{\"threadId\":\"{id}\",\"includeTurns\":true}}"));
    assert_eq!((read.matches("\"userMessage\"").count(), read.matches("\"agentMessage\"").count()), (2, 3), "{read}");
    let resumed = call(4, "thread/resume", &format!("{{\"threadId\":\"{id}\"}}"));
    assert!(Object::parse(&resumed).unwrap().has("result"), "{resumed}");
    server.kill().unwrap();
    server.wait().unwrap();
}

fn lines(out: impl Read + Send + 'static) -> Receiver<String> {
    let (found, answers) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if found.send(line).is_err() {
                return;
            }
        }
    });
    answers
}

fn answer(answers: &Receiver<String>, number: u32) -> String {
    loop {
        let line = answers.recv_timeout(PATIENCE).expect("an answer");
        if Object::parse(&line).unwrap().peek("id") == Some(number.to_string().as_str()) {
            return line;
        }
    }
}

#[test]
fn claude_code_resumes_a_session_of_another_agent_with_all_of_its_tools() {
    let Some(claude) = program("STENO_CLAUDE") else { return };
    let folder = Folder::new();
    let id = "01990f2a-6c1e-7b30-9d44-0a5be1c7f310";
    let projects = projects(&folder);
    converted(&folder, "codex/fixtures/session.jsonl", "claude-code", &format!("{projects}/{id}.jsonl"));
    let conversation = conversation_sent_by_claude(&claude, &folder, id);
    for expected in [
        "Why is high tide an hour late?",
        "\"exec_command\"",
        "src/clock.rs:12: utc",
        "\"apply_patch\"",
        "High tide is right again.",
    ] {
        assert!(conversation.contains(expected), "{expected} is not in what Claude Code would send");
    }
}

/// Creates a working folder; returns the folder in which Claude Code looks for its sessions.
fn projects(folder: &Folder) -> String {
    std::fs::create_dir_all(folder.path("work")).unwrap();
    let work = folder.path("work").canonicalize().unwrap();
    let slug: String =
        work.to_string_lossy().chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect();
    let projects = format!("home/projects/{slug}");
    std::fs::create_dir_all(folder.path(&projects)).unwrap();
    projects
}

/// The conversation that Claude Code sends when it resumes a session.
fn conversation_sent_by_claude(claude: &Path, folder: &Folder, id: &str) -> String {
    let (address, requests) = listen();
    let done = Command::new(claude)
        .args(["--resume", id, "-p", "hi", "--output-format", "json"])
        .current_dir(folder.path("work"))
        .env("HOME", folder.path("home"))
        .env("CLAUDE_CONFIG_DIR", folder.path("home"))
        .envs(OFFLINE)
        .env("ANTHROPIC_API_KEY", "none")
        .env("ANTHROPIC_BASE_URL", address)
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(!stdout.contains("No conversation found"), "{stdout}");
    requests.try_iter().find(|body| body.contains("\"messages\"")).expect("a request with the conversation")
}

/// A conversation of two turns with a tool in each.
const TIDES: &str = r#"{"v":1,"kind":"message","time":"2026-03-02T09:00:01Z","session":"8c1f5a52-3d0e-4c6b-9a57-2f1e0b7d4c10","role":"user","content":"Where is the tide table?"}
{"v":1,"kind":"tool_call","time":"2026-03-02T09:00:02Z","name":"look","call":"c1","input":{"where":"harbour"}}
{"v":1,"kind":"tool_result","time":"2026-03-02T09:00:03Z","name":"look","call":"c1","content":"on the wall"}
{"v":1,"kind":"message","time":"2026-03-02T09:00:04Z","role":"assistant","content":"It hangs on the wall."}
{"v":1,"kind":"message","time":"2026-03-02T09:00:05Z","role":"user","content":"And when is high water?"}
{"v":1,"kind":"tool_call","time":"2026-03-02T09:00:06Z","name":"look","call":"c2","input":{"where":"wall"}}
{"v":1,"kind":"tool_result","time":"2026-03-02T09:00:07Z","name":"look","call":"c2","content":"a quarter past six"}
{"v":1,"kind":"message","time":"2026-03-02T09:00:08Z","role":"assistant","content":"Soon after six."}
"#;

const TIDES_ID: &str = "8c1f5a52-3d0e-4c6b-9a57-2f1e0b7d4c10";

/// Converts the conversation for another system and compacts it to the summary and the newest turn, or its last answer.
fn compacted(folder: &Folder, to: &str, name: &str, keep: &str) {
    folder.write("tides.jsonl", TIDES);
    folder.run(&format!("convert tides.jsonl --to {to} -o {name}")).ends(0);
    folder.run(&format!("compact {name} {keep} --in-place --summary They-found-the-table.")).ends(0);
}

/// Checks which parts of the conversation the agent sends after compacting.
fn assert_conversation(conversation: &str, keep: &str) {
    let turn = ["And when is high water?", "a quarter past six"];
    let (kept, removed): (&[&str], &[&str]) = if keep == "--keep 1" { (&turn, &[]) } else { (&[], &turn) };
    for expected in kept.iter().chain(&["They-found-the-table.", "Soon after six."]) {
        assert!(conversation.contains(expected), "{keep}: {expected} is not in what would be sent: {conversation}");
    }
    for unexpected in removed.iter().chain(&["Where is the tide table?", "on the wall"]) {
        assert!(!conversation.contains(unexpected), "{keep}: {unexpected} is in what would be sent");
    }
}

/// A turn, and only the answer after the last result.
const KEEPS: [&str; 2] = ["--keep 1", "--keep-tokens 5"];

#[test]
fn claude_code_continues_from_a_summary_and_the_kept_part() {
    let Some(claude) = program("STENO_CLAUDE") else { return };
    for keep in KEEPS {
        let folder = Folder::new();
        let projects = projects(&folder);
        compacted(&folder, "claude-code", &format!("{projects}/{TIDES_ID}.jsonl"), keep);
        assert_conversation(&conversation_sent_by_claude(&claude, &folder, TIDES_ID), keep);
    }
}

#[test]
fn codex_continues_from_a_summary_and_the_kept_part() {
    let Some(codex) = program("STENO_CODEX") else { return };
    for keep in KEEPS {
        let folder = Folder::new();
        for made in ["work", "home/sessions/2026/03/02"] {
            std::fs::create_dir_all(folder.path(made)).unwrap();
        }
        let name = format!("home/sessions/2026/03/02/rollout-2026-03-02T09-00-01-{TIDES_ID}.jsonl");
        compacted(&folder, "codex", &name, keep);
        let (address, requests) = listen();
        let provider =
            "model_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nwire_api = \"responses\"\n";
        let retries = "request_max_retries = 0\nstream_max_retries = 0\n";
        folder.write("home/config.toml", format!("{provider}{retries}base_url = \"{address}/v1\"\n"));
        let mut command = Command::new(&codex);
        command.args(["exec", "--skip-git-repo-check", "resume", TIDES_ID, "hi"]).current_dir(folder.path("work"));
        command.env("CODEX_HOME", folder.path("home")).envs(OFFLINE).stdin(Stdio::null());
        let done = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        let conversation = requests.try_iter().find(|body| body.contains("\"input\""));
        assert_conversation(
            &conversation.unwrap_or_else(|| panic!("no request with the conversation: {stderr}")),
            keep,
        );
    }
}

/// A server that refuses every request and remembers it.
fn listen() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (found, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let found = found.clone();
            std::thread::spawn(move || refuse(stream, &found));
        }
    });
    (address, requests)
}

fn refuse(mut stream: TcpStream, found: &Sender<String>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_ok() {
        let _ = found.send(String::from_utf8_lossy(&body).into_owned());
    }
    let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"refused"}}"#;
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
}
