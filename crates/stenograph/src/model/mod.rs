//! The content of a transcript, whatever wrote it: a flat stream of [`Event`]s. Types only; nothing here reads or writes a
//! format.

mod call_words;
mod content;
mod database_tables;
mod dollars;
mod event;
mod extra;
mod fact;
mod format_info;
mod ids;
mod message_index;
mod note;
mod origin;
mod outline;
mod reader;
mod recent;
mod session_header;
mod session_words;
mod spine;
mod stop_reason;
mod tokens;
mod usage;
mod usage_words;
mod uuid;

pub use call_words::{
    AgentState, CallWords, ExitCodeAt, JudgementPaths, NestedPaths, NoticeWords, ReportPaths, ScriptWords, Verdict,
};
pub use content::{Content, Data, Input, Piece, PieceKind};
pub use database_tables::{DatabaseOwner, DatabaseTables, LowerTable, RowFolder, RowTable, SessionTable, is_embedded};
pub use dollars::Dollars;
pub use event::{Body, Event, ForkOrigin, Kind, Part, Role, Span};
pub use extra::{Extra, ExtraFields, Held};
pub use fact::Fact;
pub use format_info::{
    ArchiveMembers, DocumentMembers, DocumentOfRows, FolderAt, FolderFile, FormatInfo, Import, Placement, ProjectName,
    SessionIdKind, Traits, UserWords,
};
pub(crate) use ids::{is_global_id, is_lasting_id};
pub(crate) use message_index::{Rewind, fingerprint, fingerprints, is_alone, speaker};
pub use note::{Note, NoteKind};
pub use origin::Origin;
pub use outline::Outline;
pub use reader::{Reader, Sink, Wanted};
pub(crate) use recent::Recent;
pub use session_header::SessionHeader;
pub use session_words::{LimitPaths, SessionWords};
pub use spine::{LeftOut, Spine};
pub(crate) use spine::{SpineEvent, key};
pub use stop_reason::StopReason;
pub use tokens::Tokens;
pub use usage::{ServiceSpeed, ServiceTier, Usage};
pub use usage_words::{HistoryPaths, TotalPaths, UsageWords};
pub(crate) use uuid::{is_uuid, uuid_of};
