//! Recording runs: with the real recorder, on a real disk and on one whose calls fail one after the other.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stenograph::model::{Body, Content, Event, Input, Role, Usage};
use stenograph::time::Time;

use super::*;
use crate::files::Disk;
use crate::journal::RecordingEnd;
use crate::layouts::testing::Stopping;
use crate::layouts::{Environment, Layout, Target};
use crate::recover::recover;
use crate::{Problem, Recorder, folder};

fn environment() -> Environment {
    let minutes = AtomicU32::new(0);
    let clock = move || {
        let second = minutes.fetch_add(1, Ordering::Relaxed);
        Time::iso(format!("2026-03-02T09:{:02}:{:02}+02:00", 10 + second / 60, second % 60).into()).unwrap()
    };
    Environment { clock: Arc::new(clock), ..Environment::default() }
}

fn target(base: &Path, settings: &[(&str, &str)]) -> Target {
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Target { path: Some(base.to_owned()), settings, ..Target::default() }
}

fn text_message(role: Role, text: &str) -> Event<'static> {
    Event::new(Body::Message { role, content: Content::text(text.to_owned()) })
}

fn called(id: &'static str) -> Event<'static> {
    let input = Input::Json("{\"b\":1,\"a\":2}".into());
    Event::new(Body::ToolCall { call: Some(id.into()), name: "look".into(), input })
}

fn answered(id: &'static str) -> Event<'static> {
    let content = Content::text("seen");
    Event::new(Body::ToolResult { call: Some(id.into()), name: None, content, error: None })
}

fn record(base: &Path, settings: &[(&str, &str)], events: &[Event<'_>], end: &RecordingEnd) -> crate::RecordingFiles {
    let recorder = Recorder::open(&DevflowLayout, &target(base, settings), environment()).unwrap();
    recorder.append_all(events).unwrap();
    recorder.finish(end).unwrap()
}

fn json(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_is_written_as_devflow_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let usage = |input, output| Some(Usage { input, output, ..Usage::default() });
    let events = [
        Event { usage: usage(Some(40), None), ..text_message(Role::System, "Be <brief>.") },
        Event { usage: usage(Some(2), None), ..text_message(Role::User, "Go.") },
        Event { usage: usage(None, Some(7)), ..text_message(Role::Assistant, "I look.") },
        called("c1"),
        answered("c1"),
    ];
    let settings =
        [("run", "r 1"), ("flow", "review"), ("node", "n"), ("input", "{\"z\":1,\"a\":\"&\"}"), ("cost", "0.5")];
    let kept = record(folder.path(), &settings, &events, &RecordingEnd::Completed);
    let run = Base::at(folder.path()).run("r 1");
    assert_eq!(kept.files, [run.join("transcript.json"), run.join("metadata.json")]);
    assert_eq!(names(&run), ["metadata.json", "transcript.json"]);
    let metadata = json(&run.join("metadata.json"));
    assert_eq!(
        metadata,
        "{\n  \"runId\": \"r 1\",\n  \"flowId\": \"review\",\n  \"nodeId\": \"n\",\n  \"input\": {\n    \"a\": \"\\u0026\",\n    \
         \"z\": 1\n  },\n  \"startedAt\": \"2026-03-02T09:10:00+02:00\",\n  \"endedAt\": \"2026-03-02T09:10:07+02:00\",\n  \
         \"status\": \"completed\",\n  \"totalTokensIn\": 42,\n  \"totalTokensOut\": 7,\n  \"totalCost\": 0.5,\n  \
         \"turnCount\": 3,\n  \"durationMs\": 7000\n}"
    );
    let transcript = json(&run.join("transcript.json"));
    let nested = metadata.replace('\n', "\n  ");
    assert!(transcript.starts_with(&format!("{{\n  \"runId\": \"r 1\",\n  \"metadata\": {nested},\n  \"turns\": [\n")));
    assert!(transcript.contains("\"toolCalls\": [\n") && transcript.ends_with("]\n}"), "{transcript}");
    assert!(transcript.contains("Be \\u003cbrief\\u003e.") && transcript.contains("\"output\": \"seen\""));
    let runs =
        index::list(&Disk, &Base::at(folder.path()), &Time::iso("2026-03-02T10:00:00Z".into()).unwrap()).unwrap();
    assert_eq!((runs[0].status, runs[0].query.as_deref(), runs[0].tokens_in), (RunStatus::Completed, Some("Go."), 42));
}

#[test]
fn a_run_states_that_it_is_running_and_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let base = Base::at(folder.path());
    let recorder = Recorder::open(&DevflowLayout, &target(folder.path(), &[("run", "a")]), environment()).unwrap();
    assert_eq!(DevflowRun::read(&base, "a").status, RunStatus::Running);
    assert!(json(&base.index()).contains("\"running\""));
    assert!(json(&base.run("a").join("metadata.json")).contains("\"endedAt\": \"0001-01-01T00:00:00Z\""));
    recorder.append(&text_message(Role::User, "Go.")).unwrap();
    recorder.finish(&RecordingEnd::Failed("out of <money>".to_owned())).unwrap();
    let run = DevflowRun::read(&base, "a");
    assert_eq!(
        (run.status, run.error.as_deref(), run.turn_count),
        (RunStatus::Failed, Some("out of <money>"), Some(1))
    );
    assert!(json(&base.index()).contains("\"failed\""));
    record(
        folder.path(),
        &[("run", "b"), ("duration", "12")],
        &[text_message(Role::User, "Go.")],
        &RecordingEnd::Canceled,
    );
    assert_eq!(DevflowRun::read(&base, "b").status, RunStatus::Canceled);
    assert!(json(&base.run("b").join("transcript.json")).contains("\"durationMs\": 12\n"));
    let stop =
        Body::Stop { reason: Some("error".into()), success: Some(false), content: Some(Content::text("no key")) };
    record(
        folder.path(),
        &[("run", "c")],
        &[text_message(Role::User, "Go."), Event::new(stop)],
        &RecordingEnd::Completed,
    );
    assert_eq!(
        (DevflowRun::read(&base, "c").status, DevflowRun::read(&base, "c").error.as_deref()),
        (RunStatus::Failed, Some("no key"))
    );
    record(folder.path(), &[("run", "d")], &[], &RecordingEnd::Completed);
    assert_eq!(
        (DevflowRun::read(&base, "d").status, DevflowRun::read(&base, "d").turn_count),
        (RunStatus::Completed, Some(0))
    );
}

#[test]
fn an_id_that_is_taken_is_refused_and_one_that_is_made_up_gets_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let open = |settings: &[(&str, &str)]| {
        DevflowLayout.open(&target(folder.path(), settings), &environment()).map(|opened| opened.journal_lock.journal)
    };
    for bad in ["", "..", "a/b", "/etc", ".hidden", "a\0"] {
        assert_eq!(open(&[("run", bad)]).unwrap_err().problem, Problem::BadName, "{bad:?}");
    }
    assert!(!folder.path().join("runs").exists());
    let runs = Base::at(folder.path()).runs();
    assert_eq!(open(&[("run", "any one")]).unwrap(), runs.join("any one/journal.steno"));
    assert_eq!(open(&[("run", "any one")]).unwrap_err().problem, Problem::Exists);
    let made = [("flow", "f"), ("ticket", "T-1")];
    assert_eq!(open(&made).unwrap(), runs.join("2026-03-02-f-T1/journal.steno"));
    assert_eq!(open(&made).unwrap(), runs.join("2026-03-02-f-T1-2/journal.steno"));
    // An archived run still has its id.
    record(folder.path(), &[("run", "old")], &[text_message(Role::User, "Go.")], &RecordingEnd::Completed);
    let base = Base::at(folder.path());
    crate::systems::devflow::archive::Maintenance::enter(&Disk, &base)
        .unwrap()
        .archive(&DevflowRun::read(&base, "old"))
        .unwrap();
    assert_eq!(open(&[("run", "old")]).unwrap_err().problem, Problem::Exists);
}

#[test]
fn a_large_transcript_is_compressed_and_exactly_one_form_is_left() {
    let length = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        record(folder.path(), &[("run", "r")], &[text_message(Role::User, text)], &RecordingEnd::Completed);
        fs::metadata(Base::at(folder.path()).run("r").join("transcript.json")).unwrap().len() as usize
    };
    let around = length("x") - 1;
    for (size, form) in [(102_400, "transcript.json"), (102_401, "transcript.json.gz")] {
        let folder = tempfile::tempdir().unwrap();
        let run = Base::at(folder.path()).run("r");
        let text = "x".repeat(size - around);
        record(folder.path(), &[("run", "r")], &[text_message(Role::User, &text)], &RecordingEnd::Completed);
        assert_eq!(names(&run), ["metadata.json", form], "{size}");
        let mut found = stenograph::read::Collected::default();
        folder::read(&folder::parts(&run).unwrap(), &mut found).unwrap();
        let has_text = |event: &Event<'_>| event.content().is_some_and(|content| content.joined().decode() == text);
        assert!(found.events.iter().any(has_text));
        assert!(DevflowRun::read(&Base::at(folder.path()), "r").query.is_some());
    }
}

#[test]
fn a_clock_that_is_set_back_does_not_change_the_order_of_runs() {
    let folder = tempfile::tempdir().unwrap();
    for run in ["b", "a"] {
        record(folder.path(), &[("run", run)], &[text_message(Role::User, run)], &RecordingEnd::Completed);
    }
    let runs = index::look(&Disk, &Base::at(folder.path())).unwrap();
    assert_eq!((runs[0].id.as_str(), runs[1].id.as_str()), ("a", "b"));
    assert_eq!(runs[0].started.as_ref().unwrap().text, "2026-03-02T09:10:00.001+02:00");
}

#[test]
fn a_call_joins_the_most_recent_turn_of_the_assistant_and_a_warning_reports_if_that_is_not_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let base = Base::at(folder.path());
    let talk = [
        text_message(Role::User, "Go."),
        text_message(Role::Assistant, "I look."),
        answered("gone"),
        called("c1"),
        answered("c1"),
    ];
    let kept = record(folder.path(), &[("run", "a")], &talk, &RecordingEnd::Completed);
    assert_eq!(kept.warnings.len(), 1);
    assert!(kept.warnings[0].text.contains("which is not the last turn"), "{:?}", kept.warnings);
    assert_eq!(DevflowRun::read(&base, "a").turn_count, Some(3));
    let text = json(&base.run("a").join("transcript.json"));
    assert!(text.find("\"toolCalls\"").unwrap() < text.find("\"tool_result\"").unwrap(), "{text}");
    // A request is answered in a separate turn, with or without words.
    let talk = [text_message(Role::Assistant, "Hello."), text_message(Role::User, "Go."), called("c1"), answered("c1")];
    let kept = record(folder.path(), &[("run", "b")], &talk, &RecordingEnd::Completed);
    assert!(kept.warnings[0].text.contains("separate assistant turn without text"), "{:?}", kept.warnings);
    assert_eq!(DevflowRun::read(&base, "b").turn_count, Some(3));
}

#[test]
fn tokens_are_added_up_by_role_where_users_state_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let base = Base::at(folder.path());
    let cost = |input: u64, output: u64, event: Event<'static>| Event {
        usage: Some(Usage { input: Some(input), output: Some(output), ..Usage::default() }),
        ..event
    };
    let talk = [cost(500, 0, text_message(Role::System, "Be brief.")), cost(1200, 0, text_message(Role::User, "Go."))];
    let answer = cost(999, 70, text_message(Role::Assistant, "Done."));
    record(
        folder.path(),
        &[("run", "a")],
        &[&talk[..], std::slice::from_ref(&answer)].concat(),
        &RecordingEnd::Completed,
    );
    let run = DevflowRun::read(&base, "a");
    assert_eq!((run.tokens_in, run.tokens_out), (1700, 70));
    // Most agents state the tokens sent with the answer.
    record(folder.path(), &[("run", "b")], &[text_message(Role::User, "Go."), answer], &RecordingEnd::Completed);
    let run = DevflowRun::read(&base, "b");
    assert_eq!((run.tokens_in, run.tokens_out), (999, 70));
}

#[test]
fn a_record_that_repeats_another_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let usage = Some(Usage { input: Some(1200), ..Usage::default() });
    let asked = Event { usage, ..text_message(Role::User, "Go.") };
    let talk = [
        asked.clone(),
        Event { restates: true, ..asked },
        text_message(Role::Assistant, "I look."),
        called("c1"),
        Event { restates: true, ..text_message(Role::User, "Go.") },
        called("c2"),
    ];
    let kept = record(folder.path(), &[("run", "a")], &talk, &RecordingEnd::Completed);
    assert!(kept.warnings.is_empty(), "{:?}", kept.warnings);
    let run = DevflowRun::read(&Base::at(folder.path()), "a");
    assert_eq!((run.tokens_in, run.turn_count), (1200, Some(2)));
}

#[test]
fn a_result_without_an_id_answers_the_oldest_call() {
    let folder = tempfile::tempdir().unwrap();
    let ids = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
    let mut talk = vec![text_message(Role::User, "Go."), text_message(Role::Assistant, "I look.")];
    talk.extend(ids.map(called));
    let content = Content::text("seen");
    talk.push(Event::new(Body::ToolResult { call: None, name: None, content, error: None }));
    talk.extend(ids.into_iter().skip(1).map(answered));
    talk.push(called("c9"));
    let kept = record(folder.path(), &[("run", "a")], &talk, &RecordingEnd::Completed);
    assert!(kept.warnings.is_empty(), "{:?}", kept.warnings);
}

#[test]
fn the_id_of_an_active_or_interrupted_run_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Recorder::open(&DevflowLayout, &target(folder.path(), &[("run", "a")]), environment());
    let first = open().unwrap();
    let refused = open().unwrap_err();
    assert_eq!(refused.problem, Problem::Locked { holder: Some(std::process::id()) });
    drop(first);
    let refused = open().unwrap_err();
    assert_eq!(refused.problem, Problem::CutOff);
    assert!(refused.hint().unwrap().contains("steno recover"));
}

#[test]
fn events_in_another_order_keep_their_journal() {
    let folder = tempfile::tempdir().unwrap();
    let base = Base::at(folder.path());
    let talk = [text_message(Role::User, "Go."), called("c1"), called("c2"), answered("c1"), answered("c2")];
    record(folder.path(), &[("run", "a")], &talk, &RecordingEnd::Completed);
    assert!(names(&base.run("a")).contains(&"journal.steno".to_owned()));
}

#[test]
fn events_that_a_transcript_cannot_hold_are_in_the_journal_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let base = Base::at(folder.path());
    let thought = Event::new(Body::Thinking { content: Content::text("hm") });
    record(folder.path(), &[("run", "a")], &[text_message(Role::User, "Go."), thought], &RecordingEnd::Completed);
    assert_eq!(names(&base.run("a")), ["journal.steno", "metadata.json", "transcript.json"]);
    record(folder.path(), &[("run", "b")], &[text_message(Role::User, "Go.")], &RecordingEnd::Completed);
    let mut found = stenograph::read::Collected::default();
    folder::read(&folder::parts(folder.path()).unwrap(), &mut found).unwrap();
    let texts: Vec<String> =
        found.events.iter().filter_map(|event| Some(event.content()?.joined().decode().into_owned())).collect();
    // The same words in two runs were said twice.
    assert_eq!(texts.iter().filter(|text| *text == "Go.").count(), 2);
    assert_eq!(texts.iter().filter(|text| *text == "hm").count(), 1);
}

#[test]
fn the_header_of_another_transcript_does_not_become_a_second_one() {
    let folder = tempfile::tempdir().unwrap();
    let base = Base::at(folder.path());
    record(folder.path(), &[("run", "a")], &[text_message(Role::User, "Go.")], &RecordingEnd::Completed);
    let before = fs::read(base.run("a").join("transcript.json")).unwrap();
    let events = stenograph::read::all(&stenograph::formats::devflow::Devflow, &before).events;
    record(folder.path(), &[("run", "b")], &events, &RecordingEnd::Completed);
    let after = json(&base.run("b").join("transcript.json"));
    assert!(stenograph::json::is_valid(&after), "{after}");
    assert_eq!(after.matches("\"flowId\"").count(), 1);
    assert!(after.contains("\"runId\": \"b\""));
}

#[test]
fn a_run_that_was_cut_off_has_failed_and_keeps_its_turns() {
    let folder = tempfile::tempdir().unwrap();
    let base = Base::at(folder.path());
    let recorder =
        Recorder::open(&DevflowLayout, &target(folder.path(), &[("run", "a"), ("flow", "f")]), environment()).unwrap();
    recorder.append_all(&[text_message(Role::User, "Go."), text_message(Role::Assistant, "Gone.")]).unwrap();
    drop(recorder);
    let recovery = recover(folder.path(), &environment()).unwrap();
    assert_eq!(recovery.journals.len(), 1);
    let run = DevflowRun::read(&base, "a");
    assert_eq!((run.status, run.error.as_deref(), run.turn_count), (RunStatus::Failed, Some("interrupted"), Some(2)));
    // It ended with its last turn, not when it was completed.
    assert_eq!(run.ended, Time::iso("2026-03-02T09:10:03+02:00".into()));
    assert!(json(&base.run("a").join("transcript.json")).contains("Gone."));
    assert!(json(&base.index()).contains("interrupted"));
    let before = names(&base.run("a"));
    recover(folder.path(), &environment()).unwrap();
    assert_eq!(names(&base.run("a")), before);
}

#[test]
fn recovery_completes_the_run_whichever_call_failed_at_the_end() {
    let events = [text_message(Role::User, "Go."), text_message(Role::Assistant, &"x".repeat(110_000))];
    for last in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let base = Base::at(folder.path());
        let files = Arc::new(Stopping::never());
        let environment = Environment { files: files.clone(), ..environment() };
        let recorder = Recorder::open(&DevflowLayout, &target(folder.path(), &[("run", "a")]), environment).unwrap();
        recorder.append_all(&events).unwrap();
        files.stop_after(last);
        let finished = recorder.finish(&RecordingEnd::Completed);
        recover(folder.path(), &self::environment()).unwrap();
        let forms: Vec<String> =
            names(&base.run("a")).into_iter().filter(|name| name.starts_with("transcript")).collect();
        assert_eq!(forms, ["transcript.json.gz"], "call {last}");
        let run = DevflowRun::read(&base, "a");
        assert_eq!(run.turn_count, Some(2), "call {last}");
        assert!(matches!(run.status, RunStatus::Completed | RunStatus::Failed), "call {last}");
        let mut found = stenograph::read::Collected::default();
        folder::read(&folder::parts(&base.run("a")).unwrap(), &mut found).unwrap();
        assert_eq!(found.events.iter().filter(|event| event.role().is_some()).count(), 2, "call {last}");
        if finished.is_ok() && files.calls() < last {
            assert!(last > 8);
            break;
        }
    }
}

#[test]
fn many_runs_at_once_are_all_in_the_index() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..4 {
                    record(
                        folder.path(),
                        &[("flow", "f"), ("ticket", "T1")],
                        &[text_message(Role::User, "Go.")],
                        &RecordingEnd::Completed,
                    );
                }
            });
        }
    });
    let text = json(&Base::at(folder.path()).index());
    assert_eq!(text.matches("\"status\": \"completed\"").count(), 24, "{text}");
    assert_eq!(names(&Base::at(folder.path()).runs()).len(), 24);
}

#[test]
fn an_id_may_begin_with_a_date() {
    assert_eq!(date_of("2025-01-15-ticket-to-pr-TK421"), Some("2025-01-15"));
    assert_eq!(date_of("2025-01-15"), Some("2025-01-15"));
    for id in ["2025-01-150", "2025-13-01-x", "2025-02-30-x", "nightly-42", "", "2025-01-1é"] {
        assert_eq!(date_of(id), None, "{id}");
    }
}
