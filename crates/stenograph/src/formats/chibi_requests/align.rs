//! Finds the messages of a request that the previous request already had. Both are lists of fingerprints; this module does not
//! know the messages.
//!
//! A request is the previous one with messages appended. At its beginning some may be missing, changed or new: a system prompt
//! with a clock in it, a summary in place of compacted messages, and messages that a model chose to drop. So the two lists are
//! aligned in order, and of several alignments the one that leaves the end of the request new is taken.

use std::collections::HashMap;

/// How many positions of one fingerprint are tried: the last ones, which stay the longest. This bounds the work.
const POSITIONS_MAX: usize = 64;

/// For each message of `after`, whether `before` has it.
pub fn known_messages(before: &[u64], after: &[u64]) -> Vec<bool> {
    let prefix = before.iter().zip(after).take_while(|(before, after)| before == after).count();
    let mut known = vec![false; after.len()];
    known.iter_mut().take(prefix).for_each(|known| *known = true);
    let (before, after) = (before.get(prefix..).unwrap_or_default(), after.get(prefix..).unwrap_or_default());
    if before.is_empty() {
        return known;
    }
    for at in longest_chain(before, after) {
        if let Some(known) = known.get_mut(prefix + at) {
            *known = true;
        }
    }
    known
}

/// A match, and the previous one in its chain.
struct Link {
    after: usize,
    last: Option<usize>,
}

/// The positions in `after` of the longest common subsequence that ends first.
fn longest_chain(before: &[u64], after: &[u64]) -> Vec<usize> {
    let mut positions: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, fingerprint) in before.iter().enumerate().rev() {
        let positions = positions.entry(*fingerprint).or_default();
        if positions.len() < POSITIONS_MAX {
            positions.push(at);
        }
    }
    let mut links: Vec<Link> = Vec::new();
    // For each chain length, the smallest position in `before` at which a chain of that length ends, and its last link.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut longest = None;
    for (at, fingerprint) in after.iter().enumerate() {
        // From the last position to the first, so that no message is matched twice.
        for position in positions.get(fingerprint).into_iter().flatten() {
            let length = ends.partition_point(|(end, _)| end < position);
            if ends.get(length).is_some_and(|(end, _)| end == position) {
                continue;
            }
            let last = length.checked_sub(1).and_then(|length| ends.get(length)).map(|(_, link)| *link);
            links.push(Link { after: at, last });
            let end = (*position, links.len() - 1);
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
        let fingerprints = |text: &str| text.bytes().map(u64::from).collect::<Vec<u64>>();
        let known = known_messages(&fingerprints(before), &fingerprints(after));
        after.chars().zip(known).filter(|(_, known)| !known).map(|(char, _)| char).collect()
    }

    #[test]
    fn only_messages_that_were_not_there_before_are_new() {
        assert_eq!(new("", "Sab"), "Sab");
        assert_eq!(new("Sab", "Sab"), "");
        assert_eq!(new("Sab", "Sabcd"), "cd");
        // The beginning changed, was dropped, was summarized, or lost single messages.
        assert_eq!(new("Sabc", "Tabcd"), "Td");
        assert_eq!(new("Sabcdefg", "Scdefghi"), "hi");
        assert_eq!(new("Sabcdefg", "S+cdefghi"), "+hi");
        assert_eq!(new("Sabcdefg", "S+aceghi"), "+hi");
    }

    #[test]
    fn a_message_repeated_at_the_end_is_new() {
        assert_eq!(new("Syou", "Syouy"), "y");
        assert_eq!(new("Syou", "Suay"), "ay");
        assert_eq!(new("aaa", "aaaa"), "a");
    }

    #[test]
    fn many_equal_messages_cost_bounded_work() {
        let before = vec![7; 20_000];
        let mut after = before.clone();
        after.insert(0, 1);
        after.push(8);
        let known = known_messages(&before, &after);
        assert_eq!(known.last(), Some(&false));
        assert!(known.iter().filter(|known| **known).count() >= POSITIONS_MAX);
    }
}
