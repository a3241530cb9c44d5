//! One row of the table: a model and its prices, as a line of text.
//!
//! ```text
//! claude-x-1 = input 3, output 15, cache_read 0.3; over 200000: input 6, output 22.5; batch: input 1.5, output 7.5; last 1.83.0
//! ```
//!
//! Prices are dollars for a million tokens, or for one search. The first block is the standard service tier at any context
//! size; `last` names the last version of the source that stated the model. Nothing here knows which rows exist.

use super::price::{Counter, Price, PriceSource, Rates, Tier};
use crate::ledger::{Money, ServiceTier};

/// The name of a row, and its prices.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    line.split_once(" = ")
}

/// A parsed row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Prices by service tier and context size.
    pub blocks: Vec<(ServiceTier, Tier)>,
    /// The last version of the source that stated the model, if that is not the current one.
    pub last: Option<String>,
}

impl Row {
    /// Parses the text after the name; `None` if it is not a valid row.
    pub fn parse(text: &str) -> Option<Row> {
        let mut row = Row::default();
        for block in text.split("; ") {
            if let Some(version) = block.strip_prefix("last ") {
                row.last = Some(version.to_owned());
                continue;
            }
            let (label, prices) = block.split_once(": ").unwrap_or(("", block));
            let (pace, over) = match label.split_once("over ") {
                Some((pace, over)) => (pace.trim_end(), over.parse().ok()?),
                None => (label, 0),
            };
            let pace = if pace.is_empty() { ServiceTier::Standard } else { ServiceTier::named(pace)? };
            let mut rates = Rates::default();
            for price in prices.split(", ") {
                let (counter, price) = price.split_once(' ')?;
                let counter = Counter::named(counter)?;
                rates.set(counter, Some(Money::parse(price)?.shared_by(counter.lot())?));
            }
            row.blocks.push((pace, Tier { over, rates }));
        }
        Some(row)
    }

    /// The prices at a pace; `None` where none are stated for it.
    pub fn price(&self, name: &str, origin: PriceSource, pace: ServiceTier) -> Option<Price> {
        let pace = self.sold_as(pace)?;
        let tiers_at = |pace| self.blocks.iter().filter(move |(at, _)| *at == pace).map(|(_, tier)| *tier);
        let usual = tiers_at(ServiceTier::Standard).find(|tier| tier.over == 0)?.rates;
        let mut tiers: Vec<Tier> = tiers_at(pace).collect();
        // Where the usual price rises and that of the pace is not stated, it is not known: it will hardly stay the same.
        for tier in tiers_at(ServiceTier::Standard) {
            if !tiers.iter().any(|own| own.over == tier.over) {
                tiers.push(Tier { over: tier.over, rates: Rates::default() });
            }
        }
        tiers.sort_by_key(|tier| tier.over);
        for tier in &mut tiers {
            complete(&mut tier.rates, &usual);
        }
        Some(Price { found_as: name.to_owned(), pace, origin, tiers })
    }

    /// The service tier under which the vendor sells this one: vendors with only one name for speed mean the same by fast and
    /// priority.
    fn sold_as(&self, pace: ServiceTier) -> Option<ServiceTier> {
        let has = |pace: ServiceTier| self.blocks.iter().any(|(at, tier)| *at == pace && tier.over == 0);
        match pace {
            ServiceTier::Fast if !has(ServiceTier::Fast) => has(ServiceTier::Priority).then_some(ServiceTier::Priority),
            ServiceTier::Standard
            | ServiceTier::Fast
            | ServiceTier::Priority
            | ServiceTier::Flex
            | ServiceTier::Batch => has(pace).then_some(pace),
        }
    }
}

/// Adds the prices that the list implies: a vendor without a cache price bills the cache as input, and a search has the same
/// price at every tier. A price that the standard block states and this one does not is unknown.
fn complete(rates: &mut Rates, usual: &Rates) {
    if rates.is_empty() {
        return;
    }
    for counter in [Counter::CacheRead, Counter::CacheWrite] {
        if rates.of(counter).is_none() && usual.of(counter).is_none() {
            rates.set(counter, rates.of(Counter::Input));
        }
    }
    if usual.of(Counter::CacheWrite).is_none() && usual.of(Counter::CacheWriteHour).is_none() {
        rates.set(Counter::CacheWriteHour, rates.of(Counter::CacheWriteHour).or(rates.of(Counter::CacheWrite)));
    }
    if rates.of(Counter::Search).is_none() {
        rates.set(Counter::Search, usual.of(Counter::Search));
    }
}
