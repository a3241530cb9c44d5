//! What the model calls of a session took, counted by the ledger.

use std::fmt;

use super::Session;
use crate::ledger::{CallCounter, CallDetail, Ledger, LedgerBuilder};
use crate::model::Usage;

/// The model calls of a session. Each is counted once, however many records state its usage.
#[derive(Debug)]
pub struct SessionUsage {
    ledger: Ledger,
    total: Usage,
}

impl SessionUsage {
    pub(super) fn of(session: &Session<'_>) -> SessionUsage {
        let mut counting = CallCounter::new(session.format().info().agent, CallDetail::Tools);
        session.events().iter().for_each(|event| counting.add(event));
        let mut builder = LedgerBuilder::default();
        // Calls that name no session all belong to this one.
        builder.add("", Some(""), 0, counting.finish());
        SessionUsage { ledger: builder.finish(), total: session.outline().total }
    }

    /// What all calls took together, and what the source says that they cost.
    pub fn total(&self) -> Usage {
        self.total
    }

    /// The calls one by one. [`report`](crate::ledger::report) sums them up by day, model or tool, with prices.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

impl fmt::Display for Usage {
    /// Every stated number with its unit, such as `1200 input tokens, 85 output tokens, 0.02 US dollars`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = [
            (self.input, "input tokens"),
            (self.output, "output tokens"),
            (self.cache_read, "tokens read from the cache"),
            (self.cache_write, "tokens written to the cache"),
            (self.reasoning, "output tokens for reasoning"),
        ];
        let mut stated: Vec<String> =
            counters.iter().filter_map(|(number, unit)| number.map(|number| format!("{number} {unit}"))).collect();
        stated.extend(self.cost.map(|cost| format!("{cost} US dollars")));
        match stated.is_empty() {
            true => formatter.write_str("no usage stated"),
            false => formatter.write_str(&stated.join(", ")),
        }
    }
}
