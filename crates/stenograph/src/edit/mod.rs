//! Edits a source: a [`Plan`] holds what happens to each event, and [`carry_out`] does it. It copies unchanged records byte for
//! byte, lets the writer of the format write changed ones, reads the result back and compares it with the plan. All edits of
//! sources use it; `trim`, `cut` and `compact` make plans.
//!
//! An edit reads its source several times and holds about a hundred bytes of each event ([`Sketches`]), so that a source may be
//! larger than memory ([`EditSource`]). [`Original`] is for small sources in memory:
//!
//! ```
//! use stenograph::edit::{Original, Plan, apply};
//! use stenograph::Registry;
//!
//! let source = b"{\"role\":\"user\",\"content\":\"Hello\"}\n{\"role\":\"assistant\",\"content\":\"Hi\", \"x\":1}\n";
//! let original = Original::read(Registry::built_in().named("openai-chat").unwrap(), source)?;
//! let mut plan = Plan::of(&original.events);
//! plan.remove(0);
//! let edited = apply(&original, &plan)?;
//! assert_eq!(edited.bytes, b"{\"role\":\"assistant\",\"content\":\"Hi\", \"x\":1}\n");
//! assert!(edited.is_exact());
//! # Ok::<(), std::io::Error>(())
//! ```

mod apply;
mod change;
pub mod compact;
mod consequences;
mod copy;
pub mod cut;
pub mod fields;
mod gaps;
pub mod links;
mod original;
mod read_back;
mod sketch;
mod splice;
mod step;
pub mod tokens;
pub mod trim;
pub mod units;

use std::collections::BTreeMap;
use std::ops::Range;

pub use apply::{EditMethod, Edited, carry_out};
pub use original::{Applied, EditSource, Original, Rewritable, apply};
pub use sketch::{Sketched, Sketches};

use change::{EventChange, Lookup, NewBody, NewParent};

use crate::model::{Body, Content, Event, key};
use crate::text::Str;

/// The size limit of a document: a source whose records are not lines is held in memory.
pub const SIZE_MAX: usize = 256 << 20;

/// What happens to an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It stays as it is.
    #[default]
    Kept,
    /// Its content, its parent or one of its fields changes.
    Changed,
    /// It is removed.
    Removed,
}

/// What happens to each event of a source, and which events are inserted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    fates: Vec<Fate>,
    /// The changes of the changed events.
    changes: BTreeMap<usize, EventChange>,
    /// New events, each with the number of the event that it is inserted before.
    insertions: Vec<(usize, Event<'static>)>,
    /// The range of events that becomes a session of its own: all its events that name their session get a new name.
    own_session: Option<Range<usize>>,
}

impl Plan {
    /// A plan that keeps all these events.
    pub fn of(events: &[Event<'_>]) -> Plan {
        Plan::of_count(events.len())
    }

    /// A plan that keeps this many events.
    pub(crate) fn of_count(count: usize) -> Plan {
        Plan { fates: vec![Fate::Kept; count], ..Plan::default() }
    }

    /// Removes the event with this number.
    pub fn remove(&mut self, number: usize) {
        self.set(number, Fate::Removed);
    }

    /// Keeps the event with this number as it is, whatever was planned for it.
    pub fn keep(&mut self, number: usize) {
        self.set(number, Fate::Kept);
    }

    /// Replaces the body of an event and keeps everything else.
    pub fn replace_body(&mut self, number: usize, event: &Event<'_>, body: Body<'static>) {
        let new = (body != event.body).then(|| NewBody::Given(Box::new(body)));
        if let Some(change) = self.change(number) {
            change.body = new;
        }
    }

    /// Replaces the content of an event and keeps everything else.
    fn replace_content(&mut self, number: usize, content: Content<'static>) {
        self.set_body(number, NewBody::Content(content));
    }

    fn set_body(&mut self, number: usize, body: NewBody) {
        if let Some(change) = self.change(number) {
            change.body = Some(body);
        }
    }

    /// Makes an event follow the record with this id.
    fn set_parent_id(&mut self, number: usize, id: Str<'static>) {
        self.set_parent(number, NewParent::Given(id));
    }

    fn set_parent(&mut self, number: usize, parent: NewParent) {
        if let Some(change) = self.change(number) {
            change.parent = Some(parent);
        }
    }

    /// Inserts an event before the one with this number; the number of events means the end. Events inserted at one place keep
    /// the order of the calls.
    pub(crate) fn insert_before(&mut self, number: usize, event: Event<'static>) {
        let at = self.insertions.partition_point(|(place, _)| *place <= number);
        self.insertions.insert(at, (number, event));
    }

    /// Inserts an event after the one with this number.
    pub fn insert_after(&mut self, number: usize, event: Event<'static>) {
        self.insert_before(number.saturating_add(1), event);
    }

    /// What happens to the event with this number.
    pub fn fate(&self, number: usize) -> Fate {
        self.fates.get(number).copied().unwrap_or_default()
    }

    /// The inserted events, each with the number of the event after it.
    pub(crate) fn insertions(&self) -> &[(usize, Event<'static>)] {
        &self.insertions
    }

    /// Whether the plan changes nothing.
    pub fn is_empty(&self) -> bool {
        self.insertions.is_empty() && self.own_session.is_none() && self.fates.iter().all(|fate| *fate == Fate::Kept)
    }

    /// The events after the edit and all its consequences, for events that are in no file.
    pub fn outcome(&self, events: &[Event<'_>]) -> Vec<Event<'static>> {
        let sketches = events.sketches();
        let complete = consequences::add(&sketches, self);
        let mut lookup = Lookup::wanted(complete.changes.values());
        for (number, event) in events.iter().enumerate() {
            lookup.add(number, event, complete.changes.get(&number));
        }
        let mut found = Vec::new();
        let mut steps = step::Steps::new(&sketches, self, &complete, &lookup);
        for event in events {
            steps.event(event, &mut |step| step.each_result(&mut |event| found.push(event.clone().into_owned())));
        }
        steps.end(&mut |step| step.each_result(&mut |event| found.push(event.clone().into_owned())));
        found
    }

    fn set(&mut self, number: usize, fate: Fate) {
        if let Some(slot) = self.fates.get_mut(number) {
            *slot = fate;
            self.changes.remove(&number);
        }
    }

    /// Marks the event with this number as changed. Returns its change.
    fn change(&mut self, number: usize) -> Option<&mut EventChange> {
        *self.fates.get_mut(number)? = Fate::Changed;
        Some(self.changes.entry(number).or_default())
    }

    /// Whether the plan removes an event or changes its content.
    fn is_edited(&self, sketches: &Sketches, number: usize) -> bool {
        match self.fate(number) {
            Fate::Removed => true,
            Fate::Kept => false,
            Fate::Changed => match self.changes.get(&number).and_then(|change| change.body.as_ref()) {
                None => false,
                Some(NewBody::Content(Content::Text(text))) => {
                    let new = sketch::text_print(&text.decode());
                    sketches.get(number).is_none_or(|sketch| sketch.text != new)
                }
                Some(NewBody::Given(_) | NewBody::Content(_) | NewBody::Shortened(_) | NewBody::SameAs(_)) => true,
            },
        }
    }

    /// Whether the text of an event ends with `...snip...` after the edit.
    fn is_shortened(&self, number: usize) -> bool {
        let body = self.changes.get(&number).and_then(|change| change.body.as_ref());
        matches!(body, Some(NewBody::Shortened(_) | NewBody::SameAs(_)))
    }

    /// The fingerprint of the new parent of an event; `None` if its parent does not change.
    fn parent_key(&self, sketches: &Sketches, number: usize) -> Option<u64> {
        let id = |number: &usize| sketches.get(*number).map_or(0, |sketch| sketch.id);
        let parent = |number: &usize| sketches.get(*number).map_or(0, |sketch| sketch.parent);
        Some(match self.changes.get(&number)?.parent.as_ref()? {
            NewParent::Nothing => 0,
            NewParent::Given(id) => key(id).max(1),
            NewParent::Event(number) => id(number),
            NewParent::ParentOf(number) => parent(number),
        })
    }

    fn inserted_before(&self, number: usize) -> impl Iterator<Item = &Event<'static>> {
        let from = self.insertions.partition_point(|(place, _)| *place < number);
        let rest = self.insertions.get(from..).unwrap_or_default();
        rest.iter().take_while(move |(place, _)| *place == number).map(|(_, event)| event)
    }

    /// Whether the plan inserts an event before one of these.
    fn inserts_into(&self, range: &Range<usize>) -> bool {
        let from = self.insertions.partition_point(|(place, _)| *place < range.start);
        self.insertions.get(from).is_some_and(|(place, _)| *place < range.end)
    }

    /// Whether the plan changes or removes one of these events.
    fn touches(&self, sketches: &Sketches, range: &Range<usize>) -> bool {
        let is_renamed =
            |number: usize| self.own_session.is_some() && sketches.get(number).is_some_and(|sketch| sketch.has_session);
        range.clone().any(|number| self.fate(number) != Fate::Kept || is_renamed(number))
    }
}
