//! Gives a carried source back. When every run is there, in order and sealed, the answer is the source itself, copied without
//! being read. Whatever was touched since is left to `mend.rs`.

use std::io::Write;

use super::{Outcome, Source, Survey, Way, each_piece, mend};
use crate::Error;
use crate::carry::Carried;
use crate::format::Format;
use crate::frame::{Frame, Framer, Place, RECORD_SIZE_MAX};
use crate::json::values;

/// Puts the source together again.
pub fn restore(
    from: &dyn Format,
    source: &mut dyn Source,
    to: &dyn Format,
    out: &mut dyn Write,
    survey: Survey,
) -> Result<Outcome, Error> {
    let state = examine(from, source, to.info().name)?;
    if state != State::default() {
        let State { edited, added, missing } = state;
        return mend::mend(from, source, to, out, survey, Way::Mended { edited, added, missing });
    }
    let mut failed = None;
    each_run(from, source, &mut |run| {
        if let (Run::Sealed(carried), None) = (run, &failed) {
            failed = out.write_all(&carried.source).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    out.flush()?;
    let mut losses = survey.read;
    losses.kept = losses.read.clone();
    let Survey { outline, notes, notes_count, .. } = survey;
    Ok(Outcome { outline, losses, notes, notes_count, way: Way::Restored, ..Outcome::default() })
}

/// Whether the records carry all of a source of that format, untouched.
pub fn is_intact(from: &dyn Format, source: &mut dyn Source, of: &str) -> Result<bool, Error> {
    Ok(examine(from, source, of)? == State::default())
}

/// What was touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// Records that are not as they were written.
    edited: u64,
    /// Records that carry nothing: they were put in between, or at the end.
    added: u64,
    /// Runs that are not there.
    missing: u64,
}

fn examine(from: &dyn Format, source: &mut dyn Source, of: &str) -> Result<State, Error> {
    let mut state = State::default();
    let (mut next, mut ended) = (0_u64, false);
    each_run(from, source, &mut |run| {
        let carried = match run {
            Run::Bare => {
                state.added += 1;
                return;
            }
            Run::Edited(carried) => {
                state.edited += 1;
                carried
            }
            Run::Sealed(carried) => carried,
        };
        if carried.number != next || carried.of != of || ended {
            state.missing = state.missing.saturating_add(carried.number.abs_diff(next).max(1));
        }
        next = carried.number.saturating_add(1);
        ended = carried.last;
    })?;
    if !ended {
        state.missing = state.missing.saturating_add(1);
    }
    Ok(state)
}

/// What a record of a carrying file holds.
pub enum Run {
    /// A run, in a record that is as it was written.
    Sealed(Carried),
    /// A run, in a record that was edited.
    Edited(Carried),
    /// No run: something that was put in between.
    Bare,
}

/// Gives every run of a carrying file, in order.
pub fn each_run(from: &dyn Format, source: &mut dyn Source, visit: &mut dyn FnMut(Run)) -> Result<(), Error> {
    let mut framer = Framer::new(from.info().framing, RECORD_SIZE_MAX);
    let mut each = |frame: Frame<'_>| {
        let record = match frame {
            Frame::Record(record) => record,
            Frame::Oversize(_) => return visit(Run::Bare),
        };
        // What stands around the items of a document was written as glue, and carries nothing.
        if matches!(record.place, Place::Prologue | Place::Epilogue) {
            return;
        }
        let text = String::from_utf8_lossy(record.bytes);
        let (found, end) = values(&text);
        for (_, value) in found {
            visit(match Carried::open(value) {
                None => Run::Bare,
                Some((carried, plain)) if carried.seal == crate::carry::seal(plain.as_bytes()) => Run::Sealed(carried),
                Some((carried, _)) => Run::Edited(carried),
            });
        }
        if !text.get(end..).unwrap_or_default().trim().is_empty() {
            visit(Run::Bare);
        }
    };
    each_piece(source, &mut |chunk| {
        framer.feed(chunk, &mut each);
        Ok(())
    })?;
    framer.end(&mut each);
    Ok(())
}
