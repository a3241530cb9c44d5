//! Reads Leslie's transcripts. The format escapes nothing, so a text may look like a marker; a line is a marker only where
//! Leslie would write one, after a blank line.

use std::borrow::Cow;

use super::{CLOSES_QUERY, HEADER_END, INFO, KEYS, OPENS_QUERY, STOP_REASON, THREAD_ID, TIME_RANGE, write};
use crate::formats::blocks::{
    BlockReader, Ending, LineBlock, LineRole, emit_stray, is_blank, keep_blank, spelling_extra, without_return,
    without_returns,
};
use crate::model::{Body, Content, Event, Extra, ExtraFields, Fact, Held, Input, Note, NoteKind, Role, Span};
use crate::read::Sink;
use crate::text::{Str, Text};
use crate::time::Time;

/// Reads one file.
#[derive(Debug, Default)]
pub struct LeslieReader {
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

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeslieBlockKind {
    /// The lines up to the rule.
    Header,
    /// A question between its tags, where no line is a marker.
    Query,
    /// A marker and its text.
    Entry,
    /// Text without a marker before it.
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

/// A line of the header: its key and its value.
pub fn field(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let (key, rest) = line.split_at(colon);
    let key = std::str::from_utf8(key).ok().filter(|key| !key.is_empty() && key.trim() == *key)?;
    let value = rest.get(1..).unwrap_or_default();
    Some((key, value.strip_prefix(b" ").unwrap_or(value)))
}

impl BlockReader for LeslieReader {
    type Kind = LeslieBlockKind;

    fn line_role(&mut self, open: Option<&mut LineBlock<LeslieBlockKind>>, line: &[u8]) -> LineRole<LeslieBlockKind> {
        let is_marker = marker(line).is_some();
        let Some(open) = open else {
            let first = self.begun == Begun::No;
            return match line {
                _ if is_blank(line) => LineRole::Between,
                _ if is_marker => self.begin(LeslieBlockKind::Entry),
                _ if first && field(line).is_some_and(|(key, _)| KEYS.contains(&key)) => {
                    self.begin(LeslieBlockKind::Header)
                }
                _ => self.begin(LeslieBlockKind::Stray),
            };
        };
        let last = open.line(open.len() - 1);
        match open.kind {
            LeslieBlockKind::Header if line == HEADER_END.as_bytes() => LineRole::Ends,
            LeslieBlockKind::Header if is_marker => LineRole::Begins(LeslieBlockKind::Entry),
            LeslieBlockKind::Header if is_blank(line) || field(line).is_some() => LineRole::Continues,
            LeslieBlockKind::Header => LineRole::Begins(LeslieBlockKind::Stray),
            LeslieBlockKind::Stray if is_marker => LineRole::Begins(LeslieBlockKind::Entry),
            LeslieBlockKind::Query if line == CLOSES_QUERY.as_bytes() => {
                open.kind = LeslieBlockKind::Entry;
                LineRole::Continues
            }
            LeslieBlockKind::Entry if is_marker && last.is_empty() => LineRole::Begins(LeslieBlockKind::Entry),
            LeslieBlockKind::Entry if line == OPENS_QUERY.as_bytes() && open.len() == 1 && last == b"user:" => {
                open.kind = LeslieBlockKind::Query;
                LineRole::Continues
            }
            LeslieBlockKind::Stray | LeslieBlockKind::Query | LeslieBlockKind::Entry => LineRole::Continues,
        }
    }

    fn block(&mut self, block: &LineBlock<LeslieBlockKind>, ending: Ending, out: &mut dyn Sink) {
        match block.kind {
            LeslieBlockKind::Header => self.header(block, out),
            LeslieBlockKind::Stray => emit_stray(block, out),
            LeslieBlockKind::Query | LeslieBlockKind::Entry => self.entry(block, ending, out),
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

impl LeslieReader {
    fn begin(&mut self, kind: LeslieBlockKind) -> LineRole<LeslieBlockKind> {
        self.begun = Begun::Yes;
        LineRole::Begins(kind)
    }

    /// Emits the header as one fact. Its values stay as they are spelled: a count is not computed again.
    fn header(&mut self, block: &LineBlock<LeslieBlockKind>, out: &mut dyn Sink) {
        let mut event = Event::new(Body::Fact { fact: Fact::Session, content: None });
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

    /// Reads the time range: the start is the time of the header; the end has no field.
    fn range(&mut self, range: &str, event: &mut Event<'_>) -> Held<'static> {
        let Some((start, end)) = range.split_once(" ~ ") else { return raw(range.as_bytes()) };
        let Some(time) = Time::iso(Cow::Borrowed(start)) else { return raw(range.as_bytes()) };
        event.time = Some(time.into_owned());
        self.ended = Time::iso(Cow::Borrowed(end)).map(Time::into_owned);
        let start = (Cow::Borrowed("start"), Held::Hole);
        Held::Object(ExtraFields(vec![start, (Cow::Borrowed("end"), raw(end.as_bytes()))]))
    }

    fn entry(&mut self, block: &LineBlock<LeslieBlockKind>, ending: Ending, out: &mut dyn Sink) {
        let separated = ending == Ending::Next && block.len() > 1 && block.line(block.len() - 1).is_empty();
        let end = if separated { block.len() - 1 } else { block.len() };
        let (at, source) = (block.span(0, end), block.text(0, end));
        let Some(body) = body(source) else { return emit_stray(block, out) };
        note_ambiguities(block, end, &body, out);
        let mut event = Event { at: Some(at), ..Event::new(body) };
        // Even without extra fields the event names its format: Leslie's own entries are never cut.
        let mut extra = spelling_extra(source, write::entry_bytes(&event).as_deref());
        keep_blank(block, end, &mut extra);
        event.extra = Extra::of(&INFO, extra);
        out.event(&event);
    }
}

fn raw(value: &[u8]) -> Held<'static> {
    Held::Raw(Cow::Owned(Text::from_bytes(value).to_json()))
}

/// The body of an entry.
pub fn body(source: &[u8]) -> Option<Body<'static>> {
    let source = without_returns(source);
    let source = source.as_ref();
    let end = memchr::memchr(b'\n', source).unwrap_or(source.len());
    let (first, rest) = source.split_at(end);
    let rest = rest.get(1..).unwrap_or_default();
    let text = |bytes: &[u8]| Text::from_bytes(bytes).into_owned();
    let content = |bytes: &[u8]| Content::Text(text(bytes));
    let name = |bytes: &[u8]| -> Str<'static> { Cow::Owned(String::from_utf8_lossy(bytes).into_owned()) };
    Some(match marker(without_return(first))? {
        Marker::User => Body::Message { role: Role::User, content: content(query(rest)) },
        Marker::Assistant => Body::Message { role: Role::Assistant, content: content(rest) },
        Marker::Call(tool) => Body::ToolCall { call: None, name: name(tool), input: Input::from_text(text(rest)) },
        Marker::Result(tool) => {
            Body::ToolResult { call: None, name: Some(name(tool)), content: content(rest), error: None }
        }
        Marker::Error => Body::Failure { name: None, content: Some(content(rest)) },
    })
}

/// The question between its tags. If text follows the closing tag, the tag itself is part of the text.
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

/// Notes the visible ambiguities of an entry.
fn note_ambiguities(block: &LineBlock<LeslieBlockKind>, end: usize, body: &Body<'_>, out: &mut dyn Sink) {
    let mut note = |kind, index, text: &str| out.note(Note::new(kind, block.span(index, index + 1), text));
    if matches!(body, Body::Message { role: Role::User, .. }) {
        let closing = (0..end).rev().find(|index| block.line(*index) == CLOSES_QUERY.as_bytes());
        let follows = closing.and_then(|closing| (closing + 1..end).find(|index| !is_blank(block.line(*index))));
        match (block.kind, follows) {
            (LeslieBlockKind::Query, _) => note(NoteKind::Torn, 1, "the question is not closed"),
            (_, Some(index)) => {
                note(NoteKind::Ambiguous, index, "text after the end of a question; read as part of it");
            }
            (_, None) => {}
        }
        return;
    }
    for index in (1..end).filter(|index| marker(block.line(*index)).is_some()) {
        note(NoteKind::Ambiguous, index, "looks like a marker without a blank line before it; read as text");
    }
}
