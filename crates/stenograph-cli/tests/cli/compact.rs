//! `steno compact`: replaces old turns with a summary, in every format that has a record for one and in contexts, and undoes
//! it.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use stenograph::edit::compact::can_store_summary;
use stenograph::formats::FORMATS;

use crate::runner::{Done, Folder, demo};

/// Runs the binary with a summariser: one argument for the binary, several words for the shell.
fn summarised(folder: &Folder, line: &str, command: &str) -> Done {
    let output = folder.command(line).arg("--summarise").arg(command).stdin(Stdio::null()).output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(!talk.contains("panicked"), "{line}: {talk}");
    Done { code: output.status.code().unwrap(), out: output.stdout, talk }
}

fn entry(id: usize, to: &str, content: &str) -> String {
    let from = if to == "user" { "default" } else { "alice" };
    format!(
        "{{\"id\":\"{id}\",\"timestamp\":1705123456,\"from\":\"{from}\",\"to\":\"{to}\",\"content\":\"{content}\",\"entry_type\":\"message\"}}\n"
    )
}

/// A conversation with this number of turns.
fn turns(count: usize) -> String {
    let turn = |turn| entry(2 * turn, "default", &format!("question {turn}")) + &entry(2 * turn + 1, "user", "answer");
    (0..count).map(turn).collect()
}

fn files(folder: &Folder, name: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder.path(name)).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn the_demo_of_every_format_is_compacted_and_restored_or_refused() {
    let places: Vec<&str> =
        FORMATS.iter().filter(|format| can_store_summary(**format)).map(|format| format.info().name).collect();
    for format in FORMATS {
        let (name, original) = (format.info().name, std::fs::read(demo(format.info().name)).unwrap());
        let folder = Folder::with("session", &original);
        let line = format!("compact session --in-place --from {name} --keep 0 --summary done-so-far");
        if !places.contains(&name) {
            let refused = folder.run(&line);
            if format.info().is_never_edited {
                refused.fails("cannot be edited");
            } else {
                refused.fails("cannot store a summary");
                for place in &places {
                    refused.talks(place);
                }
            }
            assert_eq!(folder.names(), ["session"]);
            continue;
        }
        let planned = folder.run(&format!("compact session --from {name} --keep 0 --dry-run --json"));
        let kept = planned.ends(0).json()[0]["turns"]["kept"].as_u64().unwrap();
        assert_eq!(folder.read("session"), original);
        folder.run(&line).ends(0).talks("to undo: steno undo session");
        let shown = folder.run(&format!("show session --from {name} --json")).json();
        let marker = shown.iter().rposition(|event| event["content"] == "done-so-far").unwrap();
        assert_eq!(shown[marker]["kind"], "compaction", "{name}");
        // The last event, except records of an unknown type.
        let after = &shown[marker + 1..];
        assert!(after.iter().all(|event| event["kind"] == "other"), "{name}");
        // Such a record keeps the turn that it is in.
        assert!(kept <= after.len() as u64, "{name}");
        folder.run("undo session").ends(0).talks("byte for byte");
        assert_eq!(folder.read("session"), original, "{name}");
        assert_eq!(folder.names(), ["session"]);
        folder.run("undo session").finds_nothing("nothing to undo");
    }
}

#[test]
fn another_file_can_be_written_and_lines_that_came_since_stay() {
    let folder = Folder::with("a.jsonl", turns(6));
    folder.run("compact a.jsonl --keep 2 --summary so -o b.jsonl --json").ends(0).says("\"output\":\"b.jsonl\"");
    assert_eq!(folder.read("a.jsonl"), turns(6).as_bytes());
    folder.run("compact a.jsonl --summary so -o a.jsonl").fails("is the input itself").talks("--in-place");
    let text = String::from_utf8(folder.read("b.jsonl")).unwrap();
    assert!(text.lines().next().unwrap().contains("\"to\":\"default\""), "{text}");
    assert!(text.ends_with(&turns(6)[turns(4).len()..]));
    let piped = folder.run_with("compact - --keep 2 --summary so", turns(6).as_bytes());
    assert_eq!(piped.ends(0).text().lines().count(), 5);
    folder.run("compact a.jsonl --in-place --summary so").ends(0);
    let now = [folder.read("a.jsonl"), entry(99, "user", "more").into_bytes()].concat();
    folder.write("a.jsonl", now);
    folder.run("undo a.jsonl").ends(0).talks("appended since");
    assert_eq!(folder.read("a.jsonl"), (turns(6) + &entry(99, "user", "more")).as_bytes());
    folder.run("compact a.jsonl --in-place --summary so").ends(0);
    folder.write("a.jsonl", "something else\n");
    folder.run("undo a.jsonl").fails("the file changed after the edit");
}

#[test]
fn nothing_to_compact_exits_with_1_and_changes_nothing() {
    let folder = Folder::with("a.jsonl", turns(3));
    folder.run("compact a.jsonl --in-place --summary so").ends(1).talks("nothing to compact");
    let json = folder.run("compact a.jsonl --in-place --keep-tokens 100000 --summary so --json").ends(1).json();
    assert_eq!(json[0]["compacted"], false);
    assert_eq!(folder.names(), ["a.jsonl"]);
    folder.run("compact a.jsonl --in-place --keep 1").fails("no summary given");
    folder.run("compact a.jsonl --in-place --keep 1 --summary @none.txt").fails("no such file");
    folder.run("compact none.jsonl --summary so").fails("no such file");
    folder.run("compact --context none --root . --summary so").finds_nothing("no such context");
    assert_eq!(folder.run("compact a.jsonl --keep 1 --keep-tokens 2 --summary so").code, 2);
    assert_eq!(folder.names(), ["a.jsonl"]);
}

#[test]
fn a_summariser_reads_the_removed_events_and_prints_the_summary() {
    let folder = Folder::with("a.jsonl", turns(6));
    let count = r#"grep -c '"kind":"message"'"#;
    let json = summarised(&folder, "compact a.jsonl --in-place --keep 2 --json", count).ends(0).json();
    assert_eq!((&json[0]["summary"], &json[0]["events"]["removed"]), (&"8".into(), &8.into()));
    // The next summariser also reads the previous summary.
    let json = summarised(&folder, "compact a.jsonl --in-place --keep 1 --json", "grep -c .").ends(0).json();
    assert_eq!(json[0]["summary"], "3");
    let last = summarised(&folder, "compact a.jsonl --in-place --keep 0 --as steno --json", "tr -d '\\n' | head -c 7")
        .ends(0)
        .json();
    assert_eq!(last[0]["summary"], "{\"v\":1,");
    for _ in 0..3 {
        folder.run("undo a.jsonl").ends(0);
    }
    assert_eq!(folder.read("a.jsonl"), turns(6).as_bytes());
}

#[test]
fn a_summariser_that_fails_or_prints_nothing_changes_nothing() {
    let folder = Folder::with("a.jsonl", turns(6));
    std::fs::create_dir_all(folder.path("contexts/x")).unwrap();
    folder.write("contexts/x/context.jsonl", turns(6));
    for line in ["compact a.jsonl --in-place", "compact contexts/x"] {
        summarised(&folder, line, "echo half a summary; exit 3").fails("exit status: 3");
        summarised(&folder, line, "cat > /dev/null; echo; echo '  '").fails("the summary is empty");
        summarised(&folder, line, "no-such-command-here").ends(2).talks("nothing was changed");
        summarised(&folder, &format!("{line} --timeout 1"), "sleep 100 | sleep 100").fails("took too long");
        summarised(&folder, line, "printf '\\377'").ends(2);
    }
    assert_eq!(folder.read("a.jsonl"), turns(6).as_bytes());
    assert_eq!(files(&folder, "contexts/x").len(), 1);
    assert_eq!(folder.names(), ["a.jsonl", "contexts"]);
}

#[test]
fn a_summariser_stops_with_its_parent() {
    let folder = Folder::with("a.jsonl", turns(6));
    let mut command = folder.command("compact a.jsonl --in-place --summarise");
    let mut child = command.arg("touch began; sleep 100 | cat").stderr(Stdio::piped()).spawn().unwrap();
    while !folder.path("began").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    // A surviving process would hold this open.
    let mut talk = String::new();
    child.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(talk.contains("stopped; nothing was changed"), "{talk}");
    assert_eq!(folder.read("a.jsonl"), turns(6).as_bytes());
}

#[test]
fn a_summariser_may_read_and_print_as_much_as_it_likes_in_any_order() {
    let long = "word ".repeat(40_000);
    let folder =
        Folder::with("a.jsonl", turns(1) + &entry(100, "default", &long) + &entry(101, "user", &long) + &turns(4));
    // More than a pipe holds in both directions, printed before anything is read.
    let command = "head -c 300000 /dev/zero | tr '\\0' 'y'; cat > /dev/null";
    let json = summarised(&folder, "compact a.jsonl --in-place --json", command).ends(0).json();
    assert_eq!(json[0]["summary"].as_str().unwrap().len(), 300_000);
    // A command that reads nothing.
    let folder =
        Folder::with("a.jsonl", turns(1) + &entry(100, "default", &long) + &entry(101, "user", &long) + &turns(4));
    summarised(&folder, "compact a.jsonl --in-place", "echo fine").ends(0);
}

#[test]
fn a_context_is_compacted_with_its_archive_and_comes_back() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(".chibi/contexts/work")).unwrap();
    let place = ".chibi/contexts/work";
    folder.write(&format!("{place}/context.jsonl"), turns(6));
    let before = files(&folder, place);
    let line = "compact --context work --root . --keep 2";
    folder.run(&format!("{line} --dry-run")).ends(0).talks("8 events would be removed, 4 whole turns");
    assert_eq!(files(&folder, place), before);
    let json = folder.run(&format!("{line} --summary four-turns --json")).ends(0).json();
    assert!(json[0]["archive"].as_str().unwrap().ends_with("transcript_archive.jsonl"));
    let now = files(&folder, place);
    assert_eq!(now["transcript_archive.jsonl"], turns(4).as_bytes());
    let window = String::from_utf8(now["context.jsonl"].clone()).unwrap();
    assert!(window.lines().next().unwrap().contains("\"metadata\":{\"summary\":\"four-turns\"}"));
    assert!(window.ends_with(&turns(6)[turns(4).len()..]));
    assert!(now["transcript.md"].starts_with(b"[USER]: question 0\n\n[ASSISTANT]: answer\n\n"));
    folder.run("chibi context rebuild --context work --root .").ends(0);
    assert_eq!(files(&folder, place)["context.jsonl"], now["context.jsonl"]);
    folder.run("undo --context work --root .").ends(0).talks("8 entries restored");
    assert_eq!(files(&folder, place), before);
    // The window itself may be named.
    folder
        .run(&format!("compact {place}/context.jsonl --keep 1 --summary so"))
        .ends(0)
        .talks("transcript_archive.jsonl");
    folder.run(&format!("undo {place}/context.jsonl")).ends(0).talks("entries restored");
    assert_eq!(files(&folder, place), before);
    // An edit of the window after a compaction is undone first.
    folder.run(&format!("compact {place} --keep 2 --summary so")).ends(0);
    folder.run(&format!("cut {place}/context.jsonl --events 2 --in-place")).ends(0);
    folder.run("undo --context work --root .").ends(0).talks("before steno cut");
    folder.run(&format!("undo {place}")).ends(0).talks("entries restored");
    assert_eq!(files(&folder, place), before);
    folder.run(&format!("compact {place} --keep 1 --summary so -o x")).fails("always compacted in place");
    folder.run(&format!("undo {place}")).finds_nothing("no compaction to undo");
    let json = folder.run(&format!("undo {place} --json"));
    json.finds_nothing("no compaction to undo").says("\"undone\":null");
}

#[test]
fn a_context_that_is_killed_at_any_moment_loses_no_entry_and_is_completed() {
    const KILLS: u32 = 40;
    let count = 60;
    for kill in 0..KILLS {
        let folder = Folder::new();
        std::fs::create_dir_all(folder.path("x")).unwrap();
        folder.write("x/context.jsonl", turns(count));
        let mut child = folder.command("compact x --keep 2 --summary first").stderr(Stdio::null()).spawn().unwrap();
        // From before its start until after its end, on any machine.
        std::thread::sleep(Duration::from_micros(u64::from(kill * kill) * 40));
        let _ = child.kill();
        child.wait().unwrap();
        let ids = |name: &str| -> Vec<String> {
            let text = std::fs::read_to_string(folder.path(name)).unwrap_or_default();
            let entries = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            entries.map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
        };
        let check = |state: &str| {
            let (window, archive) = (ids("x/context.jsonl"), ids("x/transcript_archive.jsonl"));
            for id in (0..2 * count).map(|id| id.to_string()) {
                let found = |ids: &[String]| ids.iter().filter(|found| **found == id).count();
                let (here, there) = (found(&window), found(&archive));
                assert!(here + there >= 1 && here <= 1 && there <= 1, "{id} {state}, kill {kill}: {here} {there}");
            }
        };
        check("after the kill");
        let again = folder.run("compact x --keep 2 --summary second");
        assert!(matches!(again.code, 0 | 1), "{}", again.talk);
        check("after doing it again");
        assert_eq!(ids("x/context.jsonl").len(), 5);
        let page = String::from_utf8(folder.read("x/transcript.md")).unwrap();
        assert_eq!(page.matches("[USER]: question 3\n").count(), 1);
        let mut child = folder.command("undo x").stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(kill * kill) * 40));
        let _ = child.kill();
        child.wait().unwrap();
        check("after a kill on the way back");
        // It may have been done already.
        assert!(matches!(folder.run("undo x").code, 0 | 1));
        assert_eq!(folder.read("x/context.jsonl"), turns(count).as_bytes());
        check("after undoing it");
    }
}

#[test]
fn a_file_that_is_killed_at_any_moment_is_whole_and_can_be_restored() {
    for kill in 0..20_u32 {
        let folder = Folder::with("a.jsonl", turns(60));
        let mut child =
            folder.command("compact a.jsonl --in-place --keep 2 --summary so").stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(kill * kill) * 120));
        let _ = child.kill();
        child.wait().unwrap();
        let lines = String::from_utf8(folder.read("a.jsonl")).unwrap().lines().count();
        assert!(lines == 120 || lines == 5, "{lines}");
        assert!(matches!(folder.run("compact a.jsonl --in-place --keep 2 --summary so").code, 0 | 1));
        assert_eq!(String::from_utf8(folder.read("a.jsonl")).unwrap().lines().count(), 5);
        folder.run("undo a.jsonl").ends(0);
        assert_eq!(folder.read("a.jsonl"), turns(60).as_bytes());
        folder.run("undo a.jsonl").finds_nothing("nothing to undo");
    }
}

#[test]
fn large_numbers_are_grouped() {
    let folder = Folder::with("a.jsonl", turns(602));
    folder
        .run("compact a.jsonl --keep 2 --dry-run --tokenizer bytes")
        .ends(0)
        .talks("1,200 events would be removed, 600 whole turns");
}
