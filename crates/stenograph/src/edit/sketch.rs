//! Sketches: what planning knows about each event, in about a hundred bytes, however long its text is. A sketch holds
//! fingerprints of ids and texts, which only tell whether two of them are equal.

mod build;
mod make;
mod postings;
mod spine_view;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(super) use build::SketchBuilder;
use spine_view::SpineView;

use super::{Fate, Plan};
use crate::evidence::UserMessage;
use crate::model::{Event, Kind, Part, Rewind, Role, Span, Spine};

/// What planning knows about one event. A fingerprint of 0 means none.
#[derive(Clone, Debug)]
pub struct Sketch {
    offset: u64,
    /// The low 32 bits of the length of its record: enough to tell apart two records that begin at the same offset.
    length: u32,
    line: u32,
    has_place: bool,
    pub(super) kind: Kind,
    pub(super) role: Option<Role>,
    /// Whether it is a fact that the file needs: the header, or the end of the session or the file.
    pub(super) is_frame: bool,
    /// Whether it states the title.
    pub(super) is_title: bool,
    /// Its part number within the record.
    pub(super) part: u32,
    /// Whether its record has no other events.
    pub(super) is_only: bool,
    /// The fingerprint of its own id.
    pub(super) id: u64,
    /// The fingerprint of the id of the record it follows.
    pub(super) parent: u64,
    /// The fingerprint of its model response.
    pub(super) group: u64,
    /// The fingerprint of its side conversation.
    pub(super) thread: u64,
    /// The fingerprint of the id that pairs a call and its result.
    pub(super) call: u64,
    /// The number that the fold [`Calls`](crate::calls::Calls) gives to the call that the event makes or answers.
    pub(super) call_number: u32,
    /// The fingerprint of its text without the spaces around it; for a call, that of the tool and its input.
    pub(super) text: u64,
    /// Where its fingerprints for the spine begin in the list of all of them.
    fingerprints: u32,
    time: Option<jiff::Timestamp>,
    /// Whether it repeats another record.
    pub(super) restates: bool,
    /// Whether it has a text, or a call, by which it can be recognized.
    pub(super) has_text: bool,
    /// Whether its record names a session.
    pub(super) has_session: bool,
    /// Whether it states the usage of a response.
    pub(super) has_usage: bool,
    /// Whether the format has a place for `...snip...` instead of its content.
    pub(super) is_replaceable: bool,
    /// What it is as a message in the role of the user.
    pub(super) message: Option<UserMessage>,
}

impl Sketch {
    /// The place of its record. Lengths over 4 GiB are not exact; no record that is read is that long.
    pub(super) fn span(&self) -> Option<Span> {
        let (length, line) = (u64::from(self.length), u64::from(self.line));
        self.has_place.then_some(Span { offset: self.offset, length, line })
    }

    /// The offset of its record.
    pub(super) fn offset(&self) -> Option<u64> {
        self.has_place.then_some(self.offset)
    }

    /// The line on which its record begins.
    pub(super) fn line(&self) -> Option<u64> {
        self.has_place.then_some(u64::from(self.line))
    }

    /// The place of its record, to compare it with others.
    pub(super) fn place(&self) -> Option<(u64, u32)> {
        self.has_place.then_some((self.offset, self.length))
    }

    /// A fingerprint of its content that is the same for a record and for its restatement.
    fn content_print(&self) -> u64 {
        let is_paired = matches!(self.kind, Kind::ToolCall | Kind::ToolResult) && self.call != 0;
        let content = if is_paired { self.call } else { self.text };
        let seed = (self.kind as u64) << 8 | self.role.map_or(0, |role| 1 + role as u64);
        xxh3_64_with_seed(&content.to_le_bytes(), seed)
    }

    /// The time that it states.
    pub(super) fn moment(&self) -> Option<jiff::Timestamp> {
        self.time
    }

    /// Whether somebody speaks or acts in it, and it does not only repeat another record.
    pub(super) fn is_talk(&self) -> bool {
        matches!(self.kind, Kind::Message | Kind::ToolCall | Kind::Thinking) && !self.restates
    }

    /// [`Part::follows`].
    pub(super) fn follows(&self, before: &Sketch) -> bool {
        let part = |sketch: &Sketch| Part { index: sketch.part, ..Part::default() };
        part(self).follows(part(before))
    }

    /// [`Event::continues_record_at`] the place of another event.
    pub(super) fn continues_record_of(&self, before: &Sketch) -> bool {
        self.part > 0 && self.place() == before.place()
    }
}

/// The fingerprint of a text without the spaces around it.
pub(super) fn text_print(text: &str) -> u64 {
    xxh3_64(text.trim().as_bytes())
}

/// A field of a header that counts events.
#[derive(Clone, Debug)]
pub(super) struct CountField {
    /// The number of the header's event.
    pub(super) event: usize,
    /// The format that names the field.
    pub(super) origin: &'static str,
    pub(super) field: &'static str,
    /// The kind of the counted events.
    pub(super) kind: Kind,
    /// The number in the source.
    pub(super) stated: u64,
}

/// Which events a restatement repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restatement<'s> {
    /// It repeats the text of this event.
    SameText(usize),
    /// It describes these calls and results in other words and names their ids.
    NamedCalls(&'s [usize]),
}

/// The sketches of all events of a source, in order.
#[derive(Clone, Debug, Default)]
pub struct Sketches {
    all: Vec<Sketch>,
    fingerprints: Vec<u64>,
    /// Facts that take records back.
    pub(super) rewinds: Vec<(usize, Rewind)>,
    pub(super) counts: Vec<CountField>,
    /// Restatements with the same text, in order, each with the event that it repeats.
    same_text: Vec<(u32, u32)>,
    /// Restatements in other words, each with the calls and results that it names.
    named_calls: HashMap<usize, Vec<usize>>,
    spine: Vec<bool>,
}

/// A list of events, or their sketches.
pub trait Sketched {
    /// The sketches of these events.
    fn sketches(&self) -> Cow<'_, Sketches>;
}

impl Sketched for Sketches {
    fn sketches(&self) -> Cow<'_, Sketches> {
        Cow::Borrowed(self)
    }
}

impl Sketched for [Event<'_>] {
    fn sketches(&self) -> Cow<'_, Sketches> {
        let mut builder = SketchBuilder::default();
        self.iter().for_each(|event| builder.add(event));
        let mut search = builder.search_names();
        if search.is_needed() {
            self.iter().enumerate().for_each(|(number, event)| search.add(number, event));
        }
        Cow::Owned(search.finish())
    }
}

impl<const N: usize> Sketched for [Event<'_>; N] {
    fn sketches(&self) -> Cow<'_, Sketches> {
        self.as_slice().sketches()
    }
}

impl Sketched for Vec<Event<'_>> {
    fn sketches(&self) -> Cow<'_, Sketches> {
        self.as_slice().sketches()
    }
}

impl Sketches {
    /// The number of events.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The kind of an event, and the line on which its record begins if it is in a file.
    pub fn kind_and_line(&self, number: usize) -> Option<(Kind, Option<u64>)> {
        self.get(number).map(|event| (event.kind, event.line()))
    }

    pub(super) fn get(&self, number: usize) -> Option<&Sketch> {
        self.all.get(number)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Sketch> + ExactSizeIterator {
        self.all.iter()
    }

    pub(super) fn as_slice(&self) -> &[Sketch] {
        &self.all
    }

    /// Which events this one repeats; `None` if it repeats no other event.
    pub(super) fn restatement(&self, number: usize) -> Option<Restatement<'_>> {
        let same = self.same_text.binary_search_by_key(&postings::small(number), |(event, _)| *event).ok();
        match same.and_then(|at| self.same_text.get(at)) {
            Some((_, base)) => Some(Restatement::SameText(*base as usize)),
            None => self.named_calls.get(&number).map(|calls| Restatement::NamedCalls(calls)),
        }
    }

    /// Whether an event takes turns back.
    pub(super) fn is_rewind(&self, number: usize) -> bool {
        self.rewinds.binary_search_by_key(&number, |(event, _)| *event).is_ok()
    }

    /// Whether an event is in the spine.
    pub(super) fn is_in_spine(&self, number: usize) -> bool {
        self.spine.get(number) == Some(&true)
    }

    /// The ranges of events that came from one record each.
    pub(super) fn records(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let range = start..self.record_end(start)?;
            start = range.end;
            Some(range)
        })
    }

    /// The end of the record that begins with this event.
    pub(super) fn record_end(&self, start: usize) -> Option<usize> {
        let first = self.get(start)?;
        let rest = self.all.get(start + 1..).unwrap_or_default();
        Some(start + 1 + rest.iter().take_while(|next| next.continues_record_of(first)).count())
    }

    /// The end of the records that change together with the one that begins with this event. In some formats each part of a
    /// record has a place of its own; such parts change together.
    pub(super) fn bundle_end(&self, start: usize) -> usize {
        let mut end = self.record_end(start).unwrap_or(start + 1);
        while let (Some(last), Some(next)) = (self.get(end - 1), self.get(end)) {
            if !next.follows(last) {
                break;
            }
            end = self.record_end(end).unwrap_or(end + 1);
        }
        end
    }

    /// Whether a record begins with this event.
    pub(super) fn begins_record(&self, number: usize) -> bool {
        let before = number.checked_sub(1).and_then(|before| self.get(before));
        !before.zip(self.get(number)).is_some_and(|(before, event)| event.continues_record_of(before))
    }

    /// The events that a plan keeps, each with whether it is in the spine of the result.
    pub(super) fn spine_after(&self, plan: &Plan) -> Vec<(usize, bool)> {
        let mut spine = Spine::default();
        self.each_kept(plan, &mut |_, view| spine.add_any(view));
        spine.decide();
        let mut found = Vec::new();
        self.each_kept(plan, &mut |number, view| found.push((number, spine.left_out_any(view).is_none())));
        found
    }

    /// Calls `visit` with each event that a plan keeps, as it is in the result.
    fn each_kept(&self, plan: &Plan, visit: &mut dyn FnMut(usize, &SpineView<'_>)) {
        // Where a plan removes parts of a record, the other parts get new numbers.
        let mut index = 0;
        for (number, sketch) in self.all.iter().enumerate() {
            let before = number.checked_sub(1).and_then(|before| self.get(before));
            if !before.is_some_and(|before| sketch.follows(before)) {
                index = sketch.part;
            }
            if plan.fate(number) == Fate::Removed {
                continue;
            }
            let mut view = self.view(number, sketch);
            view.part_index = index;
            view.parent = plan.parent_key(self, number).unwrap_or(sketch.parent);
            view.is_shortened = plan.is_shortened(number);
            visit(number, &view);
            index += 1;
        }
    }

    fn view<'a>(&'a self, number: usize, sketch: &'a Sketch) -> SpineView<'a> {
        let end = self.get(number + 1).map_or(self.fingerprints.len(), |next| next.fingerprints as usize);
        let fingerprints = self.fingerprints.get(sketch.fingerprints as usize..end).unwrap_or_default();
        let turns = self.rewinds.binary_search_by_key(&number, |(event, _)| *event).ok();
        let rewinds = turns.and_then(|at| self.rewinds.get(at)).map(|(_, turns)| *turns);
        SpineView { sketch, fingerprints, rewinds, part_index: sketch.part, parent: sketch.parent, is_shortened: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_takes_few_bytes() {
        assert!(size_of::<Sketch>() <= 112, "{}", size_of::<Sketch>());
    }
}
