//! What planning knows of each event: a hundred bytes, however long its text is. Ids and texts are kept as fingerprints, which only
//! say whether two are the same. What an event says, and what happens to it, is not known here.

mod build;
mod make;
mod postings;
mod view;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(super) use build::SketchBuilder;
use view::View;

use super::{Fate, Plan};
use crate::evidence::UserMessage;
use crate::model::{Event, Kind, Part, Role, Span, Spine};

/// What planning knows of one event. A fingerprint of 0 stands for nothing.
#[derive(Clone, Debug)]
pub struct Sketch {
    offset: u64,
    /// The last digits of how many bytes its record has: enough to tell two records apart that begin at the same place.
    length: u32,
    line: u32,
    has_place: bool,
    /// Its kind.
    pub(super) kind: Kind,
    /// Who speaks.
    pub(super) role: Option<Role>,
    /// What a fact is about.
    pub(super) fact: Fact,
    /// Which part of its record it is.
    pub(super) part: u32,
    /// Whether its record gives no other event.
    pub(super) is_only: bool,
    /// The fingerprint of its own id.
    pub(super) id: u64,
    /// The fingerprint of the id of the record it follows.
    pub(super) parent: u64,
    /// The fingerprint of its model response.
    pub(super) group: u64,
    /// The fingerprint of its side conversation.
    pub(super) thread: u64,
    /// The fingerprint of what ties call and result.
    pub(super) call: u64,
    /// The fingerprint of its text, without the spaces around it; that of a call is of what is called with what.
    pub(super) said: u64,
    /// Where its fingerprints begin among those of all.
    prints: u32,
    time: Option<jiff::Timestamp>,
    /// Whether it says again what another record says.
    pub(super) restates: bool,
    /// Whether it says anything that could be recognised.
    pub(super) says: bool,
    /// Whether its record names a session.
    pub(super) has_session: bool,
    /// Whether it states what a response cost.
    pub(super) has_usage: bool,
    /// Whether a mark has a place in what it says.
    pub(super) has_room: bool,
    /// What it is as a message in the role of the user.
    pub(super) message: Option<UserMessage>,
}

/// What a fact is about, as far as planning asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// The session: a header.
    Session,
    /// The end of the session or of the file.
    End,
    /// The title.
    Title,
    /// Anything else, or no fact.
    Other,
}

impl Sketch {
    /// Where its record is. One that is larger than any record that is read is not told in full.
    pub(super) fn span(&self) -> Option<Span> {
        let (length, line) = (u64::from(self.length), u64::from(self.line));
        self.has_place.then_some(Span { offset: self.offset, length, line })
    }

    /// Where its record begins.
    pub(super) fn offset(&self) -> Option<u64> {
        self.has_place.then_some(self.offset)
    }

    /// The line on which its record begins.
    pub(super) fn line(&self) -> Option<u64> {
        self.has_place.then_some(u64::from(self.line))
    }

    /// Where its record is, for comparing places.
    pub(super) fn place(&self) -> Option<(u64, u32)> {
        self.has_place.then_some((self.offset, self.length))
    }

    /// The fingerprint of what it says, the same for a record and for what restates it.
    fn print(&self) -> u64 {
        let is_tied = matches!(self.kind, Kind::ToolCall | Kind::ToolResult) && self.call != 0;
        let said = if is_tied { self.call } else { self.said };
        let seed = (self.kind as u64) << 8 | self.role.map_or(0, |role| 1 + role as u64);
        xxh3_64_with_seed(&said.to_le_bytes(), seed)
    }

    /// The moment it states.
    pub(super) fn moment(&self) -> Option<jiff::Timestamp> {
        self.time
    }

    pub(super) fn is_user(&self) -> bool {
        self.role == Some(Role::User)
    }

    /// Whether somebody says or does something of its own.
    pub(super) fn is_talk(&self) -> bool {
        matches!(self.kind, Kind::Message | Kind::ToolCall | Kind::Thinking) && !self.restates
    }

    /// [`Part::follows`].
    pub(super) fn follows(&self, before: &Sketch) -> bool {
        let part = |sketch: &Sketch| Part { index: sketch.part, ..Part::default() };
        part(self).follows(part(before))
    }

    /// [`Event::continues_record_at`] the place of another one.
    pub(super) fn continues_record_of(&self, before: &Sketch) -> bool {
        self.part > 0 && self.place() == before.place()
    }
}

/// The fingerprint of a text, without the spaces around it.
pub(super) fn of_text(text: &str) -> u64 {
    xxh3_64(text.trim().as_bytes())
}

/// A field of a header that counts events.
#[derive(Clone, Debug)]
pub(super) struct CountField {
    /// The header.
    pub(super) event: usize,
    /// The format in whose words it is.
    pub(super) origin: &'static str,
    /// The field.
    pub(super) field: &'static str,
    /// What it counts.
    pub(super) kind: Kind,
    /// What it states.
    pub(super) stated: u64,
}

/// What a record that restates others speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tie<'s> {
    /// The event it says again.
    Same(usize),
    /// Calls and results that it names, when it says them in other words.
    Named(&'s [usize]),
}

/// What planning knows of the events of a source, in order.
#[derive(Clone, Debug, Default)]
pub struct Sketches {
    all: Vec<Sketch>,
    prints: Vec<u64>,
    /// Facts that take turns back, and how many.
    pub(super) rewinds: Vec<(usize, u64)>,
    pub(super) counts: Vec<CountField>,
    /// Events that say another one again, in order, each with the one that it says.
    same: Vec<(u32, u32)>,
    /// Calls and results that an event names, when it says them in other words.
    named: HashMap<usize, Vec<usize>>,
    told: Vec<bool>,
}

/// Events, or what is kept of them.
pub trait Sketched {
    /// What planning knows of them.
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
        let mut naming = builder.naming();
        if naming.is_wanted() {
            self.iter().enumerate().for_each(|(number, event)| naming.add(number, event));
        }
        Cow::Owned(naming.finish())
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
    /// How many events there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
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

    /// What an event that restates others speaks of; `None` for one that stands for itself.
    pub(super) fn tie(&self, number: usize) -> Option<Tie<'_>> {
        let same = self.same.binary_search_by_key(&postings::small(number), |(event, _)| *event).ok();
        match same.and_then(|at| self.same.get(at)) {
            Some((_, base)) => Some(Tie::Same(*base as usize)),
            None => self.named.get(&number).map(|named| Tie::Named(named)),
        }
    }

    /// Whether an event is a part of the conversation that goes on.
    pub(super) fn is_told(&self, number: usize) -> bool {
        self.told.get(number) == Some(&true)
    }

    /// The records: runs of events that stand in one place together.
    pub(super) fn records(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let range = start..self.record_end(start)?;
            start = range.end;
            Some(range)
        })
    }

    /// Where the record that begins there ends.
    pub(super) fn record_end(&self, start: usize) -> Option<usize> {
        let first = self.get(start)?;
        let rest = self.all.get(start + 1..).unwrap_or_default();
        Some(start + 1 + rest.iter().take_while(|next| next.continues_record_of(first)).count())
    }

    /// Where what changes together with the record that begins there ends: where each part of a record has a place of its own, with the
    /// last part.
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

    /// Whether a record begins with this event, as far as the one before it tells.
    pub(super) fn begins_record(&self, number: usize) -> bool {
        let before = number.checked_sub(1).and_then(|before| self.get(before));
        !before.zip(self.get(number)).is_some_and(|(before, event)| event.continues_record_of(before))
    }

    /// Which of the events that a plan leaves are then a part of the conversation that goes on, with their numbers.
    pub(super) fn told_after(&self, plan: &Plan) -> Vec<(usize, bool)> {
        let mut spine = Spine::default();
        self.each_left(plan, &mut |_, view| spine.add_any(view));
        spine.decide();
        let mut told = Vec::new();
        self.each_left(plan, &mut |number, view| told.push((number, spine.left_out_any(view).is_none())));
        told
    }

    /// Shows each event that a plan leaves as it is then.
    fn each_left(&self, plan: &Plan, visit: &mut dyn FnMut(usize, &View<'_>)) {
        // Where parts of a record go, the others are numbered again.
        let mut index = 0;
        for (number, sketch) in self.all.iter().enumerate() {
            let goes_on = number.checked_sub(1).and_then(|before| self.get(before)).is_some_and(|b| sketch.follows(b));
            if !goes_on {
                index = sketch.part;
            }
            if plan.fate(number) == Fate::Goes {
                continue;
            }
            let mut view = self.view(number, sketch);
            view.part_index = index;
            view.parent = plan.parent_key(self, number).unwrap_or(sketch.parent);
            view.is_marked = plan.is_shortened(number);
            visit(number, &view);
            index += 1;
        }
    }

    fn view<'a>(&'a self, number: usize, sketch: &'a Sketch) -> View<'a> {
        let end = self.get(number + 1).map_or(self.prints.len(), |next| next.prints as usize);
        let prints = self.prints.get(sketch.prints as usize..end).unwrap_or_default();
        let turns = self.rewinds.binary_search_by_key(&number, |(event, _)| *event).ok();
        let rewinds = turns.and_then(|at| self.rewinds.get(at)).map(|(_, turns)| *turns);
        View { sketch, prints, rewinds, part_index: sketch.part, parent: sketch.parent, is_marked: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_takes_few_bytes() {
        assert!(size_of::<Sketch>() <= 112, "{}", size_of::<Sketch>());
    }
}
