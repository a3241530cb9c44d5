//! The reader and the writer of a format whose records are described by tables: JSON lines, or a document with a list of
//! records. The writer writes back what the reader read; records of other formats need templates.

use std::borrow::Cow;

use super::fields::peek_at;
use super::{PartMap, RecordMap};
use crate::format::{Format, Head, Sniff, Wanted};
use crate::formats::document::{DocumentFrame, DocumentPart, closed};
use crate::formats::record_templates::{RecordTemplates, TemplateWriter};
use crate::frame::{Framing, Items, Record, RecordPlace, is_prologue};
use crate::json::{Object, indent, word};
use crate::model::{Body, Event, ExtraFields, FormatInfo, Note, NoteKind, Outline, Span};
use crate::read::{At, JsonRecord, Reader, Sink};
use crate::write::{OutputPiece, Writer, WriterOutput};

/// The part of a source that a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappedPlace {
    /// The fields before the list of a document; nothing if the document is an array. Its first event is the fact `session`.
    Head,
    /// A line, or an item of the list.
    Record,
    /// The fields after the list. Its first event is the fact `session_end`.
    Tail,
}

/// Looks up the word at a path of a record.
pub type Words<'w> = dyn Fn(&str) -> Option<String> + 'w;

/// How sessions of other formats are written.
#[derive(Clone, Copy, Debug)]
pub enum Foreign {
    /// With templates of the records.
    Templates(&'static RecordTemplates),
    /// With a writer of its own, which passes own records on to a [`MappedWriter`].
    Writer(fn(MappedFormat, &Outline) -> Box<dyn Writer>),
}

/// A format whose records are described by tables.
#[derive(Clone, Copy, Debug)]
pub struct MappedFormat {
    pub info: &'static FormatInfo,
    /// How sure the format is that this is the beginning of one of its sources.
    pub sniff: fn(&Head<'_>) -> Sniff,
    /// The table of a record; the head and the tail of a document always have one. It looks only at words that no table takes, so that reading and writing find the same table.
    pub map_of: fn(MappedPlace, &Words<'_>) -> Option<&'static RecordMap>,
    /// The path of the word that names the type of a record.
    pub kind: &'static str,
    /// How sessions of other formats are written; `None` if they are not.
    pub foreign: Option<Foreign>,
}

impl Format for MappedFormat {
    fn info(&self) -> &'static FormatInfo {
        self.info
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        (self.sniff)(head)
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(MappedReader::new(*self))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        let own = MappedWriter::new(*self, outline);
        match self.foreign {
            Some(Foreign::Writer(foreign)) => foreign(*self, outline),
            Some(Foreign::Templates(templates)) => {
                let templates = TemplateWriter::new(templates, outline, self.info.name);
                Box::new(MappedWriter { templates: Some(templates), ..own })
            }
            None => Box::new(own),
        }
    }
}

impl MappedFormat {
    fn read(&self, place: MappedPlace, framed: RecordPlace, object: Object<'_>, at: &At<'_>, out: &mut dyn Sink) {
        let words = |path: &str| word(&peek_at(&object, path)?).map(Cow::into_owned);
        let unknown = |object: Object<'_>, out: &mut dyn Sink| {
            let kind = peek_at(&object, self.kind).and_then(|raw| word(&raw).map(Cow::into_owned));
            at.emit_unknown(self.info, kind.as_deref(), object, out);
        };
        let Some(map) = (self.map_of)(place, &words) else { return unknown(object, out) };
        let unread = match map.parts {
            [PartMap::Unread(path)] => words(path),
            _ => None,
        };
        match map.read(self.info, framed, object) {
            Ok(mut events) => {
                match unread {
                    Some(reason) => at.note(NoteKind::NotARecord, reason, out),
                    None => {
                        for event in &events {
                            if let Body::Other { name, .. } = &event.body {
                                at.note_unknown(name.as_deref(), out);
                            }
                        }
                    }
                }
                if let Some(path) = events.first().and_then(|first| map.unread_conversations(self.info.name, first)) {
                    let text = format!(
                        "the conversations of sub-agents in {path:?} have an unknown form; they are kept unparsed"
                    );
                    at.note(NoteKind::UnknownType, text, out);
                }
                at.emit(&mut events, out);
            }
            Err(object) => unknown(object, out),
        }
    }

    /// A record that was read from this format.
    fn write(&self, place: MappedPlace, events: &[Event<'_>], extra: &ExtraFields<'_>) -> Option<String> {
        let words = |path: &str| extra.word_at(path).map(Cow::into_owned);
        let map = (self.map_of)(place, &words).unwrap_or(&RecordMap::NONE);
        map.write(self.info.name, events)
    }

    fn items(&self) -> Option<Items> {
        match self.info.framing {
            Framing::Items(items) | Framing::LinesOrItems(items) => Some(items),
            Framing::Lines => None,
        }
    }
}

/// Reads a source of a mapped format. It remembers only whether a document was closed.
#[derive(Debug)]
struct MappedReader {
    format: MappedFormat,
    /// The last record of a document that is not closed yet.
    open: Option<Span>,
}

impl MappedReader {
    /// A reader at the beginning of a source.
    fn new(format: MappedFormat) -> MappedReader {
        MappedReader { format, open: None }
    }

    /// Reads the fields before or after the list. `spelled` are the bytes that make an object of them.
    fn read_fields(&self, place: MappedPlace, record: &Record<'_>, spelled: &[&[u8]], out: &mut dyn Sink) {
        let found = spelled.iter().map(|bytes| JsonRecord::derived(record, bytes)).find(JsonRecord::is_one_object);
        match found {
            Some(object) => object.each(out, &mut |object, at, out| {
                self.format.read(place, record.place, object, at, out);
            }),
            None => JsonRecord::new(record).emit_unread("this part of the document is not JSON", out),
        }
    }
}

impl Reader for MappedReader {
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink) {
        self.open = (record.terminated && record.place != RecordPlace::Line).then_some(record.at);
        let text = record.bytes.trim_ascii();
        match (record.place, self.format.items()) {
            (RecordPlace::Prologue, Some(Items::Elements)) if text == b"[" => {
                self.read_fields(MappedPlace::Head, &record, &[b"{}"], out);
            }
            (RecordPlace::Prologue, Some(Items::Array(_))) => {
                if JsonRecord::derived(&record, record.bytes).is_one_object() {
                    // A whole document, which has no list.
                    self.open = None;
                }
                let closed = [record.bytes, b"]}"].concat();
                self.read_fields(MappedPlace::Head, &record, &[record.bytes, &closed], out);
            }
            (RecordPlace::Epilogue, Some(Items::Array(_))) => {
                self.open = None;
                let after = text.strip_prefix(b"]").unwrap_or(text).trim_ascii();
                if after != b"}" {
                    let opened = [b"{", after.strip_prefix(b",").unwrap_or(after)].concat();
                    self.read_fields(MappedPlace::Tail, &record, &[&opened], out);
                }
            }
            (RecordPlace::Epilogue, _) if text == b"]" => self.open = None,
            (RecordPlace::Prologue | RecordPlace::Epilogue, _) => {
                self.open = None;
                JsonRecord::new(&record).emit_unread("not part of the document", out);
            }
            (RecordPlace::Item | RecordPlace::Line, _) => {
                let mut each = |object: Object<'_>, at: &At<'_>, out: &mut dyn Sink| {
                    self.format.read(MappedPlace::Record, record.place, object, at, out);
                };
                JsonRecord::new(&record).each(out, &mut each);
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        if let Some(at) = self.open {
            out.note(Note::new(NoteKind::Torn, at, "the document is incomplete: it ends after this record"));
        }
    }
}

/// Writes a source of a mapped format back.
#[derive(Debug)]
pub struct MappedWriter {
    format: MappedFormat,
    /// Whether the session comes from this format.
    is_own: bool,
    pub document: Option<DocumentFrame>,
    /// Whether the source consists of lines, which its first record decides.
    has_lines: bool,
    /// The records of other formats; `None` if no templates make them.
    templates: Option<TemplateWriter>,
}

impl MappedWriter {
    /// Writes records that templates made: lines, or items of an open document.
    fn place_made(&mut self, mut made: WriterOutput, out: &mut WriterOutput) {
        for piece in made.take() {
            let OutputPiece::Record(record) = piece else { continue };
            match self.document.as_mut().filter(|document| document.part == DocumentPart::Items) {
                Some(document) => document.item(indent(&String::from_utf8_lossy(&record), 2), out),
                None => out.line(record),
            }
        }
    }

    /// Writes the records that templates hold back.
    fn release(&mut self, out: &mut WriterOutput) {
        let mut made = WriterOutput::default();
        self.templates.iter_mut().for_each(|templates| templates.release(&mut made));
        self.place_made(made, out);
    }

    /// Whether a record is a line of a format that has lines or documents: no head of a document came before it.
    fn is_line(&self, first: &Event<'_>, extra: Option<&ExtraFields<'_>>, unread: Option<&[u8]>) -> bool {
        let (Framing::LinesOrItems(items), Some(document)) = (self.format.info.framing, &self.document) else {
            return false;
        };
        let opens = match (unread, items) {
            (Some(bytes), _) => is_prologue(items, bytes),
            (None, Items::Array(list)) => {
                place(first) == MappedPlace::Head && extra.is_some_and(|extra| extra.raw(list) == Some("[]"))
            }
            (None, Items::Members | Items::Elements) => place(first) == MappedPlace::Head,
        };
        self.has_lines || document.part == DocumentPart::Start && !opens && place(first) != MappedPlace::Tail
    }

    /// A writer for records of this format in a session of any format.
    pub fn of_records(format: MappedFormat) -> MappedWriter {
        let outline = Outline::new(format.info.name);
        MappedWriter::new(format, &outline)
    }

    /// A writer for a session.
    fn new(format: MappedFormat, outline: &Outline) -> MappedWriter {
        let document = format.items().map(|items| match items {
            Items::Array(_) => DocumentFrame::new(items, "\n    ", "\n  "),
            Items::Members | Items::Elements => DocumentFrame::new(items, "\n  ", "\n"),
        });
        let is_own = outline.origin == format.info.name;
        MappedWriter { format, is_own, document, has_lines: false, templates: None }
    }
}

impl Writer for MappedWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let Some(first) = events.first() else { return };
        let extra = first.extra.get(self.format.info.name);
        let unread = match &first.body {
            Body::Other { bytes: Some(bytes), .. } => Some(bytes.bytes().into_owned()),
            _ => None,
        };
        let returns = self.is_own || extra.is_some() && self.templates.is_some();
        match &mut self.templates {
            Some(templates) if extra.is_none() && unread.is_none() => {
                let mut made = WriterOutput::default();
                templates.record(events, &mut made);
                return self.place_made(made, out);
            }
            Some(templates) if returns => {
                let mut made = WriterOutput::default();
                if extra.is_some() {
                    templates.follow(events, &mut made);
                } else {
                    templates.release(&mut made);
                }
                self.place_made(made, out);
            }
            _ => {}
        }
        if !returns {
            return;
        }
        let format = self.format;
        let json = |place| extra.and_then(|extra| format.write(place, events, extra));
        let is_line = self.is_line(first, extra, unread.as_deref());
        self.has_lines |= is_line;
        let Some(document) = self.document.as_mut().filter(|_| !is_line) else {
            return unread
                .or_else(|| json(MappedPlace::Record).map(String::into_bytes))
                .into_iter()
                .for_each(|line| out.line(line));
        };
        let is_array = self.format.items() == Some(Items::Elements);
        if let Some(bytes) = unread {
            return document.unread(bytes, None, out);
        }
        match (place(first), self.format.items()) {
            (MappedPlace::Head, Some(Items::Array(list))) => {
                if let (Some(extra), Some(json)) = (extra, json(MappedPlace::Head)) {
                    write_head(document, list, extra, &json, out);
                }
            }
            (MappedPlace::Tail, Some(Items::Array(_))) => {
                if let Some(json) = json(MappedPlace::Tail) {
                    document.end(out);
                    out.record(closed(&indent(&json, 0)));
                }
            }
            (MappedPlace::Head, Some(Items::Elements)) => {
                out.record("[");
                document.part = DocumentPart::Items;
            }
            _ => {
                if let Some(json) = json(MappedPlace::Record) {
                    document.item(indent(&json, if is_array { 1 } else { 2 }), out);
                }
            }
        }
    }

    fn held(&self, out: &mut WriterOutput) {
        let is_document = self.document.as_ref().is_some_and(|document| document.part != DocumentPart::Start);
        if let Some(templates) = self.templates.as_ref().filter(|_| !is_document) {
            templates.clone().release(out);
        }
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        self.release(out);
        if let Some(document) = self.document.as_mut().filter(|document| document.part == DocumentPart::Items) {
            document.end(out);
            out.glue(if self.format.items() == Some(Items::Elements) { "]" } else { "]\n}" });
        }
    }
}

/// The place of the record that begins with this event.
fn place(first: &Event<'_>) -> MappedPlace {
    match &first.body {
        Body::Fact { fact, .. } if fact == "session" => MappedPlace::Head,
        Body::Fact { fact, .. } if fact == "session_end" => MappedPlace::Tail,
        _ => MappedPlace::Record,
    }
}

/// Writes the fields before the list, or a whole document without a list.
fn write_head(document: &mut DocumentFrame, list: &str, extra: &ExtraFields<'_>, json: &str, out: &mut WriterOutput) {
    let indented = indent(json, 0);
    // Of two such keys the last one is the list. It is the last key of the head.
    let open =
        indented.strip_suffix('}').map(str::trim_end).and_then(|head| head.strip_suffix(&format!("\"{list}\": []")));
    match open.filter(|_| extra.raw(list) == Some("[]")) {
        Some(open) => {
            out.record(format!("{open}\"{list}\": ["));
            document.part = DocumentPart::Items;
        }
        None => {
            out.record(indented);
            document.part = DocumentPart::Ended;
        }
    }
}
