//! The public API: a session gives what the folds give, whole or streamed, and a program can add formats of its own.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use stenograph::audit::{Auditor, Parts};
use stenograph::calls::{CallStep, Calls};
use stenograph::changes::Changes;
use stenograph::format::{FormatInfo, Head, Sniff, Wanted};
use stenograph::formats::FORMATS;
use stenograph::frame::Record;
use stenograph::json::Draft;
use stenograph::model::{Outline, Usage};
use stenograph::prelude::*;
use stenograph::read::{self, Reader, Sink};
use stenograph::status::{Patience, Watch};
use stenograph::text::Text;
use stenograph::wire;
use stenograph::write::{Writer, WriterOutput};

/// Every fixture of every format.
fn fixtures() -> Vec<(&'static dyn Format, PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for format in FORMATS {
        let name = format.info().name.replace('-', "_");
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/formats").join(name).join("fixtures");
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let is_source = path.extension().is_none_or(|ending| ending != "golden" && ending != "losses");
            if is_source {
                let bytes = fs::read(&path).unwrap();
                found.push((*format, path, bytes));
            }
        }
    }
    found
}

fn demo() -> Vec<u8> {
    fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/src/formats/claude_code/fixtures/demo.jsonl")).unwrap()
}

#[test]
fn a_session_holds_what_reading_gives() {
    for (format, path, bytes) in fixtures() {
        let session = Session::from_bytes(&bytes).unwrap();
        assert_eq!(session.format().info().name, format.info().name, "{}", path.display());
        let read = read::all(format, &bytes);
        assert_eq!((session.events(), session.notes()), (read.events.as_slice(), read.notes.as_slice()));
        assert_eq!(session.records().map(<[_]>::len).sum::<usize>(), read.events.len());
        assert_eq!(Session::from_reader(bytes.as_slice()).unwrap().events(), session.events());
    }
}

#[test]
fn a_stream_gives_the_same_events_records_and_notes() {
    for (format, path, bytes) in fixtures() {
        let session = Session::of(format, bytes.as_slice());
        // A reader that gives one byte at a time.
        let mut stream = EventStream::new(format, Vec::new(), Trickle(&bytes));
        let events: Vec<Event<'static>> = stream.by_ref().map(Result::unwrap).collect();
        assert_eq!(events, session.events(), "{}", path.display());
        assert_eq!(stream.notes(), session.notes(), "{}", path.display());
        let records = Session::stream(bytes.as_slice()).unwrap().records();
        let records: Vec<Vec<Event<'static>>> = records.map(Result::unwrap).collect();
        assert!(records.iter().map(Vec::as_slice).eq(session.records()), "{}", path.display());
    }
}

struct Trickle<'b>(&'b [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(1);
        self.0.read(&mut buffer[..length])
    }
}

#[test]
fn a_first_line_that_is_too_long_to_be_looked_at_hides_no_format() {
    let long = format!("{{\"unknown\":\"{}\"}}\n", "x".repeat(Head::LINE_SIZE_MAX));
    let bytes = [long.as_bytes(), &demo()].concat();
    assert_eq!(Session::from_bytes(&bytes).unwrap().format().info().name, "claude-code");
    let stream = Session::stream(bytes.as_slice()).unwrap();
    assert_eq!(stream.format().info().name, "claude-code");
    assert_eq!(stream.count(), Session::from_bytes(&bytes).unwrap().events().len());
}

#[test]
fn an_error_of_the_reader_ends_a_stream() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let bytes = demo();
    let format = Registry::built_in().detect(&bytes).only().unwrap();
    let mut stream = EventStream::new(format, bytes, Broken);
    let read: Vec<bool> = stream.by_ref().map(|event| event.is_ok()).collect();
    assert!(read.len() > 1 && read.iter().filter(|is_ok| !**is_ok).count() == 1 && read.last() == Some(&false));
    assert!(stream.next().is_none());
}

#[test]
fn calls_have_the_outcomes_that_the_fold_decides() {
    for (_, path, bytes) in fixtures() {
        let session = Session::from_bytes(&bytes).unwrap();
        let mut fold = Calls::default();
        let steps: Vec<_> = session.events().iter().map(|event| fold.add(event)).collect();
        let calls: Vec<_> = session.calls().collect();
        let numbered = steps.iter().filter_map(|step| step.call).max().unwrap_or(0);
        assert_eq!(calls.len() as u64, numbered, "{}", path.display());
        let failed = calls.iter().filter(|call| call.outcome().is_failure()).count();
        assert_eq!(failed > 0, steps.iter().any(CallStep::has_failed), "{}", path.display());
        for call in &calls {
            assert_eq!(call.decided_by().is_none(), call.rule() == OutcomeRule::NoEvidence && call.exit().is_none());
            let is_stated = call.event().is_some() || call.result().is_some() || call.decided_by().is_some();
            assert!(is_stated, "{}: {call:?}", path.display());
            assert!(call.event().is_none_or(|event| event.kind() == Kind::ToolCall), "{}: {call:?}", path.display());
        }
    }
}

#[test]
fn a_demo_answers_every_question() {
    let bytes = demo();
    let session = Session::from_bytes(&bytes).unwrap();
    assert_eq!(session.title(), Some("Fix the leap day test"));
    let tools: Vec<(String, CallOutcome)> =
        session.calls().map(|call| (call.tool().to_owned(), call.outcome())).collect();
    assert_eq!(tools.len(), 4, "{tools:?}");
    assert!(tools.contains(&("Bash".to_owned(), CallOutcome::Failed)), "{tools:?}");
    assert!(session.calls().all(|call| call.input().is_some() && call.result().is_some()));
    let total = session.usage().total();
    assert_eq!((total.input, total.output), (Some(2947), Some(463)));
    assert!(total.to_string().starts_with("2947 input tokens, 463 output tokens, "), "{total}");
    assert_eq!(Usage::default().to_string(), "no usage stated");
    let (codex, losses) = session.convert_to("codex").unwrap();
    assert_eq!(Session::from_bytes(&codex).unwrap().format().info().name, "codex");
    assert_eq!(losses.to_string().lines().count(), losses.summary().len());
}

#[test]
fn events_and_notes_are_serialised_as_the_wire_spells_them() {
    for (_, _, bytes) in fixtures() {
        let session = Session::from_bytes(&bytes).unwrap();
        for event in session.events() {
            assert_eq!(serde_json::to_string(event).unwrap(), wire::event_at(event));
        }
        for note in session.notes() {
            assert_eq!(serde_json::to_string(note).unwrap(), wire::note(note));
        }
        for call in session.calls() {
            let json = serde_json::to_value(&call).unwrap();
            assert_eq!(json["outcome"], call.outcome().name());
        }
        let outline = serde_json::to_value(session.outline()).unwrap();
        assert_eq!(outline["events"], session.events().len());
    }
}

#[test]
fn audits_states_and_changes_are_serialised_as_the_command_prints_them() {
    let bytes = demo();
    let session = Session::from_bytes(&bytes).unwrap();
    let (mut auditor, mut watch, mut changes) = (Auditor::default(), Watch::default(), Changes::default());
    for event in session.events() {
        auditor.add(event);
        watch.add(event);
        changes.add(event);
    }
    let (audit, changes) = (auditor.finish(), changes.finish());
    let status = watch.summary().status(None, &Patience::default());
    let mut draft = Draft::new();
    audit.put(Parts::All, &mut draft);
    assert_eq!(serde_json::to_string(&audit).unwrap(), draft.render(None));
    let mut draft = Draft::new();
    changes.put(&mut draft);
    assert_eq!(serde_json::to_string(&changes).unwrap(), draft.render(None));
    let file = changes.files.first().unwrap();
    assert_eq!(serde_json::to_value(file).unwrap()["how"], file.how.name());
    let status_json = serde_json::to_value(&status).unwrap();
    assert_eq!((&status_json["state"], status_json.get("changed")), (&status.state.name().into(), None));
}

#[test]
fn what_no_format_claims_and_names_of_no_format_are_errors_with_a_hint() {
    let unknown = Session::from_bytes(b"neither this nor that").unwrap_err();
    assert!(matches!(unknown, Error::UnknownFormat) && unknown.hint().is_some(), "{unknown}");
    assert!(matches!(Session::stream(&b"neither this nor that"[..]).unwrap_err(), Error::UnknownFormat));
    let bytes = demo();
    let unnamed = Session::from_bytes(&bytes).unwrap().convert_to("nothing").unwrap_err();
    assert_eq!(unnamed.to_string(), "unknown format \"nothing\"");
}

/// A format of a program's own: `user> hello`.
struct Prompts;

static PROMPTS: FormatInfo =
    FormatInfo { name: "prompts", agent: "prompts", title: "Lines of a terminal", ..FormatInfo::BLANK };

impl Format for Prompts {
    fn info(&self) -> &'static FormatInfo {
        &PROMPTS
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        if head.text().starts_with("user> ") { Sniff::Certain } else { Sniff::No }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(Prompts)
    }

    fn writer(&self, _outline: &Outline) -> Box<dyn Writer> {
        Box::new(Prompts)
    }
}

impl Reader for Prompts {
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink) {
        let (role, said) = match record.bytes.strip_prefix(b"user> ") {
            Some(said) => (Role::User, said),
            None => (Role::Assistant, record.bytes),
        };
        let body = Body::Message { role, content: Content::Text(Text::from_bytes(said)) };
        out.event(&Event { at: Some(record.at), ..Event::new(body) });
    }
}

impl Writer for Prompts {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events {
            if let Body::Message { role, content } = &event.body {
                let prompt = if *role == Role::User { "user> " } else { "" };
                out.line(format!("{prompt}{}", content.joined().decode()));
            }
        }
    }
}

#[test]
fn a_format_of_a_program_is_detected_and_converted_to_and_from_every_other() {
    const SOURCE: &[u8] = b"user> Is 1900 a leap year?\nNo.\n";
    let registry = Registry::default().with(&Prompts);
    assert_eq!(registry.formats().count(), FORMATS.len() + 1);
    assert!(Registry::built_in().named("prompts").is_none());
    assert!(matches!(Session::from_bytes(SOURCE), Err(Error::UnknownFormat)));
    let session = registry.session(SOURCE).unwrap();
    for name in ["steno", "codex", "claude-code"] {
        let (there, _) = session.convert_to(name).unwrap();
        let (back, _) = registry.session(there).unwrap().convert_to("prompts").unwrap();
        assert_eq!(back, SOURCE, "{name}");
    }
    let replaced = registry.with(&Prompts);
    assert_eq!(replaced.formats().filter(|format| format.info().name == "prompts").count(), 1);
}
