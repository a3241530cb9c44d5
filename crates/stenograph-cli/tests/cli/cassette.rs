//! `steno cassette`: the real server, with the vendors' own Python clients and with hostile clients.
//!
//! `STENO_PYTHON` names a Python that has the clients, as in continuous integration; else they are installed below
//! `target/python`. If that fails, the test says so and skips them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::runner::Folder;

/// Three answers: thoughts and two calls at once, a text, and another after a second question.
const TIDES: &str = r#"{"v":1,"kind":"message","time":"2026-03-02T09:00:00Z","session":"s1","role":"user","content":"Where is the tide table?"}
{"v":1,"kind":"thinking","time":"2026-03-02T09:00:00.2Z","model":"claude-sonnet-4-5","group":"msg_01","content":"Two places come to mind.","extra":{"agent":{"signature":"c2lnbmVk"}}}
{"v":1,"kind":"message","time":"2026-03-02T09:00:00.4Z","model":"claude-sonnet-4-5","group":"msg_01","role":"assistant","content":"I look in two places. 🌊"}
{"v":1,"kind":"tool_call","time":"2026-03-02T09:00:00.6Z","model":"claude-sonnet-4-5","group":"msg_01","name":"look","call":"c1","input":{"where":"harbour"}}
{"v":1,"kind":"tool_call","time":"2026-03-02T09:00:01Z","model":"claude-sonnet-4-5","group":"msg_01","name":"look","call":"c2","input":{"where":"office"},"usage":{"input":120,"output":45,"cache_read":30,"cache_write":7}}
{"v":1,"kind":"tool_result","time":"2026-03-02T09:00:02Z","name":"look","call":"c2","content":"nothing here"}
{"v":1,"kind":"tool_result","time":"2026-03-02T09:00:03Z","name":"look","call":"c1","content":"on the wall"}
{"v":1,"kind":"message","time":"2026-03-02T09:00:04Z","model":"claude-sonnet-4-5","group":"msg_02","role":"assistant","content":"It hangs on the wall."}
{"v":1,"kind":"message","time":"2026-03-02T09:00:05Z","role":"user","content":"And when is high water?"}
{"v":1,"kind":"message","time":"2026-03-02T09:00:06Z","model":"claude-sonnet-4-5","group":"msg_03","role":"assistant","content":"Soon after six."}
"#;

const QUESTION: &str =
    r#"{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"Where is the tide table?"}]}"#;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server.
pub struct Serving {
    pub child: Child,
    pub address: String,
    out: Receiver<String>,
    talk: Receiver<String>,
    _folder: Folder,
}

/// The response to a request.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Serving {
    pub fn start(session: &str, options: &str) -> Serving {
        let folder = Folder::with("session.jsonl", session);
        Serving::start_in(folder, "session.jsonl", options)
    }

    fn start_in(folder: Folder, file: &str, options: &str) -> Serving {
        let mut command = folder.command(&format!("cassette {file} {options}"));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = each_line(child.stdout.take().unwrap());
        let talk = each_line(child.stderr.take().unwrap());
        let address = out.recv_timeout(PATIENCE).expect("an address");
        let address = match address.split_once("\"listening\":\"") {
            Some((_, rest)) => rest.split('"').next().unwrap().to_owned(),
            None => address,
        };
        assert!(address.starts_with("http://127.0.0.1:"), "{address}");
        Serving { child, address, out, talk, _folder: folder }
    }

    fn connect(&self) -> TcpStream {
        connect(&self.address)
    }

    fn ask(&self, line: &str, headers: &str, body: &[u8]) -> Answer {
        ask(&self.address, line, headers, body)
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        self.ask(&format!("POST {path}"), "", body.as_bytes())
    }

    fn drift(&self) -> serde_json::Value {
        let answer = self.ask("GET /steno/drift", "", b"");
        assert_eq!(answer.status, 200);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// Waits until it prints this text.
    #[track_caller]
    pub fn says(&self, what: &str) {
        let mut lines = String::new();
        while let Ok(line) = self.talk.recv_timeout(PATIENCE) {
            if line.contains(what) {
                return;
            }
            lines += &format!("{line}\n");
        }
        panic!("{what} is not in:\n{lines}");
    }

    /// Ends it as Ctrl-C does; returns the exit code.
    #[cfg(unix)]
    fn stop(mut self) -> (i32, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let code = self.child.wait().unwrap().code().unwrap();
        (code, self.talk.iter().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends this head, with the headers that every request needs, and this body.
fn ask(address: &str, line: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = connect(address);
    let length = if headers.contains("ength:") || headers.contains("chunked") {
        String::new()
    } else {
        format!("content-length: {}\r\n", body.len())
    };
    let host = if headers.contains("host:") { "" } else { "host: localhost\r\n" };
    let head = format!("{line} HTTP/1.1\r\n{host}{length}{headers}connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    // The server may refuse a request before it has read all of it.
    let _ = stream.write_all(body);
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let all = String::from_utf8(all).unwrap();
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

fn each_line(out: impl Read + Send + 'static) -> Receiver<String> {
    let (found, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if found.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// A Python that has the clients.
pub fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = PYTHON.get_or_init(|| {
        if let Some(named) = std::env::var_os("STENO_PYTHON").filter(|value| !value.is_empty()) {
            return Some(PathBuf::from(named));
        }
        installed()
    });
    if found.is_none() {
        eprintln!("WARNING: the Python clients cannot be installed: the recording is not asked by them");
    }
    found.as_deref()
}

/// The Python below `target/`, with the required versions of the clients.
fn installed() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let wanted = root.join("tests/cassette/requirements.txt");
    // Only the models of trajectories are used of these, which need pydantic alone; the clients have it.
    let alone = root.join("tests/cassette/requirements-alone.txt");
    let both = [std::fs::read(&wanted).ok()?, std::fs::read(&alone).ok()?].concat();
    let folder = root.join("../../target/python");
    let (python, ready) = (folder.join("bin/python"), folder.join("ready.txt"));
    if std::fs::read(&ready).is_ok_and(|ready| ready == both) {
        return Some(python);
    }
    let done = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    let pip = |options: &[&str], wanted: &Path| {
        let mut command = Command::new(&python);
        done(command.args(["-m", "pip", "install", "--quiet"]).args(options).arg("-r").arg(wanted))
    };
    let made = done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)) && pip(&[], &wanted);
    if !made {
        return None;
    }
    pip(&["--no-deps", "--ignore-requires-python"], &alone);
    std::fs::write(&ready, both).ok()?;
    Some(python)
}

/// Runs the clients.
#[track_caller]
fn played_by(python: &Path, parts: &[(&str, &Serving)]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassette/clients.py");
    let mut command = Command::new(python);
    command.arg(script).args(parts.iter().flat_map(|(scenario, serving)| [*scenario, &serving.address]));
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_real_clients_go_through_a_recording_without_a_difference() {
    let Some(python) = python() else { return };
    let scenarios = ["anthropic", "anthropic-stream", "openai", "openai-stream", "responses", "responses-stream"];
    let mut parts = scenarios.map(|scenario| (scenario, Serving::start(TIDES, "--strict --once")));
    played_by(python, &parts.each_ref().map(|(scenario, serving)| (*scenario, serving)));
    for (scenario, serving) in &mut parts {
        serving.says("3 requests, 3 of 3 answers given, no drift");
        assert_eq!(serving.child.wait().unwrap().code(), Some(0), "{scenario}");
    }
}

#[test]
fn a_strict_server_for_one_run_ends_at_the_first_refusal() {
    let mut serving = Serving::start(TIDES, "--strict --once");
    assert_eq!(serving.post("/v1/messages", QUESTION).status, 200);
    assert_eq!(serving.post("/v1/messages", &QUESTION.replace("tide table", "lighthouse")).status, 409);
    serving.says("2 requests, 1 of 3 answers given, 1 drifted");
    assert_eq!(serving.child.wait().unwrap().code(), Some(1));
}

#[test]
fn real_clients_learn_where_they_drift_and_when_the_tape_ends() {
    let Some(python) = python() else { return };
    let serving = Serving::start(TIDES, "");
    played_by(python, &[("drifting", &serving)]);
    serving.says("request 2: drift: the request asks for model \"claude-other\", not \"claude-sonnet-4-5\"");
    serving.says("request 2: drift: result 5 changed: recorded \"on the wall\", requested \"in the drawer\"");
    serving.says("request 4: drift: the recording has ended");
}

#[test]
fn the_real_clients_get_their_own_errors_models_and_counts() {
    let Some(python) = python() else { return };
    let serving = Serving::start(TIDES, "--strict");
    let beside = Serving::start(TIDES, "");
    // Requests for models and token counts do not advance the tape.
    played_by(python, &[("strict", &serving), ("beside", &beside)]);
    serving.says("request 1: drift: user 1 changed");
}

#[test]
fn the_real_clients_are_answered_from_recordings_of_any_agent() {
    let Some(python) = python() else { return };
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stenograph/src/formats");
    let started = ["claude_code", "codex", "cycod_trajectory", "devflow", "openai_chat", "chibi"].map(|fixture| {
        let folder = formats.join(fixture).join("fixtures");
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.file_stem().is_some_and(|stem| stem == "demo"));
        let [file] = files.as_slice() else { panic!("{fixture}: {files:?}") };
        Serving::start_in(Folder::new(), file.to_str().unwrap(), "")
    });
    played_by(python, &started.each_ref().map(|serving| ("foreign", serving)));
}

#[test]
fn errors_have_the_shape_of_the_requested_vendor() {
    let serving = Serving::start(TIDES, "");
    for (path, shape) in [
        ("/v1/chat/completions", "{\"error\":{"),
        ("/v1/responses", "{\"error\":{"),
        ("/v1/messages", "{\"type\":\"error\",\"error\":{"),
    ] {
        for body in ["{", "", "[]", "{\"messages\":{}}", "{\"messages\":[{\"role\":\"king\"}]}"] {
            let answer = serving.post(path, body);
            assert_eq!(answer.status, 400, "{body}");
            assert!(answer.body.starts_with(shape), "{}", answer.body);
            assert!(answer.head.contains("x-should-retry: false"), "{}", answer.head);
        }
        let answer = serving.ask(&format!("GET {path}"), "", b"");
        assert_eq!((answer.status, answer.body.starts_with(shape)), (405, true), "{}", answer.body);
        let answer = serving.post(&format!("{path}/nowhere"), "{}");
        assert_eq!((answer.status, answer.body.starts_with(shape)), (404, true), "{}", answer.body);
    }
    let answer = serving.ask("POST /v1/nowhere", "anthropic-version: 2023-06-01\r\n", b"{}");
    assert_eq!((answer.status, answer.body.contains("not_found_error")), (404, true));
    assert_eq!(serving.drift()["requests"], 0);
}

#[test]
fn a_request_that_is_too_large_is_refused_with_or_without_a_stated_length() {
    let serving = Serving::start(TIDES, "");
    let answer = serving.ask("POST /v1/messages", "content-length: 1000000000\r\n", b"{\"messages\":[");
    assert_eq!((answer.status, answer.body.contains("request_too_large")), (413, true), "{}", answer.body);
    // Endless chunks, sent until the server stops reading.
    let mut stream = serving.connect();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut piece = b"100000\r\n".to_vec();
    piece.resize(piece.len() + (1 << 20), b'a');
    piece.extend(b"\r\n");
    let sent = (0..200).take_while(|_| stream.write_all(&piece).is_ok()).count();
    assert!(sent < 200, "all of it was taken");
    assert_eq!(serving.post("/v1/chat/completions", QUESTION).status, 200);
}

#[test]
fn only_programs_on_this_machine_are_answered() {
    let serving = Serving::start(TIDES, "");
    let line = "POST /v1/messages";
    for headers in ["host: evil.example\r\n", "host: 127.0.0.1.evil.example\r\n", "origin: https://evil.example\r\n"] {
        let answer = serving.ask(line, headers, QUESTION.as_bytes());
        assert_eq!((answer.status, answer.body.contains("permission_error")), (403, true), "{headers}");
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
    }
    assert_eq!(serving.ask("OPTIONS /v1/messages", "", b"").status, 405);
    let answer = serving.ask(line, "host: 127.0.0.1\r\n", QUESTION.as_bytes());
    assert_eq!(answer.status, 200);
    assert!(!answer.head.contains("access-control") && answer.head.contains("steno-drift: none"), "{}", answer.head);
    // Other machines cannot connect.
    assert!(serving.address.starts_with("http://127.0.0.1:"));
}

/// Side requests of agents: titles, tokens, models, health checks.
#[test]
fn a_side_request_does_not_advance_the_tape() {
    let title = r#"{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"A title for <session>Where is the tide table?</session>"}],
        "output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}"#;
    let serving = Serving::start(TIDES, "--json");
    for body in [title.to_owned(), title.replacen('{', "{\"stream\":true,", 1)] {
        let answer = serving.post("/v1/messages", &body);
        assert_eq!(answer.status, 200);
        assert!(answer.body.contains("end_turn") && !answer.body.contains("I look"), "{}", answer.body);
        assert!(answer.head.contains("steno-drift: none"), "{}", answer.head);
    }
    serving.says("request 1: is a side request, outside the recorded conversation: \"A title for");
    assert_eq!(serving.post("/v1/messages/count_tokens", QUESTION).status, 200);
    for path in ["GET /v1/models", "HEAD /", "HEAD /v1/models", "GET /"] {
        assert_eq!(serving.ask(path, "", b"").status, 200, "{path}");
    }
    let socket = serving.ask("GET /v1/responses", "upgrade: websocket\r\n", b"");
    assert_eq!(socket.status, 426, "{}", socket.body);
    let answer = serving.post("/v1/messages", QUESTION);
    assert!(answer.body.contains("I look in two places."), "{}", answer.body);
    let drift = serving.drift();
    assert_eq!((&drift["given"], &drift["side_requests"], &drift["drifted"]), (&1.into(), &2.into(), &0.into()));
    let strict = Serving::start(TIDES, "--strict");
    let answer = strict.post("/v1/messages", title);
    assert_eq!((answer.status, answer.body.contains("not part of the recorded conversation")), (409, true));
    assert_eq!(strict.post("/v1/messages", QUESTION).status, 200);
}

#[test]
fn recorded_errors_are_played_on_request() {
    let failure = |status: u16| {
        format!("{{\"v\":1,\"kind\":\"failure\",\"extra\":{{\"agent\":{{\"error\":{{\"status\":{status}}}}}}}}}\n")
    };
    let (first, rest) = TIDES.split_once('\n').unwrap();
    let session = format!("{first}\n{}{}{rest}", failure(529), failure(429));
    let serving = Serving::start(&session, "--errors --strict");
    for (path, status, shape) in [
        ("/v1/messages", 529, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\""),
        ("/v1/chat/completions", 429, "{\"error\":{\"message\":\"the recorded error 429\""),
    ] {
        let answer = serving.post(path, QUESTION);
        assert_eq!((answer.status, answer.body.starts_with(shape)), (status, true), "{}", answer.body);
        // The client is free to ask again.
        assert!(!answer.head.contains("x-should-retry"), "{}", answer.head);
    }
    let answer = serving.post("/v1/messages", QUESTION);
    assert_eq!((answer.status, answer.body.contains("I look in two places.")), (200, true), "{}", answer.body);
    serving.says("request 1: gets the recorded error 529");
    let without = Serving::start(&session, "--strict");
    assert_eq!(without.post("/v1/messages", QUESTION).status, 200);
}

#[test]
fn a_slow_client_does_not_delay_others() {
    let serving = Serving::start(TIDES, "");
    let mut slow = serving.connect();
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", QUESTION.len());
    slow.write_all(head.as_bytes()).unwrap();
    let (first, rest) = QUESTION.split_at(20);
    slow.write_all(first.as_bytes()).unwrap();
    let mut slower = serving.connect();
    slower.write_all(b"POST /v1/mess").unwrap();
    let quick = serving.post("/v1/messages", QUESTION);
    assert_eq!((quick.status, quick.body.contains("msg_01")), (200, true), "{}", quick.body);
    // The slow request arrives later.
    slow.write_all(rest.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(slow).read_line(&mut answer).unwrap();
    assert!(answer.contains("200"), "{answer}");
    assert_eq!(serving.drift()["given"], 2);
}

#[test]
fn a_client_that_disconnects_in_the_middle_is_reported_and_does_not_disturb_others() {
    let long = "and on ".repeat(2_000_000);
    let message_line =
        |text: &str| format!("{{\"v\":1,\"kind\":\"message\",\"role\":\"assistant\",\"content\":\"{text}\"}}\n");
    let user = "{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"go\"}\n";
    let serving = Serving::start(&format!("{user}{}{user}{}", message_line(&long), message_line("So.")), "");
    let mut stream = serving.connect();
    let body = r#"{"stream":true,"messages":[{"role":"user","content":"go"}]}"#;
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 2000]).unwrap();
    drop(stream);
    serving.says("request 1: the client disconnected before the end of the answer");
    let answer = serving.post("/v1/messages", body);
    assert!(answer.status == 200 && answer.body.contains("So."), "{}", answer.body);
}

#[test]
fn of_many_clients_at_once_each_gets_another_answer_in_the_order_in_which_they_came() {
    const CLIENTS: usize = 60;
    let turn = |number: usize| {
        format!(
            "{{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"go {number}\"}}\n\
             {{\"v\":1,\"kind\":\"message\",\"role\":\"assistant\",\"content\":\"answer {number}.\"}}\n"
        )
    };
    let serving = Serving::start(&(0..CLIENTS).map(turn).collect::<String>(), "--json");
    let address = serving.address.as_str();
    let bodies = std::thread::scope(|scope| {
        let asking = |number: usize| {
            let stream = number.is_multiple_of(2);
            let body =
                format!("{{\"stream\":{stream},\"messages\":[{{\"role\":\"user\",\"content\":\"go {number}\"}}]}}");
            ask(address, "POST /v1/messages", "", body.as_bytes()).body
        };
        let asked: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || asking(number))).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect::<Vec<String>>()
    });
    for number in 0..CLIENTS {
        let found = bodies.iter().filter(|body| body.contains(&format!("answer {number}."))).count();
        assert_eq!(found, 1, "answer {number} was given {found} times");
    }
    for request in 1..=CLIENTS {
        let report: serde_json::Value = serde_json::from_str(&serving.out.recv_timeout(PATIENCE).unwrap()).unwrap();
        assert_eq!((&report["request"], &report["answer"]), (&request.into(), &request.into()));
    }
}

#[test]
fn answers_take_their_recorded_time_on_request() {
    let serving = Serving::start(TIDES, "--timing");
    let begun = Instant::now();
    let body = QUESTION.replacen('{', "{\"stream\":true,", 1);
    let answer = serving.post("/v1/messages", &body);
    assert!(answer.body.contains("message_stop"));
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
#[cfg(unix)]
fn an_interrupted_recording_gives_its_account() {
    let serving = Serving::start(TIDES, "");
    assert_eq!(serving.post("/v1/messages", QUESTION).status, 200);
    let (code, talk) = serving.stop();
    assert_eq!(code, 0, "{talk}");
    assert!(talk.contains("1 request, 1 of 3 answers given, no drift"), "{talk}");
    let serving = Serving::start(TIDES, "");
    serving.post("/v1/messages", &QUESTION.replace("tide", "bus"));
    let (code, talk) = serving.stop();
    assert_eq!(code, 1, "{talk}");
    assert!(talk.contains("1 request, 1 of 3 answers given, 1 drifted, with 1 difference"), "{talk}");
}

#[test]
fn a_source_that_cannot_be_served_is_refused_at_once() {
    let folder = Folder::with("session.jsonl", TIDES);
    folder.write("talk.jsonl", "{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"go\"}\n");
    folder.run("cassette talk.jsonl").finds_nothing("no model answers");
    folder.run("cassette session.jsonl --thread a1").finds_nothing("no model answers of a sub-agent");
    folder.run("cassette session.jsonl --port 99999").ends(2);
    folder.run("replay session.jsonl --strict").ends(2);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    folder.run(&format!("cassette session.jsonl --port {port}")).fails("cannot listen on");
}
