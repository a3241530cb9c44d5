//! Counts what was masked, by rule and place, and what was not checked.

use std::collections::BTreeMap;

use super::{Finding, FindingClass, Redacted};
use crate::json::Draft;

/// What a redaction found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactionReport {
    counts: BTreeMap<(FindingClass, String, String), u64>,
    /// Images and other attachments, which are not checked.
    pub unchecked: u64,
    /// Thoughts that were masked whole, because their signature covers every byte.
    pub signed: u64,
    /// Records over the size limit, which were checked in pieces.
    pub oversize: u64,
}

/// How many places are told apart. A hostile record may have a new field name each time.
const PLACES_MAX: usize = 1000;

impl RedactionReport {
    pub(super) fn add(&mut self, redacted: &Redacted<'_>) {
        self.unchecked += redacted.unchecked;
        self.signed += redacted.signed;
        redacted.findings.iter().for_each(|finding| self.count(finding));
    }

    fn count(&mut self, finding: &Finding) {
        let is_full = self.counts.len() >= PLACES_MAX;
        let place = if is_full { String::new() } else { finding.place.clone() };
        *self.counts.entry((finding.class, finding.rule.to_string(), place)).or_default() += 1;
    }

    /// Adds the counts of another source.
    pub fn merge(&mut self, other: &RedactionReport) {
        for (key, count) in &other.counts {
            *self.counts.entry(key.clone()).or_default() += count;
        }
        self.unchecked += other.unchecked;
        self.signed += other.signed;
        self.oversize += other.oversize;
    }

    /// The number of findings of a kind.
    pub fn count_of(&self, class: FindingClass) -> u64 {
        self.counts.iter().filter(|((found, ..), _)| *found == class).map(|(_, count)| count).sum()
    }

    /// The number of all findings.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The number of findings of each rule, the most frequent first.
    pub fn by_rule(&self) -> Vec<(&str, FindingClass, u64)> {
        let mut rules: BTreeMap<(FindingClass, &str), u64> = BTreeMap::new();
        for ((class, rule, _), count) in &self.counts {
            *rules.entry((*class, rule)).or_default() += count;
        }
        let mut rules: Vec<_> = rules.into_iter().map(|((class, rule), count)| (rule, class, count)).collect();
        rules.sort_by_key(|(rule, class, count)| (*class, std::cmp::Reverse(*count), *rule));
        rules
    }

    /// The number of findings of each rule in each field: class, rule, field, count.
    pub fn by_place(&self) -> impl Iterator<Item = (FindingClass, &str, &str, u64)> {
        self.counts.iter().map(|((class, rule, place), count)| (*class, rule.as_str(), place.as_str(), *count))
    }

    /// The report as one JSON object.
    pub fn to_json(&self) -> String {
        let found = self.by_place().map(|(class, rule, place, count)| {
            let mut draft = Draft::new();
            draft.set_str("rule", rule);
            draft.set_str("class", class.name());
            draft.set_str("place", place);
            draft.set_number("count", Some(count));
            draft.render(None)
        });
        let found: Vec<String> = found.collect();
        let mut draft = Draft::new();
        draft.set_number("secrets", Some(self.count_of(FindingClass::Secret)));
        draft.set_number("personal", Some(self.count_of(FindingClass::Personal)));
        draft.set("found", format!("[{}]", found.join(",")));
        draft.set_number("signed_thoughts", Some(self.signed));
        draft.set_number("unchecked_attachments", Some(self.unchecked));
        draft.set_number("oversize_records", Some(self.oversize));
        draft.render(None)
    }
}
