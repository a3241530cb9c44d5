//! Blocks of lines: what the formats of plain text have in common. Lines are gathered into blocks here, with their places in the
//! source; what begins a block and what a block says is the format's. Nothing here knows a marker.

use std::borrow::Cow;

use crate::frame::{RECORD_SIZE_MAX, Record};
use crate::model::{Body, Event, ExtraFields, Held, Note, NoteKind, Span};
use crate::read::{Reader, Sink};
use crate::text::Text;

/// Lines that belong together.
#[derive(Debug)]
pub struct Block<K> {
    /// What the format takes it for.
    pub kind: K,
    text: Vec<u8>,
    lines: Vec<Line>,
    /// The lines between it and the block before, each with its newline.
    before: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    at: Span,
    from: usize,
    to: usize,
}

/// What a line is to the block that is open.
#[derive(Debug)]
pub enum Step<K> {
    /// It belongs to the block, or to none where none is open.
    GoesOn,
    /// It stands between blocks.
    Passes,
    /// It is the last line of the block.
    Ends,
    /// It stands after the end of the block, and between blocks.
    Follows,
    /// It is the first line of a block.
    Begins(K),
    /// It shows that a block began at this line of the open one.
    BeganAt(usize, K),
}

/// What a block was ended by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The next block, or its own last line.
    Next,
    /// The end of the source.
    Source,
}

/// Reads the blocks of one format.
pub trait Blockwise: Send {
    /// What a block can be.
    type Kind: Send;

    /// What this line, given without a carriage return at its end, is to the block that is open.
    fn step(&mut self, open: Option<&mut Block<Self::Kind>>, line: &[u8]) -> Step<Self::Kind>;

    /// Gives the events of a block.
    fn block(&mut self, block: &Block<Self::Kind>, ending: Ending, out: &mut dyn Sink);

    /// Gives what only the end of the source makes known.
    fn finish(&mut self, _out: &mut dyn Sink) {}

    /// Where something stands that was read and is only given by [`Blockwise::finish`].
    fn held(&self) -> Option<u64> {
        None
    }
}

/// Makes a [`Reader`] of something that reads blocks.
#[derive(Debug)]
pub struct Blocks<R: Blockwise> {
    reader: R,
    open: Option<Block<R::Kind>>,
    /// The lines since the last block.
    passed: Vec<u8>,
}

/// How much of what stands between two blocks is kept: it is blank, and nobody writes more.
const BETWEEN_SIZE_MAX: usize = 1024;

impl<K> Block<K> {
    fn new(kind: K) -> Block<K> {
        Block { kind, text: Vec::new(), lines: Vec::new(), before: Vec::new() }
    }

    /// How many lines it has.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether it has no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// One of its lines, without a carriage return at its end.
    pub fn line(&self, index: usize) -> &[u8] {
        without_return(self.lines.get(index).and_then(|line| self.text.get(line.from..line.to)).unwrap_or_default())
    }

    /// What stands between it and the block before, as far as that is kept.
    pub fn before(&self) -> &[u8] {
        &self.before
    }

    /// All its lines.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.line(index))
    }

    /// The lines from `first` up to `end`, joined as they stand.
    pub fn text(&self, first: usize, end: usize) -> &[u8] {
        if first >= end {
            return &[];
        }
        let from = self.lines.get(first).map(|line| line.from);
        let to = self.lines.get(end - 1).map(|line| line.to);
        from.zip(to).and_then(|(from, to)| self.text.get(from..to)).unwrap_or_default()
    }

    /// Where the lines from `first` up to `end` stand.
    pub fn span(&self, first: usize, end: usize) -> Span {
        let first = self.lines.get(first).map(|line| line.at).unwrap_or_default();
        let last = self.lines.get(end.saturating_sub(1)).map_or(first, |line| line.at);
        first.to(last)
    }

    /// The lines without the empty ones at both ends. A line of spaces is text.
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
        self.lines.push(Line { at, from, to: self.text.len() });
    }

    /// Cuts the lines from `index` on off, as a block of their own.
    fn split(&mut self, index: usize, kind: K) -> Block<K> {
        let mut tail = Block::new(kind);
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

impl<R: Blockwise> Blocks<R> {
    /// A reader at the beginning of a source.
    pub fn new(reader: R) -> Blocks<R> {
        Blocks { reader, open: None, passed: Vec::new() }
    }

    fn pass(&mut self, line: &[u8]) {
        if self.passed.len() + line.len() < BETWEEN_SIZE_MAX {
            self.passed.extend_from_slice(line);
            self.passed.push(b'\n');
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

impl<R: Blockwise> Reader for Blocks<R>
where
    R::Kind: Send,
{
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink) {
        let line = record.bytes;
        if let Some(open) = &self.open {
            if open.next_offset() != record.at.offset {
                // A line over the limit stood here, and was given as such: what follows it is another block.
                self.end(Ending::Next, out);
            } else if open.text.len() + line.len() > RECORD_SIZE_MAX {
                let said = "a block over the limit; what follows is read as another one";
                out.note(Note::new(NoteKind::Oversize, open.span(0, open.len()), said));
                self.end(Ending::Next, out);
            }
        }
        match self.reader.step(self.open.as_mut(), without_return(line)) {
            Step::GoesOn => {
                if let Some(open) = &mut self.open {
                    open.push(record.at, line);
                }
            }
            Step::Passes => self.pass(line),
            Step::Follows => {
                self.end(Ending::Next, out);
                self.pass(line);
            }
            Step::Ends => {
                if let Some(open) = &mut self.open {
                    open.push(record.at, line);
                }
                self.end(Ending::Next, out);
            }
            Step::Begins(kind) => {
                self.end(Ending::Next, out);
                let mut block = Block { before: std::mem::take(&mut self.passed), ..Block::new(kind) };
                block.push(record.at, line);
                self.open = Some(block);
            }
            Step::BeganAt(index, kind) => {
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

/// A line without a carriage return at its end.
pub fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The text of a block without the carriage returns that end its lines, where all lines but the last end in one. Where only some
/// do, they are text.
pub fn without_returns(block: &[u8]) -> Cow<'_, [u8]> {
    let last = memchr::memrchr(b'\n', block);
    let spelling = match last {
        None => block.ends_with(b"\r"),
        Some(last) => {
            block.get(..last).unwrap_or_default().split(|byte| *byte == b'\n').all(|line| line.ends_with(b"\r"))
        }
    };
    if !spelling {
        return Cow::Borrowed(block);
    }
    let lines: Vec<&[u8]> = block.split(|byte| *byte == b'\n').map(without_return).collect();
    Cow::Owned(lines.join(&b'\n'))
}

/// Whether a line says nothing.
pub fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// Emits text that stands where only blocks should stand: an unread event, and a note.
pub fn emit_stray<K>(block: &Block<K>, out: &mut dyn Sink) {
    let (first, end) = block.trimmed();
    if first == end {
        return;
    }
    let at = block.span(first, end);
    out.note(Note::new(NoteKind::NotARecord, at, "text that belongs to no block"));
    out.event(&Event { at: Some(at), ..Event::unread(Text::from_bytes(block.text(first, end))) });
}

/// The key under which a block keeps its own spelling.
pub const SPELLED: &str = "spelled";

/// What is left of a block that the format's writer would spell otherwise: its bytes. Nothing for all others.
pub fn leftover(source: &[u8], usual: Option<&[u8]>) -> ExtraFields<'static> {
    if usual == Some(source) {
        return ExtraFields::default();
    }
    let spelled = Text::from_bytes(source).to_json();
    ExtraFields(vec![(Cow::Borrowed(SPELLED), Held::Raw(Cow::Owned(spelled)))])
}

/// The key under which a block keeps how the line after it is spelled, where that is not quite empty.
pub const BLANK: &str = "blank";

/// Keeps that the blank line at the end of a block, which belongs to no text, has a carriage return.
pub fn leave_blank<K>(block: &Block<K>, end: usize, left: &mut ExtraFields<'static>) {
    if end < block.len() && !block.text(end, block.len()).is_empty() {
        left.0.push((Cow::Borrowed(BLANK), Held::Raw(Cow::Borrowed("\"\\r\""))));
    }
}

/// The blank line that stood after a block.
pub fn blank(origin: &str, event: &Event<'_>) -> &'static str {
    if event.extra.get(origin).is_some_and(|own| own.has(BLANK)) { "\r" } else { "" }
}

/// The spelling that a block had in its source, if it still says what these events say. An edited event loses it.
pub fn spelled(origin: &str, events: &[Event<'_>], read: impl Fn(&[u8]) -> Vec<Event<'static>>) -> Option<Vec<u8>> {
    let raw = events.first()?.extra.get(origin)?.raw(SPELLED)?;
    let bytes = Text::from_json(raw)?.bytes().into_owned();
    let bodies = |events: &[Event<'_>]| -> Vec<Body<'static>> {
        events.iter().map(|event| event.clone().into_owned().body).collect()
    };
    (bodies(&read(&bytes)) == bodies(events)).then_some(bytes)
}
