//! Editing a source: a [`Plan`] says what happens to each event, [`carry_out`] does it. Untouched records are copied byte for byte, a
//! record of which something changed is written again by its own format, and the result is read back and compared with the
//! plan. This is the one way in which a source is edited; why something is edited is not known here.
//!
//! An edit reads its source several times and holds about a hundred bytes of each event ([`Sketches`]), so that a source may be larger
//! than memory: [`EditSource`] is one that is read piece by piece. For a small source in memory there is [`Original`]:
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
mod copy;
pub mod cut;
mod echo;
mod gaps;
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

pub use apply::{Edited, Way, carry_out};
pub use original::{Applied, EditSource, Original, Rewritable, apply};
pub use sketch::{Sketched, Sketches};

use change::{Change, Lookup, NewBody, NewParent};

use crate::model::{Body, Content, Event, key};
use crate::text::Str;

/// How large a document may be to be edited: one whose records are no lines is held in memory.
pub const SIZE_MAX: usize = 256 << 20;

/// What happens to an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// Nothing.
    #[default]
    Stays,
    /// It says something else from now on, or something else about itself.
    Becomes,
    /// It is taken out.
    Goes,
}

/// What happens to each event of a source, and what is put in between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    fates: Vec<Fate>,
    /// What changes in the events that become something else.
    changes: BTreeMap<usize, Change>,
    /// Events that are put in, each before the event of that number.
    put_in: Vec<(usize, Event<'static>)>,
    /// The stretch of the session that is a session of its own from now on: every event that names its session names another one.
    own_session: Option<Range<usize>>,
}

impl Plan {
    /// A plan that leaves all these events as they are.
    pub fn of(events: &[Event<'_>]) -> Plan {
        Plan::of_count(events.len())
    }

    /// A plan that leaves so many events as they are.
    pub(crate) fn of_count(count: usize) -> Plan {
        Plan { fates: vec![Fate::Stays; count], ..Plan::default() }
    }

    /// Takes the event of that number out.
    pub fn remove(&mut self, number: usize) {
        self.set(number, Fate::Goes);
    }

    /// Leaves the event of that number as it is, whatever was planned for it.
    pub fn keep(&mut self, number: usize) {
        self.set(number, Fate::Stays);
    }

    /// Lets the event of that number say this and keeps everything else of it.
    pub fn say(&mut self, number: usize, event: &Event<'_>, body: Body<'static>) {
        let new = (body != event.body).then(|| NewBody::Given(Box::new(body)));
        if let Some(change) = self.change(number) {
            change.body = new;
        }
    }

    /// Lets the event of that number have this content and keeps everything else of it.
    fn say_content(&mut self, number: usize, content: Content<'static>) {
        self.say_new(number, NewBody::Content(content));
    }

    fn say_new(&mut self, number: usize, body: NewBody) {
        if let Some(change) = self.change(number) {
            change.body = Some(body);
        }
    }

    /// Lets the event of that number follow the record with this id.
    fn follow(&mut self, number: usize, id: Str<'static>) {
        self.lead(number, NewParent::Given(id));
    }

    fn lead(&mut self, number: usize, parent: NewParent) {
        if let Some(change) = self.change(number) {
            change.parent = Some(parent);
        }
    }

    /// Puts a new event before the one of that number; the number after the last one is the end.
    pub(crate) fn put_before(&mut self, number: usize, event: Event<'static>) {
        // What is put into the same place stands in the order in which it was put there.
        let at = self.put_in.partition_point(|(place, _)| *place <= number);
        self.put_in.insert(at, (number, event));
    }

    /// Puts a new event after the one of that number.
    pub fn put_after(&mut self, number: usize, event: Event<'static>) {
        self.put_before(number.saturating_add(1), event);
    }

    /// What happens to the event of that number.
    pub fn fate(&self, number: usize) -> Fate {
        self.fates.get(number).copied().unwrap_or_default()
    }

    /// The events that are put in, each with the number of the event it stands before.
    pub(crate) fn put_in(&self) -> &[(usize, Event<'static>)] {
        &self.put_in
    }

    /// Whether nothing happens at all.
    pub fn is_empty(&self) -> bool {
        self.put_in.is_empty() && self.own_session.is_none() && self.fates.iter().all(|fate| *fate == Fate::Stays)
    }

    /// The events when the plan is carried out with all that follows from it: for events that are in no file.
    pub fn outcome(&self, events: &[Event<'_>]) -> Vec<Event<'static>> {
        let sketches = events.sketches();
        let whole = echo::follow(&sketches, self);
        let mut lookup = Lookup::wanted(whole.changes.values());
        for (number, event) in events.iter().enumerate() {
            lookup.add(number, event, whole.changes.get(&number));
        }
        let mut found = Vec::new();
        let mut steps = step::Steps::new(&sketches, self, &whole, &lookup);
        for event in events {
            steps.event(event, &mut |step| step.each_left(&mut |event| found.push(event.clone().into_owned())));
        }
        steps.end(&mut |step| step.each_left(&mut |event| found.push(event.clone().into_owned())));
        found
    }

    fn set(&mut self, number: usize, fate: Fate) {
        if let Some(slot) = self.fates.get_mut(number) {
            *slot = fate;
            self.changes.remove(&number);
        }
    }

    /// What changes in the event of that number, which becomes something else.
    fn change(&mut self, number: usize) -> Option<&mut Change> {
        *self.fates.get_mut(number)? = Fate::Becomes;
        Some(self.changes.entry(number).or_default())
    }

    /// Whether the event of that number says something else from now on, or nothing.
    fn is_edited(&self, sketches: &Sketches, number: usize) -> bool {
        match self.fate(number) {
            Fate::Goes => true,
            Fate::Stays => false,
            Fate::Becomes => match self.changes.get(&number).and_then(|change| change.body.as_ref()) {
                None => false,
                // What says just that already is not edited.
                Some(NewBody::Content(Content::Text(text))) => {
                    let said = sketch::of_text(&text.decode());
                    sketches.get(number).is_none_or(|sketch| sketch.said != said)
                }
                Some(NewBody::Given(_) | NewBody::Content(_) | NewBody::Shortened(_) | NewBody::As(_)) => true,
            },
        }
    }

    /// Whether the text of that event ends with the mark of a cut.
    fn is_shortened(&self, number: usize) -> bool {
        let body = self.changes.get(&number).and_then(|change| change.body.as_ref());
        matches!(body, Some(NewBody::Shortened(_) | NewBody::As(_)))
    }

    /// The fingerprint of what the event of that number follows from now on; `None` when that does not change.
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

    fn put_into(&self, number: usize) -> impl Iterator<Item = &Event<'static>> {
        let from = self.put_in.partition_point(|(place, _)| *place < number);
        let rest = self.put_in.get(from..).unwrap_or_default();
        rest.iter().take_while(move |(place, _)| *place == number).map(|(_, event)| event)
    }

    /// Whether something is put in before one of these events.
    fn puts_into(&self, range: &Range<usize>) -> bool {
        let from = self.put_in.partition_point(|(place, _)| *place < range.start);
        self.put_in.get(from).is_some_and(|(place, _)| *place < range.end)
    }

    /// Whether anything happens to one of these events.
    fn touches(&self, sketches: &Sketches, range: &Range<usize>) -> bool {
        let renamed =
            |number: usize| self.own_session.is_some() && sketches.get(number).is_some_and(|sketch| sketch.has_session);
        range.clone().any(|number| self.fate(number) != Fate::Stays || renamed(number))
    }
}
