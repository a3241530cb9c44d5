//! Administration of Chibi's contexts: looking at them, clearing, compacting and undoing, and their inboxes. Recording into a context is
//! in `layouts/chibi/`.

mod compaction;
pub mod inbox;
mod look;
mod markdown;
mod pending;
mod undo;
pub mod window;

pub use compaction::CompactionChoice;
pub use look::{ContextSummary, contexts};
pub use window::{EntryPlace, Window, WindowChange};
