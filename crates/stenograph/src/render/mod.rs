//! Sessions for people and for other programs. What is written here is not read back and promises nothing but to be legible and
//! harmless: transcripts are hostile text, and whatever they say stays in its place.

mod document;
mod harmless;
mod markdown;
mod markup;
mod turns;

pub use document::Document;
pub use harmless::{grouped, harmless, harmless_json, harmless_line};
pub use markdown::{Markdown, Shown};
pub use turns::{Place, Speaker, Turns};

#[cfg(test)]
mod tests;
