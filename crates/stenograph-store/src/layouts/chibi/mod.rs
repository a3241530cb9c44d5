//! Chibi's layout: a folder for each context, with its window, what was put aside, its inbox and what was logged of requests.
//! The commands on contexts rest on this folder too; nothing here prints or reads the environment.

pub mod context;
pub mod entry;
pub mod hold;
pub mod inbox;
mod latch;
mod markdown;
mod partitions;
mod pending;
pub mod transcript;
pub mod window;

pub use context::{Context, HOME, Look, contexts};
pub use entry::{Anchor, Entry, Stamp};
pub use hold::{Hold, Status};
pub use transcript::Transcript;
pub use window::{Changed, Place, Window};
