//! The cost of a model call at the prices of one model and service tier. Nothing is guessed: a counter without a price leaves
//! the whole call without a cost.

use crate::ledger::{Money, ServiceTier, Tokens};

/// A counter with its own price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Counter {
    /// Tokens read, neither from a cache nor into one.
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

impl Counter {
    /// Every counter.
    pub const ALL: [Counter; 7] = [
        Counter::Input,
        Counter::Output,
        Counter::CacheRead,
        Counter::CacheWrite,
        Counter::CacheWriteHour,
        Counter::Reasoning,
        Counter::Search,
    ];

    /// The name in the table, in overrides and for people.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Input => "input",
            Counter::Output => "output",
            Counter::CacheRead => "cache_read",
            Counter::CacheWrite => "cache_write",
            Counter::CacheWriteHour => "cache_write_hour",
            Counter::Reasoning => "reasoning",
            Counter::Search => "search",
        }
    }

    /// The counter of that name.
    pub fn named(name: &str) -> Option<Counter> {
        Counter::ALL.into_iter().find(|counter| counter.name() == name)
    }

    /// For how many of it prices are stated: tokens by the million, searches one by one.
    pub fn lot(self) -> u64 {
        match self {
            Counter::Input
            | Counter::Output
            | Counter::CacheRead
            | Counter::CacheWrite
            | Counter::CacheWriteHour
            | Counter::Reasoning => 1_000_000,
            Counter::Search => 1,
        }
    }
}

/// The price of one unit of each counter, if known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    each: [Option<Money>; Counter::ALL.len()],
}

impl Rates {
    /// What one of it costs.
    pub fn of(&self, counter: Counter) -> Option<Money> {
        self.each.get(counter as usize).copied().flatten()
    }

    /// Says what one of it costs.
    pub fn set(&mut self, counter: Counter, rate: Option<Money>) {
        if let Some(place) = self.each.get_mut(counter as usize) {
            *place = rate;
        }
    }

    /// The same rates, overridden by those that `others` states.
    #[must_use]
    pub fn but(&self, others: &Rates) -> Rates {
        let mut rates = *self;
        for counter in Counter::ALL {
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
    /// The pace the prices are for. A vendor that sells haste under one name only is asked for that one.
    pub pace: ServiceTier,
    /// Where they are from.
    pub origin: PriceSource,
    /// The prices by context size, the smallest first; never empty, and the first applies to every size.
    pub(super) tiers: Vec<Tier>,
}

/// The cost of one counter of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// What was counted.
    pub counter: Counter,
    /// How many.
    pub count: u64,
    /// The price of one unit; `None` if unknown.
    pub rate: Option<Money>,
}

impl Line {
    /// What they cost together.
    pub fn cost(&self) -> Option<Money> {
        self.rate?.times(self.count)
    }
}

impl Price {
    /// The prices by context size, the smallest first.
    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// The prices for a call: the tokens it read, cached or not, decide the price of all its tokens, including output.
    pub fn rates(&self, call: &Tokens) -> Rates {
        let context = call.input.saturating_add(call.cache_read).saturating_add(call.cache_write);
        let tier = self.tiers.iter().rev().find(|tier| context > tier.over || tier.over == 0);
        tier.map(|tier| tier.rates).unwrap_or_default()
    }

    /// What each counter of one call comes to; counters of nothing are left out. Of sums over several calls this says nothing
    /// true: it is the single call's size that decides.
    pub fn lines(&self, call: &Tokens) -> Vec<Line> {
        let rates = self.rates(call);
        // Thinking is a part of the output and costs the same, unless it has its own price.
        let apart = if rates.of(Counter::Reasoning).is_some() { call.reasoning } else { 0 };
        let counts = [
            (Counter::Input, call.input),
            (Counter::Output, call.output.saturating_sub(apart)),
            (Counter::CacheRead, call.cache_read),
            (Counter::CacheWrite, call.cache_write.saturating_sub(call.cache_write_hour)),
            (Counter::CacheWriteHour, call.cache_write_hour),
            (Counter::Reasoning, apart),
            // Pages that a vendor's servers fetch cost only the tokens they become.
            (Counter::Search, call.searches),
        ];
        let used = counts.into_iter().filter(|(_, count)| *count > 0);
        used.map(|(counter, count)| Line { counter, count, rate: rates.of(counter) }).collect()
    }

    /// The cost of one call; `None` if a counter has no price (see [`Price::missing`]) or the amount overflows.
    pub fn cost(&self, call: &Tokens) -> Option<Money> {
        self.lines(call).iter().try_fold(Money::ZERO, |sum, line| sum.plus(line.cost()?))
    }

    /// What a call used that has no price.
    pub fn missing(&self, call: &Tokens) -> Vec<Counter> {
        self.lines(call).iter().filter(|line| line.rate.is_none()).map(|line| line.counter).collect()
    }
}
