//! Which conversation grew out of which: those that begin alike are of one family, and where they part one of them goes on and the others
//! are branches of it. Where the beginning was not copied, the ids of records and what a source says of itself tell.

use std::collections::HashMap;

use super::conversation::{ConversationSteps, id_print};
use super::diff_step::Class;

/// What a conversation grew out of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The other one, by its place in the list.
    pub parent: usize,
    /// How many steps it shares with it.
    pub shared: usize,
    /// The event of the parent after which it went its own way, where that is known.
    pub left: Option<u64>,
    /// How that is known.
    pub how: RelationEvidence,
}

/// How it is known that two conversations are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationEvidence {
    /// Both say the same at their beginning, and then not.
    Branches,
    /// It begins with all of the other.
    Continues,
    /// Both say the same from beginning to end.
    Copy,
    /// Their records have ids in common, or it goes on from a record of the other.
    Ids,
    /// It says so itself.
    Stated,
}

impl RelationEvidence {
    /// The word for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            RelationEvidence::Branches => "branches",
            RelationEvidence::Continues => "continues",
            RelationEvidence::Copy => "copy",
            RelationEvidence::Ids => "ids",
            RelationEvidence::Stated => "stated",
        }
    }
}

/// For each conversation what it grew out of. They are given in the order in which they began, as far as that is known: where nothing else
/// tells, the earlier one goes on.
pub fn relate(conversations: &[ConversationSteps]) -> Vec<Option<Relation>> {
    let mut relations: Vec<Option<Relation>> = vec![None; conversations.len()];
    by_content(conversations, &mut relations);
    by_ids(conversations, &mut relations);
    relations
}

/// Relates conversations that begin alike. Neighbours in the order of their fingerprints share the most, so that joining neighbours by
/// how much they share, the most first, joins every family from its leaves up.
fn by_content(conversations: &[ConversationSteps], relations: &mut [Option<Relation>]) {
    let keys = |at: usize| conversations.get(at).map(|conversation| conversation.steps.as_slice()).unwrap_or_default();
    let mut order: Vec<usize> = (0..conversations.len()).collect();
    order.sort_by(|one, other| {
        let compared = keys(*one).iter().map(|step| step.key).cmp(keys(*other).iter().map(|step| step.key));
        compared.then(one.cmp(other))
    });
    let mut joints: Vec<(usize, usize, usize)> = Vec::new();
    for (one, other) in order.iter().zip(order.iter().skip(1)) {
        let shared = shared(conversations, *one, *other);
        if shared > 0 {
            joints.push((shared, *one, *other));
        }
    }
    joints.sort_by_key(|(shared, ..)| std::cmp::Reverse(*shared));
    let mut heads: Vec<usize> = (0..conversations.len()).collect();
    for (shared, one, other) in joints {
        let (one, other) = (head(&mut heads, one), head(&mut heads, other));
        let (trunk, branch) = trunk(conversations, one, other, shared);
        if let Some(found) = heads.get_mut(branch) {
            *found = trunk;
        }
        put(conversations, relations, branch, trunk, shared);
    }
    // Whoever left at the same place as its parent, or before, left the parent's parent.
    for at in 0..relations.len() {
        while let Some(relation) = relations.get(at).cloned().flatten()
            && let Some(Some(above)) = relations.get(relation.parent)
            && relation.shared <= above.shared
        {
            let parent = above.parent;
            put(conversations, relations, at, parent, relation.shared);
        }
    }
}

/// How many steps two conversations share, if that says anything: that two users begin with the same words does not make one conversation
/// of them; that a model answers with the same words does.
fn shared(conversations: &[ConversationSteps], one: usize, other: usize) -> usize {
    let (Some(one), Some(other)) = (conversations.get(one), conversations.get(other)) else { return 0 };
    let same = one.steps.iter().zip(&other.steps).take_while(|(one, other)| one.key == other.key).count();
    let answers = |class: Class| matches!(class, Class::Assistant | Class::Call | Class::Result);
    let is_answered = one.steps.get(..same).unwrap_or_default().iter().any(|step| answers(step.class));
    let has_ids =
        one.steps.first().zip(other.steps.first()).is_some_and(|(one, other)| one.id != 0 && one.id == other.id);
    if is_answered || has_ids { same } else { 0 }
}

/// Which of two that part goes on: the one that is all in the other, the one that the other says it comes from, the one that went on first,
/// else the one that began first.
fn trunk(conversations: &[ConversationSteps], one: usize, other: usize, shared: usize) -> (usize, usize) {
    let (Some(first), Some(second)) = (conversations.get(one), conversations.get(other)) else { return (one, other) };
    let is_all = |conversation: &ConversationSteps| conversation.steps.len() == shared;
    let comes_from = |conversation: &ConversationSteps, from: &ConversationSteps| {
        conversation.fork.as_ref().is_some_and(|fork| from.session.as_deref() == Some(&fork.session))
            && conversation.session != from.session
    };
    let went_on = |conversation: &ConversationSteps| conversation.steps.get(shared).and_then(|step| step.time);
    let in_order = (one.min(other), one.max(other));
    match (is_all(first), is_all(second)) {
        (true, false) => (one, other),
        (false, true) => (other, one),
        _ if comes_from(first, second) && !comes_from(second, first) => (other, one),
        _ if comes_from(second, first) && !comes_from(first, second) => (one, other),
        (true, true) => in_order,
        (false, false) => match (went_on(first), went_on(second)) {
            (Some(a), Some(b)) if a < b => (one, other),
            (Some(a), Some(b)) if b < a => (other, one),
            _ => in_order,
        },
    }
}

/// The one that goes on of the family so far.
fn head(heads: &mut [usize], mut at: usize) -> usize {
    while let Some(above) = heads.get(at).copied().filter(|above| *above != at) {
        // Half of the way is cut off each time, so that long chains are walked once.
        let further = heads.get(above).copied().unwrap_or(above);
        if let Some(found) = heads.get_mut(at) {
            *found = further;
        }
        at = further;
    }
    at
}

fn put(
    conversations: &[ConversationSteps],
    relations: &mut [Option<Relation>],
    at: usize,
    parent: usize,
    shared: usize,
) {
    let length = |at: usize| conversations.get(at).map_or(0, |conversation| conversation.steps.len());
    let how = match (length(parent) == shared, length(at) == shared) {
        (true, true) => RelationEvidence::Copy,
        (true, false) => RelationEvidence::Continues,
        (false, _) => RelationEvidence::Branches,
    };
    let step = shared.checked_sub(1).and_then(|last| conversations.get(parent)?.steps.get(last));
    if let Some(slot) = relations.get_mut(at) {
        *slot = Some(Relation { parent, shared, left: step.map(|step| step.number), how });
    }
}

/// Relates the remaining conversations by the ids of records and by stated forks. It skips a relation that would make a circle.
fn by_ids(conversations: &[ConversationSteps], relations: &mut [Option<Relation>]) {
    let mut places: HashMap<u64, (usize, usize)> = HashMap::new();
    for (at, conversation) in conversations.iter().enumerate() {
        for (step, found) in conversation.steps.iter().enumerate().filter(|(_, step)| step.id != 0) {
            places.entry(found.id).or_insert((at, step));
        }
    }
    let sessions: HashMap<&str, usize> = conversations
        .iter()
        .enumerate()
        .rev()
        .filter_map(|(at, conversation)| Some((conversation.session.as_deref()?, at)))
        .collect();
    for (at, conversation) in conversations.iter().enumerate() {
        if relations.get(at).is_none_or(Option::is_some) {
            continue;
        }
        let elsewhere = |place: Option<&(usize, usize)>| place.copied().filter(|(other, _)| *other != at);
        let stated = conversation.fork.as_ref().and_then(|fork| {
            let parent = sessions.get(fork.session.as_ref()).copied().filter(|parent| *parent != at)?;
            // Several conversations may have the record; the stated parent counts.
            let record = id_print(fork.record.as_deref());
            let steps = &conversations.get(parent)?.steps;
            Some((parent, steps.iter().position(|step| step.id == record && record != 0), RelationEvidence::Stated))
        });
        let shared = || {
            let last = conversation
                .steps
                .iter()
                .rev()
                .find_map(|step| elsewhere(places.get(&step.id).filter(|_| step.id != 0)));
            let (parent, step) =
                last.or_else(|| elsewhere(places.get(&conversation.follows).filter(|_| conversation.follows != 0)))?;
            Some((parent, Some(step), RelationEvidence::Ids))
        };
        let Some((parent, step, how)) = stated.or_else(shared) else { continue };
        if is_below(relations, parent, at) {
            continue;
        }
        let found = step.and_then(|step| conversations.get(parent)?.steps.get(step));
        let shared = found.map_or(0, |found| {
            let same = conversation.steps.iter().rposition(|step| step.id == found.id && step.id != 0);
            same.map_or(0, |same| same + 1)
        });
        if let Some(slot) = relations.get_mut(at) {
            *slot = Some(Relation { parent, shared, left: found.map(|step| step.number), how });
        }
    }
}

/// Whether one conversation grew out of another, however far back.
fn is_below(relations: &[Option<Relation>], mut at: usize, above: usize) -> bool {
    // No chain is longer than the list, should there ever be a circle.
    for _ in 0..relations.len() {
        match relations.get(at).and_then(Option::as_ref) {
            _ if at == above => return true,
            Some(relation) => at = relation.parent,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
