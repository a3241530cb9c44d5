//! Words in a record that wrongly claims to repeat another: every command shows them, once.

use std::fs;

use serde_json::{Value, json};

use crate::runner::Folder;

const SESSION: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

fn line(second: u32, kind: &str, payload: &Value) -> String {
    let time = format!("2026-01-02T03:10:{second:02}.000Z");
    json!({"timestamp": time, "type": kind, "payload": payload}).to_string() + "\n"
}

/// A record for people.
fn notice(second: u32, kind: &str, text: &str) -> String {
    line(second, "event_msg", &json!({"type": kind, "message": text}))
}

/// A record of the model's input or output.
fn item(second: u32, role: &str, text: &str) -> String {
    let kind = if role == "user" { "input_text" } else { "output_text" };
    let content = json!([{"type": kind, "text": text}]);
    line(second, "response_item", &json!({"type": "message", "role": role, "content": content}))
}

/// A session whose first question only the record for people states. The answer first appears for people, the thanks first for
/// the model.
fn session() -> Vec<String> {
    let header = json!({"id": SESSION, "timestamp": "2026-01-02T03:10:00.000Z", "cwd": "/work/app", "originator": "codex",
        "cli_version": "0.50.0"});
    vec![
        line(0, "session_meta", &header),
        notice(1, "user_message", "find the walrus"),
        notice(2, "agent_message", "The walrus is here."),
        item(3, "assistant", "The walrus is here."),
        item(4, "user", "many thanks"),
        notice(5, "user_message", "many thanks"),
    ]
}

const WORDS: [&str; 3] = ["find the walrus", "The walrus is here.", "many thanks"];

#[test]
fn words_that_no_other_record_states_are_shown_once_by_every_command() {
    let folder = Folder::with("a.jsonl", session().concat());
    for line in [
        "show a.jsonl",
        "show a.jsonl --text",
        "show a.jsonl --last 5",
        "tail a.jsonl",
        "tail a.jsonl -n 5",
        "replay a.jsonl",
    ] {
        let done = folder.run(line);
        // The header may repeat the words as a title.
        let text = done.ends(0).text();
        let events = text.split_once("──").map_or(text, |(_header, events)| events);
        for words in WORDS {
            assert_eq!(events.matches(words).count(), 1, "{line}: {words}\n{text}");
        }
        assert!(!text.contains("said again"), "{line}\n{text}");
    }
    let last = folder.run("tail a.jsonl -n 2");
    assert!(!last.ends(0).text().contains("find the walrus"), "{}", last.text());
    assert!(WORDS[1..].iter().all(|words| last.text().contains(words)), "{}", last.text());
    for words in WORDS {
        let found = folder.run_with(&format!("find --in a.jsonl --json \"{words}\""), b"").ends(0).json();
        assert!(!found.is_empty(), "{words}");
    }
}

#[test]
fn an_audit_takes_words_that_no_other_record_states_as_they_are() {
    let folder = Folder::new();
    let audit = |lines: &[String]| {
        folder.write("a.jsonl", lines.concat());
        let mut audit = folder.run("audit a.jsonl --json").ends(0).json().remove(0);
        audit.as_object_mut().unwrap().retain(|key, _| key != "events");
        audit
    };
    let claimed = audit(&session());
    let mut stated = session();
    stated[1] = item(1, "user", "find the walrus");
    assert_eq!(claimed, audit(&stated));
}

#[test]
fn a_list_counts_words_that_no_other_record_states_also_when_the_file_grows() {
    let lines = session();
    for cut in 1..=lines.len() {
        let folder = Folder::new();
        let path = format!(".codex/sessions/2026/01/02/rollout-2026-01-02T03-10-00-{SESSION}.jsonl");
        fs::create_dir_all(folder.path(".codex/sessions/2026/01/02")).unwrap();
        folder.write(&path, lines[..cut].concat());
        folder.run("index --root .").ends(0);
        folder.write(&path, lines.concat());
        folder.run("index --root .").ends(0);
        let listed = folder.run("list --root . --json").ends(0).json();
        assert_eq!(
            (listed.len(), &listed[0]["asked"], &listed[0]["messages"]),
            (1, &json!(WORDS[0]), &json!(3)),
            "{cut}"
        );
    }
}
