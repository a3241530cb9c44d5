//! The server: the only crate that knows HTTP. It opens no file, knows no format and prints nothing: what there is to play is
//! given to it, and what happens it tells to whoever called.
//!
//! Today it is a cassette: [`serve`] answers an agent's requests to a model from a recording. It listens on this machine alone, answers
//! no page of a browser, and holds every client to a size and a time.

mod answer;
mod guard;
mod listen;
mod route;
mod serve;
mod stream;

pub use serve::{Account, Options, Pace, ServerEvent, Until, serve};
