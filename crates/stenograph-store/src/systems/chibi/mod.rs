//! Administration of Chibi's contexts: looking at them, clearing, compacting and undoing, and their inboxes. Recording into a context is
//! in `layouts/chibi/`.

mod compaction;
mod contexts;
pub mod inbox;
mod markdown;
mod pending;
mod undo;
pub mod window;

pub use compaction::CompactionChoice;
pub use contexts::{ContextSummary, contexts};
pub use window::{EntryPlace, Window, WindowChange};
