//! The formats. [`FORMATS`] is the one list: help, detection, documents, tests and the laws go by it.

use crate::format::Format;

pub mod chibi;
pub mod chibi_inbox;
pub mod codex;
pub mod devflow;
pub mod goodvibes_telemetry;
pub mod goodvibes_tracking;
pub mod steno;

/// Every format, in the order people see them.
pub static FORMATS: &[&dyn Format] = &[
    &steno::Steno,
    &chibi::Chibi,
    &chibi_inbox::ChibiInbox,
    &goodvibes_tracking::GoodvibesTracking,
    &goodvibes_telemetry::GoodvibesTelemetry,
    &devflow::Devflow,
    &codex::Codex,
];
