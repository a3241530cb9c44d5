//! Restores a carried source whose carrying file was edited: it applies to the source what was changed, removed or added in the
//! file, and leaves everything else as it was. Edits that it cannot apply are measured as losses.
//!
//! The runs give the original source. Converting it again gives the file as written, if the writer is the same; `alignment.rs`
//! compares that with the current file to find which events of the source belong to which records. This comparison does not
//! decide whether a record was edited, because a newer writer spells things differently: a record that matches its seal was
//! never edited. `edit/` knows how to edit a source.

use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};

use super::alignment::Alignment;
use super::restore::{CarriedRun, each_run};
use super::totals::RunningTotal;
use super::{Carry, ConversionMethod, Outcome, Reopen, Survey, convert};
use crate::Error;
use crate::carry::{Carried, seal};
use crate::edit::{Original, SIZE_MAX, apply};
use crate::format::Format;
use crate::ledger::SupersededUsage;
use crate::loss::LossComparison;
use crate::model::{Body, Content, Event, ExtraFields, Held, Piece, PieceKind, Role, Span};

/// Restores the carried source, with the edits of the file that carries it.
pub fn merge_edits(
    from: &dyn Format,
    source: &mut dyn Reopen,
    to: &dyn Format,
    out: &mut dyn Write,
    survey: Survey,
    method: ConversionMethod,
) -> Result<Outcome, Error> {
    let mut carried_source = Vec::new();
    each_run(from, source, &mut |found| {
        if let CarriedRun::Sealed(carried) | CarriedRun::Edited(carried) = found
            && carried_source.len() <= SIZE_MAX
        {
            carried_source.extend_from_slice(&carried.source);
        }
    })?;
    let mut file = Vec::new();
    source.open()?.take(SIZE_MAX as u64 + 1).read_to_end(&mut file)?;
    if carried_source.len().max(file.len()) > SIZE_MAX {
        return Err(Error::TooLargeToMerge);
    }
    let mut written = Vec::new();
    convert(to, &mut carried_source.as_slice(), from, &mut written, Carry::Omit)?;
    let original = Original::read(to, &carried_source)?;
    let mut current = crate::read::all(from, &file).events;
    // A copy that moved to another agent has a name of its own there: its turns belong to the session that it came from.
    if let (Some(there), Some(here)) = (session_of(&original.events), session_of(&current)) {
        let renamed = current.iter_mut().filter(|event| event.session.as_deref() == Some(here.as_str()));
        renamed.for_each(|event| event.session = Some(there.clone().into()));
    }
    let records = Records::of(&file, &current);
    state_models(&mut current, &records);
    count_once(&mut current, &records);
    let repeats: Vec<Event<'static>> = edited_repeats(&current, &records).cloned().collect();
    let current = without_restatements(current);
    let written = without_restatements(crate::read::all(from, &written).events);
    let alignment = Alignment::new(&original.events, &written, &current, &records);
    let plan = alignment.plan();
    let merged = apply(&original, &plan)?;
    out.write_all(&merged.bytes)?;
    out.flush()?;
    let kept = to.info().name;
    let mut comparison = LossComparison::new(move |origin| origin == kept);
    alignment.expected(&plan).iter().for_each(|event| comparison.source(event));
    let merged = without_restatements(merged.events);
    merged.iter().for_each(|event| comparison.target(event));
    texts_missing_in(&repeats, &merged).for_each(|event| comparison.left_out(event, EDITED_REPEAT));
    let Survey { outline, notes, notes_count, .. } = survey;
    let outline = outline.finish();
    Ok(Outcome { outline, losses: comparison.finish(), notes, notes_count, method, ..Outcome::default() })
}

/// Gives the turns after all runs the models that made them: a file may state a model once, and the source has another one.
fn state_models(events: &mut [Event<'static>], records: &Records) {
    let mut model = None;
    for event in events {
        match &event.model {
            Some(stated) => model = Some(stated.clone()),
            None if is_answer(event) && records.is_after_all_runs(event) => event.model.clone_from(&model),
            None => {}
        }
    }
}

/// Removes usage from the turns after all runs that a later record of the same response states again, and totals that repeat the
/// last one, as a conversion does.
fn count_once(events: &mut [Event<'static>], records: &Records) {
    let (mut usage, mut total) = (SupersededUsage::default(), RunningTotal::default());
    events.iter().for_each(|event| usage.add(event));
    usage.decide();
    for event in events {
        let (is_superseded, is_repeated) = (usage.is_superseded(event), total.marked(event).restates);
        if records.is_after_all_runs(event) {
            event.restates |= is_repeated;
            event.usage = event.usage.filter(|_| !is_superseded);
        }
    }
}

fn is_answer(event: &Event<'_>) -> bool {
    match &event.body {
        Body::Message { role, .. } => *role == Role::Assistant,
        Body::Thinking { .. } | Body::ToolCall { .. } => true,
        Body::ToolResult { .. }
        | Body::Compaction { .. }
        | Body::Failure { .. }
        | Body::Stop { .. }
        | Body::Fact { .. }
        | Body::Other { .. } => false,
    }
}

/// The first session that these events state.
fn session_of(events: &[Event<'_>]) -> Option<String> {
    events.iter().find_map(|event| event.session.as_deref()).filter(|id| !id.is_empty()).map(str::to_owned)
}

/// The events without restatements: an edit counts on the record itself, not on its repetition.
fn without_restatements(events: Vec<Event<'static>>) -> Vec<Event<'static>> {
    events.into_iter().filter(|event| !event.restates).map(|event| Event { carried: None, ..event }).collect()
}

/// Why an edit is not applied to the source: the repeated record has another text.
const EDITED_REPEAT: &str = "edited, but it only repeats another record";

/// The restatements in edited records.
fn edited_repeats<'e>(current: &'e [Event<'static>], records: &Records) -> impl Iterator<Item = &'e Event<'static>> {
    current.iter().filter(|event| event.restates && !records.is_sealed(event))
}

/// The restatements with a text that no event of the merged source has.
fn texts_missing_in<'e>(
    repeats: &'e [Event<'static>],
    merged: &[Event<'static>],
) -> impl Iterator<Item = &'e Event<'static>> {
    let texts_of = |event: &Event<'static>| -> Vec<String> {
        let Some(content) = event.content() else { return Vec::new() };
        let texts = content.texts().map(|text| text.decode().trim().to_owned());
        texts.chain([content.joined().decode().trim().to_owned()]).collect()
    };
    let present: HashSet<String> = match repeats.is_empty() {
        true => HashSet::new(),
        false => merged.iter().flat_map(texts_of).collect(),
    };
    repeats.iter().filter(move |event| texts_of(event).iter().any(|text| !present.contains(text)))
}

/// The records of a carrying file by offset, with the states of their seals.
pub(super) struct Records(BTreeMap<u64, Record>);

/// A record of a carrying file.
#[derive(Clone, Copy, Default)]
struct Record {
    /// The number of its run; `None` if it carries none.
    number: Option<u64>,
    /// Whether it is unedited.
    is_sealed: bool,
    /// Whether its run is the last one.
    is_last: bool,
    /// The offset of its run in the source, and its length.
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

    /// Whether the record of this event is unedited.
    pub(super) fn is_sealed(&self, event: &Event<'_>) -> bool {
        self.at(event).is_some_and(|record| record.is_sealed)
    }

    /// Whether all records that could contain a missing event of the source are present and unedited between these two events
    /// of the file. `None` means the beginning or the end of the file.
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
        let is_intact = |number: u64| {
            let mut found = numbers.iter().filter(|(known, _)| *known == number);
            found.next().is_some_and(|(_, is_sealed)| *is_sealed) && found.next().is_none()
        };
        // The event may have been removed from an edited record at the edge.
        let offset = source.at.map_or(0, |at| at.offset);
        let is_of = |record: &Record| (record.start..record.start + record.length).contains(&offset);
        let is_of_edge = edges.iter().flatten().any(|edge| !edge.is_sealed && is_of(edge));
        let count = end.saturating_sub(start);
        !is_of_edge && count <= numbers.len() as u64 && (start..end).all(is_intact)
    }
}

/// The body of the source with the changes made in the file. Content that the file's format cannot express stays as it was.
pub(super) fn merged(source: &Body<'static>, written: &Body<'static>, current: &Body<'static>) -> Body<'static> {
    fn pick<T: Clone + PartialEq>(source: &T, written: &T, current: &T) -> T {
        if written == current { source.clone() } else { current.clone() }
    }
    match (source, written, current) {
        (
            Body::Message { role, content },
            Body::Message { role: role_written, content: content_written },
            Body::Message { role: role_current, content: content_current },
        ) => Body::Message {
            role: pick(role, role_written, role_current),
            content: shaped(content, content_written, content_current),
        },
        (
            Body::ToolCall { call, name, input },
            Body::ToolCall { call: call_written, name: name_written, input: input_written },
            Body::ToolCall { call: call_current, name: name_current, input: input_current },
        ) => Body::ToolCall {
            call: pick(call, call_written, call_current),
            name: pick(name, name_written, name_current),
            input: pick(input, input_written, input_current),
        },
        (
            Body::ToolResult { call, name, content, error },
            Body::ToolResult { call: call_written, name: name_written, content: content_written, error: error_written },
            Body::ToolResult { call: call_current, name: name_current, content: content_current, error: error_current },
        ) => Body::ToolResult {
            call: pick(call, call_written, call_current),
            name: pick(name, name_written, name_current),
            content: shaped(content, content_written, content_current),
            error: pick(error, error_written, error_current),
        },
        // If the event became another kind, such as a summary that became a message, merge only the text.
        _ => match (source.content(), written.content(), current.content()) {
            (Some(content), Some(written), Some(current)) => {
                source.clone().with_content(shaped(content, written, current))
            }
            _ => source.clone(),
        },
    }
}

/// The content of the source with the changes made in the file.
fn shaped(source: &Content<'static>, written: &Content<'static>, current: &Content<'static>) -> Content<'static> {
    match (source, current) {
        _ if written == current => source.clone(),
        (Content::Text(_), _) => Content::Text(current.joined().into_owned()),
        (Content::Pieces(source), Content::Text(text)) => respelled(source, written, &[Piece::text(text.clone())]),
        (Content::Pieces(source), Content::Pieces(current)) => respelled(source, written, current),
    }
}

/// A list of pieces in the spelling of the source. The extra fields of a piece are those of the format it was read from, so a
/// piece of the file gets the extra fields of its counterpart in the source, or of another text in the same list.
fn respelled(source: &[Piece<'static>], written: &Content<'static>, current: &[Piece<'static>]) -> Content<'static> {
    let is_text = |piece: &&Piece<'static>| piece.as_text().is_some();
    let texts = |pieces: &[Piece<'static>]| pieces.iter().filter(is_text).count();
    if texts(source) == texts(current) && written.others().eq(current.iter().filter(|piece| !is_text(piece))) {
        // Only texts changed: every piece keeps its position.
        let mut new = current.iter().filter(is_text);
        let put = |piece: &Piece<'static>| match piece.as_text() {
            Some(_) => new.next().map(|new| Piece { kind: new.kind.clone(), extra: piece.extra.clone() }),
            None => Some(piece.clone()),
        };
        return Content::Pieces(source.iter().filter_map(put).collect());
    }
    let plain = source.iter().filter(is_text).find_map(|piece| type_only(&piece.extra));
    let put = |piece: &Piece<'static>| {
        let own = source.iter().find(|own| own.kind == piece.kind).cloned();
        own.or_else(|| match &piece.kind {
            PieceKind::Text(_) => plain.clone().map(|extra| Piece { kind: piece.kind.clone(), extra }),
            PieceKind::Blob { .. } => Some(Piece { kind: piece.kind.clone(), extra: ExtraFields::default() }),
            // Only the file's own format can interpret it.
            PieceKind::Other(_) => None,
        })
    };
    let mut pieces: Vec<Piece<'static>> = current.iter().filter_map(put).collect();
    if written.others().next().is_none() {
        // The file's format has no place for these.
        pieces.extend(source.iter().filter(|piece| !is_text(piece)).cloned());
    }
    Content::Pieces(pieces)
}

/// The extra fields of a text that other texts can share: its type. `None` if the text is nested deeper in its piece.
fn type_only(extra: &ExtraFields<'static>) -> Option<ExtraFields<'static>> {
    if extra.0.iter().any(|(_, held)| matches!(held, Held::Object(_))) {
        return None;
    }
    let kept = extra.0.iter().filter(|(key, held)| key == "type" || matches!(held, Held::Hole));
    Some(ExtraFields(kept.cloned().collect()))
}
