//! What a session took: one row for each model call, wherever and however often a source tells of it. Pure folds over events; prices
//! are in a table, and nothing here reads a clock or a file.

mod money;
mod prices;
mod tokens;

pub use money::Money;
pub use prices::{Counter, Line, Origin, Override, Price, Prices, Rates, Tier};
pub use tokens::{Pace, Tokens};
