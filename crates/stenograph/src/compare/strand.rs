//! A strand: one conversation as a line of fingerprints, and the branches within its source that were given up. What was said is not
//! kept, but for the beginnings of what users said: they tell why somebody went another way.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::turn::{Class, said};
use crate::model::{Event, ForkOrigin, Spine, is_framed};

/// One step of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// A fingerprint of what is said or done.
    pub key: u64,
    /// A fingerprint of the record's id; 0 where it has none that means anything elsewhere.
    pub id: u64,
    /// When, in milliseconds since 1970.
    pub time: Option<i64>,
    /// The number of its event in the source, from 1.
    pub number: u64,
    /// Who takes it.
    pub class: Class,
}

/// A branch within a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// The branch that it left: 0 is the one that goes on, 1 the first in the list.
    pub within: u32,
    /// The event after which it left, where there is one.
    pub left: Option<u64>,
    /// Its first event.
    pub first: u64,
    /// Its last event.
    pub last: u64,
    /// How many steps it has of its own.
    pub steps: u64,
    /// When it began, in milliseconds since 1970.
    pub started: Option<i64>,
    /// When the last thing happened in it.
    pub ended: Option<i64>,
    /// The beginning of the first thing a user said in it.
    pub asked: Option<String>,
}

/// One conversation.
#[derive(Clone, Debug, Default)]
pub struct Strand {
    /// Its session, as it calls itself.
    pub session: Option<String>,
    /// What it says about where it comes from.
    pub fork: Option<ForkOrigin<'static>>,
    /// The steps of the conversation that goes on.
    pub steps: Vec<Step>,
    /// The branches that were given up.
    pub branches: Vec<Branch>,
    /// How many events the source has.
    pub events: u64,
    /// A fingerprint of the record that its first one follows.
    pub(super) follows: u64,
    /// What users said, by step.
    asked: BTreeMap<usize, String>,
}

/// An id that is shorter than this only means something within its source: calls are counted by few, records by many.
const CALL_ID_LENGTH_MIN: usize = 8;
const RECORD_ID_LENGTH_MIN: usize = 16;

/// How much is kept of what a user said.
const ASKED_LENGTH_MAX: usize = 200;

/// How many branches of one source are told apart: more have never been seen, and somebody may write any number.
const BRANCHES_MAX: usize = 4_096;

impl Strand {
    /// The first thing that a user said from this step on.
    pub fn asked_from(&self, step: usize) -> Option<&str> {
        self.asked.range(step..).next().map(|(_, text)| text.as_str())
    }

    /// When it began.
    pub fn started(&self) -> Option<i64> {
        self.steps.iter().find_map(|step| step.time)
    }

    /// When the last thing happened in it.
    pub fn ended(&self) -> Option<i64> {
        self.steps.iter().rev().find_map(|step| step.time)
    }
}

/// Makes the conversation of a source in a second pass, after the spine is decided.
#[derive(Debug, Default)]
pub struct ConversationBuilder {
    strand: Strand,
    /// Which branches left from a record, and the last event of that record once it was seen.
    left: BTreeMap<u32, Vec<u32>>,
}

impl ConversationBuilder {
    /// Begins.
    pub fn new(spine: &Spine) -> ConversationBuilder {
        let mut weaving = ConversationBuilder::default();
        let branches = spine.left_from().iter().take(BRANCHES_MAX);
        for (branch, record) in (1..).zip(branches) {
            weaving.left.entry(*record).or_default().push(branch);
            weaving.strand.branches.push(Branch::default());
        }
        weaving
    }

    /// Takes notice of the next event, which the spine was just asked about.
    pub fn add(&mut self, event: &Event<'_>, spine: &Spine, is_in_spine: IsInSpine) {
        self.strand.events += 1;
        let (number, branch) = (self.strand.events, spine.branch());
        for left in self.left.get(&spine.record()).into_iter().flatten() {
            if let Some(left) = slot(&mut self.strand.branches, *left) {
                (left.left, left.within) = (Some(number), branch);
            }
        }
        self.head(event);
        if is_in_spine == IsInSpine::No && (branch == 0 || event.restates || event.thread.is_some()) {
            return;
        }
        let Some(step) = step(number, event) else { return };
        let asked = || Some(beginning(event)).filter(|_| step.class == Class::User && !is_put_in(event));
        if branch == 0 {
            if let Some(asked) = asked() {
                self.strand.asked.insert(self.strand.steps.len(), asked);
            }
            self.strand.steps.push(step);
        } else if let Some(found) = slot(&mut self.strand.branches, branch) {
            if found.first == 0 {
                (found.first, found.started) = (number, step.time);
            }
            (found.last, found.steps) = (number, found.steps + 1);
            found.ended = step.time.or(found.ended);
            if found.asked.is_none() {
                found.asked = asked();
            }
        }
    }

    /// What the source says of itself.
    fn head(&mut self, event: &Event<'_>) {
        let strand = &mut self.strand;
        if strand.session.is_none() {
            strand.session = event.session.as_deref().filter(|id| !id.is_empty()).map(str::to_owned);
        }
        if strand.follows == 0 && strand.steps.is_empty() && !event.restates {
            strand.follows = id_print(event.parent.as_deref());
        }
        if strand.fork.is_none() {
            strand.fork = event.forked_from.as_deref().map(|fork| fork.clone().into_owned());
        }
    }

    /// The strand, when all events were seen.
    pub fn finish(mut self) -> Strand {
        // A branch in which nothing was said is none; those that left it are few enough to lose their place.
        self.strand.branches.truncate(BRANCHES_MAX);
        self.strand
    }
}

/// Whether an event is in the spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsInSpine {
    /// It is.
    Yes,
    /// It is not.
    No,
}

fn slot(branches: &mut [Branch], branch: u32) -> Option<&mut Branch> {
    branches.get_mut((branch as usize).checked_sub(1)?)
}

/// A step, where the event is one that goes along when a conversation is copied: instructions may be others then, and thoughts are left
/// behind.
fn step(number: u64, event: &Event<'_>) -> Option<Step> {
    let class = Class::of(event)?;
    if matches!(class, Class::Instructions | Class::Thinking | Class::Failure) {
        return None;
    }
    // What tools were given and what they answered may be cut to size in a copy, but their ids go along.
    let key = match print_of(event.call(), CALL_ID_LENGTH_MIN) {
        0 => {
            let tool = event.name().filter(|_| class == Class::Call).map_or(0, |name| xxh3_64(name.as_bytes()));
            xxh3_64_with_seed(said(event).trim().as_bytes(), tool ^ class as u64)
        }
        call => xxh3_64_with_seed(&call.to_le_bytes(), class as u64),
    };
    let time = event.time.as_ref().and_then(|time| Some(time.instant()?.as_millisecond()));
    Some(Step { key, id: id_print(event.id.as_deref()), time, number, class })
}

/// A fingerprint of a record's id that means something in other sources too, else 0.
pub(super) fn id_print(id: Option<&str>) -> u64 {
    print_of(id, RECORD_ID_LENGTH_MIN)
}

fn print_of(id: Option<&str>, length_min: usize) -> u64 {
    id.filter(|id| id.len() >= length_min).map_or(0, |id| xxh3_64(id.as_bytes()).max(1))
}

/// Whether an agent put a message into the user's mouth.
fn is_put_in(event: &Event<'_>) -> bool {
    event.content().is_some_and(is_framed)
}

fn beginning(event: &Event<'_>) -> String {
    said(event).trim().chars().take(ASKED_LENGTH_MAX).collect()
}
