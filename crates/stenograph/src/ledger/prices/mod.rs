//! Prices of models: a shipped table with its date and source, and the user's overrides. A model without a price has an unknown
//! cost, not a cost of zero. `cargo xtask prices` writes the table. Nothing here reads a file or a clock.

mod names;
mod overrides;
mod price;
mod row;

use std::collections::BTreeMap;

pub use overrides::Override;
pub use price::{CostLine, Price, PriceCounter, PriceSource, Rates, Tier};

use super::ServiceTier;
use row::Row;

/// The table: a head of `# key: value` lines, then one row per model, sorted.
const TABLE: &str = include_str!("table.txt");

/// The prices of models.
#[derive(Clone, Debug)]
pub struct Prices {
    date: &'static str,
    source: &'static str,
    digest: String,
    /// The rows by name in lower case: some agents write names in upper case.
    rows: BTreeMap<String, &'static str>,
    overrides: Vec<Override>,
}

impl Prices {
    /// The shipped table.
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
            overrides: Vec::new(),
        }
    }

    /// The same prices with the user's overrides.
    #[must_use]
    pub fn with(mut self, overrides: Vec<Override>) -> Prices {
        if !overrides.is_empty() {
            let text = format!("{} {overrides:?}", self.digest);
            self.digest = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
            self.overrides = overrides;
        }
        self
    }

    /// The user's overrides.
    pub fn overrides(&self) -> &[Override] {
        &self.overrides
    }

    /// The day the table was made, as `2026-01-31`.
    pub fn date(&self) -> &str {
        self.date
    }

    /// The package that the prices come from, and its version.
    pub fn source(&self) -> &str {
        self.source
    }

    /// A fingerprint of the table and the overrides: two reports with the same one used the same prices.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The price of a model, named as agents spell it, at a service tier. `None` if the model or its tier has no price.
    pub fn price(&self, model: &str, service_tier: ServiceTier) -> Option<Price> {
        let (name, origin, row) = self.find(model)?;
        row.price(name, origin, service_tier)
    }

    /// Whether the model has a row, even if it has no price at some service tiers.
    pub fn knows(&self, model: &str) -> bool {
        self.find(model).is_some()
    }

    /// The row of a model from the overrides or else from the table, with the name it was found under.
    fn find(&self, model: &str) -> Option<(&str, PriceSource, Row)> {
        if model.len() > names::NAME_LEN_MAX {
            return None;
        }
        let spellings = names::spellings(model);
        if let Some(found) = overrides::find(&self.overrides, model, &spellings) {
            let base = found.same_as.as_ref().and_then(|name| self.row(&names::spellings(name)));
            return Some((&found.model, PriceSource::Override, found.row(base.map(|(_, row)| row))));
        }
        let (name, row) = self.row(&spellings)?;
        Some((name, row.last.clone().map_or(PriceSource::Shipped, PriceSource::Retired), row))
    }

    /// The row of a model in the table, with its name.
    fn row(&self, spellings: &[String]) -> Option<(&'static str, Row)> {
        let listed = spellings.iter().find_map(|name| self.listed(name));
        listed.or_else(|| spellings.iter().rev().find_map(|name| self.dated(name)))
    }

    /// The row with exactly this name.
    fn listed(&self, name: &str) -> Option<(&'static str, Row)> {
        let (name, rest) = row::split(self.rows.get(name)?)?;
        Some((name, Row::parse(rest)?))
    }

    /// The row with this name and a date. If there are several, they must be equal: the name does not say which one is meant.
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
