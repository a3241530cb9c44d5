//! JSON Lines: the common part of all formats with one JSON object per line. This file handles blank lines, byte order marks,
//! invalid UTF-8, torn records and several records on one line; a format sees only objects.

use std::borrow::Cow;

use memchr::memmem;

use super::{Reader, Sink};
use crate::carry;
use crate::frame::Record;
use crate::json::{Object, values};
use crate::model::{Body, Event, Extra, FormatInfo, Note, NoteKind, Span};
use crate::text::{Raw, Text};

/// Reads one object at a time.
pub trait Objects: Send {
    /// Emits the events of one object through `at`, which knows the position of the object.
    fn object(&mut self, object: Object<'_>, at: &At<'_>, out: &mut dyn Sink);

    /// Whether the reader can skip the line without parsing it, because it contains nothing that the caller wants.
    fn skips(&self, _line: &[u8]) -> bool {
        false
    }

    /// The path of objects in each record that the reader opens, if it reads no other objects and the caller wants no notes.
    fn opens(&self) -> Option<&'static [&'static str]> {
        None
    }
}

/// The position of an object, and its carried value.
#[derive(Debug)]
pub struct At<'a> {
    /// The bytes of the object.
    pub span: Span,
    carried: Option<Raw<'a>>,
}

impl<'a> At<'a> {
    /// Emits all events of one record: sets their part numbers and position.
    pub fn emit(&self, events: &mut [Event<'_>], out: &mut dyn Sink) {
        let of = u32::try_from(events.len()).unwrap_or(u32::MAX);
        for (index, event) in events.iter_mut().enumerate() {
            event.at = Some(self.span);
            event.part.index = u32::try_from(index).unwrap_or(u32::MAX);
            event.part.of = of;
            if index == 0 {
                event.carried = self.carried.as_ref().map(|raw| Cow::Owned(raw.clone().into_owned()));
            }
            out.event(event);
        }
    }

    /// Emits the only event of a record.
    pub fn emit_one(&self, mut event: Event<'_>, out: &mut dyn Sink) {
        self.emit(std::slice::from_mut(&mut event), out);
    }

    /// Emits an event whose part number is already set.
    pub fn emit_as_is(&self, mut event: Event<'_>, out: &mut dyn Sink) {
        event.at = Some(self.span);
        event.carried = self.carried.as_ref().map(|raw| Cow::Owned(raw.clone().into_owned()));
        out.event(&event);
    }

    /// Emits a record of an unknown type: all its fields are extra, and a note reports the type.
    pub fn emit_unknown(
        &self,
        format: &'static FormatInfo,
        name: Option<&str>,
        object: Object<'_>,
        out: &mut dyn Sink,
    ) {
        self.note_unknown(name, out);
        let mut event = Event::new(Body::Other { name: name.map(Cow::Borrowed), bytes: None });
        event.extra = Extra::of(format, object.into_extra());
        self.emit_one(event, out);
    }

    /// Adds the note that the type of this record is unknown.
    pub fn note_unknown(&self, name: Option<&str>, out: &mut dyn Sink) {
        let message = match name {
            Some(name) => format!("unknown record type {name:?}"),
            None => "record without a type".to_owned(),
        };
        out.note(Note::new(NoteKind::UnknownType, self.span, message));
    }

    /// Adds a note about this record.
    pub fn note(&self, kind: NoteKind, text: impl Into<String>, out: &mut dyn Sink) {
        out.note(Note::new(kind, self.span, text));
    }
}

/// Turns an object reader into a [`Reader`].
#[derive(Debug)]
pub struct JsonLines<R>(pub R);

impl<R: Objects> Reader for JsonLines<R> {
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink) {
        if self.0.skips(record.bytes) {
            return;
        }
        let record = JsonRecord::new(&record);
        if let Some(path) = self.0.opens()
            && let Some((object, span)) = record.opened(path)
            && !object.has(carry::KEY)
        {
            let at = At { span, carried: None };
            return self.0.object(object, &at, out);
        }
        record.each(out, &mut |object, at, out| self.0.object(object, at, out));
    }
}

/// The JSON values of one record.
#[derive(Debug)]
pub struct JsonRecord<'a> {
    text: Cow<'a, str>,
    /// The bytes that `text` was decoded from.
    bytes: &'a [u8],
    /// The offsets in `text` where a six-character escape replaces one byte that JSON cannot contain.
    escaped_at: Vec<usize>,
    at: Span,
    terminated: bool,
    /// Whether the bytes are derived from the record, so that values in them have no position of their own.
    derived: bool,
}

/// How many bytes longer an escape is than the byte that it replaces.
const GROWTH: usize = 5;

impl<'a> JsonRecord<'a> {
    /// Decodes the bytes of a record: bytes that are not UTF-8 become escapes.
    pub fn new(record: &Record<'a>) -> JsonRecord<'a> {
        let (text, escaped_at) = match std::str::from_utf8(record.bytes) {
            Ok(text) => (Cow::Borrowed(text), Vec::new()),
            Err(_) => {
                let (text, escaped_at) = escape_invalid_utf8(record.bytes);
                (Cow::Owned(text), escaped_at)
            }
        };
        JsonRecord {
            text,
            bytes: record.bytes,
            escaped_at,
            at: record.at,
            terminated: record.terminated,
            derived: false,
        }
    }

    /// Reads `bytes` instead of a record that is valid JSON only within its document, such as a member or the prologue. All
    /// values in it get the position of the record. Check [`JsonRecord::is_one_object`] first: unreadable bytes must be the
    /// record's own.
    pub fn derived(record: &Record<'_>, bytes: &'a [u8]) -> JsonRecord<'a> {
        JsonRecord { derived: true, ..JsonRecord::new(&Record { bytes, ..*record }) }
    }

    /// Whether the record is exactly one object.
    pub fn is_one_object(&self) -> bool {
        Object::parse(&self.text).is_some()
    }

    /// Emits the whole record as one unread event.
    pub fn emit_unread(&self, what: &str, out: &mut dyn Sink) {
        let text = self.text.trim_matches(BLANK);
        if !text.is_empty() {
            let lead = self.text.len() - self.text.trim_start_matches(BLANK).len();
            self.unread(lead, text.len(), what, out);
        }
    }

    /// The only object of the record, with the objects along `path` opened, and its position.
    fn opened(&self, path: &[&str]) -> Option<(Object<'_>, Span)> {
        let (offset, whole) = trimmed(&self.text);
        Some((Object::parse_open(whole, path)?, self.span(offset, whole.len())))
    }

    /// Passes every object of the record to `read`; any other value becomes an unread event and a note.
    pub fn each(&self, out: &mut dyn Sink, read: &mut dyn FnMut(Object<'_>, &At<'_>, &mut dyn Sink)) {
        let text = self.text.as_ref();
        if is_blank(text) {
            return;
        }
        self.note_encoding(out);
        if let Some((offset, length, object)) = only(text) {
            return read_object(object, self.span(offset, length), out, read);
        }
        let (found, good) = all_values(text);
        if !is_blank(text.get(good..).unwrap_or_default())
            && let Some((escaped, escaped_at)) = escape_controls(text, &self.escaped_at)
            && let (found, good) = all_values(&escaped)
            && good == escaped.trim_end_matches(BLANK).len()
        {
            let message = "raw control characters in a string are read as escapes";
            out.note(Note::new(NoteKind::ControlCharacter, self.at, message));
            let escaped = JsonRecord { text: Cow::Borrowed(&escaped), escaped_at, ..*self };
            return escaped.read_values(&found, good, out, read);
        }
        self.read_values(&found, good, out, read);
    }

    fn read_values(
        &self,
        found: &[(usize, &str)],
        good: usize,
        out: &mut dyn Sink,
        read: &mut dyn FnMut(Object<'_>, &At<'_>, &mut dyn Sink),
    ) {
        let several = found.len() > 1;
        for (offset, value) in found {
            let Some(object) = Object::parse(value) else {
                self.unread(*offset, value.len(), "a JSON value that is not an object", out);
                continue;
            };
            let span = self.span(*offset, value.len());
            if several && *offset > 0 {
                out.note(Note::new(NoteKind::Welded, span, "another record on the same line"));
            }
            read_object(object, span, out, read);
        }
        let rest = self.text.get(good..).unwrap_or_default();
        if !is_blank(rest) {
            let lead = rest.len() - rest.trim_start_matches(BLANK).len();
            self.unread(good + lead, rest.trim_matches(BLANK).len(), "not JSON", out);
        }
    }

    /// The offset and length of the bytes that this part of the text was decoded from.
    fn source(&self, offset: usize, length: usize) -> (usize, usize) {
        let before = |offset: usize| offset - GROWTH * self.escaped_at.partition_point(|escape| *escape < offset);
        (before(offset), before(offset + length) - before(offset))
    }

    fn span(&self, offset: usize, length: usize) -> Span {
        if self.derived {
            return self.at;
        }
        let (offset, length) = self.source(offset, length);
        Span { offset: self.at.offset + offset as u64, length: length as u64, line: self.at.line }
    }

    fn note_encoding(&self, out: &mut dyn Sink) {
        if !self.escaped_at.is_empty() {
            out.note(Note::new(NoteKind::BadUtf8, self.at, "bytes that are not UTF-8 are kept as \\udc80 to \\udcff"));
        } else if may_have_surrogates(self.text.as_bytes()) && Text::Json(Cow::Borrowed(&self.text)).is_damaged() {
            out.note(Note::new(NoteKind::LoneSurrogate, self.at, "half of a surrogate pair, kept as written"));
        }
    }

    fn unread(&self, offset: usize, length: usize, what: &str, out: &mut dyn Sink) {
        let span = self.span(offset, length);
        let (from, length) = self.source(offset, length);
        let bytes = Text::from_bytes(self.bytes.get(from..from + length).unwrap_or_default());
        let (kind, message) = match self.terminated {
            true => (NoteKind::NotARecord, what.to_owned()),
            false => (NoteKind::Torn, format!("the last record is incomplete: {what}")),
        };
        out.note(Note::new(kind, span, message));
        let mut event = Event::unread(bytes);
        event.at = Some(span);
        out.event(&event);
    }
}

/// Characters around a record that have no meaning.
const BLANK: [char; 5] = [' ', '\t', '\r', '\n', '\u{feff}'];

fn is_blank(text: &str) -> bool {
    text.bytes().next().is_none_or(|byte| byte != b'{') && text.trim_matches(BLANK).is_empty()
}

fn may_have_surrogates(bytes: &[u8]) -> bool {
    memmem::find_iter(bytes, b"\\u").any(|at| matches!(bytes.get(at + 2), Some(b'd' | b'D')))
}

/// The only object on a line, with its offset and length: the usual case, parsed once.
fn only(text: &str) -> Option<(usize, usize, Object<'_>)> {
    let (offset, whole) = trimmed(text);
    Some((offset, whole.len(), Object::parse(whole)?))
}

/// The line without surrounding blanks, and the offset where it begins.
fn trimmed(text: &str) -> (usize, &str) {
    let start = text.trim_start_matches([' ', '\t', '\r', '\n']);
    (text.len() - start.len(), start.trim_end_matches(BLANK))
}

fn read_object(
    mut object: Object<'_>,
    span: Span,
    out: &mut dyn Sink,
    read: &mut dyn FnMut(Object<'_>, &At<'_>, &mut dyn Sink),
) {
    if let Some(key) = object.duplicate() {
        let message = format!("the key {key:?} occurs twice; the last one counts");
        out.note(Note::new(NoteKind::DuplicateKey, span, message));
    }
    let carried = object.peek(carry::KEY).and_then(|raw| {
        if let Some(version) = carry::later_version(raw) {
            let message = format!("embeds its source in version {version}, which this version of steno cannot restore");
            out.note(Note::new(NoteKind::UnknownType, span, message));
        }
        carry::take(&mut object)
    });
    read(object, &At { span, carried: carried.map(Cow::Borrowed) }, out);
}

/// The values of a text with their offsets, and the offset where valid JSON ends. Blanks that JSON does not allow may separate
/// values.
fn all_values(text: &str) -> (Vec<(usize, &str)>, usize) {
    let (mut found, mut good) = (Vec::new(), 0);
    loop {
        let rest = text.get(good..).unwrap_or_default();
        let lead = rest.len() - rest.trim_start_matches(BLANK).len();
        let (more, length) = values(rest.get(lead..).unwrap_or_default());
        if more.is_empty() {
            return (found, good);
        }
        found.extend(more.into_iter().map(|(offset, value)| (good + lead + offset, value)));
        good += lead + length;
    }
}

/// The text with each byte that is not UTF-8 replaced by an escape, and the offsets of the escapes.
fn escape_invalid_utf8(bytes: &[u8]) -> (String, Vec<usize>) {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(bytes.len() + 16);
    let mut escaped_at = Vec::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            escaped_at.push(out.len());
            let _ = write!(out, "\\udc{byte:02x}");
        }
    }
    (out, escaped_at)
}

/// The text with raw control characters inside strings escaped too, and the offsets of all escapes, given those of the earlier
/// escapes; `None` if the text has no control characters.
fn escape_controls(text: &str, earlier: &[usize]) -> Option<(String, Vec<usize>)> {
    use std::fmt::Write as _;
    if !text.bytes().any(|byte| byte < 0x20) {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let (mut escaped_at, mut earlier) = (Vec::new(), earlier.iter().peekable());
    let (mut in_string, mut escaped) = (false, false);
    for (at, char) in text.char_indices() {
        if earlier.next_if_eq(&&at).is_some() {
            escaped_at.push(out.len());
        }
        match char {
            '\0'..='\x1f' if in_string => {
                escaped_at.push(out.len());
                let _ = write!(out, "\\u{:04x}", u32::from(char));
                escaped = false;
                continue;
            }
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
        out.push(char);
    }
    Some((out, escaped_at))
}
