//! Losses: what a conversion could not carry. They are measured: what was written is read back and compared with what was read,
//! event by event and field by field. Nothing here knows what a format can or cannot say.

mod compare;
mod digest;
mod report;
mod settle;

pub(crate) use compare::equal_pairs;
pub use compare::{Comparison, twins};
pub use report::{Count, How, Report};
