//! `steno index` and `steno find`, as a person uses them.

use std::fs;

use crate::list::{home, index, message_line, path};
use crate::runner::Folder;

const SESSION: &str = "0198aaaa-1111-4222-8333-444455556666";

#[test]
fn a_hit_shows_its_text_its_position_and_how_to_open_it() {
    let folder = home();
    let done = folder.run("find herring --root home");
    let text = done.ends(0).text();
    assert!(text.contains("Count the «herring»"), "{text}");
    assert!(text.contains("(sub-agent a1b2)"), "{text}");
    assert!(text.contains("steno show 0198aaaa-1/a1b2 --event 1"), "{text}");
    assert!(done.talk.contains("1 hit"), "{}", done.talk);
    let done = folder.run("find fed role:assistant --root home --json --limit 2");
    let json = done.ends(0).json();
    assert_eq!(json.len(), 3);
    assert_eq!((&json[0]["line"], &json[0]["event"], &json[0]["kind"]), (&2.into(), &2.into(), &"message".into()));
    assert_eq!((&json[2]["total"], &json[2]["exact"], &json[2]["next"]), (&3.into(), &true.into(), &"2".into()));
    let rest = folder.run("find fed role:assistant --root home --json --limit 2 --cursor 2");
    assert_eq!(rest.ends(0).json().len(), 2);
    assert!(json[0]["resume"].as_str().unwrap().starts_with("cd "), "{}", json[0]["resume"]);
}

#[test]
fn nothing_found_is_a_no_and_a_bad_query_an_error() {
    let folder = home();
    folder.run("find penguin --root home").finds_nothing("nothing found");
    folder.run("find projct:x --root home").fails("hint:");
    assert!(!folder.run("find since:bogus --root home").fails("bogus").talk.contains("byte"));
    folder.run("find walrus --root elsewhere").ends(1);
    Folder::new().run("find walrus").fails("steno index");
}

#[test]
fn an_answer_fits_into_so_many_tokens() {
    let folder = home();
    let all = folder.run("find walrus --root home --json").ends(0).json().len();
    let one = folder.run("find walrus --root home --json --tokens 200").ends(0).json();
    assert!(one.len() < all, "{one:?}");
    assert!(!one.last().unwrap()["next"].is_null());
}

#[test]
fn paging_by_tokens_gives_every_hit_once_and_ends() {
    let folder = home();
    let all = folder.run("find walrus --root home --json").ends(0).json().len() - 1;
    // A limit that fits nothing, one that fits one hit, and one that fits two.
    for tokens in [1, 200, 400] {
        let (mut seen, mut cursor) = (Vec::new(), "0".to_owned());
        for _ in 0..=all {
            let line = format!("find walrus --root home --json --tokens {tokens} --cursor {cursor}");
            let mut json = folder.run(&line).ends(0).json();
            let end = json.pop().unwrap();
            seen.extend(json.iter().map(|hit| (hit["session"].to_string(), hit["event"].as_u64().unwrap())));
            match end["next"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!((count, seen.len()), (all, all), "{tokens} tokens: {seen:?}");
    }
}

#[test]
fn a_snippet_shows_the_rarest_word() {
    let folder = home();
    let text =
        format!("{}herring{}", "It is fed and it is fed again. ".repeat(60), " and the walrus sleeps".repeat(60));
    let mut session = folder.read(&path(SESSION));
    session.extend(message_line(SESSION, 51, "assistant", &text).as_bytes());
    folder.write(&path(SESSION), session);
    index(&folder);
    let file = path(SESSION);
    for place in ["--root home".to_owned(), format!("--in {file}")] {
        let hits = folder.run(&format!("find fed walrus herring --json {place}")).ends(0).json();
        let snippet = hits[0]["snippet"]["text"].as_str().unwrap();
        assert!(snippet.contains("herring"), "{place}: {snippet}");
    }
}

#[test]
fn a_project_has_the_same_shape_everywhere() {
    let folder = home();
    let listed = folder.run("list --root home --json").ends(0).json();
    let found = folder.run("find walrus --root home --json").ends(0).json();
    let app = |json: &[serde_json::Value]| {
        json.iter().map(|json| json["project"].clone()).find(|project| project["name"] == "app").unwrap()
    };
    assert_eq!(app(&listed), app(&found));
}

#[test]
fn files_are_searched_without_an_index_and_answer_alike() {
    let folder = home();
    let file = path(SESSION);
    fs::remove_dir_all(folder.path("store")).unwrap();
    let done = folder.run(&format!("find walrus --json --in {file}"));
    let json = done.ends(0).json();
    assert_eq!((json.len(), &json[0]["line"]), (2, &1.into()));
    folder.run(&format!("find penguin --in {file}")).ends(1);
    folder.run("find walrus --in nowhere.jsonl").ends(2).talks("nowhere.jsonl");
}

#[test]
fn a_scan_knows_the_project_before_the_record_that_states_it() {
    let folder = home();
    let title = "{\"type\":\"summary\",\"summary\":\"narwhal\",\"leafUuid\":\"x\"}\n";
    let mut session = title.as_bytes().to_vec();
    session.extend(folder.read(&path(SESSION)));
    folder.write(&path(SESSION), session);
    index(&folder);
    for place in ["--root home".to_owned(), format!("--in {}", path(SESSION))] {
        folder.run(&format!("find narwhal project:app {place}")).ends(0);
        folder.run(&format!("find narwhal project:other {place}")).ends(1);
    }
}

#[test]
fn sessions_that_touched_a_file_are_listed_with_how() {
    let folder = home();
    let call = r#"{"type":"assistant","uuid":"0198aaaa-1111-0000-8333-000000000077","sessionId":"SESSION","timestamp":"2026-01-02T03:40:00.000Z","cwd":"/work/app","message":{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Edit","input":{"file_path":"src/pool.rs","old_string":"a","new_string":"b"}}]}}"#;
    let mut text = folder.read(&path(SESSION));
    text.extend(format!("{}\n", call.replace("SESSION", SESSION)).as_bytes());
    folder.write(&path(SESSION), text);
    index(&folder);
    let done = folder.run("find --file src/pool.rs --root home");
    assert!(done.ends(0).text().contains("/work/app/src/pool.rs: edited once"), "{}", done.text());
    let json = folder.run("find --file pool.rs --root home --json").ends(0).json();
    assert_eq!((&json[0]["how"]["edited"], &json[0]["events"][0]), (&1.into(), &3.into()));
    assert_eq!(folder.run("find file:pool tool:edit --root home --json").ends(0).json().len(), 2);
    folder.run("find --file other.rs --root home").ends(1);
}

#[test]
fn a_second_run_reads_nothing_and_unknown_records_are_reported() {
    let folder = home();
    let json = folder.run("index --root home --json").ends(0).json();
    assert_eq!((&json[0]["bytes"], &json[0]["new"]), (&0.into(), &0.into()));
    folder.run("index --root home --unknown").ends(0);
    let mut text = folder.read(&path(SESSION));
    text.extend(b"{\"type\":\"from-the-future\",\"sessionId\":\"x\"}\n");
    folder.write(&path(SESSION), text);
    assert!(folder.run("index --root home").talk.contains("from-the-future"));
    folder.run("index --root home --unknown").ends(1);
    folder.run("index --memory 1MB --root home").fails("hint:");
    folder.run("index --root nowhere").fails("not a folder");
}

#[test]
fn hostile_text_does_nothing_to_a_terminal() {
    let folder = home();
    let file = path(SESSION);
    let mut text = folder.read(&file);
    text.extend(message_line(SESSION, 50, "user", "evil \\u001b[2Jseal \\u202e \\u200e\\u200f\\u061c").as_bytes());
    folder.write(&file, text);
    index(&folder);
    let done = folder.run("find evil --root home");
    let hostile = ['\u{1b}', '\u{202e}', '\u{200e}', '\u{200f}', '\u{61c}'];
    assert!(!done.ends(0).text().contains(hostile), "{}", done.text());
}

#[test]
fn with_session_the_words_may_be_in_different_events() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/.claude/projects/-work-app")).unwrap();
    let other = "0198bbbb-1111-4222-8333-444455556666";
    let text =
        message_line(SESSION, 1, "user", "Feed the walrus") + &message_line(SESSION, 2, "assistant", "A herring.");
    folder.write(&path(SESSION), text);
    let text = message_line(other, 1, "user", "A herring, please") + &message_line(other, 2, "assistant", "No.");
    folder.write(&path(other), text);
    index(&folder);
    folder.run("find walrus herring").finds_nothing("nothing found").talks("--session");
    let found = folder.run("find --session walrus herring");
    found.ends(0).says("«walrus»").says("«herring»").says("steno show 0198aaaa --event 1,2").talks("1 session");
    let json = folder.run("find --session walrus herring --json").ends(0).json();
    assert_eq!((json.len(), &json[0]["event"], &json[1]["event"]), (3, &1.into(), &2.into()));
    assert_eq!(
        (&json[2]["total"], &json[2]["shown"], &json[2]["next"]),
        (&1.into(), &1.into(), &serde_json::Value::Null)
    );
    // Fields apply to the events of all words, and an excluded word to the whole session.
    folder.run("find --session walrus herring role:user").ends(1);
    folder.run("find --session -- herring -walrus").ends(0).says("0198bb");
    let first = folder.run("find --session herring --limit 1 --json").ends(0).json();
    assert_eq!((first.len(), &first[1]["total"], &first[1]["next"]), (2, &2.into(), &"1".into()));
    let second = folder.run("find --session herring --limit 1 --cursor 1 --json").ends(0).json();
    assert_ne!(first[0]["session"], second[0]["session"]);
    folder.run(&format!("mark {other} --title Walrus")).ends(0);
    folder.run("find --session walrus herring --json").ends(0).says(other);
}
