//! The formats. [`FORMATS`] is the one list: help, detection, documents, tests and the laws go by it.

use crate::format::Format;

mod anthropic;
pub mod chibi;
pub mod claude_code;
pub mod claude_events;
pub mod steno;

/// Every format, in the order people see them.
pub static FORMATS: &[&dyn Format] =
    &[&steno::Steno, &chibi::Chibi, &claude_code::ClaudeCode, &claude_events::ClaudeEvents];
