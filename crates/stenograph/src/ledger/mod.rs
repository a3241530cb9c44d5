//! The ledger: one row for each model call, however many sources and records state it. Pure folds over events; nothing here
//! reads a clock or a file.
//!
//! [`Counting`] makes the [`SourceUsage`] of one source, and [`LedgerBuilder`] one ledger of all sources. [`crate::evidence`]
//! reads statements of records beyond the usage of their events.

mod builder;
mod conversions;
mod counting;
mod key;
mod money;
mod prices;
mod report;
mod row;
mod rules;
mod runs;
mod source_usage;

pub use crate::model::{ServiceTier, Tokens};
pub use builder::{Decision, Ledger, LedgerBuilder, LedgerEntry};
pub use counting::{CallDetail, Counting};
pub use money::Money;
pub use prices::{CostLine, Override, Price, PriceCounter, PriceSource, Prices, Rates, Tier};
pub use report::{By, Cost, Group, Question, Unpriced, UsageReport, report};
pub use row::{Row, RowKind, Tools};
pub use rules::{Rule, Tallied, Tally};
pub(crate) use source_usage::Names;
pub use source_usage::{CountingState, Name, SourceUsage, Uncounted, UncountedReason};
