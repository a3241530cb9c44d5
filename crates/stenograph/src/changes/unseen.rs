//! What may have changed files and cannot be seen: where, and why. Plain values.

use super::step::Opaque;

/// Where something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The source, in the order they were given, from 0.
    pub source: usize,
    /// The number of the event in it, from 1.
    pub event: u64,
    /// The line of its record, where that is known.
    pub line: Option<u64>,
}

/// Something that may have changed files, and cannot be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// Where.
    pub place: Place,
    /// The file, where that is known.
    pub path: Option<String>,
    /// The tool or the command.
    pub what: String,
    /// Why it cannot be seen.
    pub why: Why,
}

/// Why a change cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It is in a call that cannot be followed.
    Opaque(Opaque),
    /// The call was never answered: it may have been done.
    Unanswered,
    /// What is shown or replaced is not what the recorded calls add up to.
    Elsewhere,
    /// There is nothing known to take back.
    Untold,
    /// Its texts are over the limit.
    Limit,
    /// Its record is over the limit, and was not read.
    Oversize,
}

impl Why {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Why::Opaque(Opaque::Command) => "command",
            Why::Opaque(Opaque::Shape) => "unknown_shape",
            Why::Opaque(Opaque::Patch) => "unreadable_patch",
            Why::Opaque(Opaque::Damaged) => "no_text",
            Why::Unanswered => "unanswered",
            Why::Elsewhere => "changed_elsewhere",
            Why::Untold => "nothing_to_undo",
            Why::Limit => "over_the_limit",
            Why::Oversize => "record_over_the_limit",
        }
    }

    /// The reason as a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Why::Opaque(Opaque::Command) => "a command that may write files",
            Why::Opaque(Opaque::Shape) => "an edit of a shape that is not known",
            Why::Opaque(Opaque::Patch) => "a patch that cannot be read",
            Why::Opaque(Opaque::Damaged) => "the content is no whole text",
            Why::Unanswered => "the call was never answered",
            Why::Elsewhere => "something that is not recorded changed the file before",
            Why::Untold => "what was taken back is not recorded",
            Why::Limit => "there is too much of it to follow",
            Why::Oversize => "a record over the limit was not read",
        }
    }
}
