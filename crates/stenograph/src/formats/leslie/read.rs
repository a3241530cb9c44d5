//! Reads Leslie's transcripts. Nothing in them is escaped, so a text may look like a marker; a marker is only taken for one where
//! Leslie would write one, after a blank line.

use std::borrow::Cow;

use super::{CLOSES_QUERY, INFO, KEYS, OPENS_QUERY, RULE, STOP_REASON, THREAD_ID, TIME_RANGE, write};
use crate::formats::blocks::{
    Block, Blockwise, Ending, Step, emit_stray, is_blank, leave_blank, leftover, without_return, without_returns,
};
use crate::model::{Body, Content, Event, Extra, ExtraFields, Fact, Held, Input, Note, NoteKind, Role, Span};
use crate::read::Sink;
use crate::text::{Str, Text};
use crate::time::Time;

/// Reads one file.
#[derive(Debug, Default)]
pub struct Transcript {
    begun: Begun,
    stop: Option<(Span, String)>,
    ended: Option<Time<'static>>,
}

#[derive(Debug, Default, PartialEq)]
enum Begun {
    #[default]
    No,
    Yes,
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The lines up to the rule.
    Header,
    /// Somebody's question, between its tags: there no line is a marker.
    Query,
    /// What a marker begins.
    Entry,
    /// Text that no marker stands before.
    Stray,
}

/// The first line of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker<'a> {
    User,
    Assistant,
    Call(&'a [u8]),
    Result(&'a [u8]),
    Error,
}

fn marker(line: &[u8]) -> Option<Marker<'_>> {
    let named = |prefix: &[u8]| line.strip_prefix(prefix).filter(|name| !is_blank(name));
    match line {
        b"user:" => Some(Marker::User),
        b"assistant:" | b"A:" => Some(Marker::Assistant),
        b"[Error]" => Some(Marker::Error),
        _ => named(b"[Tool call] ").map(Marker::Call).or_else(|| named(b"[Tool result] ").map(Marker::Result)),
    }
}

/// A line of the header: its key, and what it says.
pub fn field(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let (key, rest) = line.split_at(colon);
    let key = std::str::from_utf8(key).ok().filter(|key| !key.is_empty() && key.trim() == *key)?;
    let value = rest.get(1..).unwrap_or_default();
    Some((key, value.strip_prefix(b" ").unwrap_or(value)))
}

impl Blockwise for Transcript {
    type Kind = Kind;

    fn step(&mut self, open: Option<&mut Block<Kind>>, line: &[u8]) -> Step<Kind> {
        let marked = marker(line).is_some();
        let Some(open) = open else {
            let first = self.begun == Begun::No;
            return match line {
                _ if is_blank(line) => Step::Passes,
                _ if marked => self.begin(Kind::Entry),
                _ if first && field(line).is_some_and(|(key, _)| KEYS.contains(&key)) => self.begin(Kind::Header),
                _ => self.begin(Kind::Stray),
            };
        };
        let last = open.line(open.len() - 1);
        match open.kind {
            Kind::Header if line == RULE.as_bytes() => Step::Ends,
            Kind::Header if marked => Step::Begins(Kind::Entry),
            Kind::Header if is_blank(line) || field(line).is_some() => Step::GoesOn,
            Kind::Header => Step::Begins(Kind::Stray),
            Kind::Stray if marked => Step::Begins(Kind::Entry),
            Kind::Query if line == CLOSES_QUERY.as_bytes() => {
                open.kind = Kind::Entry;
                Step::GoesOn
            }
            Kind::Entry if marked && last.is_empty() => Step::Begins(Kind::Entry),
            Kind::Entry if line == OPENS_QUERY.as_bytes() && open.len() == 1 && last == b"user:" => {
                open.kind = Kind::Query;
                Step::GoesOn
            }
            Kind::Stray | Kind::Query | Kind::Entry => Step::GoesOn,
        }
    }

    fn block(&mut self, block: &Block<Kind>, ending: Ending, out: &mut dyn Sink) {
        match block.kind {
            Kind::Header => self.header(block, out),
            Kind::Stray => emit_stray(block, out),
            Kind::Query | Kind::Entry => self.entry(block, ending, out),
        }
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        let Some((at, reason)) = self.stop.take() else { return };
        let body = Body::Stop { reason: Some(Cow::Owned(reason)), success: None, content: None };
        let event = Event { at: Some(at), time: self.ended.take(), ..Event::new(body) };
        out.event(&event);
    }

    fn held(&self) -> Option<u64> {
        self.stop.as_ref().map(|(at, _)| at.offset)
    }
}

impl Transcript {
    fn begin(&mut self, kind: Kind) -> Step<Kind> {
        self.begun = Begun::Yes;
        Step::Begins(kind)
    }

    /// The header is one fact. What it states stays as it is spelled: a count is not counted again.
    fn header(&mut self, block: &Block<Kind>, out: &mut dyn Sink) {
        let mut event = Event::new(Body::Fact { name: Fact::Session, content: None });
        let mut rest = Vec::new();
        for index in 0..block.len() {
            let Some((key, value)) = field(block.line(index)) else { continue };
            let text = std::str::from_utf8(value).ok().filter(|text| !text.is_empty());
            let held = match (key, text) {
                (THREAD_ID, Some(id)) if event.session.is_none() => {
                    event.session = Some(Cow::Owned(id.to_owned()));
                    Held::Hole
                }
                (TIME_RANGE, Some(range)) if event.time.is_none() => self.range(range, &mut event),
                (STOP_REASON, Some(reason)) if self.stop.is_none() => {
                    self.stop = Some((block.span(index, index + 1), reason.to_owned()));
                    raw(value)
                }
                _ => raw(value),
            };
            rest.push((Cow::Owned(key.to_owned()), held));
        }
        event.at = Some(block.span(0, block.trimmed().1));
        event.extra = Extra::of(&INFO, ExtraFields(rest));
        out.event(&event);
    }

    /// The beginning is the moment of the header; the end has no field.
    fn range(&mut self, range: &str, event: &mut Event<'_>) -> Held<'static> {
        let Some((start, end)) = range.split_once(" ~ ") else { return raw(range.as_bytes()) };
        let Some(time) = Time::iso(Cow::Borrowed(start)) else { return raw(range.as_bytes()) };
        event.time = Some(time.into_owned());
        self.ended = Time::iso(Cow::Borrowed(end)).map(Time::into_owned);
        let start = (Cow::Borrowed("start"), Held::Hole);
        Held::Object(ExtraFields(vec![start, (Cow::Borrowed("end"), raw(end.as_bytes()))]))
    }

    fn entry(&mut self, block: &Block<Kind>, ending: Ending, out: &mut dyn Sink) {
        let separated = ending == Ending::Next && block.len() > 1 && block.line(block.len() - 1).is_empty();
        let end = if separated { block.len() - 1 } else { block.len() };
        let (at, source) = (block.span(0, end), block.text(0, end));
        let Some(body) = body(source) else { return emit_stray(block, out) };
        doubts(block, end, &body, out);
        let mut event = Event { at: Some(at), ..Event::new(body) };
        // Even where nothing is left, it is said whose entry this is: what is Leslie's own is never cut.
        let mut left = leftover(source, write::usual(&event).as_deref());
        leave_blank(block, end, &mut left);
        event.extra = Extra::of(&INFO, left);
        out.event(&event);
    }
}

fn raw(value: &[u8]) -> Held<'static> {
    Held::Raw(Cow::Owned(Text::from_bytes(value).to_json()))
}

/// What an entry says.
pub fn body(source: &[u8]) -> Option<Body<'static>> {
    let source = without_returns(source);
    let source = source.as_ref();
    let end = memchr::memchr(b'\n', source).unwrap_or(source.len());
    let (first, rest) = source.split_at(end);
    let rest = rest.get(1..).unwrap_or_default();
    let text = |bytes: &[u8]| Text::from_bytes(bytes).into_owned();
    let said = |bytes: &[u8]| Content::Text(text(bytes));
    let name = |bytes: &[u8]| -> Str<'static> { Cow::Owned(String::from_utf8_lossy(bytes).into_owned()) };
    Some(match marker(without_return(first))? {
        Marker::User => Body::Message { role: Role::User, content: said(query(rest)) },
        Marker::Assistant => Body::Message { role: Role::Assistant, content: said(rest) },
        Marker::Call(tool) => Body::ToolCall { call: None, name: name(tool), input: Input::from_text(text(rest)) },
        Marker::Result(tool) => {
            Body::ToolResult { call: None, name: Some(name(tool)), content: said(rest), error: None }
        }
        Marker::Error => Body::Failure { name: None, content: Some(said(rest)) },
    })
}

/// The question between its tags. Where text follows the closing tag, the tag itself is part of the text.
fn query(rest: &[u8]) -> &[u8] {
    let Some(inside) = rest.strip_prefix(b"<user_query>").and_then(|rest| rest.strip_prefix(b"\n")) else {
        return rest;
    };
    let lines = inside.trim_ascii_end();
    match lines.strip_suffix(CLOSES_QUERY.as_bytes()) {
        Some([]) => &[],
        Some(text) => text.strip_suffix(b"\n").unwrap_or(inside),
        None => inside,
    }
}

/// Notes where the source leaves open what it means, as far as that can be seen.
fn doubts(block: &Block<Kind>, end: usize, body: &Body<'_>, out: &mut dyn Sink) {
    let mut note = |kind, index, text: &str| out.note(Note::new(kind, block.span(index, index + 1), text));
    if matches!(body, Body::Message { role: Role::User, .. }) {
        let closes = (0..end).rev().find(|index| block.line(*index) == CLOSES_QUERY.as_bytes());
        let follows = closes.and_then(|closes| (closes + 1..end).find(|index| !is_blank(block.line(*index))));
        match (block.kind, follows) {
            (Kind::Query, _) => note(NoteKind::Torn, 1, "the question is not closed"),
            (_, Some(index)) => {
                note(NoteKind::Ambiguous, index, "text after the end of a question; read as part of it");
            }
            (_, None) => {}
        }
        return;
    }
    for index in (1..end).filter(|index| marker(block.line(*index)).is_some()) {
        note(NoteKind::Ambiguous, index, "looks like a marker, but no blank line stands before it; read as text");
    }
}
