//! Restores a carried source. If every run is present, in order and sealed, the result is the source itself, copied without
//! being parsed. `merge_edits.rs` handles files that were edited.

use std::io::{self, Write};

use super::{Outcome, Source, Survey, Way, each_piece, mend};
use crate::carry::Carried;
use crate::format::Format;
use crate::frame::{Frame, Framer, Place, RECORD_SIZE_MAX};
use crate::json::values;

/// Restores the carried source.
pub fn restore(
    from: &dyn Format,
    source: &mut dyn Source,
    to: &dyn Format,
    out: &mut dyn Write,
    survey: Survey,
) -> io::Result<Outcome> {
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
        return Err(error);
    }
    out.flush()?;
    let mut losses = survey.read;
    losses.kept = losses.read.clone();
    let Survey { outline, notes, notes_count, .. } = survey;
    Ok(Outcome { outline, losses, notes, notes_count, way: Way::Restored, ..Outcome::default() })
}

/// Whether the records carry all of a source of that format, untouched.
pub fn is_intact(from: &dyn Format, source: &mut dyn Source, of: &str) -> io::Result<bool> {
    Ok(examine(from, source, of)? == State::default())
}

/// How a carrying file differs from the file that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// Records that are not as they were written.
    edited: u64,
    /// Records that carry nothing, because they were added later.
    added: u64,
    /// Runs that are missing.
    missing: u64,
}

fn examine(from: &dyn Format, source: &mut dyn Source, of: &str) -> io::Result<State> {
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
    /// A run in an edited record.
    Edited(Carried),
    /// No run: an added record.
    Bare,
}

/// Gives every run of a carrying file, in order.
pub fn each_run(from: &dyn Format, source: &mut dyn Source, visit: &mut dyn FnMut(Run)) -> io::Result<()> {
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
