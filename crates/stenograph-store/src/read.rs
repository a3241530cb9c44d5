//! Reads the events of one source, from its beginning or from a record on, until the caller has enough.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use stenograph::format::{Format, Wanted};
use stenograph::model::Span;
use stenograph::read::{Reading, Sink};
use stenograph::redact::{RecordSyntax, RedactionSink, Redactor, SourceRedactor};

use crate::databases;
use crate::{Error, Problem, Source};

/// How many bytes to read at a time.
const CHUNK_SIZE: usize = 256 << 10;

/// Whether to continue reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// More events are wanted.
    Continue,
    /// The reader has found what it wants.
    Stop,
}

/// Passes bytes to a reader. With a redactor, it masks their secrets first, line by line; the positions of events are then those in
/// the masked bytes.
struct Feeder<'r> {
    reading: Reading,
    redactor: Option<SourceRedactor<'r>>,
}

impl<'r> Feeder<'r> {
    fn new(reading: Reading, format: &dyn Format, redactor: Option<&'r Redactor>) -> Feeder<'r> {
        let redactor = redactor.map(|redactor| SourceRedactor::new(redactor, RecordSyntax::of(format)));
        Feeder { reading, redactor }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        match &mut self.redactor {
            Some(redactor) => redactor.feed(bytes, &mut Masked { reading: &mut self.reading, sink }),
            None => self.reading.feed(bytes, sink),
        }
    }

    fn end(mut self, sink: &mut dyn Sink) {
        if let Some(redactor) = self.redactor.take() {
            redactor.end(&mut Masked { reading: &mut self.reading, sink });
        }
        self.reading.end(sink);
    }
}

/// Reads masked bytes.
struct Masked<'m> {
    reading: &'m mut Reading,
    sink: &'m mut dyn Sink,
}

impl RedactionSink for Masked<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.reading.feed(bytes, self.sink);
    }
}

/// Reads a source once, in chunks, until `flow` stops the read. `progress` receives how many bytes were consumed.
pub fn source<S: Sink>(
    source: &mut Source,
    format: &'static dyn Format,
    sink: &mut S,
    progress: impl Fn(u64),
    flow: impl Fn(&S) -> Flow,
) -> Result<(), Error> {
    source_masked(source, format, None, sink, progress, flow)
}

/// Reads a source as [`source`] does, with its secrets masked if there is a redactor.
pub(crate) fn source_masked<S: Sink>(
    source: &mut Source,
    format: &'static dyn Format,
    redactor: Option<&Redactor>,
    sink: &mut S,
    progress: impl Fn(u64),
    flow: impl Fn(&S) -> Flow,
) -> Result<(), Error> {
    let (consumed, place) = (source.consumed(), source.place().clone());
    let mut pass = source.pass()?;
    let mut reading = Feeder::new(Reading::new(format, Wanted::All), format, redactor);
    let mut buffer = vec![0; CHUNK_SIZE];
    loop {
        let length = match pass.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) => {
                // The events before the damage are still useful.
                reading.end(sink);
                return Err(Error::from_system(&place, Problem::Unreadable, error));
            }
        };
        reading.feed(buffer.get(..length).unwrap_or_default(), sink);
        progress(consumed());
        if flow(sink) == Flow::Stop {
            return Ok(());
        }
    }
    reading.end(sink);
    Ok(())
}

/// Reads a plain file from a record on, until `flow` stops the read.
pub fn file_from<S: Sink>(
    path: &Path,
    format: &'static dyn Format,
    at: Span,
    sink: &mut S,
    flow: impl Fn(&S) -> Flow,
) -> Result<(), Error> {
    file_from_masked(path, format, at, None, sink, flow)
}

/// Reads a file as [`file_from`] does, with its secrets masked if there is a redactor.
pub(crate) fn file_from_masked<S: Sink>(
    path: &Path,
    format: &'static dyn Format,
    at: Span,
    redactor: Option<&Redactor>,
    sink: &mut S,
    flow: impl Fn(&S) -> Flow,
) -> Result<(), Error> {
    let unreadable = |error| Error::at(path, Problem::Unreadable, error);
    let mut file = databases::open_file(path).map_err(unreadable)?;
    file.seek(SeekFrom::Start(at.offset)).map_err(unreadable)?;
    let mut reading = Feeder::new(Reading::from_line(format, Wanted::All, at), format, redactor);
    let mut buffer = vec![0; CHUNK_SIZE];
    loop {
        let length = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(error)),
        };
        reading.feed(buffer.get(..length).unwrap_or_default(), sink);
        if flow(sink) == Flow::Stop {
            return Ok(());
        }
    }
    reading.end(sink);
    Ok(())
}
