//! How other programs count these sources, each in a file of its own. They are followed in what they do wrong, too: what is right is in
//! `usage.rs`, and nothing here may be used for our own ledger.

mod calls;
mod ccusage;
mod first_row;

use crate::json::Object;
use crate::ledger::{Rule, Tally};
use crate::text::{Str, Text};

/// Counts by that rule.
pub fn tally(rule: Rule) -> Box<dyn Tally> {
    match rule {
        Rule::Ccusage20 => Box::<ccusage::Ccusage>::default(),
        Rule::FirstRow => Box::<first_row::FirstRow>::default(),
    }
}

/// A text, where the field may be missing or null; nothing when it is something else, for then the record cannot be read.
fn text<'a>(object: &Object<'a>, key: &str) -> Option<Option<Str<'a>>> {
    match object.peek(key) {
        None | Some("null") => Some(None),
        Some(raw) => Text::from_json(raw)?.exact().map(Some),
    }
}

/// A flag, with the same conditions.
fn flag(object: &Object<'_>, key: &str) -> Option<Option<bool>> {
    match object.peek(key) {
        None | Some("null") => Some(None),
        Some("true") => Some(Some(true)),
        Some("false") => Some(Some(false)),
        Some(_) => None,
    }
}

/// An amount of money, with the same conditions.
fn amount(object: &Object<'_>, key: &str) -> Option<Option<f64>> {
    match object.peek(key) {
        None | Some("null") => Some(None),
        Some(raw) => raw.parse().ok().map(Some),
    }
}

/// A counter, which is 0 where it is missing; nothing when it is no whole number.
fn counter(object: &Object<'_>, key: &str) -> Option<u64> {
    object.peek(key).map_or(Some(0), crate::json::number)
}

#[cfg(test)]
mod tests;
