//! The law *silent*: every byte of a source is in an event or a note.

use super::Case;
use crate::frame::{Framing, Items};
use crate::model::{Body, NoteKind, Outline, Span};
use crate::read::Collected;

/// Checks that every byte that is not blank lies in the span of an event or a note.
pub(super) fn silent(case: &mut Case<'_>) {
    if let Some(at) = first_silent(case.format.info().framing, case.source, case.found) {
        case.broken("silent", "a byte in no event and no note", Some(at));
    }
}

/// The first run of bytes in no event and no note.
pub(super) fn first_silent(framing: Framing, source: &[u8], found: &Collected) -> Option<Span> {
    let events = found.events.iter().filter_map(|event| event.at);
    let mut spans: Vec<Span> = events.chain(found.notes.iter().map(|note| note.at)).collect();
    spans.sort_by_key(|span| span.offset);
    let mut reached = 0;
    spans.push(Span { offset: source.len() as u64, length: 0, line: 0 });
    for span in spans {
        if span.offset > reached {
            let gap = source.get(position(reached)..position(span.offset)).unwrap_or_default();
            if let Some(at) = first_visible(gap, framing) {
                return Some(Span { offset: reached + at as u64, length: (gap.len() - at) as u64, line: span.line });
            }
        }
        reached = reached.max(span.end());
    }
    None
}

/// The first byte that is not blank. A byte order mark is blank anywhere: some files are concatenations of files that have one.
fn first_visible(gap: &[u8], framing: Framing) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = gap.get(at) {
        match gap.get(at..) {
            Some(rest) if rest.starts_with(b"\xef\xbb\xbf") => at += 3,
            _ if is_blank(*byte, framing) => at += 1,
            _ => return Some(at),
        }
    }
    None
}

fn position(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// White space is blank; in a document so are the brackets around its items and the commas between them.
fn is_blank(byte: u8, framing: Framing) -> bool {
    let holds_items = matches!(byte, b',' | b'{' | b'}' | b'[' | b']');
    byte.is_ascii_whitespace() || byte == 0x0b || (holds_items && framing != Framing::Lines)
}

/// Checks that a record holds every JSON leaf exactly once: written back, it equals itself.
pub(super) fn equal(case: &mut Case<'_>) {
    if case.format.info().traits.lossy {
        return;
    }
    let outline = Outline::of(case.format.info().name, &case.found.events);
    if case.format.info().framing != Framing::Lines && is_document(case.source, case.format.info().framing) {
        let written = crate::write::all(case.format, &outline, &case.found.events);
        let (Ok(source), Ok(written)) = (std::str::from_utf8(case.source), std::str::from_utf8(&written)) else {
            return;
        };
        let source = source.trim_start_matches('\u{feff}');
        if crate::json::is_valid(source) && crate::json::canonical(source) != crate::json::canonical(written) {
            let differs = first_difference(&crate::json::canonical(source), &crate::json::canonical(written));
            case.broken("silent", format!("the document is not written back unchanged: {differs}"), None);
        }
        return;
    }
    let mut all = Vec::new();
    for events in case.records() {
        let Some(at) = events.first().and_then(|event| event.at) else { continue };
        let source = case.source.get(position(at.offset)..position(at.end())).unwrap_or_default();
        if let [event] = events
            && let Body::Other { bytes, .. } = &event.body
            && event.extra.iter().next().is_none()
        {
            // A record that the reader does not understand is its bytes and nothing else, unless it is oversize.
            let oversize = case.found.notes.iter().any(|note| note.kind == NoteKind::Oversize && note.at == at);
            if !oversize && bytes.as_ref().is_some_and(|bytes| bytes.bytes() != source) {
                all.push((at, "an unparsed record does not keep its bytes".to_owned()));
            }
            continue;
        }
        let Ok(source) = std::str::from_utf8(source) else { continue };
        // The reader repaired invalid JSON to read it, and a note says so.
        if !crate::json::is_valid(source) {
            continue;
        }
        match crate::write::fragment(case.format, &outline, events) {
            None => all.push((at, "the record is not written back as one record".to_owned())),
            Some(bytes) => {
                let written = String::from_utf8_lossy(&bytes).into_owned();
                let (source, written) = (crate::json::canonical(source), crate::json::canonical(&written));
                if source != written {
                    all.push((
                        at,
                        format!("the record is not written back unchanged: {}", first_difference(&source, &written)),
                    ));
                }
            }
        }
    }
    for (at, what) in all {
        case.broken("silent", what, Some(at));
    }
}

pub(super) fn is_document(source: &[u8], framing: Framing) -> bool {
    let source = crate::frame::after_boms(source);
    let opens: &[u8] = if framing == Framing::Items(Items::Elements) { b"[" } else { b"{" };
    source.trim_ascii_start().starts_with(opens) && std::str::from_utf8(source).is_ok_and(crate::json::is_valid)
}

fn first_difference(left: &str, right: &str) -> String {
    let at = left.bytes().zip(right.bytes()).take_while(|(a, b)| a == b).count();
    let around = |text: &str| {
        let bytes = text.as_bytes().get(at.saturating_sub(80)..(at + 120).min(text.len())).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    format!("\n  {}\n  {}", around(left), around(right))
}
