//! `steno mark`: pins, titles, tags and notes on the command line, and where they appear.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::list::{home, index, message_line, path};
use crate::runner::{Done, Folder};

const ONE: &str = "0198aaaa-1111-4222-8333-444455556666";
const TWO: &str = "0198aaaa-9999-4222-8333-444455556666";
const THREE: &str = "ffff0000-1111-4222-8333-444455556666";

/// Runs the command with these arguments, which may contain spaces.
fn mark(folder: &Folder, arguments: &[&str]) -> Done {
    let output = folder.command("mark").args(arguments).output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(!talk.contains("panicked"), "{talk}");
    Done { code: output.status.code().unwrap(), out: output.stdout, talk }
}

fn sessions(done: &Done) -> Vec<String> {
    done.ends(0).json().iter().map(|json| json["session"].as_str().unwrap().to_owned()).collect()
}

fn only(done: &Done) -> Value {
    let mut json = done.ends(0).json();
    assert_eq!(json.len(), 1);
    json.remove(0)
}

#[test]
fn a_session_is_pinned_named_tagged_and_annotated_and_the_marks_are_printed() {
    let folder = home();
    mark(&folder, &[ONE]).ends(1).says("no marks");
    folder.run("mark").finds_nothing("no sessions are marked");
    let title = "The walrus that was fed";
    let done = mark(&folder, &["0198aaaa-1", "--pin", "--title", title, "--tag", "zoo", "--tag", "Sea", "--json"]);
    let json = only(&done);
    assert_eq!((&json["session"], &json["pinned"], &json["title"]), (&ONE.into(), &true.into(), &title.into()));
    assert_eq!(json["tags"], serde_json::json!(["Sea", "zoo"]));
    let done = mark(&folder, &[ONE, "--note", "look\nhere", "--event", "2", "--untag", "SEA"]);
    done.ends(0).says("pinned").says("title    The walrus").says("tags     zoo\n").says("note 1   ");
    done.says("steno show 0198aaaa-1 --event 2").says("           look\n           here");
    let note = only(&mark(&folder, &[ONE, "--json"]))["notes"][0].clone();
    assert_eq!((&note["number"], &note["event"], &note["text"]), (&1.into(), &2.into(), &"look\nhere".into()));
    folder.run("show 0198aaaa-1 --event 2 --text").ends(0).says("It is fed.");
    for selection in ["", "--last 1", "--event 2"] {
        let done = folder.run(&format!("show 0198aaaa-1 {selection}"));
        done.ends(0).says("It is fed.\n       note 1: look\n               here\n");
    }
    for form in ["--json", "--text", "--event 1"] {
        assert!(!folder.run(&format!("show 0198aaaa-1 {form}")).ends(0).text().contains("note 1"), "{form}");
    }
    let done = mark(&folder, &[ONE, "--unpin", "--no-title", "--untag", "zoo", "--remove-note", "1"]);
    done.ends(0).says("no marks");
    folder.run("mark").finds_nothing("no sessions are marked");
}

#[test]
fn several_sessions_are_marked_at_once_and_listed_pinned_ones_first() {
    let folder = home();
    folder.run(&format!("mark {ONE} {THREE} {ONE} --tag zoo")).ends(0);
    folder.run("mark 0198aaaa-1 --pin").ends(0);
    assert_eq!(sessions(&folder.run("mark --json")), [ONE, THREE]);
    assert_eq!(sessions(&folder.run("mark --json --project shop")), [THREE]);
    let done = folder.run("mark");
    done.ends(0).says("TAGS").says("* Feed the walrus 0198aa");
    assert_eq!(done.text().lines().count(), 3);
    mark(&folder, &[ONE, THREE, "--title", "both"]).fails("take one session");
    mark(&folder, &["latest", "--project", "app", "--tag", "newest"]).ends(0);
    assert_eq!(sessions(&folder.run("list tag:newest --json")), [TWO]);
}

#[test]
fn marks_are_found_and_shown_by_list_find_and_show() {
    let folder = home();
    mark(&folder, &[ONE, "--pin", "--title", "Herring budget", "--tag", "team/zoo"]).ends(0);
    mark(&folder, &[THREE, "--note", "ask the keeper", "--event", "2"]).ends(0);
    for query in
        ["is:pinned", "tag:team/zoo", "tag:team/*", "budget", "fed tag:TEAM/ZOO", "is:marked -is:error tag:team/zoo"]
    {
        let done = folder.command("list --json").arg(query).output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(text.lines().count() == 1 && text.contains(ONE), "{query}: {text}");
    }
    folder.run("list tag:team").finds_nothing("none of 3 sessions matches");
    assert_eq!(sessions(&folder.run("list is:marked --json")), [THREE, ONE]);
    assert_eq!(sessions(&folder.run("list keeper --json")), [THREE]);
    let done = folder.run("list is:pinned --json").json().remove(0);
    assert_eq!((&done["pinned"], &done["title"], &done["notes"]), (&true.into(), &"Herring budget".into(), &0.into()));
    assert_eq!(done["tags"], serde_json::json!(["team/zoo"]));
    folder.run("list").ends(0).says("* Herring budget #team/zoo");
    let found = folder.run("find keeper --json").ends(0).json();
    assert_eq!(
        (&found[0]["kind"], &found[0]["event"], &found[0]["session"]),
        (&"note".into(), &2.into(), &THREE.into())
    );
    assert_eq!(found[1]["total"], 1);
    let found = folder.run("find budget --json").ends(0).json();
    assert_eq!((&found[0]["kind"], &found[0]["event"]), (&"title".into(), &Value::Null));
    assert_eq!((&found[0]["pinned"], &found[0]["tags"][0]), (&true.into(), &"team/zoo".into()));
    folder.run("find herring").ends(0).says("Herring budget").says("«Herring» budget").says("Count the «herring»");
    folder.run("show 0198aaaa-1").ends(0).says("Herring budget").says("pinned \u{b7} #team/zoo");
    // What the agent wrote is unchanged.
    let events = folder.run("show 0198aaaa-1 --json").ends(0).text().to_owned();
    assert!(!events.contains("budget"), "{events}");
}

#[test]
fn pages_of_a_search_contain_every_title_note_and_event_once() {
    let folder = home();
    for session in [ONE, TWO, THREE] {
        mark(&folder, &[session, "--note", "a walrus", "--title", "walrus"]).ends(0);
    }
    for limit in [1, 2, 4, 20] {
        let (mut kinds, mut cursor) = (Vec::new(), Some("0".to_owned()));
        while let Some(at) = cursor {
            let mut page = folder.run(&format!("find walrus --json --limit {limit} --cursor {at}")).ends(0).json();
            let end = page.pop().unwrap();
            assert_eq!((&end["total"], end["shown"].as_u64().unwrap()), (&9.into(), page.len() as u64));
            kinds.extend(page.iter().map(|hit| hit["kind"].as_str().unwrap().to_owned()));
            cursor = end["next"].as_str().map(str::to_owned);
        }
        let count = |kind: &str| kinds.iter().filter(|other| *other == kind).count();
        assert_eq!((count("title"), count("note"), count("message")), (3, 3, 3), "{limit}: {kinds:?}");
    }
}

#[test]
fn marks_survive_a_deleted_index_a_deleted_file_and_a_rewritten_one() {
    let folder = home();
    mark(&folder, &[ONE, "--pin", "--note", "fed at last", "--event", "2"]).ends(0);
    mark(&folder, &[ONE, "--note", "the question", "--event", "1"]).ends(0);
    mark(&folder, &[TWO, "--tag", "kept"]).ends(0);
    let summary = message_line(ONE, 9, "user", "A summary").replace("000000000009", "000000000099");
    folder.write(&path(ONE), summary + &message_line(ONE, 6, "assistant", "It is fed."));
    fs::remove_file(folder.path(&path(TWO))).unwrap();
    index(&folder);
    fs::remove_dir_all(folder.path("store/index")).unwrap();
    index(&folder);
    let json = only(&folder.run(&format!("mark {ONE} --json")));
    assert_eq!(json["pinned"], true);
    assert_eq!((&json["notes"][0]["event"], &json["notes"][0]["version"]), (&2.into(), &Value::Null));
    // Only the archived version has it.
    assert_eq!((&json["notes"][1]["event"], &json["notes"][1]["version"]), (&1.into(), &1.into()));
    let show = json["notes"][1]["show"].as_str().unwrap().strip_prefix("steno ").unwrap().to_owned();
    folder.run(&format!("{show} --text")).ends(0).says("Feed the walrus");
    assert_eq!(sessions(&folder.run("list tag:kept --gone --json")), [TWO]);
    folder.run("archive verify").ends(0).talks("no damage");
    assert_eq!(only(&folder.run("archive verify --json"))["marked"], 2);
}

#[test]
fn a_note_on_a_missing_event_is_listed_with_a_remark() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("home/.claude/projects/-work-app")).unwrap();
    folder
        .write(&path(ONE), message_line(ONE, 1, "user", "Feed it") + &message_line(ONE, 2, "assistant", "It is fed."));
    folder.run("index --root home --no-keep").ends(0);
    mark(&folder, &[ONE, "--note", "fed", "--event", "2"]).ends(0);
    folder.write(&path(ONE), message_line(ONE, 1, "user", "Feed it") + &message_line(ONE, 3, "assistant", "It fled."));
    folder.run("index --root home --no-keep").ends(0);
    folder.run("mark latest").ends(0).says("(its event is gone)").says("fed");
    assert_eq!(only(&folder.run("mark latest --json"))["notes"][0]["gone"], true);
}

#[test]
fn pinned_sessions_are_not_pruned_and_a_pruned_session_loses_its_marks() {
    let folder = home();
    folder.run(&format!("mark {ONE} {TWO} --pin --tag zoo")).ends(0);
    folder.run(&format!("mark {THREE} --tag zoo")).ends(0);
    for line in ["archive prune --older-than 1d --dry-run", "archive prune --max-count 0 --force --dry-run"] {
        let done = folder.run(line);
        done.ends(0).says("ffff0000").talks("kept: 0198aaaa-1: pinned").talks("1 session would be pruned");
    }
    folder.run("archive prune --older-than 1d").ends(0);
    assert_eq!(sessions(&folder.run("mark --json")), [TWO, ONE]);
    folder.run("archive unforget ffff").ends(0);
    index(&folder);
    let done = folder.run(&format!("mark {THREE} --json"));
    assert_eq!(done.ends(1).json()[0]["tags"], serde_json::json!([]));
    folder.run(&format!("mark {ONE} --unpin")).ends(0);
    folder.run("archive prune --older-than 1d").ends(0).says("0198aaaa-1");
    assert_eq!(sessions(&folder.run("mark --json")), [TWO]);
}

#[test]
fn wrong_use_is_explained_and_text_is_harmless() {
    let folder = home();
    mark(&folder, &["nothing", "--pin"]).finds_nothing("no file or session has that name");
    mark(&folder, &["latest", "--tag", "two words"]).fails("two words: not a valid tag");
    mark(&folder, &["latest", "--title", " "]).fails("the text is empty");
    mark(&folder, &["latest", "--remove-note", "7"]).fails("has no note 7");
    mark(&folder, &["latest", "--note", "x", "--event", "99"]).fails("event 99 is not in the index");
    mark(&folder, &["latest", "--title", &"x".repeat(201)]).fails("more than 200 characters");
    mark(&folder, &["--pin"]).ends(2).talks("SESSION");
    mark(&folder, &["latest", "--pin", "--unpin"]).ends(2);
    folder.run("mark").finds_nothing("no sessions are marked");
    mark(&folder, &["latest", "--title", "a\u{1b}[2Jb", "--note", "c\u{1b}]0;d\u{7}"]).ends(0);
    for line in ["mark latest", "mark", "list", "find a", "show latest", "mark --json", "list --json", "find a --json"]
    {
        let out = folder.run(line).ends(0).out.clone();
        assert!(!out.contains(&0x1b) && !out.contains(&7), "{line}: {}", String::from_utf8_lossy(&out));
    }
}

#[test]
fn a_note_that_was_acknowledged_survives_kills_at_any_moment() {
    let folder = home();
    let mut acknowledged = Vec::new();
    for round in 0..16_u64 {
        let text = format!("note-{round}");
        let mut command = folder.command("mark");
        command.args([ONE, "--note", &text]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round * 7));
        let is_done = child.try_wait().unwrap().is_some_and(|status| status.success());
        let _ = child.kill();
        child.wait().unwrap();
        acknowledged.extend(is_done.then_some(text));
    }
    mark(&folder, &[ONE, "--note", "the last"]).ends(0);
    acknowledged.push("the last".to_owned());
    index(&folder);
    let json = only(&folder.run(&format!("mark {ONE} --json")));
    let notes: Vec<&str> =
        json["notes"].as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap()).collect();
    let missing: Vec<&String> = acknowledged.iter().filter(|text| !notes.contains(&text.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {notes:?}");
    folder.run("archive verify").ends(0).talks("no damage");
}

#[test]
fn an_archive_without_marks_stays_in_the_version_that_earlier_programs_read() {
    let folder = home();
    let versions = || -> Vec<u64> {
        let log = String::from_utf8(folder.read("store/archive/log.jsonl")).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|line| line["archive"].as_u64()).collect()
    };
    assert!(versions().iter().all(|version| *version == 2));
    folder.run("mark latest --pin").ends(0);
    let mut with_marks = versions();
    assert_eq!(with_marks.pop(), Some(3));
    assert!(with_marks.iter().all(|version| *version == 2));
}
