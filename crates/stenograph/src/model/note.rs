//! Remarks about a source. A note never replaces an event: the record that it is about still has one.

use super::Span;

/// The subject of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NoteKind {
    /// Bytes that are not UTF-8.
    BadUtf8,
    /// A record that is not one of the format's: not JSON, not an object, not a known block.
    NotARecord,
    /// The last record is incomplete.
    Torn,
    /// Several records on one line.
    Welded,
    /// A record type that the reader does not know.
    UnknownType,
    /// A record over the size limit.
    Oversize,
    /// The same key twice in one object.
    DuplicateKey,
    /// Half of a surrogate pair in a text.
    LoneSurrogate,
    /// Raw control characters where JSON allows none.
    ControlCharacter,
    /// The source leaves the meaning open, and the reader chose one.
    Ambiguous,
    /// A result without its call.
    OrphanResult,
    /// A record that the agent's own reader would reject.
    SchemaMismatch,
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
        NoteKind::SchemaMismatch,
    ];

    /// The name in reports and on the wire.
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
            NoteKind::SchemaMismatch => "off_sheet",
        }
    }
}

/// A remark about a position in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// Its position.
    pub at: Span,
    /// One sentence for people.
    pub text: String,
}

impl Note {
    /// A note about this position.
    pub fn new(kind: NoteKind, at: Span, text: impl Into<String>) -> Note {
        Note { kind, at, text: text.into() }
    }
}
