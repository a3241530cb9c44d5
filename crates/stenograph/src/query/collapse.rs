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
pub struct Shown {
    /// Its index among all hits.
    pub hit: usize,
    /// The indexes of its copies, which are not shown.
    pub copies: Vec<usize>,
}

/// The hits that are shown, in order. Of several copies it shows the first; of several repetitions, the one that is not a
/// restatement, or the first if all are.
pub fn collapse<S: Copy + Eq + Hash>(hits: &[Same<S>]) -> Vec<Shown> {
    collapse_pieces(hits, std::iter::empty())
}

/// The same, given the texts that are stated as one of several: the sessions and [`super::Entry::piece_twins`] of hits that
/// are not restatements.
pub fn collapse_pieces<S: Copy + Eq + Hash>(hits: &[Same<S>], pieces: impl Iterator<Item = (S, u64)>) -> Vec<Shown> {
    let whole = hits.iter().filter(|hit| !hit.restates).map(|hit| (hit.session, hit.twin));
    let stated: HashSet<(S, u64)> = whole.chain(pieces).collect();
    let mut restated: HashMap<(S, u64), u64> = HashMap::new();
    let mut by_key: HashMap<u64, usize> = HashMap::new();
    let mut shown: Vec<Shown> = Vec::new();
    for (at, hit) in hits.iter().enumerate() {
        if hit.restates {
            let said = (hit.session, hit.twin);
            // The first restatement represents the later ones, unless they are its copies.
            if stated.contains(&said) || *restated.entry(said).or_insert(hit.key) != hit.key {
                continue;
            }
        }
        match by_key.get(&hit.key).and_then(|first| shown.get_mut(*first)) {
            Some(first) => first.copies.push(at),
            None => {
                by_key.insert(hit.key, shown.len());
                shown.push(Shown { hit: at, copies: Vec::new() });
            }
        }
    }
    shown
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
        collapse(&hits).into_iter().map(|shown| (shown.hit, shown.copies)).collect()
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
        assert_eq!(collapse_pieces(&hits, [(1, 5)].into_iter()), [Shown { hit: 1, copies: vec![] }]);
    }

    #[test]
    fn of_restatements_alone_one_stays() {
        assert_eq!(shown(&[(1, 7, 1, true), (1, 8, 1, true), (1, 7, 1, true)]), [(0, vec![2])]);
    }

    #[test]
    fn what_is_said_twice_is_found_twice() {
        assert_eq!(shown(&[(1, 7, 1, false), (1, 8, 1, false)]).len(), 2);
    }
}
