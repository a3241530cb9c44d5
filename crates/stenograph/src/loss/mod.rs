//! Losses of a conversion. They are measured: the output is read back and compared with the source, event by event and field by
//! field. Nothing here knows what a format can express.

mod compare;
mod digest;
mod matching;
mod report;

pub(crate) use compare::equal_pairs;
pub use compare::{LossComparison, twins};
pub use report::{Count, LossKind, LossReport};
