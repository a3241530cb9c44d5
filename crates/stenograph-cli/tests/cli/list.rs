//! `steno list`, and the names of sessions.

use std::fs;

use crate::runner::{Done, Folder};

/// Two sessions of one project, one of another; the first has a sub-agent, the last continues the second.
const ONE: &str = "0198aaaa-1111-4222-8333-444455556666";
const TWO: &str = "0198aaaa-9999-4222-8333-444455556666";
const THREE: &str = "ffff0000-1111-4222-8333-444455556666";

/// A record of the agent used here.
pub fn message_line(session: &str, number: u32, role: &str, text: &str) -> String {
    let cwd = if session == THREE { "/work/shop" } else { "/work/app" };
    let start = session.get(..13).unwrap_or(session);
    format!(
        r#"{{"type":"{role}","uuid":"{start}-0000-8333-{number:012}","sessionId":"{session}","timestamp":"2026-01-02T03:{number:02}:00.000Z","cwd":"{cwd}","gitBranch":"topic/{session:.4}","message":{{"role":"{role}","content":"{text}"}}}}"#
    ) + "\n"
}

/// A home with sessions, indexed.
pub fn home() -> Folder {
    let folder = Folder::new();
    for (project, session) in [("-work-app", ONE), ("-work-app", TWO), ("-work-shop", THREE)] {
        fs::create_dir_all(folder.path(&format!("home/.claude/projects/{project}"))).unwrap();
        let number = if session == ONE { 1 } else { 20 + u32::from(session == THREE) };
        let text = message_line(session, number, "user", &format!("Feed the walrus {session:.6}"))
            + &message_line(session, number + 5, "assistant", "It is fed.");
        folder.write(&path(session), text);
    }
    let threads = format!("home/.claude/projects/-work-app/{ONE}/subagents");
    fs::create_dir_all(folder.path(&threads)).unwrap();
    let side = message_line(ONE, 3, "user", "Count the herring")
        .replace("\"uuid\"", "\"isSidechain\":true,\"agentId\":\"a1b2\",\"uuid\"");
    folder.write(&format!("{threads}/agent-a1b2.jsonl"), side);
    index(&folder);
    folder
}

pub fn path(session: &str) -> String {
    let project = if session == THREE { "-work-shop" } else { "-work-app" };
    format!("home/.claude/projects/{project}/{session}.jsonl")
}

pub fn index(folder: &Folder) {
    folder.run("index --root home").ends(0);
}

fn sessions(done: &Done) -> Vec<String> {
    done.ends(0).json().iter().map(|json| json["session"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn sessions_are_listed_newest_first_with_their_facts() {
    let folder = home();
    let done = folder.run("list --root home --json");
    assert_eq!(sessions(&done), [THREE, TWO, ONE]);
    let json = &done.json()[2];
    assert_eq!((&json["short"], &json["agent"]), (&"0198aaaa-1".into(), &"claude-code".into()));
    assert_eq!((&json["project"]["name"], &json["branch"]), (&"app".into(), &"topic/0198".into()));
    assert_eq!((&json["sources"], &json["messages"], &json["gone"]), (&2.into(), &3.into(), &0.into()));
    assert_eq!(json["asked"], "Feed the walrus 0198aa");
    assert_eq!(json["started"], "2026-01-02T03:01:00Z");
    assert!(json["resume"].as_str().unwrap().contains(ONE));
    let done = folder.run("list");
    let lines: Vec<&str> = done.ends(0).text().lines().collect();
    assert!(lines[0].starts_with("SESSION     AGENT        PROJECT"), "{lines:?}");
    assert!(lines[1].starts_with("ffff0000    claude-code  shop") && lines[1].ends_with("Feed the walrus ffff00"));
    assert_eq!(lines.len(), 4);
}

#[test]
fn every_command_takes_the_id_of_a_session() {
    let folder = home();
    let before = folder.read(&path(ONE));
    folder.run("check 0198aaaa-1 latest").ends(0).says("2 records");
    folder.run("convert 0198aaaa-1 --to steno").ends(0).says("Feed the walrus");
    folder.run("usage 0198aaaa-1").ends(1).talks("0198aaaa-1: contains no token counts");
    folder.run("usage 0198").fails("ambiguous");
    folder.run("cut 0198aaaa-1 --events 2 --in-place").ends(0);
    assert_ne!(folder.read(&path(ONE)), before);
    folder.run("undo 0198aaaa-1").ends(0);
    assert_eq!(folder.read(&path(ONE)), before);
    folder.run("show latest --project shop").ends(0).says("ffff00");
    folder.run("show latest --project nowhere").finds_nothing("no sessions in the project nowhere");
    for command in ["status", "undo", "archive restore", "cycod continue"] {
        folder.run(&format!("{command} latest --project nowhere")).finds_nothing("no sessions in the project nowhere");
    }
    folder.run("show 0198 --project nowhere").finds_nothing("0198: no such session in the project nowhere");
    folder.run("status latest --project shop --json").says("ffff0000");
    let around = |project: &str| folder.run(&format!("status --active-within 100y --all --json --project {project}"));
    assert!(around("shop").json().iter().all(|run| run["id"].as_str() == Some(THREE)));
    assert_eq!((around("shop").json().len(), around("nowhere").json().len()), (1, 0));
}

#[test]
fn conditions_select_the_sessions_that_match() {
    let folder = home();
    let listed = |line: &str| sessions(&folder.run(&format!("list --json {line}")));
    assert_eq!(listed("--project shop"), [THREE]);
    assert_eq!(listed("--project /work/app"), [TWO, ONE]);
    assert_eq!(listed("--branch ffff"), [THREE]);
    assert_eq!(listed("--until 2026-01-02T03:10:00Z"), [ONE]);
    assert_eq!(listed("--since 2026-01-02T03:10:00Z --agent claude"), [THREE, TWO]);
    assert_eq!(listed("walrus project:app"), [TWO, ONE]);
    assert_eq!(listed("herring"), [ONE]);
    assert_eq!(listed("-- -project:app"), [THREE]);
    assert_eq!(listed("session:0198 --sort oldest"), [ONE, TWO]);
    assert_eq!(listed("--sort longest --limit 1"), [ONE]);
    assert_eq!(listed("--sort largest --limit 1"), [ONE]);
    folder.run("list --project none").finds_nothing("none of 3 sessions");
    folder.run("list --gone").finds_nothing("no session's file is gone");
    folder.run("list --since soon").fails("soon: not a time");
    folder.run("list --limit 2").ends(0).talks("2 of 3 sessions shown");
    fs::create_dir(folder.path("elsewhere")).unwrap();
    folder.run("list --root elsewhere").finds_nothing("none of 3 sessions");
}

#[test]
fn an_empty_index_is_reported() {
    let folder = Folder::new();
    folder.run("list").fails("nothing is indexed yet").talks("steno index");
    folder.run("resume latest").fails("nothing is indexed yet");
    folder.run("show latest").fails("nothing is indexed yet").talks("steno index");
}

#[test]
fn sub_agents_and_forks_are_listed_below_their_session() {
    let folder = home();
    let four = "eeee0000-1111-4222-8333-444455556666";
    // A fork begins with the other session's events.
    let fork = fs::read_to_string(folder.path(&path(TWO))).unwrap().replace(TWO, four)
        + &message_line(four, 40, "user", "Again");
    folder.write(&format!("home/.claude/projects/-work-app/{four}.jsonl"), fork);
    index(&folder);
    let done = folder.run("list --tree");
    let lines: Vec<&str> = done.ends(0).text().lines().collect();
    let at =
        |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{lines:#?}"));
    assert_eq!(at("└ a1b2"), at("0198aaaa-1") + 1);
    assert_eq!(at("└ eeee0000"), at("0198aaaa-9") + 1);
    assert!(lines[at("└ eeee0000")].contains("[shares its beginning with it]"));
    let json = folder.run("list --tree --json").json();
    let fork = json.iter().find(|json| json["session"] == four).unwrap();
    assert_eq!((&fork["parent"]["session"], &fork["depth"]), (&TWO.into(), &1.into()));
    assert_eq!(json.iter().filter(|json| json["thread"] == "a1b2").count(), 1);
}

#[test]
fn a_continuation_is_listed_below_its_session_in_any_order_of_indexing() {
    let line = |role: &str, text: &str| format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}\n");
    let one = line("user", "one") + &line("assistant", "a1");
    let chats = [
        ("1001", one.clone(), 30),
        ("1002", one.clone() + &line("user", "two") + &line("assistant", "a2"), 20),
        ("1003", one + &line("user", "three") + &line("assistant", "a3"), 10),
    ];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let folder = Folder::new();
        fs::create_dir_all(folder.path("home/.cycod/history")).unwrap();
        for batch in [&order[..2], &order[2..]] {
            for at in batch {
                let (name, text, minutes) = &chats[*at];
                let path = folder.path(&format!("home/.cycod/history/chat-history-{name}.jsonl"));
                fs::write(&path, text).unwrap();
                let then = std::time::SystemTime::now() - std::time::Duration::from_secs(60 * minutes);
                fs::File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
            }
            index(&folder);
        }
        let json = folder.run("list --tree --json --root home").ends(0).json();
        let tree: Vec<_> = json.iter().map(|row| (row["session"].as_str().unwrap(), row["depth"].as_u64())).collect();
        assert_eq!(tree[0], ("1001", Some(0)), "{order:?}: {tree:?}");
        assert!(tree.contains(&("1002", Some(1))) && tree.contains(&("1003", Some(1))), "{order:?}: {tree:?}");
    }
}

#[test]
fn a_session_whose_file_is_gone_is_marked() {
    let folder = home();
    fs::remove_file(folder.path(&path(THREE))).unwrap();
    index(&folder);
    folder.run("list").ends(0).says("[gone] Feed the walrus ffff00");
    assert_eq!(sessions(&folder.run("list --gone --json")), [THREE]);
    let kept = Folder::new();
    fs::create_dir_all(kept.path("home/.claude/projects/-work-shop")).unwrap();
    kept.write(&path(THREE), message_line(THREE, 1, "user", "Feed the walrus"));
    kept.run("index --root home --no-keep").ends(0);
    fs::remove_file(kept.path(&path(THREE))).unwrap();
    kept.run("index --root home --no-keep").ends(0);
    kept.run("list").ends(0).says("[gone, not archived] Feed the walrus");
    kept.run("show ffff").finds_nothing("is gone and was never archived");
    kept.run("resume ffff").finds_nothing("the file is gone").talks("never archived");
}

#[test]
fn titles_do_nothing_to_a_terminal() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/.claude/projects/-work-shop")).unwrap();
    folder.write(&path(THREE), message_line(THREE, 1, "user", "a\\u001b[31m\\u0007\\u202eb"));
    index(&folder);
    for line in ["list", "list --json", "list --tree", "resume ffff", "show ffff"] {
        let done = folder.run(line);
        let text = done.ends(0).text().to_owned() + &done.talk;
        let bad = |char: &char| (char.is_control() && *char != '\n') || *char == '\u{202e}';
        assert_eq!(text.chars().find(bad), None, "{line}: {text:?}");
    }
}

#[test]
fn a_session_is_known_by_the_beginning_of_its_id() {
    let folder = home();
    folder
        .run("show 0198")
        .fails("0198: ambiguous: 2 sessions match")
        .talks("hint: 0198aaaa-1  claude-code")
        .talks("0198aaaa-9");
    folder.run("resume 0198").fails("2 sessions match");
    folder.run("show FFFF").ends(0).says("Feed the walrus ffff00");
    folder.run("show latest").ends(0).says("Feed the walrus ffff00");
    folder.run("show 5555").finds_nothing("5555: no file or session has that name").talks("steno list");
    folder.run("resume 5555").finds_nothing("no file or session has that name");
    folder.run("show 5555.jsonl").fails("no such file");
    fs::create_dir(folder.path("elsewhere")).unwrap();
    folder.run("show ffff --root elsewhere").finds_nothing("no file or session");
    folder.run("tail ffff -n 1").ends(0).says("It is fed.").talks(&format!("{THREE}.jsonl"));
    folder.run("tail 5555").finds_nothing("no file or session");
    folder.run("status ffff").says("ffff0000-1111").says("shop");
    folder.run("status 5555").ends(1).talks("no file or session");
    // A file of that name takes precedence.
    folder.write("ffff", crate::runner::NATIVE);
    folder.run("show ffff").ends(0).says("Fix the test.");
}

#[test]
fn two_of_one_name_are_known_by_their_paths() {
    let folder = Folder::new();
    for home in ["one", "two"] {
        fs::create_dir_all(folder.path(&format!("home/{home}/.chibi/contexts/main"))).unwrap();
        folder.write(
            &format!("home/{home}/.chibi/contexts/main/context.jsonl"),
            crate::runner::CHIBI.replace("Rust", home),
        );
    }
    index(&folder);
    let done = folder.run("show main");
    done.fails("main: ambiguous: 2 sessions match").talks("one/.chibi").talks("two/.chibi");
    folder.run("show home/two/.chibi/contexts/main/context.jsonl").ends(0).says("What is two?");
    folder.run("resume home/two/.chibi/contexts/main/context.jsonl").ends(0).says("chibi -c main");
}
