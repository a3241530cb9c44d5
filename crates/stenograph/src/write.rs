//! Writing: events in, bytes out. A [`Writer`] makes the records of one format; this file groups events into records for it and
//! attaches carried sources.

use std::io;

use crate::format::Format;
use crate::model::{Event, Outline, Span};

/// Whether events come from the format they are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// They do: the extra fields of the events complete the record.
    Own,
    /// They come from another format: the writer makes records as the agent would.
    Foreign,
}

/// Writes the records of one format.
pub trait Writer: Send {
    /// Writes the events of one source record. A writer omits an event that its format cannot express: the loss is measured,
    /// not declared.
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput);

    /// Writes the buffered records as if the source ended here, and keeps them buffered: for a file that others read while it
    /// grows. It omits what is still undecided.
    fn held(&self, _out: &mut WriterOutput) {}

    /// Writes the buffered records and the end of the file.
    fn finish(&mut self, _out: &mut WriterOutput) {}
}

/// The output of a writer: records, and the bytes between them.
#[derive(Debug, Default)]
pub struct WriterOutput {
    pieces: Vec<OutputPiece>,
}

/// One piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPiece {
    /// A record.
    Record(Vec<u8>),
    /// Newlines, brackets, commas, headers.
    Glue(Vec<u8>),
}

impl WriterOutput {
    /// A record.
    pub fn record(&mut self, bytes: impl Into<Vec<u8>>) {
        self.pieces.push(OutputPiece::Record(bytes.into()));
    }

    /// The bytes between records.
    pub fn glue(&mut self, bytes: impl Into<Vec<u8>>) {
        self.pieces.push(OutputPiece::Glue(bytes.into()));
    }

    /// A record and a newline.
    pub fn line(&mut self, record: impl Into<Vec<u8>>) {
        self.record(record);
        self.glue("\n");
    }

    /// Takes the output written so far.
    pub fn take(&mut self) -> Vec<OutputPiece> {
        std::mem::take(&mut self.pieces)
    }
}

/// The most events of one record that are grouped. Records of real files have a few hundred at most.
pub(crate) const PARTS_MAX: usize = 65_536;

/// A file being written: groups the events of each source record and passes them to the writer together.
pub struct Writing {
    writer: Box<dyn Writer>,
    gathered: Vec<Event<'static>>,
    output: WriterOutput,
    /// Whether the events come from this format, so that their records keep their carried values.
    own: bool,
}

impl std::fmt::Debug for Writing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Writing").field("gathered", &self.gathered.len()).finish_non_exhaustive()
    }
}

impl Writing {
    /// Starts a file of this format.
    pub fn new(format: &dyn Format, outline: &Outline) -> Writing {
        let own = outline.origin == format.info().name;
        Writing { writer: format.writer(outline), gathered: Vec::new(), output: WriterOutput::default(), own }
    }

    /// Writes one event.
    pub fn event(&mut self, event: &Event<'_>) -> Vec<OutputPiece> {
        let follows = self.gathered.last().is_some_and(|last| event.part.follows(last.part));
        if !follows || self.gathered.len() >= PARTS_MAX {
            self.flush();
        }
        if event.part.of <= 1 {
            self.write(std::slice::from_ref(event));
        } else {
            self.gathered.push(event.clone().into_owned());
            if event.part.is_last() {
                self.flush();
            }
        }
        self.output.take()
    }

    fn flush(&mut self) {
        if !self.gathered.is_empty() {
            let gathered = std::mem::take(&mut self.gathered);
            self.write(&gathered);
        }
    }

    fn write(&mut self, events: &[Event<'_>]) {
        let before = self.output.pieces.len();
        self.writer.record(events, &mut self.output);
        let carried = events.first().and_then(|event| event.carried.as_deref()).filter(|_| self.own);
        let made = self.output.pieces.get_mut(before..).unwrap_or_default();
        if let (Some(raw), Some(OutputPiece::Record(record))) =
            (carried, made.iter_mut().find(|piece| matches!(piece, OutputPiece::Record(_))))
        {
            *record = crate::carry::attach_raw(record, raw);
        }
    }

    /// The buffered output, as if the source ended here.
    pub fn held(&self) -> Vec<OutputPiece> {
        let mut output = WriterOutput::default();
        self.writer.held(&mut output);
        output.take()
    }

    /// Ends the file.
    pub fn finish(mut self) -> Vec<OutputPiece> {
        self.flush();
        self.writer.finish(&mut self.output);
        self.output.take()
    }
}

/// Writes a whole session that is in memory.
pub fn all(format: &dyn Format, outline: &Outline, events: &[Event<'_>]) -> Vec<u8> {
    let mut writing = Writing::new(format, outline);
    let mut bytes = Vec::new();
    for event in events {
        append(&mut bytes, writing.event(event));
    }
    append(&mut bytes, writing.finish());
    bytes
}

fn append(bytes: &mut Vec<u8>, pieces: Vec<OutputPiece>) {
    for piece in pieces {
        let (OutputPiece::Record(piece) | OutputPiece::Glue(piece)) = piece;
        bytes.extend_from_slice(&piece);
    }
}

/// The bytes of the record that these events make, to replace the record they came from; `None` if the writer does not make
/// exactly one record from them.
pub fn fragment(format: &dyn Format, outline: &Outline, events: &[Event<'_>]) -> Option<Vec<u8>> {
    let mut writing = Writing::new(format, outline);
    let mut pieces: Vec<OutputPiece> = events.iter().flat_map(|event| writing.event(event)).collect();
    pieces.extend(writing.finish());
    let mut records = pieces.into_iter().filter_map(|piece| match piece {
        OutputPiece::Record(bytes) => Some(bytes),
        OutputPiece::Glue(_) => None,
    });
    let only = records.next()?;
    records.next().is_none().then_some(only)
}

/// A byte range of a source and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The replaced range.
    pub at: Span,
    /// The replacement.
    pub with: Vec<u8>,
}

/// Copies a source with some ranges replaced; all other bytes stay the same. The edits are in order and do not overlap.
pub fn splice(source: &mut dyn io::Read, edits: &[Edit], out: &mut dyn io::Write) -> io::Result<()> {
    let mut offset = 0;
    for edit in edits {
        let Some(gap) = edit.at.offset.checked_sub(offset) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "edits overlap or are out of order"));
        };
        copy(source, gap, out)?;
        out.write_all(&edit.with)?;
        copy(source, edit.at.length, &mut io::sink())?;
        offset = edit.at.end();
    }
    io::copy(source, out)?;
    Ok(())
}

fn copy(source: &mut dyn io::Read, length: u64, out: &mut dyn io::Write) -> io::Result<()> {
    let copied = io::copy(&mut io::Read::take(source, length), out)?;
    if copied == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
