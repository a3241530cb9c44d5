//! The wire: events and notes as lines of JSON. It is the native format, the output of `--json` and the interface for other
//! programs. `docs/steno.schema.json` describes it, and a test validates every output against it.

mod read;
mod write;

pub(crate) use read::add_unknown_fields;
pub use read::{problem, read};
pub use write::{event, event_at, note, write_event};
pub(crate) use write::{span, usage};

/// The version of the wire. A reader of this version ignores unknown keys.
pub const VERSION: u64 = 1;

/// The origin name of unknown wire keys.
pub const NAME: &str = "steno";
