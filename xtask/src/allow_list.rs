//! Lists of exceptions that may only shrink: each line is a key and how often it may occur. An occurrence beyond the count fails, and
//! so does a count that is larger than the number of occurrences.

use std::collections::BTreeMap;
use std::fs;

use crate::{Failure, tree};

/// Where each key occurs.
pub type Found = BTreeMap<String, Vec<String>>;

/// A list of exceptions.
#[derive(Debug)]
pub struct AllowList {
    /// The file, from the root of the repository.
    path: &'static str,
    entries: BTreeMap<String, usize>,
}

impl AllowList {
    /// Reads the list of a file.
    pub fn read(path: &'static str) -> Result<AllowList, Failure> {
        let text = fs::read_to_string(tree::root().join(path)).map_err(|error| format!("{path}: {error}"))?;
        AllowList::parse(path, &text)
    }

    fn parse(path: &'static str, text: &str) -> Result<AllowList, Failure> {
        let entry = |line: &str| {
            let (key, count) = line.rsplit_once(' ')?;
            Some((key.to_owned(), count.parse().ok()?))
        };
        let entries =
            text.lines().map(|line| entry(line).ok_or_else(|| format!("{path}: `{line}` has no count").into()));
        Ok(AllowList { path, entries: entries.collect::<Result<_, Failure>>()? })
    }

    /// One failure for each key that occurs more often than allowed, and for each entry that allows more than occurs. `what` says
    /// what the keys are.
    pub fn failures(&self, what: &str, found: &Found) -> Vec<String> {
        let mut failures = Vec::new();
        for (key, places) in found {
            let allowed = self.entries.get(key).copied().unwrap_or(0);
            if places.len() > allowed {
                let (count, places) = (places.len(), places.join(", "));
                failures.push(format!("{what} `{key}` occurs {count} times, {allowed} allowed: {places}"));
            }
        }
        for (key, allowed) in &self.entries {
            let count = found.get(key).map_or(0, Vec::len);
            if count < *allowed {
                let hint = "run cargo xtask tidy --shrink";
                failures
                    .push(format!("{}: `{key} {allowed}` is out of date, it occurs {count} times; {hint}", self.path));
            }
        }
        failures
    }

    /// Lowers the counts to the actual numbers and writes the list. It never raises a count: a new occurrence stays a failure.
    pub fn shrink(mut self, found: &Found) -> Result<(), Failure> {
        self.lower(found);
        let text: String = self.entries.iter().map(|(key, count)| format!("{key} {count}\n")).collect();
        fs::write(tree::root().join(self.path), text)?;
        println!("{}: {} entries", self.path, self.entries.len());
        Ok(())
    }

    fn lower(&mut self, found: &Found) {
        self.entries.retain(|key, count| {
            *count = (*count).min(found.get(key).map_or(0, Vec::len));
            *count > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(keys: &[(&str, usize)]) -> Found {
        keys.iter().map(|(key, count)| ((*key).to_owned(), vec!["a.rs:1".to_owned(); *count])).collect()
    }

    #[test]
    fn a_key_that_spreads_fails_and_so_does_an_entry_out_of_date() {
        let list = AllowList::parse("list", "Place 3\nState 4\na -> b 2\n").unwrap();
        let failures = list.failures("the name", &found(&[("Place", 4), ("State", 4), ("Found", 2), ("a -> b", 1)]));
        assert_eq!(failures.len(), 3, "{failures:?}");
        assert!(failures[0].starts_with("the name `Found` occurs 2 times, 0 allowed: a.rs:1"));
        assert!(failures[1].starts_with("the name `Place` occurs 4 times, 3 allowed"));
        assert!(failures[2].contains("list: `a -> b 2` is out of date, it occurs 1 times"));
    }

    #[test]
    fn shrinking_lowers_counts_and_raises_none() {
        let mut list = AllowList::parse("list", "Gone 2\nLess 3\nMore 2\n").unwrap();
        list.lower(&found(&[("Less", 1), ("More", 5)]));
        assert_eq!(list.entries, BTreeMap::from([("Less".to_owned(), 1), ("More".to_owned(), 2)]));
    }

    #[test]
    fn an_entry_without_a_count_is_refused() {
        assert!(AllowList::parse("list", "Place\n").is_err() && AllowList::parse("list", "Place many\n").is_err());
    }
}
