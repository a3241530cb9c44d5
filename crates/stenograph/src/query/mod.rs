//! Search: the searchable parts of an event, the query language, and matching. The plain scan and the index both use this
//! folder, so that they agree. Nothing here opens a file or reads a clock.

mod collapse;
mod entry;
mod entry_builder;
mod expr;
mod field;
mod fuzzy;
mod matches;
mod moment;
mod parse;
mod snippet;
mod spread;
mod words;

pub use crate::evidence::{Touch, TouchHow};
pub(crate) use crate::evidence::{is_path, joined, touches, verb};
pub use collapse::{CollapsedHit, Same, collapse};
pub use entry::Entry;
pub use entry_builder::EntryBuilder;
pub use expr::{Expr, Field, Has, Is, Letters, Pattern, Query, Sought, TagPattern};
pub use field::fields;
pub use fuzzy::is_near;
pub use matches::SessionFacts;
pub use moment::{Period, SPELLINGS, Today, period};
pub use parse::{Mistake, QUERY_SIZE_MAX};
pub use snippet::Snippet;
pub use spread::SpreadQuery;
pub use words::{Phrase, PhraseMatch, Word, words};
