//! A source read piece by piece: for sources that are larger than memory. It holds the events of one piece.

use std::collections::VecDeque;
use std::io::{self, Cursor, Read};
use std::iter::Peekable;

use crate::Error;
use crate::format::{Format, Wanted};
use crate::model::{Event, Note};
use crate::read::{Reading, Sink};
use crate::write::PARTS_MAX;

/// How many bytes are read at a time.
const CHUNK_SIZE: usize = 64 << 10;

/// How many notes are kept.
const NOTES_MAX: usize = 256;

/// The events of a source, one after the other. An error of the reader ends it.
///
/// A [`Sink`] and [`Reading::feed_all`] do the same without copying events, for programs that need every bit of speed.
#[derive(Debug)]
pub struct EventStream<R> {
    format: &'static dyn Format,
    input: io::Chain<Cursor<Vec<u8>>, R>,
    /// `None` once the source has ended.
    reading: Option<Reading>,
    buffer: Vec<u8>,
    found: Found,
}

impl<R: Read> EventStream<R> {
    /// Reads a source of a known format: first `head`, then what `rest` gives.
    pub fn new(format: &'static dyn Format, head: Vec<u8>, rest: R) -> EventStream<R> {
        EventStream {
            format,
            input: Cursor::new(head).chain(rest),
            reading: Some(Reading::new(format, Wanted::All)),
            buffer: vec![0; CHUNK_SIZE],
            found: Found::default(),
        }
    }

    /// The format of the source.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// What reading found wrong so far, the first few hundred.
    pub fn notes(&self) -> &[Note] {
        &self.found.notes
    }

    /// How many notes there are so far.
    pub fn notes_count(&self) -> u64 {
        self.found.notes_count
    }

    /// Gives the events of each record together.
    pub fn records(self) -> RecordStream<R> {
        RecordStream(self.peekable())
    }

    /// Reads the next piece.
    fn advance(&mut self) -> io::Result<()> {
        let Some(reading) = &mut self.reading else { return Ok(()) };
        match self.input.read(&mut self.buffer) {
            Ok(0) => {
                if let Some(reading) = self.reading.take() {
                    reading.end(&mut self.found);
                }
                Ok(())
            }
            Ok(length) => {
                reading.feed(self.buffer.get(..length).unwrap_or_default(), &mut self.found);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => {
                self.reading = None;
                Err(error)
            }
        }
    }
}

impl<R: Read> Iterator for EventStream<R> {
    type Item = Result<Event<'static>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.found.events.is_empty() && self.reading.is_some() {
            if let Err(error) = self.advance() {
                return Some(Err(error.into()));
            }
        }
        self.found.events.pop_front().map(Ok)
    }
}

/// The records of a source, one after the other, each as its events.
#[derive(Debug)]
pub struct RecordStream<R: Read>(Peekable<EventStream<R>>);

impl<R: Read> Iterator for RecordStream<R> {
    type Item = Result<Vec<Event<'static>>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut record = match self.0.next()? {
            Ok(event) => vec![event],
            Err(error) => return Some(Err(error)),
        };
        while let Some(last) = record.last().filter(|_| record.len() < PARTS_MAX) {
            let part = last.part;
            let follows =
                |next: &Result<Event<'static>, Error>| next.as_ref().is_ok_and(|next| next.part.follows(part));
            match self.0.next_if(follows) {
                Some(Ok(next)) => record.push(next),
                Some(Err(_)) | None => break,
            }
        }
        Some(Ok(record))
    }
}

/// What the last pieces gave.
#[derive(Debug, Default)]
struct Found {
    events: VecDeque<Event<'static>>,
    notes: Vec<Note>,
    notes_count: u64,
}

impl Sink for Found {
    fn event(&mut self, event: &Event<'_>) {
        self.events.push_back(event.clone().into_owned());
    }

    fn note(&mut self, note: Note) {
        self.notes_count += 1;
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }
}
