//! The cost of a model call at the prices of one model and service tier. Nothing is guessed: a counter without a price leaves
//! the whole call without a cost.

use crate::ledger::{Money, ServiceTier, Tokens};

/// A counter with its own price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PriceCounter {
    /// Tokens read, neither from nor into a cache.
    Input,
    /// Tokens written.
    Output,
    /// Tokens read from a cache.
    CacheRead,
    /// Tokens written into a cache for some minutes.
    CacheWrite,
    /// Tokens written into a cache for an hour.
    CacheWriteHour,
    /// Tokens of thinking, if they have another price than other output.
    Reasoning,
    /// Web searches.
    Search,
}

impl PriceCounter {
    /// Every counter.
    pub const ALL: [PriceCounter; 7] = [
        PriceCounter::Input,
        PriceCounter::Output,
        PriceCounter::CacheRead,
        PriceCounter::CacheWrite,
        PriceCounter::CacheWriteHour,
        PriceCounter::Reasoning,
        PriceCounter::Search,
    ];

    /// The name in the table, in overrides and for people.
    pub fn name(self) -> &'static str {
        match self {
            PriceCounter::Input => "input",
            PriceCounter::Output => "output",
            PriceCounter::CacheRead => "cache_read",
            PriceCounter::CacheWrite => "cache_write",
            PriceCounter::CacheWriteHour => "cache_write_hour",
            PriceCounter::Reasoning => "reasoning",
            PriceCounter::Search => "search",
        }
    }

    /// The counter with this name.
    pub fn named(name: &str) -> Option<PriceCounter> {
        PriceCounter::ALL.into_iter().find(|counter| counter.name() == name)
    }

    /// The quantity that prices are stated for: a million tokens, or one search.
    pub fn price_unit(self) -> u64 {
        match self {
            PriceCounter::Input
            | PriceCounter::Output
            | PriceCounter::CacheRead
            | PriceCounter::CacheWrite
            | PriceCounter::CacheWriteHour
            | PriceCounter::Reasoning => 1_000_000,
            PriceCounter::Search => 1,
        }
    }
}

/// The price of one unit of each counter, if known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    each: [Option<Money>; PriceCounter::ALL.len()],
}

impl Rates {
    /// The price of one unit.
    pub fn of(&self, counter: PriceCounter) -> Option<Money> {
        self.each.get(counter as usize).copied().flatten()
    }

    /// Sets the price of one unit.
    pub fn set(&mut self, counter: PriceCounter, rate: Option<Money>) {
        if let Some(place) = self.each.get_mut(counter as usize) {
            *place = rate;
        }
    }

    /// The same rates, overridden by those that `others` states.
    #[must_use]
    pub(crate) fn overridden_by(&self, others: &Rates) -> Rates {
        let mut rates = *self;
        for counter in PriceCounter::ALL {
            rates.set(counter, others.of(counter).or(self.of(counter)));
        }
        rates
    }

    /// Whether no counter has a price.
    pub fn is_empty(&self) -> bool {
        self.each.iter().all(Option::is_none)
    }
}

/// Prices above some context size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// The prices apply to calls that read more tokens than this.
    pub over: u64,
    /// The prices.
    pub rates: Rates,
}

/// The origin of a price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceSource {
    /// The shipped table.
    Shipped,
    /// The shipped table; its source has since dropped the model, and this version of the source was the last to state it.
    Retired(String),
    /// The user's override.
    Override,
}

/// The prices of one model at one service tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// The name it was found under.
    pub found_as: String,
    /// The service tier of the prices. It differs from the requested one if the vendor sells speed under another name only.
    pub service_tier: ServiceTier,
    /// The origin of the prices.
    pub origin: PriceSource,
    /// The prices by context size, the smallest first; never empty, and the first applies to every size.
    pub(super) tiers: Vec<Tier>,
}

/// The cost of one counter of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostLine {
    /// The counter.
    pub counter: PriceCounter,
    /// The number of units.
    pub count: u64,
    /// The price of one unit; `None` if unknown.
    pub rate: Option<Money>,
}

impl CostLine {
    /// The cost of all units.
    pub fn cost(&self) -> Option<Money> {
        self.rate?.times(self.count)
    }
}

impl Price {
    /// The prices by context size, the smallest first.
    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// The prices for a call: the tokens it read, cached or not, decide the price of all its tokens, including output. Of a sum over
    /// several calls, the average decides.
    pub fn rates(&self, tokens: &Tokens, calls: u32) -> Rates {
        let context = tokens.all_input() / u64::from(calls.max(1));
        let tier = self.tiers.iter().rev().find(|tier| context > tier.over || tier.over == 0);
        tier.map(|tier| tier.rates).unwrap_or_default()
    }

    /// The cost of each counter of a call, or of a sum over several calls, without counters that are 0.
    pub fn lines(&self, tokens: &Tokens, calls: u32) -> Vec<CostLine> {
        let rates = self.rates(tokens, calls);
        // Thinking is part of the output and has the same price, unless it has its own.
        let reasoning = if rates.of(PriceCounter::Reasoning).is_some() { tokens.reasoning } else { 0 };
        let counts = [
            (PriceCounter::Input, tokens.input),
            (PriceCounter::Output, tokens.output.saturating_sub(reasoning)),
            (PriceCounter::CacheRead, tokens.cache_read),
            (PriceCounter::CacheWrite, tokens.cache_write.saturating_sub(tokens.cache_write_hour)),
            (PriceCounter::CacheWriteHour, tokens.cache_write_hour),
            (PriceCounter::Reasoning, reasoning),
            // Pages that the vendor's servers fetch cost only their tokens.
            (PriceCounter::Search, tokens.searches),
        ];
        let used = counts.into_iter().filter(|(_, count)| *count > 0);
        used.map(|(counter, count)| CostLine { counter, count, rate: rates.of(counter) }).collect()
    }

    /// The cost of a call, or of a sum; `None` if a counter has no price (see [`Price::missing`]) or the amount overflows.
    pub fn cost(&self, tokens: &Tokens, calls: u32) -> Option<Money> {
        self.lines(tokens, calls).iter().try_fold(Money::ZERO, |sum, line| sum.plus(line.cost()?))
    }

    /// The counters of a call, or of a sum, that have no price.
    pub fn missing(&self, tokens: &Tokens, calls: u32) -> Vec<PriceCounter> {
        self.lines(tokens, calls).iter().filter(|line| line.rate.is_none()).map(|line| line.counter).collect()
    }
}
