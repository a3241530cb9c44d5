//! How other programs count Claude Code transcripts, each in a file of its own.

mod calls;
mod ccusage;
mod first_row;

use crate::formats::peers::{PeerCounter, PeerRule};
use crate::json::Object;
use crate::text::{Str, Text};

/// The counter of a rule.
pub fn counter(rule: PeerRule) -> Box<dyn PeerCounter> {
    match rule {
        PeerRule::Ccusage20 => Box::<ccusage::Ccusage>::default(),
        PeerRule::FirstRow => Box::<first_row::FirstRow>::default(),
    }
}

/// A string field, which may be missing or null. `None` for another type: the program cannot read such a record.
fn text<'a>(object: &Object<'a>, key: &str) -> Option<Option<Str<'a>>> {
    match object.peek(key) {
        None | Some("null") => Some(None),
        Some(raw) => Text::from_json(raw)?.exact().map(Some),
    }
}

/// A boolean field, as [`text`] reads a string.
fn flag(object: &Object<'_>, key: &str) -> Option<Option<bool>> {
    match object.peek(key) {
        None | Some("null") => Some(None),
        Some("true") => Some(Some(true)),
        Some("false") => Some(Some(false)),
        Some(_) => None,
    }
}

/// An amount of money, as [`text`] reads a string.
fn amount(object: &Object<'_>, key: &str) -> Option<Option<f64>> {
    match object.peek(key) {
        None | Some("null") => Some(None),
        Some(raw) => raw.parse().ok().map(Some),
    }
}

/// A counter, 0 where it is missing. `None` if it is not a whole number.
fn count(object: &Object<'_>, key: &str) -> Option<u64> {
    object.peek(key).map_or(Some(0), crate::json::number)
}

#[cfg(test)]
mod tests;
