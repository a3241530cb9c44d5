//! `steno list --tree NAME…`: which conversation branched off from which.

use crate::runner::{Folder, NATIVE};

/// A line of a chat: lower case is a user's, upper case the assistant's.
fn chat(letters: &str) -> String {
    let line = |letter: char| {
        let role = if letter.is_lowercase() { "user" } else { "assistant" };
        format!("{{\"role\":\"{role}\",\"content\":\"say {letter}\"}}\n")
    };
    letters.chars().map(line).collect()
}

/// A record of a session file with ids.
pub fn record(session: &str, id: &str, parent: Option<&str>, minute: u32) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}-0000-0000-0000\""));
    let kind = if id.starts_with('u') { "user" } else { "assistant" };
    let content = match kind {
        "user" => format!("\"say {id}\""),
        _ => format!("[{{\"type\":\"text\",\"text\":\"say {id}\"}}]"),
    };
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":false,\"sessionId\":\"{session}\",\"type\":\"{kind}\",\"uuid\":\"{id}-0000-0000-0000\",\
         \"timestamp\":\"2026-03-02T09:{minute:02}:00.000Z\",\"cwd\":\"/w\",\"version\":\"2.0.0\",\"userType\":\"external\",\
         \"message\":{{\"role\":\"{kind}\",\"content\":{content}}}}}\n"
    )
}

#[test]
fn chats_without_calls_have_a_family_too() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("chats")).unwrap();
    folder.write("chats/chat-history-1.jsonl", chat("aAbB"));
    folder.write("chats/chat-history-2.jsonl", chat("aAbBcC"));
    folder.write("chats/chat-history-3.jsonl", chat("aAdD"));
    folder.write("chats/chat-history-4.jsonl", chat("xX"));
    let done = folder.run("list --tree chats");
    let titles: Vec<(&str, &str)> = done.ends(0).text().lines().skip(1).map(ends_of).collect();
    let expected = [
        ("chat-history-1.jsonl", "say a"),
        ("└ chat-history-3.jsonl", "[branched after event 2] say d"),
        ("└ chat-history-2.jsonl", "[continues after event 4] say c"),
        ("chat-history-4.jsonl", "say x"),
    ];
    assert_eq!(titles, expected);
    let json = folder.run("list --tree chats --json").ends(0).json();
    assert_eq!(
        (&json[0]["path"], &json[0]["depth"], &json[0]["messages"]),
        (&"chat-history-1.jsonl".into(), &0.into(), &4.into())
    );
    assert_eq!(
        (&json[1]["path"], &json[1]["depth"], &json[1]["events"]),
        (&"chat-history-3.jsonl".into(), &1.into(), &4.into())
    );
    let origin = &json[1]["origin"];
    assert_eq!((&origin["parent"], &origin["left_after"]), (&"chat-history-1.jsonl".into(), &2.into()));
    assert_eq!(
        (&origin["how"], &origin["first_event"], &origin["asked"]),
        (&"branches".into(), &3.into(), &"say d".into())
    );
    assert!(json[0]["origin"].is_null());
}

/// The first and the last column of a row.
fn ends_of(line: &str) -> (&str, &str) {
    let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    (cells[0], cells[cells.len() - 1])
}

#[test]
fn names_select_the_sessions_so_no_filter_may() {
    let folder = Folder::with("a", NATIVE);
    folder.run("list fix --tree a").fails("names after --tree cannot be combined with a query");
    folder.run("list --since 7d --tree a").fails("names after --tree cannot be combined");
    folder.run("list --tree a").ends(0).says("Fix the test.");
}

#[test]
fn a_session_shows_where_the_user_went_back() {
    let lines = [
        record("s1", "u1", None, 1),
        record("s1", "a1", Some("u1"), 2),
        record("s1", "u2", Some("a1"), 3),
        record("s1", "a2", Some("u2"), 4),
        record("s1", "u3", Some("a1"), 5),
        record("s1", "a3", Some("u3"), 6),
    ];
    let folder = Folder::with("a.jsonl", lines.concat());
    let done = folder.run("list --tree a.jsonl");
    done.ends(0).says("└ abandoned  ").says("[events 3 to 4, branched after event 2] say u2");
    let json = folder.run("list --tree a.jsonl --json").ends(0).json();
    let (row, origin) = (&json[1], &json[1]["origin"]);
    assert_eq!((&row["path"], &row["session"], &row["depth"]), (&"a.jsonl".into(), &"s1".into(), &1.into()));
    assert_eq!(
        (&origin["how"], &origin["first_event"], &origin["last_event"]),
        (&"abandoned".into(), &3.into(), &4.into())
    );
}

#[test]
fn forks_are_recognised_by_their_statements_and_by_ids() {
    let first =
        [record("s1", "u1", None, 1), record("s1", "a1", Some("u1"), 2), record("s1", "u2", Some("a1"), 3)].concat();
    let folder = Folder::with("one.jsonl", &first);
    // The beginning was copied under another session.
    let copied =
        [record("s2", "u1", None, 1), record("s2", "a1", Some("u1"), 2), record("s2", "u9", Some("a1"), 30)].concat();
    folder.write("two.jsonl", copied);
    // The beginning was not copied; the first record continues one in another file.
    folder.write("three.jsonl", [record("s3", "u7", Some("a1"), 40), record("s3", "a7", Some("u7"), 41)].concat());
    let stated = record("s4", "u8", None, 50)
        .replace("\"cwd\"", "\"forkedFrom\":{\"sessionId\":\"s1\",\"messageUuid\":\"u2-0000-0000-0000\"},\"cwd\"");
    folder.write("four.jsonl", stated);
    let lost = record("s5", "u6", None, 55).replace("\"cwd\"", "\"forkedFrom\":{\"sessionId\":\"s0\"},\"cwd\"");
    folder.write("five.jsonl", lost);
    let done = folder.run("list --tree one.jsonl two.jsonl three.jsonl four.jsonl five.jsonl");
    let lines: Vec<(&str, &str)> = done.ends(0).text().lines().skip(1).map(ends_of).collect();
    let expected = [
        ("one.jsonl", "say u1"),
        ("└ two.jsonl", "[branched after event 2] say u9"),
        ("└ three.jsonl", "[continues after event 2, by record ids] say u7"),
        ("└ four.jsonl", "[forked after event 3, as stated] say u8"),
        ("five.jsonl", "[forked from s0, which is missing] say u6"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn the_index_finds_related_sessions() {
    let folder = Folder::new();
    let home = folder.path("home/.claude/projects/-w");
    std::fs::create_dir_all(&home).unwrap();
    let first = [
        record("11111111-aaaa", "u1", None, 1),
        record("11111111-aaaa", "a1", Some("u1"), 2),
        record("11111111-aaaa", "u2", Some("a1"), 3),
    ];
    std::fs::write(home.join("11111111-aaaa.jsonl"), first.concat()).unwrap();
    let second = [
        record("22222222-bbbb", "u1", None, 1),
        record("22222222-bbbb", "a1", Some("u1"), 2),
        record("22222222-bbbb", "u3", Some("a1"), 9),
    ];
    std::fs::write(home.join("22222222-bbbb.jsonl"), second.concat()).unwrap();
    let third = [record("33333333-cccc", "u5", None, 20), record("33333333-cccc", "a5", Some("u5"), 21)];
    std::fs::write(home.join("33333333-cccc.jsonl"), third.concat()).unwrap();
    folder.run("index --root home").ends(0);
    let done = folder.run("list --tree 22222222 --root home");
    let lines: Vec<(&str, &str)> = done.ends(0).text().lines().skip(1).map(ends_of).collect();
    assert_eq!(lines, [("11111111", "say u1"), ("└ 22222222", "[branched after event 2] say u3")]);
    // A session without relatives is still listed.
    let done = folder.run("list --tree 33333333 --root home");
    let lines: Vec<(&str, &str)> = done.ends(0).text().lines().skip(1).map(ends_of).collect();
    assert_eq!(lines, [("33333333", "say u5")]);
    let json = folder.run("list --tree 22222222 --root home --json").ends(0).json();
    assert_eq!((&json[1]["short"], &json[1]["origin"]["left_after"]), (&"22222222".into(), &2.into()));
}

#[test]
fn bad_files_do_not_stop_the_rest() {
    let folder = Folder::with("a", NATIVE);
    folder.write("b", NATIVE);
    let done = folder.run("list --tree a b none.jsonl");
    done.ends(2).says("[identical copy]").talks("error: ");
}
