//! Framing: bytes to records. Only this file handles positions, line numbers, oversize records and an incomplete last line.
//! It knows nothing about formats and must not interpret a record.

mod scan;

use memchr::memchr;

use crate::model::Span;
use scan::{Phase, Scan, Step};

/// How a source is split into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One record per line.
    Lines,
    /// One JSON document with a record for each of its items.
    Items(Items),
    /// Lines, unless the first line is a single brace that opens a document with such items, or the source is an array of them.
    LinesOrItems(Items),
}

impl Framing {
    /// Whether a source can be lines, so that its records can be read as they arrive.
    pub fn allows_lines(self) -> bool {
        match self {
            Framing::Lines | Framing::LinesOrItems(_) => true,
            Framing::Items(_) => false,
        }
    }
}

/// The location of the items in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// The elements of the array under this key of the document.
    Array(&'static str),
    /// The members of the document itself.
    Members,
    /// The elements of a document that is an array.
    Elements,
}

/// The part of its source that a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPlace {
    /// A line.
    Line,
    /// Everything before the first item of a document, including the opening bracket.
    Prologue,
    /// An item of a document.
    Item,
    /// Everything after the last item, from the closing bracket on.
    Epilogue,
}

/// One framed record of a source.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its position.
    pub at: Span,
    /// Its bytes, without the line terminator.
    pub bytes: &'a [u8],
    /// The part of the source that it is.
    pub place: RecordPlace,
    /// Whether the source continues after it: `false` for a last line without a newline and for a truncated document.
    pub terminated: bool,
}

/// A result of framing.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// A record.
    Record(Record<'a>),
    /// A record over the size limit: only its position is known.
    Oversize(Span),
}

/// The largest record kept in memory. The largest in real files is 1.6 MB.
pub const RECORD_SIZE_MAX: usize = 32 << 20;

/// Splits a source that arrives in chunks into records.
#[derive(Debug)]
pub struct Framer {
    mode: Mode,
    size_max: usize,
    /// The bytes of the current record.
    buffer: Vec<u8>,
    /// How many bytes of the current record were discarded because it is too large.
    discarded: u64,
    /// The start of the current record.
    start: Span,
    /// The offset after the last byte fed.
    offset: u64,
    line: u64,
}

#[derive(Debug)]
enum Mode {
    /// Either lines or a document. The framer buffers everything until it can decide; it has scanned `seen` bytes.
    Undecided {
        scan: Scan,
        seen: usize,
    },
    Lines,
    Document(Scan),
}

/// The shape that [`Framing::LinesOrItems`] resolves to.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Lines,
    Document,
}

impl Framer {
    /// A framer for a source with this framing.
    pub fn new(framing: Framing, size_max: usize) -> Framer {
        let mode = match framing {
            Framing::Lines => Mode::Lines,
            Framing::Items(items) => Mode::Document(Scan::new(items)),
            Framing::LinesOrItems(items) => Mode::Undecided { scan: Scan::new(items), seen: 0 },
        };
        let start = Span { offset: 0, length: 0, line: 1 };
        Framer { mode, size_max, buffer: Vec::new(), discarded: 0, start, offset: 0, line: 1 }
    }

    /// A framer for the rest of a source of lines, beginning at the start of a line. It recognizes no documents: a document
    /// begins at the start of its source. If the number of the line is unknown, so are the numbers of the following lines.
    pub fn from_line(size_max: usize, at: Span) -> Framer {
        let start = Span { length: 0, ..at };
        Framer {
            mode: Mode::Lines,
            size_max,
            buffer: Vec::new(),
            discarded: 0,
            start,
            offset: at.offset,
            line: at.line,
        }
    }

    /// The offset before which more input changes no record. It is 0 for a document until its end, because the end of a
    /// document can change the meaning of all of it.
    pub fn stable_until(&self) -> u64 {
        match self.mode {
            Mode::Lines => self.start.offset,
            Mode::Undecided { .. } | Mode::Document(_) => 0,
        }
    }

    /// Takes the next chunk of the source and emits the records that it completes.
    pub fn feed(&mut self, chunk: &[u8], each: &mut dyn FnMut(Frame<'_>)) {
        match self.mode {
            Mode::Undecided { .. } => {
                self.buffer.extend_from_slice(chunk);
                let over = (self.buffer.len() > self.size_max).then_some(Shape::Lines);
                if let Some(shape) = self.shape().or(over) {
                    self.decide(shape, each);
                }
            }
            Mode::Document(_) => self.feed_document(chunk, each),
            Mode::Lines => self.feed_lines(chunk, each),
        }
    }

    /// The shape of the source, if the buffered bytes decide it. A source that opens with a single brace is a document once its
    /// items begin, and lines if the brace closes first.
    fn shape(&mut self) -> Option<Shape> {
        let Mode::Undecided { scan, seen } = &mut self.mode else { return None };
        // Ignore bytes over the limit, so that the result does not depend on the sizes of the chunks.
        let window = self.buffer.get(..self.size_max).unwrap_or(&self.buffer);
        if *seen == 0 && !opens_document(scan.items, window)? {
            return Some(Shape::Lines);
        }
        for byte in window.get(*seen..).unwrap_or_default() {
            scan.step(*byte);
            *seen += 1;
            match (scan.phase, scan.depth, *byte) {
                (Phase::Prologue, 0, b'}' | b']') => return Some(Shape::Lines),
                (Phase::Prologue, ..) => {}
                (Phase::Between | Phase::Item | Phase::Epilogue, ..) => return Some(Shape::Document),
            }
        }
        None
    }

    fn decide(&mut self, shape: Shape, each: &mut dyn FnMut(Frame<'_>)) {
        let Mode::Undecided { scan, .. } = &self.mode else { return };
        self.mode = match shape {
            Shape::Lines => Mode::Lines,
            Shape::Document => Mode::Document(Scan::new(scan.items)),
        };
        let buffered = std::mem::take(&mut self.buffer);
        self.feed(&buffered, each);
    }

    /// Emits the last record at the end of the source.
    pub fn end(&mut self, each: &mut dyn FnMut(Frame<'_>)) {
        self.decide(Shape::Lines, each);
        let place = match &self.mode {
            Mode::Lines | Mode::Undecided { .. } => RecordPlace::Line,
            Mode::Document(scan) => scan.place(),
        };
        let whole = matches!(&self.mode, Mode::Document(Scan { phase: Phase::Epilogue, depth: 0, .. }));
        if !self.buffer.is_empty() || self.discarded > 0 {
            self.emit(place, whole, each);
        }
    }

    fn feed_lines(&mut self, chunk: &[u8], each: &mut dyn FnMut(Frame<'_>)) {
        let mut rest = chunk;
        while let Some(length) = memchr(b'\n', rest) {
            let (line, tail) = rest.split_at(length);
            if self.buffer.is_empty() && self.discarded == 0 && line.len() <= self.size_max {
                // The usual case: the whole line is in the chunk, so nothing is copied.
                let (skipped, bytes) = self.without_bom(line);
                let at = Span { offset: self.start.offset + skipped, length: bytes.len() as u64, line: self.line };
                each(Frame::Record(Record { at, bytes, place: RecordPlace::Line, terminated: true }));
            } else {
                self.push(line);
                self.emit(RecordPlace::Line, true, each);
            }
            rest = tail.get(1..).unwrap_or_default();
            self.offset += length as u64 + 1;
            if self.line != Span::LINE_UNKNOWN {
                self.line += 1;
            }
            self.start = Span { offset: self.offset, length: 0, line: self.line };
        }
        self.push(rest);
        self.offset += rest.len() as u64;
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.discarded > 0 || self.buffer.len() + bytes.len() > self.size_max {
            self.discarded += (self.buffer.len() + bytes.len()) as u64;
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn without_bom<'a>(&self, line: &'a [u8]) -> (u64, &'a [u8]) {
        match self.start.offset {
            0 => ((line.len() - after_boms(line).len()) as u64, after_boms(line)),
            _ => (0, line),
        }
    }

    /// Emits the buffered record.
    fn emit(&mut self, place: RecordPlace, terminated: bool, each: &mut dyn FnMut(Frame<'_>)) {
        if self.discarded > 0 {
            each(Frame::Oversize(Span { length: self.discarded, ..self.start }));
            self.discarded = 0;
        } else {
            let buffer = std::mem::take(&mut self.buffer);
            let (skipped, bytes) = self.without_bom(&buffer);
            // White space before the comma or bracket that ends an item is not part of the item.
            let bytes = if place == RecordPlace::Item { bytes.trim_ascii_end() } else { bytes };
            let at = Span { offset: self.start.offset + skipped, length: bytes.len() as u64, line: self.start.line };
            each(Frame::Record(Record { at, bytes, place, terminated }));
            self.buffer = buffer;
            self.buffer.clear();
        }
    }

    fn feed_document(&mut self, chunk: &[u8], each: &mut dyn FnMut(Frame<'_>)) {
        let mut from = 0;
        for (at, byte) in chunk.iter().enumerate() {
            let Mode::Document(scan) = &mut self.mode else { return };
            let step = scan.step(*byte);
            self.offset += 1;
            let piece = |from: usize, to: usize| chunk.get(from..to).unwrap_or_default();
            match step {
                Step::Continue => {}
                Step::Start => {
                    // White space and commas between items belong to no record.
                    from = at;
                    self.start = Span { offset: self.offset - 1, length: 0, line: self.line };
                }
                Step::EndHere(place) => {
                    self.push(piece(from, at + 1));
                    self.emit(place, true, each);
                    from = at + 1;
                    self.start = Span { offset: self.offset, length: 0, line: self.line };
                }
                Step::EndBefore(place, then) => {
                    self.push(piece(from, at));
                    self.emit(place, true, each);
                    from = if then == Phase::Epilogue { at } else { at + 1 };
                    self.start = Span { offset: self.offset - (at + 1 - from) as u64, length: 0, line: self.line };
                }
                Step::Between => from = at + 1,
            }
            if *byte == b'\n' {
                self.line += 1;
            }
        }
        self.push(chunk.get(from..).unwrap_or_default());
    }
}

/// Splits a stream into lines for a caller that needs their bytes whatever their size: a line over the limit arrives in pieces.
#[derive(Debug)]
pub struct LineSplitter {
    size_max: usize,
    /// The bytes of the current piece.
    buffer: Vec<u8>,
    /// The start of the current piece.
    start: Span,
    /// Whether the current piece begins its line.
    begins_line: bool,
}

/// A line, or a piece of a line over the size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePiece<'a> {
    /// Its position, without the newline.
    pub at: Span,
    /// Its bytes, including the newline if there is one.
    pub bytes: &'a [u8],
    /// Whether it is the first piece of its line.
    pub begins_line: bool,
    /// Whether its line continues in the next piece.
    pub is_cut: bool,
}

impl LinePiece<'_> {
    /// Its bytes without the newline.
    pub fn text(&self) -> &[u8] {
        self.bytes.strip_suffix(b"\n").unwrap_or(self.bytes)
    }
}

impl LineSplitter {
    /// A splitter whose pieces have at most `size_max` bytes besides the newline.
    pub fn new(size_max: usize) -> LineSplitter {
        let start = Span { offset: 0, length: 0, line: 1 };
        LineSplitter { size_max, buffer: Vec::new(), start, begins_line: true }
    }

    /// Takes the next chunk of the stream and emits the lines that it completes.
    pub fn feed(&mut self, chunk: &[u8], each: &mut dyn FnMut(LinePiece<'_>)) {
        let mut rest = chunk;
        while let Some(length) = memchr(b'\n', rest) {
            let (line, tail) = rest.split_at(length);
            self.push(line, each);
            self.buffer.push(b'\n');
            self.emit(false, each);
            rest = tail.get(1..).unwrap_or_default();
        }
        self.push(rest, each);
    }

    /// Emits the last line if it has no newline.
    pub fn end(&mut self, each: &mut dyn FnMut(LinePiece<'_>)) {
        if !self.buffer.is_empty() {
            self.emit(false, each);
        }
    }

    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(LinePiece<'_>)) {
        let mut rest = bytes;
        while self.buffer.len() + rest.len() > self.size_max {
            let (fitting, tail) = rest.split_at(self.size_max.saturating_sub(self.buffer.len()));
            self.buffer.extend_from_slice(fitting);
            self.emit(true, each);
            rest = tail;
        }
        self.buffer.extend_from_slice(rest);
    }

    fn emit(&mut self, is_cut: bool, each: &mut dyn FnMut(LinePiece<'_>)) {
        let mut bytes = std::mem::take(&mut self.buffer);
        let mut piece = LinePiece { at: self.start, bytes: &bytes, begins_line: self.begins_line, is_cut };
        piece.at.length = piece.text().len() as u64;
        each(piece);
        self.start.offset += bytes.len() as u64;
        self.start.line += u64::from(!is_cut);
        self.begins_line = !is_cut;
        bytes.clear();
        self.buffer = bytes;
    }
}

/// Whether a source with this framing and this head consists of lines, so that it can be read from any line.
pub fn is_lines(framing: Framing, head: &[u8]) -> bool {
    match framing {
        Framing::Lines => true,
        Framing::Items(_) => false,
        Framing::LinesOrItems(items) => opens_document(items, head) == Some(false),
    }
}

/// Whether these bytes are exactly the prologue of such a document.
pub(crate) fn is_prologue(items: Items, bytes: &[u8]) -> bool {
    let mut scan = Scan::new(items);
    let begins = bytes.iter().position(|byte| {
        scan.step(*byte);
        scan.phase != Phase::Prologue
    });
    begins.is_some_and(|at| at + 1 == bytes.len())
}

/// Whether these bytes, after the prologue of such a document, are exactly one item, which may be incomplete.
pub(crate) fn is_item(items: Items, bytes: &[u8]) -> bool {
    let head: Vec<u8> = match items {
        Items::Array(key) => format!("{{\"{key}\":[").into_bytes(),
        Items::Members => b"{".to_vec(),
        Items::Elements => b"[".to_vec(),
    };
    let (mut found, mut others) = (0, 0);
    let mut each = |frame: Frame<'_>| match frame {
        Frame::Record(Record { place: RecordPlace::Prologue, .. }) => {}
        Frame::Record(record) if record.place == RecordPlace::Item && record.bytes == bytes => found += 1,
        Frame::Record(_) | Frame::Oversize(_) => others += 1,
    };
    let mut framer = Framer::new(Framing::Items(items), RECORD_SIZE_MAX);
    framer.feed(&head, &mut each);
    framer.feed(bytes, &mut each);
    framer.end(&mut each);
    found == 1 && others == 0
}

/// Whether a source that is lines or such a document begins like the document; `None` if it is too short to tell.
fn opens_document(items: Items, source: &[u8]) -> Option<bool> {
    match items {
        Items::Array(_) | Items::Members => opens_alone(source),
        Items::Elements => {
            let source = after_boms(source);
            if BOM.starts_with(source) { None } else { source.trim_ascii_start().first().map(|byte| *byte == b'[') }
        }
    }
}

/// Whether a source opens with a brace on a line of its own; `None` if it is too short to decide.
fn opens_alone(source: &[u8]) -> Option<bool> {
    let source = after_boms(source);
    if BOM.starts_with(source) {
        return None;
    }
    let text = source.trim_ascii_start();
    let Some(after) = text.strip_prefix(b"{") else { return if text.is_empty() { None } else { Some(false) } };
    after.iter().find(|byte| **byte == b'\n' || !byte.is_ascii_whitespace()).map(|byte| *byte == b'\n')
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The source after its byte order marks. Several marks mean the same as one: a rewritten source has none and must read the
/// same.
pub(crate) fn after_boms(source: &[u8]) -> &[u8] {
    let mut rest = source;
    while let Some(after) = rest.strip_prefix(BOM) {
        rest = after;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(framing: Framing, source: &str, chunk: usize) -> Vec<(RecordPlace, String, u64, u64)> {
        let mut framer = Framer::new(framing, 1000);
        let mut found = Vec::new();
        let mut each = |frame: Frame<'_>| match frame {
            Frame::Record(record) => {
                let text = String::from_utf8(record.bytes.to_vec()).unwrap();
                assert_eq!(&source.as_bytes()[record.at.offset as usize..record.at.end() as usize], record.bytes);
                found.push((record.place, text, record.at.offset, record.at.line));
            }
            Frame::Oversize(span) => found.push((RecordPlace::Line, "…".into(), span.offset, span.length)),
        };
        for chunk in source.as_bytes().chunks(chunk) {
            framer.feed(chunk, &mut each);
        }
        framer.end(&mut each);
        found
    }

    #[test]
    fn a_document_is_split_into_array_items() {
        let source = "{\n  \"a\": [1],\n  \"turns\": [\n    {\"x\": \"]\"},\n 7 , {}\n  ],\n  \"z\": 1\n}\n";
        for chunk in [1, 3, 1000] {
            let found = frames(Framing::Items(Items::Array("turns")), source, chunk);
            let texts: Vec<&str> = found.iter().map(|(_, text, _, _)| text.as_str()).collect();
            assert_eq!(texts, ["{\n  \"a\": [1],\n  \"turns\": [", "{\"x\": \"]\"}", "7", "{}", "],\n  \"z\": 1\n}\n"]);
            assert_eq!(found[1].3, 4);
        }
    }

    #[test]
    fn a_document_is_split_into_members() {
        let source = "{\"a\": {\"b\": 1}, \"c\" : 2 }";
        for chunk in [1, 1000] {
            let found = frames(Framing::Items(Items::Members), source, chunk);
            let texts: Vec<&str> = found.iter().map(|(_, text, _, _)| text.as_str()).collect();
            assert_eq!(texts, ["{", "\"a\": {\"b\": 1}", "\"c\" : 2", "}"]);
        }
    }

    #[test]
    fn an_array_is_split_into_its_elements() {
        for chunk in [1, 3, 1000] {
            let found = frames(Framing::Items(Items::Elements), " [\n {\"a\": [1]} , 7,{}\n]\n", chunk);
            let texts: Vec<&str> = found.iter().map(|(_, text, _, _)| text.as_str()).collect();
            assert_eq!(texts, [" [", "{\"a\": [1]}", "7", "{}", "]\n"]);
            assert_eq!(frames(Framing::Items(Items::Elements), "{\"a\": [1]}", chunk).len(), 1);
        }
    }

    #[test]
    fn lines_after_an_unknown_line_number_have_no_numbers() {
        let mut lines = Vec::new();
        let at = Span { offset: 100, length: 0, line: Span::LINE_UNKNOWN };
        let mut framer = Framer::from_line(1000, at);
        framer.feed(b"a\nb\n", &mut |frame| {
            if let Frame::Record(record) = frame {
                lines.push((record.at.offset, record.at.line));
            }
        });
        assert_eq!(lines, [(100, Span::LINE_UNKNOWN), (102, Span::LINE_UNKNOWN)]);
    }

    #[test]
    fn the_head_of_a_source_decides_between_lines_and_a_document() {
        let both = Framing::LinesOrItems(Items::Array("items"));
        assert!(is_lines(Framing::Lines, b"{\n") && !is_lines(Framing::Items(Items::Members), b"{}"));
        assert!(is_lines(both, b"{\"a\":1}\n") && !is_lines(both, b"\n{\n\"items\": [") && !is_lines(both, b" "));
    }

    #[test]
    fn prologues_and_items_are_recognized() {
        let turns = Items::Array("turns");
        assert!(is_prologue(turns, b"{\n\"turns\": ["));
        assert!(!is_prologue(turns, b"{\"calls\": [") && !is_prologue(turns, b"{\"turns\": [7"));
        assert!(is_prologue(Items::Members, b"x {") && !is_prologue(Items::Members, b"x"));
        assert!(is_item(Items::Members, b"\"a\": {\"b\": [1, 2]}") && is_item(turns, b"{\"torn"));
        assert!(is_prologue(Items::Elements, b"\n[") && is_item(Items::Elements, b"{\"torn"));
        assert!(!is_item(Items::Members, b"\"a\": 1, \"b\": 2") && !is_item(turns, b"7]") && !is_item(turns, b"{} x"));
    }

    #[test]
    fn lines_or_items_resolves_to_either() {
        let framing = Framing::LinesOrItems(Items::Array("items"));
        let texts = |source: &str, chunk: usize| -> Vec<String> {
            frames(framing, source, chunk).into_iter().map(|(_, text, _, _)| text).collect()
        };
        for chunk in [1, 3, 1000] {
            assert_eq!(texts("\n{\n\"a\": 1,\n\"items\": [\n7]}", chunk), ["\n{\n\"a\": 1,\n\"items\": [", "7", "]}"]);
            assert_eq!(texts("\u{feff}{\r\n\"items\":[]}", chunk), ["{\r\n\"items\":[", "]}"]);
            assert_eq!(texts("\u{feff}\u{feff}{\r\n\"items\":[]}", chunk), ["{\r\n\"items\":[", "]}"]);
            // A document with other items, one without items, and one that ends too early.
            assert_eq!(
                texts("{\n\"turns\": [\n]}\n{\"items\":[1]}", chunk),
                ["{", "\"turns\": [", "]}", "{\"items\":[1]}"]
            );
            assert_eq!(texts("{\n}", chunk), ["{", "}"]);
            assert_eq!(texts("{\n\"items\":", chunk), ["{", "\"items\":"]);
            assert_eq!(texts("{\"items\":\n[]}", chunk), ["{\"items\":", "[]}"]);
            let late = format!("{{\n\"a\":\"{}\",\n\"items\":[7]}}", "x".repeat(1500));
            assert_eq!(texts(&late, chunk), ["{", "…", "\"items\":[7]}"]);
        }
    }

    #[test]
    fn a_line_over_the_limit_arrives_in_pieces() {
        let source = b"one\n12345678901\n\nlast";
        for chunk in [1, 3, 100] {
            let (mut splitter, mut found) = (LineSplitter::new(5), Vec::new());
            let mut each = |piece: LinePiece<'_>| {
                let text = String::from_utf8(piece.text().to_vec()).unwrap();
                assert_eq!(&source[piece.at.offset as usize..piece.at.end() as usize], text.as_bytes());
                found.push((text, piece.at.line, piece.begins_line, piece.is_cut));
            };
            source.chunks(chunk).for_each(|chunk| splitter.feed(chunk, &mut each));
            splitter.end(&mut each);
            let found: Vec<_> =
                found.iter().map(|(text, line, begins, cut)| (text.as_str(), *line, *begins, *cut)).collect();
            let expected = [
                ("one", 1, true, false),
                ("12345", 2, true, true),
                ("67890", 2, false, true),
                ("1", 2, false, false),
                ("", 3, true, false),
                ("last", 4, true, false),
            ];
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn lines_a_byte_order_mark_and_an_oversize_line() {
        let giant = "x".repeat(1500);
        let source = format!("\u{feff}one\n\n{giant}\nlast");
        for chunk in [1, 7, 4096] {
            let found = frames(Framing::Lines, &source, chunk);
            let texts: Vec<&str> = found.iter().map(|(_, text, _, _)| text.as_str()).collect();
            assert_eq!(texts, ["one", "", "…", "last"]);
            assert_eq!(found[2].3, 1500);
        }
    }
}
