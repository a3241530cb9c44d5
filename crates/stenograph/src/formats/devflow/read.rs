//! Reads devflow's document: the fields before the turns, the turns, and the fields after them. The reader remembers only
//! whether the document was closed, and how the run ended.

use super::{INFO, ZERO_TIME, go_json};
use crate::frame::{Record, RecordPlace};
use crate::json::{Object, compact};
use crate::model::{Body, Content, Event, Extra, ExtraFields, Held, Input, Note, NoteKind, Piece, Role, Span, Usage};
use crate::read::{At, JsonRecord, Reader, Sink};
use crate::text::{Str, Text};
use crate::time::Time;

/// Reads one record at a time.
#[derive(Debug, Default)]
pub struct DevflowReader {
    /// The last record of a document that is not closed yet.
    open: Option<Span>,
    /// The end of the run: the header states it, and the event comes after the turns.
    stop: Option<Event<'static>>,
}

impl Reader for DevflowReader {
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink) {
        match record.place {
            RecordPlace::Prologue => {
                self.open = record.terminated.then_some(record.at);
                self.stop = prologue(&record, out);
            }
            RecordPlace::Item | RecordPlace::Line => {
                self.open = record.terminated.then_some(record.at);
                JsonRecord::new(&record).each(out, &mut turn);
            }
            RecordPlace::Epilogue => {
                self.open = None;
                self.stop = epilogue(&record, out).or(self.stop.take());
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        if let Some(stop) = self.stop.take() {
            out.event(&stop);
        }
        if let Some(at) = self.open {
            out.note(Note::new(NoteKind::Torn, at, "the document is incomplete: it ends after this record"));
        }
    }
}

/// Reads the fields before the first turn. A document whose `turns` are `null` has nothing else.
fn prologue(record: &Record<'_>, out: &mut dyn Sink) -> Option<Event<'static>> {
    let mut stop = None;
    let mut each = |object: Object<'_>, at: &At<'_>, out: &mut dyn Sink| stop = header("session", object, at, out);
    let closed = [record.bytes, b"]}"].concat();
    let (whole, completed) = (JsonRecord::derived(record, record.bytes), JsonRecord::derived(record, &closed));
    if whole.is_one_object() {
        whole.each(out, &mut each);
    } else if completed.is_one_object() {
        completed.each(out, &mut each);
    } else {
        JsonRecord::new(record).emit_unread("the start of the document is not JSON", out);
    }
    stop
}

/// Reads the fields after the last turn. Usually there are only two brackets, which make no event.
fn epilogue(record: &Record<'_>, out: &mut dyn Sink) -> Option<Event<'static>> {
    let after = record.bytes.trim_ascii().strip_prefix(b"]").unwrap_or(record.bytes).trim_ascii();
    if after == b"}" {
        return None;
    }
    let mut stop = None;
    let opened = [b"{", after.strip_prefix(b",").unwrap_or(after)].concat();
    let completed = JsonRecord::derived(record, &opened);
    if completed.is_one_object() {
        completed.each(out, &mut |object, at, out| stop = header("session_end", object, at, out));
    } else {
        JsonRecord::new(record).emit_unread("the end of the document is not JSON", out);
    }
    stop
}

/// Emits the fields of the run, and returns its stop. The run's totals stay in `extra`: the turns state the same tokens, which
/// must not count twice.
fn header(name: &'static str, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) -> Option<Event<'static>> {
    let mut stop = None;
    let mut event =
        Event { session: object.take_name("runId"), ..Event::new(Body::Fact { fact: name.into(), content: None }) };
    if let Some(mut metadata) = object.open("metadata") {
        event.time = take_time(&mut metadata, "startedAt");
        stop = end(&metadata, at);
        object.close("metadata", metadata);
    }
    event.extra = Extra::of(&INFO, object.into_extra());
    at.emit_one(event, out);
    stop
}

/// The end of the run. The header keeps its fields, so that they return; the event repeats them where other formats look for
/// them. A running run has not stopped, unless it has an error.
fn end(metadata: &Object<'_>, at: &At<'_>) -> Option<Event<'static>> {
    let stated = |key: &str| metadata.peek(key).and_then(Text::from_json).filter(|text| !text.is_empty());
    let error = stated("error").map(|error| Content::Text(error.into_owned()));
    let reason = metadata.peek_str("status").filter(|status| !matches!(status.as_ref(), "" | "running"));
    let success = match (reason.as_deref(), &error) {
        (Some("completed"), _) => Some(true),
        (Some("failed" | "canceled"), _) | (_, Some(_)) => Some(false),
        (None, None) => return None,
        (Some(_), None) => None,
    };
    let ended = metadata.peek_str("endedAt").filter(|ended| ended != ZERO_TIME).and_then(Time::iso);
    let body = Body::Stop { reason: reason.map(|reason| Str::Owned(reason.into_owned())), success, content: error };
    Some(Event { at: Some(at.span), time: ended.map(Time::into_owned), ..Event::new(body) })
}

fn turn(mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
    let role = object.peek_str("role");
    let calls = take_calls(&mut object, at, out);
    let content = turn_content(role.as_deref(), !calls.is_empty(), &mut object);
    if matches!(content, TurnContent::Unknown) && calls.is_empty() {
        return at.emit_unknown(&INFO, role.as_deref(), object, out);
    }
    let base = Event {
        id: object.take_number("id").map(|number| number.to_string().into()),
        time: take_time(&mut object, "timestamp"),
        ..Event::default()
    };
    let input = object.take_number("tokensIn");
    let output = object.take_number("tokensOut");
    let usage = Usage { input, output, ..Usage::default() }.stated();

    let mut events = Vec::with_capacity(1 + calls.len() * 2);
    let mut extra = object.into_extra();
    let mut calls = calls.into_iter();
    match content {
        TurnContent::Body(body) => {
            if matches!(body, Body::Message { role: Role::Unknown, .. }) {
                at.note(NoteKind::UnknownType, format!("unknown role {:?}", role.unwrap_or_default()), out);
            }
            events.push(Event { body, ..base.clone() });
        }
        TurnContent::CallsOnly | TurnContent::Unknown => {
            // The turn has no content, so its first call is the first part: the extra fields of the call replace the list of
            // calls.
            if let Some(call) = calls.next() {
                put_first_call_extra(&mut extra, call.extra);
                events.push(Event { body: call.call, ..base.clone() });
                events.push(part(call.result, ExtraFields::default(), &base));
            }
        }
    }
    if let Some(first) = events.first_mut() {
        first.usage = usage;
        first.extra = Extra::of(&INFO, extra);
    }
    for call in calls {
        events.push(part(call.call, call.extra, &base));
        events.push(part(call.result, ExtraFields::default(), &base));
    }
    at.emit(&mut events, out);
}

fn part<'a>(body: Body<'a>, extra: ExtraFields<'a>, base: &Event<'a>) -> Event<'a> {
    Event { body, extra: Extra::of(&INFO, extra), ..base.clone() }
}

fn put_first_call_extra<'a>(extra: &mut ExtraFields<'a>, call: ExtraFields<'a>) {
    if let Some((_, held)) = extra.0.iter_mut().rev().find(|(key, _)| key == "toolCalls") {
        *held = Held::Object(call);
    }
}

/// The content of a turn, without its calls.
enum TurnContent<'a> {
    Body(Body<'a>),
    /// None: an assistant only called tools.
    CallsOnly,
    /// The content or the role is missing.
    Unknown,
}

fn turn_content<'a>(role: Option<&str>, calls: bool, object: &mut Object<'a>) -> TurnContent<'a> {
    let Some(role) = role else { return TurnContent::Unknown };
    if calls && role == "assistant" && object.peek("content").is_none_or(|content| content == "\"\"") {
        return TurnContent::CallsOnly;
    }
    let Some(content) = object.take_text("content").map(Content::Text) else { return TurnContent::Unknown };
    TurnContent::Body(match role {
        "tool_result" => Body::ToolResult { call: None, name: None, content, error: None },
        "system" => Body::Message { role: Role::System, content },
        "user" => Body::Message { role: Role::User, content },
        "assistant" => Body::Message { role: Role::Assistant, content },
        _ => Body::Message { role: Role::Unknown, content },
    })
}

/// One element of `toolCalls`: the call, its result, and its extra fields.
struct TurnCall<'a> {
    call: Body<'a>,
    result: Body<'a>,
    extra: ExtraFields<'a>,
}

/// The calls of a turn. A list with an element that is not a call stays whole.
fn take_calls<'a>(object: &mut Object<'a>, at: &At<'_>, out: &mut dyn Sink) -> Vec<TurnCall<'a>> {
    let Some(elements) = object.peek("toolCalls").and_then(crate::json::items) else { return Vec::new() };
    let calls: Option<Vec<TurnCall<'a>>> = elements.into_iter().map(call).collect();
    match calls {
        Some(calls) if !calls.is_empty() => {
            object.take("toolCalls");
            calls
        }
        Some(_) => Vec::new(),
        None => {
            at.note(NoteKind::Ambiguous, "a tool call without a name; the list of calls is kept unparsed", out);
            Vec::new()
        }
    }
}

fn call(raw: &str) -> Option<TurnCall<'_>> {
    let mut object = Object::parse(raw)?;
    let name = object.take_str("name")?;
    let id = object.take_name("id");
    // Go writes an empty map as null. It stays in the object, so that it returns and a missing input does not become one.
    let input = match object.peek("input") {
        None | Some("null") => "{}",
        Some(_) => object.take("input").unwrap_or("{}"),
    };
    let (content, error) = take_result(&mut object);
    let result = Body::ToolResult { call: id.clone(), name: None, content, error };
    // The indentation of a call and Go's escapes are not part of its input.
    let call = Body::ToolCall { call: id, name, input: Input::Json(go_json::unescaped(compact(input))) };
    Some(TurnCall { call, result, extra: object.into_extra() })
}

/// The result of a call: its output, its error, or both as two pieces. devflow records finished calls and omits an empty
/// output: a call without either has an empty result.
fn take_result<'a>(object: &mut Object<'a>) -> (Content<'a>, Option<bool>) {
    let mut stated = |key: &str| {
        let is_stated = object.peek(key).and_then(Text::from_json).is_some_and(|text| !text.is_empty());
        if is_stated { object.take_text(key) } else { None }
    };
    match (stated("output"), stated("error")) {
        (Some(output), Some(error)) => (Content::Pieces(vec![Piece::text(output), Piece::text(error)]), Some(true)),
        (None, Some(error)) => (Content::Text(error), Some(true)),
        (Some(output), None) => (Content::Text(output), None),
        (None, None) => (Content::text(""), None),
    }
}

/// Takes a time, unless it is the one that Go writes for none.
fn take_time<'a>(object: &mut Object<'a>, key: &str) -> Option<Time<'a>> {
    if object.peek_str(key).as_deref() == Some(ZERO_TIME) { None } else { object.take_iso(key) }
}
