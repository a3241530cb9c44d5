//! The usage of a model call, as its record states it. The ledger prices and sums it.

use serde::{Deserialize, Serialize};

use super::Dollars;
use crate::json::Object;

/// Tokens and money. A number that the source does not state is `None`, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Usage {
    /// Tokens read, without tokens read from or written to a cache.
    pub input: Option<u64>,
    /// Tokens written, including thinking.
    pub output: Option<u64>,
    /// Tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Tokens of `cache_write` that the cache keeps for an hour.
    pub cache_write_1h: Option<u64>,
    /// Tokens of `cache_write` that the cache keeps for five minutes.
    pub cache_write_5m: Option<u64>,
    /// Tokens of `output` that are thinking.
    pub reasoning: Option<u64>,
    /// Web searches that the vendor's servers made for the call.
    pub searches: Option<u64>,
    /// Web pages that the vendor's servers fetched for the call.
    pub fetches: Option<u64>,
    /// The service tier that the source states.
    pub service_tier: Option<ServiceTier>,
    /// The speed that the source states.
    pub speed: Option<ServiceSpeed>,
    /// The cost in US dollars that the source states.
    pub cost: Option<Dollars>,
}

impl Usage {
    /// Whether the source states no number at all.
    pub fn is_empty(&self) -> bool {
        *self == Usage::default()
    }

    /// The usage, or `None` if it is empty.
    pub fn stated(self) -> Option<Usage> {
        (!self.is_empty()).then_some(self)
    }

    /// The tier that decides the price of the call.
    pub fn tier(&self) -> ServiceTier {
        match self.speed {
            Some(ServiceSpeed::Fast) => ServiceTier::Fast,
            Some(ServiceSpeed::Standard) | None => self.service_tier.unwrap_or_default(),
        }
    }
}

/// The service tier of a call; it decides the price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ServiceTier {
    /// The default tier.
    #[default]
    Standard,
    /// Faster, at a higher price.
    Fast,
    /// Ahead of other requests, at a higher price.
    Priority,
    /// When capacity is available, at a lower price.
    Flex,
    /// At any later time, at a lower price.
    Batch,
}

impl ServiceTier {
    /// Every tier.
    pub const ALL: [ServiceTier; 5] =
        [ServiceTier::Standard, ServiceTier::Fast, ServiceTier::Priority, ServiceTier::Flex, ServiceTier::Batch];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            ServiceTier::Standard => "standard",
            ServiceTier::Fast => "fast",
            ServiceTier::Priority => "priority",
            ServiceTier::Flex => "flex",
            ServiceTier::Batch => "batch",
        }
    }

    /// The tier with this name.
    pub fn named(name: &str) -> Option<ServiceTier> {
        ServiceTier::ALL.into_iter().find(|tier| tier.name() == name)
    }
}

/// The speed of the service, if a source states it separately from the tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words say it")]
pub enum ServiceSpeed {
    Standard,
    Fast,
}

impl ServiceSpeed {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            ServiceSpeed::Standard => "standard",
            ServiceSpeed::Fast => "fast",
        }
    }

    /// The speed with this name.
    pub fn named(name: &str) -> Option<ServiceSpeed> {
        [ServiceSpeed::Standard, ServiceSpeed::Fast].into_iter().find(|speed| speed.name() == name)
    }
}

impl Object<'_> {
    /// Takes token counts. `names` lists the keys of input, output, cache read, cache write and reasoning, in this order; an empty name
    /// means that the format has no such count.
    pub fn take_usage(&mut self, names: [&str; 5]) -> Usage {
        let [input, output, cache_read, cache_write, reasoning] = names.map(|name| self.take_number(name));
        Usage { input, output, cache_read, cache_write, reasoning, ..Usage::default() }
    }
}
