//! The servers: the only crate that knows HTTP. It knows no SQL and no format, and prints nothing: the caller passes what to serve
//! and receives events.
//!
//! [`serve`] is the cassette, which answers an agent's model requests from a recording. [`view`] is the viewer, which shows the
//! sessions of a store in a browser. Both refuse web pages of other sites, and limit the size and time of every client.

mod cassette;
mod guard;
mod listen;
mod viewer;

pub use cassette::{Options, Pace, PlaybackSummary, ServerEvent, Until, serve};
pub use viewer::{NewsChannel, StopSignal, Token, ViewerEvent, ViewerNews, ViewerOptions, openapi, view};
