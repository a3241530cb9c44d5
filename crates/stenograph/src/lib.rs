//! Stenograph reads, writes and converts the transcripts of AI agents without losing a byte.
//!
//! The tour, in the order the data flows:
//!
//! 1. [`frame`] cuts a source into records; [`read`] gives them to a format's reader, which gives back events and notes.
//! 2. [`model`] says what an event is, and holds the folds: [`model::Spine`], [`model::Outline`], [`model::Pairing`].
//! 3. [`write`](mod@write) gives events to a format's writer, and copies a source with some records replaced.
//! 4. [`convert`] joins the two, measures the [`loss`], and can [`carry`] the source along.
//! 5. [`edit`] changes a source and leaves every byte alone that it need not change.
//! 6. [`query`] says what of an event can be found, and finds it.
//! 7. [`calls`] decides what came of each tool call; [`status`] tells from the last events how a run stands.
//! 8. [`ledger`] counts what model calls took.
//! 9. [`audit`] tells what a session did, [`changes`] what it did to files, as diffs.
//! 10. [`replay`] plays a conversation again, as a line of moments; [`cassette`] answers an agent from one;
//!     [`compare`] tells two runs apart and finds where they parted.
//! 11. [`render`] writes sessions for people.
//! 12. [`formats`] is the one list of formats; [`laws`] is what every one of them keeps.
//!
//! This crate opens no files, reads no clock and no environment, starts no threads and prints nothing.

pub mod audit;
pub mod calls;
pub mod carry;
pub mod cassette;
pub mod changes;
pub mod compare;
pub mod convert;
pub mod edit;
pub mod evidence;
pub mod format;
pub mod formats;
pub mod frame;
pub mod json;
pub mod laws;
pub mod ledger;
pub mod loss;
pub mod model;
pub mod query;
pub mod read;
pub mod record_schema;
pub mod render;
pub mod repeat;
pub mod replay;
pub mod resume;
pub mod run_state;
mod shell;
pub mod status;
pub mod synthesizer;
pub mod text;
pub mod time;
pub mod turns;
pub mod wire;
pub mod write;
