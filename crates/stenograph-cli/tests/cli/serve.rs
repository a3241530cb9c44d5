//! `steno serve`: the real server, asked by hostile clients and by a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::browser::Browser;
use crate::runner::Folder;

/// A session whose every text tries to become markup.
const HOSTILE: &str = r####"{"v":1,"kind":"message","time":"2026-03-02T09:00:00Z","session":"hostile-1","role":"user","content":"<script>alert(1)</script><img src=x onerror=alert(2)> [x](javascript:alert(3)) \u202e \u001b]8;;http://evil.example\u0007"}
{"v":1,"kind":"message","time":"2026-03-02T09:00:01Z","session":"hostile-1","role":"assistant","model":"<b>m</b>","content":"</article></main><h1>out</h1>"}
{"v":1,"kind":"tool_call","time":"2026-03-02T09:00:02Z","session":"hostile-1","name":"Bash","call":"c1","input":{"command":"echo '\"><script>alert(4)</script>'"}}
{"v":1,"kind":"tool_result","time":"2026-03-02T09:00:03Z","session":"hostile-1","name":"Bash","call":"c1","content":"<svg onload=alert(5)>","error":true}
{"v":1,"kind":"message","time":"2026-03-02T09:00:04Z","session":"hostile-1","role":"user","content":"And the harbour?"}
{"v":1,"kind":"message","time":"2026-03-02T09:00:05Z","session":"hostile-1","role":"assistant","content":"### The sea\nCalm.\n# The end"}
"####;

/// The hostile session once more, with another result and another end.
fn hostile_again() -> String {
    let again =
        HOSTILE.replace("hostile-1", "hostile-2").replace("<svg onload=alert(5)>", "<svg onload=alert(8)> twice");
    let mut lines: Vec<&str> = again.lines().collect();
    lines.pop();
    lines.join("\n") + "\n"
}

/// A session with a sub-agent, whose events are among those of the main agent.
fn team() -> String {
    let line = |thread: &str, number: u64| {
        format!(
            "{{\"v\":1,\"kind\":\"message\",\"time\":\"2026-03-04T09:00:{number:02}Z\",\"session\":\"team-1\",{thread}\"role\":\"assistant\",\"content\":\"tide {number}\"}}\n"
        )
    };
    (0..8).map(|number| line(if number > 4 { "\"thread\":\"pilot\"," } else { "" }, number)).collect()
}

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Serving {
    child: Child,
    address: String,
    token: String,
    pub link: String,
    _out: BufReader<std::process::ChildStdout>,
    folder: Folder,
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Serving {
    pub fn start() -> Serving {
        let folder = Folder::with("hostile.jsonl", HOSTILE);
        folder.write("other.jsonl", hostile_again());
        folder.write("team.jsonl", team());
        let mut long = String::new();
        for number in 0..400 {
            let (role, minute) = (if number % 2 == 0 { "user" } else { "assistant" }, number / 60);
            let second = number % 60;
            long += &format!(
                "{{\"v\":1,\"kind\":\"message\",\"time\":\"2026-03-03T09:{minute:02}:{second:02}Z\",\"session\":\"long-1\",\"role\":\"{role}\",\"content\":\"tide {number}\"}}\n"
            );
        }
        folder.write("long.jsonl", long);
        Serving::of(folder, "")
    }

    /// Indexes a folder and serves it.
    pub fn of(folder: Folder, options: &str) -> Serving {
        folder.run("index . --no-keep").ends(0);
        let mut command = folder.command(&format!("serve --json --no-index {options}"));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let text = |key: &str| said[key].as_str().unwrap().to_owned();
        let (address, token, link) = (text("listening"), text("token"), text("link"));
        Serving { child, address: address.replace("http://", ""), token, link, _out: out, folder }
    }

    fn ask(&self, line: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = if headers.contains("host:") { String::new() } else { format!("host: {}\r\n", self.address) };
        let head = format!("{line} HTTP/1.1\r\n{host}{headers}connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let all = String::from_utf8_lossy(&all);
        let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// Replaces a file that is served.
    pub fn write(&self, name: &str, text: &str) {
        self.folder.write(name, text);
    }

    fn bearer(&self) -> String {
        format!("authorization: Bearer {}\r\n", self.token)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), &self.bearer())
    }

    /// Sends a form as a program.
    pub fn post(&self, path: &str, body: &str) -> Answer {
        let media = "content-type: application/x-www-form-urlencoded";
        let length = body.len();
        let headers =
            format!("{}{media}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}", self.bearer());
        self.ask(&format!("POST {path}"), &headers)
    }

    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn only_the_right_host_origin_token_method_and_path_are_answered() {
    let server = Serving::start();
    let bearer = server.bearer();
    assert_eq!(server.get("/").status, 200);
    let port = server.address.rsplit(':').next().unwrap();
    for (line, headers, status) in [
        ("GET /", String::new(), 401),
        ("GET /sessions", "authorization: Bearer 0000\r\n".to_owned(), 401),
        ("GET /sessions", format!("cookie: steno-{port}=0000\r\n"), 401),
        ("GET /api/sessions", String::new(), 401),
        ("GET /nothing", String::new(), 401),
        ("GET /live", String::new(), 401),
        ("GET /assets/zzz", String::new(), 401),
        ("GET /assets/..%2FCargo.toml", String::new(), 401),
        ("GET /assets/zzz", bearer.clone(), 404),
        ("GET /nothing", bearer.clone(), 404),
        ("GET /sessions/nobody", bearer.clone(), 404),
        ("GET /sessions/..%2F..%2Fetc%2Fpasswd", bearer.clone(), 404),
        ("GET /assets/..%2FCargo.toml", bearer.clone(), 404),
        ("POST /sessions", bearer.clone(), 405),
        ("DELETE /sessions/long-1", bearer.clone(), 405),
        ("OPTIONS /sessions", bearer.clone(), 405),
        ("GET /", format!("{bearer}host: evil.example\r\n"), 421),
        ("GET /", format!("{bearer}host: localhost\r\n"), 421),
        ("GET /", format!("{bearer}origin: http://evil.example\r\n"), 403),
        ("GET /", format!("{bearer}origin: null\r\n"), 403),
        ("GET /", format!("{bearer}sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n"), 403),
        ("POST /login", String::new(), 403),
        ("GET /api/search", bearer.clone(), 400),
        ("GET /api/search?q=%2F%28", bearer.clone(), 400),
        ("GET /api/sessions?cursor=x", bearer.clone(), 400),
        ("GET /compare", bearer.clone(), 400),
        ("GET /compare?a=nobody", bearer.clone(), 404),
        ("GET /compare?a=long-1&b=nobody", bearer.clone(), 404),
        ("GET /compare?s=long-1&s=hostile-1&s=hostile-2", bearer.clone(), 400),
        ("GET /compare?s=long-1&s=hostile-1", bearer.clone(), 303),
        ("GET /api/compare?a=long-1", bearer.clone(), 400),
    ] {
        assert_eq!(server.ask(line, &headers).status, status, "{line} {headers}");
    }
}

#[test]
fn every_answer_forbids_other_sites_and_inline_scripts() {
    let server = Serving::start();
    for path in ["/", "/assets/app.js", "/api/sessions", "/nothing", "/sessions/hostile-1"] {
        let head = server.get(path).head;
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "x-content-type-options: nosniff",
            "referrer-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(header), "{path}: {head}");
        }
        assert!(!head.contains("access-control"), "{path}: {head}");
    }
}

#[test]
fn a_link_signs_in_one_browser_once_and_leaves_no_token_in_the_address() {
    let server = Serving::start();
    let path = server.link.split_once(&server.address).unwrap().1.to_owned();
    assert!(!path.contains(&server.token));
    assert_eq!(server.ask(&format!("HEAD {path}"), "").status, 401);
    let first = server.ask(&format!("GET {path}"), "");
    assert_eq!(first.status, 200);
    let cookie = first.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap().to_owned();
    assert!(cookie.contains("httponly; samesite=strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(server.ask("GET /sessions", &format!("cookie: {pair}\r\n")).status, 200);
    let again = server.ask(&format!("GET {path}"), "");
    assert_eq!((again.status, again.head.contains("set-cookie")), (401, false));
}

#[test]
fn no_text_of_a_transcript_becomes_markup() {
    let server = Serving::start();
    for path in [
        "/",
        "/sessions",
        "/sessions?q=alert",
        "/palette?q=alert",
        "/sessions/hostile-1",
        "/sessions/hostile-1/events?from=1",
        "/sessions/hostile-1/contents",
        "/sessions/hostile-1/lanes",
        "/compare?a=hostile-1",
        "/compare?a=hostile-1&b=hostile-2",
        "/compare?a=hostile-1&b=hostile-2&open=0",
        "/compare?a=%3Cscript%3Ealert(9)&b=hostile-2",
        "/sessions/hostile-1/changes",
        "/sessions/hostile-1/convert?to=codex",
        "/usage?by=model",
        "/sessions?q=%22%3E%3Cscript%3Ealert(6)%3C%2Fscript%3E",
        "/sessions?project=%3Cscript%3E",
        "/sessions/%3Cscript%3Ealert(7)",
    ] {
        let body = server.get(path).body.to_lowercase();
        assert!(
            !body.contains("<script>alert") && !body.contains("<img src=x") && !body.contains("<svg onload"),
            "{path}"
        );
        assert!(!body.contains("href=\"javascript:") && !body.contains("<h1>out"), "{path}");
        assert!(!body.contains('\u{202e}') && !body.contains('\u{1b}'), "{path}");
    }
}

#[test]
fn a_word_that_is_not_finished_finds_what_it_may_become() {
    let server = Serving::start();
    let found = |path: &str| server.get(path).body;
    let (list, palette) = (found("/sessions?q=harbo"), found("/palette?q=harbo"));
    assert!(list.contains(" of <code>harbo*</code>") && list.contains("/sessions/hostile-1"), "{list}");
    assert!(palette.contains("In all sessions") && palette.contains("/sessions/hostile-1"), "{palette}");
    // A whole word finds only itself, and one with a condition stays one.
    assert!(!found("/sessions?q=harbour").contains("<code>harbour*</code>"));
    assert!(found("/sessions?q=harbo%20").contains("Nothing found"), "a space ends the word");
    let hits = found("/sessions?q=tide&part=list");
    assert!(hits.contains("rel=\"next\"") && !hits.contains("part=list"), "{hits}");
    assert!(hits.contains("session%3A%22long-1%22") || hits.matches("class=\"row\"").count() == 1, "{hits}");
}

#[test]
fn pages_of_events_follow_each_other_without_gaps() {
    let server = Serving::start();
    let (mut seen, mut cursor) = (Vec::new(), "1".to_owned());
    loop {
        let page = server.json(&format!("/api/sessions/long-1/events?limit=150&cursor={cursor}"));
        seen.extend(page["events"].as_array().unwrap().iter().map(|event| event["number"].as_u64().unwrap()));
        match page["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, (1..=400).collect::<Vec<u64>>());
    let end = server.get("/sessions/long-1/events?at=end").body;
    assert!(end.contains("id=\"e400\"") && !end.contains("id=\"e100\"") && end.contains("data-last"), "{end}");
    let middle = server.get("/sessions/long-1/events?at=200").body;
    assert!(middle.contains("id=\"e200\"") && middle.contains("rel=\"prev\"") && middle.contains("rel=\"next\""));
    assert!(server.get("/sessions/long-1/events?from=100000").status == 200);
}

#[test]
fn a_session_that_grows_shows_its_new_events() {
    let server = Serving::start();
    let line = "{\"v\":1,\"kind\":\"message\",\"time\":\"2026-03-03T10:00:00Z\",\"session\":\"long-1\",\"role\":\"user\",\"content\":\"spring tide\"}\n";
    let mut bytes = server.folder.read("long.jsonl");
    bytes.extend_from_slice(line.as_bytes());
    server.folder.write("long.jsonl", bytes);
    let end = server.get("/sessions/long-1/events?at=end").body;
    assert!(end.contains("spring tide") && end.contains("id=\"e401\""), "{end}");
}

#[test]
fn answers_have_the_form_that_the_openapi_document_states() {
    let server = Serving::start();
    let document = server.json("/api/openapi.json");
    let asked = [
        ("/api/sessions", "/api/sessions?limit=1"),
        ("/api/sessions/{session}", "/api/sessions/long-1"),
        ("/api/sessions/{session}/events", "/api/sessions/hostile-1/events"),
        ("/api/sessions/{session}/contents", "/api/sessions/hostile-1/contents"),
        ("/api/compare", "/api/compare?a=hostile-1&b=hostile-2"),
        ("/api/search", "/api/search?q=tide&limit=2"),
        ("/api/runs", "/api/runs"),
        ("/api/usage", "/api/usage?by=model"),
        ("/api/openapi.json", "/api/openapi.json"),
    ];
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    let is_read =
        |path: &&String| document["paths"][path.as_str()].get("get").is_some() && path.as_str() != "/api/live";
    for path in paths.into_iter().filter(is_read) {
        let (_, address) =
            asked.iter().find(|(known, _)| known == path).unwrap_or_else(|| panic!("{path} is not tested"));
        let schema = &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let whole = serde_json::json!({ "$ref": schema["$ref"], "components": document["components"] });
        let answer = server.json(address);
        let checked = jsonschema::validate(&whole, &answer);
        assert!(checked.is_ok(), "{path}: {:?}\n{answer}", checked.err().map(|error| error.to_string()));
    }
}

#[test]
fn only_our_own_pages_and_programs_with_the_token_change_marks() {
    let server = Serving::start();
    let form =
        |body: &str| format!("content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n", body.len());
    let post = |path: &str, headers: &str, body: &str| {
        let headers = format!("{headers}{}", form(body));
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: {}\r\n{headers}connection: close\r\n\r\n{body}", server.address);
        stream.write_all(head.as_bytes()).unwrap();
        let mut all = String::new();
        let _ = stream.read_to_string(&mut all);
        all.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    let port = server.address.rsplit(':').next().unwrap();
    let cookie = format!("cookie: steno-{port}={}\r\n", server.token);
    let path = "/sessions/long-1/marks";
    assert_eq!(post(path, "", "pin=yes"), 401);
    assert_eq!(post(path, &cookie, "pin=yes"), 403);
    assert_eq!(post(path, &format!("{cookie}origin: http://evil.example\r\n"), "pin=yes"), 403);
    assert_eq!(server.json("/api/sessions/long-1")["session"]["pinned"], false);
    let own = format!("{cookie}origin: http://{}\r\n", server.address);
    assert_eq!(post(path, &own, "pin=yes&tag=tides"), 303);
    assert_eq!(post("/api/sessions/long-1/marks", &server.bearer(), "note=high%20water"), 200);
    assert_eq!(post("/api/sessions/long-1/marks", &server.bearer(), ""), 400);
    let session = server.json("/api/sessions/long-1");
    assert_eq!(
        (&session["session"]["pinned"], session["session"]["tags"][0].as_str()),
        (&Value::Bool(true), Some("tides"))
    );
    assert!(server.get("/sessions?q=is:pinned").body.contains("long-1"));
    assert!(server.get("/sessions/long-1").body.contains("high water"));
}

#[test]
fn two_sessions_are_compared_as_by_steno_diff() {
    let server = Serving::start();
    let said = server.folder.run("diff hostile.jsonl other.jsonl --json").ends(1).json();
    let changes: Vec<&Value> = said.iter().filter(|line| line.get("change").is_some()).collect();
    let answer = server.json("/api/compare?a=hostile-1&b=hostile-2");
    assert_eq!(answer["changes"].as_array().unwrap().iter().collect::<Vec<_>>(), changes);
    assert_eq!(&answer["summary"], said.last().unwrap());
    // The pages of a comparison follow each other.
    let (mut seen, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let page = server.json(&format!("/api/compare?a=hostile-1&b=hostile-2&limit=1&cursor={cursor}"));
        seen.extend(page["changes"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen.iter().collect::<Vec<_>>(), changes);
    let page = server.get("/compare?a=hostile-1&b=hostile-2").body;
    assert!(page.contains("3 equal steps") && page.contains("1 changed") && page.contains("1 only in A"), "{page}");
    assert!(page.contains("<ins>8</ins>") && page.contains("/sessions/hostile-1?at=4#e4"), "{page}");
    let open = server.get("/compare?a=hostile-1&b=hostile-2&open=0").body;
    assert!(open.contains("event 2 of B"), "{open}");
    assert!(server.get("/compare?a=long-1").body.contains("/compare?a=long-1&amp;b=hostile-1"));
    assert!(server.get("/sessions").body.contains("name=\"s\" value=\"long-1\""));
}

#[test]
fn every_agent_has_a_lane() {
    let server = Serving::start();
    let lanes = server.get("/sessions/team-1/lanes").body;
    assert_eq!(lanes.matches("class=\"lane\"").count(), 2, "{lanes}");
    assert!(
        lanes.contains(">main</a><small>5 events") && lanes.contains("at=6\" title=\"\">pilot</a><small>3 events"),
        "{lanes}"
    );
    assert!(server.get("/sessions/team-1").body.contains("data-load=\"/sessions/team-1/lanes\""));
}

#[test]
fn the_viewer_works_in_a_browser() {
    let Some(browser) = Browser::find() else { return };
    let server = Serving::start();
    browser.run("viewer.mjs", &[&server.link]);
}
