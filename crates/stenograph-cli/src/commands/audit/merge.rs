//! Reads several sources as one, in the order of their times: a sub-agent works while its parent waits. Each source is read in
//! chunks, so that only a few events of each are in memory.

use std::collections::VecDeque;
use std::io::Read;

use stenograph::format::Wanted;
use stenograph::model::Event;
use stenograph::read::{Reading, Sink};
use stenograph::repeat::CheckRepeats;

use crate::error::CommandError;
use crate::input::TranscriptInput;

/// How many bytes of a source are read at a time.
const CHUNK_SIZE: usize = 64 << 10;

/// Receives the events of several sources.
pub trait MergeSink {
    /// The next event, and the number of its source.
    fn event(&mut self, source: usize, event: &Event<'_>);
}

/// Merges sources. Returns errors with the numbers of their sources; the events before the damage are passed on.
pub fn merge(inputs: &mut [TranscriptInput], sink: &mut dyn MergeSink) -> Vec<(usize, CommandError)> {
    let mut errors = Vec::new();
    let mut sources: Vec<MergedSource<'_>> = Vec::new();
    for (number, input) in inputs.iter_mut().enumerate() {
        let reading = Reading::new(input.format, Wanted::All);
        match input.source.pass() {
            Ok(pass) => {
                let buffered = CheckRepeats::new(BufferedEvents::default());
                sources.push(MergedSource { number, pass, reading: Some(reading), buffered, clock: None });
            }
            Err(error) => errors.push((number, error.into())),
        }
    }
    let mut buffer = vec![0; CHUNK_SIZE];
    loop {
        for source in &mut sources {
            errors.extend(source.read_until_event(&mut buffer).err().map(|error| (source.number, error)));
        }
        sources.retain(|source| !source.buffered.sink.0.is_empty());
        // At equal times, the first source comes first: the main agent starts the others.
        let Some(next) = sources.iter_mut().min_by_key(|source| (source.next_time(), source.number)) else { break };
        if let Some(event) = next.next() {
            sink.event(next.number, &event);
        }
    }
    errors
}

struct MergedSource<'i> {
    number: usize,
    pass: Box<dyn Read + 'i>,
    reading: Option<Reading>,
    buffered: CheckRepeats<BufferedEvents>,
    /// The latest time it stated.
    clock: Option<i64>,
}

/// Events that are read but not yet passed on.
#[derive(Default)]
struct BufferedEvents(VecDeque<Event<'static>>);

impl Sink for BufferedEvents {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push_back(event.clone().into_owned());
    }
}

impl MergedSource<'_> {
    /// Reads until at least one event is buffered.
    fn read_until_event(&mut self, buffer: &mut [u8]) -> Result<(), CommandError> {
        while self.buffered.sink.0.is_empty() {
            let Some(reading) = &mut self.reading else { return Ok(()) };
            let read = self.pass.read(buffer);
            match read {
                Ok(length) if length > 0 => reading.feed(buffer.get(..length).unwrap_or_default(), &mut self.buffered),
                Ok(_) | Err(_) => {
                    if let Some(reading) = self.reading.take() {
                        reading.end(&mut self.buffered);
                        self.buffered.finish();
                    }
                    read?;
                }
            }
        }
        Ok(())
    }

    /// The time of the next event. An event without a time has the time of the event before it. At the beginning of a source, it has
    /// the first time that follows. A source without any times comes in the order of the sources.
    fn next_time(&self) -> i64 {
        let next = || self.buffered.sink.0.iter().find_map(moment);
        let own = self.buffered.sink.0.front().and_then(moment);
        own.max(self.clock).or_else(next).unwrap_or(if self.number == 0 { i64::MIN } else { i64::MAX })
    }

    fn next(&mut self) -> Option<Event<'static>> {
        let event = self.buffered.sink.0.pop_front()?;
        self.clock = self.clock.max(moment(&event));
        Some(event)
    }
}

fn moment(event: &Event<'_>) -> Option<i64> {
    event.time.as_ref()?.to_millis()
}
