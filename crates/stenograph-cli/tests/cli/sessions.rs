//! Which files are one session: recordings in every layout, conversions, agents by their ids. Each is listed once and opened by its id.

use std::io::Write;
use std::process::Stdio;

use crate::runner::{Done, Folder, NATIVE};

const SESSION: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

/// Runs in a folder that is the home folder too.
fn run(folder: &Folder, line: &str, input: &[u8]) -> Done {
    let mut command = folder.command(line);
    command.env("HOME", folder.path("")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    Done { code: output.status.code().unwrap(), out: output.stdout, talk }
}

fn listed(folder: &Folder) -> Vec<serde_json::Value> {
    run(folder, "index --root .", b"").ends(0);
    run(folder, "list --root . --json", b"").ends(0).json()
}

/// Records the same four events and gives the folder.
fn recorded(to: &str) -> Folder {
    let folder = Folder::new();
    run(&folder, &format!("record --from steno {to}"), NATIVE.as_bytes()).ends(0);
    folder
}

#[test]
fn a_recording_is_one_session_in_every_layout_and_opens_by_its_id_with_everything() {
    for to in [
        "--to steno:out.steno.jsonl",
        "--to chibi:.chibi/contexts/walrus",
        "--to cycod:talk.jsonl",
        "--to cycod",
        "--to devflow",
        "--to leslie --set thread=t1",
        "--to claude-events --set session=s1 --set agent=a1",
    ] {
        let folder = recorded(to);
        for round in 0..2 {
            let sessions = listed(&folder);
            assert_eq!(sessions.len(), 1, "{to}: {sessions:#?} {:?}", folder.names());
            let id = sessions[0]["session"].as_str().unwrap_or_default().to_owned();
            assert_eq!(sessions[0]["calls"], 1, "{to} {round}: {sessions:#?}");
            let shown = run(&folder, &format!("show --root . {id} --json"), b"").ends(0).json();
            let kinds: Vec<&str> = shown.iter().filter_map(|event| event["kind"].as_str()).collect();
            for kind in ["message", "tool_call", "tool_result"] {
                assert_eq!(kinds.iter().filter(|other| **other == kind).count(), 1, "{to} {id}: {kinds:?}");
            }
            folder.run(&format!("audit --root . {id}")).ends(0).says("Bash");
        }
    }
}

fn claude(number: u32, role: &str, content: &str) -> String {
    let parent = if number == 1 { "null".to_owned() } else { format!("\"u{:07}\"", number - 1) };
    format!(
        r#"{{"type":"{role}","uuid":"u{number:07}","parentUuid":{parent},"sessionId":"{SESSION}","timestamp":"2026-01-02T03:0{number}:00.000Z","cwd":"/work/app","version":"2.0.0","message":{{"role":"{role}","content":{content}}}}}"#
    ) + "\n"
}

fn claude_session() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(&format!(".claude/projects/-work-app/{SESSION}/subagents"))).unwrap();
    let talk = claude(1, "user", "\"find the walrus\"")
        + &claude(2, "assistant", r#"[{"type":"text","text":"On the ice."}]"#)
        + &claude(3, "user", "\"thank you\"");
    folder.write(&format!(".claude/projects/-work-app/{SESSION}.jsonl"), talk);
    let side = claude(4, "user", "\"look around\"")
        .replace("\"type\"", "\"isSidechain\":true,\"agentId\":\"a77bc2\",\"type\"");
    folder.write(&format!(".claude/projects/-work-app/{SESSION}/subagents/agent-a77bc2.jsonl"), side);
    folder
}

#[test]
fn a_conversion_is_known_as_a_copy_and_the_id_means_the_original() {
    let folder = claude_session();
    let source = format!(".claude/projects/-work-app/{SESSION}.jsonl");
    std::fs::create_dir_all(folder.path(".codex/sessions")).unwrap();
    for to in ["", "--carry"] {
        let target = format!(".codex/sessions/rollout-2026-01-02T03-01-00-{SESSION}.jsonl");
        let _ = std::fs::remove_file(folder.path(&target));
        folder.run(&format!("convert {source} --to codex {to} -o {target}"));
        let sessions = listed(&folder);
        assert_eq!(sessions.len(), 1, "{sessions:#?}");
        assert_eq!(sessions[0]["agent"], "claude-code");
        assert_eq!(sessions[0]["messages"], 4);
        folder.run(&format!("show --root . {SESSION}")).ends(0).says("On the ice");
        folder.run(&format!("show --root . {target}")).ends(0).says("On the ice");
    }
}

#[test]
fn an_agent_is_opened_by_its_id_alone_and_with_its_session() {
    let folder = claude_session();
    folder.run("index --root .").ends(0);
    let short = &SESSION[..8];
    for name in ["a77bc2".to_owned(), format!("{SESSION}/a77bc2"), format!("{short}/a77")] {
        let shown = folder.run(&format!("show --root . {name}"));
        shown.ends(0);
        assert!(shown.text().contains("look around") && !shown.text().contains("walrus"), "{name}: {}", shown.text());
        assert!(folder.run(&format!("tail --root . {name}")).ends(0).text().contains("look around"));
    }
    folder.run(&format!("show --root . {short}/nobody")).ends(2);
}

#[test]
fn what_a_layout_leaves_empty_is_no_unknown_format() {
    let folder = recorded("--to claude-events --set session=s1 --set agent=a1");
    assert_eq!(folder.read(".goodvibes/state/agent-tracking.json"), b"{}");
    let done = folder.run("index --root .");
    done.ends(0);
    assert!(!done.talk.contains("agent-tracking") && !done.text().contains("agent-tracking"), "{done:?}");
}

fn native(number: usize, content: &str) -> String {
    let minute = number / 60 % 60;
    let (second, hour) = (number % 60, number / 3600);
    format!(
        "{{\"v\":1,\"kind\":\"message\",\"time\":\"2026-03-02T{hour:02}:{minute:02}:{second:02}Z\",\"session\":\"{SESSION}\",\"id\":\"event-{number:08}\",\"role\":\"user\",\"content\":\"{content}\"}}\n"
    )
}

#[test]
fn the_last_events_of_a_huge_file_are_read_from_its_end() {
    let folder = Folder::with("a.steno.jsonl", native(1, "first"));
    let mut file = std::fs::File::options().write(true).open(folder.path("a.steno.jsonl")).unwrap();
    // A hole takes no room on the disk, and reading through it would take minutes.
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(100 << 30)).unwrap();
    write!(file, "\n{}{}{}", native(2, "two"), native(3, "three"), native(4, "four")).unwrap();
    let shown = folder.run("show a.steno.jsonl --last 2 --text");
    assert_eq!(shown.ends(0).text(), "three\n\nfour\n");
}

#[test]
fn an_event_of_an_indexed_session_is_read_from_its_position() {
    let folder = Folder::new();
    let name = format!("{SESSION}.steno.jsonl");
    let text: Vec<String> =
        (1..=3000).map(|number| native(number, &format!("walrus {number} {}", "x".repeat(200)))).collect();
    folder.write(&name, text.concat());
    folder.run("index --root .").ends(0);
    // One record in the middle becomes two: whoever counts from the beginning comes to other numbers.
    let modified = folder.path(&name).metadata().unwrap().modified().unwrap();
    let short = native(1000, "short");
    let rest = text[999].len() - short.len();
    let other = native(1000, &"y".repeat(rest - native(1000, "").len()));
    let mut changed = text.clone();
    changed[999] = short + &other;
    assert_eq!(changed[999].len(), text[999].len());
    folder.write(&name, changed.concat());
    std::fs::File::options().write(true).open(folder.path(&name)).unwrap().set_modified(modified).unwrap();
    for named in [SESSION, &name] {
        let shown = folder.run(&format!("show --root . {named} --event 2500 --text"));
        assert!(shown.ends(0).text().starts_with("walrus 2500 "), "{named}: {}", shown.text());
    }
}

#[test]
fn a_text_for_people_has_the_title_and_the_time_of_its_header() {
    let folder = Folder::new();
    let demo = include_str!("../../../stenograph/src/formats/leslie/fixtures/demo.txt");
    std::fs::create_dir_all(folder.path(".leslie/threads/t1/.meta/transcripts")).unwrap();
    folder.write(".leslie/threads/t1/.meta/transcripts/one.txt", demo);
    let sessions = listed(&folder);
    assert_eq!(sessions.len(), 1);
    assert!(sessions[0]["asked"].as_str().is_some_and(|asked| asked.contains("leap_days")), "{sessions:#?}");
    assert_eq!(sessions[0]["started"], "2026-03-02T09:14:05.061Z");
    folder.run("find --root . leap_days after:2026-03-01 before:2026-03-04").ends(0);
    assert_eq!(folder.run("find --root . leap_days after:2026-03-04").code, 1);
}
