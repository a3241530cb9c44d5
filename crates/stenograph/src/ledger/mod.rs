//! What sessions took: one row for each model call, wherever and however often sources tell of it. Pure folds over events; nothing
//! here reads a clock or a file.
//!
//! [`Counting`] makes a [`Page`] of one source, [`Book`] one ledger of all pages; a format says in [`Told`] what only it knows.

mod book;
mod conversions;
mod counting;
mod key;
mod money;
mod page;
mod prices;
mod report;
mod row;
mod rules;
mod runs;
mod tokens;
mod told;

pub use book::{Book, Decision, Entry, Ledger};
pub use counting::{Calls, Counting};
pub use money::Money;
pub(crate) use page::Names;
pub use page::{Aside, Name, Page, Reason, State};
pub use prices::{Counter, Line, Override, Price, PriceSource, Prices, Rates, Tier};
pub use report::{By, Cost, Group, Question, Report, Unpriced, report};
pub use row::{How, Row, Tools};
pub use rules::{Rule, Tallied, Tally};
pub use tokens::{Pace, Tokens};
pub(crate) use told::is_odd;
pub use told::{Inner, Input, Retold, Told, Total};
