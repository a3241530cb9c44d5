//! Blocks of lines, which the plain-text formats share. This module groups lines into blocks and records their positions in the
//! source; each format decides where a block begins and what it means. No marker of a format appears here.

use std::borrow::Cow;

use crate::frame::{RECORD_SIZE_MAX, Record};
use crate::model::{Body, Event, ExtraFields, Held, Note, NoteKind, Span};
use crate::read::{Reader, Sink};
use crate::text::Text;

/// Consecutive lines that form one unit of a format.
#[derive(Debug)]
pub struct LineBlock<K> {
    /// The kind that the format gave it.
    pub kind: K,
    text: Vec<u8>,
    lines: Vec<LineSpan>,
    /// The lines between it and the previous block, each with its newline.
    before: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct LineSpan {
    at: Span,
    from: usize,
    to: usize,
}

/// How a line relates to the open block.
#[derive(Debug)]
pub enum LineRole<K> {
    /// The line belongs to the open block; it is ignored if none is open.
    Continues,
    /// The line is between blocks.
    Between,
    /// The line is the last one of the block.
    Ends,
    /// The line is after the end of the block, between blocks.
    AfterEnd,
    /// The line is the first one of a block.
    Begins(K),
    /// The line shows that a new block began at this line of the open one.
    BeganAt(usize, K),
}

/// What ended a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The next block, or its own last line.
    Next,
    /// The end of the source.
    Source,
}

/// Reads the blocks of one format.
pub trait BlockReader: Send {
    /// The kinds of blocks.
    type Kind: Send;

    /// Decides how a line, given without its carriage return, relates to the open block.
    fn line_role(&mut self, open: Option<&mut LineBlock<Self::Kind>>, line: &[u8]) -> LineRole<Self::Kind>;

    /// Emits the events of a block.
    fn block(&mut self, block: &LineBlock<Self::Kind>, ending: Ending, out: &mut dyn Sink);

    /// Emits the events that only the end of the source makes known.
    fn finish(&mut self, _out: &mut dyn Sink) {}

    /// The position of a line that was read and that only [`BlockReader::finish`] emits.
    fn held(&self) -> Option<u64> {
        None
    }
}

/// Turns a [`BlockReader`] into a [`Reader`].
#[derive(Debug)]
pub struct Blocks<R: BlockReader> {
    reader: R,
    open: Option<LineBlock<R::Kind>>,
    /// The lines since the last block.
    between: Vec<u8>,
}

/// How many bytes between two blocks are kept. They are blank, and no program writes more.
const BETWEEN_SIZE_MAX: usize = 1024;

impl<K> LineBlock<K> {
    fn new(kind: K) -> LineBlock<K> {
        LineBlock { kind, text: Vec::new(), lines: Vec::new(), before: Vec::new() }
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether it has no lines.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// One line, without its carriage return.
    pub fn line(&self, index: usize) -> &[u8] {
        without_return(self.lines.get(index).and_then(|line| self.text.get(line.from..line.to)).unwrap_or_default())
    }

    /// The bytes between it and the previous block, as far as they are kept.
    pub fn before(&self) -> &[u8] {
        &self.before
    }

    /// All its lines.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.line(index))
    }

    /// The lines from `first` up to `end`, joined as in the source.
    pub fn text(&self, first: usize, end: usize) -> &[u8] {
        if first >= end {
            return &[];
        }
        let from = self.lines.get(first).map(|line| line.from);
        let to = self.lines.get(end - 1).map(|line| line.to);
        from.zip(to).and_then(|(from, to)| self.text.get(from..to)).unwrap_or_default()
    }

    /// The position of the lines from `first` up to `end`.
    pub fn span(&self, first: usize, end: usize) -> Span {
        let first = self.lines.get(first).map(|line| line.at).unwrap_or_default();
        let last = self.lines.get(end.saturating_sub(1)).map_or(first, |line| line.at);
        first.to(last)
    }

    /// The range of lines without the empty ones at both ends. A line of spaces counts as text.
    pub fn trimmed(&self) -> (usize, usize) {
        let first = self.lines().position(|line| !line.is_empty());
        let last = (0..self.len()).rev().find(|index| !self.line(*index).is_empty());
        first.zip(last).map_or((0, 0), |(first, last)| (first, last + 1))
    }

    fn push(&mut self, at: Span, line: &[u8]) {
        if !self.lines.is_empty() {
            self.text.push(b'\n');
        }
        let from = self.text.len();
        self.text.extend_from_slice(line);
        self.lines.push(LineSpan { at, from, to: self.text.len() });
    }

    /// Moves the lines from `index` on into a new block.
    fn split(&mut self, index: usize, kind: K) -> LineBlock<K> {
        let mut tail = LineBlock::new(kind);
        if index == 0 {
            tail.before = std::mem::take(&mut self.before);
        }
        for line in self.lines.get(index..).unwrap_or_default() {
            tail.push(line.at, self.text.get(line.from..line.to).unwrap_or_default());
        }
        self.lines.truncate(index);
        self.text.truncate(self.lines.last().map_or(0, |line| line.to));
        tail
    }

    fn next_offset(&self) -> u64 {
        self.lines.last().map_or(0, |line| line.at.end() + 1)
    }
}

impl<R: BlockReader> Blocks<R> {
    /// A reader at the beginning of a source.
    pub fn new(reader: R) -> Blocks<R> {
        Blocks { reader, open: None, between: Vec::new() }
    }

    fn keep_between(&mut self, line: &[u8]) {
        if self.between.len() + line.len() < BETWEEN_SIZE_MAX {
            self.between.extend_from_slice(line);
            self.between.push(b'\n');
        }
    }

    fn end(&mut self, ending: Ending, out: &mut dyn Sink) {
        let Some(block) = self.open.take().filter(|block| !block.is_empty()) else { return };
        if std::str::from_utf8(&block.text).is_err() {
            out.note(Note::new(NoteKind::BadUtf8, block.span(0, block.len()), "bytes that are not UTF-8"));
        }
        self.reader.block(&block, ending, out);
    }
}

impl<R: BlockReader> Reader for Blocks<R>
where
    R::Kind: Send,
{
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink) {
        let line = record.bytes;
        if let Some(open) = &self.open {
            if open.next_offset() != record.at.offset {
                // A line over the size limit came before this one and was emitted by itself: this line starts another block.
                self.end(Ending::Next, out);
            } else if open.text.len() + line.len() > RECORD_SIZE_MAX {
                let text = "a block over the size limit; the rest is read as another block";
                out.note(Note::new(NoteKind::Oversize, open.span(0, open.len()), text));
                self.end(Ending::Next, out);
            }
        }
        match self.reader.line_role(self.open.as_mut(), without_return(line)) {
            LineRole::Continues => {
                if let Some(open) = &mut self.open {
                    open.push(record.at, line);
                }
            }
            LineRole::Between => self.keep_between(line),
            LineRole::AfterEnd => {
                self.end(Ending::Next, out);
                self.keep_between(line);
            }
            LineRole::Ends => {
                if let Some(open) = &mut self.open {
                    open.push(record.at, line);
                }
                self.end(Ending::Next, out);
            }
            LineRole::Begins(kind) => {
                self.end(Ending::Next, out);
                let mut block = LineBlock { before: std::mem::take(&mut self.between), ..LineBlock::new(kind) };
                block.push(record.at, line);
                self.open = Some(block);
            }
            LineRole::BeganAt(index, kind) => {
                let mut tail = self.open.as_mut().map(|open| open.split(index, kind));
                self.end(Ending::Next, out);
                if let Some(block) = &mut tail {
                    block.push(record.at, line);
                }
                self.open = tail;
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Sink) {
        self.end(Ending::Source, out);
        self.reader.finish(out);
    }

    fn open(&self) -> Option<u64> {
        let open = self.open.as_ref().and_then(|open| open.lines.first()).map(|line| line.at.offset);
        match (open, self.reader.held()) {
            (Some(open), Some(held)) => Some(open.min(held)),
            (open, held) => open.or(held),
        }
    }
}

/// A line without its carriage return.
pub fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The text of a block without the carriage returns at its line ends, if all lines but the last have one. If only some have
/// one, the carriage returns are text.
pub fn without_returns(block: &[u8]) -> Cow<'_, [u8]> {
    let last = memchr::memrchr(b'\n', block);
    let every_line_has_one = match last {
        None => block.ends_with(b"\r"),
        Some(last) => {
            block.get(..last).unwrap_or_default().split(|byte| *byte == b'\n').all(|line| line.ends_with(b"\r"))
        }
    };
    if !every_line_has_one {
        return Cow::Borrowed(block);
    }
    let lines: Vec<&[u8]> = block.split(|byte| *byte == b'\n').map(without_return).collect();
    Cow::Owned(lines.join(&b'\n'))
}

/// Whether a line is empty or only has spaces.
pub fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// Emits text outside any block: an unread event, and a note.
pub fn emit_stray<K>(block: &LineBlock<K>, out: &mut dyn Sink) {
    let (first, end) = block.trimmed();
    if first == end {
        return;
    }
    let at = block.span(first, end);
    out.note(Note::new(NoteKind::NotARecord, at, "text outside any block"));
    out.event(&Event { at: Some(at), ..Event::unread(Text::from_bytes(block.text(first, end))) });
}

/// The key of a block's original bytes.
pub const SPELLED: &str = "spelled";

/// The original bytes of a block, as an extra field, if the writer would write other bytes; nothing otherwise.
pub fn spelling_extra(source: &[u8], usual: Option<&[u8]>) -> ExtraFields<'static> {
    if usual == Some(source) {
        return ExtraFields::default();
    }
    let original_spelling = Text::from_bytes(source).to_json();
    ExtraFields(vec![(Cow::Borrowed(SPELLED), Held::Raw(Cow::Owned(original_spelling)))])
}

/// The key of the blank line after a block, if that line is not empty.
pub const BLANK: &str = "blank";

/// Records that the blank line at the end of a block, which belongs to no text, has a carriage return.
pub fn keep_blank<K>(block: &LineBlock<K>, end: usize, extra: &mut ExtraFields<'static>) {
    if end < block.len() && !block.text(end, block.len()).is_empty() {
        extra.0.push((Cow::Borrowed(BLANK), Held::Raw(Cow::Borrowed("\"\\r\""))));
    }
}

/// The blank line after a block.
pub fn blank(origin: &str, event: &Event<'_>) -> &'static str {
    if event.extra.get(origin).is_some_and(|own| own.has(BLANK)) { "\r" } else { "" }
}

/// The original bytes of a block, if they still read as these events. An edited event loses them.
pub fn original_spelling(
    origin: &str,
    events: &[Event<'_>],
    read: impl Fn(&[u8]) -> Vec<Event<'static>>,
) -> Option<Vec<u8>> {
    let raw = events.first()?.extra.get(origin)?.raw(SPELLED)?;
    let bytes = Text::from_json(raw)?.bytes().into_owned();
    let bodies = |events: &[Event<'_>]| -> Vec<Body<'static>> {
        events.iter().map(|event| event.clone().into_owned().body).collect()
    };
    (bodies(&read(&bytes)) == bodies(events)).then_some(bytes)
}
