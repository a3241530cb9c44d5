//! Reads a result back and compares it with the plan, event by event. It reads the source and the result at the same time, in chunks.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;

use super::apply::{EditMethod, Edited, PreparedPlan};
use super::gaps::{CHUNK_SIZE, GapReading, GapSink};
use super::original::{EditSource, NoteCounts, Rewritable};
use super::step::Steps;
use crate::loss::{LossComparison, LossReport};
use crate::model::{Event, FormatInfo, Kind, Note, NoteKind};
use crate::read::Sink;

/// The limit of kept notes of one kind, and of kept field names.
const KEPT_MAX: usize = 1000;

/// Reads a result back and compares it with the plan.
pub(super) fn read_back(
    source: &mut EditSource<'_>,
    prepared: &PreparedPlan<'_>,
    out: &mut dyn Rewritable,
    method: EditMethod,
) -> io::Result<Edited> {
    let (is_equal, also_changed, result) = compare(source, prepared, out)?;
    let differences = if is_equal { LossReport::default() } else { differences(source, prepared, out)? };
    let notes = result.new_notes(&source.notes);
    Ok(Edited { method, differences, notes, also_changed, untouched_totals: result.totals, count: result.count })
}

/// Whether plan and result are equal, the number of events that changed as a consequence of others, and the result.
fn compare(
    source: &mut EditSource<'_>,
    prepared: &PreparedPlan<'_>,
    out: &mut dyn Rewritable,
) -> io::Result<(bool, u64, ResultQueue)> {
    let mut is_equal = true;
    let (mut expected, mut result) = streams(source, prepared, out)?;
    loop {
        match (expected.next()?, result.next()?) {
            (None, None) => return Ok((is_equal, expected.queue.steps.also_changed(), result.queue)),
            (Some(planned), Some(found)) => is_equal = is_equal && is_same(&planned, &found),
            (Some(_), None) | (None, Some(_)) => is_equal = false,
        }
    }
}

fn is_same(planned: &Event<'static>, found: &Event<'static>) -> bool {
    planned.equals_except_position(found) || without_spelling(planned).equals_except_position(&without_spelling(found))
}

/// The event without fields that only spell its record, such as a parent that is `null` or absent, and a list from which the edit
/// removed everything.
fn without_spelling(event: &Event<'static>) -> Event<'static> {
    let mut event = event.clone();
    let formats: Vec<&FormatInfo> = event.extra.known().map(|(info, _)| info).collect();
    for info in formats {
        info.spelling.iter().for_each(|path| event.extra.drop_field(info.name, path));
        let Some(extra) = event.extra.get(info.name) else { continue };
        let empty = extra.0.iter().filter(|(key, _)| extra.raw(key) == Some("[]"));
        let empty: Vec<String> = empty.map(|(key, _)| key.to_string()).collect();
        empty.iter().for_each(|key| event.extra.drop_field(info.name, key));
    }
    event
}

fn differences(
    source: &mut EditSource<'_>,
    prepared: &PreparedPlan<'_>,
    out: &mut dyn Rewritable,
) -> io::Result<LossReport> {
    let name = source.format.info().name;
    let mut comparison = LossComparison::new(move |origin| origin == name);
    let (mut expected, mut result) = streams(source, prepared, out)?;
    loop {
        let (planned, found) = (expected.next()?, result.next()?);
        if planned.is_none() && found.is_none() {
            return Ok(comparison.finish());
        }
        if let Some(event) = planned {
            comparison.source(&without_spelling(&event));
        }
        if let Some(event) = found {
            comparison.target(&without_spelling(&event));
        }
    }
}

/// The planned events, and the events of the result.
fn streams<'s>(
    source: &'s mut EditSource<'_>,
    prepared: &'s PreparedPlan<'_>,
    out: &'s mut dyn Rewritable,
) -> io::Result<(EventStream<'s, PlannedQueue<'s>>, EventStream<'s, ResultQueue>)> {
    out.flush()?;
    let format = source.format;
    let planned = PlannedQueue { steps: prepared.steps(), events: VecDeque::new() };
    let reading = Some(GapReading::new(format, &prepared.gaps));
    let expected = EventStream { stream: source.source.open()?, reading, buffer: vec![0; CHUNK_SIZE], queue: planned };
    let reading = Some(GapReading::new(format, &[]));
    let queue = ResultQueue::default();
    let result = EventStream { stream: out.reread()?, reading, buffer: vec![0; CHUNK_SIZE], queue };
    Ok((expected, result))
}

/// Reads the events of a stream one at a time.
struct EventStream<'s, Q> {
    stream: Box<dyn Read + 's>,
    /// `None` when the stream has ended.
    reading: Option<GapReading<'s>>,
    buffer: Vec<u8>,
    queue: Q,
}

/// Holds the events that were read and not yet returned.
trait EventQueue: GapSink {
    fn pop(&mut self) -> Option<Event<'static>>;

    fn end(&mut self) {}
}

impl<Q: EventQueue> EventStream<'_, Q> {
    fn next(&mut self) -> io::Result<Option<Event<'static>>> {
        loop {
            if let Some(event) = self.queue.pop() {
                return Ok(Some(event));
            }
            let Some(reading) = &mut self.reading else { return Ok(None) };
            match self.stream.read(&mut self.buffer) {
                Ok(0) => {
                    if let Some(reading) = self.reading.take() {
                        reading.end(&mut self.queue);
                    }
                    self.queue.end();
                }
                Ok(length) => reading.feed(self.buffer.get(..length).unwrap_or_default(), &mut self.queue),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The events that the plan makes of the source.
struct PlannedQueue<'w> {
    steps: Steps<'w>,
    events: VecDeque<Event<'static>>,
}

impl Sink for PlannedQueue<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let events = &mut self.events;
        self.steps
            .event(event, &mut |step| step.each_result(&mut |event| events.push_back(event.clone().into_owned())));
    }
}

impl GapSink for PlannedQueue<'_> {
    fn skip(&mut self, numbers: Range<usize>) {
        self.steps.skip(&numbers);
    }
}

impl EventQueue for PlannedQueue<'_> {
    fn pop(&mut self) -> Option<Event<'static>> {
        self.events.pop_front()
    }

    fn end(&mut self) {
        let events = &mut self.events;
        self.steps.end(&mut |step| step.each_result(&mut |event| events.push_back(event.clone().into_owned())));
    }
}

/// The events of the result, and what the report needs.
#[derive(Default)]
struct ResultQueue {
    events: VecDeque<Event<'static>>,
    count: u64,
    /// The fields of headers that state totals of the whole session other than 0.
    totals: Vec<&'static str>,
    counts: NoteCounts,
    /// The last notes of each kind.
    notes: [VecDeque<Note>; NoteKind::ALL.len()],
}

impl Sink for ResultQueue {
    fn event(&mut self, event: &Event<'_>) {
        self.count += 1;
        if event.kind() == Kind::Fact && self.totals.len() < KEPT_MAX {
            self.totals.extend(totals(event));
        }
        self.events.push_back(event.clone().into_owned());
    }

    fn note(&mut self, note: Note) {
        self.counts.add(note.kind);
        let at = NoteKind::ALL.iter().position(|known| *known == note.kind);
        if let Some(notes) = at.and_then(|at| self.notes.get_mut(at)) {
            if notes.len() >= KEPT_MAX {
                notes.pop_front();
            }
            notes.push_back(note);
        }
    }
}

impl GapSink for ResultQueue {
    fn skip(&mut self, _numbers: Range<usize>) {}
}

impl EventQueue for ResultQueue {
    fn pop(&mut self) -> Option<Event<'static>> {
        self.events.pop_front()
    }
}

impl ResultQueue {
    /// The notes that the source does not have.
    fn new_notes(&self, before: &NoteCounts) -> Vec<Note> {
        let mut new = Vec::new();
        for (kind, notes) in NoteKind::ALL.into_iter().zip(&self.notes) {
            let more = self.counts.of(kind).saturating_sub(before.of(kind));
            new.extend(notes.iter().rev().take(more).cloned());
        }
        new
    }
}

fn totals(event: &Event<'_>) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (info, extra) in event.extra.known() {
        extra.each("", &mut |path, raw| found.extend(info.totals.iter().filter(|total| **total == path && raw != "0")));
    }
    found
}
