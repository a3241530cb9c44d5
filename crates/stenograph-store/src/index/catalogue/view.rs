//! What the catalogue answers: sources, which documents count, projects, files touched, records not understood. It only reads;
//! sessions are in `session.rs`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rusqlite::{Row, params};

use super::row::{COLUMNS, Gone, bits, path_bytes, path_of, word};
use super::session::MAIN;
use super::{Catalogue, SessionId, SourceId, SourceRow, Stamp};
use crate::Error;

/// Which lots count, and how many events of each.
#[derive(Clone, Debug, Default)]
pub struct Lots {
    /// Only those that count: numbers grow for ever, for each growth of a source takes one.
    by_number: HashMap<u64, Lot>,
}

/// What a lot is.
#[derive(Clone, Copy, Debug)]
pub struct Lot {
    /// The source its documents are of.
    pub source: SourceId,
    /// The session of that source.
    pub session: SessionId,
    /// The number of its first event in the source.
    pub first: u64,
    /// The number after its last event.
    pub end: u64,
    /// The version of the source in the archive that says it, where the source itself does not any more.
    pub version: Option<u32>,
    /// Whether another source of the session tells the same and more.
    pub is_told: bool,
}

impl Lots {
    /// The lot of this number, if it counts and has that event.
    pub fn live(&self, lot: u64, event: u64) -> Option<&Lot> {
        let found = self.by_number.get(&lot)?;
        (event >= found.first && event < found.end).then_some(found)
    }

    /// All that count, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Lot)> {
        self.by_number.iter().map(|(number, lot)| (*number, lot))
    }
}

/// A known file, as it was last seen.
#[derive(Clone, Copy, Debug)]
pub struct Stamped {
    /// The source it is.
    pub id: SourceId,
    /// What a stat said.
    pub stamp: Stamp,
    /// When, in nanoseconds since 1970.
    pub seen: i64,
    /// Whether it is there.
    pub gone: Gone,
    /// Whether the archive has all of it.
    pub is_kept: bool,
}

/// A source that the archive is said to have.
#[derive(Clone, Debug)]
pub struct KeptRow {
    /// The source.
    pub id: SourceId,
    /// Its path.
    pub path: PathBuf,
    /// Its copy.
    pub kept: String,
    /// How much of it the copy has.
    pub kept_length: u64,
}

/// A touch of a file.
#[derive(Clone, Debug)]
pub struct Touched {
    /// The file.
    pub path: String,
    /// The source that says so.
    pub source: SourceId,
    /// Its session.
    pub session: SessionId,
    /// The event in the source.
    pub event: u64,
    /// How, by its name.
    pub how: String,
    /// When.
    pub at: Option<i64>,
}

/// Records of one type that nobody understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The format of the sources they are in.
    pub format: String,
    /// Their type, in the source's word.
    pub name: String,
    /// How many.
    pub count: u64,
    /// In how many sources.
    pub sources: u64,
    /// One of those sources.
    pub path: PathBuf,
    /// Where in it the first one stands.
    pub line: u64,
    /// The batch that met the first one.
    pub batch: u64,
}

impl Catalogue {
    /// What a stat must say of each known file for it to be unchanged.
    pub(crate) fn stamps(&self) -> Result<HashMap<PathBuf, Stamped>, Error> {
        self.stamps_where("1", [])
    }

    /// The same of files that are there and whose last records are older than a moment, in milliseconds since 1970.
    pub(crate) fn ended_before(&self, moment_ms: i64) -> Result<HashMap<PathBuf, Stamped>, Error> {
        self.stamps_where("gone = 0 AND ended < ?1", [moment_ms])
    }

    fn stamps_where(&self, which: &str, values: impl rusqlite::Params) -> Result<HashMap<PathBuf, Stamped>, Error> {
        self.ask(|connection| {
            let sql = format!(
                "SELECT path, id, device, inode, size, changed, seen, gone, kept IS NOT NULL AND kept_length = size \
                 FROM sources WHERE {which}"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let read = |row: &Row<'_>| {
                let stamp = Stamp {
                    device: bits(row.get(2)?),
                    inode: bits(row.get(3)?),
                    size: bits(row.get(4)?),
                    changed: row.get(5)?,
                };
                let path = path_of(row.get_ref(0)?.as_bytes().unwrap_or_default());
                let (id, seen, gone, is_kept) = (row.get(1)?, row.get(6)?, row.get(7)?, row.get(8)?);
                Ok((path, Stamped { id, stamp, seen, gone, is_kept }))
            };
            statement.query_map(values, read)?.collect()
        })
    }

    /// Sources that the archive is said to have.
    pub(crate) fn kept_rows(&self) -> Result<Vec<KeptRow>, Error> {
        self.ask(|connection| {
            let sql = "SELECT id, path, kept, kept_length FROM sources WHERE kept IS NOT NULL";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                let path = path_of(row.get_ref(1)?.as_bytes().unwrap_or_default());
                Ok(KeptRow { id: row.get(0)?, path, kept: row.get(2)?, kept_length: bits(row.get(3)?) })
            };
            statement.query_map([], read)?.collect()
        })
    }

    /// Files that are no transcripts, with what a stat said of them.
    pub fn strangers(&self) -> Result<HashMap<PathBuf, (u64, i64)>, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("SELECT path, size, changed FROM strangers")?;
            let read = |row: &Row<'_>| {
                let path = path_of(row.get_ref(0)?.as_bytes().unwrap_or_default());
                Ok((path, (bits(row.get(1)?), row.get(2)?)))
            };
            statement.query_map([], read)?.collect()
        })
    }

    /// Files that stand where a format's sources are found and are not of any known format.
    pub fn unrecognised(&self) -> Result<Vec<(PathBuf, String)>, Error> {
        self.ask(|connection| {
            let sql = "SELECT path, expected FROM strangers WHERE expected IS NOT NULL AND size > 0 ORDER BY path";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| Ok((path_of(row.get_ref(0)?.as_bytes().unwrap_or_default()), row.get(1)?));
            statement.query_map([], read)?.collect()
        })
    }

    fn sources_where(&self, condition: &str, values: impl rusqlite::Params) -> Result<Vec<SourceRow>, Error> {
        self.ask(|connection| {
            let sql = format!("SELECT {COLUMNS} FROM sources WHERE {condition}");
            let mut statement = connection.prepare_cached(&sql)?;
            statement.query_map(values, SourceRow::read)?.collect()
        })
    }

    /// The source of this number.
    pub fn source(&self, id: SourceId) -> Result<Option<SourceRow>, Error> {
        Ok(self.sources_where("id = ?1", [id])?.pop())
    }

    /// The source at this path.
    pub fn source_at(&self, path: &Path) -> Result<Option<SourceRow>, Error> {
        Ok(self.sources_where("path = ?1", [path_bytes(path)])?.pop())
    }

    /// Sources that begin with these bytes and are no copies.
    pub(crate) fn sources_with_head(&self, head: u64) -> Result<Vec<SourceRow>, Error> {
        self.sources_where("head = ?1 AND copy_of IS NULL", [word(head)])
    }

    /// Sources that are gone, begin with these bytes, and were kept; copies have taken their places.
    pub(crate) fn gone_copies_with_head(&self, head: u64) -> Result<Vec<SourceRow>, Error> {
        self.sources_where("head = ?1 AND copy_of IS NOT NULL AND gone = 1 AND kept IS NOT NULL", [word(head)])
    }

    /// Sources that are gone and began with fewer bytes than these, all they had: number, fingerprint, and of how many bytes. Copies of
    /// others come last.
    pub(crate) fn short_heads(&self, length: u64) -> Result<Vec<(SourceId, u64, u64)>, Error> {
        self.ask(|connection| {
            let sql = "SELECT id, head, head_length FROM sources INDEXED BY sources_short WHERE gone = 1 AND head_length < 4096 \
                       AND head_length > 0 AND head_length < ?1 AND settled > 0 ORDER BY copy_of IS NOT NULL, id";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| Ok((row.get(0)?, bits(row.get(1)?), bits(row.get(2)?)));
            statement.query_map([word(length)], read)?.collect()
        })
    }

    /// Sources that are copies of this one.
    pub(crate) fn copies_of(&self, source: SourceId) -> Result<Vec<SourceRow>, Error> {
        self.sources_where("copy_of = ?1", [source])
    }

    /// The sources of a session, the main conversation first.
    pub fn sources_of(&self, session: SessionId) -> Result<Vec<SourceRow>, Error> {
        self.sources_where(&format!("session = ?1 ORDER BY {MAIN}"), [session])
    }

    /// Sources of sub-agents whose name begins so.
    pub fn sources_of_thread(&self, prefix: &str) -> Result<Vec<SourceRow>, Error> {
        let condition = "thread IS NOT NULL AND substr(thread, 1, length(?1)) = ?1 COLLATE NOCASE \
                         AND copy_of IS NULL AND told_by IS NULL ORDER BY id";
        self.sources_where(condition, [prefix])
    }

    /// All sources.
    pub fn sources(&self) -> Result<Vec<SourceRow>, Error> {
        self.sources_where("1 ORDER BY id", [])
    }

    /// The numbers of the sources that stand, or stood, below a folder.
    pub fn sources_below(&self, folder: &Path) -> Result<HashSet<SourceId>, Error> {
        self.below(folder, "SELECT id, path FROM sources")
    }

    /// The numbers of the sessions that have a source below a folder.
    pub fn sessions_below(&self, folder: &Path) -> Result<HashSet<SessionId>, Error> {
        self.below(folder, "SELECT session, path FROM sources")
    }

    fn below(&self, folder: &Path, sql: &str) -> Result<HashSet<i64>, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            let mut found = HashSet::new();
            while let Some(row) = rows.next()? {
                if path_of(row.get_ref(1)?.as_bytes().unwrap_or_default()).starts_with(folder) {
                    found.insert(row.get(0)?);
                }
            }
            Ok(found)
        })
    }

    /// Which documents count.
    pub(crate) fn lots(&self) -> Result<Lots, Error> {
        self.ask(|connection| {
            let sql = "SELECT id, session, lot, lot_events, tail, tail_events, told_by IS NOT NULL FROM sources \
                       WHERE copy_of IS NULL";
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            let mut lots = Lots::default();
            while let Some(row) = rows.next()? {
                let (source, session, is_told) = (row.get(0)?, row.get(1)?, row.get(6)?);
                let (lot, events, tail, more) =
                    (bits(row.get(2)?), bits(row.get(3)?), bits(row.get(4)?), bits(row.get(5)?));
                lots.by_number.insert(lot, Lot { source, session, first: 0, end: events, version: None, is_told });
                if tail != 0 {
                    let end = events + more;
                    let lot = Lot { source, session, first: events, end, version: None, is_told };
                    lots.by_number.insert(tail, lot);
                }
            }
            let sql =
                "SELECT earlier.lot, source, session, earlier.version FROM earlier JOIN sources ON sources.id = source";
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (source, session, version) = (row.get(1)?, row.get(2)?, Some(row.get(3)?));
                let lot = Lot { source, session, first: 0, end: u64::MAX, version, is_told: false };
                lots.by_number.insert(bits(row.get(0)?), lot);
            }
            Ok(lots)
        })
    }

    /// Who touched files whose path is this, or ends with it.
    pub fn touches(&self, path: &str) -> Result<Vec<Touched>, Error> {
        self.ask(|connection| {
            let sql = "SELECT files.path, sources.id, sources.session, event, how, at FROM files \
                       JOIN touches ON touches.file = files.id JOIN sources ON touches.lot IN (sources.lot, sources.tail) \
                       WHERE told_by IS NULL AND (files.path = ?1 OR substr(files.path, -length(?1) - 1) = '/' || ?1 OR \
                         substr(files.path, 1, length(?1) + 1) = ?1 || '/') \
                       ORDER BY at, sources.id, event";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                Ok(Touched {
                    path: row.get(0)?,
                    source: row.get(1)?,
                    session: row.get(2)?,
                    event: bits(row.get(3)?),
                    how: row.get(4)?,
                    at: row.get(5)?,
                })
            };
            statement.query_map([path], read)?.collect()
        })
    }

    /// Records that nobody understands, by format and type, the most first; those first met after batch `after`.
    pub fn unknown(&self, after: u64) -> Result<Vec<Unknown>, Error> {
        self.ask(|connection| {
            let sql = "SELECT format, name, sum(count), count(*), path, unknown.line, min(unknown.batch) AS first FROM unknown \
                       JOIN sources ON sources.id = unknown.source WHERE copy_of IS NULL \
                       GROUP BY format, name HAVING first > ?1 ORDER BY sum(count) DESC, format, name";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                Ok(Unknown {
                    format: row.get(0)?,
                    name: row.get(1)?,
                    count: bits(row.get(2)?),
                    sources: bits(row.get(3)?),
                    path: path_of(row.get_ref(4)?.as_bytes().unwrap_or_default()),
                    line: bits(row.get(5)?),
                    batch: bits(row.get(6)?),
                })
            };
            statement.query_map(params![word(after)], read)?.collect()
        })
    }

    /// Where projects stand, or stood last.
    pub fn project_roots(&self) -> Result<Vec<PathBuf>, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("SELECT root FROM projects")?;
            statement.query_map([], |row| row.get::<_, String>(0).map(PathBuf::from))?.collect()
        })
    }
}
