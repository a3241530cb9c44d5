//! Stenograph reads, writes and converts the transcripts of AI agents without losing a byte.
//!
#![doc = include_str!("../README.md")]
//!
//! # Modules, in the order the data flows
//!
//! 1. [`frame`] cuts a source into records; [`read`] gives them to the reader of a format, which returns events and notes.
//! 2. [`model`] defines events, and some folds over them: [`model::Spine`], [`model::Outline`].
//! 3. [`write`](mod@write) gives events to the writer of a format, and copies a source with some records replaced.
//! 4. [`convert`] joins the two, measures the [`loss`], and can [`carry`] the source along.
//! 5. [`session`] composes folds over a source in memory: what most programs need.
//! 6. [`edit`] changes a source and leaves all other bytes alone.
//! 7. [`query`] defines what can be found in an event, and finds it.
//! 8. [`calls`] decides what came of each tool call; [`status`] decides from the last events whether a run goes on, waits or is stuck.
//! 9. [`ledger`] counts what model calls took.
//! 10. [`audit`] reports what a session did, [`changes`] what it did to files, as diffs.
//! 11. [`replay`] plays a conversation again, as a line of moments; [`cassette`] answers an agent from a recording;
//!     [`compare`] compares two runs and finds where they parted.
//! 12. [`render`] writes sessions for people; [`redact`] masks secrets before they are shared.
//! 13. [`formats`] lists the built-in formats; [`laws`] checks what each of them keeps.

pub mod audit;
pub mod calls;
pub mod carry;
pub mod cassette;
pub mod changes;
pub mod compare;
pub mod contents;
pub mod convert;
pub mod edit;
mod error;
pub mod evidence;
pub mod format;
pub mod formats;
pub mod frame;
pub mod json;
pub mod laws;
pub mod ledger;
pub mod loss;
pub mod model;
pub mod prelude;
pub mod query;
pub mod read;
mod record_schema;
pub mod redact;
mod registry;
pub mod render;
pub mod repeat;
pub mod replay;
pub mod resume;
pub mod run_state;
mod serialize;
pub mod session;
mod shell;
pub mod status;
pub mod synthesizer;
pub mod text;
pub mod time;
pub mod turns;
pub mod wire;
pub mod write;

pub use error::Error;
pub use registry::{Detected, Registry};
pub use session::Session;
