//! The ledger: one row for each model call, however many sources and records state it. Pure folds over events; nothing here
//! reads a clock or a file.
//!
//! [`CallCounter`] makes the [`SourceUsage`] of one source, and [`LedgerBuilder`] one ledger of all sources. [`crate::evidence`]
//! reads statements of records beyond the usage of their events.

mod builder;
mod context;
mod conversions;
mod counting;
mod key;
mod money;
mod outline;
mod peer_rows;
mod prices;
mod report;
mod row;
mod runs;
mod source_usage;
mod superseded;

pub use crate::model::{ServiceTier, Tokens};
pub use builder::{Ledger, LedgerBuilder, LedgerDecision, LedgerEntry, RecordingPart};
pub(crate) use context::context_tokens;
pub use counting::{CallCounter, CallDetail};
pub use money::Money;
pub use outline::CountedOutline;
pub use peer_rows::PeerRows;
pub use prices::{CostLine, Override, Price, PriceCounter, PriceSource, Prices, Rates, Tier};
pub use report::{By, Cost, Group, Unpriced, UsageQuery, UsageReport, report};
pub use row::{Row, RowKind, Tools};
pub(crate) use source_usage::Names;
pub use source_usage::{CountingState, Name, SourceUsage, Uncounted, UncountedReason};
pub use superseded::SupersededUsage;
