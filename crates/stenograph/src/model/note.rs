//! Remarks in the margin of a source. A note never replaces an event: what it speaks of is still held by one.

use super::Span;

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NoteKind {
    /// Bytes that are not UTF-8.
    BadUtf8,
    /// A record that is not what the format's records are: not JSON, not an object, not a known block.
    NotARecord,
    /// The last record ends in the middle.
    Torn,
    /// Two records on one line.
    Welded,
    /// A record type this reader does not know.
    UnknownType,
    /// A record larger than the reader's window.
    Oversize,
    /// The same key twice in one object.
    DuplicateKey,
    /// Half of a surrogate pair in a text.
    LoneSurrogate,
    /// Raw control characters where JSON allows none.
    ControlCharacter,
    /// The source leaves open what this means, and the reader chose.
    Ambiguous,
    /// A result without its call.
    OrphanResult,
    /// A record that the format's own system would not accept as it is.
    OffSheet,
}

impl NoteKind {
    /// Every kind.
    pub const ALL: [NoteKind; 12] = [
        NoteKind::BadUtf8,
        NoteKind::NotARecord,
        NoteKind::Torn,
        NoteKind::Welded,
        NoteKind::UnknownType,
        NoteKind::Oversize,
        NoteKind::DuplicateKey,
        NoteKind::LoneSurrogate,
        NoteKind::ControlCharacter,
        NoteKind::Ambiguous,
        NoteKind::OrphanResult,
        NoteKind::OffSheet,
    ];

    /// The word in reports and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            NoteKind::BadUtf8 => "bad_utf8",
            NoteKind::NotARecord => "not_a_record",
            NoteKind::Torn => "torn",
            NoteKind::Welded => "welded",
            NoteKind::UnknownType => "unknown_type",
            NoteKind::Oversize => "oversize",
            NoteKind::DuplicateKey => "duplicate_key",
            NoteKind::LoneSurrogate => "lone_surrogate",
            NoteKind::ControlCharacter => "control_character",
            NoteKind::Ambiguous => "ambiguous",
            NoteKind::OrphanResult => "orphan_result",
            NoteKind::OffSheet => "off_sheet",
        }
    }
}

/// A remark about a place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// Where.
    pub at: Span,
    /// One sentence for people.
    pub text: String,
}

impl Note {
    /// A note.
    pub fn new(kind: NoteKind, at: Span, text: impl Into<String>) -> Note {
        Note { kind, at, text: text.into() }
    }
}
