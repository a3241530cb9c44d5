//! Recording Leslie's transcripts, with real pipes and real kills.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::runner::{Folder, names};

const CHAT: &str = r#"{"role":"user","content":"Fix login bug"}
{"role":"assistant","content":"Fixed."}
{"role":"user","content":"And the test?"}
{"role":"assistant","content":"Green."}
"#;

const SHELF: &str = ".leslie/threads/t1/.meta/transcripts";

#[test]
fn one_text_is_written_for_every_question() {
    let folder = Folder::new();
    let line =
        "record --from openai-chat --to leslie --set thread=t1 --set chat=c1 --set mode=review --set stop=max_tokens";
    folder.run_with(line, CHAT.as_bytes()).ends(0).talks("4 events recorded, completed");
    let texts = names(&folder.path(SHELF));
    assert_eq!(texts.len(), 2);
    let fix = texts.iter().find(|name| name.ends_with("-Fix-login-bug.txt")).unwrap();
    let text = String::from_utf8(folder.read(&format!("{SHELF}/{fix}"))).unwrap();
    assert!(
        text.starts_with("Thread ID: t1\nChat ID: c1\nTime Range: ") && text.contains("\nAgent Mode: review\n"),
        "{text}"
    );
    let test = texts.iter().find(|name| name.ends_with("-And-the-test.txt")).unwrap();
    assert!(String::from_utf8(folder.read(&format!("{SHELF}/{test}"))).unwrap().contains("Stop Reason: max_tokens\n"));
    for place in [".", ".leslie", SHELF] {
        let shown = folder.run(&format!("show {place} --kind message --json")).ends(0).json();
        let texts: Vec<&str> = shown.iter().map(|event| event["content"].as_str().unwrap()).collect();
        assert_eq!(texts, ["Fix login bug", "Fixed.", "And the test?", "Green."]);
    }
    folder.run_with("record --from openai-chat --to leslie:other --set thread=a/b", b"").fails("a/b: is not a valid");
    folder
        .run_with("record --from openai-chat --to leslie:other --set mode=nap", b"")
        .fails("is not a valid mode; use agent, plan, duet or review");
    assert_eq!(folder.names(), [".leslie"]);
}

#[test]
fn an_unanswered_question_has_no_stop_reason() {
    let asked = CHAT.lines().next().unwrap();
    for (chat, is_stated) in [(asked.to_owned(), false), (CHAT.to_owned(), true)] {
        let folder = Folder::new();
        folder.run_with("record --from openai-chat --to leslie --set thread=t1", chat.as_bytes()).ends(0);
        let texts = names(&folder.path(SHELF)).into_iter().filter(|name| name.ends_with(".txt"));
        let texts: Vec<String> = texts.collect();
        let stated = texts.iter().filter(|name| {
            String::from_utf8(folder.read(&format!("{SHELF}/{name}"))).unwrap().contains("Stop Reason: end_turn\n")
        });
        assert_eq!(stated.count() > 0, is_stated, "{texts:?}");
    }
}

#[test]
fn a_thread_is_listed_by_its_first_question() {
    let folder = Folder::new();
    for (question, minute) in [("First things", "00"), ("Second things", "05"), ("Third things", "10")] {
        let time = format!("2026-03-02T09:{minute}:00Z");
        let line = |role: &str, text: &str| {
            format!("{{\"v\":1,\"kind\":\"message\",\"time\":\"{time}\",\"role\":\"{role}\",\"content\":\"{text}\"}}\n")
        };
        let chat = line("user", question) + &line("assistant", "Done.");
        folder.run_with("record --to leslie:home/p --set thread=t1", chat.as_bytes()).ends(0);
    }
    folder.run("index --root home").ends(0);
    let listed = folder.run("list --root home --json").ends(0).json();
    assert_eq!((listed.len(), &listed[0]["asked"]), (1, &"First things".into()));
}

#[test]
fn removed_events_are_reported() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(SHELF)).unwrap();
    for number in 0..50 {
        folder.write(&format!("{SHELF}/20200101-{number:04}-old.txt"), "x");
    }
    folder.write(&format!("{SHELF}/notes.txt"), "mine");
    let done = folder.run_with("record --from openai-chat --to leslie:. --set thread=t1", CHAT.as_bytes());
    done.ends(0).talks("20200101-0000-old.txt: removed").talks("20200101-0001-old.txt: removed");
    let left = names(&folder.path(SHELF));
    assert_eq!(left.len(), 51);
    assert!(left.contains(&"notes.txt".to_owned()) && left.contains(&"20200101-0002-old.txt".to_owned()));
}

#[test]
fn events_acknowledged_before_a_kill_are_found_after_it() {
    for round in 1..=4_usize {
        let folder = Folder::new();
        let mut child = folder.command("record --from openai-chat --to leslie --ack");
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let feeding = std::thread::spawn(move || {
            for number in 0.. {
                let message = format!("{{\"role\":\"user\",\"content\":\"message {number}\"}}\n");
                if input.write_all(message.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let acks = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok).take(round * 20).count();
        child.kill().unwrap();
        child.wait().unwrap();
        feeding.join().unwrap();
        folder.run("recover .").ends(0);
        let shown = folder.run("show . --kind message --json").ends(0).json();
        let mut numbers: Vec<usize> = shown
            .iter()
            .map(|event| event["content"].as_str().unwrap().strip_prefix("message ").unwrap().parse().unwrap())
            .collect();
        numbers.sort_unstable();
        assert!(numbers.len() >= acks, "{} of {acks}", numbers.len());
        assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
        folder.run("recover .").ends(0).talks("already complete");
    }
}
