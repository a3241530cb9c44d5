//! What models cost: a table that is shipped, with its date and its source, and what the user says instead. A model that nobody
//! prices has no price; it does not cost nothing. `cargo xtask prices` writes the table. Nothing here reads a file or a clock.

mod names;
mod price;
mod row;

use std::collections::BTreeMap;

pub use price::{Counter, Line, Origin, Price, Rates, Tier};

use super::Pace;
use row::Row;

/// The table: a head of `# key: value`, then a row for each model, sorted.
const TABLE: &str = include_str!("table.txt");

/// The prices of models.
#[derive(Clone, Debug)]
pub struct Prices {
    date: &'static str,
    source: &'static str,
    digest: String,
    /// The rows by their names in lower case: some agents shout.
    rows: BTreeMap<String, &'static str>,
}

impl Prices {
    /// The table that is shipped.
    pub fn shipped() -> Prices {
        Prices::read(TABLE)
    }

    fn read(table: &'static str) -> Prices {
        let head = |key: &str| {
            let mut lines = table.lines().take_while(|line| line.starts_with('#'));
            lines.find_map(|line| line.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(": ")).unwrap_or_default()
        };
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        Prices {
            date: head("date"),
            source: head("source"),
            digest: format!("{:016x}", xxhash_rust::xxh3::xxh3_64(table.as_bytes())),
            rows: rows.filter_map(|line| Some((row::split(line)?.0.to_ascii_lowercase(), line))).collect(),
        }
    }

    /// The day the table was made, as `2026-01-31`.
    pub fn date(&self) -> &str {
        self.date
    }

    /// The package the prices are from and its version.
    pub fn source(&self) -> &str {
        self.source
    }

    /// A fingerprint of the table: two reports with the same one used the same prices.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What a model costs at a pace, by its name as agents spell it. `None` where nobody says, of this model or of this pace.
    pub fn price(&self, model: &str, pace: Pace) -> Option<Price> {
        let (name, row) = self.row(model)?;
        row.price(name, pace)
    }

    /// Whether anything is known of a model: what has a row may still have no price at some pace.
    pub fn knows(&self, model: &str) -> bool {
        self.row(model).is_some()
    }

    /// The row of a model, with its name.
    fn row(&self, model: &str) -> Option<(&'static str, Row)> {
        if model.len() > names::NAME_LEN_MAX {
            return None;
        }
        let spellings = names::spellings(model);
        let listed = spellings.iter().find_map(|name| self.listed(name));
        listed.or_else(|| spellings.iter().rev().find_map(|name| self.dated(name)))
    }

    /// The row of exactly this name.
    fn listed(&self, name: &str) -> Option<(&'static str, Row)> {
        let (name, rest) = row::split(self.rows.get(name)?)?;
        Some((name, Row::parse(rest)?))
    }

    /// The row of this name and a date. Where there are several, they must agree: which one is meant is not said.
    fn dated(&self, name: &str) -> Option<(&'static str, Row)> {
        let start = format!("{name}-");
        let dated = self.rows.range(start.clone()..).take_while(|(found, _)| found.starts_with(&start));
        let mut dated = dated.filter(|(found, _)| found.get(start.len()..).is_some_and(names::is_date));
        let (first, _) = dated.next()?;
        let found = self.listed(first)?;
        let agrees = |name: &str| self.listed(name).is_some_and(|(_, row)| row.blocks == found.1.blocks);
        dated.all(|(name, _)| agrees(name)).then_some(found)
    }
}

#[cfg(test)]
mod tests;
