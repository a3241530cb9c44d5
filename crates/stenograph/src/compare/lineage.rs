//! Finds which conversation is a fork or a continuation of which. Conversations with a common beginning are one family; where they
//! diverge, one of them is the parent and the others are its branches. If a fork did not copy the beginning, the ids of records or the
//! statement of the source relate it.

use std::collections::HashMap;

use super::conversation::{ConversationSteps, id_hash};
use super::diff_step::Class;

/// The relation of a conversation to its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The index of the parent.
    pub parent: usize,
    /// The number of common steps.
    pub shared: usize,
    /// The last common event of the parent, if it is known.
    pub left: Option<u64>,
    /// The evidence for the relation.
    pub how: RelationEvidence,
}

/// The evidence that two conversations are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationEvidence {
    /// Both have the same beginning and then diverge.
    Branches,
    /// It begins with all steps of the parent.
    Continues,
    /// Both have the same steps.
    Copy,
    /// Their records have common ids, or its first record continues a record of the parent.
    Ids,
    /// Its source states the parent.
    Stated,
}

impl RelationEvidence {
    /// The name in reports.
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

/// The relation of each conversation to its parent. The conversations must be in the order of their first events, as far as it is known:
/// without other evidence, the earlier one is the parent.
pub fn relate(conversations: &[ConversationSteps]) -> Vec<Option<Relation>> {
    let mut relations: Vec<Option<Relation>> = vec![None; conversations.len()];
    by_content(conversations, &mut relations);
    by_ids(conversations, &mut relations);
    relations
}

/// Relates conversations with a common beginning. In the order of their hashes, neighbours share the most steps. Joining neighbours with
/// the most common steps first therefore builds each family from its leaves up.
fn by_content(conversations: &[ConversationSteps], relations: &mut [Option<Relation>]) {
    let keys = |at: usize| conversations.get(at).map(|conversation| conversation.steps.as_slice()).unwrap_or_default();
    let mut order: Vec<usize> = (0..conversations.len()).collect();
    order.sort_by(|one, other| {
        let compared = keys(*one).iter().map(|step| step.key).cmp(keys(*other).iter().map(|step| step.key));
        compared.then(one.cmp(other))
    });
    let mut neighbours: Vec<(usize, usize, usize)> = Vec::new();
    for (one, other) in order.iter().zip(order.iter().skip(1)) {
        let shared = shared(conversations, *one, *other);
        if shared > 0 {
            neighbours.push((shared, *one, *other));
        }
    }
    neighbours.sort_by_key(|(shared, ..)| std::cmp::Reverse(*shared));
    let mut roots: Vec<usize> = (0..conversations.len()).collect();
    for (shared, one, other) in neighbours {
        let (one, other) = (root(&mut roots, one), root(&mut roots, other));
        let (trunk, branch) = trunk(conversations, one, other, shared);
        if let Some(found) = roots.get_mut(branch) {
            *found = trunk;
        }
        set_relation(conversations, relations, branch, trunk, shared);
    }
    // A conversation that diverges where its parent does, or before, is a branch of the parent's parent.
    for at in 0..relations.len() {
        while let Some(relation) = relations.get(at).cloned().flatten()
            && let Some(Some(above)) = relations.get(relation.parent)
            && relation.shared <= above.shared
        {
            let parent = above.parent;
            set_relation(conversations, relations, at, parent, relation.shared);
        }
    }
}

/// The number of common steps at the beginning of two conversations, if they are evidence: two users may type the same question, but equal
/// answers of a model mean that one conversation is a copy.
fn shared(conversations: &[ConversationSteps], one: usize, other: usize) -> usize {
    let (Some(one), Some(other)) = (conversations.get(one), conversations.get(other)) else { return 0 };
    let same = one.steps.iter().zip(&other.steps).take_while(|(one, other)| one.key == other.key).count();
    let answers = |class: Class| matches!(class, Class::Assistant | Class::Call | Class::Result);
    let is_answered = one.steps.get(..same).unwrap_or_default().iter().any(|step| answers(step.class));
    let has_ids =
        one.steps.first().zip(other.steps.first()).is_some_and(|(one, other)| one.id != 0 && one.id == other.id);
    if is_answered || has_ids { same } else { 0 }
}

/// Orders two related conversations as parent and branch. The parent is the one that the other contains whole, the one that the other
/// states as its origin, the one that continued first, or else the one that began first.
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

/// The root of the family so far.
fn root(roots: &mut [usize], mut at: usize) -> usize {
    while let Some(above) = roots.get(at).copied().filter(|above| *above != at) {
        // Path halving: each walk shortens the chain for the next one.
        let further = roots.get(above).copied().unwrap_or(above);
        if let Some(found) = roots.get_mut(at) {
            *found = further;
        }
        at = further;
    }
    at
}

fn set_relation(
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

/// Relates the remaining conversations by the ids of records and by stated forks. It skips a relation that would make a cycle.
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
            let record = id_hash(fork.record.as_deref());
            let steps = &conversations.get(parent)?.steps;
            Some((parent, steps.iter().position(|step| step.id == record && record != 0), RelationEvidence::Stated))
        });
        let shared = || {
            let last = conversation
                .steps
                .iter()
                .rev()
                .find_map(|step| elsewhere(places.get(&step.id).filter(|_| step.id != 0)));
            let (parent, step) = last.or_else(|| {
                elsewhere(places.get(&conversation.first_parent_hash).filter(|_| conversation.first_parent_hash != 0))
            })?;
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

/// Whether one conversation is a descendant of another.
fn is_below(relations: &[Option<Relation>], mut at: usize, above: usize) -> bool {
    // No chain is longer than the list, even if there were a cycle.
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
