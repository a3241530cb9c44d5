//! Reads devflow's document: what stands before the turns, the turns, and what stands after them.
//! It remembers only whether the document was closed, and how the run ended.

use super::{INFO, ZERO_TIME, spell};
use crate::frame::{Record, RecordPlace};
use crate::json::{Object, compact};
use crate::model::{Body, Content, Event, Extra, ExtraFields, Held, Input, Note, NoteKind, Piece, Role, Span, Usage};
use crate::read::{At, JsonRecord, Reader, Sink};
use crate::text::{Str, Text};
use crate::time::Time;

/// Reads one record at a time.
#[derive(Debug, Default)]
pub struct Turns {
    /// The last record of a document that was not closed yet.
    open: Option<Span>,
    /// The end of the run, which the header states and which comes after the turns.
    stop: Option<Event<'static>>,
}

impl Reader for Turns {
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
            out.note(Note::new(NoteKind::Torn, at, "the document ends after this record without being closed"));
        }
    }
}

/// What stands before the first turn. A document whose turns are `null` has nothing else.
fn prologue(record: &Record<'_>, out: &mut dyn Sink) -> Option<Event<'static>> {
    let mut stop = None;
    let mut each = |object: Object<'_>, at: &At<'_>, out: &mut dyn Sink| stop = header("session", object, at, out);
    let closed = [record.bytes, b"]}"].concat();
    let (whole, made) = (JsonRecord::derived(record, record.bytes), JsonRecord::derived(record, &closed));
    if whole.is_one_object() {
        whole.each(out, &mut each);
    } else if made.is_one_object() {
        made.each(out, &mut each);
    } else {
        JsonRecord::new(record).emit_unread("the head of a document that is not JSON", out);
    }
    stop
}

/// What stands after the last turn. Usually that is two brackets, which say nothing.
fn epilogue(record: &Record<'_>, out: &mut dyn Sink) -> Option<Event<'static>> {
    let after = record.bytes.trim_ascii().strip_prefix(b"]").unwrap_or(record.bytes).trim_ascii();
    if after == b"}" {
        return None;
    }
    let mut stop = None;
    let opened = [b"{", after.strip_prefix(b",").unwrap_or(after)].concat();
    let made = JsonRecord::derived(record, &opened);
    if made.is_one_object() {
        made.each(out, &mut |object, at, out| stop = header("session_end", object, at, out));
    } else {
        JsonRecord::new(record).emit_unread("the end of a document that is not JSON", out);
    }
    stop
}

/// The fields of the run, and the stop they tell of. The run's totals stay where they are: the turns state the same tokens, and
/// nothing may count twice.
fn header(name: &'static str, mut object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) -> Option<Event<'static>> {
    let mut stop = None;
    let mut event =
        Event { session: object.take_name("runId"), ..Event::new(Body::Fact { name: name.into(), content: None }) };
    if let Some(mut metadata) = object.open("metadata") {
        event.time = take_moment(&mut metadata, "startedAt");
        stop = end(&metadata, at);
        object.close("metadata", metadata);
    }
    event.extra = Extra::of(&INFO, object.into_extra());
    at.emit_one(event, out);
    stop
}

/// How the run ended. What the header says of it stays there as well, so that it returns: the event only repeats it where others
/// look for it. A run that still goes on has not stopped, unless with an error.
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
    let spoken = said(role.as_deref(), !calls.is_empty(), &mut object);
    if matches!(spoken, Spoken::Unknown) && calls.is_empty() {
        return at.emit_unknown(&INFO, role.as_deref(), object, out);
    }
    let base = Event {
        id: object.take_number("id").map(|number| number.to_string().into()),
        time: take_moment(&mut object, "timestamp"),
        ..Event::default()
    };
    let input = object.take_number("tokensIn");
    let output = object.take_number("tokensOut");
    let usage = Usage { input, output, ..Usage::default() }.stated();

    let mut events = Vec::with_capacity(1 + calls.len() * 2);
    let mut rest = object.into_extra();
    let mut calls = calls.into_iter();
    match spoken {
        Spoken::Body(body) => {
            if matches!(body, Body::Message { role: Role::Unknown, .. }) {
                at.note(NoteKind::UnknownType, format!("unknown role {:?}", role.unwrap_or_default()), out);
            }
            events.push(Event { body, ..base.clone() });
        }
        Spoken::Nothing | Spoken::Unknown => {
            // Nothing was said, so the first call stands for the turn: what is left of the call goes where the calls stood.
            if let Some(call) = calls.next() {
                place_calls(&mut rest, call.rest);
                events.push(Event { body: call.asked, ..base.clone() });
                events.push(own(call.answered, ExtraFields::default(), &base));
            }
        }
    }
    if let Some(first) = events.first_mut() {
        first.usage = usage;
        first.extra = Extra::of(&INFO, rest);
    }
    for call in calls {
        events.push(own(call.asked, call.rest, &base));
        events.push(own(call.answered, ExtraFields::default(), &base));
    }
    at.emit(&mut events, out);
}

fn own<'a>(body: Body<'a>, rest: ExtraFields<'a>, base: &Event<'a>) -> Event<'a> {
    Event { body, extra: Extra::of(&INFO, rest), ..base.clone() }
}

fn place_calls<'a>(rest: &mut ExtraFields<'a>, call: ExtraFields<'a>) {
    if let Some((_, held)) = rest.0.iter_mut().rev().find(|(key, _)| key == "toolCalls") {
        *held = Held::Object(call);
    }
}

/// What a turn says, calls apart.
enum Spoken<'a> {
    Body(Body<'a>),
    /// An assistant that only called tools.
    Nothing,
    /// There is no content, or nobody whose content it is.
    Unknown,
}

fn said<'a>(role: Option<&str>, calls: bool, object: &mut Object<'a>) -> Spoken<'a> {
    let Some(role) = role else { return Spoken::Unknown };
    if calls && role == "assistant" && object.peek("content").is_none_or(|content| content == "\"\"") {
        return Spoken::Nothing;
    }
    let Some(content) = object.take_text("content").map(Content::Text) else { return Spoken::Unknown };
    Spoken::Body(match role {
        "tool_result" => Body::ToolResult { call: None, name: None, content, error: None },
        "system" => Body::Message { role: Role::System, content },
        "user" => Body::Message { role: Role::User, content },
        "assistant" => Body::Message { role: Role::Assistant, content },
        _ => Body::Message { role: Role::Unknown, content },
    })
}

/// One element of `toolCalls`: the call, what came back, and what is left of it.
struct Call<'a> {
    asked: Body<'a>,
    answered: Body<'a>,
    rest: ExtraFields<'a>,
}

/// The calls of a turn. A list with an element that is no call stays as it is, whole.
fn take_calls<'a>(object: &mut Object<'a>, at: &At<'_>, out: &mut dyn Sink) -> Vec<Call<'a>> {
    let Some(elements) = object.peek("toolCalls").and_then(crate::json::items) else { return Vec::new() };
    let calls: Option<Vec<Call<'a>>> = elements.into_iter().map(call).collect();
    match calls {
        Some(calls) if !calls.is_empty() => {
            object.take("toolCalls");
            calls
        }
        Some(_) => Vec::new(),
        None => {
            at.note(NoteKind::Ambiguous, "a tool call without a name; the list of calls is left as it is", out);
            Vec::new()
        }
    }
}

fn call(raw: &str) -> Option<Call<'_>> {
    let mut object = Object::parse(raw)?;
    let name = object.take_str("name")?;
    let id = object.take_name("id");
    // Go writes a map without anything as null. It is left where it stands, so that it returns and a missing input does not
    // become one.
    let input = match object.peek("input") {
        None | Some("null") => "{}",
        Some(_) => object.take("input").unwrap_or("{}"),
    };
    let (content, error) = answer(&mut object);
    let answered = Body::ToolResult { call: id.clone(), name: None, content, error };
    // How deep a call stands in the document, and what Go escapes, is no part of what it was given.
    let asked = Body::ToolCall { call: id, name, input: Input::Json(spell::unescaped(compact(input))) };
    Some(Call { asked, answered, rest: object.into_extra() })
}

/// What a call brought: its output, its error, or both as two pieces. devflow records a call when it is over and leaves an empty
/// output out: a call that brought nothing was answered with nothing.
fn answer<'a>(object: &mut Object<'a>) -> (Content<'a>, Option<bool>) {
    let mut stated = |key: &str| {
        let says = object.peek(key).and_then(Text::from_json).is_some_and(|text| !text.is_empty());
        if says { object.take_text(key) } else { None }
    };
    match (stated("output"), stated("error")) {
        (Some(output), Some(error)) => (Content::Pieces(vec![Piece::text(output), Piece::text(error)]), Some(true)),
        (None, Some(error)) => (Content::Text(error), Some(true)),
        (Some(output), None) => (Content::Text(output), None),
        (None, None) => (Content::text(""), None),
    }
}

/// Takes a moment, unless it is the one that Go writes for none.
fn take_moment<'a>(object: &mut Object<'a>, key: &str) -> Option<Time<'a>> {
    if object.peek_str(key).as_deref() == Some(ZERO_TIME) { None } else { object.take_iso(key) }
}
