//! Embeds the source in the written records, split into runs without gaps: each run begins where the previous one ends, so that
//! blank lines and records without a place in the target go into the next record. The last run takes the rest.

use std::io;

use crate::carry::{Carried, attach, seal};
use crate::frame::RECORD_SIZE_MAX;
use crate::model::Event;
use crate::write::Written;

/// Embeds the source in the records of a converted file.
#[derive(Debug)]
pub struct CarryWriter {
    of: String,
    within: &'static str,
    /// Source bytes that are in no run yet.
    pending: Vec<u8>,
    /// The offset of the first of them.
    start: u64,
    /// The end of the source record that was written last.
    reached: u64,
    number: u64,
    /// The last record and what follows it: it is not known to be the last until another one comes.
    held: Option<(Vec<u8>, Vec<u8>, Vec<Written>)>,
    load: Load,
    /// The number of the run that was taken over last. The parts of a record may all have the run of their record, and in a native
    /// stream each part has a run of its own.
    forwarded: Option<u64>,
}

/// The source that the runs contain.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    Source,
    Carried,
}

/// The largest run: source bytes without a place in the target must not fill the memory, and a record with a run must stay
/// readable.
const RUN_SIZE_MAX: usize = RECORD_SIZE_MAX;

impl CarryWriter {
    /// A writer that embeds the source, of format `of`, in records of format `within`.
    pub fn new(of: &str, within: &'static str) -> CarryWriter {
        CarryWriter::with(of, within, Load::Source)
    }

    /// A writer that embeds the source which the records of the converted source carry.
    pub fn forwarding(of: &str, within: &'static str) -> CarryWriter {
        CarryWriter::with(of, within, Load::Carried)
    }

    /// The format of the embedded source.
    pub fn of(&self) -> &str {
        &self.of
    }

    fn with(of: &str, within: &'static str, load: Load) -> CarryWriter {
        CarryWriter {
            of: of.to_owned(),
            within,
            pending: Vec::new(),
            start: 0,
            reached: 0,
            number: 0,
            held: None,
            load,
            forwarded: None,
        }
    }

    /// Takes the next bytes of the source.
    pub fn source(&mut self, chunk: &[u8]) -> io::Result<()> {
        if self.load == Load::Carried {
            return Ok(());
        }
        if self.pending.len() + chunk.len() > RUN_SIZE_MAX {
            return Err(too_large());
        }
        self.pending.extend_from_slice(chunk);
        Ok(())
    }

    /// An event that is not written: what its record carries rides on.
    pub fn passed_over(&mut self, event: &Event<'_>) {
        self.forward(event);
    }

    /// Takes over the run that the record of an event carries.
    fn forward(&mut self, event: &Event<'_>) {
        if self.load == Load::Carried
            && let Some(carried) = event.carried.as_deref().and_then(Carried::parse)
            && self.forwarded != Some(carried.number)
        {
            self.forwarded = Some(carried.number);
            self.pending.extend_from_slice(&carried.source);
        }
    }

    /// Lays runs into what was written for an event.
    pub fn load(&mut self, event: &Event<'_>, pieces: Vec<Written>) -> io::Result<Vec<Written>> {
        self.forward(event);
        if let Some(at) = event.at {
            self.reached = self.reached.max(at.end());
        }
        let mut out = Vec::with_capacity(pieces.len());
        for piece in pieces {
            self.lay(piece, &mut out)?;
        }
        Ok(out)
    }

    fn lay(&mut self, piece: Written, out: &mut Vec<Written>) -> io::Result<()> {
        match (piece, &mut self.held) {
            (Written::Record(record), _) => {
                self.release(Place::Within, out)?;
                let run = self.run();
                self.held = Some((record, run, Vec::new()));
            }
            (glue @ Written::Glue(_), Some((_, _, after))) => after.push(glue),
            (glue @ Written::Glue(_), None) => out.push(glue),
        }
        Ok(())
    }

    /// The source up to the end of the record that was read last.
    fn run(&mut self) -> Vec<u8> {
        if self.load == Load::Carried {
            return std::mem::take(&mut self.pending);
        }
        let length = usize::try_from(self.reached.saturating_sub(self.start)).unwrap_or(0).min(self.pending.len());
        let rest = self.pending.split_off(length);
        self.start += length as u64;
        std::mem::replace(&mut self.pending, rest)
    }

    fn release(&mut self, place: Place, out: &mut Vec<Written>) -> io::Result<()> {
        let Some((record, source, after)) = self.held.take() else { return Ok(()) };
        let last = place == Place::Last;
        let (of, within) = (self.of.clone(), Some(self.within.to_owned()));
        let carried = Carried { of, within, number: self.number, last, seal: seal(&record), source };
        self.number += 1;
        let loaded = attach(&record, &carried);
        if loaded.len() > RECORD_SIZE_MAX {
            return Err(too_large());
        }
        out.push(Written::Record(loaded));
        out.extend(after);
        Ok(())
    }

    /// Ends the file: the last record takes the rest of the source.
    pub fn finish(mut self, pieces: Vec<Written>) -> io::Result<Vec<Written>> {
        let mut out = Vec::new();
        for piece in pieces {
            self.lay(piece, &mut out)?;
        }
        match &mut self.held {
            Some((_, run, _)) => run.append(&mut self.pending),
            None if self.pending.is_empty() => {}
            None => {
                let said = "nothing of this source has a place in the target, so nothing can carry it along";
                return Err(io::Error::new(io::ErrorKind::Unsupported, said));
            }
        }
        self.release(Place::Last, &mut out)?;
        Ok(out)
    }
}

/// The position of a record in the output.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Within,
    Last,
}

fn too_large() -> io::Error {
    let said = "too much of the source would have to ride in one record for it to be carried along";
    io::Error::new(io::ErrorKind::Unsupported, said)
}
