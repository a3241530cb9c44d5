//! Which hits are shown when several have the same content: copies of one record, and records that repeat another. Both
//! engines use this function. It must see all hits of a query, in the order in which they are shown.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// The properties of a hit that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Same<S> {
    /// Its session: a record repeats only records of the same session.
    pub session: S,
    /// [`super::Entry::key`].
    pub key: u64,
    /// [`super::Entry::twin`].
    pub twin: u64,
    /// [`super::Entry::restates`].
    pub restates: bool,
}

/// A hit that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollapsedHit {
    /// Its index among all hits.
    pub hit: usize,
    /// The indexes of its copies, which are not shown.
    pub copies: Vec<usize>,
}

/// The hits that are shown, in their order. Copies of one record, and restatements of the same words in one session, are one hit:
/// the first of them is shown. A restatement of words that its session states is not shown. The number of hits is the same for
/// every order.
///
/// `pieces` are the texts that are stated as one of several: the sessions and [`super::Entry::piece_twins`] of hits that are not
/// restatements.
pub fn collapse<S: Copy + Eq + Hash>(hits: &[Same<S>], pieces: impl Iterator<Item = (S, u64)>) -> Vec<CollapsedHit> {
    let whole = hits.iter().filter(|hit| !hit.restates).map(|hit| (hit.session, hit.twin));
    let stated: HashSet<(S, u64)> = whole.chain(pieces).collect();
    let is_left = |hit: &Same<S>| !hit.restates || !stated.contains(&(hit.session, hit.twin));
    // Each hit belongs to the group of an earlier hit, or begins one.
    let mut groups: Vec<usize> = (0..hits.len()).collect();
    let mut by_key: HashMap<u64, usize> = HashMap::new();
    let mut by_words: HashMap<(S, u64), usize> = HashMap::new();
    for (at, hit) in hits.iter().enumerate().filter(|(_, hit)| is_left(hit)) {
        let copied = *by_key.entry(hit.key).or_insert(at);
        join(&mut groups, copied, at);
        if hit.restates {
            let restated = *by_words.entry((hit.session, hit.twin)).or_insert(at);
            join(&mut groups, restated, at);
        }
    }
    let mut shown: Vec<CollapsedHit> = Vec::new();
    let mut shown_at: HashMap<usize, usize> = HashMap::new();
    for (at, hit) in hits.iter().enumerate().filter(|(_, hit)| is_left(hit)) {
        let first = first_of(&mut groups, at);
        let Some(group) = shown_at.get(&first).and_then(|group| shown.get_mut(*group)) else {
            shown_at.insert(first, shown.len());
            shown.push(CollapsedHit { hit: at, copies: Vec::new() });
            continue;
        };
        // Other words for the same are not copies.
        if hits.get(group.hit).is_some_and(|first| first.key == hit.key) {
            group.copies.push(at);
        }
    }
    shown
}

/// Makes one group of the groups of two hits.
fn join(groups: &mut [usize], one: usize, other: usize) {
    let (one, other) = (first_of(groups, one), first_of(groups, other));
    if let Some(later) = groups.get_mut(one.max(other)) {
        *later = one.min(other);
    }
}

/// The first hit of the group of a hit.
fn first_of(groups: &mut [usize], mut at: usize) -> usize {
    while let Some(above) = groups.get(at).copied().filter(|above| *above != at) {
        // Halving the path keeps later searches short.
        let next = groups.get(above).copied().unwrap_or(above);
        if let Some(slot) = groups.get_mut(at) {
            *slot = next;
        }
        at = next;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(hits: &[(u32, u64, u64, bool)]) -> Vec<(usize, Vec<usize>)> {
        let hits: Vec<Same<u32>> = hits
            .iter()
            .map(|(session, key, twin, restates)| Same {
                session: *session,
                key: *key,
                twin: *twin,
                restates: *restates,
            })
            .collect();
        collapse(&hits, std::iter::empty()).into_iter().map(|shown| (shown.hit, shown.copies)).collect()
    }

    #[test]
    fn of_copies_the_first_is_shown() {
        assert_eq!(shown(&[(1, 7, 1, false), (2, 8, 2, false), (3, 7, 1, false)]), [(0, vec![2]), (1, vec![])]);
    }

    #[test]
    fn a_restatement_goes_when_its_session_states_it() {
        assert_eq!(shown(&[(1, 7, 1, true), (1, 8, 1, false), (2, 9, 1, true)]), [(1, vec![]), (2, vec![])]);
    }

    #[test]
    fn a_restatement_goes_when_it_is_stated_among_others() {
        let hits = [(1, true), (2, true)].map(|(session, restates)| Same { session, key: session, twin: 5, restates });
        assert_eq!(collapse(&hits, [(1, 5)].into_iter()), [CollapsedHit { hit: 1, copies: vec![] }]);
    }

    #[test]
    fn of_restatements_alone_one_stays() {
        assert_eq!(shown(&[(1, 7, 1, true), (1, 8, 1, true), (1, 7, 1, true)]), [(0, vec![2])]);
    }

    #[test]
    fn what_is_said_twice_is_found_twice() {
        assert_eq!(shown(&[(1, 7, 1, false), (1, 8, 1, false)]).len(), 2);
    }

    #[test]
    fn the_number_of_hits_is_the_same_for_every_order() {
        // Two restatements of one session, one of which another session copies.
        let hits = [(1, 7, 1, true), (1, 8, 1, true), (2, 7, 1, true), (3, 9, 4, false), (2, 9, 4, false)];
        for first in 0..hits.len() {
            for second in 0..hits.len() {
                let mut hits = hits;
                hits.swap(0, first);
                hits.swap(1, second);
                assert_eq!(shown(&hits).len(), 2, "{hits:?}");
            }
        }
    }
}
