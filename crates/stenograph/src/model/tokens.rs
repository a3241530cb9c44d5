//! What one model call took, as integers that can be added up. Nothing here knows what they cost.

use serde::{Deserialize, Serialize};

use super::Usage;

/// What one model call took, or several together. What a source does not state is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens read, without those that came from a cache or went into one.
    pub input: u64,
    /// Tokens written, thinking included.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written into a cache, however long they are kept there.
    pub cache_write: u64,
    /// Of `cache_write` those that are kept for an hour, which costs more.
    pub cache_write_hour: u64,
    /// Of `output` those that were thinking.
    pub reasoning: u64,
    /// How often the vendor's own servers searched the web for it.
    pub searches: u64,
    /// How often they fetched a page.
    pub fetches: u64,
}

impl Tokens {
    /// What the usage of an event states.
    pub fn of(usage: &Usage) -> Tokens {
        let stated = |number: Option<u64>| number.unwrap_or(0);
        // The two lifetimes add up to the cache writes where the source does not state their sum.
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

    /// Every counter, to go through them all alike. The inverse of [`Tokens::from_counters`].
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
    pub fn from_counters(counters: [u64; 8]) -> Tokens {
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

    /// Both together. A sum that no number holds is the largest number: nobody took that much.
    #[must_use]
    pub fn plus(&self, other: &Tokens) -> Tokens {
        self.with(other, u64::saturating_add)
    }

    /// What is left without the other, and nothing where the other is more.
    #[must_use]
    pub fn less(&self, other: &Tokens) -> Tokens {
        self.with(other, u64::saturating_sub)
    }

    /// Of each counter the larger.
    #[must_use]
    pub fn max(&self, other: &Tokens) -> Tokens {
        self.with(other, u64::max)
    }

    /// Of each counter the smaller.
    #[must_use]
    pub fn min(&self, other: &Tokens) -> Tokens {
        self.with(other, u64::min)
    }

    /// All tokens read, also those that came from a cache or went into one.
    pub fn all_input(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Whether one of the counters is more than the other's.
    pub fn exceeds(&self, other: &Tokens) -> bool {
        self.counters().into_iter().zip(other.counters()).any(|(own, other)| own > other)
    }

    /// Whether nothing was taken.
    pub fn is_zero(&self) -> bool {
        *self == Tokens::default()
    }
}
