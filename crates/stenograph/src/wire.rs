//! The wire: events and notes as lines of JSON. It is the native format, the answer to `--json` and the interface for other
//! programs; `docs/steno.schema.json` describes it and a test holds every output against it.

mod read;
mod write;

pub use read::{leave, problem, read};
pub use write::{event, event_at, note, write_event};
pub(crate) use write::{span, usage};

/// The version of the wire. A reader of this version passes over keys it does not know.
pub const VERSION: u64 = 1;

/// The name under which the wire's own unknown keys are kept.
pub const NAME: &str = "steno";
