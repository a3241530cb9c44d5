//! Copies a source and replaces the records that a plan changes. A line is removed with its newline (`copy.rs`), an item of a document
//! with its comma, a block of text with the blank lines after it. `read_back.rs` checks the result.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::ops::Range;

use super::apply::PreparedPlan;
use super::copy::LineCopy;
use super::gaps::{CHUNK_SIZE, GapReading, GapSink};
use super::original::EditSource;
use super::sketch::Sketch;
use super::step::{ChangedEvents, EditStep, Steps};
use super::{SIZE_MAX, Sketches};
use crate::evidence::running_total;
use crate::format::Format;
use crate::frame::{Frame, Framer, Framing, RECORD_SIZE_MAX, RecordPlace};
use crate::model::{Event, Outline, Span};
use crate::read::Sink;
use crate::write::{self, Edit, OutputPiece, Writing, fragment};

/// How the records of a source are separated.
enum Shape {
    /// By newlines.
    Lines,
    /// By commas: the spans of the items of a document.
    Items(Vec<Span>),
    /// By blank lines or headings: the offsets of the records.
    Blocks(Vec<u64>),
}

/// A change of the source at one record.
#[derive(Debug)]
pub(super) struct Splice {
    /// The place of the record.
    pub(super) at: Span,
    pub(super) operation: SpliceOperation,
}

/// A change of the source.
#[derive(Debug)]
pub(super) enum SpliceOperation {
    /// Inserts these records before the record.
    InsertBefore(Vec<Vec<u8>>),
    /// Replaces the record with these bytes.
    Replace(Vec<u8>),
    /// Removes the record.
    Remove,
    /// Appends these records to the source.
    Append(Vec<Vec<u8>>),
}

/// Writes the source with the changed records replaced. Returns `false` if that is not possible; then the output is useless.
pub(super) fn splice(
    source: &mut EditSource<'_>,
    prepared: &PreparedPlan<'_>,
    out: &mut dyn Write,
) -> io::Result<bool> {
    if shares_place(prepared) {
        return Ok(false);
    }
    let shape = shape(source, prepared.sketches)?;
    let (format, outline) = (source.format, source.outline.clone());
    let mut splicer = Splicer::new(format, &outline, prepared);
    let mut reading = GapReading::new(format, &prepared.gaps);
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
            let until = splicer.undecided_from().unwrap_or(u64::MAX).min(reading.stable_until());
            if splicer.has_failed || !copy.carry_out(&mut splicer.splices, until)? {
                return Ok(false);
            }
        }
        reading.end(&mut splicer);
        splicer.remove_before(u64::MAX);
        splicer.end();
        return Ok(!splicer.has_failed && copy.end(&mut splicer.splices)?);
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
            let message = format!("a document larger than {} MiB cannot be edited", SIZE_MAX >> 20);
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
    }
    reading.end(&mut splicer);
    splicer.end();
    if splicer.has_failed {
        return Ok(false);
    }
    let edits: Option<Vec<Edit>> = splicer.splices.into_iter().map(|splice| shape.edit(splice, &bytes)).collect();
    let Some(edits) = edits.map(|edits| shape.joined(edits)).filter(|edits| is_in_order(edits)) else {
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
    /// A splice as an edit of the bytes of a document; `None` if it is not possible.
    fn edit(&self, splice: Splice, bytes: &[u8]) -> Option<Edit> {
        let Splice { at, operation } = splice;
        Some(match (operation, self) {
            (SpliceOperation::Replace(with), _) => Edit { at, with },
            (SpliceOperation::Remove, _) => Edit { at: self.extent(at, bytes), with: Vec::new() },
            (SpliceOperation::InsertBefore(new), Shape::Items(items))
                if items.iter().any(|item| item.offset == at.offset) =>
            {
                let with = new.iter().flat_map(|item| [item.as_slice(), b",\n".as_slice()].concat()).collect();
                Edit { at: Span { length: 0, ..at }, with }
            }
            (SpliceOperation::Append(new), Shape::Items(items)) => {
                let with = new.iter().flat_map(|item| [b",\n".as_slice(), item].concat()).collect();
                Edit { at: Span { offset: items.last()?.end(), length: 0, line: 0 }, with }
            }
            (SpliceOperation::InsertBefore(_) | SpliceOperation::Append(_), _) => return None,
        })
    }

    /// The bytes that are removed with a record.
    fn extent(&self, span: Span, bytes: &[u8]) -> Span {
        match self {
            Shape::Lines => span,
            Shape::Blocks(places) => {
                // An event of the header may come last: the next block is the next one in the file.
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

    /// Joins removals that touch. If the last items are removed, the separator before them is removed too.
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

/// Whether a changed record shares its place with another record: then the place cannot be replaced for one of them.
fn shares_place(prepared: &PreparedPlan<'_>) -> bool {
    let mut places: Vec<(u64, bool)> = Vec::new();
    for range in prepared.sketches.records() {
        if let Some(offset) = prepared.sketches.get(range.start).and_then(Sketch::offset) {
            places.push((offset, prepared.complete.touches(prepared.sketches, &range)));
        }
    }
    places.sort_unstable();
    places.windows(2).any(|pair| matches!(pair, [(a, touched), (b, also)] if a == b && (*touched || *also)))
}

/// Computes the splices while the source is read.
struct Splicer<'a> {
    format: &'a dyn Format,
    outline: &'a Outline,
    sketches: &'a Sketches,
    steps: Steps<'a>,
    splices: VecDeque<Splice>,
    context: Option<WriterContext>,
    /// Skipped events that are removed and have no splice yet.
    skipped: Range<usize>,
    has_failed: bool,
}

/// The records that a writer has to see before it writes an inserted one: the first record, the last one with a running total,
/// the last one of the main conversation that has an id, which an inserted one may follow, and the one before.
#[derive(Default)]
struct WriterContext {
    first: Vec<Event<'static>>,
    total: Vec<Event<'static>>,
    linked: Vec<Event<'static>>,
    last: Vec<Event<'static>>,
    /// The number of the next record.
    records: usize,
}

impl Sink for Splicer<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.remove_before(u64::MAX);
        let Splicer { format, outline, sketches, steps, splices, context, has_failed, .. } = self;
        steps.event(event, &mut |step| {
            let writer =
                RecordWriter { format: *format, outline, sketches, context: context.as_mut() }.step(step, splices);
            *has_failed |= writer.is_none();
        });
    }
}

impl GapSink for Splicer<'_> {
    fn skip(&mut self, numbers: Range<usize>) {
        self.steps.skip(&numbers);
        self.skipped = numbers;
    }
}

impl<'a> Splicer<'a> {
    /// The first offset whose splice is not decided yet.
    fn undecided_from(&self) -> Option<u64> {
        let skipped =
            self.sketches.get(self.skipped.start).filter(|_| !self.skipped.is_empty()).and_then(Sketch::offset);
        self.steps.held_from().into_iter().chain(skipped).min()
    }

    /// Adds splices for the skipped records before this offset.
    fn remove_before(&mut self, offset: u64) {
        while let Some(at) =
            self.sketches.get(self.skipped.start).filter(|_| !self.skipped.is_empty()).and_then(Sketch::span)
            && at.end() <= offset
        {
            self.splices.push_back(Splice { at, operation: SpliceOperation::Remove });
            self.skipped.start =
                self.sketches.record_end(self.skipped.start).unwrap_or(self.skipped.end).min(self.skipped.end);
        }
    }

    fn new(format: &'a dyn Format, outline: &'a Outline, prepared: &'a PreparedPlan<'_>) -> Splicer<'a> {
        let context = (!prepared.complete.insertions().is_empty()).then(WriterContext::default);
        let (sketches, steps, splices) = (prepared.sketches, prepared.steps(), VecDeque::new());
        Splicer { format, outline, sketches, steps, splices, context, skipped: 0..0, has_failed: false }
    }

    fn end(&mut self) {
        let Splicer { format, outline, sketches, steps, splices, context, has_failed, .. } = self;
        steps.end(&mut |step| {
            let writer =
                RecordWriter { format: *format, outline, sketches, context: context.as_mut() }.step(step, splices);
            *has_failed |= writer.is_none();
        });
    }
}

/// Writes changed and inserted records.
struct RecordWriter<'a> {
    format: &'a dyn Format,
    outline: &'a Outline,
    sketches: &'a Sketches,
    context: Option<&'a mut WriterContext>,
}

impl RecordWriter<'_> {
    fn step(&mut self, step: &EditStep<'_, '_>, splices: &mut VecDeque<Splice>) -> Option<()> {
        match step {
            EditStep::Keep { number, event } => {
                if let Some(context) = &mut self.context {
                    let begins = context.records == 0 || self.sketches.begins_record(*number);
                    context.add(std::slice::from_ref(*event), begins);
                }
            }
            EditStep::Change(changed) => {
                let mut start = changed.numbers.start;
                while start < changed.numbers.end {
                    let end = self.sketches.record_end(start)?.min(changed.numbers.end);
                    self.record(changed, &(start..end), splices)?;
                    start = end;
                }
            }
            EditStep::Append(inserted) => {
                let operation = SpliceOperation::Append(self.written(inserted));
                splices.push_back(Splice { at: Span::default(), operation });
            }
        }
        Some(())
    }

    fn record(
        &mut self,
        changed: &ChangedEvents<'_>,
        range: &Range<usize>,
        splices: &mut VecDeque<Splice>,
    ) -> Option<()> {
        let events = changed.events.get(range.start - changed.numbers.start..range.end - changed.numbers.start)?;
        let result = changed.record(range);
        let at = events.first()?.at;
        if !result.inserted.is_empty() {
            let operation = SpliceOperation::InsertBefore(self.written(&result.inserted));
            splices.push_back(Splice { at: at?, operation });
        }
        if result.is_changed {
            let operation = match result.remaining.is_empty() {
                true => SpliceOperation::Remove,
                false => {
                    let events: Vec<Event<'static>> = result.remaining.into_iter().cloned().collect();
                    SpliceOperation::Replace(fragment(self.format, self.outline, &events)?)
                }
            };
            splices.push_back(Splice { at: at?, operation });
        }
        if let Some(context) = &mut self.context {
            context.add(events, true);
        }
        Some(())
    }

    /// The records of inserted events. The writer first sees the records of the context, so that it writes no second header and
    /// continues from the record before.
    fn written(&self, events: &[&Event<'static>]) -> Vec<Vec<u8>> {
        let mut writing = Writing::new(self.format, self.outline);
        if let Some(context) = &self.context {
            context.each(&mut |event| drop(writing.event(event)));
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

impl WriterContext {
    /// Adds events of a record of the source.
    fn add(&mut self, events: &[Event<'_>], begins: bool) {
        if begins {
            self.records += 1;
            let before = std::mem::take(&mut self.last);
            if before.iter().any(|event| running_total(event).is_some()) {
                self.total.clone_from(&before);
            }
            if before.first().is_some_and(|event| event.id.is_some() && event.thread.is_none()) {
                self.linked = before;
            }
        }
        let record = if self.records == 1 { &mut self.first } else { &mut self.last };
        record.extend(events.iter().map(|event| event.clone().into_owned()));
    }

    fn each(&self, visit: &mut dyn FnMut(&Event<'static>)) {
        self.first.iter().chain(&self.total).chain(&self.linked).chain(&self.last).for_each(visit);
    }
}
