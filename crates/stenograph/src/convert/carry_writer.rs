//! Embeds the source in the written records, split into runs without gaps: each run begins where the previous one ends, so that
//! blank lines and records without a place in the target go into the next record. The last run takes the rest.

use crate::Error;
use crate::carry::{Carried, attach, seal};
use crate::frame::RECORD_SIZE_MAX;
use crate::model::Event;
use crate::write::OutputPiece;

/// Embeds the source in the records of a converted file.
#[derive(Debug)]
pub struct CarryWriter {
    of: String,
    within: &'static str,
    /// The session of the embedded source.
    session: Option<String>,
    /// Source bytes that are in no run yet.
    pending: Vec<u8>,
    /// The offset of the first of them.
    start: u64,
    /// The end of the source record that was written last.
    reached: u64,
    number: u64,
    /// The last record, its run and the pieces after it: whether it is the last one is unknown until another one comes.
    last: Option<(Vec<u8>, Vec<u8>, Vec<OutputPiece>)>,
    payload: Payload,
    /// The number of the last forwarded run. All parts of a record may have the run of their record; in a native stream each
    /// part has its own.
    forwarded: Option<u64>,
}

/// The source that the runs contain.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Payload {
    /// The converted source.
    Source,
    /// The source that the converted source carries.
    Carried,
}

/// The largest run: source bytes without a place in the target must not fill the memory, and a record with a run must stay
/// readable.
const RUN_SIZE_MAX: usize = RECORD_SIZE_MAX;

impl CarryWriter {
    /// A writer that embeds the source, of format `of` and with this session, in records of format `within`.
    pub fn new(of: &str, session: Option<String>, within: &'static str) -> CarryWriter {
        CarryWriter::with(of, session, within, Payload::Source)
    }

    /// A writer that embeds the source which the records of the converted source carry.
    pub fn forwarding(of: &str, session: Option<String>, within: &'static str) -> CarryWriter {
        CarryWriter::with(of, session, within, Payload::Carried)
    }

    /// The format of the embedded source.
    pub fn of(&self) -> &str {
        &self.of
    }

    fn with(of: &str, session: Option<String>, within: &'static str, payload: Payload) -> CarryWriter {
        CarryWriter {
            of: of.to_owned(),
            within,
            session,
            pending: Vec::new(),
            start: 0,
            reached: 0,
            number: 0,
            last: None,
            payload,
            forwarded: None,
        }
    }

    /// Takes the next bytes of the source.
    pub fn source(&mut self, chunk: &[u8]) -> Result<(), Error> {
        if self.payload == Payload::Carried {
            return Ok(());
        }
        if self.pending.len() + chunk.len() > RUN_SIZE_MAX {
            return Err(Error::TooLargeToCarry);
        }
        self.pending.extend_from_slice(chunk);
        Ok(())
    }

    /// Takes an event that is not written: a later record takes the run of its record.
    pub fn skip(&mut self, event: &Event<'_>) -> Result<(), Error> {
        self.forward(event)
    }

    /// Takes over the run that the record of an event carries.
    fn forward(&mut self, event: &Event<'_>) -> Result<(), Error> {
        if self.payload == Payload::Carried
            && let Some(carried) = event.carried.as_deref().and_then(Carried::parse)
            && self.forwarded != Some(carried.number)
        {
            if self.pending.len() + carried.source.len() > RUN_SIZE_MAX {
                return Err(Error::TooLargeToCarry);
            }
            self.forwarded = Some(carried.number);
            self.pending.extend_from_slice(&carried.source);
        }
        Ok(())
    }

    /// Embeds runs in the pieces that were written for an event.
    pub fn embed(&mut self, event: &Event<'_>, pieces: Vec<OutputPiece>) -> Result<Vec<OutputPiece>, Error> {
        self.forward(event)?;
        if let Some(at) = event.at {
            self.reached = self.reached.max(at.end());
        }
        let mut out = Vec::with_capacity(pieces.len());
        for piece in pieces {
            self.push(piece, &mut out)?;
        }
        Ok(out)
    }

    fn push(&mut self, piece: OutputPiece, out: &mut Vec<OutputPiece>) -> Result<(), Error> {
        match (piece, &mut self.last) {
            (OutputPiece::Record(record), _) => {
                self.flush(Position::Within, out)?;
                let run = self.run();
                self.last = Some((record, run, Vec::new()));
            }
            (glue @ OutputPiece::Glue(_), Some((_, _, after))) => after.push(glue),
            (glue @ OutputPiece::Glue(_), None) => out.push(glue),
        }
        Ok(())
    }

    /// The source up to the end of the record that was read last.
    fn run(&mut self) -> Vec<u8> {
        if self.payload == Payload::Carried {
            return std::mem::take(&mut self.pending);
        }
        let length = usize::try_from(self.reached.saturating_sub(self.start)).unwrap_or(0).min(self.pending.len());
        let rest = self.pending.split_off(length);
        self.start += length as u64;
        std::mem::replace(&mut self.pending, rest)
    }

    fn flush(&mut self, position: Position, out: &mut Vec<OutputPiece>) -> Result<(), Error> {
        let Some((record, source, after)) = self.last.take() else { return Ok(()) };
        let last = position == Position::Last;
        let (of, within) = (self.of.clone(), Some(self.within.to_owned()));
        let (session, number) = (self.session.clone(), self.number);
        let carried = Carried { of, within, session, number, last, seal: seal(&record), source };
        self.number += 1;
        let record = attach(&record, &carried);
        if record.len() > RECORD_SIZE_MAX {
            return Err(Error::TooLargeToCarry);
        }
        out.push(OutputPiece::Record(record));
        out.extend(after);
        Ok(())
    }

    /// Ends the file: the last record takes the rest of the source.
    pub fn finish(mut self, pieces: Vec<OutputPiece>) -> Result<Vec<OutputPiece>, Error> {
        let mut out = Vec::new();
        for piece in pieces {
            self.push(piece, &mut out)?;
        }
        match &mut self.last {
            Some((_, run, _)) => run.append(&mut self.pending),
            None if self.pending.is_empty() => {}
            None => return Err(Error::NothingCarries),
        }
        self.flush(Position::Last, &mut out)?;
        Ok(out)
    }
}

/// The position of a record in the output.
#[derive(Clone, Copy, PartialEq)]
enum Position {
    Within,
    Last,
}
