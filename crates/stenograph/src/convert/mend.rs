//! Gives back a carried source that was touched on the way: what was changed, taken out or put in is done to the source too, and
//! everything else of it stays as it was. What cannot be done is measured as a loss like any other.
//!
//! The runs give the source as it was. Converting that anew gives the file as it was, if the writer was the same; `alignment.rs` compares
//! it with the file as it is, and finds which events of the source belong to which records. Whether a record was touched is not for this comparison
//! to say, because a better writer spells things differently: a record that matches its seal was never edited. How a source is edited
//! is `edit/`'s to know.

use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};

use super::alignment::Alignment;
use super::restore::{Run, each_run};
use super::{Carry, Outcome, Source, Survey, Way, convert};
use crate::Error;
use crate::carry::{Carried, seal};
use crate::edit::{Original, SIZE_MAX, apply};
use crate::format::Format;
use crate::loss::Comparison;
use crate::model::{Body, Content, Event, ExtraFields, Held, Piece, PieceKind, Span};

/// Puts the source together again, with what was done to the file that carries it.
pub fn mend(
    from: &dyn Format,
    source: &mut dyn Source,
    to: &dyn Format,
    out: &mut dyn Write,
    survey: Survey,
    way: Way,
) -> Result<Outcome, Error> {
    let mut run = Vec::new();
    each_run(from, source, &mut |found| {
        if let Run::Sealed(carried) | Run::Edited(carried) = found
            && run.len() <= SIZE_MAX
        {
            run.extend_from_slice(&carried.source);
        }
    })?;
    let mut file = Vec::new();
    source.open()?.take(SIZE_MAX as u64 + 1).read_to_end(&mut file)?;
    if run.len().max(file.len()) > SIZE_MAX {
        return Err(Error::TooLargeToMerge);
    }
    let mut before = Vec::new();
    convert(to, &mut run.as_slice(), from, &mut before, Carry::Not)?;
    let now = crate::read::all(from, &file).events;
    let records = Records::of(&file, &now);
    let repeats: Vec<Event<'static>> = edited_repeats(&now, &records).cloned().collect();
    let now = said_once(now);
    let before = said_once(crate::read::all(from, &before).events);
    let original = Original::read(to, &run)?;
    let alignment = Alignment::new(&original.events, &before, &now, &records);
    let plan = alignment.plan();
    let mended = apply(&original, &plan)?;
    out.write_all(&mended.bytes)?;
    out.flush()?;
    let kept = to.info().name;
    let mut comparison = Comparison::new(move |origin| origin == kept);
    alignment.expected(&plan).iter().for_each(|event| comparison.source(event));
    let mended = said_once(mended.events);
    mended.iter().for_each(|event| comparison.target(event));
    unheard(&repeats, &mended).for_each(|event| comparison.left_out(event, EDITED_REPEAT));
    let Survey { outline, notes, notes_count, .. } = survey;
    Ok(Outcome { outline, losses: comparison.finish(), notes, notes_count, way, ..Outcome::default() })
}

/// The events without those that restate others: what was edited is what is said, not its echo.
fn said_once(events: Vec<Event<'static>>) -> Vec<Event<'static>> {
    events.into_iter().filter(|event| !event.restates).map(|event| Event { carried: None, ..event }).collect()
}

/// Why an edit is not done to the source: the record that it repeats says something else.
const EDITED_REPEAT: &str = "edited, but it only repeats another record";

/// The events that restate others, in records that were edited.
fn edited_repeats<'e>(now: &'e [Event<'static>], records: &Records) -> impl Iterator<Item = &'e Event<'static>> {
    now.iter().filter(|event| event.restates && !records.is_sealed(event))
}

/// Those of the events that restate others whose text no event of the source says.
fn unheard<'e>(repeats: &'e [Event<'static>], mended: &[Event<'static>]) -> impl Iterator<Item = &'e Event<'static>> {
    let said = |event: &Event<'static>| -> Vec<String> {
        let Some(content) = event.content() else { return Vec::new() };
        let texts = content.texts().map(|text| text.decode().trim().to_owned());
        texts.chain([content.joined().decode().trim().to_owned()]).collect()
    };
    let heard: HashSet<String> = match repeats.is_empty() {
        true => HashSet::new(),
        false => mended.iter().flat_map(said).collect(),
    };
    repeats.iter().filter(move |event| said(event).iter().any(|text| !heard.contains(text)))
}

/// What the seals say of the records of a carrying file, by where each begins.
pub(super) struct Records(BTreeMap<u64, Record>);

/// A record of a carrying file.
#[derive(Clone, Copy, Default)]
struct Record {
    /// The number of its run; `None` where it carries none.
    number: Option<u64>,
    /// Whether it is as it was written.
    is_sealed: bool,
    /// Whether its run is the last one.
    is_last: bool,
    /// Where its run begins in the source, and how long it is.
    start: u64,
    length: u64,
}

impl Records {
    fn of(file: &[u8], events: &[Event<'_>]) -> Records {
        let open = |at: Span| -> Option<Record> {
            let (from, to) = (usize::try_from(at.offset).ok()?, usize::try_from(at.end()).ok()?);
            let (carried, plain) = Carried::open(std::str::from_utf8(file.get(from..to)?).ok()?)?;
            let is_sealed = carried.seal == seal(plain.as_bytes());
            let (number, length) = (Some(carried.number), carried.source.len() as u64);
            Some(Record { number, is_sealed, is_last: carried.last, start: 0, length })
        };
        let mut records = BTreeMap::new();
        for at in events.iter().filter_map(|event| event.at) {
            records.entry(at.offset).or_insert_with(|| open(at).unwrap_or_default());
        }
        let mut start = 0;
        for record in records.values_mut() {
            record.start = start;
            start += record.length;
        }
        Records(records)
    }

    fn at(&self, event: &Event<'_>) -> Option<Record> {
        self.0.get(&event.at?.offset).copied()
    }

    /// Whether the record of this event comes after every record that carries a run.
    pub(super) fn is_after_all_runs(&self, event: &Event<'_>) -> bool {
        let last = self.0.iter().rev().find(|(_, record)| record.number.is_some());
        event.at.is_some_and(|at| last.is_none_or(|(offset, _)| at.offset > *offset))
    }

    /// Whether the record of this event is as it was written.
    pub(super) fn is_sealed(&self, event: &Event<'_>) -> bool {
        self.at(event).is_some_and(|record| record.is_sealed)
    }

    /// Whether no record was touched that could have said an event of the source which is missing between these two of the file; without
    /// an event, from the beginning or to the end.
    pub(super) fn are_whole_between(
        &self,
        first: Option<&Event<'_>>,
        last: Option<&Event<'_>>,
        source: &Event<'_>,
    ) -> bool {
        let last_number = self.0.values().find(|record| record.is_last).and_then(|record| record.number);
        let edges = [first, last].map(|event| event.and_then(|event| self.at(event)));
        let [from, to] = edges.map(|edge| edge.and_then(|record| record.number));
        if (first.is_some() && from.is_none()) || (last.is_some() && to.is_none()) {
            return false;
        }
        let start = from.map_or(0, |from| from.saturating_add(1));
        let Some(end) = to.or(last_number.map(|last| last.saturating_add(1))) else { return false };
        let numbers: Vec<(u64, bool)> =
            self.0.values().filter_map(|record| Some((record.number?, record.is_sealed))).collect();
        let is_there = |number: u64| {
            let mut found = numbers.iter().filter(|(known, _)| *known == number);
            found.next().is_some_and(|(_, is_sealed)| *is_sealed) && found.next().is_none()
        };
        // What an edited record at the edge held may have been taken out of it.
        let offset = source.at.map_or(0, |at| at.offset);
        let is_of = |record: &Record| (record.start..record.start + record.length).contains(&offset);
        let is_of_edge = edges.iter().flatten().any(|edge| !edge.is_sealed && is_of(edge));
        let count = end.saturating_sub(start);
        !is_of_edge && count <= numbers.len() as u64 && (start..end).all(is_there)
    }
}

/// The body of the source with what was changed in the file. What the file's format has no place for stays as it was.
pub(super) fn merged(then: &Body<'static>, before: &Body<'static>, now: &Body<'static>) -> Body<'static> {
    fn pick<T: Clone + PartialEq>(then: &T, before: &T, now: &T) -> T {
        if before == now { then.clone() } else { now.clone() }
    }
    match (then, before, now) {
        (
            Body::Message { role, content },
            Body::Message { role: role_before, content: content_before },
            Body::Message { role: role_now, content: content_now },
        ) => Body::Message {
            role: pick(role, role_before, role_now),
            content: shaped(content, content_before, content_now),
        },
        (
            Body::ToolCall { call, name, input },
            Body::ToolCall { call: call_before, name: name_before, input: input_before },
            Body::ToolCall { call: call_now, name: name_now, input: input_now },
        ) => Body::ToolCall {
            call: pick(call, call_before, call_now),
            name: pick(name, name_before, name_now),
            input: pick(input, input_before, input_now),
        },
        (
            Body::ToolResult { call, name, content, error },
            Body::ToolResult { call: call_before, name: name_before, content: content_before, error: error_before },
            Body::ToolResult { call: call_now, name: name_now, content: content_now, error: error_now },
        ) => Body::ToolResult {
            call: pick(call, call_before, call_now),
            name: pick(name, name_before, name_now),
            content: shaped(content, content_before, content_now),
            error: pick(error, error_before, error_now),
        },
        // What became another kind of event on the way, such as a summary that became a message, takes the text alone.
        _ => match (then.content(), before.content(), now.content()) {
            (Some(content), Some(was), Some(is)) => then.clone().with_content(shaped(content, was, is)),
            _ => then.clone(),
        },
    }
}

/// The content of the source with what was changed.
fn shaped(then: &Content<'static>, before: &Content<'static>, now: &Content<'static>) -> Content<'static> {
    match (then, now) {
        _ if before == now => then.clone(),
        (Content::Text(_), _) => Content::Text(now.joined().into_owned()),
        (Content::Pieces(then), Content::Text(text)) => respelled(then, before, &[Piece::text(text.clone())]),
        (Content::Pieces(then), Content::Pieces(now)) => respelled(then, before, now),
    }
}

/// A list as the source spells it. What is left of an element is in the words of the format it was read from: an element of the
/// file takes the words of the element of the source that it stands for, or of another text of the same list.
fn respelled(then: &[Piece<'static>], before: &Content<'static>, now: &[Piece<'static>]) -> Content<'static> {
    let is_text = |piece: &&Piece<'static>| piece.as_text().is_some();
    let texts = |pieces: &[Piece<'static>]| pieces.iter().filter(is_text).count();
    if texts(then) == texts(now) && before.others().eq(now.iter().filter(|piece| !is_text(piece))) {
        // Only words were changed: every element stays in its place.
        let mut new = now.iter().filter(is_text);
        let put = |piece: &Piece<'static>| match piece.as_text() {
            Some(_) => new.next().map(|new| Piece { kind: new.kind.clone(), extra: piece.extra.clone() }),
            None => Some(piece.clone()),
        };
        return Content::Pieces(then.iter().filter_map(put).collect());
    }
    let plain = then.iter().filter(is_text).find_map(|piece| type_only(&piece.extra));
    let put = |piece: &Piece<'static>| {
        let own = then.iter().find(|own| own.kind == piece.kind).cloned();
        own.or_else(|| match &piece.kind {
            PieceKind::Text(_) => plain.clone().map(|extra| Piece { kind: piece.kind.clone(), extra }),
            PieceKind::Blob { .. } => Some(Piece { kind: piece.kind.clone(), extra: ExtraFields::default() }),
            // Only the file's own format knows what it is.
            PieceKind::Other(_) => None,
        })
    };
    let mut pieces: Vec<Piece<'static>> = now.iter().filter_map(put).collect();
    if before.others().next().is_none() {
        // The file's format has no place for these.
        pieces.extend(then.iter().filter(|piece| !is_text(piece)).cloned());
    }
    Content::Pieces(pieces)
}

/// Of what is left of a text: what its element is called, and nothing that this text alone has. `None` where the text stands deeper
/// within its element.
fn type_only(extra: &ExtraFields<'static>) -> Option<ExtraFields<'static>> {
    if extra.0.iter().any(|(_, held)| matches!(held, Held::Object(_))) {
        return None;
    }
    let kept = extra.0.iter().filter(|(key, held)| key == "type" || matches!(held, Held::Hole));
    Some(ExtraFields(kept.cloned().collect()))
}
