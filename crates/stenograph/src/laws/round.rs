//! The laws about round trips: *echo*, *return*, *scar* and *carry*.

use super::{Case, coverage, difference};
use crate::Error;
use crate::convert::{Carry, ConversionMethod, convert, rewrite_own};
use crate::frame::{Framing, Items};
use crate::model::{NoteKind, Outline};
use crate::read;
use crate::write::{Edit, fragment, splice};

/// A splice without edits is the source; replacing one record by itself leaves the same events.
pub(super) fn echo(case: &mut Case<'_>) {
    let mut copy = Vec::new();
    if splice(&mut { case.source }, &[], &mut copy).is_err() || copy != case.source {
        case.broken("echo", "an untouched copy differs", None);
    }
    let outline = Outline::of(case.format.info().name, &case.found.events);
    let records = case.records().len();
    let step = (records / case.effort.places.clamp(1, 12)).max(1);
    let mut all = Vec::new();
    for events in case.records().into_iter().step_by(step) {
        let (Some(at), Some(with)) =
            (events.first().and_then(|event| event.at), fragment(case.format, &outline, events))
        else {
            continue;
        };
        let mut copy = Vec::new();
        if let Err(error) = splice(&mut { case.source }, &[Edit { at, with }], &mut copy) {
            all.push((at, error.to_string()));
            continue;
        }
        let (before, after) = (usize::try_from(at.offset).unwrap_or(0), usize::try_from(at.end()).unwrap_or(0));
        let around = (case.source.get(..before).unwrap_or_default(), case.source.get(after..).unwrap_or_default());
        if !copy.starts_with(around.0) || !copy.ends_with(around.1) {
            all.push((at, "bytes around a replaced record changed".to_owned()));
        }
        if let Some(what) = difference(&case.found.events, &read::all(case.format, &copy).events) {
            all.push((at, format!("after replacing a record with itself, {what}")));
        }
    }
    for (at, what) in all {
        case.broken("echo", what, Some(at));
    }
}

/// With y = write(read x): read y = read x, and write(read y) = y. Lossy formats may lose on the way to y, but not after.
pub(super) fn returns(case: &mut Case<'_>) {
    // An oversize record has no bytes to write, and a note says so.
    if case.found.notes.iter().any(|note| note.kind == NoteKind::Oversize) {
        return;
    }
    let mut once = Vec::new();
    let outcome = match rewrite_own(case.format, &mut { case.source }, &mut once) {
        Ok(outcome) => outcome,
        Err(error) => return case.broken("return", error.to_string(), None),
    };
    if !case.format.info().traits.lossy {
        if let Some(what) = difference(&case.found.events, &read::all(case.format, &once).events) {
            case.broken("return", what, None);
        }
        let losses = outcome.losses.losses;
        if let Some(((kind, field, how), count)) = losses.iter().next() {
            let at = count.examples.first().copied();
            case.broken("return", format!("{} {field} {}", kind.name(), how.name()), at);
        }
    }
    let mut twice = Vec::new();
    if let Err(error) = rewrite_own(case.format, &mut once.as_slice(), &mut twice) {
        case.broken("return", error.to_string(), None);
    }
    if once != twice {
        let at = once.iter().zip(&twice).take_while(|(a, b)| a == b).count();
        let around = |bytes: &[u8]| {
            let (from, to) = (at.saturating_sub(60), (at + 100).min(bytes.len()));
            String::from_utf8_lossy(bytes.get(from..to).unwrap_or_default()).into_owned()
        };
        let what = format!("when written again, it differs at byte {at}:\n  {}\n  {}", around(&once), around(&twice));
        case.broken("return", what, None);
    }
}

/// A line that is not a record, with bytes that are not text, returns to its position like any record.
pub(super) fn scarred(case: &mut Case<'_>) {
    const SCAR: &[u8] = b"not \xff a record\n";
    let traits = case.format.info().traits;
    if traits.lossy
        || case.format.info().framing == Framing::Items(Items::Members)
        || coverage::is_document(case.source, case.format.info().framing)
    {
        return;
    }
    // Insert it after a record in the first part of the source.
    let window = case.source.get(..case.source.len().min(64 << 10)).unwrap_or_default();
    let Some(at) = window.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1) else { return };
    let (before, after) = window.split_at(at);
    let scarred = [before, SCAR, after].concat();
    let expected = read::all(case.format, &scarred);
    let mut once = Vec::new();
    if let Err(error) = rewrite_own(case.format, &mut scarred.as_slice(), &mut once) {
        return case.broken("scar", error.to_string(), None);
    }
    if memchr::memmem::find(&once, SCAR.trim_ascii_end()).is_none() {
        case.broken("scar", "a line that is not a record is not written back unchanged", None);
    }
    if let Some(what) = difference(&expected.events, &read::all(case.format, &once).events) {
        case.broken("scar", format!("with a line that is not a record, {what}"), None);
    }
}

/// Converting with the source embedded, and back, gives the same bytes.
pub(super) fn carry(case: &mut Case<'_>) {
    let from = case.format;
    // A source without records has nothing to carry.
    let document = matches!(from.info().framing, Framing::Items(_));
    if case.found.events.is_empty() || document && !coverage::is_document(case.source, from.info().framing) {
        return;
    }
    let others =
        crate::formats::FORMATS.iter().filter(|to| to.info().traits.carries && to.info().name != from.info().name);
    // On large sources one other format is enough: it depends on the source, so that many sources try them all.
    let others: Vec<_> = others.collect();
    let picked = case.source.len() % others.len().max(1);
    let most = if case.effort.places < 16 { 1 } else { others.len() };
    for to in others.iter().cycle().skip(picked).take(most) {
        let mut there = Vec::new();
        match convert(from, &mut { case.source }, **to, &mut there, Carry::Embed) {
            // The output embeds the source that this source itself embeds.
            Ok(outcome) if outcome.carries.as_deref() != Some(from.info().name) => continue,
            Ok(_) => {}
            // Nothing of this source has a place in that format.
            Err(
                Error::ReadOnlyFormat(_) | Error::NoRoomToCarry(_) | Error::NothingCarries | Error::TooLargeToCarry,
            ) => continue,
            Err(error) => {
                case.broken("carry", format!("to {}: {error}", to.info().name), None);
                continue;
            }
        }
        let mut back = Vec::new();
        match convert(**to, &mut there.as_slice(), from, &mut back, Carry::Omit) {
            Ok(outcome) if outcome.method != ConversionMethod::Restored => {
                case.broken("carry", format!("from {}: {:?}", to.info().name, outcome.method), None);
            }
            Ok(_) if back != case.source => {
                let at = back.iter().zip(case.source).take_while(|(a, b)| a == b).count();
                case.broken("carry", format!("from {}: differs at byte {at}", to.info().name), None);
            }
            Ok(_) => {}
            Err(error) => case.broken("carry", format!("from {}: {error}", to.info().name), None),
        }
    }
}
