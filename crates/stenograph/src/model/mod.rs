//! What a transcript says, whatever wrote it: a flat stream of [`Event`]s. Types only; nothing here reads or writes a format.

mod call_words;
mod content;
mod dollars;
mod event;
mod extra;
mod format_info;
mod message_index;
mod note;
mod origin;
mod outline;
mod spine;
mod uuid;

pub use call_words::{
    CallWords, ExitCodeAt, JudgementPaths, NestedPaths, NoticeWords, ReportPaths, ScriptWords, Verdict,
};
pub use content::{Content, Data, Input, Piece, PieceKind};
pub use dollars::Dollars;
pub use event::{Body, Event, ForkOrigin, Kind, Part, Role, Span, Usage};
pub use extra::{Extra, ExtraFields, Held};
pub use format_info::{FormatInfo, Traits};
pub(crate) use message_index::{REWIND, is_alone, is_framed, is_markup, print, prints, speaker};
pub use note::{Note, NoteKind};
pub use origin::Origin;
pub use outline::Outline;
pub use spine::{LeftOut, Spine};
pub(crate) use spine::{SpineEvent, key};
pub(crate) use uuid::{is_uuid, uuid_of};
