//! Reads the members of `agent-tracking.json`. The reader remembers only whether the document was closed.

use super::INFO;
use crate::frame::{Record, RecordPlace};
use crate::json::Object;
use crate::model::{Body, Event, Extra, Note, NoteKind, Span};
use crate::read::{JsonRecord, Reader, Sink};
use crate::text::{Str, Text};

/// Reads one member at a time.
#[derive(Debug, Default)]
pub struct TrackingReader {
    /// The last record of a document that is not closed yet.
    open: Option<Span>,
}

impl Reader for TrackingReader {
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink) {
        self.open = if record.terminated { Some(record.at) } else { None };
        match record.place {
            RecordPlace::Prologue if record.bytes.trim_ascii() == b"{" => {}
            RecordPlace::Epilogue if record.bytes.trim_ascii() == b"}" => self.open = None,
            RecordPlace::Prologue | RecordPlace::Epilogue => {
                self.open = None;
                JsonRecord::new(&record).emit_unread("not part of a list of agents", out);
            }
            RecordPlace::Item | RecordPlace::Line => member(&record, out),
        }
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        if let Some(at) = self.open {
            out.note(Note::new(NoteKind::Torn, at, "the document is incomplete: it ends after this record"));
        }
    }
}

fn member(record: &Record<'_>, out: &mut dyn Sink) {
    let found = split(record.bytes).and_then(|(key, value)| {
        let key = Text::from_json(std::str::from_utf8(key).ok()?)?.exact()?;
        let value = JsonRecord::derived(record, value);
        value.is_one_object().then_some((key, value))
    });
    match found {
        Some((key, value)) => value.each(out, &mut |object, at, out| at.emit_one(agent(&key, object), out)),
        None => JsonRecord::new(record).emit_unread("not an agent", out),
    }
}

fn agent<'a>(key: &'a str, mut object: Object<'a>) -> Event<'a> {
    let mut event = Event {
        id: Some(Str::Borrowed(key)),
        session: object.take_name("session_id"),
        thread: object.take_name("agent_id"),
        cwd: object.take_name("project"),
        branch: object.take_name("git_branch"),
        time: object.take_iso("started_at"),
        ..Event::new(Body::Fact { fact: "agent".into(), content: None })
    };
    event.extra = Extra::of(&INFO, object.into_extra());
    event
}

/// Splits a member into its key, with quotes, and its value.
fn split(member: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = member.strip_prefix(b"\"")?;
    let mut escaped = false;
    let end = inside.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    let (key, rest) = member.split_at_checked(end + 2)?;
    Some((key, rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii()))
}
