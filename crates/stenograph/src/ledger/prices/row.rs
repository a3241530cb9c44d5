//! One row of the table: a model and its prices, as a line of text.
//!
//! ```text
//! claude-x-1 = input 3, output 15, cache_read 0.3; over 200000: input 6, output 22.5; batch: input 1.5, output 7.5; last 1.83.0
//! ```
//!
//! Prices are dollars for a million tokens, or for one search. The first block is the standard service tier at any context
//! size; `last` names the last version of the source that stated the model. Nothing here knows which rows exist.

use super::price::{Price, PriceCounter, PriceSource, Rates, Tier};
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
            let (service_tier, over) = match label.split_once("over ") {
                Some((service_tier, over)) => (service_tier.trim_end(), over.parse().ok()?),
                None => (label, 0),
            };
            let service_tier =
                if service_tier.is_empty() { ServiceTier::Standard } else { ServiceTier::named(service_tier)? };
            let mut rates = Rates::default();
            for price in prices.split(", ") {
                let (counter, price) = price.split_once(' ')?;
                let counter = PriceCounter::named(counter)?;
                rates.set(counter, Some(Money::parse(price)?.shared_by(counter.price_unit())?));
            }
            row.blocks.push((service_tier, Tier { over, rates }));
        }
        Some(row)
    }

    /// The prices at a service tier; `None` if it has none.
    pub fn price(&self, name: &str, origin: PriceSource, service_tier: ServiceTier) -> Option<Price> {
        let service_tier = self.sold_as(service_tier)?;
        let tiers_at =
            |service_tier| self.blocks.iter().filter(move |(at, _)| *at == service_tier).map(|(_, tier)| *tier);
        let usual = tiers_at(ServiceTier::Standard).find(|tier| tier.over == 0)?.rates;
        let mut tiers: Vec<Tier> = tiers_at(service_tier).collect();
        // If the standard price rises at some size and that of this tier is not stated there, it is unknown, not constant.
        for tier in tiers_at(ServiceTier::Standard) {
            if !tiers.iter().any(|own| own.over == tier.over) {
                tiers.push(Tier { over: tier.over, rates: Rates::default() });
            }
        }
        tiers.sort_by_key(|tier| tier.over);
        for tier in &mut tiers {
            complete(&mut tier.rates, &usual);
        }
        Some(Price { found_as: name.to_owned(), service_tier, origin, tiers })
    }

    /// The service tier under which the vendor sells this one: vendors with only one name for speed mean the same by fast and
    /// priority.
    fn sold_as(&self, service_tier: ServiceTier) -> Option<ServiceTier> {
        let has =
            |service_tier: ServiceTier| self.blocks.iter().any(|(at, tier)| *at == service_tier && tier.over == 0);
        match service_tier {
            ServiceTier::Fast if !has(ServiceTier::Fast) => has(ServiceTier::Priority).then_some(ServiceTier::Priority),
            ServiceTier::Standard
            | ServiceTier::Fast
            | ServiceTier::Priority
            | ServiceTier::Flex
            | ServiceTier::Batch => has(service_tier).then_some(service_tier),
        }
    }
}

/// Adds the prices that the list implies: a vendor without a cache price bills the cache as input, and a search has the same
/// price at every tier. A price that the standard block states and this one does not is unknown.
fn complete(rates: &mut Rates, usual: &Rates) {
    if rates.is_empty() {
        return;
    }
    for counter in [PriceCounter::CacheRead, PriceCounter::CacheWrite] {
        if rates.of(counter).is_none() && usual.of(counter).is_none() {
            rates.set(counter, rates.of(PriceCounter::Input));
        }
    }
    if usual.of(PriceCounter::CacheWrite).is_none() && usual.of(PriceCounter::CacheWriteHour).is_none() {
        rates.set(
            PriceCounter::CacheWriteHour,
            rates.of(PriceCounter::CacheWriteHour).or(rates.of(PriceCounter::CacheWrite)),
        );
    }
    if rates.of(PriceCounter::Search).is_none() {
        rates.set(PriceCounter::Search, usual.of(PriceCounter::Search));
    }
}
