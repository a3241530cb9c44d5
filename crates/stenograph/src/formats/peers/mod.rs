//! How other programs count tokens, so that `steno usage --as` can show their totals beside ours. This is a compatibility module: it
//! reproduces what those programs do wrong, too, reads raw lines by itself, and our own ledger must not use it.

mod claude_code;
mod codex;
mod rule;

pub use rule::PeerRule;

use crate::ledger::PeerRows;

/// Counts the sources of one format by one rule. The caller passes sources in the order of their paths.
pub trait PeerCounter: std::fmt::Debug {
    /// Begins the next source. `/` separates the names in its path.
    fn source(&mut self, path: &str);

    /// Counts the next line of the source, without its line end. Line numbers begin at 1.
    fn line(&mut self, number: u64, line: &[u8]);

    /// The counted calls, after the last source.
    fn finish(self: Box<Self>) -> PeerRows;
}

/// The counters of one format, by rule.
type Counters = fn(PeerRule) -> Box<dyn PeerCounter>;

/// The formats that those programs count. Every rule covers all of them.
const PEERS: [(&str, Counters); 2] =
    [(super::claude_code::NAME, claude_code::counter), (super::codex::NAME, codex::counter)];

/// The counter of a rule for a format; `None` where the program does not know the format.
pub fn peer_counter(rule: PeerRule, format: &str) -> Option<Box<dyn PeerCounter>> {
    PEERS.iter().find(|(name, _)| *name == format).map(|(_, counter)| counter(rule))
}
