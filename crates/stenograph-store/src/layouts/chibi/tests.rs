//! Recording into a context: what its files hold afterwards, and what only the journal can.

use std::fs;

use stenograph::Registry;
use stenograph::model::{Body, Content, Event, Role};
use stenograph::read::{self, Collected};

use super::*;
use crate::files::Disk;
use crate::journal::RecordingEnd;
use crate::layouts::DebugLogs;
use crate::systems::chibi::Window;
use crate::{Recorder, folder, recover};

fn text_message(role: Role, text: &'static str) -> Event<'static> {
    Event::new(Body::Message { role, content: Content::text(text) })
}

fn thought(text: &'static str) -> Event<'static> {
    Event::new(Body::Thinking { content: Content::text(text) })
}

fn target(folder: &Path) -> Target {
    let settings = [("user".to_owned(), "alice".to_owned())].into();
    Target { path: Some(folder.to_owned()), settings, ..Target::default() }
}

fn recorder(folder: &Path) -> Recorder {
    Recorder::open(&ChibiLayout, &target(folder), Environment::default()).unwrap()
}

fn record(folder: &Path, events: &[Event<'_>]) {
    let recorder = recorder(folder);
    events.iter().for_each(|event| recorder.append(event).unwrap());
    recorder.finish(&RecordingEnd::Completed).unwrap();
}

fn entries(path: impl AsRef<Path>) -> Vec<ContextEntry> {
    entry::all(&Disk, path.as_ref()).unwrap()
}

fn lines(path: impl AsRef<Path>) -> Vec<String> {
    entries(path).into_iter().map(|entry| String::from_utf8(entry.line).unwrap()).collect()
}

/// The events that `show` gives for a folder, without the recorder's own.
fn shown(folder: &Path) -> Vec<String> {
    let mut found = Collected::default();
    folder::read(&folder::parts(folder).unwrap(), &mut found).unwrap();
    let text = |event: &Event<'_>| match &event.body {
        Body::Stop { .. } => None,
        Body::Fact { fact: name, .. } => Some(name.to_string()),
        Body::ToolCall { name, .. } => Some(name.to_string()),
        _ => event.content().map(|content| content.joined().decode().into_owned()),
    };
    found.events.iter().filter_map(text).collect()
}

#[test]
fn a_conversation_becomes_entries_with_names_and_ids_and_leaves_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = &folder.path().join("research");
    record(folder, &[text_message(Role::User, "What is Rust?"), text_message(Role::Assistant, "A language.")]);
    let lines = lines(folder.join("context.jsonl"));
    assert!(lines[0].contains(r#""from":"alice","to":"research","content":"What is Rust?","entry_type":"message""#));
    assert!(lines[1].contains(r#""from":"research","to":"user","content":"A language.""#));
    let ids: Vec<_> = entries(folder.join("context.jsonl")).into_iter().map(|entry| entry.id.unwrap()).collect();
    assert!(
        ids.iter().all(|id| uuid::Uuid::parse_str(id).is_ok_and(|id| id.get_version_num() == 4)) && ids[0] != ids[1]
    );
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    // It continues after the existing entries, which stay unchanged.
    record(folder, &[text_message(Role::User, "Tell me more.")]);
    assert_eq!(entries(folder.join("context.jsonl")).len(), 3);
    assert_eq!(entries(folder.join("context.jsonl"))[0].id.as_deref(), Some(ids[0].as_str()));
    assert_eq!(shown(folder), ["What is Rust?", "A language.", "Tell me more."]);
}

#[test]
fn events_that_an_entry_cannot_hold_are_read_from_the_journal_in_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("context.jsonl"), lines_of("before")).unwrap();
    record(folder, &[text_message(Role::User, "hi"), thought("hm"), text_message(Role::Assistant, "yes")]);
    record(folder, &[text_message(Role::User, "yes"), thought("aha")]);
    assert_eq!(entries(folder.join("context.jsonl")).len(), 4);
    assert_eq!(shown(folder), ["before", "hi", "hm", "yes", "yes", "aha"]);
}

fn lines_of(content: &str) -> String {
    format!(
        "{{\"id\":\"{content}\",\"timestamp\":5,\"from\":\"a\",\"to\":\"b\",\"content\":\"{content}\",\"entry_type\":\"message\"}}\n"
    )
}

#[test]
fn clearing_and_recovering_with_a_remaining_journal_bring_nothing_back_and_show_everything_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    record(folder, &[text_message(Role::User, "hi"), thought("hm"), text_message(Role::Assistant, "yes")]);
    Window::lock(&Context::at(folder), &Environment::default()).unwrap().clear().unwrap();
    assert_eq!(shown(folder), ["hi", "hm", "yes", "archival"]);
    recover::recover(folder, &Environment::default()).unwrap();
    record(folder, &[text_message(Role::User, "again"), thought("oh")]);
    assert_eq!(entries(folder.join("context.jsonl")).len(), 2);
    assert_eq!(shown(folder), ["hi", "hm", "yes", "archival", "again", "oh"]);
}

#[test]
fn a_recording_that_was_cut_off_is_completed_whatever_became_of_its_files() {
    type Damage = fn(&Path);
    let damages: [Damage; 4] = [
        |_| {},
        |path| fs::remove_file(path).unwrap(),
        |path| fs::File::options().write(true).open(path).unwrap().set_len(20).unwrap(),
        |path| fs::write(path, "").unwrap(),
    ];
    for today in [false, true] {
        for damage in damages {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            if today {
                fs::create_dir(folder.join("transcript")).unwrap();
                fs::write(folder.join("transcript/active.jsonl"), "").unwrap();
            }
            let recorder = recorder(folder);
            recorder.append(&text_message(Role::User, "one")).unwrap();
            recorder.append(&thought("hm")).unwrap();
            recorder.append(&text_message(Role::Assistant, "two")).unwrap();
            drop(recorder);
            damage(&folder.join("context.jsonl"));
            if today {
                damage(&folder.join("transcript/active.jsonl"));
            }
            assert_eq!(shown(folder), ["one", "hm", "two"]);
            recover::recover(folder, &Environment::default()).unwrap();
            assert_eq!(entries(folder.join("context.jsonl")).len(), 2);
            if today {
                assert_eq!(lines(folder.join("context.jsonl")), lines(folder.join("transcript/active.jsonl")));
            }
            assert_eq!(shown(folder), ["one", "hm", "two"]);
            assert!(recover::recover(folder, &Environment::default()).unwrap().warnings.is_empty());
            assert!(!folder.join(".lock").exists() && !folder.join(".steno.lock").exists());
        }
    }
}

#[test]
fn entries_lost_in_a_power_failure_return_to_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("transcript")).unwrap();
    let path = folder.join("transcript/active.jsonl");
    fs::write(&path, "oops\n").unwrap();
    let recorder = recorder(folder);
    ["one", "two", "three"].iter().for_each(|text| recorder.append(&text_message(Role::User, text)).unwrap());
    drop(recorder);
    let wanted = lines(&path);
    let mut bytes = fs::read(&path).unwrap();
    let (two, three) = (5 + wanted[1].len() + 1, 5 + wanted[1].len() + 1 + wanted[2].len() + 1);
    bytes[two + 10..three].fill(0);
    fs::write(&path, bytes).unwrap();
    recover::recover(folder, &Environment::default()).unwrap();
    assert_eq!(lines(&path), wanted);
    assert!(folder.join("transcript/active.jsonl.torn-1").exists());
    assert_eq!(shown(folder), ["one", "two", "three"]);
}

#[test]
fn a_context_is_held_while_it_is_recorded_into() {
    let folder = tempfile::tempdir().unwrap();
    let first = recorder(folder.path());
    let second = Recorder::open(&ChibiLayout, &target(folder.path()), Environment::default()).unwrap_err();
    assert_eq!(second.problem, Problem::Locked { holder: Some(std::process::id()) });
    let now = context_lock::seconds(&Environment::default().clock);
    assert_eq!(context_lock::status(folder.path(), now, HEARTBEAT_SECONDS), Some(ContextLockStatus::Active));
    first.finish(&RecordingEnd::Completed).unwrap();
    fs::write(folder.path().join(".lock"), now.to_string()).unwrap();
    let chibi = Recorder::open(&ChibiLayout, &target(folder.path()), Environment::default()).unwrap_err();
    assert_eq!(chibi.problem, Problem::Locked { holder: None });
}

#[test]
fn the_current_transcript_also_gets_every_entry_by_its_own_rules() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("transcript")).unwrap();
    // Nothing is written yet, so it is not old.
    let before = lines_of("before").replace("\"timestamp\":5", "\"timestamp\":4102444800");
    fs::write(folder.join("transcript/active.jsonl"), before).unwrap();
    let recorder = recorder(folder);
    let many: Vec<Event<'_>> = (0..1_200).map(|_| text_message(Role::User, "x")).collect();
    recorder.append_all(&many).unwrap();
    recorder.finish(&RecordingEnd::Completed).unwrap();
    assert_eq!(fs::read_dir(folder.join("transcript/partitions")).unwrap().count(), 1);
    let mut ids = Vec::new();
    let each = &mut |entry: ContextEntry| {
        ids.push(entry.id.unwrap());
        Ok(())
    };
    ContextTranscript::of(folder).each(&Disk, each).unwrap();
    let window: Vec<String> =
        entries(folder.join("context.jsonl")).into_iter().map(|entry| entry.id.unwrap()).collect();
    assert_eq!(ids[1..], window);
    assert_eq!(shown(folder).len(), 1_201);
}

#[test]
fn requests_and_responses_have_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let request =
        r#"{"timestamp":1705123456,"request":{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}}"#;
    let response = r#"{"timestamp":1705123460,"response":{"id":"c1","model":"m","usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}}"#;
    let mut events = read::all(Registry::built_in().named("chibi-requests").unwrap(), request.as_bytes()).events;
    events.push(text_message(Role::User, "hi"));
    events.extend(read::all(Registry::built_in().named("chibi-responses").unwrap(), response.as_bytes()).events);
    let target = Target { debug: DebugLogs::Record, ..target(folder) };
    let recorder = Recorder::open(&ChibiLayout, &target, Environment::default()).unwrap();
    recorder.append_all(&events).unwrap();
    recorder.finish(&RecordingEnd::Completed).unwrap();
    assert_eq!(fs::read_to_string(folder.join("requests.jsonl")).unwrap(), format!("{request}\n"));
    assert_eq!(fs::read_to_string(folder.join("response_meta.jsonl")).unwrap(), format!("{response}\n"));
    assert_eq!(entries(folder.join("context.jsonl")).len(), 1);
    // Without requests there is no log.
    let other = folder.join("other");
    let recorder =
        Recorder::open(&ChibiLayout, &Target { path: Some(other.clone()), ..target }, Environment::default()).unwrap();
    recorder.append(&text_message(Role::User, "hi")).unwrap();
    recorder.finish(&RecordingEnd::Completed).unwrap();
    assert!(!other.join("requests.jsonl").exists() && other.join("context.jsonl").exists());
}

#[test]
fn the_parts_of_one_record_are_entries_with_ids_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line = r#"{"role":"assistant","content":"look","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#;
    let events = read::all(Registry::built_in().named("openai-chat").unwrap(), line.as_bytes()).events;
    let given: Vec<Event<'_>> = events.iter().map(|event| Event { id: Some("r".into()), ..event.clone() }).collect();
    record(folder, &events);
    record(folder, &given);
    let ids: Vec<String> = entries(folder.join("context.jsonl")).into_iter().map(|entry| entry.id.unwrap()).collect();
    assert_eq!(ids[2..], ["r", "r-1"]);
    assert_ne!(ids[0], ids[1]);
    assert_eq!(shown(folder), ["look", "ls", "look", "ls"]);
}

#[test]
fn a_context_is_named_by_its_folder_by_its_home_or_not_at_all() {
    let environment = Environment { home: Some("home".into()), ..Environment::default() };
    let named = |path: Option<&str>, name: Option<&str>| {
        let settings = name.map(|name| ("context".to_owned(), name.to_owned())).into_iter().collect();
        let target = Target { path: path.map(PathBuf::from), settings, ..Target::default() };
        chosen(&target, &environment).map(|context| (context.folder, context.name))
    };
    let is = |folder: &str, name: &str| (PathBuf::from(folder), name.to_owned());
    assert_eq!(named(Some("a/b"), None).unwrap(), is("a/b", "b"));
    assert_eq!(named(Some("a"), Some("b")).unwrap(), is("a/contexts/b", "b"));
    assert_eq!(named(Some("a/contexts/b"), Some("b")).unwrap(), is("a/contexts/b", "b"));
    assert_eq!(named(None, Some("b")).unwrap(), is("home/.chibi/contexts/b", "b"));
    assert_eq!(named(None, None).unwrap(), is("home/.chibi/contexts/default", "default"));
    assert_eq!(named(Some("a"), Some("../b")).unwrap_err().problem, Problem::BadContext);
}

#[test]
fn a_folder_of_another_layout_is_not_taken_for_a_context() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("journal.steno"), "{\"v\":1,\"kind\":\"message\",\"content\":\"x\"}\n").unwrap();
    assert_eq!(ChibiLayout.files_to_read(folder.path(), &Disk), None);
}
