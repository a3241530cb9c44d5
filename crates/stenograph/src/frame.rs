//! Bytes to records: positions, line numbers, oversize records, half a last line. Here and nowhere else.
//! Framing knows nothing about formats; it must not interpret a record.

use memchr::memchr;

use crate::model::Span;

/// How a source is cut into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One record a line.
    Lines,
    /// One JSON document, a record for each of its items.
    Items(Items),
    /// Lines, unless the first line is a lone brace: then it is a document.
    LinesOrItems(Items),
}

/// Where the items of a document are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// The elements of the array below this key of the document.
    Array(&'static str),
    /// The members of the document itself.
    Members,
}

/// What a record is to its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line.
    Line,
    /// What stands before the first item of a document, its opening bracket included.
    Prologue,
    /// An item of a document.
    Item,
    /// What stands after the last item, from the closing bracket on.
    Epilogue,
}

/// One frame of a source.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Where it stands.
    pub at: Span,
    /// Its bytes, without the line's end.
    pub bytes: &'a [u8],
    /// What it is to its source.
    pub place: Place,
    /// Whether the source goes on after it: `false` for a last line without a newline and a document cut short.
    pub terminated: bool,
}

/// What framing finds.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// A record.
    Record(Record<'a>),
    /// A record over the limit: only where it stands is known.
    Oversize(Span),
}

/// The largest record that is held in memory. The largest in real files is 1.6 MB.
pub const RECORD_SIZE_MAX: usize = 32 << 20;

/// Cuts a source that arrives in chunks into records.
#[derive(Debug)]
pub struct Framer {
    mode: Mode,
    size_max: usize,
    /// Bytes of the record under way.
    held: Vec<u8>,
    /// How many bytes of it were let go because it is too large.
    let_go: u64,
    /// Where the record under way starts.
    start: Span,
    /// The offset after the last byte seen.
    offset: u64,
    line: u64,
}

#[derive(Debug)]
enum Mode {
    Undecided(Items),
    Lines,
    Document(Scan),
}

/// The state of a walk through a document.
#[derive(Debug)]
struct Scan {
    items: Items,
    phase: Phase,
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The last string at depth 1, which is a key when a colon follows.
    word: Vec<u8>,
    /// Whether the key of the array was just read, and its value is next.
    key_seen: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Prologue,
    Between,
    Item,
    Epilogue,
}

impl Framer {
    /// A framer for sources of this framing.
    pub fn new(framing: Framing, size_max: usize) -> Framer {
        let mode = match framing {
            Framing::Lines => Mode::Lines,
            Framing::Items(items) => Mode::Document(Scan::new(items)),
            Framing::LinesOrItems(items) => Mode::Undecided(items),
        };
        let start = Span { offset: 0, length: 0, line: 1 };
        Framer { mode, size_max, held: Vec::new(), let_go: 0, start, offset: 0, line: 1 }
    }

    /// The offset before which more input changes no record. A document's frame is settled only as a whole, because what
    /// stands at its end may say what all of it means.
    pub fn settled(&self) -> u64 {
        match self.mode {
            Mode::Lines => self.start.offset,
            Mode::Undecided(_) | Mode::Document(_) => 0,
        }
    }

    /// Takes more of the source and gives the records it completes.
    pub fn feed(&mut self, chunk: &[u8], each: &mut dyn FnMut(Frame<'_>)) {
        if let Mode::Undecided(items) = self.mode {
            self.held.extend_from_slice(chunk);
            if memchr(b'\n', &self.held).is_none() && self.held.len() <= self.size_max {
                return;
            }
            self.decide(items);
            let held = std::mem::take(&mut self.held);
            return self.feed(&held, each);
        }
        match self.mode {
            Mode::Document(_) => self.feed_document(chunk, each),
            Mode::Lines | Mode::Undecided(_) => self.feed_lines(chunk, each),
        }
    }

    fn decide(&mut self, items: Items) {
        let first = self.held.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
        let document = first.is_some_and(|line| line.strip_prefix(BOM).unwrap_or(line).trim_ascii() == b"{");
        self.mode = if document { Mode::Document(Scan::new(items)) } else { Mode::Lines };
    }

    /// Gives what is left when the source ends.
    pub fn end(&mut self, each: &mut dyn FnMut(Frame<'_>)) {
        if let Mode::Undecided(items) = self.mode {
            self.decide(items);
            let held = std::mem::take(&mut self.held);
            self.feed(&held, each);
        }
        let place = match &self.mode {
            Mode::Lines | Mode::Undecided(_) => Place::Line,
            Mode::Document(scan) => scan.place(),
        };
        let whole = matches!(&self.mode, Mode::Document(Scan { phase: Phase::Epilogue, depth: 0, .. }));
        if !self.held.is_empty() || self.let_go > 0 {
            self.give(place, whole, each);
        }
    }

    fn feed_lines(&mut self, chunk: &[u8], each: &mut dyn FnMut(Frame<'_>)) {
        let mut rest = chunk;
        while let Some(length) = memchr(b'\n', rest) {
            let (line, tail) = rest.split_at(length);
            if self.held.is_empty() && self.let_go == 0 && line.len() <= self.size_max {
                // The usual case: the whole line is in the chunk, and nothing is copied.
                let (skipped, bytes) = self.without_bom(line);
                let at = Span { offset: self.start.offset + skipped, length: bytes.len() as u64, line: self.line };
                each(Frame::Record(Record { at, bytes, place: Place::Line, terminated: true }));
            } else {
                self.hold(line);
                self.give(Place::Line, true, each);
            }
            rest = tail.get(1..).unwrap_or_default();
            self.offset += length as u64 + 1;
            self.line += 1;
            self.start = Span { offset: self.offset, length: 0, line: self.line };
        }
        self.hold(rest);
        self.offset += rest.len() as u64;
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.let_go > 0 || self.held.len() + bytes.len() > self.size_max {
            self.let_go += (self.held.len() + bytes.len()) as u64;
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn without_bom<'a>(&self, line: &'a [u8]) -> (u64, &'a [u8]) {
        match line.strip_prefix(BOM) {
            Some(rest) if self.start.offset == 0 => (BOM.len() as u64, rest),
            _ => (0, line),
        }
    }

    /// Gives the record that is held.
    fn give(&mut self, place: Place, terminated: bool, each: &mut dyn FnMut(Frame<'_>)) {
        if self.let_go > 0 {
            each(Frame::Oversize(Span { length: self.let_go, ..self.start }));
            self.let_go = 0;
        } else {
            let held = std::mem::take(&mut self.held);
            let (skipped, bytes) = self.without_bom(&held);
            // Space before the comma or the bracket that ends an item is not the item's.
            let bytes = if place == Place::Item { bytes.trim_ascii_end() } else { bytes };
            let at = Span { offset: self.start.offset + skipped, length: bytes.len() as u64, line: self.start.line };
            each(Frame::Record(Record { at, bytes, place, terminated }));
            self.held = held;
            self.held.clear();
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
                Step::On => {}
                Step::Start => {
                    // Space and commas between items belong to no record.
                    from = at;
                    self.start = Span { offset: self.offset - 1, length: 0, line: self.line };
                }
                Step::EndHere(place) => {
                    self.hold(piece(from, at + 1));
                    self.give(place, true, each);
                    from = at + 1;
                    self.start = Span { offset: self.offset, length: 0, line: self.line };
                }
                Step::EndBefore(place, then) => {
                    self.hold(piece(from, at));
                    self.give(place, true, each);
                    from = if then == Phase::Epilogue { at } else { at + 1 };
                    self.start = Span { offset: self.offset - (at + 1 - from) as u64, length: 0, line: self.line };
                }
                Step::Between => from = at + 1,
            }
            if *byte == b'\n' {
                self.line += 1;
            }
        }
        self.hold(chunk.get(from..).unwrap_or_default());
    }
}

enum Step {
    On,
    Start,
    EndHere(Place),
    EndBefore(Place, Phase),
    Between,
}

impl Scan {
    fn new(items: Items) -> Scan {
        Scan {
            items,
            phase: Phase::Prologue,
            depth: 0,
            in_string: false,
            escaped: false,
            word: Vec::new(),
            key_seen: false,
        }
    }

    fn place(&self) -> Place {
        match self.phase {
            Phase::Prologue => Place::Prologue,
            Phase::Between | Phase::Item => Place::Item,
            Phase::Epilogue => Place::Epilogue,
        }
    }

    /// The depth at which items stand.
    fn floor(&self) -> u32 {
        match self.items {
            Items::Array(_) => 2,
            Items::Members => 1,
        }
    }

    fn step(&mut self, byte: u8) -> Step {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            if self.in_string && self.depth == 1 && self.phase == Phase::Prologue && self.word.len() < 256 {
                self.word.push(byte);
            }
            return Step::On;
        }
        let floor = self.floor();
        match (self.phase, byte) {
            (Phase::Between, b' ' | b'\t' | b'\r' | b'\n' | b',') => return Step::Between,
            (Phase::Between, b']' | b'}') => {
                self.phase = Phase::Epilogue;
                self.depth = self.depth.saturating_sub(1);
                return Step::Start;
            }
            (Phase::Between, _) => {
                self.phase = Phase::Item;
                self.enter(byte);
                return Step::Start;
            }
            (Phase::Item, b',') if self.depth == floor => {
                self.phase = Phase::Between;
                return Step::EndBefore(Place::Item, Phase::Between);
            }
            (Phase::Item, b']' | b'}') if self.depth == floor => {
                self.phase = Phase::Epilogue;
                self.depth = self.depth.saturating_sub(1);
                return Step::EndBefore(Place::Item, Phase::Epilogue);
            }
            (Phase::Prologue, b'"') if self.depth == 1 => self.word.clear(),
            (Phase::Prologue, b':') if self.depth == 1 => {
                self.key_seen = matches!(self.items, Items::Array(key) if key.as_bytes() == self.word);
                return Step::On;
            }
            (Phase::Prologue, b'[') if self.depth == 1 && self.key_seen => {
                self.depth = 2;
                self.phase = Phase::Between;
                return Step::EndHere(Place::Prologue);
            }
            (Phase::Prologue, b'{') if self.depth == 0 && self.items == Items::Members => {
                self.depth = 1;
                self.phase = Phase::Between;
                return Step::EndHere(Place::Prologue);
            }
            (Phase::Prologue, b' ' | b'\t' | b'\r' | b'\n') => return Step::On,
            _ => {}
        }
        if self.phase == Phase::Prologue {
            self.key_seen = false;
        }
        self.enter(byte);
        // A member ends at the comma after it, an element where its own bracket closes.
        let closes = matches!(byte, b'}' | b']');
        if self.phase == Phase::Item && closes && self.depth == floor && self.items != Items::Members {
            self.phase = Phase::Between;
            return Step::EndHere(Place::Item);
        }
        Step::On
    }

    fn enter(&mut self, byte: u8) {
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

const BOM: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(framing: Framing, source: &str, chunk: usize) -> Vec<(Place, String, u64, u64)> {
        let mut framer = Framer::new(framing, 1000);
        let mut found = Vec::new();
        let mut each = |frame: Frame<'_>| match frame {
            Frame::Record(record) => {
                let text = String::from_utf8(record.bytes.to_vec()).unwrap();
                assert_eq!(&source.as_bytes()[record.at.offset as usize..record.at.end() as usize], record.bytes);
                found.push((record.place, text, record.at.offset, record.at.line));
            }
            Frame::Oversize(span) => found.push((Place::Line, "…".into(), span.offset, span.length)),
        };
        for chunk in source.as_bytes().chunks(chunk) {
            framer.feed(chunk, &mut each);
        }
        framer.end(&mut each);
        found
    }

    #[test]
    fn items_of_a_document() {
        let source = "{\n  \"a\": [1],\n  \"turns\": [\n    {\"x\": \"]\"},\n 7 , {}\n  ],\n  \"z\": 1\n}\n";
        for chunk in [1, 3, 1000] {
            let found = frames(Framing::Items(Items::Array("turns")), source, chunk);
            let texts: Vec<&str> = found.iter().map(|(_, text, _, _)| text.as_str()).collect();
            assert_eq!(texts, ["{\n  \"a\": [1],\n  \"turns\": [", "{\"x\": \"]\"}", "7", "{}", "],\n  \"z\": 1\n}\n"]);
            assert_eq!(found[1].3, 4);
        }
    }

    #[test]
    fn members_of_a_document() {
        let source = "{\"a\": {\"b\": 1}, \"c\" : 2 }";
        for chunk in [1, 1000] {
            let found = frames(Framing::Items(Items::Members), source, chunk);
            let texts: Vec<&str> = found.iter().map(|(_, text, _, _)| text.as_str()).collect();
            assert_eq!(texts, ["{", "\"a\": {\"b\": 1}", "\"c\" : 2", "}"]);
        }
    }

    #[test]
    fn lines_a_mark_and_a_giant() {
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
