//! Editing a source: a [`Plan`] says what happens to each event, [`apply`] does it. Untouched records are copied byte for byte, a
//! record of which something changed is written anew by its own format, and what was done is read back and compared with the
//! plan. This is the one way in which a source is edited; why something is edited is not known here.
//!
//! ```
//! use stenograph::edit::{Original, Plan, apply};
//! use stenograph::format::named;
//!
//! let source = b"{\"role\":\"user\",\"content\":\"Hello\"}\n{\"role\":\"assistant\",\"content\":\"Hi\", \"x\":1}\n";
//! let original = Original::read(named("openai-chat").unwrap(), source)?;
//! let mut plan = Plan::of(&original.events);
//! plan.remove(0);
//! let edited = apply(&original, &plan)?;
//! assert_eq!(edited.bytes, b"{\"role\":\"assistant\",\"content\":\"Hi\", \"x\":1}\n");
//! assert!(edited.is_exact());
//! # Ok::<(), std::io::Error>(())
//! ```

mod apply;
pub mod compact;
pub mod cut;
mod echo;
mod splice;
pub mod tokens;
pub mod trim;
pub mod units;

use std::io;
use std::ops::Range;

pub use apply::{Applied, Way, apply};

use crate::format::Format;
use crate::model::{Body, Event, Note, Part};
use crate::read;

/// How large a source may be to be edited: unlike a conversion, an edit holds all of it.
pub const SIZE_MAX: usize = 256 << 20;

/// A source in memory, and what it says.
pub struct Original<'a> {
    /// Its format.
    pub format: &'a dyn Format,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its events, in order. A plan speaks of them by their numbers, from 0.
    pub events: Vec<Event<'static>>,
    /// What reading it remarked on.
    pub notes: Vec<Note>,
}

impl std::fmt::Debug for Original<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (format, events) = (self.format.info().name, self.events.len());
        formatter.debug_struct("Original").field("format", &format).field("events", &events).finish_non_exhaustive()
    }
}

impl<'a> Original<'a> {
    /// Reads a source. One that is too large to be held is refused.
    pub fn read(format: &'a dyn Format, bytes: &'a [u8]) -> io::Result<Original<'a>> {
        if bytes.len() > SIZE_MAX {
            let said =
                format!("the source is larger than {} MiB, which is the most that can be edited", SIZE_MAX >> 20);
            return Err(io::Error::new(io::ErrorKind::Unsupported, said));
        }
        let found = read::all(format, bytes);
        Ok(Original { format, bytes, events: found.events, notes: found.notes })
    }
}

/// What happens to an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fate {
    /// Nothing.
    #[default]
    Stays,
    /// It says something else from now on.
    Becomes(Box<Event<'static>>),
    /// It is taken out.
    Goes,
}

/// What happens to each event of a source, and what is put in between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    fates: Vec<Fate>,
    /// Events that are put in, each before the event of that number.
    put_in: Vec<(usize, Event<'static>)>,
}

impl Plan {
    /// A plan that leaves all these events as they are.
    pub fn of(events: &[Event<'_>]) -> Plan {
        Plan { fates: vec![Fate::Stays; events.len()], put_in: Vec::new() }
    }

    /// Takes the event of that number out.
    pub fn remove(&mut self, number: usize) {
        self.set(number, Fate::Goes);
    }

    /// Leaves the event of that number as it is, whatever was planned for it.
    pub fn keep(&mut self, number: usize) {
        self.set(number, Fate::Stays);
    }

    /// Puts this event in the place of the one of that number. Where it stands, and which part of its record it is, stays.
    pub fn replace(&mut self, number: usize, event: Event<'static>) {
        self.set(number, Fate::Becomes(Box::new(event)));
    }

    /// Lets the event of that number say this and keeps everything else of it.
    pub fn say(&mut self, number: usize, event: &Event<'_>, body: Body<'static>) {
        let before = match self.fates.get_mut(number) {
            Some(Fate::Becomes(before)) => (**before).clone(),
            Some(Fate::Stays | Fate::Goes) | None => event.clone().into_owned(),
        };
        self.replace(number, Event { body, ..before });
    }

    /// Puts a new event before the one of that number; the number after the last one is the end.
    pub fn put_before(&mut self, number: usize, event: Event<'static>) {
        // What is put into the same place stands in the order in which it was put there.
        let at = self.put_in.partition_point(|(place, _)| *place <= number);
        self.put_in.insert(at, (number, event));
    }

    /// Puts a new event after the one of that number.
    pub fn put_after(&mut self, number: usize, event: Event<'static>) {
        self.put_before(number.saturating_add(1), event);
    }

    /// What happens to the event of that number.
    pub fn fate(&self, number: usize) -> &Fate {
        self.fates.get(number).unwrap_or(&Fate::Stays)
    }

    /// The events that are put in, each with the number of the event it stands before.
    pub fn put_in(&self) -> &[(usize, Event<'static>)] {
        &self.put_in
    }

    /// Whether nothing happens at all.
    pub fn is_empty(&self) -> bool {
        self.put_in.is_empty() && self.fates.iter().all(|fate| *fate == Fate::Stays)
    }

    /// The events when the plan is carried out with all that follows from it: for events that are in no file.
    pub fn outcome(&self, events: &[Event<'_>]) -> Vec<Event<'static>> {
        echo::follow(events, self).carried_out(events)
    }

    /// The events when a plan of which all follows is carried out.
    fn carried_out(&self, events: &[Event<'_>]) -> Vec<Event<'static>> {
        self.left(events).into_iter().map(|event| event.clone().into_owned()).collect()
    }

    /// The same events, where they are: a large source is not held twice.
    fn left<'p, 'e>(&'p self, events: &'p [Event<'e>]) -> Vec<&'p Event<'e>> {
        let mut found: Vec<&'p Event<'e>> = Vec::with_capacity(events.len());
        for (number, event) in events.iter().enumerate() {
            found.extend(self.put_into(number).map(|new| -> &'p Event<'e> { new }));
            match self.fate(number) {
                Fate::Stays => found.push(event),
                Fate::Becomes(new) => found.push(new),
                Fate::Goes => {}
            }
        }
        found.extend(self.put_into(events.len()).map(|new| -> &'p Event<'e> { new }));
        found
    }

    /// Where a part of a record goes, the others are numbered anew. What describes the record as a whole rides on its first
    /// part: when that goes, the next one takes it over.
    fn settle_parts(&mut self, events: &[Event<'_>]) {
        let follows =
            |a: &Event<'_>, b: &Event<'_>| b.part.index > 0 && a.part.index.checked_add(1) == Some(b.part.index);
        let mut start = 0;
        for parts in events.chunk_by(follows) {
            let numbers = start..start + parts.len();
            start = numbers.end;
            let kept: Vec<usize> = numbers.clone().filter(|number| *self.fate(*number) != Fate::Goes).collect();
            let Some(first) = parts.first().filter(|_| !kept.is_empty() && kept.len() < parts.len()) else { continue };
            let of = u32::try_from(kept.len()).unwrap_or(u32::MAX);
            for (index, number) in (0..).zip(kept) {
                let Some(event) = events.get(number) else { continue };
                let mut heir = match self.fate(number) {
                    Fate::Becomes(new) => (**new).clone(),
                    Fate::Stays | Fate::Goes => event.clone().into_owned(),
                };
                if index == 0 && number != numbers.start {
                    heir.usage = first.usage;
                    heir.extra = first.extra.clone().into_owned().inherited(&heir.extra);
                }
                heir.part = Part { index, of };
                self.replace(number, heir);
            }
        }
    }

    fn set(&mut self, number: usize, fate: Fate) {
        if let Some(slot) = self.fates.get_mut(number) {
            *slot = fate;
        }
    }

    fn put_into(&self, number: usize) -> impl Iterator<Item = &Event<'static>> {
        let from = self.put_in.partition_point(|(place, _)| *place < number);
        let rest = self.put_in.get(from..).unwrap_or_default();
        rest.iter().take_while(move |(place, _)| *place == number).map(|(_, event)| event)
    }

    /// What stands before a record when the plan is carried out, and what is left of the record.
    fn record(&self, events: &[Event<'_>], range: &Range<usize>) -> (Vec<Event<'static>>, Vec<Event<'static>>) {
        let (mut before, mut kept) = (Vec::new(), Vec::new());
        for number in range.clone() {
            before.extend(self.put_into(number).cloned());
            match (self.fate(number), events.get(number)) {
                (Fate::Stays, Some(event)) => kept.push(event.clone().into_owned()),
                (Fate::Becomes(event), Some(_)) => kept.push((**event).clone()),
                (Fate::Goes, _) | (_, None) => {}
            }
        }
        (before, kept)
    }

    fn touches(&self, range: &Range<usize>) -> bool {
        range.clone().any(|number| *self.fate(number) != Fate::Stays)
    }
}

/// The records of a stream: runs of events that stand in one place together.
pub(crate) fn records(events: &[Event<'_>]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        match found.last_mut() {
            Some(last) if event.part.index > 0 && events.get(last.start).is_some_and(|first| first.at == event.at) => {
                last.end = number + 1;
            }
            _ => found.push(number..number + 1),
        }
    }
    found
}
