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
fn a_conversation_moves_to_another_agent() {
    let (folder, _agent) = home();
    fs::create_dir_all(folder.path("work")).unwrap();
    folder.run("index").ends(0);
    let total = || folder.run("usage --json").ends(0).json().remove(0)["total"].clone();
    let before = total();
    folder.run(&format!("move {ONE} --to codex --cwd work")).ends(0).talks("opencode to codex");
    folder.run("index").ends(0);
    assert_eq!(total(), before);
    folder.run("list --tree").ends(0).says("moved from it");
}

#[test]
fn a_fork_counts_no_call_again() {
    const FORK: &str = "ses_5e1f20a73ffeBoatsAgain0001";
    let (folder, agent) = home();
    fs::create_dir_all(folder.path("work")).unwrap();
    // A fork is newer than the calls that it copies under new ids.
    let values = (FORK, "global", "s", "/work/harbour", "Count again", "1.18.33", 1_780_000_100_000_i64);
    agent.execute("INSERT INTO session VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)", values).unwrap();
    let tokens = "{\"input\":100,\"output\":10,\"reasoning\":5,\"cache\":{\"read\":50,\"write\":0}}";
    say(&agent, FORK, "1", "user", "{}", "Please count the boats");
    say(&agent, FORK, "2", "assistant", tokens, "Done with the oats");
    say(&agent, FORK, "300", "assistant", tokens, "Four boats");
    let calls = || folder.run("usage --json").ends(0).json().remove(0)["total"]["calls"].clone();
    assert_eq!((calls(), folder.run("index").ends(0).code, calls()), (3.into(), 0, 3.into()));
    folder.run(&format!("move {FORK} --to codex --cwd work")).ends(0);
    folder.run("index").ends(0);
    assert_eq!(calls(), 3);
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
fn a_fork_of_an_agent_has_its_own_databases() {
    let (folder, agent) = home();
    agent.execute_batch("CREATE TABLE kilo_board (id TEXT); PRAGMA wal_checkpoint").unwrap();
    let bytes = folder.read(DATABASE);
    fs::create_dir_all(folder.path("home/.local/share/kilo")).unwrap();
    folder.write("home/.local/share/kilo/kilo.db", &bytes);
    folder.write("copy.db", &bytes);
    agent.execute_batch("DROP TABLE kilo_board").unwrap();
    folder.run("index").ends(0).talks("4 new");
    folder.run("list --agent kilo").ends(0).says("Count the boats").says("kilo");
    folder.run(&format!("resume home/.local/share/kilo/kilo.db#{ONE}")).ends(0).says(&format!("kilo -s {ONE}"));
    folder.run(&format!("check copy.db#{ONE} --laws")).ends(0).says("kilo");
    folder.run(&format!("check {DATABASE}#{ONE} --laws")).ends(0).says("opencode");
}

#[test]
fn a_database_without_a_column_of_its_messages_is_reported() {
    let (folder, agent) = home();
    agent.execute_batch("ALTER TABLE part RENAME COLUMN data TO payload").unwrap();
    folder.run("index").talks("data").talks("opencode.db");
    folder.run(&format!("show {DATABASE}#{ONE}")).fails("data");
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
    // The agent imports the document, and a new database has the same rows.
    folder.run(&format!("archive restore {ONE}")).ends(0).says(&format!("{ONE}.json")).talks("opencode import");
    folder.run(&format!("show {ONE}.json")).ends(0).says("Done with the oats");
    folder.run(&format!("archive restore {ONE} -o rows.db")).ends(0).says("rows.db");
    folder.run(&format!("archive restore {ONE} -o rows.db --force")).fails("adds nothing to a database");
    let from_database = folder.run("convert rows.db --to opencode -o -");
    folder.run(&format!("archive restore {ONE} -o {ONE}.jsonl")).ends(0).says(&format!("{ONE}.jsonl"));
    assert_eq!(from_database.ends(0).text().as_bytes(), folder.read(&format!("{ONE}.jsonl")));
    let restored = String::from_utf8(folder.read(&format!("{ONE}.jsonl"))).unwrap();
    let tables: Vec<&str> = restored.lines().filter_map(|line| line.split('"').nth(3)).collect();
    assert_eq!(tables, ["session", "message", "part", "message", "part"]);
    folder.run(&format!("show {ONE}.jsonl")).ends(0).says("Done with the oats");
    assert!(names(&folder.path("home/.local/share/opencode")).iter().all(|name| !name.contains('#')));
}
