//! Transcripts on disk. This is the only crate that opens files; it prints nothing and reads no environment.
//!
//! [`Source`] opens what is read: a file or standard input, plain, gzip or zstd. [`NewFile`] and [`Spool`] are what is written.
//! [`undo`] keeps what an edit takes away. [`Error`] is the one error, with the place it happened and a hint at the way out.

mod decode;
mod error;
mod identity;
mod output;
mod source;
pub mod undo;

pub use decode::Container;
pub use error::{Error, Place, Problem};
pub use output::{NewFile, Spool, fresh_folder};
pub use source::{Passes, Source};
