//! One source as the catalogue knows it. How a row is spelled in SQL stands here once.

use std::path::{Path, PathBuf};

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Row, named_params};

use crate::fingerprint::Fingerprint;
use crate::session_files::Tells;
use crate::source_file::Access;

/// The number of a source.
pub type SourceId = i64;

/// What a stat says of a file. When all of it is as it was, so is the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The device it is on, 0 where the system has none.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Its length.
    pub size: u64,
    /// When it was changed last, in nanoseconds since 1970.
    pub changed: i64,
}

/// What was counted and seen in the events of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The last title.
    pub title: Option<String>,
    /// The beginning of the first thing a user said.
    pub query: Option<String>,
    /// The first working folder.
    pub cwd: Option<String>,
    /// The last branch.
    pub branch: Option<String>,
    /// The last model.
    pub model: Option<String>,
    /// The last version of the agent.
    pub version: Option<String>,
    /// The first moment, in milliseconds since 1970.
    pub started: Option<i64>,
    /// The last moment.
    pub ended: Option<i64>,
    /// What users and models said.
    pub messages: u64,
    /// Tool calls.
    pub calls: u64,
    /// Failures.
    pub errors: u64,
    /// Remarks about the source.
    pub notes: u64,
}

/// Checksums of a file's bytes from its beginning. More bytes go on from a checksum without those before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentSum {
    /// Up to `settled`.
    pub settled: u32,
    /// Up to the end.
    pub whole: u32,
}

impl FromSql for ContentSum {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let [a, b, c, d, e, f, g, h] = value.as_i64()?.to_be_bytes();
        Ok(ContentSum { settled: u32::from_be_bytes([a, b, c, d]), whole: u32::from_be_bytes([e, f, g, h]) })
    }
}

impl ToSql for ContentSum {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let ([a, b, c, d], [e, f, g, h]) = (self.settled.to_be_bytes(), self.whole.to_be_bytes());
        Ok(i64::from_be_bytes([a, b, c, d, e, f, g, h]).into())
    }
}

/// A source.
#[derive(Clone, Debug)]
pub struct SourceRow {
    /// Its number; 0 until it is first put in.
    pub id: SourceId,
    /// Where it stands, or stood.
    pub path: PathBuf,
    /// The name of its format.
    pub format: String,
    /// Its session.
    pub session: i64,
    /// The side conversation that it is.
    pub thread: Option<String>,
    /// The file as it was when it was read.
    pub stamp: Stamp,
    /// When it was read, in nanoseconds since 1970: what changed at that very moment may have changed after it too.
    pub seen: i64,
    /// How its records are reached.
    pub access: Access,
    /// The fingerprint of its first bytes.
    pub head: u64,
    /// How many of them.
    pub head_length: u64,
    /// The fingerprint of the bytes before `settled`.
    pub tail_hash: u64,
    /// Checksums of all of its bytes.
    pub content: ContentSum,
    /// The offset up to which more input changes nothing.
    pub settled: u64,
    /// The line that begins there, from 1.
    pub line: u64,
    /// Marks the documents of events before `settled`.
    pub lot: u64,
    /// How many events those are.
    pub lot_events: u64,
    /// Marks the documents of events after `settled`; 0 when there are none.
    pub tail: u64,
    /// How many those are.
    pub tail_events: u64,
    /// What the events up to `settled` leave open.
    pub trail: String,
    /// The key of the first thing a user said: what copies and forks have in common.
    pub first_key: Option<u64>,
    /// Whether it is not there any more.
    pub gone: Gone,
    /// The source it is a copy of, byte for byte; then it has no documents.
    pub copy_of: Option<SourceId>,
    /// How much of its session it tells.
    pub tells: Tells,
    /// The source that tells the same and more, as [`crate::session_files`] decides.
    pub told_by: Option<SourceId>,
    /// Its name in the archive.
    pub kept: Option<String>,
    /// How much of it the archive has.
    pub kept_length: u64,
    /// What was counted.
    pub tally: Tally,
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

two_words!(Gone, There, Gone, "Whether a source is where it was.", "It is.", "It is not.");

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

impl FromSql for Tells {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value.as_i64()? {
            0 => Tells::Session,
            1 => Tells::Text,
            _ => Tells::Log,
        })
    }
}

impl ToSql for Tells {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Tells::Session => 0_i64,
            Tells::Text => 1,
            Tells::Log => 2,
        }
        .into())
    }
}

/// Every column, in the order that [`SourceRow::read`] takes them.
pub(super) const COLUMNS: &str = "id, path, format, session, thread, device, inode, size, changed, seen, access, head, head_length, \
     tail_hash, settled, line, lot, lot_events, tail, tail_events, trail, first_key, gone, copy_of, kept, kept_length, title, query, cwd, \
     branch, model, version, started, ended, messages, calls, errors, notes, \
     tells, told_by, content";

impl SourceRow {
    /// Up to where the file is proven to be the one that was read: to `settled`, or to its end where nothing is settled.
    pub(crate) fn read_end(&self) -> u64 {
        if self.settled > 0 { self.settled } else { self.stamp.size }
    }

    /// The fingerprint of what was read.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint { head_length: self.head_length, head: self.head, end: self.read_end(), tail: self.tail_hash }
    }

    pub(crate) fn set_fingerprint(&mut self, fingerprint: Fingerprint) {
        (self.head_length, self.head, self.tail_hash) = (fingerprint.head_length, fingerprint.head, fingerprint.tail);
    }

    /// A source of which nothing is known yet.
    pub fn new(path: &Path) -> SourceRow {
        SourceRow {
            id: 0,
            path: path.to_owned(),
            format: String::new(),
            session: 0,
            thread: None,
            stamp: Stamp::default(),
            seen: 0,
            access: Access::Whole,
            head: 0,
            head_length: 0,
            tail_hash: 0,
            content: ContentSum::default(),
            settled: 0,
            line: 1,
            lot: 0,
            lot_events: 0,
            tail: 0,
            tail_events: 0,
            trail: String::new(),
            first_key: None,
            gone: Gone::There,
            copy_of: None,
            tells: Tells::Session,
            told_by: None,
            kept: None,
            kept_length: 0,
            tally: Tally::default(),
        }
    }
}

impl SourceRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<SourceRow> {
        Ok(SourceRow {
            id: row.get(0)?,
            path: path_of(row.get_ref(1)?.as_bytes().unwrap_or_default()),
            format: row.get(2)?,
            session: row.get(3)?,
            thread: row.get(4)?,
            stamp: Stamp {
                device: bits(row.get(5)?),
                inode: bits(row.get(6)?),
                size: bits(row.get(7)?),
                changed: row.get(8)?,
            },
            seen: row.get(9)?,
            access: row.get(10)?,
            head: bits(row.get(11)?),
            head_length: bits(row.get(12)?),
            tail_hash: bits(row.get(13)?),
            settled: bits(row.get(14)?),
            line: bits(row.get(15)?),
            lot: bits(row.get(16)?),
            lot_events: bits(row.get(17)?),
            tail: bits(row.get(18)?),
            tail_events: bits(row.get(19)?),
            trail: row.get(20)?,
            first_key: row.get::<_, Option<i64>>(21)?.map(bits),
            gone: row.get(22)?,
            copy_of: row.get(23)?,
            kept: row.get(24)?,
            kept_length: bits(row.get(25)?),
            tally: Tally {
                title: row.get(26)?,
                query: row.get(27)?,
                cwd: row.get(28)?,
                branch: row.get(29)?,
                model: row.get(30)?,
                version: row.get(31)?,
                started: row.get(32)?,
                ended: row.get(33)?,
                messages: bits(row.get(34)?),
                calls: bits(row.get(35)?),
                errors: bits(row.get(36)?),
                notes: bits(row.get(37)?),
            },
            tells: row.get(38)?,
            told_by: row.get(39)?,
            content: row.get(40)?,
        })
    }

    /// Puts the row in, or over the one with its number, and gives the number.
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
            ":device": word(self.stamp.device), ":inode": word(self.stamp.inode), ":size": word(self.stamp.size),
            ":changed": self.stamp.changed, ":seen": self.seen, ":access": self.access, ":head": word(self.head),
            ":head_length": word(self.head_length), ":tail_hash": word(self.tail_hash), ":settled": word(self.settled),
            ":line": word(self.line), ":lot": word(self.lot), ":lot_events": word(self.lot_events), ":tail": word(self.tail),
            ":tail_events": word(self.tail_events), ":trail": self.trail, ":first_key": self.first_key.map(word), ":gone": self.gone,
            ":copy_of": self.copy_of, ":kept": self.kept, ":kept_length": word(self.kept_length), ":title": self.tally.title,
            ":query": self.tally.query, ":cwd": self.tally.cwd, ":branch": self.tally.branch, ":model": self.tally.model,
            ":version": self.tally.version, ":started": self.tally.started, ":ended": self.tally.ended,
            ":messages": word(self.tally.messages), ":calls": word(self.tally.calls), ":errors": word(self.tally.errors),
            ":notes": word(self.tally.notes), ":tells": self.tells, ":told_by": self.told_by, ":content": self.content,
        })?;
        Ok(id.unwrap_or_else(|| connection.last_insert_rowid()))
    }
}

/// SQLite has signed numbers only: fingerprints keep their bits.
pub(super) fn word(number: u64) -> i64 {
    i64::from_ne_bytes(number.to_ne_bytes())
}

/// The inverse of [`word`].
pub(super) fn bits(number: i64) -> u64 {
    u64::from_ne_bytes(number.to_ne_bytes())
}

/// A path as bytes: not every name on Unix is text.
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
