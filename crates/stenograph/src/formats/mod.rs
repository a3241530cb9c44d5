//! The formats. [`FORMATS`] is the one list: help, detection, documents, tests and the laws go by it.

use crate::format::Format;

mod chat;
pub mod chibi;
pub mod chibi_requests;
pub mod chibi_responses;
pub mod openai_chat;
pub mod steno;

/// Every format, in the order people see them.
pub static FORMATS: &[&dyn Format] = &[&steno::Steno, &chibi::Chibi, &chibi_requests::ChibiRequests, &chibi_responses::ChibiResponses, &openai_chat::OpenaiChat];
