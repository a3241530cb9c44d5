//! Restores a carried source. If every run is present, in order and sealed, the result is the source itself, copied without
//! being parsed. `merge_edits.rs` handles files that were edited.

use std::io::Write;

use super::{ConversionMethod, Outcome, Reopen, Survey, each_piece, merge_edits};
use crate::Error;
use crate::carry::Carried;
use crate::format::Format;
use crate::frame::{Frame, Framer, RECORD_SIZE_MAX, RecordPlace};
use crate::json::values;

/// Restores the carried source.
pub fn restore(
    from: &dyn Format,
    source: &mut dyn Reopen,
    to: &dyn Format,
    out: &mut dyn Write,
    survey: Survey,
) -> Result<Outcome, Error> {
    let state = examine(from, source, to.info().name)?;
    if state != CarryState::default() {
        let CarryState { edited, added, missing } = state;
        return merge_edits::merge_edits(
            from,
            source,
            to,
            out,
            survey,
            ConversionMethod::Merged { edited, added, missing },
        );
    }
    let mut failed = None;
    each_run(from, source, &mut |run| {
        if let (CarriedRun::Sealed(carried), None) = (run, &failed) {
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
    let outline = outline.finish();
    Ok(Outcome { outline, losses, notes, notes_count, method: ConversionMethod::Restored, ..Outcome::default() })
}

/// Whether the records carry a whole source of that format, unchanged.
pub fn is_intact(from: &dyn Format, source: &mut dyn Reopen, of: &str) -> Result<bool, Error> {
    Ok(examine(from, source, of)? == CarryState::default())
}

/// How a carrying file differs from the file that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CarryState {
    /// Records that were edited.
    edited: u64,
    /// Records that carry nothing, because they were added later.
    added: u64,
    /// Runs that are missing.
    missing: u64,
}

fn examine(from: &dyn Format, source: &mut dyn Reopen, of: &str) -> Result<CarryState, Error> {
    let mut state = CarryState::default();
    let (mut next, mut ended) = (0_u64, false);
    each_run(from, source, &mut |run| {
        let carried = match run {
            CarriedRun::Bare => {
                state.added += 1;
                return;
            }
            CarriedRun::Edited(carried) => {
                state.edited += 1;
                carried
            }
            CarriedRun::Sealed(carried) => carried,
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

/// The run in a record of a carrying file.
pub enum CarriedRun {
    /// A run in an unedited record.
    Sealed(Carried),
    /// A run in an edited record.
    Edited(Carried),
    /// No run: an added record.
    Bare,
}

/// Visits every run of a carrying file, in order.
pub fn each_run(from: &dyn Format, source: &mut dyn Reopen, visit: &mut dyn FnMut(CarriedRun)) -> Result<(), Error> {
    let mut framer = Framer::new(from.info().framing, RECORD_SIZE_MAX);
    let mut each = |frame: Frame<'_>| {
        let record = match frame {
            Frame::Record(record) => record,
            Frame::Oversize(_) => return visit(CarriedRun::Bare),
        };
        // The bytes around the items of a document are not records and carry nothing.
        if matches!(record.place, RecordPlace::Prologue | RecordPlace::Epilogue) {
            return;
        }
        let text = String::from_utf8_lossy(record.bytes);
        let (found, end) = values(&text);
        for (_, value) in found {
            visit(match Carried::open(value) {
                None => CarriedRun::Bare,
                Some((carried, plain)) if carried.seal == crate::carry::seal(plain.as_bytes()) => {
                    CarriedRun::Sealed(carried)
                }
                Some((carried, _)) => CarriedRun::Edited(carried),
            });
        }
        if !text.get(end..).unwrap_or_default().trim().is_empty() {
            visit(CarriedRun::Bare);
        }
    };
    each_piece(source, &mut |chunk| {
        framer.feed(chunk, &mut each);
        Ok(())
    })?;
    framer.end(&mut each);
    Ok(())
}
