//! Several sources read as one, in the order of their times: what a sub-agent does happens while the one that sent it waits. Each source is read
//! piece by piece, so that only some events of each are held.

use std::collections::VecDeque;
use std::io::Read;

use stenograph::format::Want;
use stenograph::model::{Event, Note};
use stenograph::read::{Reading, Sink};
use stenograph::repeat::CheckRepeats;

use crate::error::CommandError;
use crate::input::Input;

/// How much of a source is read at a time.
const CHUNK_SIZE: usize = 64 << 10;

/// Takes the events of several sources.
pub trait Together {
    /// The next event, and the number of its source.
    fn event(&mut self, source: usize, event: &Event<'_>);
}

/// Reads sources as one. Gives what could not be read, with the number of its source; what stands before the damage is given.
pub fn merge(inputs: &mut [Input], sink: &mut dyn Together) -> Vec<(usize, CommandError)> {
    let mut problems = Vec::new();
    let mut streams: Vec<Stream<'_>> = Vec::new();
    for (source, input) in inputs.iter_mut().enumerate() {
        let reading = Reading::new(input.format, Want::All);
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
        // Of equal moments the one that was named first has the first word: it sends the others out.
        let Some(next) = streams.iter_mut().min_by_key(|stream| (stream.due(), stream.source)) else { break };
        if let Some(event) = next.next() {
            sink.event(next.source, &event);
        }
    }
    problems
}

/// One source of several.
struct Stream<'i> {
    source: usize,
    pass: Box<dyn Read + 'i>,
    reading: Option<Reading>,
    waiting: CheckRepeats<Waiting>,
    /// The latest moment that it told of.
    clock: Option<i64>,
}

/// Events that were read and whose time has not come.
#[derive(Default)]
struct Waiting(VecDeque<Event<'static>>);

impl Sink for Waiting {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push_back(event.clone().into_owned());
    }

    fn note(&mut self, _note: Note) {}
}

impl Stream<'_> {
    /// Reads on until an event waits.
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

    /// When its next event is due. One without a time follows the one before it; where none is known yet, the next that is known counts, and
    /// a source without any has its turn in the order in which it was named.
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
    Some(event.time.as_ref()?.instant()?.as_millisecond())
}
