//! Continuing CycoD's conversations: finds the newest one, and prepares its messages as CycoD sends them. Recording is in `layouts/cycod/`.

mod newest;
mod ready;

pub use newest::{ChatHistory, newest};
pub use ready::{PreparedConversation, ready};
