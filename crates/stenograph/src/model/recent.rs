//! A bounded map from fingerprints to record numbers.

use std::collections::HashMap;

/// The indexes of the latest records by fingerprint: links reach back a few records, and a file may have millions.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    young: HashMap<u64, u32>,
    old: HashMap<u64, u32>,
}

/// How many records back a link is always followed: as many as fill a hash table of the next power of two.
const REACH: usize = (1 << 19) / 8 * 7;

impl Recent {
    pub fn get(&self, key: u64) -> Option<u32> {
        self.young.get(&key).or_else(|| self.old.get(&key)).copied()
    }

    pub fn insert(&mut self, key: u64, index: u32) {
        if self.young.len() >= REACH {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_links_are_kept_and_old_ones_dropped() {
        let mut recent = Recent::default();
        for index in 0..2 * REACH + 1 {
            recent.insert(index as u64, u32::try_from(index).unwrap());
        }
        assert_eq!(recent.get(REACH as u64), Some(u32::try_from(REACH).unwrap()));
        assert_eq!(recent.get(0), None);
    }
}
