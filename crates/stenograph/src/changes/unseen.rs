//! Possible changes of files that the calls do not show: where, and why. Plain values.

use super::step::Opaque;
use crate::run_state::EventPlace;

/// A possible change of files that the calls do not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// Its place.
    pub place: EventPlace,
    /// The file, if it is known.
    pub path: Option<String>,
    /// The tool or the command.
    pub what: String,
    /// The reason.
    pub why: UnseenReason,
}

/// Why a change cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnseenReason {
    /// It is in a call that cannot be tracked.
    Opaque(Opaque),
    /// The call has no result: it may have been carried out.
    Unanswered,
    /// The shown or replaced text contradicts the recorded calls.
    Elsewhere,
    /// The change to undo is unknown.
    NotRecorded,
    /// Its texts are over the size limit.
    Limit,
    /// Its record is over the size limit and was not read.
    Oversize,
}

impl UnseenReason {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            UnseenReason::Opaque(Opaque::Command) => "command",
            UnseenReason::Opaque(Opaque::Shape) => "unknown_shape",
            UnseenReason::Opaque(Opaque::Patch) => "unreadable_patch",
            UnseenReason::Opaque(Opaque::Damaged) => "no_text",
            UnseenReason::Unanswered => "unanswered",
            UnseenReason::Elsewhere => "changed_elsewhere",
            UnseenReason::NotRecorded => "nothing_to_undo",
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
            UnseenReason::NotRecorded => "the change that was undone is not recorded",
            UnseenReason::Limit => "too much text to track",
            UnseenReason::Oversize => "a record over the size limit was skipped",
        }
    }
}
