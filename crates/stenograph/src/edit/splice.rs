//! From a plan to runs of a source that are replaced. How a record goes depends on what holds the records together: a line goes
//! with its newline, an item of a document with its comma, a block of text with the blank lines after it. What cannot be done
//! this way is said by `None`, and whether it came out right is not decided here.

use std::ops::Range;

use super::{Original, Plan, records};
use crate::frame::{Frame, Framer, Framing, Place, RECORD_SIZE_MAX};
use crate::model::{Event, Outline, Span};
use crate::write::{Edit, Writing, Written, fragment};

/// What holds the records of a source together.
enum Shape {
    /// Newlines.
    Lines,
    /// Commas: the spans of the items of a document.
    Items(Vec<Span>),
    /// Blank lines, and words for people.
    Blocks,
}

/// The edits of a source that carry out a plan, in order; `None` when replacing runs of it cannot.
pub(super) fn edits(original: &Original<'_>, plan: &Plan) -> Option<Vec<Edit>> {
    let shape = shape(original);
    let outline = Outline::of(original.format.info().name, &original.events);
    let ranges = records(&original.events);
    if shared_place(original, &ranges, plan) {
        return None;
    }
    let mut splicing = Splicing { original, outline, shape, ranges, edits: Vec::new() };
    for at in 0..splicing.ranges.len() {
        splicing.record(plan, at)?;
    }
    splicing.end(plan)?;
    Some(splicing.joined())
}

fn shape(original: &Original<'_>) -> Shape {
    let info = original.format.info();
    let mut items = Vec::new();
    let mut document = false;
    let mut framer = Framer::new(info.framing, RECORD_SIZE_MAX);
    let mut each = |frame: Frame<'_>| {
        if let Frame::Record(record) = frame {
            match record.place {
                Place::Line => {}
                Place::Item => items.push(record.at),
                Place::Prologue | Place::Epilogue => document = true,
            }
        }
    };
    if info.framing != Framing::Lines {
        framer.feed(original.bytes, &mut each);
        framer.end(&mut each);
    }
    match document {
        true => Shape::Items(items),
        false if info.traits.lossy => Shape::Blocks,
        false => Shape::Lines,
    }
}

/// Whether a record that is touched stands in the same place as another one: such a place cannot be replaced for one of them.
fn shared_place(original: &Original<'_>, ranges: &[Range<usize>], plan: &Plan) -> bool {
    let mut places: Vec<(u64, bool)> = Vec::new();
    for range in ranges {
        if let Some(at) = original.events.get(range.start).and_then(|event| event.at) {
            places.push((at.offset, plan.touches(range)));
        }
    }
    places.sort_unstable();
    places.windows(2).any(|pair| matches!(pair, [(a, touched), (b, also)] if a == b && (*touched || *also)))
}

struct Splicing<'a> {
    original: &'a Original<'a>,
    outline: Outline,
    shape: Shape,
    ranges: Vec<Range<usize>>,
    edits: Vec<Edit>,
}

impl Splicing<'_> {
    fn record(&mut self, plan: &Plan, at: usize) -> Option<()> {
        let range = self.ranges.get(at)?.clone();
        let touched = plan.touches(&range);
        if !touched && range.clone().all(|number| plan.put_into(number).next().is_none()) {
            return Some(());
        }
        let (before, kept) = plan.record(&self.original.events, &range);
        let span = self.span(at)?;
        if !before.is_empty() {
            let new = self.made(&before, at)?;
            self.put_before(span, &new)?;
        }
        if !touched {
            return Some(());
        }
        let edit = match kept.is_empty() {
            true => Edit { at: self.extent(span), with: Vec::new() },
            false => Edit { at: span, with: fragment(self.original.format, &self.outline, &kept)? },
        };
        self.edits.push(edit);
        Some(())
    }

    /// What is put in at the end of all.
    fn end(&mut self, plan: &Plan) -> Option<()> {
        let count = self.original.events.len();
        let put_in: Vec<Event<'static>> = plan.put_into(count).cloned().collect();
        if put_in.is_empty() {
            return Some(());
        }
        let new = self.made(&put_in, self.ranges.len())?;
        let end = match &self.shape {
            Shape::Lines | Shape::Blocks => self.original.bytes.len() as u64,
            Shape::Items(items) => items.last()?.end(),
        };
        let needs_newline = !self.original.bytes.is_empty() && !self.original.bytes.ends_with(b"\n");
        let with = match &self.shape {
            // The file ends as it ended before: with a newline or without one.
            Shape::Lines if needs_newline => [b"\n".as_slice(), &new.join(b"\n".as_slice())].concat(),
            Shape::Lines => [&new.join(b"\n".as_slice()), b"\n".as_slice()].concat(),
            Shape::Blocks => return None,
            Shape::Items(_) => new.iter().flat_map(|item| [b",\n".as_slice(), item].concat()).collect(),
        };
        self.edits.push(Edit { at: Span { offset: end, length: 0, line: 0 }, with });
        Some(())
    }

    fn put_before(&mut self, span: Span, new: &[Vec<u8>]) -> Option<()> {
        let with = match &self.shape {
            Shape::Lines => {
                // Another record may stand before this one on its line.
                let start = self.line_start(span.offset);
                let welded = !self.is_blank(start..span.offset);
                let lines = [&new.join(b"\n".as_slice()), b"\n".as_slice()].concat();
                if welded { [b"\n".as_slice(), &lines].concat() } else { lines }
            }
            Shape::Items(items) if items.iter().any(|item| item.offset == span.offset) => {
                new.iter().flat_map(|item| [item.as_slice(), b",\n".as_slice()].concat()).collect()
            }
            Shape::Items(_) | Shape::Blocks => return None,
        };
        self.edits.push(Edit { at: Span { length: 0, ..span }, with });
        Some(())
    }

    /// The records that the format makes of new events which stand before this record. The writer is shown what stands there
    /// already, so that it makes no second header and goes on from the record before.
    fn made(&self, events: &[Event<'static>], before: usize) -> Option<Vec<Vec<u8>>> {
        let mut writing = Writing::new(self.original.format, &self.outline);
        let last = before.checked_sub(1);
        let shown = [(last > Some(0)).then_some(0), last].into_iter().flatten();
        for range in shown.filter_map(|at| self.ranges.get(at)) {
            for event in self.original.events.get(range.clone())? {
                let _ = writing.event(event);
            }
        }
        let mut pieces: Vec<Written> = events.iter().flat_map(|event| writing.event(event)).collect();
        pieces.extend(writing.finish());
        let records = pieces.into_iter().filter_map(|piece| match piece {
            Written::Record(bytes) => Some(bytes),
            Written::Glue(_) => None,
        });
        Some(records.collect())
    }

    fn span(&self, at: usize) -> Option<Span> {
        let range = self.ranges.get(at)?;
        self.original.events.get(range.start)?.at
    }

    /// What goes when a record goes.
    fn extent(&self, span: Span) -> Span {
        match &self.shape {
            Shape::Lines => self.line(span),
            Shape::Blocks => {
                // What stands in the header may be told of at the end: the next block is the next one in the file.
                let places = self.original.events.iter().filter_map(|event| event.at).map(|place| place.offset);
                let next = places.filter(|offset| *offset > span.offset).min();
                Span { length: next.unwrap_or(self.original.bytes.len() as u64) - span.offset, ..span }
            }
            Shape::Items(items) => {
                let next = items.iter().find(|item| item.offset > span.offset);
                let length = next.map_or(span.length, |next| next.offset - span.offset);
                Span { length, ..span }
            }
        }
    }

    /// The line of a record with its newline, when nothing else stands on it.
    fn line(&self, span: Span) -> Span {
        let bytes = self.original.bytes;
        let start = self.line_start(span.offset);
        let after = bytes.get(position(span.end())..).unwrap_or_default();
        let rest = memchr::memchr(b'\n', after).map_or(after.len(), |at| at + 1);
        let end = span.end() + rest as u64;
        if !self.is_blank(start..span.offset) || !self.is_blank(span.end()..end) {
            return span;
        }
        Span { offset: start, length: end - start, line: span.line }
    }

    /// Where the line of this place begins. A byte order mark is no part of it: it stays.
    fn line_start(&self, offset: u64) -> u64 {
        let before = self.original.bytes.get(..position(offset)).unwrap_or_default();
        match memchr::memrchr(b'\n', before) {
            Some(at) => at as u64 + 1,
            None if before.starts_with(BOM) => BOM.len() as u64,
            None => 0,
        }
    }

    fn is_blank(&self, range: Range<u64>) -> bool {
        let bytes = self.original.bytes.get(position(range.start)..position(range.end)).unwrap_or_default();
        bytes.iter().all(u8::is_ascii_whitespace)
    }

    /// The edits, of which none overlaps. Where the last records go, what separated them from the one before goes too.
    fn joined(mut self) -> Vec<Edit> {
        let mut joined: Vec<Edit> = Vec::with_capacity(self.edits.len());
        for edit in self.edits.drain(..) {
            match joined.last_mut() {
                Some(last) if last.with.is_empty() && edit.with.is_empty() && last.at.end() >= edit.at.offset => {
                    last.at.length = edit.at.end().max(last.at.end()) - last.at.offset;
                }
                _ => joined.push(edit),
            }
        }
        let (bytes, end) = (self.original.bytes, self.original.bytes.len() as u64);
        let Some(last) = joined.last_mut().filter(|last| last.with.is_empty() && last.at.length > 0) else {
            return joined;
        };
        let before = bytes.get(..position(last.at.offset)).unwrap_or_default();
        let from = match &self.shape {
            Shape::Lines if last.at.end() == end && !bytes.ends_with(b"\n") => {
                before.strip_suffix(b"\r\n").or_else(|| before.strip_suffix(b"\n")).map(<[u8]>::len)
            }
            Shape::Items(items) if items.last().is_some_and(|item| item.end() == last.at.end()) => {
                let kept = items.iter().rev().find(|item| item.end() <= last.at.offset);
                kept.map(|item| position(item.end()))
            }
            Shape::Lines | Shape::Items(_) | Shape::Blocks => None,
        };
        if let Some(from) = from {
            let to = last.at.end();
            last.at.offset = from as u64;
            last.at.length = to - last.at.offset;
        }
        joined
    }
}

const BOM: &[u8] = b"\xef\xbb\xbf";

fn position(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
