//! Recording conversation units: with the real recorder, on a real disk and on one whose calls fail one after the other.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stenograph::model::{Body, Content, Input, Role};
use stenograph::read::Collected;
use stenograph::time::Time;

use super::*;
use crate::journal::RecordingEnd;
use crate::layouts::testing::Stopping;
use crate::recover::recover;
use crate::{Recorder, RecordingFiles};

/// A clock that stays in the same minute.
fn environment() -> Environment {
    let millis = AtomicU32::new(0);
    let clock = move || {
        let milli = millis.fetch_add(1, Ordering::Relaxed);
        Time::iso(format!("2026-02-08T14:30:{:02}.{:03}+08:00", milli / 1000, milli % 1000).into()).unwrap()
    };
    Environment { clock: Arc::new(clock), ..Environment::default() }
}

fn target(path: &Path, settings: &[(&str, &str)]) -> Target {
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Target { path: Some(path.to_owned()), settings, ..Target::default() }
}

fn text_message(role: Role, text: &str) -> Event<'static> {
    Event::new(Body::Message { role, content: Content::text(text.to_owned()) })
}

fn called(input: &str) -> Event<'static> {
    let input = Input::Text(input.to_owned().into());
    Event::new(Body::ToolCall { call: None, name: "look".into(), input })
}

fn record(path: &Path, settings: &[(&str, &str)], events: &[Event<'_>], end: &RecordingEnd) -> RecordingFiles {
    let recorder = Recorder::open(&LeslieLayout, &target(path, settings), environment()).unwrap();
    recorder.append_all(events).unwrap();
    recorder.finish(end).unwrap()
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn shown(path: &Path) -> Vec<String> {
    let mut found = Collected::default();
    crate::folder::read(&crate::folder::parts(path).unwrap(), &mut found).unwrap();
    let messages = found.events.iter().filter(|event| event.role().is_some());
    messages.map(|event| event.content().unwrap().joined().decode().into_owned()).collect()
}

#[test]
fn a_recording_is_one_text_for_every_question() {
    let folder = tempfile::tempdir().unwrap();
    let events = [
        text_message(Role::User, "Fix login bug!"),
        text_message(Role::Assistant, "Fixed."),
        text_message(Role::User, "And now?"),
        called("{}"),
        text_message(Role::Assistant, "Done."),
    ];
    let settings = [("thread", "thread-1"), ("chat", "chat-1"), ("mode", "plan")];
    let kept = record(folder.path(), &settings, &events, &RecordingEnd::Completed);
    let transcripts = transcripts_folder(folder.path(), "thread-1");
    assert!(transcripts.ends_with(".leslie/threads/thread-1/.meta/transcripts"));
    assert_eq!(names(&transcripts), ["20260208-1430-And-now.txt", "20260208-1430-Fix-login-bug.txt"]);
    assert_eq!(kept.files.len(), 2);
    let first = fs::read_to_string(transcripts.join("20260208-1430-Fix-login-bug.txt")).unwrap();
    assert_eq!(
        first,
        "Thread ID: thread-1\nChat ID: chat-1\nTime Range: 2026-02-08T14:30:00.002+08:00 ~ 2026-02-08T14:30:00.003+08:00\n\
         Agent Mode: plan\nTool Calls: 0\n---\n\nuser:\n<user_query>\nFix login bug!\n</user_query>\n\nassistant:\nFixed.\n"
    );
    let second = fs::read_to_string(transcripts.join("20260208-1430-And-now.txt")).unwrap();
    assert!(second.contains("Stop Reason: end_turn\nTool Calls: 1\n---\n"), "{second}");
    for path in [
        folder.path().to_owned(),
        folder.path().join(".leslie"),
        transcripts.clone(),
        folder.path().join(".leslie/threads/thread-1"),
    ] {
        assert_eq!(shown(&path), ["Fix login bug!", "Fixed.", "And now?", "Done."]);
    }
}

#[test]
fn the_same_question_in_the_same_minute_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [("thread", "t"), ("chat", "c"), ("stop", "max_tokens")];
    for answer in ["One.", "Two.", "Three."] {
        record(
            folder.path(),
            &settings,
            &[text_message(Role::User, "Go?"), text_message(Role::Assistant, answer)],
            &RecordingEnd::Completed,
        );
    }
    let transcripts = transcripts_folder(folder.path(), "t");
    assert_eq!(names(&transcripts), ["20260208-1430-Go-2.txt", "20260208-1430-Go-3.txt", "20260208-1430-Go.txt"]);
    let text = |name: &str| fs::read_to_string(transcripts.join(name)).unwrap();
    assert!(text("20260208-1430-Go.txt").contains("One.") && text("20260208-1430-Go-3.txt").contains("Three."));
    assert!(text("20260208-1430-Go.txt").contains("Stop Reason: max_tokens"));
    assert_eq!(shown(folder.path()), ["Go?", "One.", "Go?", "Two.", "Go?", "Three."]);
}

#[test]
fn a_unit_that_its_text_cannot_hold_has_a_journal_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(300);
    let events = [
        text_message(Role::System, "Be brief."),
        text_message(Role::User, "Go?"),
        called(&long),
        text_message(Role::User, "More?"),
    ];
    record(folder.path(), &[("thread", "t")], &events, &RecordingEnd::Canceled);
    let transcripts = transcripts_folder(folder.path(), "t");
    assert_eq!(names(&transcripts), ["20260208-1430-Go.txt", "20260208-1430-Go.txt.steno", "20260208-1430-More.txt"]);
    let text = fs::read_to_string(transcripts.join("20260208-1430-Go.txt")).unwrap();
    assert!(text.contains(&format!("{}...\n", "x".repeat(197))) && !text.contains("Be brief."), "{text}");
    assert!(fs::read_to_string(transcripts.join("20260208-1430-More.txt")).unwrap().contains("Stop Reason: cancelled"));
    assert_eq!(shown(folder.path()), ["Be brief.", "Go?", "More?"]);
    let before = names(&transcripts);
    assert_eq!(recover(folder.path(), &environment()).unwrap().warnings, []);
    assert_eq!(names(&transcripts), before);
}

#[test]
fn a_text_has_at_most_twenty_kilobytes_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(30_000);
    record(
        folder.path(),
        &[("thread", "t")],
        &[text_message(Role::User, "Go?"), text_message(Role::Assistant, &long)],
        &RecordingEnd::Completed,
    );
    let transcripts = transcripts_folder(folder.path(), "t");
    let text = fs::read_to_string(transcripts.join("20260208-1430-Go.txt")).unwrap();
    assert!(text.len() <= 20 * 1024 && text.ends_with("...\n"));
    assert_eq!(shown(folder.path()), ["Go?", &long]);
}

#[test]
fn the_fifty_newest_texts_stay_and_no_other_file_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let transcripts = transcripts_folder(folder.path(), "t");
    fs::create_dir_all(transcripts.join("20200101-0000-a-folder.txt")).unwrap();
    for number in 0..49 {
        fs::write(transcripts.join(format!("20250101-{number:04}-old.txt")), "x").unwrap();
    }
    fs::write(transcripts.join("20250101-0000-old.txt.steno"), "").unwrap();
    for name in ["notes.txt", "20200101-0000-readme.md", "2020-01-01.txt"] {
        fs::write(transcripts.join(name), "mine").unwrap();
    }
    let settings = [("thread", "t")];
    let kept = record(folder.path(), &settings, &[text_message(Role::User, "One?")], &RecordingEnd::Completed);
    assert!(kept.warnings.is_empty(), "{:?}", kept.warnings);
    let kept = record(
        folder.path(),
        &settings,
        &[text_message(Role::User, "Two?"), text_message(Role::User, "Three?")],
        &RecordingEnd::Completed,
    );
    let removed: Vec<&str> = kept.warnings.iter().filter_map(|warning| warning.path.file_name()?.to_str()).collect();
    assert_eq!(removed, ["20250101-0000-old.txt", "20250101-0001-old.txt", "20250101-0000-old.txt.steno"]);
    let left = names(&transcripts);
    assert_eq!(left.iter().filter(|name| name.ends_with(".txt") && is_text(&transcripts, name)).count(), 50 + 2);
    for name in [
        "notes.txt",
        "20200101-0000-readme.md",
        "2020-01-01.txt",
        "20200101-0000-a-folder.txt",
        "20250101-0002-old.txt",
    ] {
        assert!(left.iter().any(|left| left == name), "{name}");
    }
}

fn is_text(transcripts: &Path, name: &str) -> bool {
    transcripts.join(name).is_file()
}

#[test]
fn a_recording_of_more_than_fifty_questions_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    let questions: Vec<String> = (0..60).map(|number| format!("question {number}")).collect();
    let events: Vec<Event<'_>> = questions.iter().map(|question| text_message(Role::User, question)).collect();
    let kept = record(folder.path(), &[("thread", "t")], &events, &RecordingEnd::Completed);
    let transcripts = transcripts_folder(folder.path(), "t");
    let texts = names(&transcripts).into_iter().filter(|name| name.ends_with(".txt")).count();
    assert_eq!((texts, kept.warnings.len()), (50, 1));
    assert_eq!(shown(folder.path()), questions);
    // Units without a text are removed when newer ones arrive.
    let kept = record(folder.path(), &[("thread", "t")], &[text_message(Role::User, "last")], &RecordingEnd::Completed);
    assert_eq!(kept.warnings.len(), 2);
    let texts = names(&transcripts).into_iter().filter(|name| name.ends_with(".txt")).count();
    assert_eq!((texts, names(&transcripts).len()), (50, 50));
}

#[test]
fn two_equal_questions_of_one_moment_are_two_texts() {
    let folder = tempfile::tempdir().unwrap();
    let events = [text_message(Role::User, "go"), text_message(Role::User, "go")];
    record(folder.path(), &[("thread", "t")], &events, &RecordingEnd::Completed);
    assert_eq!(shown(folder.path()), ["go", "go"]);
}

#[test]
fn a_thread_and_a_mode_must_make_sense() {
    let folder = tempfile::tempdir().unwrap();
    let open =
        |settings: &[(&str, &str)]| LeslieLayout.open(&target(folder.path(), settings), &environment()).map(|_| ());
    assert_eq!(open(&[("thread", "../x")]).unwrap_err().problem, Problem::BadName);
    let error = open(&[("mode", "sleep")]).unwrap_err().to_string();
    assert_eq!(error, "sleep: is not a valid mode; use agent, plan, duet or review");
    assert!(names(folder.path()).is_empty());
    open(&[("mode", ""), ("thread", "")]).unwrap();
    assert!(names(&folder.path().join(".leslie/threads"))[0].starts_with("thread-"));
}

#[test]
fn a_recording_that_was_cut_off_becomes_texts() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::open(&LeslieLayout, &target(folder.path(), &[("thread", "t")]), environment()).unwrap();
    recorder.append_all(&[text_message(Role::User, "Go?"), text_message(Role::Assistant, "Gone.")]).unwrap();
    drop(recorder);
    assert_eq!(shown(folder.path()), ["Go?", "Gone."]);
    recover(folder.path(), &environment()).unwrap();
    let transcripts = transcripts_folder(folder.path(), "t");
    assert!(names(&transcripts).contains(&"20260208-1430-Go.txt".to_owned()), "{:?}", names(&transcripts));
    assert!(fs::read_to_string(transcripts.join("20260208-1430-Go.txt")).unwrap().contains("Stop Reason: interrupted"));
    assert_eq!(shown(folder.path()), ["Go?", "Gone."]);
    assert!(!names(&transcripts).iter().any(|name| name.starts_with("recording-")));
}

#[test]
fn recovery_writes_every_text_once_whichever_call_failed_at_the_end() {
    let events = [
        text_message(Role::User, "Go?"),
        text_message(Role::Assistant, "One."),
        text_message(Role::User, "Go?"),
        called(&"x".repeat(300)),
        text_message(Role::User, "Last?"),
    ];
    for last in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let files = Arc::new(Stopping::never());
        let environment = Environment { files: files.clone(), ..environment() };
        let recorder = Recorder::open(&LeslieLayout, &target(folder.path(), &[("thread", "t")]), environment).unwrap();
        recorder.append_all(&events).unwrap();
        files.stop_after(last);
        let finished = recorder.finish(&RecordingEnd::Completed);
        recover(folder.path(), &self::environment()).unwrap();
        let transcripts = transcripts_folder(folder.path(), "t");
        let texts: Vec<String> = names(&transcripts).into_iter().filter(|name| name.ends_with(".txt")).collect();
        assert_eq!(texts, ["20260208-1430-Go-2.txt", "20260208-1430-Go.txt", "20260208-1430-Last.txt"], "call {last}");
        let mut shown = shown(folder.path());
        shown.sort();
        assert_eq!(shown, ["Go?", "Go?", "Last?", "One."], "call {last}");
        if finished.is_ok() && files.calls() < last {
            assert!(last > 8);
            break;
        }
    }
}
