//! One source as a row of the catalogue. This file is the only one that knows a row's SQL.

use std::path::{Path, PathBuf};

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Row, named_params};
use serde::{Deserialize, Serialize};
use stenograph::Registry;
use stenograph::format::Format;
use stenograph::model::SessionHeader;

use crate::fingerprint::Fingerprint;
use crate::session_files::Coverage;
use crate::source_file::Access;

/// The number of a source.
pub type SourceId = i64;

/// The stat of a file. If all of it is unchanged, so is the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// The device, or 0 if the system has none.
    pub device: u64,
    /// The file number on the device.
    pub inode: u64,
    /// The length in bytes.
    pub size: u64,
    /// The time of the last change, in nanoseconds since 1970.
    pub changed: i64,
}

/// A summary of a source's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceSummary {
    /// Title, first question, folder, branch, model and times.
    pub header: SessionHeader,
    /// The number of messages of users and models.
    pub messages: u64,
    /// The number of tool calls.
    pub calls: u64,
    /// The number of failures.
    pub errors: u64,
    /// The number of notes.
    pub notes: u64,
}

/// Checksums of a file's bytes from its beginning. Each can be continued with more bytes alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentSum {
    /// Of the bytes up to [`SourceRow::stable_until`].
    pub stable: u32,
    /// Of all bytes.
    pub whole: u32,
}

impl FromSql for ContentSum {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let [a, b, c, d, e, f, g, h] = value.as_i64()?.to_be_bytes();
        Ok(ContentSum { stable: u32::from_be_bytes([a, b, c, d]), whole: u32::from_be_bytes([e, f, g, h]) })
    }
}

impl ToSql for ContentSum {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let ([a, b, c, d], [e, f, g, h]) = (self.stable.to_be_bytes(), self.whole.to_be_bytes());
        Ok(i64::from_be_bytes([a, b, c, d, e, f, g, h]).into())
    }
}

/// A source.
#[derive(Clone, Debug)]
pub struct SourceRow {
    /// Its number; 0 until it is first inserted.
    pub id: SourceId,
    /// Its path, or its last path if it is gone.
    pub path: PathBuf,
    /// The name of its format.
    pub format: String,
    /// The formats that the name may mean.
    pub registry: &'static Registry,
    /// Its session.
    pub session: i64,
    /// The side conversation that it records, if it is one.
    pub thread: Option<String>,
    /// The file's stat when it was read.
    pub stamp: FileStamp,
    /// When it was read, in nanoseconds since 1970. A change in that very moment may have happened after the read.
    pub seen: i64,
    /// How its records are reached.
    pub access: Access,
    /// The hash of its first bytes.
    pub head: u64,
    /// How many bytes `head` covers.
    pub head_length: u64,
    /// The hash of the bytes before `stable_until`.
    pub tail_hash: u64,
    /// Checksums of all of its bytes.
    pub content: ContentSum,
    /// The offset before which more input changes nothing.
    pub stable_until: u64,
    /// The number of the line that begins at `stable_until`, from 1.
    pub line: u64,
    /// The document group of the events before `stable_until`.
    pub doc_group: u64,
    /// How many events that group has.
    pub doc_group_events: u64,
    /// The document group of the events after `stable_until`; 0 if there are none.
    pub tail: u64,
    /// How many events that group has.
    pub tail_events: u64,
    /// The reading state at `stable_until`, for the next run.
    pub reading_state: String,
    /// The key of the user's first message, which copies and forks share.
    pub first_key: Option<u64>,
    /// Whether the file is gone.
    pub gone: Gone,
    /// The original, if this is a byte-for-byte copy of it; a copy has no documents.
    pub copy_of: Option<SourceId>,
    /// How much of its session it records.
    pub coverage: Coverage,
    /// The source that records the same and more, as [`crate::session_files`] decides.
    pub covered_by: Option<SourceId>,
    /// The number of its copy in the archive.
    pub archive_copy: Option<String>,
    /// How many of its bytes the archive has.
    pub archived_length: u64,
    /// A summary of its events.
    pub summary: SourceSummary,
}

macro_rules! two_words {
    ($name:ident, $no:ident, $yes:ident, $about:literal, $about_no:literal, $about_yes:literal) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            #[doc = $about_no]
            #[default]
            $no,
            #[doc = $about_yes]
            $yes,
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                Ok(if value.as_i64()? == 0 { $name::$no } else { $name::$yes })
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(i64::from(*self == $name::$yes).into())
            }
        }
    };
}

two_words!(Gone, There, Gone, "Whether a source still exists at its path.", "It does.", "It does not.");

impl FromSql for Access {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(if value.as_i64()? == 0 { Access::ByRecord } else { Access::Whole })
    }
}

impl ToSql for Access {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(i64::from(*self == Access::Whole).into())
    }
}

impl FromSql for Coverage {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value.as_i64()? {
            0 => Coverage::Session,
            1 => Coverage::Abridged,
            _ => Coverage::Log,
        })
    }
}

impl ToSql for Coverage {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Coverage::Session => 0_i64,
            Coverage::Abridged => 1,
            Coverage::Log => 2,
        }
        .into())
    }
}

/// Every column, in the order in which [`SourceRow::read`] takes them.
pub(super) const COLUMNS: &str = "id, path, format, session, thread, device, inode, size, changed, seen, access, head, head_length, \
     tail_hash, stable_until, line, doc_group, doc_group_events, tail, tail_events, reading_state, first_key, gone, copy_of, archive_copy, archived_length, title, query, cwd, \
     branch, model, version, started, ended, messages, calls, errors, notes, \
     coverage, covered_by, content";

impl SourceRow {
    /// Up to where the file is proven to equal what was read: `stable_until`, or its end if that is 0.
    pub(crate) fn read_end(&self) -> u64 {
        if self.stable_until > 0 { self.stable_until } else { self.stamp.size }
    }

    /// The fingerprint of the bytes that were read.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint { head_length: self.head_length, head: self.head, end: self.read_end(), tail: self.tail_hash }
    }

    pub(crate) fn set_fingerprint(&mut self, fingerprint: Fingerprint) {
        (self.head_length, self.head, self.tail_hash) = (fingerprint.head_length, fingerprint.head, fingerprint.tail);
    }

    /// A source of which nothing is known yet, and the formats that it may have.
    pub fn new(path: &Path, registry: &'static Registry) -> SourceRow {
        SourceRow {
            id: 0,
            path: path.to_owned(),
            format: String::new(),
            registry,
            session: 0,
            thread: None,
            stamp: FileStamp::default(),
            seen: 0,
            access: Access::Whole,
            head: 0,
            head_length: 0,
            tail_hash: 0,
            content: ContentSum::default(),
            stable_until: 0,
            line: 1,
            doc_group: 0,
            doc_group_events: 0,
            tail: 0,
            tail_events: 0,
            reading_state: String::new(),
            first_key: None,
            gone: Gone::There,
            copy_of: None,
            coverage: Coverage::Session,
            covered_by: None,
            archive_copy: None,
            archived_length: 0,
            summary: SourceSummary::default(),
        }
    }
}

impl SourceRow {
    /// Its format; `None` if this program does not know it.
    pub fn known_format(&self) -> Option<&'static dyn Format> {
        self.registry.named(&self.format)
    }

    pub(super) fn read(row: &Row<'_>, registry: &'static Registry) -> rusqlite::Result<SourceRow> {
        Ok(SourceRow {
            id: row.get(0)?,
            path: path_of(row.get_ref(1)?.as_bytes().unwrap_or_default()),
            format: row.get(2)?,
            registry,
            session: row.get(3)?,
            thread: row.get(4)?,
            stamp: FileStamp {
                device: to_unsigned(row.get(5)?),
                inode: to_unsigned(row.get(6)?),
                size: to_unsigned(row.get(7)?),
                changed: row.get(8)?,
            },
            seen: row.get(9)?,
            access: row.get(10)?,
            head: to_unsigned(row.get(11)?),
            head_length: to_unsigned(row.get(12)?),
            tail_hash: to_unsigned(row.get(13)?),
            stable_until: to_unsigned(row.get(14)?),
            line: to_unsigned(row.get(15)?),
            doc_group: to_unsigned(row.get(16)?),
            doc_group_events: to_unsigned(row.get(17)?),
            tail: to_unsigned(row.get(18)?),
            tail_events: to_unsigned(row.get(19)?),
            reading_state: row.get(20)?,
            first_key: row.get::<_, Option<i64>>(21)?.map(to_unsigned),
            gone: row.get(22)?,
            copy_of: row.get(23)?,
            archive_copy: row.get(24)?,
            archived_length: to_unsigned(row.get(25)?),
            summary: SourceSummary {
                header: SessionHeader {
                    title: row.get(26)?,
                    query: row.get(27)?,
                    is_query_aside: false,
                    cwd: row.get(28)?,
                    branch: row.get(29)?,
                    model: row.get(30)?,
                    version: row.get(31)?,
                    started_ms: row.get(32)?,
                    ended_ms: row.get(33)?,
                },
                messages: to_unsigned(row.get(34)?),
                calls: to_unsigned(row.get(35)?),
                errors: to_unsigned(row.get(36)?),
                notes: to_unsigned(row.get(37)?),
            },
            coverage: row.get(38)?,
            covered_by: row.get(39)?,
            content: row.get(40)?,
        })
    }

    /// Inserts the row, or updates the one with its number. Returns the number.
    pub(super) fn write(&self, connection: &rusqlite::Connection) -> rusqlite::Result<SourceId> {
        let names: Vec<&str> = COLUMNS.split(',').map(str::trim).collect();
        let values = names.iter().map(|name| format!(":{name}")).collect::<Vec<_>>().join(", ");
        let changes =
            names.iter().skip(1).map(|name| format!("{name} = excluded.{name}")).collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT INTO sources ({COLUMNS}) VALUES ({values}) ON CONFLICT (id) DO UPDATE SET {changes}");
        let mut statement = connection.prepare_cached(&sql)?;
        let id = (self.id != 0).then_some(self.id);
        statement.execute(named_params! {
            ":id": id, ":path": path_bytes(&self.path), ":format": self.format, ":session": self.session, ":thread": self.thread,
            ":device": to_signed(self.stamp.device), ":inode": to_signed(self.stamp.inode), ":size": to_signed(self.stamp.size),
            ":changed": self.stamp.changed, ":seen": self.seen, ":access": self.access, ":head": to_signed(self.head),
            ":head_length": to_signed(self.head_length), ":tail_hash": to_signed(self.tail_hash), ":stable_until": to_signed(self.stable_until),
            ":line": to_signed(self.line), ":doc_group": to_signed(self.doc_group), ":doc_group_events": to_signed(self.doc_group_events), ":tail": to_signed(self.tail),
            ":tail_events": to_signed(self.tail_events), ":reading_state": self.reading_state, ":first_key": self.first_key.map(to_signed), ":gone": self.gone,
            ":copy_of": self.copy_of, ":archive_copy": self.archive_copy, ":archived_length": to_signed(self.archived_length), ":title": self.summary.header.title,
            ":query": self.summary.header.query, ":cwd": self.summary.header.cwd, ":branch": self.summary.header.branch, ":model": self.summary.header.model,
            ":version": self.summary.header.version, ":started": self.summary.header.started_ms, ":ended": self.summary.header.ended_ms,
            ":messages": to_signed(self.summary.messages), ":calls": to_signed(self.summary.calls), ":errors": to_signed(self.summary.errors),
            ":notes": to_signed(self.summary.notes), ":coverage": self.coverage, ":covered_by": self.covered_by, ":content": self.content,
        })?;
        Ok(id.unwrap_or_else(|| connection.last_insert_rowid()))
    }
}

/// SQLite has signed integers only; this keeps the bits.
pub(super) fn to_signed(number: u64) -> i64 {
    i64::from_ne_bytes(number.to_ne_bytes())
}

/// The inverse of [`to_signed`].
pub(super) fn to_unsigned(number: i64) -> u64 {
    u64::from_ne_bytes(number.to_ne_bytes())
}

/// A path as bytes, because a Unix path need not be text.
#[cfg(unix)]
pub(super) fn path_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(not(unix))]
pub(super) fn path_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

/// The inverse of [`path_bytes`].
#[cfg(unix)]
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
