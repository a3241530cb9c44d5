//! One conversation as a list of hashes, with the abandoned branches of its source. Of the texts, it keeps only the beginnings of user
//! messages, which show why a branch was abandoned.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::diff_step::{Class, canonical_text};
use crate::model::{Event, ForkOrigin, Spine, is_global_id, is_lasting_id};
use crate::turns::begins_turn;

/// One step of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// A hash of the content.
    pub key: u64,
    /// A hash of the record's id; 0 for an id that may name another record in another source.
    pub id: u64,
    /// Its time, in milliseconds since 1970.
    pub time: Option<i64>,
    /// The number of its event in the source, from 1.
    pub number: u64,
    /// The kind of the step.
    pub class: Class,
}

/// A branch within a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// The branch that it starts from: 0 is the main line, 1 the first branch in the list.
    pub within: u32,
    /// The event after which it starts; `None` at the beginning of the source.
    pub left: Option<u64>,
    /// Its first event.
    pub first: u64,
    /// Its last event.
    pub last: u64,
    /// The number of steps in this branch only.
    pub steps: u64,
    /// The time of its first step, in milliseconds since 1970.
    pub started: Option<i64>,
    /// The time of its last step, in milliseconds since 1970.
    pub ended: Option<i64>,
    /// The beginning of its first user message.
    pub asked: Option<String>,
}

/// The steps and branches of one conversation.
#[derive(Clone, Debug, Default)]
pub struct ConversationSteps {
    /// The session that the source states.
    pub session: Option<String>,
    /// The session that it was forked from, if the source states it.
    pub fork: Option<ForkOrigin<'static>>,
    /// The steps of the main line.
    pub steps: Vec<Step>,
    /// The abandoned branches.
    pub branches: Vec<Branch>,
    /// The number of events in the source.
    pub events: u64,
    /// A hash of the id of its first record's parent.
    pub(super) first_parent_hash: u64,
    /// The beginnings of user messages, by step.
    asked: BTreeMap<usize, String>,
}

/// The most characters of a user message.
const ASKED_LENGTH_MAX: usize = 200;

/// The most branches of one source. Real sources have far fewer.
const BRANCHES_MAX: usize = 4_096;

impl ConversationSteps {
    /// The beginning of the first user message from this step on.
    pub fn asked_from(&self, step: usize) -> Option<&str> {
        self.asked.range(step..).next().map(|(_, text)| text.as_str())
    }

    /// The time of the first step that has one.
    pub fn started(&self) -> Option<i64> {
        self.steps.iter().find_map(|step| step.time)
    }

    /// The time of the last step that has one.
    pub fn ended(&self) -> Option<i64> {
        self.steps.iter().rev().find_map(|step| step.time)
    }
}

/// Builds the conversation of a source in a second pass over its events, after the spine is decided.
#[derive(Debug, Default)]
pub struct ConversationBuilder {
    conversation: ConversationSteps,
    /// The branches that start after each record.
    left: BTreeMap<u32, Vec<u32>>,
}

impl ConversationBuilder {
    /// A builder for the source of this spine.
    pub fn new(spine: &Spine) -> ConversationBuilder {
        let mut builder = ConversationBuilder::default();
        let branches = spine.left_from().iter().take(BRANCHES_MAX);
        for (branch, record) in (1..).zip(branches) {
            builder.left.entry(*record).or_default().push(branch);
            builder.conversation.branches.push(Branch::default());
        }
        builder
    }

    /// Adds the next event. The caller has just asked the spine about it.
    pub fn add(&mut self, event: &Event<'_>, spine: &Spine, is_in_spine: IsInSpine) {
        self.conversation.events += 1;
        let (number, branch) = (self.conversation.events, spine.branch());
        for left in self.left.get(&spine.record()).into_iter().flatten() {
            if let Some(left) = slot(&mut self.conversation.branches, *left) {
                (left.left, left.within) = (Some(number), branch);
            }
        }
        self.head(event);
        if is_in_spine == IsInSpine::No && (branch == 0 || event.restates || event.thread.is_some()) {
            return;
        }
        let Some(step) = step(number, event) else { return };
        let asked = || begins_turn(event).then(|| beginning(event));
        if branch == 0 {
            if let Some(asked) = asked() {
                self.conversation.asked.insert(self.conversation.steps.len(), asked);
            }
            self.conversation.steps.push(step);
        } else if let Some(found) = slot(&mut self.conversation.branches, branch) {
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

    /// Adds what an event states about the session.
    fn head(&mut self, event: &Event<'_>) {
        let conversation = &mut self.conversation;
        if conversation.session.is_none() {
            conversation.session = event.session.as_deref().filter(|id| !id.is_empty()).map(str::to_owned);
        }
        if conversation.first_parent_hash == 0 && conversation.steps.is_empty() && !event.restates {
            conversation.first_parent_hash = id_hash(event.parent.as_deref());
        }
        if conversation.fork.is_none() {
            conversation.fork = event.forked_from.as_deref().map(|fork| fork.clone().into_owned());
        }
    }

    /// The conversation, after the last event.
    pub fn finish(self) -> ConversationSteps {
        self.conversation
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

/// The step of an event. Instructions, thoughts and failures do not count: an agent that copies a conversation does not copy them.
fn step(number: u64, event: &Event<'_>) -> Option<Step> {
    let class = Class::of(event)?;
    if matches!(class, Class::Instructions | Class::Thinking | Class::Failure) {
        return None;
    }
    // A copy may shorten the inputs and results of tools, but it keeps their ids.
    let key = match hash_of(event.call().filter(|id| is_lasting_id(id))) {
        0 => {
            let tool = event.name().filter(|_| class == Class::Call).map_or(0, |name| xxh3_64(name.as_bytes()));
            xxh3_64_with_seed(canonical_text(event).trim().as_bytes(), tool ^ class as u64)
        }
        call => xxh3_64_with_seed(&call.to_le_bytes(), class as u64),
    };
    let time = event.time.as_ref().and_then(crate::time::Time::to_millis);
    Some(Step { key, id: id_hash(event.id.as_deref()), time, number, class })
}

/// A fingerprint of a record's id; 0 for an id that may mean another record in another source.
pub(super) fn id_hash(id: Option<&str>) -> u64 {
    hash_of(id.filter(|id| is_global_id(id)))
}

fn hash_of(id: Option<&str>) -> u64 {
    id.map_or(0, |id| xxh3_64(id.as_bytes()).max(1))
}

fn beginning(event: &Event<'_>) -> String {
    canonical_text(event).trim().chars().take(ASKED_LENGTH_MAX).collect()
}
