//! The laws about how a source arrives: *hurt*, *chunks*, *growth*, *pieces* and *projection*.

use super::{Case, coverage::first_silent, difference};
use crate::format::Wanted;
use crate::frame::{Frame, Framer, RECORD_SIZE_MAX, RecordPlace};
use crate::ledger::{CallCounter, CallDetail};
use crate::model::{Event, Span};
use crate::read::{self, Collected, Reading};

/// Any prefix and any flipped byte: no panic, and no byte outside events and notes.
pub(super) fn hurt(case: &mut Case<'_>) {
    let framing = case.format.info().framing;
    // Reading a whole large source many times costs much and finds little: most of it is alike.
    let window = case.source.len().min(64 << 10);
    let source = case.source.get(..window).unwrap_or_default();
    for at in case.places_within(window, 64) {
        let prefix = source.get(..at).unwrap_or_default();
        if let Some(span) = first_silent(framing, prefix, &read::all(case.format, prefix)) {
            case.broken("hurt", format!("the first {at} bytes: a byte in no event and no note"), Some(span));
        }
        let mut flipped = source.to_vec();
        if let Some(byte) = flipped.get_mut(at) {
            *byte ^= 1 << (at % 8);
        }
        if let Some(span) = first_silent(framing, &flipped, &read::all(case.format, &flipped)) {
            case.broken("hurt", format!("byte {at} flipped: a byte in no event and no note"), Some(span));
        }
    }
}

fn fed(case: &Case<'_>, size: usize) -> Collected {
    let mut found = Collected::default();
    let mut reading = Reading::new(case.format, Wanted::All);
    case.source.chunks(size).for_each(|chunk| reading.feed(chunk, &mut found));
    reading.end(&mut found);
    found
}

/// Fed in chunks, a source gives the same events and notes.
pub(super) fn chunks(case: &mut Case<'_>) {
    let sizes: &[usize] = if case.source.len() > 1 << 20 { &[4096] } else { &[1, 7, 4096] };
    for size in sizes {
        let found = fed(case, *size);
        if let Some(what) = difference(&case.found.events, &found.events) {
            case.broken("chunks", format!("in pieces of {size}: {what}"), None);
        } else if found != *case.found {
            case.broken("chunks", format!("in pieces of {size}: spans or notes differ"), None);
        }
    }
}

/// Events before the stable offset do not change when the source grows.
pub(super) fn growth(case: &mut Case<'_>) {
    for at in case.places(12) {
        let mut found = Collected::default();
        let mut reading = Reading::new(case.format, Wanted::All);
        reading.feed(case.source.get(..at).unwrap_or_default(), &mut found);
        let stable = reading.stable_until();
        if stable > at as u64 {
            case.broken("growth", format!("after {at} bytes, {stable} are reported as settled"), None);
        }
        let is_stable = |event: &&Event<'static>| event.at.is_some_and(|span| span.end() <= stable);
        let begun: Vec<Event<'static>> = found.events.iter().take_while(is_stable).cloned().collect();
        let whole = case.found.events.get(..begun.len()).unwrap_or_default();
        if let Some(what) = difference(&begun, whole) {
            case.broken("growth", format!("after {at} bytes: {what}"), None);
        }
        // The reader must have emitted all events before the stable offset.
        let due = case.found.events.iter().take_while(is_stable).count();
        if due > begun.len() {
            case.broken(
                "growth",
                format!("after {at} bytes: {due} events are settled, but {} were emitted", begun.len()),
                None,
            );
        }
    }
}

/// Reading from any record gives the same events, for formats with this trait.
pub(super) fn pieces(case: &mut Case<'_>) {
    if !case.format.info().traits.pieces {
        return;
    }
    let mut is_document = false;
    let mut look = |frame: Frame<'_>| {
        is_document |= matches!(frame, Frame::Record(record) if record.place != RecordPlace::Line);
    };
    let mut framer = Framer::new(case.format.info().framing, RECORD_SIZE_MAX);
    framer.feed(case.source, &mut look);
    framer.end(&mut look);
    if is_document {
        // If a format has both, only lines can be read from any position.
        return;
    }
    let ends = case.source.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let starts: Vec<(usize, u64)> = (2..).zip(ends).map(|(line, (at, _))| (at + 1, line)).collect();
    let step = (starts.len() / case.effort.places.clamp(1, 8)).max(1);
    for (start, line) in starts.into_iter().step_by(step) {
        let at = Span { offset: start as u64, length: 0, line };
        let mut found = Collected::default();
        let mut reading = Reading::from_line(case.format, Wanted::All, at);
        reading.feed(case.source.get(start..).unwrap_or_default(), &mut found);
        reading.end(&mut found);
        let from = |event: &&Event<'static>| event.at.is_some_and(|span| span.offset >= at.offset);
        let expected: Vec<Event<'static>> = case.found.events.iter().filter(from).cloned().collect();
        if let Some(what) = difference(&expected, &found.events) {
            case.broken("pieces", format!("from byte {start}: {what}"), None);
        } else if expected != found.events {
            case.broken("pieces", format!("from byte {start}: spans differ"), None);
        }
    }
}

/// Reading less gives a projection of reading everything.
pub(super) fn projection(case: &mut Case<'_>) {
    let mut found = Collected::default();
    let mut reading = Reading::new(case.format, Wanted::Usage);
    reading.feed(case.source, &mut found);
    reading.end(&mut found);
    let projected = |events: &[Event<'static>]| -> Vec<Event<'static>> {
        events.iter().filter_map(|event| read::usage_of(event).map(Event::into_owned)).collect()
    };
    if let Some(what) = difference(&projected(&case.found.events), &projected(&found.events)) {
        return case.broken("projection", what, None);
    }
    let counted = |events: &[Event<'static>]| {
        let mut counting = CallCounter::new(case.format.info().agent, CallDetail::Numbers);
        events.iter().for_each(|event| counting.add(event));
        counting.finish()
    };
    if counted(&case.found.events) != counted(&found.events) {
        case.broken("projection", "a reduced reading gives other counts".to_owned(), None);
    }
}
