//! Copies a source with the records replaced that a plan changes. How a record goes depends on what holds the records together: a line
//! goes with its newline (`copy.rs`), an item of a document with its comma, a block of text with the blank lines after it. Whether
//! the result is right is not decided here.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::ops::Range;

use super::apply::Work;
use super::copy::LineCopy;
use super::gaps::{CHUNK_SIZE, GapReading, GapSink};
use super::original::EditSource;
use super::sketch::Sketch;
use super::step::{Changes, Step, Steps};
use super::{SIZE_MAX, Sketches};
use crate::format::Format;
use crate::frame::{Frame, Framer, Framing, RECORD_SIZE_MAX, RecordPlace};
use crate::model::{Event, Note, Outline, Span};
use crate::read::Sink;
use crate::write::{self, Edit, OutputPiece, Writing, fragment};

/// What holds the records of a source together.
enum Shape {
    /// Newlines.
    Lines,
    /// Commas: the spans of the items of a document.
    Items(Vec<Span>),
    /// Blank lines, and words for people: where the records begin.
    Blocks(Vec<u64>),
}

/// Something that is done to a source.
#[derive(Debug)]
pub(super) struct Splice {
    /// The record it is done to.
    pub(super) at: Span,
    /// What is done.
    pub(super) what: What,
}

/// What is done to a source.
#[derive(Debug)]
pub(super) enum What {
    /// These records are put in before the record.
    PutBefore(Vec<Vec<u8>>),
    /// This takes the place of the record.
    Replace(Vec<u8>),
    /// The record goes.
    Remove,
    /// These records are put in at the end of the source.
    PutAtEnd(Vec<Vec<u8>>),
}

/// Writes the source with the records replaced that the plan changes; `false` when that cannot be done, and what was written is of no
/// use.
pub(super) fn splice(source: &mut EditSource<'_>, work: &Work<'_>, out: &mut dyn Write) -> io::Result<bool> {
    if shares_place(work) {
        return Ok(false);
    }
    let shape = shape(source, work.sketches)?;
    let (format, outline) = (source.format, source.outline.clone());
    let mut splicer = Splicer::new(format, &outline, work);
    let mut reading = GapReading::new(format, &work.gaps);
    let mut stream = source.source.open()?;
    let mut buffer = vec![0; CHUNK_SIZE];
    let mut read = || loop {
        match stream.read(&mut buffer) {
            Ok(length) => return Ok(buffer.get(..length).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    if let Shape::Lines = shape {
        let mut copy = LineCopy::new(out);
        loop {
            let chunk = read()?;
            if chunk.is_empty() {
                break;
            }
            reading.feed(&chunk, &mut splicer);
            copy.feed(&chunk);
            splicer.remove_before(copy.end_of_window());
            let until = splicer.undecided_from().map_or(reading.settled(), |from| from.min(reading.settled()));
            if splicer.has_failed || !copy.carry_out(&mut splicer.found, until)? {
                return Ok(false);
            }
        }
        reading.end(&mut splicer);
        splicer.remove_before(u64::MAX);
        splicer.end();
        return Ok(!splicer.has_failed && copy.end(&mut splicer.found)?);
    }
    let mut bytes = Vec::new();
    loop {
        let chunk = read()?;
        if chunk.is_empty() {
            break;
        }
        reading.feed(&chunk, &mut splicer);
        bytes.extend_from_slice(&chunk);
        if bytes.len() > SIZE_MAX {
            let said = format!("a document larger than {} MiB cannot be edited", SIZE_MAX >> 20);
            return Err(io::Error::new(io::ErrorKind::Unsupported, said));
        }
    }
    reading.end(&mut splicer);
    splicer.end();
    if splicer.has_failed {
        return Ok(false);
    }
    let found: Option<Vec<Edit>> = splicer.found.into_iter().map(|splice| shape.edit(splice, &bytes)).collect();
    let Some(edits) = found.map(|found| shape.joined(found)).filter(|edits| is_in_order(edits)) else {
        return Ok(false);
    };
    write::splice(&mut bytes.as_slice(), &edits, out)?;
    Ok(true)
}

fn is_in_order(edits: &[Edit]) -> bool {
    edits.windows(2).all(|pair| matches!(pair, [one, other] if one.at.end() <= other.at.offset))
}

fn shape(source: &mut EditSource<'_>, sketches: &Sketches) -> io::Result<Shape> {
    let info = source.format.info();
    let mut items = Vec::new();
    let mut document = false;
    if info.framing != Framing::Lines {
        let mut framer = Framer::new(info.framing, RECORD_SIZE_MAX);
        let mut each = |frame: Frame<'_>| {
            if let Frame::Record(record) = frame {
                match record.place {
                    RecordPlace::Line => {}
                    RecordPlace::Item => items.push(record.at),
                    RecordPlace::Prologue | RecordPlace::Epilogue => document = true,
                }
            }
        };
        let mut stream = source.source.open()?;
        let mut buffer = vec![0; CHUNK_SIZE];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => framer.feed(buffer.get(..length).unwrap_or_default(), &mut each),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        framer.end(&mut each);
    }
    Ok(match document {
        true => Shape::Items(items),
        false if info.traits.lossy => {
            let mut places: Vec<u64> = sketches.iter().filter_map(Sketch::offset).collect();
            places.sort_unstable();
            Shape::Blocks(places)
        }
        false => Shape::Lines,
    })
}

impl Shape {
    /// The run of a document that is replaced; `None` when it cannot be.
    fn edit(&self, splice: Splice, bytes: &[u8]) -> Option<Edit> {
        let Splice { at, what } = splice;
        Some(match (what, self) {
            (What::Replace(with), _) => Edit { at, with },
            (What::Remove, _) => Edit { at: self.extent(at, bytes), with: Vec::new() },
            (What::PutBefore(new), Shape::Items(items)) if items.iter().any(|item| item.offset == at.offset) => {
                let with = new.iter().flat_map(|item| [item.as_slice(), b",\n".as_slice()].concat()).collect();
                Edit { at: Span { length: 0, ..at }, with }
            }
            (What::PutAtEnd(new), Shape::Items(items)) => {
                let with = new.iter().flat_map(|item| [b",\n".as_slice(), item].concat()).collect();
                Edit { at: Span { offset: items.last()?.end(), length: 0, line: 0 }, with }
            }
            (What::PutBefore(_) | What::PutAtEnd(_), _) => return None,
        })
    }

    /// What goes when a record goes.
    fn extent(&self, span: Span, bytes: &[u8]) -> Span {
        match self {
            Shape::Lines => span,
            Shape::Blocks(places) => {
                // What stands in the header may be told of at the end: the next block is the next one in the file.
                let next = places.get(places.partition_point(|offset| *offset <= span.offset)).copied();
                Span { length: next.unwrap_or(bytes.len() as u64) - span.offset, ..span }
            }
            Shape::Items(items) => {
                let next = items.iter().find(|item| item.offset > span.offset);
                let length = next.map_or(span.length, |next| next.offset - span.offset);
                Span { length, ..span }
            }
        }
    }

    /// The edits, of which none overlaps. Where the last items go, what separated them from the one before goes too.
    fn joined(&self, edits: Vec<Edit>) -> Vec<Edit> {
        let mut joined: Vec<Edit> = Vec::with_capacity(edits.len());
        for edit in edits {
            match joined.last_mut() {
                Some(last) if last.with.is_empty() && edit.with.is_empty() && last.at.end() >= edit.at.offset => {
                    last.at.length = edit.at.end().max(last.at.end()) - last.at.offset;
                }
                _ => joined.push(edit),
            }
        }
        if let (Shape::Items(items), Some(last)) = (self, joined.last_mut())
            && last.with.is_empty()
            && last.at.length > 0
            && items.last().is_some_and(|item| item.end() == last.at.end())
            && let Some(kept) = items.iter().rev().find(|item| item.end() <= last.at.offset)
        {
            last.at.length = last.at.end() - kept.end();
            last.at.offset = kept.end();
        }
        joined
    }
}

/// Whether a record that is touched stands in the same place as another one: such a place cannot be replaced for one of them.
fn shares_place(work: &Work<'_>) -> bool {
    let mut places: Vec<(u64, bool)> = Vec::new();
    for range in work.sketches.records() {
        if let Some(offset) = work.sketches.get(range.start).and_then(Sketch::offset) {
            places.push((offset, work.whole.touches(work.sketches, &range)));
        }
    }
    places.sort_unstable();
    places.windows(2).any(|pair| matches!(pair, [(a, touched), (b, also)] if a == b && (*touched || *also)))
}

/// Finds what is done to the source while its events come along.
struct Splicer<'a> {
    format: &'a dyn Format,
    outline: &'a Outline,
    sketches: &'a Sketches,
    steps: Steps<'a>,
    found: VecDeque<Splice>,
    shown: Option<Shown>,
    /// Events that were passed over and go, as far as that was not said yet.
    gone: Range<usize>,
    has_failed: bool,
}

/// What stands in the source already where something is put in: the first record, and the one before.
#[derive(Default)]
struct Shown {
    first: Vec<Event<'static>>,
    last: Vec<Event<'static>>,
    /// The number of the next record.
    records: usize,
}

impl Sink for Splicer<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.remove_before(u64::MAX);
        let Splicer { format, outline, sketches, steps, found, shown, has_failed, .. } = self;
        steps.event(event, &mut |step| {
            let done = Making { format: *format, outline, sketches, shown: shown.as_mut() }.step(step, found);
            *has_failed |= done.is_none();
        });
    }

    fn note(&mut self, _note: Note) {}
}

impl GapSink for Splicer<'_> {
    fn pass_over(&mut self, numbers: Range<usize>) {
        self.steps.pass_over(&numbers);
        self.gone = numbers;
    }
}

impl<'a> Splicer<'a> {
    /// The first byte of what is not decided yet, though it was read or passed over.
    fn undecided_from(&self) -> Option<u64> {
        let gone = self.sketches.get(self.gone.start).filter(|_| !self.gone.is_empty()).and_then(Sketch::offset);
        self.steps.held_from().into_iter().chain(gone).min()
    }

    /// Removes the records that were passed over and stand before this place.
    fn remove_before(&mut self, offset: u64) {
        while let Some(at) = self.sketches.get(self.gone.start).filter(|_| !self.gone.is_empty()).and_then(Sketch::span)
            && at.end() <= offset
        {
            self.found.push_back(Splice { at, what: What::Remove });
            self.gone.start = self.sketches.record_end(self.gone.start).unwrap_or(self.gone.end).min(self.gone.end);
        }
    }

    fn new(format: &'a dyn Format, outline: &'a Outline, work: &'a Work<'_>) -> Splicer<'a> {
        let shown = (!work.whole.put_in().is_empty()).then(Shown::default);
        let (sketches, steps, found) = (work.sketches, work.steps(), VecDeque::new());
        Splicer { format, outline, sketches, steps, found, shown, gone: 0..0, has_failed: false }
    }

    fn end(&mut self) {
        let Splicer { format, outline, sketches, steps, found, shown, has_failed, .. } = self;
        steps.end(&mut |step| {
            let done = Making { format: *format, outline, sketches, shown: shown.as_mut() }.step(step, found);
            *has_failed |= done.is_none();
        });
    }
}

/// Makes records.
struct Making<'a> {
    format: &'a dyn Format,
    outline: &'a Outline,
    sketches: &'a Sketches,
    shown: Option<&'a mut Shown>,
}

impl Making<'_> {
    fn step(&mut self, step: &Step<'_, '_>, found: &mut VecDeque<Splice>) -> Option<()> {
        match step {
            Step::Stays { number, event } => {
                if let Some(shown) = &mut self.shown {
                    let begins = shown.records == 0 || self.sketches.begins_record(*number);
                    shown.add(std::slice::from_ref(*event), begins);
                }
            }
            Step::Changes(changes) => {
                let mut start = changes.numbers.start;
                while start < changes.numbers.end {
                    let end = self.sketches.record_end(start)?.min(changes.numbers.end);
                    self.record(changes, &(start..end), found)?;
                    start = end;
                }
            }
            Step::Ends(put_in) => {
                let what = What::PutAtEnd(self.made(put_in));
                found.push_back(Splice { at: Span::default(), what });
            }
        }
        Some(())
    }

    fn record(&mut self, changes: &Changes<'_>, range: &Range<usize>, found: &mut VecDeque<Splice>) -> Option<()> {
        let events = changes.events.get(range.start - changes.numbers.start..range.end - changes.numbers.start)?;
        let left = changes.record(range);
        let at = events.first()?.at;
        if !left.before.is_empty() {
            found.push_back(Splice { at: at?, what: What::PutBefore(self.made(&left.before)) });
        }
        if left.is_touched {
            let what = match left.kept.is_empty() {
                true => What::Remove,
                false => {
                    let kept: Vec<Event<'static>> = left.kept.into_iter().cloned().collect();
                    What::Replace(fragment(self.format, self.outline, &kept)?)
                }
            };
            found.push_back(Splice { at: at?, what });
        }
        if let Some(shown) = &mut self.shown {
            shown.add(events, true);
        }
        Some(())
    }

    /// The records that the format makes of new events. The writer is shown what stands there already, so that it makes no second
    /// header and goes on from the record before.
    fn made(&self, events: &[&Event<'static>]) -> Vec<Vec<u8>> {
        let mut writing = Writing::new(self.format, self.outline);
        if let Some(shown) = &self.shown {
            shown.each(&mut |event| drop(writing.event(event)));
        }
        let mut pieces: Vec<OutputPiece> = events.iter().flat_map(|event| writing.event(event)).collect();
        pieces.extend(writing.finish());
        let records = pieces.into_iter().filter_map(|piece| match piece {
            OutputPiece::Record(bytes) => Some(bytes),
            OutputPiece::Glue(_) => None,
        });
        records.collect()
    }
}

impl Shown {
    /// Takes notice of events of a record that stands in the source.
    fn add(&mut self, events: &[Event<'_>], begins: bool) {
        if begins {
            self.records += 1;
            self.last.clear();
        }
        let record = if self.records == 1 { &mut self.first } else { &mut self.last };
        record.extend(events.iter().map(|event| event.clone().into_owned()));
    }

    fn each(&self, visit: &mut dyn FnMut(&Event<'static>)) {
        self.first.iter().chain(&self.last).for_each(visit);
    }
}
