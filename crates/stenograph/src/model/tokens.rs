//! The usage of model calls as integers that can be added up. Nothing here knows prices.

use serde::{Deserialize, Serialize};

use super::Usage;

/// The usage of one model call or of several together. A count that the source does not state is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens read, without tokens read from or written to a cache.
    pub input: u64,
    /// Tokens written, including thinking.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache, with any lifetime.
    pub cache_write: u64,
    /// Tokens of `cache_write` that the cache keeps for an hour, which costs more.
    pub cache_write_hour: u64,
    /// Tokens of `output` that are thinking.
    pub reasoning: u64,
    /// Web searches that the vendor's servers made.
    pub searches: u64,
    /// Web pages that the vendor's servers fetched.
    pub fetches: u64,
}

impl Tokens {
    /// The usage of an event.
    pub fn of(usage: &Usage) -> Tokens {
        let stated = |number: Option<u64>| number.unwrap_or(0);
        // If the source does not state the sum of both lifetimes, add them.
        let lifetimes = || stated(usage.cache_write_1h).saturating_add(stated(usage.cache_write_5m));
        Tokens {
            input: stated(usage.input),
            output: stated(usage.output),
            cache_read: stated(usage.cache_read),
            cache_write: usage.cache_write.unwrap_or_else(lifetimes),
            cache_write_hour: stated(usage.cache_write_1h),
            reasoning: stated(usage.reasoning),
            searches: stated(usage.searches),
            fetches: stated(usage.fetches),
        }
    }

    /// All counters, in a fixed order. The inverse of `from_counters`.
    pub fn counters(&self) -> [u64; 8] {
        [
            self.input,
            self.output,
            self.cache_read,
            self.cache_write,
            self.cache_write_hour,
            self.reasoning,
            self.searches,
            self.fetches,
        ]
    }

    /// The tokens with these counters.
    pub(crate) fn from_counters(counters: [u64; 8]) -> Tokens {
        let [input, output, cache_read, cache_write, cache_write_hour, reasoning, searches, fetches] = counters;
        Tokens { input, output, cache_read, cache_write, cache_write_hour, reasoning, searches, fetches }
    }

    fn with(&self, other: &Tokens, join: fn(u64, u64) -> u64) -> Tokens {
        let mut counters = self.counters();
        for (own, other) in counters.iter_mut().zip(other.counters()) {
            *own = join(*own, other);
        }
        Tokens::from_counters(counters)
    }

    /// The sum. It saturates at the largest number, which no real usage reaches.
    #[must_use]
    pub fn plus(&self, other: &Tokens) -> Tokens {
        self.with(other, u64::saturating_add)
    }

    /// The difference, which is 0 where the other counter is larger.
    #[must_use]
    pub fn less(&self, other: &Tokens) -> Tokens {
        self.with(other, u64::saturating_sub)
    }

    /// The larger of each two counters.
    #[must_use]
    pub fn max(&self, other: &Tokens) -> Tokens {
        self.with(other, u64::max)
    }

    /// The smaller of each two counters.
    #[must_use]
    pub fn min(&self, other: &Tokens) -> Tokens {
        self.with(other, u64::min)
    }

    /// All tokens read, including tokens read from or written to a cache.
    pub fn all_input(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// All tokens read and written. The counters for the one-hour cache and for thinking are parts of other counters.
    pub fn total(&self) -> u64 {
        self.all_input().saturating_add(self.output)
    }

    /// Whether any counter is larger than its counterpart.
    pub fn exceeds(&self, other: &Tokens) -> bool {
        self.counters().into_iter().zip(other.counters()).any(|(own, other)| own > other)
    }

    /// Whether all counters are 0.
    pub fn is_zero(&self) -> bool {
        *self == Tokens::default()
    }
}
