//! The formats. [`FORMATS`] is the one list: help, detection, documents, tests and the laws go by it.

use crate::format::Format;

mod blocks;
pub mod chibi;
pub mod chibi_markdown;
pub mod cycod_trajectory;
pub mod leslie;
pub mod steno;

/// Every format, in the order people see them.
pub static FORMATS: &[&dyn Format] = &[
    &steno::Steno,
    &chibi::Chibi,
    &chibi_markdown::ChibiMarkdown,
    &cycod_trajectory::CycodTrajectory,
    &leslie::Leslie,
];
