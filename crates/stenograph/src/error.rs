//! The error of this crate. Reading has none: what is wrong in a transcript is a [`Note`](crate::model::Note), and its bytes are still an
//! event.

use std::io;

use crate::format::Format;
use crate::query::Mistake;
use crate::resume::Refused;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No format claims the source.
    #[error("no format claims this source")]
    UnknownFormat,
    /// Several formats claim the source alike.
    #[error("several formats claim this source: {}", names(.0))]
    AmbiguousFormat(Vec<&'static dyn Format>),
    /// No format has that name.
    #[error("unknown format {0:?}")]
    NoSuchFormat(String),
    /// No program is known that could check sessions written in the format.
    #[error("{0} is read-only: no session of another format can be converted into it")]
    ReadOnlyFormat(&'static str),
    /// Readers of the format reject keys that they do not know, so that its records cannot hold a source.
    #[error("{0} cannot embed a source")]
    NoRoomToCarry(&'static str),
    /// No event of the source has a place in the target, so that no record can carry the source.
    #[error("the target has no place for any event of this source, so no record can embed it")]
    NothingCarries,
    /// One record would have to carry too much of the source.
    #[error("one record would have to embed too much of the source")]
    TooLargeToCarry,
    /// A source that carries another one was edited, and is too large to be merged with it in memory.
    #[error("the file was edited after its conversion and is too large to merge")]
    TooLargeToMerge,
    /// The query has a mistake.
    #[error(transparent)]
    Query(#[from] Mistake),
    /// The command that resumes a session cannot be made.
    #[error(transparent)]
    Resume(#[from] Refused),
    /// A source cannot be read, or a target cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// How to solve the problem, where that is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::UnknownFormat => Some("name the format"),
            Error::AmbiguousFormat(_) => Some("name one of these formats"),
            Error::NoSuchFormat(_) => Some("steno formats lists the formats"),
            Error::ReadOnlyFormat(_) => Some("steno formats lists the formats that can be written"),
            Error::NoRoomToCarry(_) | Error::NothingCarries | Error::TooLargeToCarry => {
                Some("convert without embedding the source, or choose another format")
            }
            Error::TooLargeToMerge => Some("convert the original file instead"),
            Error::Query(mistake) => Some(&mistake.hint),
            Error::Resume(_) | Error::Io(_) => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match error {
            Error::Io(error) => error,
            other => io::Error::other(other),
        }
    }
}

fn names(formats: &[&'static dyn Format]) -> String {
    let names: Vec<&str> = formats.iter().map(|format| format.info().name).collect();
    names.join(", ")
}
