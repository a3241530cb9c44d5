//! The layout on a real disk: the content of the files during a recording, at its end, and after it was cut off.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::model::{Body, Content, Event, Input, Role};
use stenograph::read;
use stenograph::time::Time;
use tempfile::TempDir;

use super::super::{ContinuedConversation, Environment, Target};
use super::{CycodLayout, DocumentKind};
use crate::files::Disk;
use crate::journal::RecordingEnd;
use crate::log::Durability;
use crate::recover::{self, journal_path};
use crate::{Problem, Recorder};

const MOMENT: &str = "2026-03-02T10:14:05.061+01:00";
const SAVED_CHAT: &str = "home/.cycod/history/chat-history-1772442845061.jsonl";
const SAVED_TRAJECTORY: &str = "home/.cycod/history/trajectory-1772442845061.md";

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn environment(&self) -> Environment {
        Environment {
            files: Arc::new(Disk),
            clock: Arc::new(|| Time::iso(MOMENT.into()).unwrap()),
            durability: Durability::Never,
            home: Some(self.path("home")),
        }
    }

    fn target(&self, name: &str) -> Target {
        Target { path: Some(self.path(name)), ..Target::default() }
    }

    fn open(&self, name: &str) -> Recorder {
        Recorder::open(&CycodLayout, &self.target(name), self.environment()).unwrap()
    }

    fn record(&self, name: &str, events: &[Event<'_>]) {
        let recorder = self.open(name);
        events.iter().for_each(|event| recorder.append(event).unwrap());
        recorder.finish(&RecordingEnd::Completed).unwrap();
    }
}

fn text_message(role: Role, text: &'static str) -> Event<'static> {
    Event::new(Body::Message { role, content: Content::text(text) })
}

fn title_changed(text: &'static str) -> Event<'static> {
    Event::new(Body::Fact { fact: "title".into(), content: Some(Content::text(text)) })
}

fn called(id: &'static str) -> Event<'static> {
    Event::new(Body::ToolCall {
        call: Some(id.into()),
        name: "look".into(),
        input: Input::Json("{\"deep\":true}".into()),
    })
}

fn answered(id: &'static str) -> Event<'static> {
    Event::new(Body::ToolResult { call: Some(id.into()), name: None, content: Content::text("seen"), error: None })
}

fn conversation() -> Vec<Event<'static>> {
    vec![
        text_message(Role::System, "be kind"),
        text_message(Role::User, "which tree?"),
        text_message(Role::Assistant, "Let me look."),
        called("a"),
        called("b"),
        answered("a"),
        title_changed("Trees"),
        answered("b"),
        text_message(Role::Assistant, "An oak."),
        text_message(Role::User, "thanks"),
        title_changed("Tall trees"),
        text_message(Role::Assistant, "You are welcome."),
    ]
}

const USER: &str = "{\"role\":\"user\",\"content\":\"which tree?\"}\n";

#[test]
fn each_message_is_on_disk_as_it_occurs() {
    let place = Place::new();
    let recorder = place.open("talk.jsonl");
    recorder.append(&text_message(Role::User, "which tree?")).unwrap();
    assert_eq!(place.text("talk.jsonl"), USER);
    recorder.append(&text_message(Role::Assistant, "Let me look.")).unwrap();
    let begun = format!("{USER}{{\"role\":\"assistant\",\"content\":\"Let me look.\"}}\n");
    assert_eq!(place.text("talk.jsonl"), begun);
    // A call joins the message before it: the line changes, and is complete at every moment.
    recorder.append(&called("a")).unwrap();
    let text = place.text("talk.jsonl");
    assert!(text.starts_with(USER) && text.lines().count() == 2 && text.contains("\"tool_calls\":[{\"id\":\"a\""));
    assert_eq!(place.text(SAVED_CHAT), text);
    assert!(!place.text(SAVED_TRAJECTORY).contains("<invoke"), "a call waits for its result");
    recorder.append(&answered("a")).unwrap();
    assert!(place.text("talk.jsonl").starts_with(&text));
    assert!(place.text(SAVED_TRAJECTORY).contains("<invoke name=\"look\">"));
    recorder.finish(&RecordingEnd::Completed).unwrap();
    assert_eq!(place.text("talk.jsonl").lines().count(), 3);
}

#[test]
fn a_title_is_in_the_first_line_and_in_the_header() {
    let place = Place::new();
    place.record("talk.jsonl", &conversation());
    let chat = place.text("talk.jsonl");
    assert!(chat.starts_with("{\"_meta\":{\"title\":\"Tall trees\",\"titleLocked\":false}}\n{\"role\":\"system\""));
    assert_eq!(chat.matches("_meta").count(), 1);
    assert_eq!(place.text(SAVED_CHAT), chat);
    let trajectory = place.text(SAVED_TRAJECTORY);
    let begins = "# Title: \"Tall trees\"\n**Status:** Unlocked\n\n---\n\n\n> which tree?\n\nLet me look.\n\n```xml\n";
    assert!(trajectory.starts_with(begins), "{trajectory}");
    assert_eq!(trajectory.matches("# Title").count(), 1);
    let found = read::all(DocumentKind::Chat.format(), chat.as_bytes());
    assert!(found.notes.is_empty());
    assert_eq!(found.events.iter().filter(|event| matches!(event.body, Body::ToolCall { .. })).count(), 2);
}

#[test]
fn a_title_in_the_settings_comes_first() {
    let place = Place::new();
    let mut target = place.target("talk.md");
    target.settings.insert("title".to_owned(), "Oaks".to_owned());
    let recorder = Recorder::open(&CycodLayout, &target, place.environment()).unwrap();
    recorder.append(&text_message(Role::User, "which tree?")).unwrap();
    let expected = "# Title: \"Oaks\"\n**Status:** Unlocked\n\n---\n\n\n> which tree?\n";
    assert_eq!(place.text("talk.md"), expected);
    recorder.finish(&RecordingEnd::Completed).unwrap();
    assert_eq!(place.text("talk.md"), expected);
}

#[test]
fn existing_content_stays_byte_for_byte_and_its_copy_has_it_too() {
    let place = Place::new();
    let before = "\u{feff}{\"_meta\":{\"title\":\"Old\",\"titleLocked\":true,\"x\":1}}\n{\"role\":\"user\", \"content\":\"h\\u0069\"}";
    fs::write(place.path("talk.jsonl"), before).unwrap();
    let target = Target { load: Some(place.path("talk.jsonl")), ..place.target("talk.jsonl") };
    let recorder = Recorder::open(&CycodLayout, &target, place.environment()).unwrap();
    assert_eq!(recorder.continued(), ContinuedConversation::InPlace);
    recorder.append(&text_message(Role::Assistant, "hello")).unwrap();
    let after = format!("{before}\n{{\"role\":\"assistant\",\"content\":\"hello\"}}\n");
    assert_eq!(place.text("talk.jsonl"), after);
    assert_eq!(place.text(SAVED_CHAT), after);
    recorder.append(&title_changed("New")).unwrap();
    let after = after.replace("\"Old\"", "\"New\"");
    assert_eq!(place.text("talk.jsonl"), after);
    recorder.finish(&RecordingEnd::Completed).unwrap();
    assert_eq!(place.text("talk.jsonl"), after);
    let trajectory = place.text(SAVED_TRAJECTORY);
    assert!(trajectory.starts_with("# Title: \"New\"\n**Status:** Locked\n"), "{trajectory}");
    assert!(trajectory.contains("> hi\n") && trajectory.contains("\nhello\n"));
}

#[test]
fn a_file_of_another_kind_is_not_written_on() {
    let place = Place::new();
    fs::write(place.path("notes.txt"), "my notes").unwrap();
    let refused = Recorder::open(&CycodLayout, &place.target("notes.txt"), place.environment()).unwrap_err();
    assert_eq!(refused.problem, Problem::Exists);
    assert_eq!(place.text("notes.txt"), "my notes");
}

#[test]
fn a_second_recorder_changes_nothing() {
    let place = Place::new();
    let first = place.open("talk.jsonl");
    first.append(&text_message(Role::User, "which tree?")).unwrap();
    let refused = Recorder::open(&CycodLayout, &place.target("talk.jsonl"), place.environment()).unwrap_err();
    assert!(matches!(refused.problem, Problem::Locked { .. }));
    assert_eq!(place.text("talk.jsonl"), USER);
}

#[test]
fn a_document_that_cannot_be_saved_is_a_warning() {
    let place = Place::new();
    fs::write(place.path("home"), "a file").unwrap();
    let recorder = place.open("talk.jsonl");
    assert_eq!(recorder.warnings().iter().filter(|warning| warning.text.starts_with("is not saved")).count(), 2);
    recorder.append(&text_message(Role::User, "which tree?")).unwrap();
    recorder.finish(&RecordingEnd::Completed).unwrap();
    assert_eq!(place.text("talk.jsonl"), USER);
    let homeless = Environment { home: None, ..place.environment() };
    let recorder = Recorder::open(&CycodLayout, &place.target("other.jsonl"), homeless).unwrap();
    assert!(recorder.warnings().iter().all(|warning| warning.text.contains("no home folder")));
}

#[test]
fn saving_can_be_switched_off_and_one_path_is_written_once() {
    let place = Place::new();
    let mut target = place.target("talk.jsonl");
    target.settings.insert("auto_save_trajectory".to_owned(), "false".to_owned());
    let recorder = Recorder::open(&CycodLayout, &target, place.environment()).unwrap();
    recorder.append(&text_message(Role::User, "which tree?")).unwrap();
    recorder.finish(&RecordingEnd::Completed).unwrap();
    assert!(place.path(SAVED_CHAT).is_file() && !place.path(SAVED_TRAJECTORY).exists());

    let place = Place::new();
    let recorder = place.open("home/.cycod/history/chat-history-{time}.jsonl");
    recorder.append(&text_message(Role::User, "which tree?")).unwrap();
    let kept = recorder.finish(&RecordingEnd::Completed).unwrap();
    assert_eq!(kept.files, [place.path(SAVED_CHAT), place.path(SAVED_TRAJECTORY)]);
    assert_eq!(place.text(SAVED_CHAT), USER);
}

#[test]
fn two_recordings_of_one_moment_have_two_names_and_nothing_leaves_nothing() {
    let place = Place::new();
    let target = Target::default();
    let first = Recorder::open(&CycodLayout, &target, place.environment()).unwrap();
    let second = Recorder::open(&CycodLayout, &target, place.environment()).unwrap();
    first.append(&text_message(Role::User, "which tree?")).unwrap();
    first.finish(&RecordingEnd::Completed).unwrap();
    second.finish(&RecordingEnd::Canceled).unwrap();
    let history = place.path("home/.cycod/history");
    let mut names: Vec<String> =
        fs::read_dir(history).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with(".steno"));
    names.sort();
    assert_eq!(names, ["chat-history-1772442845061.jsonl", "trajectory-1772442845061.md"]);
}

/// The documents after completion, depending on the damage in between.
fn completed_after(count: usize, harm: impl Fn(&Path)) -> [String; 3] {
    let place = Place::new();
    let events = conversation();
    let recorder = place.open("talk.jsonl");
    events.iter().take(count).for_each(|event| recorder.append(event).unwrap());
    drop(recorder);
    let documents = ["talk.jsonl", SAVED_CHAT, SAVED_TRAJECTORY].map(|name| place.path(name));
    documents.iter().filter(|path| path.exists()).for_each(|path| harm(path));
    recover::recover(&place.path("talk.jsonl"), &place.environment()).unwrap();
    let found = ["talk.jsonl", SAVED_CHAT, SAVED_TRAJECTORY].map(|name| match place.path(name).exists() {
        true => place.text(name),
        false => String::new(),
    });
    let exists = |name: &str| place.path(name).exists();
    assert_eq!([exists("talk.jsonl"), exists(SAVED_CHAT)], [count > 0; 2]);
    if count > 0 {
        let again = recover::recover(&place.path("talk.jsonl"), &place.environment()).unwrap();
        assert!(again.warnings.is_empty() && place.text("talk.jsonl") == found[0]);
    }
    found
}

#[test]
fn every_state_that_a_crash_leaves_is_completed() {
    let events = conversation();
    for count in 0..=events.len() {
        let place = Place::new();
        place.record("talk.jsonl", &events[..count]);
        let whole = |name: &str| fs::read_to_string(place.path(name)).unwrap_or_default();
        let expected = [whole("talk.jsonl"), whole(SAVED_CHAT), whole(SAVED_TRAJECTORY)];
        let cut = |path: &Path, by: u64| {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_len(file.metadata().unwrap().len().saturating_sub(by)).unwrap();
        };
        assert_eq!(completed_after(count, |_| {}), expected, "{count} events");
        assert_eq!(completed_after(count, |path| fs::remove_file(path).unwrap()), expected, "{count} events, removed");
        for by in [1, 50] {
            assert_eq!(completed_after(count, |path| cut(path, by)), expected, "{count} events, {by} bytes short");
        }
        let zeroed = completed_after(count, |path| {
            let mut bytes = fs::read(path).unwrap();
            let length = bytes.len();
            bytes[length - length.min(20)..].fill(0);
            fs::write(path, bytes).unwrap();
        });
        assert_eq!(zeroed, expected, "{count} events, zeros at the end");
    }
}

#[test]
fn foreign_content_is_left_alone_and_the_journal_stays() {
    let place = Place::new();
    let recorder = place.open("talk.jsonl");
    recorder.append(&text_message(Role::User, "which tree?")).unwrap();
    let theirs = "{\"role\":\"user\",\"content\":\"mine now\"}\n";
    fs::write(place.path("talk.jsonl"), theirs).unwrap();
    recorder.append(&text_message(Role::Assistant, "An oak.")).unwrap();
    let kept = recorder.finish(&RecordingEnd::Completed).unwrap();
    assert!(place.text("talk.jsonl").starts_with(theirs));
    assert!(kept.warnings.iter().any(|warning| warning.text.contains("another program")), "{:?}", kept.warnings);
    assert!(journal_path(&place.path("talk.jsonl")).is_file());
}

#[test]
fn a_journal_is_removed_if_the_chat_history_has_everything() {
    let place = Place::new();
    place.record("talk.jsonl", &[text_message(Role::User, "which tree?"), text_message(Role::Assistant, "An oak.")]);
    assert!(!journal_path(&place.path("talk.jsonl")).exists());
    // A sealed thought has no place there.
    let mut thought = Event::new(Body::Failure { name: None, content: Some(Content::text("overloaded")) });
    thought.model = Some("m".into());
    place.record("other.jsonl", &[text_message(Role::User, "which tree?"), thought]);
    assert!(journal_path(&place.path("other.jsonl")).is_file());
}
