//! `steno inbox`: concurrent readers, and readers that are killed.

use std::collections::HashMap;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::runner::{Folder, names};

fn send(folder: &Folder, content: &str) {
    let mut command = folder.command("chibi inbox send ctx --from main");
    let done = command.arg(content).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn started(folder: &Folder, line: &str) -> Child {
    folder.command(line).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The numbers of the completely printed messages.
fn printed(text: &str) -> Vec<u32> {
    let numbers = text.lines().filter_map(|line| line.strip_prefix("[From: main] message ")?.strip_suffix('.'));
    numbers.map(|number| number.parse().unwrap()).collect()
}

#[test]
#[cfg(unix)]
fn the_lock_on_an_inbox_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.run("chibi inbox send --context research --root . --from main hello").ends(0);
    let lock = folder.path(".chibi/contexts/research/.inbox.lock");
    assert_eq!(std::fs::metadata(lock).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_message_is_left_looked_at_and_taken() {
    let folder = Folder::new();
    folder.run("chibi inbox take --context research --root .").finds_nothing("no such context");
    let sent = folder.run("chibi inbox send --context research --root . --from main --json hello");
    sent.ends(0).talks("created the context");
    assert_eq!((&sent.json()[0]["content"], &sent.json()[0]["from"]), (&"hello".into(), &"main".into()));
    folder.run_with("chibi inbox send .chibi/contexts/research -", b"two\nlines\n").ends(0);
    assert_eq!(folder.run("chibi inbox peek --context research --root .").ends(0).text().lines().count(), 6);
    let events = folder.run("chibi inbox peek --context research --root . --json").ends(0).json();
    assert_eq!((&events[1]["content"], &events[1]["to"]), (&"two\nlines".into(), &"research".into()));
    let taken = folder.run("chibi inbox take --context research --root .");
    let block = "--- INBOX MESSAGES ---\n[From: main] hello\n[From: user] two\nlines\n--- END INBOX ---\n\n";
    assert_eq!(taken.ends(0).text(), block);
    let again = folder.run("chibi inbox take --context research --root .");
    assert_eq!(again.ends(1).talks("no messages for research").text(), "");
    folder.run("show .chibi/contexts/research/inbox.jsonl").ends(2);
}

#[test]
fn a_home_is_named_by_the_environment_by_a_root_or_by_a_folder() {
    let folder = Folder::new();
    let with = |line: &str| folder.command(line).env("CHIBI_HOME", folder.path("other")).output().unwrap();
    assert!(with("chibi inbox send --context a hi").status.success());
    assert!(folder.path("other/contexts/a/inbox.jsonl").is_file());
    assert!(with("chibi inbox send --context a --root . hi").status.success());
    assert!(folder.path(".chibi/contexts/a/inbox.jsonl").is_file());
    // A root may itself be the folder of contexts.
    folder.run("chibi inbox peek --context a --root other").ends(0);
    folder.run("chibi inbox send hello").fails("no context given");
    folder.run("chibi inbox send --context ../a hello").fails("is not a valid context name");
    folder.run("chibi inbox send folder --context a hello").fails("more than one message");
    folder.run("chibi inbox send a b c").fails("expected a folder and a message");
    folder.run("chibi inbox send other/contexts/a @no-such-file").fails("no such file");
}

#[test]
fn a_line_that_is_not_a_message_is_kept_aside_and_reported() {
    let folder = Folder::new();
    send(&folder, "message 1.");
    let mut inbox = folder.read("ctx/inbox.jsonl");
    inbox.extend_from_slice(b"oops\n{\"id\":\"half");
    folder.write("ctx/inbox.jsonl", inbox);
    let done = folder.run("chibi inbox take ctx");
    done.ends(0).talks("2 lines are not messages: saved in ctx/inbox.unread.jsonl");
    assert_eq!(printed(done.text()), [1]);
    assert_eq!(folder.read("ctx/inbox.unread.jsonl"), b"oops\n{\"id\":\"half\n");
}

#[test]
fn readers_at_the_same_time_get_every_message_once() {
    let folder = Folder::new();
    (0..20).for_each(|number| send(&folder, &format!("message {number}.")));
    for round in 0..10 {
        let readers: Vec<Child> = (0..4).map(|_| started(&folder, "chibi inbox take ctx")).collect();
        let number = 20 + round;
        send(&folder, &format!("message {number}."));
        let mut counts: HashMap<u32, u32> = HashMap::new();
        let read = |text: &[u8]| printed(std::str::from_utf8(text).unwrap());
        for reader in readers {
            let done = reader.wait_with_output().unwrap();
            assert!(matches!(done.status.code(), Some(0 | 1)), "{done:?}");
            read(&done.stdout).into_iter().for_each(|number| *counts.entry(number).or_default() += 1);
        }
        let left = folder.run("chibi inbox take ctx");
        read(&left.out).into_iter().for_each(|number| *counts.entry(number).or_default() += 1);
        let first = if round == 0 { 0 } else { number };
        let expected: HashMap<u32, u32> = (first..=number).map(|number| (number, 1)).collect();
        assert_eq!(counts, expected);
    }
    assert_eq!(names(&folder.path("ctx")), [".inbox.lock", "inbox.jsonl"]);
}

#[test]
fn a_reader_that_is_killed_has_printed_a_message_or_left_it() {
    let folder = Folder::new();
    for number in 0..60 {
        send(&folder, &format!("message {number}."));
        let mut reader = started(&folder, "chibi inbox take ctx");
        // From before its start until after its end.
        std::thread::sleep(Duration::from_micros(number * 150));
        reader.kill().unwrap();
        let mut text = String::new();
        reader.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        reader.wait().unwrap();
        let mut seen = printed(&text);
        seen.extend(printed(folder.run("chibi inbox take ctx").text()));
        assert!(seen.contains(&u32::try_from(number).unwrap()), "message {number} is lost: {seen:?}");
        assert_eq!(folder.run("chibi inbox take ctx").code, 1);
    }
}

#[cfg(unix)]
#[test]
fn messages_stay_if_the_reader_disconnects() {
    let folder = Folder::new();
    folder.run_with("chibi inbox send ctx -", "x".repeat(200_000).as_bytes()).ends(0);
    let mut reader = started(&folder, "chibi inbox take ctx");
    drop(reader.stdout.take());
    let mut talk = String::new();
    reader.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
    assert_eq!(reader.wait().unwrap().code(), Some(2), "{talk}");
    assert!(talk.contains("the messages stay in the inbox"), "{talk}");
    assert!(folder.run("chibi inbox peek ctx").ends(0).out.len() > 200_000);
}
