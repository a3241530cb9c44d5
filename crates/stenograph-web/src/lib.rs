//! The server: the only crate that knows HTTP. It opens no file, knows no format and prints nothing: the caller passes the tape
//! and receives events.
//!
//! Today it is a cassette: [`serve`] answers an agent's model requests from a recording. It listens on this machine only,
//! refuses web pages, and limits the size and time of every client.

mod answer;
mod guard;
mod listen;
mod route;
mod serve;
mod stream;

pub use serve::{Options, Pace, PlaybackSummary, ServerEvent, Until, serve};
