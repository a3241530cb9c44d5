//! Reads rollouts of every generation: documents, bare lines, lines with a payload. The reader keeps no state between records:
//! the current model and the total usage are folds.

use memchr::memmem;

use super::{INFO, content, is_bare_header, items, notices};
use crate::format::Wanted;
use crate::frame::{Record, RecordPlace};
use crate::json::Object;
use crate::model::{Body, Content, Event, Extra, ExtraFields, Fact, ForkOrigin, Origin, Role};
use crate::read::{At, JsonRecord, Reader, Sink};
use crate::text::Text;
use crate::time::Time;

/// Reads one record at a time.
#[derive(Debug)]
pub struct CodexReader {
    /// The fields that the caller needs.
    want: Wanted,
    usage_markers: [memmem::Finder<'static>; USAGE_MARKERS.len()],
}

impl CodexReader {
    /// A reader for the wanted fields.
    pub fn new(want: Wanted) -> CodexReader {
        CodexReader { want, usage_markers: USAGE_MARKERS.map(memmem::Finder::new) }
    }
}

impl Reader for CodexReader {
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink) {
        let is_in_record = |name: &memmem::Finder<'_>| name.find(record.bytes).is_some();
        let is_within = matches!(record.place, RecordPlace::Line | RecordPlace::Item);
        if self.want == Wanted::Usage && is_within && !self.usage_markers.iter().any(is_in_record) {
            return;
        }
        let document_part = match record.place {
            RecordPlace::Line | RecordPlace::Item => None,
            RecordPlace::Prologue => read_completed(&record, "", "]}", prologue),
            RecordPlace::Epilogue => read_completed(&record, "{\"items\":[", "", epilogue),
        };
        match document_part {
            Some(events) => emit(events, &record, out),
            None => JsonRecord::new(&record).each(out, &mut line),
        }
    }
}

/// Markers of the records that usage needs: one kind of record counts tokens, the others name its session and model.
const USAGE_MARKERS: [&str; 5] = ["token_count", "turn_context", "session_meta", "\"instructions\"", "web_search_call"];

/// Reads the part of a document before or after its items, completed by the brackets that the items would close or open.
fn read_completed(
    record: &Record<'_>,
    before: &str,
    after: &str,
    read: impl FnOnce(Object<'_>) -> Option<Vec<Event<'static>>>,
) -> Option<Vec<Event<'static>>> {
    let text = std::str::from_utf8(record.bytes).ok()?;
    let whole = format!("{before}{text}{after}");
    read(Object::parse(&whole)?)
}

fn emit(events: Vec<Event<'static>>, record: &Record<'_>, out: &mut dyn Sink) {
    let of = u32::try_from(events.len()).unwrap_or(u32::MAX);
    for (index, mut event) in (0..).zip(events) {
        event.at = Some(record.at);
        event.part = crate::model::Part { index, of };
        out.event(&event);
    }
}

/// The head of a document. Its empty list of items stays in `extra` and distinguishes a document from a line.
fn prologue(mut document: Object<'_>) -> Option<Vec<Event<'static>>> {
    let mut header = document.open("session")?;
    let time = header.take_iso("timestamp");
    let events = session(&mut header);
    document.close("session", header);
    Some(finish(events, time.as_ref(), document).into_iter().map(Event::into_owned).collect())
}

/// The end of a document, with the fields after the items.
fn epilogue(mut document: Object<'_>) -> Option<Vec<Event<'static>>> {
    document.take("items");
    let event = Event::new(Body::Fact { fact: Fact::DocumentEnd, content: None });
    Some(finish(vec![event], None, document).into_iter().map(Event::into_owned).collect())
}

/// Reads one line, or one item of a document.
fn line(mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
    let name = object.peek_str("type");
    if object.has("payload") {
        return line_with_payload(name.as_deref(), object, at, out);
    }
    let kind = items::kind(&object);
    let events = match kind.as_deref() {
        Some(kind) => items::read(kind, &mut object),
        None if is_bare_header(&object) => {
            let time = object.take_iso("timestamp");
            let events = session(&mut object);
            return at.emit(&mut finish(events, time.as_ref(), object), out);
        }
        None if object.peek_str("record_type").is_some() => {
            let name = object.peek_str("record_type").unwrap_or_default();
            Some(vec![Event::new(Body::Fact { fact: name.into(), content: None })])
        }
        None => None,
    };
    match events {
        Some(events) => at.emit(&mut finish(events, None, object), out),
        None => at.emit_unknown(&INFO, kind.as_deref(), object, out),
    }
}

/// Reads a line with a payload.
fn line_with_payload(name: Option<&str>, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
    let Some(mut payload) = object.open("payload") else {
        return at.emit_unknown(&INFO, name, object, out);
    };
    let kind = match name {
        Some("response_item") => items::kind(&payload),
        Some("event_msg") => payload.peek_str("type"),
        _ => None,
    };
    let events = match (name, kind.as_deref()) {
        (Some("response_item"), Some(kind)) => items::read(kind, &mut payload),
        (Some("event_msg"), Some(kind)) => notices::read(kind, &mut payload).map(|event| vec![event]),
        (Some(name), None) => untyped_payload(name, &mut payload),
        _ => None,
    };
    object.close("payload", payload);
    match events {
        Some(events) => {
            let time = object.take_iso("timestamp");
            at.emit(&mut finish(events, time.as_ref(), object), out);
        }
        None => at.emit_unknown(&INFO, kind.as_deref().or(name), object, out),
    }
}

/// Reads the payloads without a type of their own.
fn untyped_payload<'a>(name: &str, payload: &mut Object<'a>) -> Option<Vec<Event<'a>>> {
    let mut event = Event::new(Body::Fact { fact: name.to_owned().into(), content: None });
    match name {
        "session_meta" => return Some(session(payload)),
        "turn_context" => {
            event.model = payload.take_name("model");
            event.cwd = payload.take_name("cwd");
        }
        "compacted" => {
            let summary = content::take_nonempty(payload, "message").or_else(|| summary_in_history(payload));
            event.body = Body::Compaction { summary: summary.map(Content::Text) };
        }
        "inter_agent_communication" => {
            event.from = payload.take_name("author");
            event.to = payload.take_name("recipient");
            let content = payload.take_text("content").map(Content::Text);
            event.body = Body::Fact { fact: name.to_owned().into(), content };
        }
        "inter_agent_communication_metadata" | "world_state" | "security_risk_score" => {}
        "token_usage_record" | "retained_context" | "realtime_item" => {}
        _ => return None,
    }
    Some(vec![event])
}

/// The beginning of the message in which Codex gives a summary to the model that continues.
const SUMMARY_PREFIX: &str = "Another language model started to solve this problem";

/// The summary in the replacement history, if the record itself has none. The history stays in `extra`; an encrypted summary
/// cannot be read.
fn summary_in_history<'a>(payload: &Object<'a>) -> Option<Text<'a>> {
    payload.peek("message").filter(|message| *message == "\"\"")?;
    let history = payload.peek("replacement_history").and_then(crate::json::items)?;
    history.into_iter().rev().find_map(|raw| {
        let mut item = Object::parse(raw).filter(|item| item.peek_str("role").as_deref() == Some("user"))?;
        let content = content::take(&mut item, "content")?;
        content.texts().find(|text| text.decode().starts_with(SUMMARY_PREFIX)).cloned()
    })
}

/// The header of a session, and the session's instructions as a separate message.
fn session<'a>(header: &mut Object<'a>) -> Vec<Event<'a>> {
    let mut fact = Event {
        session: header.take_name("id"),
        cwd: header.take_name("cwd"),
        version: header.take_name("cli_version"),
        forked_from: header.take_name("forked_from_id").map(|session| Box::new(ForkOrigin { session, record: None })),
        ..Event::new(Body::Fact { fact: Fact::Session, content: None })
    };
    if let Some(mut git) = header.open("git") {
        fact.branch = git.take_name("branch");
        header.close("git", git);
    }
    match instructions(header) {
        Some(text) => {
            let content = Content::Text(text);
            let message = Event { body: Body::Message { role: Role::System, content }, ..fact.clone() };
            vec![fact, message]
        }
        None => vec![fact],
    }
}

fn instructions<'a>(header: &mut Object<'a>) -> Option<Text<'a>> {
    let mut found = None;
    if let Some(mut base) = header.open("base_instructions") {
        found = content::take_nonempty(&mut base, "text");
        header.close("base_instructions", base);
    }
    found.or_else(|| content::take_nonempty(header, "instructions"))
}

/// Sets the time of all events of a record, and the extra fields of the first one.
fn finish<'a>(mut events: Vec<Event<'a>>, time: Option<&Time<'a>>, object: Object<'a>) -> Vec<Event<'a>> {
    let mut extra = Some(object.into_extra());
    for event in &mut events {
        event.time = time.cloned();
        event.extra = Extra::default();
        event.extra.add(Origin::Known(&INFO), extra.take().unwrap_or(ExtraFields(Vec::new())));
    }
    events
}
