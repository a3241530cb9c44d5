//! Which messages of a request were in the one before it. Both are lists of fingerprints; what a message says is not known here.
//!
//! A request is the one before it with something at the end. At its beginning some may be gone, changed or new: a system prompt
//! with a clock in it, a summary in the place of what was put aside, and whatever a model chose to drop. So the two are aligned
//! in order, and of several ways to do so the one that leaves the end of the request new is taken.

use std::collections::HashMap;

/// How many places of one fingerprint are tried: the last ones, which stay the longest. The work is bounded by this.
const PLACES_MAX: usize = 64;

/// For each message of `after`, whether it was in `before`.
pub fn said_before(before: &[u64], after: &[u64]) -> Vec<bool> {
    let prefix = before.iter().zip(after).take_while(|(before, after)| before == after).count();
    let mut said = vec![false; after.len()];
    said.iter_mut().take(prefix).for_each(|said| *said = true);
    let (before, after) = (before.get(prefix..).unwrap_or_default(), after.get(prefix..).unwrap_or_default());
    if before.is_empty() {
        return said;
    }
    for at in longest_chain(before, after) {
        if let Some(said) = said.get_mut(prefix + at) {
            *said = true;
        }
    }
    said
}

/// A match, and the one before it in its chain.
struct Link {
    after: usize,
    last: Option<usize>,
}

/// The places in `after` of the longest common subsequence that ends first.
fn longest_chain(before: &[u64], after: &[u64]) -> Vec<usize> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, print) in before.iter().enumerate().rev() {
        let places = places.entry(*print).or_default();
        if places.len() < PLACES_MAX {
            places.push(at);
        }
    }
    let mut links: Vec<Link> = Vec::new();
    // For each length of a chain, the smallest place in `before` that one of this length ends at, and its last link.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut longest = None;
    for (at, print) in after.iter().enumerate() {
        // From the last place to the first, so that no message is matched twice.
        for place in places.get(print).into_iter().flatten() {
            let length = ends.partition_point(|(end, _)| end < place);
            if ends.get(length).is_some_and(|(end, _)| end == place) {
                continue;
            }
            let last = length.checked_sub(1).and_then(|length| ends.get(length)).map(|(_, link)| *link);
            links.push(Link { after: at, last });
            let end = (*place, links.len() - 1);
            match ends.get_mut(length) {
                Some(shorter) => *shorter = end,
                None => {
                    ends.push(end);
                    longest = Some(end.1);
                }
            }
        }
    }
    let mut chain = Vec::new();
    while let Some(link) = longest.and_then(|link| links.get(link)) {
        chain.push(link.after);
        longest = link.last;
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(before: &str, after: &str) -> String {
        let prints = |text: &str| text.bytes().map(u64::from).collect::<Vec<u64>>();
        let said = said_before(&prints(before), &prints(after));
        after.chars().zip(said).filter(|(_, said)| !said).map(|(char, _)| char).collect()
    }

    #[test]
    fn only_what_was_not_said_is_new() {
        assert_eq!(new("", "Sab"), "Sab");
        assert_eq!(new("Sab", "Sab"), "");
        assert_eq!(new("Sab", "Sabcd"), "cd");
        // The beginning changed, was dropped, was summed up, or dropped in pieces.
        assert_eq!(new("Sabc", "Tabcd"), "Td");
        assert_eq!(new("Sabcdefg", "Scdefghi"), "hi");
        assert_eq!(new("Sabcdefg", "S+cdefghi"), "+hi");
        assert_eq!(new("Sabcdefg", "S+aceghi"), "+hi");
    }

    #[test]
    fn what_is_said_again_at_the_end_is_new() {
        assert_eq!(new("Syou", "Syouy"), "y");
        assert_eq!(new("Syou", "Suay"), "ay");
        assert_eq!(new("aaa", "aaaa"), "a");
    }

    #[test]
    fn many_equal_messages_cost_no_more_than_they_may() {
        let before = vec![7; 20_000];
        let mut after = before.clone();
        after.insert(0, 1);
        after.push(8);
        let said = said_before(&before, &after);
        assert_eq!(said.last(), Some(&false));
        assert!(said.iter().filter(|said| **said).count() >= PLACES_MAX);
    }
}
