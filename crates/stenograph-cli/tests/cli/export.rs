//! `steno export`.

use std::fs;

use crate::list::home;
use crate::runner::{Folder, NATIVE};

#[test]
fn a_session_becomes_a_document_for_people() {
    let folder = Folder::with("a.jsonl", NATIVE);
    let done = folder.run("export a.jsonl --to markdown");
    assert_eq!(
        done.ends(0).text(),
        "\
# Transcript: s1

| Field | Value |
|---|---|
| Format | Stenograph's native stream: one event per line, with everything kept |
| Started | 2026-03-02 09:14:05 UTC |
| Ended | 2026-03-02 09:14:09 UTC |
| Duration | 4 s |
| Tool calls | 1 |

## Conversation

### User (Turn 1)

*2026-03-02 09:14:05 UTC*

Fix the test.

### Assistant (Turn 1)

*2026-03-02 09:14:06 UTC*

<details>
<summary>Thinking</summary>

Run it first.

</details>

#### Tool Call: `Bash`

```json
{
  \"command\": \"cargo test\"
}
```

#### Tool Result: `Bash`

```text
ok
```
"
    );
    assert_eq!(done.talk, "");
    let short = folder.run("export a.jsonl --to md --no-tools --no-thinking");
    assert!(short.ends(0).text().ends_with("Fix the test.\n"), "{}", short.text());
    let piped = folder.run_with("export - --to markdown", NATIVE.as_bytes());
    assert_eq!(piped.ends(0).text(), done.text());
}

#[test]
fn tokens_and_the_stated_cost_are_those_of_the_ledger_everywhere() {
    let seed = concat!(env!("CARGO_MANIFEST_DIR"), "/../stenograph/src/formats/devflow/fixtures/seed.json");
    let folder = Folder::with("seed.json", fs::read(seed).unwrap());
    let markdown = folder.run("export seed.json --to markdown");
    markdown.ends(0).says("| Tokens in | 5,200 |\n| Tokens out | 8,400 |\n| Cost | $0.1200 |\n");
    let json: serde_json::Value =
        serde_json::from_slice(&folder.run("export seed.json --to json").ends(0).out).unwrap();
    let usage = &json["session"]["usage"];
    assert_eq!((&usage["input"], &usage["output"], &usage["cost"]), (&5200.into(), &8400.into(), &0.12.into()));
    folder.run("export seed.json --to csv").ends(0).says(",1,5200,8400,0,0,0,0,0,0,,0.12,");
    folder.run("replay seed.json").ends(0).says("5,200 in / 8,400 out · $0.1200");
    folder.run("usage seed.json").ends(0).says("5,200").says("8,400").says("$0.1200");
    folder.run("diff seed.json seed.json --json").ends(0);
}

#[test]
fn a_session_becomes_one_json_document() {
    let folder = Folder::with("a.jsonl", NATIVE);
    let done = folder.run("export a.jsonl --to json -o out.json");
    assert_eq!(done.ends(0).text(), "");
    let json: serde_json::Value = serde_json::from_slice(&folder.read("out.json")).unwrap();
    assert_eq!((&json["session"]["id"], &json["session"]["events"]), (&"s1".into(), &4.into()));
    let roles: Vec<&str> =
        json["sections"].as_array().unwrap().iter().map(|turn| turn["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant"]);
    let kinds = json["sections"][1]["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap());
    assert_eq!(kinds.collect::<Vec<_>>(), ["thinking", "tool_call", "tool_result"]);
    assert_eq!(json["sections"][1]["events"][0]["at"]["line"], 2);
}

#[test]
fn events_that_were_taken_back_are_in_json_only() {
    let message = |id: &str, parent: &str, role: &str, text: &str| {
        format!(
            r#"{{"v":1,"kind":"message","session":"s1","id":"{id}","parent":"{parent}","role":"{role}","content":"{text}"}}"#
        )
    };
    let lines = [
        message("1", "", "user", "begin"),
        message("2", "1", "assistant", "wrong"),
        message("3", "1", "assistant", "right"),
    ];
    let folder = Folder::with("a.jsonl", lines.join("\n") + "\n");
    let done = folder.run("export a.jsonl --to markdown");
    done.ends(0).says("right").talks("left out: 1 event that was abandoned; --to json has all events");
    assert!(!done.text().contains("wrong"));
    let json: serde_json::Value = serde_json::from_slice(&folder.run("export a.jsonl --to json").out).unwrap();
    assert_eq!(json["others"][0]["why"], "on an abandoned branch");
    assert_eq!(json["others"][0]["event"]["content"], "wrong");
}

#[test]
fn hostile_words_stay_in_their_place() {
    let hostile = r"</details>\n\n# Transcript: other\n\n```\n<script>\n\u001b[2J";
    let text = NATIVE.replace("Run it first.", hostile).replace("\"ok\"", &format!("\"{hostile}\""));
    let folder = Folder::with("a.jsonl", text);
    let done = folder.run("export a.jsonl --to markdown");
    let text = done.ends(0).text();
    assert_eq!(text.matches("</details>").count(), 2, "ours, and one inside a fence: {text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("# ")).count(), 2, "ours, and one inside a fence: {text}");
    done.says("&lt;/details>").says("##### Transcript: other").says("````text\n").says("␛[2J");
}

#[test]
fn a_session_is_written_with_its_side_conversations() {
    let folder = home();
    let main = folder.run("export 0198aaaa-1 --to markdown");
    assert!(!main.ends(0).text().contains("## Side conversation"));
    let all = folder.run("export 0198aaaa-1 --to markdown --subagents");
    all.ends(0).says("## Side conversation: `a1b2`").says("Count");
    let json: serde_json::Value =
        serde_json::from_slice(&folder.run("export 0198aaaa-1 --to json --subagents").ends(0).out).unwrap();
    assert!(json["sections"].as_array().unwrap().iter().any(|turn| turn["thread"] == "a1b2"), "{json}");
}

#[test]
fn a_failed_export_is_explained() {
    let folder = Folder::with("a.jsonl", NATIVE);
    folder.run("export a.jsonl --to json --no-tools").fails("require --to markdown");
    folder.run("export a.jsonl --to pdf").ends(2).talks("html, markdown, json");
    folder.run("export none.jsonl --to json").fails("none.jsonl");
    folder.run("export a.jsonl --to markdown -o a.jsonl").fails("a.jsonl");
    assert_eq!(folder.read("a.jsonl"), NATIVE.as_bytes());
    folder.write("empty", "");
    folder.run("export empty --to markdown").fails("the file is empty");
    fs::create_dir(folder.path("out")).unwrap();
    folder.run("export a.jsonl --to markdown -o out").ends(2);
}

#[test]
fn a_json_document_holds_no_control_characters() {
    let title = "\u{202e}evil\u{9b}31m\u{200f}\u{7f}";
    let head =
        format!("{{\"v\":1,\"kind\":\"fact\",\"name\":\"title\",\"session\":\"{title}\",\"content\":\"{title}\"}}\n");
    let folder = Folder::with(
        "a",
        format!("{head}{}", NATIVE.replace("Fix the test.", title).replace("\"s1\"", &format!("\"{title}\""))),
    );
    let done = folder.run("export a --to json --subagents");
    let hostile = |char: char| char != '\n' && char.is_control() || ['\u{202e}', '\u{200f}'].contains(&char);
    assert!(!done.ends(0).text().contains(hostile), "{}", done.text());
    let json: serde_json::Value = serde_json::from_str(done.text()).unwrap();
    assert_eq!(json["session"]["id"], title);
}
