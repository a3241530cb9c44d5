//! Journals that were crafted to write files elsewhere. Whatever a layout does with them, nothing outside the folder of the
//! recovery changes.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use stenograph::model::{Body, Content, Event, Role};
use stenograph::time::Time;
use stenograph::wire;

use stenograph_store::Problem;
use stenograph_store::journal::{RecordingHeader, Settings};
use stenograph_store::layouts::{Environment, LAYOUTS};
use stenograph_store::recover::recover;

/// A folder to recover, and files beside it that must not change.
struct Trap {
    place: tempfile::TempDir,
}

const PROFILE: &str = "export PATH=/usr/bin\n";

impl Trap {
    fn new() -> Trap {
        let place = tempfile::tempdir().unwrap();
        let trap = Trap { place };
        fs::create_dir_all(trap.path("given/inside")).unwrap();
        fs::create_dir_all(trap.path("home/.goodvibes/state")).unwrap();
        fs::write(trap.path("home/.profile"), PROFILE).unwrap();
        fs::write(trap.path("home/empty"), "").unwrap();
        fs::write(trap.path("home/.goodvibes/state/agent-tracking.json"), "{}").unwrap();
        trap
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Everything outside the folder, with its content.
    fn outside(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let (mut found, mut open) = (BTreeMap::new(), vec![self.place.path().to_owned()]);
        while let Some(folder) = open.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path == self.path("given") {
                    continue;
                }
                found.insert(path.clone(), fs::read(&path).ok());
                open.extend(path.is_dir().then_some(path));
            }
        }
        found
    }

    /// Writes a journal of two messages that was cut off.
    fn journal(&self, path: &str, layout: &str, settings: &[(&str, &str)], documents: &[(&str, u64)]) {
        let settings: Settings = settings.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let documents = documents.iter().map(|(name, length)| ((*name).into(), *length)).collect();
        let header = RecordingHeader { layout: layout.into(), settings, documents };
        let time = || Time::iso("2026-03-02T09:14:05Z".into()).unwrap();
        let message_line = |role, text: &'static str| {
            let body = Body::Message { role, content: Content::text(text) };
            Event { time: Some(time()), id: Some("x".into()), ..Event::new(body) }
        };
        let events =
            [header.event(time()), message_line(Role::User, "rm -rf ~"), message_line(Role::Assistant, "Done.")];
        let lines: String = events.iter().map(|event| wire::event(event) + "\n").collect();
        let path = self.path("given").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, lines).unwrap();
    }

    /// Recovers by the folder and by the journal itself: whatever the result, nothing outside changes.
    #[track_caller]
    fn holds(&self, journal: &str) {
        let before = self.outside();
        let environment = Environment { home: Some(self.path("elsewhere")), ..Environment::default() };
        let journal = self.path("given").join(journal);
        for path in [self.path("given"), journal.parent().unwrap().to_owned(), journal] {
            let done = recover(&path, &environment);
            assert_eq!(self.outside(), before, "{}: {done:?}", path.display());
        }
    }

    fn link(&self, to: &str, name: &str) {
        let name = self.path("given").join(name);
        fs::create_dir_all(name.parent().unwrap()).unwrap();
        symlink(self.path(to), name).unwrap();
    }
}

/// The settings of a GoodVibes agent in a journal's header.
fn agent() -> Settings {
    let settings =
        [("agent", "a"), ("type", "t"), ("session", "s"), ("project", "/project"), ("started_ms", "1772442845000")];
    settings.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn a_header_that_names_files_elsewhere_has_no_effect() {
    let layouts = LAYOUTS.iter().map(|layout| layout.info().name);
    for layout in layouts {
        for (up, absolute) in [("../../home/.profile", false), ("home/.profile", true), ("../../home/new", false)] {
            let trap = Trap::new();
            let name = if absolute { trap.path(up).display().to_string() } else { up.to_owned() };
            let folder = Path::new(&name).parent().unwrap().display().to_string();
            let settings = [
                ("asked", name.as_str()),
                ("saved_chat", &name),
                ("saved_trajectory", &name),
                ("folder", &folder),
                ("agent", "a"),
                ("session", &folder),
                ("log", &name),
                ("context", &folder),
                ("thread", &folder),
                ("run", &folder),
                ("type", "t"),
                ("project", "p"),
                ("started_ms", "1772442845000"),
            ];
            for length in [0, PROFILE.len() as u64] {
                trap.journal("inside/a.jsonl.steno", layout, &settings, &[(&name, length)]);
                trap.holds("inside/a.jsonl.steno");
            }
        }
    }
}

#[test]
fn a_chat_history_elsewhere_is_not_completed_and_the_error_names_it() {
    let trap = Trap::new();
    let name = trap.path("home/.profile").display().to_string();
    let length = PROFILE.len() as u64;
    trap.journal("inside/a.steno", "cycod", &[("asked", &name)], &[(&name, length)]);
    trap.holds("inside/a.steno");
    let done = recover(&trap.path("given"), &Environment::default()).unwrap();
    assert!(done.failed && done.warnings.iter().any(|warning| warning.text.contains("home/.profile")), "{done:?}");
    let error = recover(&trap.path("given/inside/a.steno"), &Environment::default()).unwrap_err();
    assert_eq!(error.problem, Problem::Outside);
}

#[test]
fn a_project_elsewhere_is_left_alone() {
    for way in ["../../home", "../../home/", "../inside/../../home"] {
        let trap = Trap::new();
        let settings = Settings::from([("folder".to_owned(), way.to_owned())]);
        let agent = agent();
        let settings: Vec<(&str, &str)> =
            agent.iter().chain(&settings).map(|(key, value)| (key.as_str(), value.as_str())).collect();
        trap.journal("inside/a.jsonl.steno", "claude-events", &settings, &[("a.jsonl", 0)]);
        trap.holds("inside/a.jsonl.steno");
        let absolute = trap.path("home").display().to_string();
        let mut settings: Vec<(&str, &str)> = settings.into_iter().filter(|(key, _)| *key != "folder").collect();
        settings.push(("folder", &absolute));
        trap.journal("inside/b.jsonl.steno", "claude-events", &settings, &[("b.jsonl", 0)]);
        trap.holds("inside/b.jsonl.steno");
    }
}

#[test]
fn links_in_the_places_of_documents_are_not_followed() {
    type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);
    let cases: [Case; 5] = [
        (
            "inside/journal.steno",
            "chibi",
            &[("context", "c")],
            &[
                "inside/context.jsonl",
                "inside/transcript.md",
                "inside/transcript.jsonl",
                "inside/transcript_archive.jsonl",
                "inside/.context.jsonl.new",
            ],
        ),
        ("inside/a.jsonl.steno", "cycod", &[("asked", "a.jsonl")], &["inside/a.jsonl", "inside/a.jsonl.torn-1"]),
        (
            "runs/r/journal.steno",
            "devflow",
            &[("flow", "f")],
            &[
                "runs/r/transcript.json",
                "runs/r/.transcript.json.new",
                "runs/r/metadata.json",
                "runs/r/.metadata.json.new",
                "index.json",
            ],
        ),
        ("inside/recording-1.steno", "leslie", &[("thread", "t"), ("chat", "c")], &["inside/recording-1.steno.torn-1"]),
        ("inside/a.jsonl.steno", "claude-events", &[], &["inside/a.jsonl"]),
    ];
    for (journal, layout, settings, links) in cases {
        for link in links {
            for target in ["home/.profile", "home/empty", "home/missing"] {
                let trap = Trap::new();
                trap.journal(journal, layout, settings, &[("a.jsonl", 0), ("context.jsonl", 0)]);
                trap.link(target, link);
                trap.holds(journal);
            }
        }
    }
}

#[test]
fn links_in_the_places_of_folders_are_not_followed() {
    let agent = agent();
    let mut settings: Vec<(&str, &str)> = agent.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    settings.push(("folder", "../../.."));
    let trap = Trap::new();
    trap.journal(".goodvibes/transcripts/s/a.jsonl.steno", "claude-events", &settings, &[("a.jsonl", 0)]);
    trap.link("home/.goodvibes/state", ".goodvibes/state");
    trap.link("home", ".goodvibes/telemetry");
    trap.holds(".goodvibes/transcripts/s/a.jsonl.steno");
    let trap = Trap::new();
    trap.journal("inside/journal.steno", "chibi", &[("context", "c")], &[("context.jsonl", 0)]);
    trap.link("home", "inside/transcript");
    trap.holds("inside/journal.steno");
    let trap = Trap::new();
    trap.journal("inside/a.jsonl.steno", "cycod", &[("asked", "out/a.jsonl")], &[("out/a.jsonl", 0)]);
    trap.link("home", "inside/out");
    trap.holds("inside/a.jsonl.steno");
}

#[test]
fn a_link_in_the_place_of_a_lock_is_not_followed() {
    let trap = Trap::new();
    trap.journal("inside/a.jsonl.steno", "cycod", &[("asked", "a.jsonl")], &[("a.jsonl", 0)]);
    trap.link("home/.profile", "inside/a.jsonl.steno.lock");
    trap.holds("inside/a.jsonl.steno");
}
