//! Facts: statements of a record that are not part of the conversation. The enum lists those that Stenograph understands.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use crate::text::Str;

/// The subject of a fact. Readers map the same fact to the same variant, whatever the source calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fact<'a> {
    /// The header of a session.
    Session,
    /// The end of a session, in a record of its own.
    SessionEnd,
    /// The title of a session.
    Title,
    /// A summary that the agent keeps beside the conversation.
    Summary,
    /// The usage of a model call.
    Usage,
    /// Turns that the user took back. The content is their number.
    Rewind,
    /// A record that was taken back with everything after it. The content is its id.
    RewindTo,
    /// The end of a document.
    DocumentEnd,
    /// Any other fact, under the name that the source gives it.
    Other(Str<'a>),
}

impl<'a> Fact<'a> {
    const KNOWN: [Fact<'static>; 8] = [
        Fact::Session,
        Fact::SessionEnd,
        Fact::Title,
        Fact::Summary,
        Fact::Usage,
        Fact::Rewind,
        Fact::RewindTo,
        Fact::DocumentEnd,
    ];

    /// The name on the wire.
    pub fn name(&self) -> &str {
        match self {
            Fact::Session => "session",
            Fact::SessionEnd => "session_end",
            Fact::Title => "title",
            Fact::Summary => "summary",
            Fact::Usage => "usage",
            Fact::Rewind => "rewind",
            Fact::RewindTo => "rewind_to",
            Fact::DocumentEnd => "end",
            Fact::Other(name) => name,
        }
    }

    /// The fact with this name.
    pub fn named(name: Str<'a>) -> Fact<'a> {
        Fact::KNOWN.into_iter().find(|fact| fact.name() == name).unwrap_or(Fact::Other(name))
    }

    /// The same fact, borrowing nothing.
    pub fn into_owned(self) -> Fact<'static> {
        match self {
            Fact::Session => Fact::Session,
            Fact::SessionEnd => Fact::SessionEnd,
            Fact::Title => Fact::Title,
            Fact::Summary => Fact::Summary,
            Fact::Usage => Fact::Usage,
            Fact::Rewind => Fact::Rewind,
            Fact::RewindTo => Fact::RewindTo,
            Fact::DocumentEnd => Fact::DocumentEnd,
            Fact::Other(name) => Fact::Other(Cow::Owned(name.into_owned())),
        }
    }
}

impl<'a> From<&'a str> for Fact<'a> {
    fn from(name: &'a str) -> Fact<'a> {
        Fact::named(Cow::Borrowed(name))
    }
}

impl From<String> for Fact<'_> {
    fn from(name: String) -> Self {
        Fact::named(Cow::Owned(name))
    }
}

impl<'a> From<Str<'a>> for Fact<'a> {
    fn from(name: Str<'a>) -> Fact<'a> {
        Fact::named(name)
    }
}

impl Deref for Fact<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.name()
    }
}

impl AsRef<str> for Fact<'_> {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

impl fmt::Display for Fact<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl PartialEq<str> for Fact<'_> {
    fn eq(&self, other: &str) -> bool {
        self.name() == other
    }
}

impl PartialEq<&str> for Fact<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.name() == *other
    }
}
