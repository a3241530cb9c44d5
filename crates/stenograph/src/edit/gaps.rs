//! Stretches of a source that nobody has to read: a plan may take out most of a large file, and what goes is known by its place. Only
//! a file of lines whose records can be read one by one has gaps. What a stretch is passed over for is not known here.

use std::io;
use std::ops::Range;

use super::sketch::Sketches;
use crate::format::{Format, Wanted};
use crate::frame::Framing;
use crate::model::{Event, Note, Span};
use crate::read::{Reading, Sink};

/// A shorter stretch is read: to begin again behind it costs more.
const SIZE_MIN: u64 = 16 << 10;

/// A stretch that is passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// Its events.
    numbers: Range<usize>,
    /// Where it begins and ends.
    bytes: Range<u64>,
    /// The line on which what follows begins.
    line: u64,
}

/// The gaps of a source: the stretches of records that `passes` says can be passed over. It is asked about records that change
/// together.
pub(super) fn gaps(format: &dyn Format, events: &Sketches, passes: impl Fn(&Range<usize>) -> bool) -> Vec<Gap> {
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
        let is_apart = line > last_line;
        match &mut open {
            Some(gap) if passes(&numbers) => gap.numbers.end = numbers.end,
            Some(gap) if is_apart => {
                gap.bytes.end = offset;
                gap.line = line;
                found.extend(open.take());
            }
            // The line goes on with something that stays.
            Some(_) => open = None,
            None if is_apart && passes(&numbers) => open = Some(Gap { numbers, bytes: offset..u64::MAX, line: 0 }),
            None => {}
        }
        (last_line, last_offset) = (end_line, Some(end));
    }
    found.extend(open);
    found.retain(|gap| gap.bytes.end - gap.bytes.start >= SIZE_MIN);
    found
}

/// Takes what is read between gaps.
pub(super) trait GapSink: Sink {
    /// Takes notice that these events were passed over.
    fn pass_over(&mut self, numbers: Range<usize>);
}

/// A source being read without its gaps.
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

    /// Takes the next bytes of the source.
    pub(super) fn feed(&mut self, chunk: &[u8], sink: &mut dyn GapSink) {
        let mut rest = chunk;
        while !rest.is_empty() {
            self.turn(sink);
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

    /// Begins or ends a gap where one begins or ends.
    fn turn(&mut self, sink: &mut dyn GapSink) {
        let Some(gap) = self.gaps.first() else { return };
        if self.offset == gap.bytes.start
            && let Some(reading) = self.reading.take()
        {
            reading.end(sink);
            sink.pass_over(gap.numbers.clone());
        } else if self.offset == gap.bytes.end {
            let at = Span { offset: self.offset, length: 0, line: gap.line };
            self.reading = Some(Reading::from_line(self.format, Wanted::All, at));
            self.gaps = self.gaps.get(1..).unwrap_or_default();
        }
    }

    /// The offset before which more input changes nothing.
    pub(super) fn settled(&self) -> u64 {
        self.reading.as_ref().map_or(self.offset, Reading::stable_until)
    }

    /// Takes notice that the source ends.
    pub(super) fn end(self, sink: &mut dyn GapSink) {
        if let Some(reading) = self.reading {
            reading.end(sink);
        }
    }
}

/// Reads all of a stream but its gaps, and shows each event with its number.
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

/// How much of a source is read at a time.
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

    fn note(&mut self, _note: Note) {}
}

impl GapSink for Numbered<'_> {
    fn pass_over(&mut self, numbers: Range<usize>) {
        self.number = numbers.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use crate::edit::{Original, Plan, Sketched, Way, apply};

    fn line(number: usize) -> String {
        let text = "word ".repeat(1000);
        format!("{{\"v\":1,\"kind\":\"message\",\"id\":\"{number}\",\"role\":\"user\",\"content\":\"{text}\"}}\n\n")
    }

    #[test]
    fn what_goes_from_a_large_file_goes_line_by_line_wherever_a_piece_of_it_ends() {
        let source: String = (0..300).map(line).collect();
        let original = Original::read(Registry::built_in().named("steno").unwrap(), source.as_bytes()).unwrap();
        let mut plan = Plan::of(&original.events);
        let stays = |number: &usize| *number < 20 || (150..153).contains(number) || *number == 290;
        (0..300).filter(|number| !stays(number)).for_each(|number| plan.remove(number));
        let applied = apply(&original, &plan).unwrap();
        // The blank line behind each record is nobody's, and stays.
        let left = |number: usize| if stays(&number) { line(number) } else { "\n".to_owned() };
        let left: String = (0..300).map(left).collect();
        assert!(applied.is_exact() && applied.way == Way::Spliced, "{applied:?}");
        assert!(applied.bytes == left.as_bytes());
        assert_eq!(applied.followed, 0);
    }

    #[test]
    fn what_stands_around_gaps_is_read_as_without_them() {
        let source: String = (0..40).map(line).collect();
        let format = Registry::built_in().named("steno").unwrap();
        let events = crate::read::all(format, source.as_bytes()).events;
        let sketches = events.sketches();
        for (gone, count) in [(vec![0..10, 12..30, 33..40], 3), (vec![5..6, 20..25], 1), (vec![0..20, 20..40], 1)] {
            let passes = |numbers: &Range<usize>| gone.iter().any(|gone| gone.contains(&numbers.start));
            let gaps = gaps(format, &sketches, passes);
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
