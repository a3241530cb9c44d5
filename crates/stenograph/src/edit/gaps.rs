//! Gaps: stretches of a source that do not have to be read. A plan may remove most of a large file, and the places of removed records
//! are known. Only files of lines whose records can be read one by one have gaps. The caller decides which records to skip.

use std::io;
use std::ops::Range;

use super::sketch::Sketches;
use crate::format::{Format, Wanted};
use crate::frame::Framing;
use crate::model::{Event, Span};
use crate::read::{Reading, Sink};

/// A shorter stretch is read: starting again after it costs more.
const SIZE_MIN: u64 = 16 << 10;

/// A stretch that is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// The numbers of its events.
    numbers: Range<usize>,
    /// Its offsets.
    bytes: Range<u64>,
    /// The line after it.
    line: u64,
}

/// The gaps of a source: the stretches of records for which `can_skip` is true. It is called with records that change together.
pub(super) fn gaps(format: &dyn Format, events: &Sketches, can_skip: impl Fn(&Range<usize>) -> bool) -> Vec<Gap> {
    let info = format.info();
    if info.framing != Framing::Lines || !info.traits.pieces || info.traits.lossy {
        return Vec::new();
    }
    let mut found: Vec<Gap> = Vec::new();
    let mut open: Option<Gap> = None;
    let (mut start, mut last_line, mut last_offset) = (0, 0, None);
    while start < events.len() {
        let numbers = start..events.bundle_end(start);
        start = numbers.end;
        let first = events.get(numbers.start).and_then(|event| event.offset().zip(event.line()));
        let ending = events.get(numbers.end - 1).and_then(|event| event.offset().zip(event.line()));
        let (Some((offset, line)), Some((end, end_line))) = (first, ending) else { return Vec::new() };
        if last_offset.is_some_and(|last| last >= offset) || end < offset {
            return Vec::new();
        }
        // A gap begins and ends with a line.
        let is_new_line = line > last_line;
        match &mut open {
            Some(gap) if can_skip(&numbers) => gap.numbers.end = numbers.end,
            Some(gap) if is_new_line => {
                gap.bytes.end = offset;
                gap.line = line;
                found.extend(open.take());
            }
            // A kept record is on the same line.
            Some(_) => open = None,
            None if is_new_line && can_skip(&numbers) => open = Some(Gap { numbers, bytes: offset..u64::MAX, line: 0 }),
            None => {}
        }
        (last_line, last_offset) = (end_line, Some(end));
    }
    found.extend(open);
    found.retain(|gap| gap.bytes.end - gap.bytes.start >= SIZE_MIN);
    found
}

/// Receives the events between gaps.
pub(super) trait GapSink: Sink {
    /// Called when these events were skipped.
    fn skip(&mut self, numbers: Range<usize>);
}

/// Reads a source without its gaps.
pub(super) struct GapReading<'g> {
    format: &'g dyn Format,
    gaps: &'g [Gap],
    /// `None` within a gap.
    reading: Option<Reading>,
    offset: u64,
}

impl<'g> GapReading<'g> {
    pub(super) fn new(format: &'g dyn Format, gaps: &'g [Gap]) -> GapReading<'g> {
        GapReading { format, gaps, reading: Some(Reading::new(format, Wanted::All)), offset: 0 }
    }

    /// Reads the next bytes of the source.
    pub(super) fn feed(&mut self, chunk: &[u8], sink: &mut dyn GapSink) {
        let mut rest = chunk;
        while !rest.is_empty() {
            self.enter_or_leave_gap(sink);
            let until = match self.gaps.first() {
                Some(gap) if self.offset >= gap.bytes.start => gap.bytes.end,
                Some(gap) => gap.bytes.start,
                None => u64::MAX,
            };
            let length = usize::try_from(until - self.offset).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at(length);
            if let Some(reading) = &mut self.reading {
                reading.feed(now, sink);
            }
            self.offset += length as u64;
            rest = later;
        }
    }

    /// Stops reading at the start of a gap, and starts again at its end.
    fn enter_or_leave_gap(&mut self, sink: &mut dyn GapSink) {
        let Some(gap) = self.gaps.first() else { return };
        if self.offset == gap.bytes.start
            && let Some(reading) = self.reading.take()
        {
            reading.end(sink);
            sink.skip(gap.numbers.clone());
        } else if self.offset == gap.bytes.end {
            let at = Span { offset: self.offset, length: 0, line: gap.line };
            self.reading = Some(Reading::from_line(self.format, Wanted::All, at));
            self.gaps = self.gaps.get(1..).unwrap_or_default();
        }
    }

    /// The offset before which more input changes nothing.
    pub(super) fn stable_until(&self) -> u64 {
        self.reading.as_ref().map_or(self.offset, Reading::stable_until)
    }

    /// Ends the source.
    pub(super) fn end(self, sink: &mut dyn GapSink) {
        if let Some(reading) = self.reading {
            reading.end(sink);
        }
    }
}

/// Reads a stream without its gaps, and calls `each` with every event and its number.
pub(super) fn each_between(
    format: &dyn Format,
    stream: &mut dyn io::Read,
    gaps: &[Gap],
    each: &mut dyn FnMut(usize, &Event<'_>),
) -> io::Result<()> {
    let mut numbered = Numbered { number: 0, each };
    let mut reading = GapReading::new(format, gaps);
    let mut buffer = vec![0; CHUNK_SIZE];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => reading.feed(buffer.get(..length).unwrap_or_default(), &mut numbered),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    reading.end(&mut numbered);
    Ok(())
}

/// The number of bytes that are read at a time.
pub(super) const CHUNK_SIZE: usize = 256 << 10;

struct Numbered<'f> {
    number: usize,
    each: &'f mut dyn FnMut(usize, &Event<'_>),
}

impl Sink for Numbered<'_> {
    fn event(&mut self, event: &Event<'_>) {
        (self.each)(self.number, event);
        self.number += 1;
    }
}

impl GapSink for Numbered<'_> {
    fn skip(&mut self, numbers: Range<usize>) {
        self.number = numbers.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use crate::edit::{EditMethod, Original, Plan, Sketched, apply};

    fn line(number: usize) -> String {
        let text = "word ".repeat(1000);
        format!("{{\"v\":1,\"kind\":\"message\",\"id\":\"{number}\",\"role\":\"user\",\"content\":\"{text}\"}}\n\n")
    }

    #[test]
    fn removed_lines_of_a_large_file_are_removed_whole_at_every_chunk_boundary() {
        let source: String = (0..300).map(line).collect();
        let original = Original::read(Registry::built_in().named("steno").unwrap(), source.as_bytes()).unwrap();
        let mut plan = Plan::of(&original.events);
        let is_kept = |number: &usize| *number < 20 || (150..153).contains(number) || *number == 290;
        (0..300).filter(|number| !is_kept(number)).for_each(|number| plan.remove(number));
        let applied = apply(&original, &plan).unwrap();
        // The blank line after each record belongs to no record and stays.
        let left = |number: usize| if is_kept(&number) { line(number) } else { "\n".to_owned() };
        let left: String = (0..300).map(left).collect();
        assert!(applied.is_exact() && applied.method == EditMethod::Spliced, "{applied:?}");
        assert!(applied.bytes == left.as_bytes());
        assert_eq!(applied.also_changed, 0);
    }

    #[test]
    fn events_around_gaps_are_read_as_without_gaps() {
        let source: String = (0..40).map(line).collect();
        let format = Registry::built_in().named("steno").unwrap();
        let events = crate::read::all(format, source.as_bytes()).events;
        let sketches = events.sketches();
        for (removed, count) in [(vec![0..10, 12..30, 33..40], 3), (vec![5..6, 20..25], 1), (vec![0..20, 20..40], 1)] {
            let can_skip = |numbers: &Range<usize>| removed.iter().any(|removed| removed.contains(&numbers.start));
            let gaps = gaps(format, &sketches, can_skip);
            assert_eq!(gaps.len(), count);
            let mut read = Vec::new();
            each_between(format, &mut source.as_bytes(), &gaps, &mut |number, event| {
                read.push((number, event.clone().into_owned()));
            })
            .unwrap();
            let is_read = |number: &usize| !gaps.iter().any(|gap| gap.numbers.contains(number));
            let expected: Vec<_> = (0..40).filter(is_read).map(|number| (number, events[number].clone())).collect();
            assert_eq!(read, expected);
        }
    }
}
