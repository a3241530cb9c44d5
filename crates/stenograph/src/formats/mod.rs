//! The formats. [`FORMATS`] is the one list: help, detection, documents, tests and the laws go by it.

use crate::format::Format;

pub mod chibi;
pub mod codex;
pub mod steno;

/// Every format, in the order people see them.
pub static FORMATS: &[&dyn Format] = &[&steno::Steno, &chibi::Chibi, &codex::Codex];
