//! The life of agents in a project: recorded, concurrently, again, cut off, and on a failing disk.

mod cut_off;
mod disk;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use stenograph::json::Object;
use stenograph::laws;
use stenograph::model::Event;
use stenograph::read;
use stenograph::time::{Time, TimeUnit};
use stenograph::{Detected, Registry};

use super::*;
use crate::files::Disk;
use crate::journal::RecordingEnd;
use crate::layouts::Clock;
use crate::log::Durability;
use crate::recover::recover;
use crate::{Recorder, RecordingFiles};
use disk::Failing;

const EVENTS: &str = r#"{"role":"user","content":"Fix the bug in auth.ts"}
{"type":"text","text":"Let me look."}
{"role":"assistant","content":[{"type":"text","text":"Two files."},{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"/src/a.ts","content":"x"}}]}
{"type":"tool_result","tool_use_id":"t1","output":"done","is_error":false}
{"type":"tool_use","id":"t2","name":"Edit","input":{"file_path":"/src/b.ts","old_string":"x","new_string":"y"}}
{"type":"tool_result","tool_use_id":"t2","output":"done","is_error":false}
{"type":"tool_use","id":"t3","name":"Write","input":{"file_path":"/src/a.ts","content":"z"}}
{"type":"tool_result","tool_use_id":"t3","output":"done","is_error":false}
{"type":"tool_use","id":"t4","name":"NotebookEdit","input":{"notebook_path":"/n.ipynb","new_source":"1"}}
{"type":"tool_result","tool_use_id":"t4","output":"no such cell","is_error":true}
{"type":"text","text":"I've fixed the bug."}
"#;

fn events(text: &str) -> Vec<Event<'static>> {
    read::all(Registry::built_in().named(NAME).unwrap(), text.as_bytes()).events
}

/// A clock that advances by a second with every reading.
fn ticking() -> Clock {
    let millis = AtomicI64::new(1_767_867_164_501);
    Arc::new(move || {
        let text = millis.fetch_add(1000, Ordering::Relaxed).to_string();
        Time { text: text.into(), unit: TimeUnit::Millis }
    })
}

fn standing() -> Clock {
    Arc::new(|| Time::iso("2026-02-01T00:30:00.000+01:00".into()).unwrap())
}

fn environment(clock: Clock) -> Environment {
    Environment { files: Arc::new(Failing::never()), clock, durability: Durability::Never, home: None }
}

fn target(folder: &Path, pairs: &[(&str, &str)]) -> Target {
    let settings = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Target { path: Some(folder.to_owned()), settings, ..Target::default() }
}

const WHO: [(&str, &str); 3] = [("agent", "a1"), ("session", "s1"), ("type", "goodvibes:tester")];

fn begin(folder: &Path, pairs: &[(&str, &str)], environment: &Environment) -> Recorder {
    Recorder::open(&ClaudeEventsLayout, &target(folder, pairs), environment.clone()).unwrap()
}

fn record(folder: &Path, pairs: &[(&str, &str)], end: &RecordingEnd, environment: &Environment) -> RecordingFiles {
    let recorder = begin(folder, pairs, environment);
    recorder.append_all(&events(EVENTS)).unwrap();
    recorder.finish(end).unwrap()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn tracking(folder: &Path) -> String {
    text(&folder.join(".goodvibes/state/agent-tracking.json"))
}

/// All lines of telemetry of all months.
fn telemetry(folder: &Path) -> Vec<String> {
    let months = Disk.list(&folder.join(".goodvibes/telemetry")).unwrap();
    months.iter().filter(|path| path.extension().is_some_and(|it| it == "jsonl")).flat_map(|path| lines(path)).collect()
}

fn lines(path: &Path) -> Vec<String> {
    text(path).lines().map(str::to_owned).collect()
}

/// The bytes are certainly of this format and keep its laws.
fn keeps_the_laws(name: &str, bytes: &[u8]) {
    assert!(
        matches!(Registry::built_in().detect(bytes), Detected::Format(format) if format.info().name == name),
        "{name}"
    );
    let broken = laws::check(Registry::built_in().named(name).unwrap(), bytes, laws::Effort { places: 8 });
    assert!(broken.is_empty(), "{name}: {broken:?}");
}

#[test]
fn an_agent_is_on_the_list_while_it_works_and_in_the_telemetry_when_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(ticking());
    let pairs = [&WHO[..], &[("branch", "main"), ("commit", "9c1e04b"), ("task", "Fix it.")]].concat();
    let recorder = begin(folder.path(), &pairs, &environment);
    let log = folder.path().join(".goodvibes/transcripts/s1/a1.jsonl");
    let project = folder.path().display();
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(
        tracking(folder.path()),
        format!(
            r#"{{
  "a1": {{
    "agent_id": "a1",
    "agent_type": "goodvibes:tester",
    "session_id": "s1",
    "project": "{project}",
    "project_name": "{name}",
    "git_branch": "main",
    "git_commit": "9c1e04b",
    "started_at": "2026-01-08T10:12:44.501Z",
    "task_description": "Fix it.",
    "transcript_path": "{}"
  }}
}}"#,
            log.display()
        )
    );
    keeps_the_laws("goodvibes-tracking", tracking(folder.path()).as_bytes());
    recorder.append_all(&events(EVENTS)).unwrap();
    let kept = recorder.finish(&RecordingEnd::Completed).unwrap();
    assert_eq!((kept.files, kept.warnings), (vec![log.clone()], vec![]));
    assert_eq!(tracking(folder.path()), "{}");
    let month = folder.path().join(".goodvibes/telemetry/2026-01.jsonl");
    keeps_the_laws("goodvibes-telemetry", text(&month).as_bytes());
    let line = text(&month);
    let (start, rest) = line.split_once(",\"ended_at\":").unwrap();
    assert_eq!(
        start,
        format!(
            "{{\"event\":\"subagent_complete\",\"agent_id\":\"a1\",\"agent_type\":\"goodvibes:tester\",\"session_id\":\"s1\",\
             \"project\":\"{project}\",\"project_name\":\"{name}\",\"git_branch\":\"main\",\"git_commit\":\"9c1e04b\",\
             \"started_at\":\"2026-01-08T10:12:44.501Z\""
        )
    );
    let (_, rest) = rest.split_once(",\"status\":").unwrap();
    assert_eq!(
        rest,
        "\"completed\",\"keywords\":[\"tester\"],\"files_modified\":[\"/src/a.ts\",\"/src/b.ts\",\"/n.ipynb\"],\
         \"tools_used\":[\"Write\",\"Edit\",\"NotebookEdit\"],\"summary\":\"I've fixed the bug.\"}\n"
    );
    let object = Object::parse(line.trim()).unwrap();
    let moment = |key: &str| Time::iso(object.peek_str(key).unwrap()).unwrap().to_millis().unwrap();
    assert_eq!(object.peek("duration_ms").unwrap(), (moment("ended_at") - moment("started_at")).to_string());
    // The log has the events as they were given, each with its time of arrival, and how it ended.
    keeps_the_laws(NAME, text(&log).as_bytes());
    assert_eq!(lines(&log).len(), 12);
    assert!(lines(&log)[11].contains(r#""type":"stop","stop_reason":"completed","success":true"#), "{}", text(&log));
}

#[test]
fn how_it_ended_is_the_status() {
    let failed = || RecordingEnd::Failed("exit code 3".to_owned());
    let stop = r#"{"type":"stop","stop_reason":"end_turn","success":false}"#;
    for (end, last_record, status) in [
        (RecordingEnd::Completed, "", "completed"),
        (failed(), "", "failed"),
        (RecordingEnd::Canceled, "", "failed"),
        (RecordingEnd::Completed, stop, "failed"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let recorder = begin(folder.path(), &WHO, &environment(ticking()));
        recorder.append_all(&events(&format!("{EVENTS}{last_record}\n"))).unwrap();
        recorder.finish(&end).unwrap();
        let line = telemetry(folder.path()).remove(0);
        assert_eq!(Object::parse(&line).unwrap().peek_str("status").as_deref(), Some(status), "{end:?} {last_record}");
    }
}

#[test]
fn the_month_is_that_of_local_time() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), &WHO, &RecordingEnd::Completed, &environment(standing()));
    // In UTC it is still January.
    let line = text(&folder.path().join(".goodvibes/telemetry/2026-02.jsonl"));
    assert!(line.contains(r#""started_at":"2026-01-31T23:30:00.000Z""#), "{line}");
}

#[test]
fn entries_of_others_in_the_list_stay() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join(".goodvibes/state");
    std::fs::create_dir_all(&state).unwrap();
    let others = "\u{feff}{\"b2\":{\"agent_id\":\"b2\",\"n\":1.50,\"u\":\"\\u00e9\"},\"legacy\":[1, 2],\"a1\":{\"session_id\":\"s0\"}}";
    std::fs::write(state.join("agent-tracking.json"), others).unwrap();
    let recorder = begin(folder.path(), &WHO, &environment(ticking()));
    assert!(recorder.warnings().iter().any(|warning| warning.text.contains("another session")));
    let during = tracking(folder.path());
    recorder.finish(&RecordingEnd::Completed).unwrap();
    let after = "{\n  \"b2\": {\n    \"agent_id\": \"b2\",\n    \"n\": 1.50,\n    \"u\": \"\\u00e9\"\n  },\n  \"legacy\": [\n    1,\n    2\n  ]\n}";
    assert_eq!(tracking(folder.path()), after);
    assert!(
        during.starts_with(after.trim_end_matches("\n}")) && during.contains("\"a1\": {\n    \"agent_id\": \"a1\"")
    );
}

#[test]
fn the_entry_of_another_recording_of_the_same_agent_is_not_taken_off() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(ticking());
    let first = begin(folder.path(), &WHO, &environment);
    let second = begin(folder.path(), &[("agent", "a1"), ("session", "s2")], &environment);
    first.finish(&RecordingEnd::Completed).unwrap();
    assert!(tracking(folder.path()).contains("\"session_id\": \"s2\""));
    second.finish(&RecordingEnd::Completed).unwrap();
    assert_eq!((tracking(folder.path()).as_str(), telemetry(folder.path()).len()), ("{}", 2));
}

#[test]
fn a_file_that_is_not_a_list_is_moved_aside() {
    for broken in [&b"{\"a\":{\"agent_id\""[..], b"[1]", b"\xff\xfe{}"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".goodvibes/state/agent-tracking.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, broken).unwrap();
        let recorder = begin(folder.path(), &WHO, &environment(ticking()));
        let warning = &recorder.warnings()[0];
        assert!(warning.path == path && warning.text.contains("agent-tracking.json.torn-1"), "{warning:?}");
        assert_eq!(std::fs::read(path.with_file_name("agent-tracking.json.torn-1")).unwrap(), broken);
        assert!(tracking(folder.path()).contains("\"a1\""));
    }
}

#[test]
fn half_a_line_of_telemetry_is_set_aside_and_a_missing_newline_put_there() {
    for (there, lines) in [("{\"event\":\"sub", 1), ("{\"event\":\"x\"}", 2), ("{\"event\":\"x\"}\n", 2)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".goodvibes/telemetry/2026-01.jsonl");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, there).unwrap();
        let kept = record(folder.path(), &WHO, &RecordingEnd::Completed, &environment(ticking()));
        assert_eq!(telemetry(folder.path()).len(), lines, "{there}");
        assert_eq!(kept.warnings.len(), 2 - lines);
    }
}

#[test]
fn a_second_recorder_of_an_agent_is_refused_and_disturbs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(ticking());
    let recorder = begin(folder.path(), &WHO, &environment);
    let before = tracking(folder.path());
    let refused = Recorder::open(&ClaudeEventsLayout, &target(folder.path(), &WHO), environment.clone()).unwrap_err();
    assert_eq!(refused.problem, Problem::Locked { holder: Some(std::process::id()) });
    assert_eq!(tracking(folder.path()), before);
    recorder.append_all(&events(EVENTS)).unwrap();
    recorder.finish(&RecordingEnd::Completed).unwrap();
    assert_eq!((tracking(folder.path()).as_str(), telemetry(folder.path()).len()), ("{}", 1));
}

#[test]
fn a_continued_agent_appends_to_its_log_and_gets_a_line_each_time_even_with_a_stopped_clock() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(standing());
    for times in 1..=3 {
        record(folder.path(), &WHO, &RecordingEnd::Completed, &environment);
        assert_eq!(telemetry(folder.path()).len(), times);
        assert_eq!(lines(&folder.path().join(".goodvibes/transcripts/s1/a1.jsonl")).len(), times * 12);
    }
    let starts: std::collections::BTreeSet<String> = telemetry(folder.path())
        .iter()
        .map(|line| Object::parse(line).unwrap().peek_str("started_at").unwrap().into_owned())
        .collect();
    assert_eq!(starts.len(), 3);
}

#[test]
fn the_log_may_be_elsewhere() {
    let both = tempfile::tempdir().unwrap();
    let (folder, elsewhere) = (both.path().join("project"), both.path().join("logs"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&elsewhere).unwrap();
    let environment = environment(ticking());
    let log = elsewhere.join(".log.jsonl");
    let pairs = [&WHO[..], &[("log", log.to_str().unwrap())]].concat();
    let recorder = begin(&folder, &pairs, &environment);
    recorder.append_all(&events(EVENTS)).unwrap();
    assert!(tracking(&folder).contains(&format!("\"transcript_path\": \"{}\"", log.display())));
    drop(recorder);
    // A journal alone does not name a folder to write into: naming a folder that contains both completes the project.
    let before = tracking(&folder);
    assert!(!recover(&log, &environment).unwrap().warnings.is_empty());
    assert_eq!((tracking(&folder), telemetry(&folder).len()), (before, 0));
    recover(both.path(), &environment).unwrap();
    assert_eq!((tracking(&folder).as_str(), telemetry(&folder).len()), ("{}", 1));
    assert_eq!(lines(&log).len(), 12);
    assert!(!folder.join(".goodvibes/transcripts").exists());
}

#[test]
fn the_journal_stays_when_the_log_cannot_say_it_all() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(ticking());
    let native = r#"{"v":1,"kind":"message","id":"e1","time":"2026-01-01T00:00:00Z","role":"user","content":"Hello."}"#;
    let event = read::all(Registry::built_in().named("steno").unwrap(), native.as_bytes()).events;
    let recorder = begin(folder.path(), &WHO, &environment);
    recorder.append_all(&event).unwrap();
    let kept = recorder.finish(&RecordingEnd::Completed).unwrap();
    let log = folder.path().join(".goodvibes/transcripts/s1/a1.jsonl");
    let journal = recover::journal_path(&log);
    assert_eq!(kept.files, [log.clone(), journal.clone()]);
    assert!(text(&journal).contains(r#""id":"e1""#));
    // A log without a journal holds everything.
    record(folder.path(), &[("agent", "b2"), ("session", "s1")], &RecordingEnd::Completed, &environment);
    let other = log.with_file_name("b2.jsonl");
    let expected = Some(vec![log, journal, other]);
    for folder in [folder.path().to_owned(), folder.path().join(".goodvibes/transcripts/s1")] {
        assert_eq!(ClaudeEventsLayout.files_to_read(&folder, &Disk), expected);
    }
}

#[test]
fn a_folder_of_logs_is_known_by_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(ClaudeEventsLayout.files_to_read(folder.path(), &Disk), None);
    std::fs::write(folder.path().join("b.jsonl"), EVENTS).unwrap();
    std::fs::write(folder.path().join("a.jsonl"), "").unwrap();
    let log = |name: &str| folder.path().join(name);
    assert_eq!(ClaudeEventsLayout.files_to_read(folder.path(), &Disk), Some(vec![log("a.jsonl"), log("b.jsonl")]));
    let entry =
        r#"{"id":"1","timestamp":1705123456,"from":"alice","to":"default","content":"Hi","entry_type":"message"}"#;
    std::fs::write(folder.path().join("c.jsonl"), entry).unwrap();
    assert_eq!(ClaudeEventsLayout.files_to_read(folder.path(), &Disk), None);
}

#[test]
fn a_project_is_read_in_the_order_its_agents_started_even_if_the_clock_was_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let back = AtomicI64::new(1_767_867_164_501);
    let environment = environment(Arc::new(move || {
        let text = back.fetch_add(-1000, Ordering::Relaxed).to_string();
        Time { text: text.into(), unit: TimeUnit::Millis }
    }));
    let made: Vec<_> =
        (0..5).map(|_| record(folder.path(), &[], &RecordingEnd::Completed, &environment).files.remove(0)).collect();
    assert_eq!(ClaudeEventsLayout.files_to_read(folder.path(), &Disk), Some(made));
    // The telemetry has the start times of those with their own ids.
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment { clock: ticking(), ..environment };
    for (agent, session) in [("b", "z"), ("c", "a"), ("a", "z")] {
        record(folder.path(), &[("agent", agent), ("session", session)], &RecordingEnd::Completed, &environment);
    }
    let logs =
        ["z/b.jsonl", "a/c.jsonl", "z/a.jsonl"].map(|log| folder.path().join(".goodvibes/transcripts").join(log));
    assert_eq!(ClaudeEventsLayout.files_to_read(folder.path(), &Disk), Some(logs.to_vec()));
    let transcripts = folder.path().join(".goodvibes/transcripts");
    assert_eq!(ClaudeEventsLayout.files_to_read(&transcripts, &Disk), Some(logs.to_vec()));
    let [first, _, last] = logs;
    assert_eq!(ClaudeEventsLayout.files_to_read(&transcripts.join("z"), &Disk), Some(vec![first, last]));
}

#[test]
fn sixteen_agents_at_once_lose_nothing_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(ticking());
    let all_started = std::sync::Barrier::new(16);
    std::thread::scope(|scope| {
        for number in 0..16 {
            let (environment, folder, all_started) = (&environment, folder.path(), &all_started);
            scope.spawn(move || {
                let id = format!("a{number}");
                let recorder = begin(folder, &[("agent", &id), ("session", "s1")], environment);
                all_started.wait();
                for other in 0..16 {
                    assert!(tracking(folder).contains(&format!("\"a{other}\": {{")), "{other} is not on the list");
                }
                all_started.wait();
                recorder.append_all(&events(EVENTS)).unwrap();
                assert_eq!(recorder.finish(&RecordingEnd::Completed).unwrap().warnings, []);
            });
        }
    });
    assert_eq!(tracking(folder.path()), "{}");
    let lines = telemetry(folder.path());
    let agents: std::collections::BTreeSet<String> =
        lines.iter().map(|line| Object::parse(line).unwrap().peek_str("agent_id").unwrap().into_owned()).collect();
    assert_eq!((lines.len(), agents.len()), (16, 16));
    keeps_the_laws("goodvibes-telemetry", format!("{}\n", lines.join("\n")).as_bytes());
}
