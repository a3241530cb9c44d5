//! Going on with CycoD's conversations: which one is the newest, and its messages as CycoD sends them. Recording is in `layouts/cycod/`.

mod newest;
mod ready;

pub use newest::{History, newest};
pub use ready::{Ready, ready};
