//! The format that extra fields come from.

use std::borrow::Cow;

use super::FormatInfo;
use crate::text::Str;

/// The format that extra fields come from. Two origins are equal if their names are.
#[derive(Clone, Debug)]
pub enum Origin<'a> {
    /// A registered format.
    Known(&'static FormatInfo),
    /// A format that this program does not know, by name.
    Unknown(Str<'a>),
}

impl Origin<'_> {
    /// The name of the format.
    pub fn name(&self) -> &str {
        match self {
            Origin::Known(info) => info.name,
            Origin::Unknown(name) => name,
        }
    }

    /// The description of the format, if it is known.
    pub fn info(&self) -> Option<&'static FormatInfo> {
        match self {
            Origin::Known(info) => Some(info),
            Origin::Unknown(_) => None,
        }
    }

    /// The same, borrowing nothing.
    pub fn into_owned(self) -> Origin<'static> {
        match self {
            Origin::Known(info) => Origin::Known(info),
            Origin::Unknown(name) => Origin::Unknown(Cow::Owned(name.into_owned())),
        }
    }
}

impl PartialEq for Origin<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}
