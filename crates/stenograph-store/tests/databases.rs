//! Conversations in databases as an agent writes them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use stenograph_store::databases::{conversation_path, conversations, is_conversation, split};
use stenograph_store::discover::Places;
use stenograph_store::index::{Archiving, IndexPlan, IndexScope, NoObserver, Store, run};
use stenograph_store::runs::transcripts;
use stenograph_store::{Passes, Problem, Source};

/// A database with the tables of OpenCode and these conversations, each with a question and an answer.
fn database(path: &Path, sessions: &[&str]) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, slug TEXT, directory TEXT, title TEXT, version TEXT,
               time_created INTEGER, time_updated INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER,
               time_updated INTEGER, data TEXT);",
        )
        .unwrap();
    sessions.iter().for_each(|session| add(&connection, session));
    connection
}

fn add(connection: &Connection, session: &str) {
    let title = format!("About {session}");
    let values = (session, "p", "s", "/work/harbour", title, "1.0", 1000, 2000);
    connection.execute("INSERT INTO session VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", values).unwrap();
    ask(connection, session, "m1", "user", "count the boats");
    ask(connection, session, "m2", "assistant", "There are three.");
}

fn ask(connection: &Connection, session: &str, name: &str, role: &str, text: &str) {
    let id = format!("{session}-{name}");
    let data = format!("{{\"role\":\"{role}\",\"modelID\":\"gull\"}}");
    connection.execute("INSERT INTO message VALUES (?1, ?2, 1000, 2000, ?3)", (&id, session, data)).unwrap();
    let data = format!("{{\"type\":\"text\",\"text\":\"{text}\"}}");
    let values = (format!("{id}-p"), &id, session, data);
    connection.execute("INSERT INTO part VALUES (?1, ?2, ?3, 1000, 2000, ?4)", values).unwrap();
}

fn lines(path: &Path) -> Vec<String> {
    let mut source = Source::open(path, Passes::Many).unwrap();
    let bytes = source.read_whole(1 << 20).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

fn problem(path: &Path) -> Problem {
    Source::open(path, Passes::Many).unwrap_err().problem
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_path_names_a_database_and_a_conversation() {
    let names = |path: &'static str| split(Path::new(path));
    assert_eq!(names("/a/b.db#ses_1"), Some((Path::new("/a/b.db"), "ses_1")));
    assert_eq!(names("/a#c/b.db#x/y#z"), Some((Path::new("/a#c/b.db"), "x/y#z")));
    assert_eq!(names("/a/b.db#"), None);
    assert_eq!(names("/a/b.jsonl#1"), None);
}

#[test]
fn the_rows_of_a_conversation_are_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    database(&path, &["ses_1", "ses_2"]);
    let one = lines(&conversation_path(&path, "ses_1"));
    let tables: Vec<&str> = one.iter().map(|line| line.split('"').nth(3).unwrap()).collect();
    assert_eq!(tables, ["session", "message", "part", "message", "part"]);
    assert_eq!(
        one[4],
        "{\"table\":\"part\",\"message\":{\"role\":\"assistant\",\"model\":\"gull\"},\"id\":\"ses_1-m2-p\",\
         \"message_id\":\"ses_1-m2\",\"session_id\":\"ses_1\",\"time_created\":1000,\"time_updated\":2000,\
         \"data\":{\"type\":\"text\",\"text\":\"There are three.\"}}"
    );
    let listed = conversations(&path).unwrap().unwrap();
    let listed: Vec<(&str, Option<&str>)> =
        listed.iter().map(|one| (one.name.as_str(), one.title.as_deref())).collect();
    assert!(listed.contains(&("ses_2", Some("About ses_2"))), "{listed:?}");
    assert_eq!(problem(&path), Problem::Conversations { count: 2 });
    assert_eq!(problem(&conversation_path(&path, "ses_3")), Problem::NoSuchConversation);
    assert_eq!(problem(&folder.path().join("none.db#ses_1")), Problem::Missing);
    assert!(is_conversation(&conversation_path(&path, "ses_3")) && !is_conversation(&path));
}

#[test]
fn a_row_without_its_upper_row_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let connection = database(&path, &["ses_1"]);
    connection.execute("DELETE FROM message WHERE id = 'ses_1-m1'", []).unwrap();
    let one = lines(&path);
    assert_eq!(one.len(), 4);
    assert!(one[3].starts_with("{\"table\":\"part\",\"message\":{},\"id\":\"ses_1-m1-p\""), "{}", one[3]);
}

#[test]
fn every_change_of_a_conversation_changes_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let connection = database(&path, &["ses_1", "ses_2"]);
    let times = || -> Vec<i64> {
        let mut found = conversations(&path).unwrap().unwrap();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found.iter().map(|one| one.changed_ns).collect()
    };
    let mut before = times();
    for change in [
        "UPDATE part SET data = replace(data, 'three', 'seven!') WHERE session_id = 'ses_1'",
        "UPDATE part SET time_updated = 2001 WHERE session_id = 'ses_1'",
        "DELETE FROM part WHERE id = 'ses_1-m2-p'",
        "UPDATE session SET title = 'x' WHERE id = 'ses_1'",
    ] {
        connection.execute(change, []).unwrap();
        let now = times();
        assert_ne!(now[0], before[0], "{change}");
        assert_eq!(now[1], before[1], "{change}");
        before = now;
    }
}

#[test]
fn what_is_only_in_the_log_is_read_and_nothing_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.db"), tempfile::tempdir().unwrap());
    let connection = database(&path, &["ses_1"]);
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    ask(&connection, "ses_1", "m3", "user", "and now?");
    assert_eq!(lines(&path).len(), 7);
    // A transaction that is not committed is not visible, and its writer is not disturbed.
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    ask(&connection, "ses_1", "m4", "user", "not yet");
    assert_eq!(lines(&path).len(), 7);
    connection.execute_batch("COMMIT").unwrap();
    assert_eq!(lines(&path).len(), 9);
    // Copies as a backup makes them: with the log, and of the file alone after the last writer has gone.
    for name in ["a.db", "a.db-wal"] {
        fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    assert_eq!(lines(&copy.path().join("a.db")).len(), 9);
    assert_eq!(files(copy.path()), ["a.db", "a.db-wal"]);
    drop(connection);
    assert_eq!(lines(&path).len(), 9);
    assert_eq!(files(folder.path()), ["a.db"]);
}

#[test]
fn a_database_that_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join(".local/share/opencode");
    fs::create_dir_all(&home).unwrap();
    let path = home.join("opencode.db");
    let connection = database(&path, &["ses_1"]);
    // Encryption leaves no header.
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, bytes.iter().map(|byte| byte ^ 0x55).collect::<Vec<u8>>()).unwrap();
    assert_eq!(conversations(&path).err().map(|error| error.problem), Some(Problem::NoDatabase));
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(problem(&path), Problem::DatabaseDamaged);
    fs::write(&path, &bytes).unwrap();
    drop(connection);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_eq!(problem(&path), Problem::DatabaseBusy);
    connection.execute_batch("ROLLBACK; ALTER TABLE part RENAME COLUMN message_id TO answer_id").unwrap();
    assert_eq!(problem(&path), Problem::NewerDatabase { table: "part", column: "message_id" });
    connection.execute_batch("DROP TABLE part; DROP TABLE message; DROP TABLE session").unwrap();
    assert!(conversations(&path).unwrap().is_none());
}

#[test]
fn a_transaction_that_was_interrupted_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let connection = database(&path, &["ses_1"]);
    // The pages go to the file before the end of the transaction.
    connection.pragma_update(None, "cache_size", 1).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    for number in 0..200 {
        ask(&connection, "ses_1", &format!("n{number}"), "user", "again and again and again");
    }
    let torn = tempfile::tempdir().unwrap();
    for name in ["a.db", "a.db-journal"] {
        fs::copy(folder.path().join(name), torn.path().join(name)).unwrap();
    }
    let torn_path = torn.path().join("a.db");
    let before = fs::read(&torn_path).unwrap();
    assert_eq!(problem(&torn_path), Problem::DatabaseHalfWritten);
    assert_eq!(fs::read(&torn_path).unwrap(), before);
}

#[test]
fn a_view_is_no_table_of_an_agent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let connection = database(&path, &["ses_1"]);
    // The query of this view never ends.
    connection
        .execute_batch(
            "DROP TABLE part;
             CREATE VIEW part AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
               SELECT i AS id, i AS message_id, 'ses_1' AS session_id, 0 AS time_created, 0 AS time_updated,
                 '{}' AS data FROM n;",
        )
        .unwrap();
    assert!(conversations(&path).unwrap().is_none());
    assert_eq!(problem(&conversation_path(&path, "ses_1")), Problem::NoSuchConversation);
}

#[test]
fn times_and_names_that_no_agent_writes_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let names = ["../../outside", "/outside", "a\u{1b}[2Jb", "x'; DROP TABLE part; --", "."];
    let connection = database(&path, &names);
    for time in [i64::MIN, i64::MAX, -1, 0] {
        connection.execute("UPDATE session SET time_updated = ?1", [time]).unwrap();
        connection.execute("UPDATE part SET time_updated = ?1", [time]).unwrap();
        let found = conversations(&path).unwrap().unwrap();
        assert_eq!(found.len(), names.len(), "{time}");
        for one in &found {
            assert_eq!(lines(&conversation_path(&path, &one.name)).len(), 5, "{time}: {}", one.name);
        }
    }
    assert_eq!(files(folder.path()), ["a.db"]);
}

#[test]
fn only_conversations_without_an_archived_copy_are_missing_in_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let (home, store) = (folder.path().join("home"), Store::new(folder.path().join("store")));
    fs::create_dir_all(home.join(".local/share/opencode")).unwrap();
    let path = home.join(".local/share/opencode/opencode.db");
    let agent = database(&path, &["ses_1", "ses_2"]);
    let places = Places::below(home);
    let (scope, archiving) = (IndexScope::All, Archiving::Yes);
    let plan = IndexPlan { places: &places, scope, archiving, memory: 256 << 20, threads: 1, now: 1 };
    run(&store, &plan, &mut NoObserver).unwrap();
    assert_eq!(store.not_archived(&transcripts(&places)).unwrap().len(), 0);
    add(&agent, "ses_3");
    let missing = store.not_archived(&transcripts(&places)).unwrap();
    let missing: Vec<&Path> = missing.iter().map(|file| file.path.as_path()).collect();
    assert_eq!(missing, [conversation_path(&path, "ses_3")]);
}
