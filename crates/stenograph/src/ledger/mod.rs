//! What sessions took: one row for each model call, wherever and however often sources tell of it. Pure folds over events; nothing
//! here reads a clock or a file.
//!
//! [`Counting`] makes a [`SourceUsage`] of one source, [`LedgerBuilder`] one ledger of all pages; [`crate::evidence`] reads what records state beyond the usage of their events.

mod builder;
mod context;
mod conversions;
mod counting;
mod key;
mod money;
mod peer_rows;
mod prices;
mod report;
mod row;
mod runs;
mod source_usage;

pub use crate::model::{ServiceTier, Tokens};
pub use builder::{Decision, Entry, Ledger, LedgerBuilder};
pub use context::context_tokens;
pub use counting::{Calls, Counting};
pub use money::Money;
pub use peer_rows::PeerRows;
pub use prices::{Counter, Line, Override, Price, PriceSource, Prices, Rates, Tier};
pub use report::{By, Cost, Group, Question, Report, Unpriced, report};
pub use row::{How, Row, Tools};
pub(crate) use source_usage::Names;
pub use source_usage::{Aside, Name, Reason, SourceUsage, State};
