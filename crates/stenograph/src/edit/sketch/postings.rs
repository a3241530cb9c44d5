//! Event numbers by fingerprint, in sixteen bytes each: collected, sorted once, then looked up.

/// Event numbers by fingerprint.
#[derive(Debug, Default)]
pub(super) struct Postings(Vec<(u64, u32)>);

impl Postings {
    /// Sorts these pairs by fingerprint, then by number.
    pub fn new(pairs: impl Iterator<Item = (u64, usize)>) -> Postings {
        let mut all: Vec<(u64, u32)> = pairs.map(|(fingerprint, number)| (fingerprint, small(number))).collect();
        all.sort_unstable();
        Postings(all)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers with this fingerprint, in order.
    pub fn of(&self, fingerprint: u64) -> impl Iterator<Item = usize> {
        let from = self.0.partition_point(|(known, _)| *known < fingerprint);
        let rest = self.0.get(from..).unwrap_or_default();
        rest.iter().take_while(move |(known, _)| *known == fingerprint).map(|(_, number)| *number as usize)
    }
}

/// An event number in four bytes; no source has more events.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_fingerprint_in_order() {
        let postings = Postings::new([(7, 4), (3, 1), (7, 2), (u64::MAX, 9)].into_iter());
        let of = |fingerprint| postings.of(fingerprint).collect::<Vec<_>>();
        assert_eq!((of(7), of(3), of(u64::MAX)), (vec![2, 4], vec![1], vec![9]));
        assert!(of(0).is_empty() && of(5).is_empty() && !postings.is_empty());
    }
}
