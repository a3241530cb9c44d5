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
    let mut problems = Vec::new();
    let mut streams: Vec<Stream<'_>> = Vec::new();
    for (source, input) in inputs.iter_mut().enumerate() {
        let reading = Reading::new(input.format, Wanted::All);
        match input.source.pass() {
            Ok(pass) => {
                let waiting = CheckRepeats::new(Waiting::default());
                streams.push(Stream { source, pass, reading: Some(reading), waiting, clock: None });
            }
            Err(error) => problems.push((source, error.into())),
        }
    }
    let mut buffer = vec![0; CHUNK_SIZE];
    loop {
        for stream in &mut streams {
            problems.extend(stream.fill(&mut buffer).err().map(|error| (stream.source, error)));
        }
        streams.retain(|stream| !stream.waiting.sink.0.is_empty());
        // At equal times the first source precedes: it starts the others.
        let Some(next) = streams.iter_mut().min_by_key(|stream| (stream.due(), stream.source)) else { break };
        if let Some(event) = next.next() {
            sink.event(next.source, &event);
        }
    }
    problems
}

struct Stream<'i> {
    source: usize,
    pass: Box<dyn Read + 'i>,
    reading: Option<Reading>,
    waiting: CheckRepeats<Waiting>,
    /// The latest time it stated.
    clock: Option<i64>,
}

/// Events that are read and not yet due.
#[derive(Default)]
struct Waiting(VecDeque<Event<'static>>);

impl Sink for Waiting {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push_back(event.clone().into_owned());
    }
}

impl Stream<'_> {
    /// Reads until an event waits.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), CommandError> {
        while self.waiting.sink.0.is_empty() {
            let Some(reading) = &mut self.reading else { return Ok(()) };
            let read = self.pass.read(buffer);
            match read {
                Ok(length) if length > 0 => reading.feed(buffer.get(..length).unwrap_or_default(), &mut self.waiting),
                Ok(_) | Err(_) => {
                    if let Some(reading) = self.reading.take() {
                        reading.end(&mut self.waiting);
                        self.waiting.finish();
                    }
                    read?;
                }
            }
        }
        Ok(())
    }

    /// When the next event is due. An event without a time follows the one before it; if no time is known yet, the next known
    /// one counts, and a source without times keeps its position among the sources.
    fn due(&self) -> i64 {
        let next = || self.waiting.sink.0.iter().find_map(moment);
        let own = self.waiting.sink.0.front().and_then(moment);
        let due = own.max(self.clock).or_else(next);
        due.unwrap_or(if self.source == 0 { i64::MIN } else { i64::MAX })
    }

    fn next(&mut self) -> Option<Event<'static>> {
        let event = self.waiting.sink.0.pop_front()?;
        self.clock = self.clock.max(moment(&event));
        Some(event)
    }
}

fn moment(event: &Event<'_>) -> Option<i64> {
    event.time.as_ref()?.to_millis()
}
