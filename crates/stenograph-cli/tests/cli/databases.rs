//! Conversations in the database of an agent, while the agent writes.

use std::fs;

use rusqlite::Connection;

use crate::runner::{Folder, names};

const ONE: &str = "ses_5e1f20a71ffeBoatsInTheBay01";
const TWO: &str = "ses_5e1f20a72ffeLighthouseLamp1";
const DATABASE: &str = "home/.local/share/opencode/opencode.db";

/// A home with OpenCode's database, which its agent has open: most of it is in the write-ahead log.
fn home() -> (Folder, Connection) {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/.local/share/opencode")).unwrap();
    folder.write("home/.local/share/opencode/auth.json", "{\"harbour\":{\"key\":\"sk-not-for-the-archive\"}}");
    let connection = Connection::open(folder.path(DATABASE)).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection
        .execute_batch(
            "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, slug TEXT, directory TEXT, title TEXT, version TEXT,
               time_created INTEGER, time_updated INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER,
               time_updated INTEGER, data TEXT);
             CREATE TABLE credential (id TEXT PRIMARY KEY, value TEXT);
             INSERT INTO credential VALUES ('1', 'sk-not-for-the-archive');",
        )
        .unwrap();
    for (session, title) in [(ONE, "Count the boats"), (TWO, "Repair the lamp")] {
        let values = (session, "global", "s", "/work/harbour", title, "1.18.33", 1_780_000_000_000_i64);
        connection.execute("INSERT INTO session VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)", values).unwrap();
        say(&connection, session, "1", "user", "{}", &format!("Please {}", title.to_lowercase()));
        let tokens = "{\"input\":100,\"output\":10,\"reasoning\":5,\"cache\":{\"read\":50,\"write\":0}}";
        say(&connection, session, "2", "assistant", tokens, &format!("Done with the {}", &title[title.len() - 4..]));
    }
    (folder, connection)
}

fn say(connection: &Connection, session: &str, number: &str, role: &str, tokens: &str, text: &str) {
    let id = format!("msg_{session}_{number}");
    let data = format!("{{\"role\":\"{role}\",\"modelID\":\"gull-1\",\"cost\":0,\"tokens\":{tokens}}}");
    let time = 1_780_000_000_000_i64 + number.parse::<i64>().unwrap() * 1000;
    let values = (&id, session, time, data);
    connection.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)", values).unwrap();
    let part = format!("{{\"type\":\"text\",\"text\":\"{text}\"}}");
    let values = (format!("prt_{session}_{number}"), &id, session, time, part);
    connection.execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)", values).unwrap();
    connection.execute("UPDATE session SET time_updated = ?1 WHERE id = ?2", (time, session)).unwrap();
}

#[test]
fn every_conversation_of_a_database_is_a_session() {
    let (folder, _agent) = home();
    folder.run("index").ends(0).talks("2 new");
    let listed = folder.run("list --json").ends(0).json();
    let titles: Vec<&str> = listed.iter().filter_map(|session| session["title"].as_str()).collect();
    assert!(titles.contains(&"Count the boats") && titles.contains(&"Repair the lamp"), "{titles:?}");
    folder.run("show ses_5e1f20a71").ends(0).says("Done with the oats");
    folder.run("find lamp").ends(0).says("Repair the lamp");
    folder.run(&format!("audit {ONE}")).ends(0);
    for command in ["cut --turns 1 --in-place", "undo"] {
        folder.run(&format!("{command} {ONE}")).fails("is in the database of an agent");
    }
    let page = |line: &str| folder.run(line).ends(0).text().to_owned();
    let (indexed, direct) = (page("usage --json"), page("usage --json --no-index"));
    assert!(indexed.contains("\"output\":30"), "{indexed}");
    assert_eq!(indexed, direct);
    // The agent's other files and tables are not read, and nothing is written beside its database.
    folder.run("find not-for-the-archive").finds_nothing("no");
    let beside = names(&folder.path("home/.local/share/opencode"));
    assert_eq!(beside, ["auth.json", "opencode.db", "opencode.db-shm", "opencode.db-wal"]);
    folder.run("archive verify").ends(0);
}

#[test]
fn a_database_can_be_named_without_an_index() {
    let (folder, agent) = home();
    folder.run(&format!("show {DATABASE}")).fails("2 conversations").talks("Count the boats").talks(&format!("#{TWO}"));
    let one = format!("{DATABASE}#{ONE}");
    folder.run(&format!("show {one}")).ends(0).says("Done with the oats");
    folder.run(&format!("check {one} --laws")).ends(0).says("opencode");
    folder.run(&format!("convert {one} --to steno")).ends(0).says("Please count the boats");
    folder.run(&format!("usage {one}")).ends(0).says("gull-1");
    folder.run(&format!("show {DATABASE}#ses_none")).fails("no conversation of that name");
    folder.run(&format!("trim {one} --max-tokens 1 --in-place")).fails("never changes");
    folder.run(&format!("tail {one}")).fails("cannot follow");
    agent.execute("DELETE FROM session WHERE id = ?1", [TWO]).unwrap();
    folder.run(&format!("show {DATABASE}")).ends(0).says("Done with the oats");
}

#[test]
fn only_conversations_that_changed_are_read_again() {
    let (folder, agent) = home();
    folder.run("index").ends(0);
    say(&agent, ONE, "3", "user", "{}", "and the walrus?");
    folder.run("index").ends(0).talks("1 rewritten");
    folder.run("find walrus").ends(0).says("«walrus»");
    // A transaction that is not finished is not visible, and the agent is not disturbed.
    agent.execute_batch("BEGIN IMMEDIATE").unwrap();
    say(&agent, ONE, "4", "user", "{}", "and the narwhal?");
    folder.run("index").ends(0);
    folder.run("find narwhal").finds_nothing("no");
    agent.execute_batch("COMMIT").unwrap();
    folder.run("index").ends(0);
    folder.run("find narwhal").ends(0).says("«narwhal»");
}

#[test]
fn the_archive_has_the_rows_of_a_conversation_that_is_gone() {
    let (folder, agent) = home();
    folder.run("index").ends(0);
    for table in ["part", "message"] {
        agent.execute(&format!("DELETE FROM {table} WHERE session_id = ?1"), [ONE]).unwrap();
    }
    agent.execute("DELETE FROM session WHERE id = ?1", [ONE]).unwrap();
    folder.run("index").ends(0).talks("1 gone");
    folder.run(&format!("show {ONE}")).ends(0).says("Done with the oats");
    folder.run(&format!("archive restore {ONE}")).ends(0).says(&format!("{ONE}.jsonl"));
    let restored = String::from_utf8(folder.read(&format!("{ONE}.jsonl"))).unwrap();
    let tables: Vec<&str> = restored.lines().filter_map(|line| line.split('"').nth(3)).collect();
    assert_eq!(tables, ["session", "message", "part", "message", "part"]);
    folder.run(&format!("show {ONE}.jsonl")).ends(0).says("Done with the oats");
    assert!(names(&folder.path("home/.local/share/opencode")).iter().all(|name| !name.contains('#')));
}
