//! Reads a result and compares it with what was planned, event by event: the source with the plan on one side, the result on the other,
//! both read piece by piece.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;

use super::apply::{Edited, Way, Work};
use super::gaps::{CHUNK_SIZE, GapReading, GapSink};
use super::original::{EditSource, NoteCounts, Rewritable};
use super::step::Steps;
use crate::loss::{LossComparison, LossReport};
use crate::model::{Event, FormatInfo, Kind, Note, NoteKind};
use crate::read::Sink;

/// How many notes of a kind are kept, and how many names of fields.
const KEPT_MAX: usize = 1000;

/// Reads a result and compares it with what was planned.
pub(super) fn read_back(
    source: &mut EditSource<'_>,
    work: &Work<'_>,
    out: &mut dyn Rewritable,
    way: Way,
) -> io::Result<Edited> {
    let (same, followed, found) = compare(source, work, out)?;
    let differs = if same { LossReport::default() } else { difference(source, work, out)? };
    let notes = found.new_notes(&source.notes);
    Ok(Edited { way, differs, notes, followed, untouched_totals: found.totals, count: found.count })
}

/// Whether both sides are the same, how many events changed that nobody planned to change, and what was found.
fn compare(source: &mut EditSource<'_>, work: &Work<'_>, out: &mut dyn Rewritable) -> io::Result<(bool, u64, Found)> {
    let mut same = true;
    let (mut expected, mut found) = sides(source, work, out)?;
    loop {
        match (expected.next()?, found.next()?) {
            (None, None) => return Ok((same, expected.sink.steps.followed(), found.sink)),
            (Some(planned), Some(found)) => same = same && is_same(&planned, &found),
            (Some(_), None) | (None, Some(_)) => same = false,
        }
    }
}

fn is_same(planned: &Event<'static>, found: &Event<'static>) -> bool {
    planned.equals_except_position(found) || unspelled(planned).equals_except_position(&unspelled(found))
}

/// The event without what only spells its record: a link that leads nowhere may be spelled or left out.
fn unspelled(event: &Event<'static>) -> Event<'static> {
    let mut event = event.clone();
    let formats: Vec<&FormatInfo> = event.extra.known().map(|(info, _)| info).collect();
    for info in formats {
        info.spelling.iter().for_each(|path| event.extra.drop_field(info.name, path));
    }
    event
}

fn difference(source: &mut EditSource<'_>, work: &Work<'_>, out: &mut dyn Rewritable) -> io::Result<LossReport> {
    let name = source.format.info().name;
    let mut comparison = LossComparison::new(move |origin| origin == name);
    let (mut expected, mut found) = sides(source, work, out)?;
    loop {
        let (planned, found) = (expected.next()?, found.next()?);
        if planned.is_none() && found.is_none() {
            return Ok(comparison.finish());
        }
        if let Some(event) = planned {
            comparison.source(&unspelled(&event));
        }
        if let Some(event) = found {
            comparison.target(&unspelled(&event));
        }
    }
}

/// What was planned, and what came of it.
fn sides<'s>(
    source: &'s mut EditSource<'_>,
    work: &'s Work<'_>,
    out: &'s mut dyn Rewritable,
) -> io::Result<(Side<'s, Planned<'s>>, Side<'s, Found>)> {
    out.flush()?;
    let format = source.format;
    let planned = Planned { steps: work.steps(), left: VecDeque::new() };
    let reading = Some(GapReading::new(format, &work.gaps));
    let expected = Side { stream: source.source.open()?, reading, buffer: vec![0; CHUNK_SIZE], sink: planned };
    let reading = Some(GapReading::new(format, &[]));
    let found = Side { stream: out.reread()?, reading, buffer: vec![0; CHUNK_SIZE], sink: Found::default() };
    Ok((expected, found))
}

/// Events that are read when somebody asks for the next one.
struct Side<'s, S> {
    stream: Box<dyn Read + 's>,
    /// `None` when the stream has ended.
    reading: Option<GapReading<'s>>,
    buffer: Vec<u8>,
    sink: S,
}

/// Where events wait until they are asked for.
trait Waiting: GapSink {
    fn pop(&mut self) -> Option<Event<'static>>;

    fn end(&mut self) {}
}

impl<S: Waiting> Side<'_, S> {
    fn next(&mut self) -> io::Result<Option<Event<'static>>> {
        loop {
            if let Some(event) = self.sink.pop() {
                return Ok(Some(event));
            }
            let Some(reading) = &mut self.reading else { return Ok(None) };
            match self.stream.read(&mut self.buffer) {
                Ok(0) => {
                    if let Some(reading) = self.reading.take() {
                        reading.end(&mut self.sink);
                    }
                    self.sink.end();
                }
                Ok(length) => reading.feed(self.buffer.get(..length).unwrap_or_default(), &mut self.sink),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The events that the plan leaves of the source.
struct Planned<'w> {
    steps: Steps<'w>,
    left: VecDeque<Event<'static>>,
}

impl Sink for Planned<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let left = &mut self.left;
        self.steps.event(event, &mut |step| step.each_left(&mut |event| left.push_back(event.clone().into_owned())));
    }

    fn note(&mut self, _note: Note) {}
}

impl GapSink for Planned<'_> {
    fn pass_over(&mut self, numbers: Range<usize>) {
        self.steps.pass_over(&numbers);
    }
}

impl Waiting for Planned<'_> {
    fn pop(&mut self) -> Option<Event<'static>> {
        self.left.pop_front()
    }

    fn end(&mut self) {
        let left = &mut self.left;
        self.steps.end(&mut |step| step.each_left(&mut |event| left.push_back(event.clone().into_owned())));
    }
}

/// The events of the result, and what is to be said about it.
#[derive(Default)]
struct Found {
    events: VecDeque<Event<'static>>,
    count: u64,
    /// The fields of headers that tell what a whole session took, where they tell of anything.
    totals: Vec<&'static str>,
    counts: NoteCounts,
    /// The last notes of each kind.
    notes: [VecDeque<Note>; NoteKind::ALL.len()],
}

impl Sink for Found {
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

impl GapSink for Found {
    fn pass_over(&mut self, _numbers: Range<usize>) {}
}

impl Waiting for Found {
    fn pop(&mut self) -> Option<Event<'static>> {
        self.events.pop_front()
    }
}

impl Found {
    /// Notes of which there are more than there were.
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
    for (info, residue) in event.extra.known() {
        residue
            .each("", &mut |path, raw| found.extend(info.totals.iter().filter(|total| **total == path && raw != "0")));
    }
    found
}
