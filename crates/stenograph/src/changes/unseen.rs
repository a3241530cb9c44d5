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
    pub why: UnseenReason,
}

/// Why a change cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnseenReason {
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

impl UnseenReason {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            UnseenReason::Opaque(Opaque::Command) => "command",
            UnseenReason::Opaque(Opaque::Shape) => "unknown_shape",
            UnseenReason::Opaque(Opaque::Patch) => "unreadable_patch",
            UnseenReason::Opaque(Opaque::Damaged) => "no_text",
            UnseenReason::Unanswered => "unanswered",
            UnseenReason::Elsewhere => "changed_elsewhere",
            UnseenReason::Untold => "nothing_to_undo",
            UnseenReason::Limit => "over_the_limit",
            UnseenReason::Oversize => "record_over_the_limit",
        }
    }

    /// The reason as a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            UnseenReason::Opaque(Opaque::Command) => "a command that may write files",
            UnseenReason::Opaque(Opaque::Shape) => "an edit in an unknown form",
            UnseenReason::Opaque(Opaque::Patch) => "a patch that cannot be parsed",
            UnseenReason::Opaque(Opaque::Damaged) => "the content is incomplete or not text",
            UnseenReason::Unanswered => "the call has no result",
            UnseenReason::Elsewhere => "an unrecorded change to the file came first",
            UnseenReason::Untold => "the change that was undone is not recorded",
            UnseenReason::Limit => "too many changes to track",
            UnseenReason::Oversize => "a record over the size limit was skipped",
        }
    }
}
