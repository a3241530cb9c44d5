//! What one session took: its tokens and their cost, from the ledger pages of the index.

use std::path::Path;

use jiff::tz::TimeZone;
use stenograph::ledger::{self, By, Group, Ledger, Money, Prices, UsageQuery};
use stenograph::render::{dollars, grouped};

use crate::index::catalogue::{Catalogue, IndexedSession, SourceRow};
use crate::usage::session_ledger;

/// What a session took.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionCost {
    /// Tokens read and written, cached ones included.
    pub tokens: u64,
    /// The cost; `None` if no model of the session has a price.
    pub cost: Option<Money>,
}

impl SessionCost {
    /// The cost of a session that the index knows. Calls that several of its files state count once.
    pub fn of(session: &IndexedSession, catalogue: &Catalogue, prices: &Prices) -> SessionCost {
        SessionCost::of_files(session, catalogue, prices, |_| true)
    }

    /// The cost of one file of a session that the index knows.
    pub fn of_source(
        session: &IndexedSession,
        source: &SourceRow,
        catalogue: &Catalogue,
        prices: &Prices,
    ) -> SessionCost {
        SessionCost::of_files(session, catalogue, prices, |path| path == source.path)
    }

    fn of_files(
        session: &IndexedSession,
        catalogue: &Catalogue,
        prices: &Prices,
        is_counted: impl Fn(&Path) -> bool,
    ) -> SessionCost {
        let ledger = session_ledger(catalogue, session, is_counted);
        ledger.map(|ledger| SessionCost::of_ledger(&ledger, prices)).unwrap_or_default()
    }

    /// The cost of all calls of a ledger.
    pub fn of_ledger(ledger: &Ledger, prices: &Prices) -> SessionCost {
        let mut question = UsageQuery {
            by: By::Session,
            then_by: None,
            // One sum: no call is assigned to a day.
            zone: TimeZone::UTC,
            prices,
            project: &mut |_, _| String::new(),
            keep: &mut |_| true,
        };
        SessionCost::of_total(&ledger::report(ledger, &mut question).total)
    }

    /// The cost of all calls of a report.
    pub fn of_total(total: &Group) -> SessionCost {
        let tokens = total.tokens.total();
        SessionCost { tokens, cost: total.cost.money.filter(|money| !money.is_zero()).or(total.stated) }
    }

    /// The cost for people: `$1,234.56`; empty if it is unknown.
    pub fn money(&self) -> String {
        self.cost.map(dollars).unwrap_or_default()
    }

    /// The tokens and the cost for people: `37,880 tokens, $0.0563`.
    pub fn words(&self) -> String {
        let words = [self.tokens(), self.money()];
        words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// The tokens for people; empty if there are none.
    pub fn tokens(&self) -> String {
        if self.tokens == 0 { String::new() } else { format!("{} tokens", grouped(self.tokens)) }
    }
}
