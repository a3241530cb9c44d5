//! `steno serve --redact`: no answer reveals a secret.

use serde_json::Value;

use crate::runner::Folder;
use crate::serve::Serving;

const TOKEN: &str = "ghp_x7Kq2mZ9Lr4Tn8Wv1Bc5Yd3Fh6Js0PaGe1Ku";
const PASSWORD: &str = "Zq81hs72kdWv";
const CUT: &str = "xoxb-263594206564-2343594206574-FGqddMF8t08v8N7Oq4i57vs1";
const JWT: &str =
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jK7d9FQ1cVv5p0mKqN8aTb2XwYzR4uE";
const SECRETS: [&str; 8] =
    [TOKEN, PASSWORD, "xoxb-2635942", JWT, "kimberly", "mira.k@harbour-office.ch", "s3cr3tPw77", "Qm5vYt81KsLw"];

/// A session with secrets of several kinds. The first prompt uses a password that only a later result assigns, and its title ends in
/// the middle of a token.
fn session(name: &str) -> String {
    let events = [
        r#""kind":"message","role":"user","content":"log in with Zq81hs72kdWv as kimberly FILL CUT and then look at the harbour""#,
        r#""kind":"tool_call","name":"Bash","call":"c1","input":{"command":"curl -H 'Authorization: Bearer JWT' https://x.example; cat .env"}"#,
        r#""kind":"tool_result","name":"Bash","call":"c1","content":"DB_PASSWORD=Zq81hs72kdWv\nGITHUB=TOKEN\nSLACK=CUT\nmail mira.k@harbour-office.ch","error":true"#,
        r#""kind":"tool_call","name":"Write","call":"c2","input":{"file_path":"/home/kimberly/harbour/config.py","content":"DATABASE = 'postgres://kimberly:s3cr3tPw77@db.example/tides'\nAPI_KEY = 'Qm5vYt81KsLw'\n"}"#,
        r#""kind":"tool_result","name":"Write","call":"c2","content":"done","error":false"#,
        r#""kind":"message","role":"assistant","content":"The harbour uses TOKEN and Zq81hs72kdWv.""#,
    ];
    let fill = "about the tides ".repeat(8);
    let line = |(at, event): (usize, &&str)| {
        let event = event.replace("FILL", &fill).replace("CUT", CUT).replace("JWT", JWT).replace("TOKEN", TOKEN);
        format!(
            "{{\"v\":1,\"time\":\"2026-03-02T09:00:0{at}Z\",\"session\":\"{name}\",\"cwd\":\"/home/kimberly/harbour\",{event}}}\n"
        )
    };
    events.iter().enumerate().map(line).collect()
}

fn served() -> Serving {
    let folder = Folder::with("one.jsonl", session("open-1"));
    folder.write("two.jsonl", session("open-2").replace("done", "written, token TOKEN").replace("TOKEN", TOKEN));
    folder.run("index . --no-keep").ends(0);
    folder.run(&format!("mark open-1 --note {PASSWORD} --tag {PASSWORD}")).ends(0);
    Serving::of(folder, "--redact")
}

#[test]
fn no_answer_of_a_redacted_server_has_a_secret() {
    let server = served();
    let mut addresses: Vec<String> = [
        "/",
        "/overview/runs",
        "/overview/usage",
        "/sessions",
        "/sessions?view=tree",
        "/sessions?q=harbour",
        "/sessions?q=github",
        "/sessions?q=database",
        "/sessions?q=Zq81hs72kdWv",
        "/palette?q=harbour",
        "/palette?q=login",
        "/compare?a=open-1",
        "/compare?a=open-1&b=open-2",
        "/compare?a=open-1&b=open-2&open=0",
        "/usage",
        "/usage?by=project",
        "/usage?by=session",
        "/usage?by=model",
        "/sessions/open-1?at=end",
        "/sessions/nobody",
        "/api/sessions",
        "/api/search?q=harbour",
        "/api/search?q=database",
        "/api/compare?a=open-1&b=open-2",
        "/api/runs",
        "/api/usage?by=project",
        "/api/openapi.json",
    ]
    .map(str::to_owned)
    .to_vec();
    for session in ["open-1", "open-2"] {
        for part in ["", "/events", "/contents", "/lanes", "/changes", "/convert?to=codex", "/convert"] {
            addresses.push(format!("/sessions/{session}{part}"));
        }
        for to in ["steno", "codex", "claude-code"] {
            addresses.push(format!("/sessions/{session}/download?to={to}"));
        }
        for part in ["", "/events", "/contents"] {
            addresses.push(format!("/api/sessions/{session}{part}"));
        }
    }
    for address in &addresses {
        let answer = server.get(address);
        let is_asked = |secret: &str| address.contains(secret);
        for secret in SECRETS.into_iter().filter(|secret| !is_asked(secret)) {
            assert!(
                !answer.body.contains(secret) && !answer.head.contains(secret),
                "{address} has {secret}:\n{}",
                answer.body
            );
        }
        assert!(answer.status == 200 || address.contains("nobody"), "{address}: {}", answer.status);
    }
    // The answers are still about the same events, and the pages say what was done to them.
    assert!(server.get("/sessions/open-1").body.contains(">redacted</span>"));
    let events = server.json("/api/sessions/open-1/events");
    assert_eq!(events["events"].as_array().unwrap().len(), 6);
    let text = events["events"][5]["event"]["content"].as_str().unwrap();
    assert!(text.starts_with("The harbour uses [redacted:github-pat:"), "{text}");
    let file = server.get("/sessions/open-1/download?to=steno").body;
    let line: Value = serde_json::from_str(file.lines().find(|line| line.contains("Bearer")).unwrap().trim()).unwrap();
    assert!(line["input"]["command"].as_str().unwrap().contains("[redacted:"), "{line}");
}

#[test]
fn a_secret_that_a_session_gains_is_masked_in_what_it_said_before() {
    const LATE: &str = "Vt93kqLm20Xs";
    let line = |second: u64, role: &str, text: &str| {
        format!(
            "{{\"v\":1,\"kind\":\"message\",\"time\":\"2026-03-02T09:00:0{second}Z\",\"session\":\"grows\",\"role\":\"{role}\",\"content\":\"{text}\"}}\n"
        )
    };
    let begun = line(0, "user", &format!("use {LATE}"));
    let server = Serving::of(Folder::with("grows.jsonl", &begun), "--redact");
    // Nothing tells yet that it is a password.
    assert!(server.get("/sessions/grows/events").body.contains(LATE));
    server.write("grows.jsonl", &(begun + &line(1, "assistant", &format!("DB_PASSWORD={LATE}"))));
    assert!(!server.get("/sessions/grows/events").body.contains(LATE));
    assert!(!server.get("/sessions/grows/contents").body.contains(LATE));
}

#[test]
fn a_server_that_is_not_redacted_masks_nothing() {
    let server = Serving::of(Folder::with("one.jsonl", session("open-1")), "");
    let page = server.get("/sessions/open-1").body;
    assert!(page.contains(PASSWORD) && !page.contains(">redacted</span>"));
}
