//! What a crash or a failing disk leaves, and what recovery makes of it.

use super::*;
use disk::Lasting;

#[test]
fn a_recording_interrupted_by_a_crash_is_completed_once() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(ticking());
    let recorder = begin(folder.path(), &WHO, &environment);
    recorder.append_all(&events(EVENTS)).unwrap();
    drop(recorder);
    assert!(tracking(folder.path()).contains("\"a1\"") && telemetry(folder.path()).is_empty());
    for _ in 0..3 {
        recover(folder.path(), &environment).unwrap();
        assert_eq!(tracking(folder.path()), "{}");
        let lines = telemetry(folder.path());
        assert_eq!(lines.len(), 1);
        let line = Object::parse(&lines[0]).unwrap();
        assert_eq!(line.peek_str("status").as_deref(), Some("failed"));
        assert_eq!(line.peek_str("summary").as_deref(), Some("I've fixed the bug."));
        assert_eq!(line.peek("files_modified").unwrap(), r#"["/src/a.ts","/src/b.ts","/n.ipynb"]"#);
    }
    // It can be continued after a crash, too, and the interrupted recording is completed first.
    let recorder = begin(folder.path(), &WHO, &environment);
    recorder.append_all(&events(EVENTS)).unwrap();
    drop(recorder);
    record(folder.path(), &WHO, &RecordingEnd::Completed, &environment);
    assert_eq!((tracking(folder.path()).as_str(), telemetry(folder.path()).len()), ("{}", 3));
    assert_eq!(lines(&folder.path().join(".goodvibes/transcripts/s1/a1.jsonl")).len(), 36);
}

#[test]
fn telemetry_that_cannot_be_written_does_not_stop_the_recording_and_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(ticking());
    let in_the_way = folder.path().join(".goodvibes/telemetry");
    std::fs::create_dir_all(in_the_way.parent().unwrap()).unwrap();
    std::fs::write(&in_the_way, "not a folder").unwrap();
    let kept = record(folder.path(), &WHO, &RecordingEnd::Completed, &environment);
    assert!(kept.warnings[0].text.contains("steno recover"), "{:?}", kept.warnings);
    assert!(tracking(folder.path()).contains("\"a1\""));
    let recovery = recover(folder.path(), &environment).unwrap();
    assert!(recovery.warnings[0].text.contains("steno recover"));
    std::fs::remove_file(&in_the_way).unwrap();
    recover(folder.path(), &environment).unwrap();
    assert_eq!((tracking(folder.path()).as_str(), telemetry(folder.path()).len()), ("{}", 1));
}

#[test]
fn a_list_that_cannot_be_written_does_not_stop_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(ticking());
    std::fs::create_dir_all(folder.path().join(".goodvibes")).unwrap();
    std::fs::write(folder.path().join(".goodvibes/state"), "not a folder").unwrap();
    let recorder = begin(folder.path(), &WHO, &environment);
    assert!(recorder.warnings()[0].text.contains("cannot add the agent"), "{:?}", recorder.warnings());
    recorder.append_all(&events(EVENTS)).unwrap();
    recorder.finish(&RecordingEnd::Completed).unwrap();
    std::fs::remove_file(folder.path().join(".goodvibes/state")).unwrap();
    recover(folder.path(), &environment).unwrap();
    assert_eq!(telemetry(folder.path()).len(), 1);
}

#[test]
fn a_project_that_was_moved_is_completed_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let environment = environment(ticking());
    drop(begin(&here, &WHO, &environment));
    std::fs::rename(&here, &there).unwrap();
    recover(&there, &environment).unwrap();
    assert_eq!((tracking(&there).as_str(), telemetry(&there).len()), ("{}", 1));
    assert!(!here.exists());
}

/// Whichever call fails, and whether or not the disk works again: acknowledged events are in the log after recovery, and the
/// agent has one line and no entry.
#[test]
fn recovery_repairs_the_failure_of_any_call() {
    for lasting in [Lasting::Once, Lasting::Forever] {
        for at in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let sound = environment(ticking());
            let failing = Arc::new(Failing::at(at, lasting));
            let environment = Environment { files: failing.clone(), durability: Durability::Always, ..sound.clone() };
            let acknowledged = match Recorder::open(&ClaudeEventsLayout, &target(folder.path(), &WHO), environment) {
                Err(_) => None,
                Ok(recorder) => {
                    let recorded = events(EVENTS).iter().filter(|event| recorder.append(event).is_ok()).count();
                    let _ = recorder.finish(&RecordingEnd::Completed);
                    Some(recorded)
                }
            };
            recover(folder.path(), &sound).unwrap();
            let log = folder.path().join(".goodvibes/transcripts/s1/a1.jsonl");
            if let Some(acknowledged) = acknowledged {
                assert_eq!(telemetry(folder.path()).len(), 1, "call {at}, {lasting:?}");
                let recorded = read::all(Registry::built_in().named(NAME).unwrap(), text(&log).as_bytes()).events.len();
                assert!(recorded > acknowledged, "call {at}, {lasting:?}: {acknowledged} {}", text(&log));
            }
            assert!(telemetry(folder.path()).len() <= 1, "call {at}, {lasting:?}");
            assert!(matches!(tracking(folder.path()).as_str(), "" | "{}"), "call {at}, {lasting:?}");
            if !failing.has_failed() {
                assert_eq!(acknowledged, Some(12));
                break;
            }
        }
    }
}
