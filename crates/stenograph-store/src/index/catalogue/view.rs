//! Queries: sources, live documents, projects, touched files, records that no reader understands. It only reads; sessions are
//! in `session.rs`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

use super::row::{COLUMNS, Gone, path_bytes, path_of, to_signed, to_unsigned};
use super::session::MAIN;
use super::{Catalogue, FileStamp, SessionId, SourceId, SourceRow};
use crate::Error;

/// Live document groups, and how many events each has.
#[derive(Clone, Debug, Default)]
pub struct DocGroups {
    /// Live groups only: numbers are never reused, and each growth of a source takes one.
    by_number: HashMap<u64, DocGroup>,
}

/// Beyond this number of document groups, reading all of them takes less time than looking each of them up.
const LOOKUPS_MAX: usize = 2_000;

/// A group of documents that are deleted together.
#[derive(Clone, Copy, Debug)]
pub struct DocGroup {
    /// The source of its documents.
    pub source: SourceId,
    /// The session of that source.
    pub session: SessionId,
    /// The number of its first event in the source.
    pub first: u64,
    /// The number after its last event.
    pub end: u64,
    /// The archived version that holds the events, if the source no longer does.
    pub version: Option<u32>,
    /// Whether another source of the session covers this one.
    pub is_covered: bool,
}

const GROUPS: &str =
    "SELECT id, session, doc_group, doc_group_events, tail, tail_events, covered_by IS NOT NULL FROM sources";
const EARLIER_GROUPS: &str =
    "SELECT earlier.doc_group, source, session, earlier.version FROM earlier JOIN sources ON sources.id = source";

impl DocGroups {
    /// Whether this group is live.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.by_number.contains_key(&number)
    }

    /// Adds the groups of sources.
    fn add(&mut self, connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            let (source, session, is_covered) = (row.get(0)?, row.get(1)?, row.get(6)?);
            let (events, tail, more) = (to_unsigned(row.get(3)?), to_unsigned(row.get(4)?), to_unsigned(row.get(5)?));
            let doc_group = DocGroup { source, session, first: 0, end: events, version: None, is_covered };
            self.by_number.insert(to_unsigned(row.get(2)?), doc_group);
            if tail != 0 {
                self.by_number.insert(tail, DocGroup { first: events, end: events + more, ..doc_group });
            }
        }
        Ok(())
    }

    /// Adds the groups of earlier versions of sources.
    fn add_earlier(&mut self, connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            let (source, session, version) = (row.get(1)?, row.get(2)?, Some(row.get(3)?));
            let doc_group = DocGroup { source, session, first: 0, end: u64::MAX, version, is_covered: false };
            self.by_number.insert(to_unsigned(row.get(0)?), doc_group);
        }
        Ok(())
    }

    /// The group with this number, if it is live and has that event.
    pub fn live(&self, doc_group: u64, event: u64) -> Option<&DocGroup> {
        let found = self.by_number.get(&doc_group)?;
        (event >= found.first && event < found.end).then_some(found)
    }

    /// The groups, unordered.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &DocGroup)> {
        self.by_number.iter().map(|(number, doc_group)| (*number, doc_group))
    }
}

/// The state of each database when all of its conversations were indexed, and the time of that run.
pub(crate) type SavedDatabases = HashMap<PathBuf, (FileStamp, i64)>;

/// A known file as it was last seen.
#[derive(Clone, Copy, Debug)]
pub struct KnownFile {
    /// Its source.
    pub id: SourceId,
    /// Its stat.
    pub stamp: FileStamp,
    /// When it was seen, in nanoseconds since 1970.
    pub seen: i64,
    /// Whether it is gone.
    pub gone: Gone,
    /// Whether the archive has all of it.
    pub is_archived: bool,
}

/// The status of the run in a file, as it was saved.
#[derive(Clone, Debug)]
pub(crate) struct SavedStatus {
    /// The file's stat.
    pub stamp: FileStamp,
    /// When it was seen, in nanoseconds since 1970.
    pub seen: i64,
    /// The status, as `FileStatus` saves it.
    pub status: String,
}

/// A source with a copy in the archive, according to the catalogue.
#[derive(Clone, Debug)]
pub struct ArchivedRow {
    /// The source.
    pub id: SourceId,
    /// The source's path.
    pub path: PathBuf,
    /// The number of its copy.
    pub archive_copy: String,
    /// How many bytes the copy has.
    pub archived_length: u64,
}

/// A touch of a file by an event.
#[derive(Clone, Debug)]
pub struct Touched {
    /// The file.
    pub path: String,
    /// The source of the event.
    pub source: SourceId,
    /// Its session.
    pub session: SessionId,
    /// The number of the event in the source.
    pub event: u64,
    /// The name of the kind of touch.
    pub how: String,
    /// The time of the event.
    pub at: Option<i64>,
}

/// Records of one type that no reader understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The format of their sources.
    pub format: String,
    /// Their type, as the source names it.
    pub name: String,
    /// How many records.
    pub count: u64,
    /// In how many sources.
    pub sources: u64,
    /// One of those sources.
    pub path: PathBuf,
    /// The line of the first one in it.
    pub line: u64,
    /// The batch that found the first one.
    pub batch: u64,
}

impl Catalogue {
    /// The known files with their stats.
    pub(crate) fn stamps(&self) -> Result<HashMap<PathBuf, KnownFile>, Error> {
        self.query(|connection| {
            let sql = "SELECT path, id, device, inode, size, changed, seen, gone, archive_copy IS NOT NULL AND archived_length = size \
                       FROM sources";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                let stamp = FileStamp {
                    device: to_unsigned(row.get(2)?),
                    inode: to_unsigned(row.get(3)?),
                    size: to_unsigned(row.get(4)?),
                    changed: row.get(5)?,
                };
                let path = path_of(row.get_ref(0)?.as_bytes().unwrap_or_default());
                let (id, seen, gone, is_archived) = (row.get(1)?, row.get(6)?, row.get(7)?, row.get(8)?);
                Ok((path, KnownFile { id, stamp, seen, gone, is_archived }))
            };
            statement.query_map([], read)?.collect()
        })
    }

    /// The paths of the sources that existed when they were last seen.
    pub fn existing_paths(&self) -> Result<Vec<PathBuf>, Error> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached("SELECT path FROM sources WHERE gone = 0")?;
            let read = |row: &Row<'_>| Ok(path_of(row.get_ref(0)?.as_bytes().unwrap_or_default()));
            statement.query_map([], read)?.collect()
        })
    }

    /// The saved status of the run in the file at this path, with the file's stat then.
    pub(crate) fn status_at(&self, path: &Path) -> Result<Option<SavedStatus>, Error> {
        self.query(|connection| {
            let sql = "SELECT device, inode, size, changed, seen, status FROM sources \
                       JOIN statuses ON statuses.source = sources.id WHERE path = ?1 AND gone = 0";
            let read = |row: &Row<'_>| {
                let stamp = FileStamp {
                    device: to_unsigned(row.get(0)?),
                    inode: to_unsigned(row.get(1)?),
                    size: to_unsigned(row.get(2)?),
                    changed: row.get(3)?,
                };
                Ok(SavedStatus { stamp, seen: row.get(4)?, status: row.get(5)? })
            };
            connection.prepare_cached(sql)?.query_row([path_bytes(path)], read).optional()
        })
    }

    /// The sources with a copy in the archive, according to the catalogue.
    pub(crate) fn archived_rows(&self) -> Result<Vec<ArchivedRow>, Error> {
        self.query(|connection| {
            let sql = "SELECT id, path, archive_copy, archived_length FROM sources WHERE archive_copy IS NOT NULL";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                let path = path_of(row.get_ref(1)?.as_bytes().unwrap_or_default());
                Ok(ArchivedRow {
                    id: row.get(0)?,
                    path,
                    archive_copy: row.get(2)?,
                    archived_length: to_unsigned(row.get(3)?),
                })
            };
            statement.query_map([], read)?.collect()
        })
    }

    /// Files that are not transcripts, with size and time of last change.
    pub fn non_transcripts(&self) -> Result<HashMap<PathBuf, (u64, i64)>, Error> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached("SELECT path, size, changed FROM non_transcripts")?;
            let read = |row: &Row<'_>| {
                let path = path_of(row.get_ref(0)?.as_bytes().unwrap_or_default());
                Ok((path, (to_unsigned(row.get(1)?), row.get(2)?)))
            };
            statement.query_map([], read)?.collect()
        })
    }

    /// The databases whose conversations are indexed, with their state and the time of the run.
    pub(crate) fn databases(&self) -> Result<SavedDatabases, Error> {
        self.query(|connection| {
            let sql = "SELECT path, device, inode, size, changed, seen FROM databases";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                let stamp = FileStamp {
                    device: to_unsigned(row.get(1)?),
                    inode: to_unsigned(row.get(2)?),
                    size: to_unsigned(row.get(3)?),
                    changed: row.get(4)?,
                };
                Ok((path_of(row.get_ref(0)?.as_bytes().unwrap_or_default()), (stamp, row.get(5)?)))
            };
            statement.query_map([], read)?.collect()
        })
    }

    /// Files in a place where a format keeps its sources, but of no known format.
    pub fn unrecognised(&self) -> Result<Vec<(PathBuf, String)>, Error> {
        self.query(|connection| {
            let sql =
                "SELECT path, expected FROM non_transcripts WHERE expected IS NOT NULL AND size > 0 ORDER BY path";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| Ok((path_of(row.get_ref(0)?.as_bytes().unwrap_or_default()), row.get(1)?));
            statement.query_map([], read)?.collect()
        })
    }

    fn sources_where(&self, condition: &str, values: impl rusqlite::Params) -> Result<Vec<SourceRow>, Error> {
        self.query(|connection| {
            let sql = format!("SELECT {COLUMNS} FROM sources WHERE {condition}");
            let mut statement = connection.prepare_cached(&sql)?;
            statement.query_map(values, |row| SourceRow::read(row, self.registry))?.collect()
        })
    }

    /// The source with this number.
    pub fn source(&self, id: SourceId) -> Result<Option<SourceRow>, Error> {
        Ok(self.sources_where("id = ?1", [id])?.pop())
    }

    /// The source at this path.
    pub fn source_at(&self, path: &Path) -> Result<Option<SourceRow>, Error> {
        Ok(self.sources_where("path = ?1", [path_bytes(path)])?.pop())
    }

    /// Sources that begin with these bytes and are not copies.
    pub(crate) fn sources_with_head(&self, head: u64) -> Result<Vec<SourceRow>, Error> {
        self.sources_where("head = ?1 AND copy_of IS NULL", [to_signed(head)])
    }

    /// Archived sources that are gone and begin with these bytes, and whose place a copy has taken.
    pub(crate) fn gone_copies_with_head(&self, head: u64) -> Result<Vec<SourceRow>, Error> {
        self.sources_where(
            "head = ?1 AND copy_of IS NOT NULL AND gone = 1 AND archive_copy IS NOT NULL",
            [to_signed(head)],
        )
    }

    /// Sources that are gone and were shorter than `length`: number, hash of all their bytes, and length. Copies come last.
    pub(crate) fn short_heads(&self, length: u64) -> Result<Vec<(SourceId, u64, u64)>, Error> {
        self.query(|connection| {
            let sql = "SELECT id, head, head_length FROM sources INDEXED BY sources_short WHERE gone = 1 AND head_length < 4096 \
                       AND head_length > 0 AND head_length < ?1 AND stable_until > 0 ORDER BY copy_of IS NOT NULL, id";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| Ok((row.get(0)?, to_unsigned(row.get(1)?), to_unsigned(row.get(2)?)));
            statement.query_map([to_signed(length)], read)?.collect()
        })
    }

    /// The copies of this source.
    pub(crate) fn copies_of(&self, source: SourceId) -> Result<Vec<SourceRow>, Error> {
        self.sources_where("copy_of = ?1", [source])
    }

    /// The sources of a session, the main conversation first.
    pub fn sources_of(&self, session: SessionId) -> Result<Vec<SourceRow>, Error> {
        self.sources_where(&format!("session = ?1 ORDER BY {MAIN}"), [session])
    }

    /// Sources of sub-agents whose name begins with this prefix.
    pub fn sources_of_thread(&self, prefix: &str) -> Result<Vec<SourceRow>, Error> {
        let condition = "thread IS NOT NULL AND substr(thread, 1, length(?1)) = ?1 COLLATE NOCASE \
                         AND copy_of IS NULL AND covered_by IS NULL ORDER BY id";
        self.sources_where(condition, [prefix])
    }

    /// All sources.
    pub fn sources(&self) -> Result<Vec<SourceRow>, Error> {
        self.sources_where("1 ORDER BY id", [])
    }

    /// The numbers of the sources below a folder, including those that are gone.
    pub fn sources_below(&self, folder: &Path) -> Result<HashSet<SourceId>, Error> {
        self.below(folder, "SELECT id, path FROM sources")
    }

    /// The numbers of the sessions that have a source below a folder.
    pub fn sessions_below(&self, folder: &Path) -> Result<HashSet<SessionId>, Error> {
        self.below(folder, "SELECT session, path FROM sources")
    }

    fn below(&self, folder: &Path, sql: &str) -> Result<HashSet<i64>, Error> {
        self.query(|connection| {
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

    /// Whether all sources are below a folder. `false` if their paths alone do not prove it.
    pub fn are_all_below(&self, folder: &Path) -> Result<bool, Error> {
        let mut first = path_bytes(folder);
        if first.last() != Some(&b'/') {
            first.push(b'/');
        }
        // The byte after a slash.
        let end: Vec<u8> = first.iter().copied().take(first.len() - 1).chain([b'/' + 1]).collect();
        self.query(|connection| {
            let sql = "SELECT NOT EXISTS (SELECT 1 FROM sources WHERE path < ?1) AND NOT EXISTS (SELECT 1 FROM sources WHERE path >= ?2)";
            connection.prepare_cached(sql)?.query_row(params![first, end], |row| row.get(0))
        })
    }

    /// All live document groups.
    pub(crate) fn all_doc_groups(&self) -> Result<DocGroups, Error> {
        self.query(|connection| {
            let mut doc_groups = DocGroups::default();
            doc_groups.add(connection, &format!("{GROUPS} WHERE copy_of IS NULL"), [])?;
            doc_groups.add_earlier(connection, EARLIER_GROUPS, [])?;
            Ok(doc_groups)
        })
    }

    /// Those of these document groups that are live.
    pub(crate) fn doc_groups(&self, numbers: &HashSet<u64>) -> Result<DocGroups, Error> {
        if numbers.len() > LOOKUPS_MAX {
            return self.all_doc_groups();
        }
        self.query(|connection| {
            let mut doc_groups = DocGroups::default();
            let of_source = format!("{GROUPS} WHERE copy_of IS NULL AND (doc_group = ?1 OR tail = ?1 AND tail <> 0)");
            let earlier = format!("{EARLIER_GROUPS} WHERE earlier.doc_group = ?1");
            for number in numbers {
                doc_groups.add(connection, &of_source, [to_signed(*number)])?;
                doc_groups.add_earlier(connection, &earlier, [to_signed(*number)])?;
            }
            Ok(doc_groups)
        })
    }

    /// Touches of files whose path equals this one or ends with it.
    pub fn touches(&self, path: &str) -> Result<Vec<Touched>, Error> {
        self.query(|connection| {
            let sql = "SELECT files.path, sources.id, sources.session, event, how, at FROM files \
                       JOIN touches ON touches.file = files.id JOIN sources ON touches.doc_group IN (sources.doc_group, sources.tail) \
                       WHERE covered_by IS NULL AND (files.path = ?1 OR substr(files.path, -length(?1) - 1) = '/' || ?1 OR \
                         substr(files.path, 1, length(?1) + 1) = ?1 || '/') \
                       ORDER BY at, sources.id, event";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                Ok(Touched {
                    path: row.get(0)?,
                    source: row.get(1)?,
                    session: row.get(2)?,
                    event: to_unsigned(row.get(3)?),
                    how: row.get(4)?,
                    at: row.get(5)?,
                })
            };
            statement.query_map([path], read)?.collect()
        })
    }

    /// Records that no reader understands, by format and type, the most frequent first. Only those first found after batch
    /// `after`.
    pub fn unknown(&self, after: u64) -> Result<Vec<Unknown>, Error> {
        self.query(|connection| {
            let sql = "SELECT format, name, sum(count), count(*), path, unknown.line, min(unknown.batch) AS first FROM unknown \
                       JOIN sources ON sources.id = unknown.source WHERE copy_of IS NULL \
                       GROUP BY format, name HAVING first > ?1 ORDER BY sum(count) DESC, format, name";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                Ok(Unknown {
                    format: row.get(0)?,
                    name: row.get(1)?,
                    count: to_unsigned(row.get(2)?),
                    sources: to_unsigned(row.get(3)?),
                    path: path_of(row.get_ref(4)?.as_bytes().unwrap_or_default()),
                    line: to_unsigned(row.get(5)?),
                    batch: to_unsigned(row.get(6)?),
                })
            };
            statement.query_map(params![to_signed(after)], read)?.collect()
        })
    }

    /// The folders of projects, or their last ones.
    pub fn project_roots(&self) -> Result<Vec<PathBuf>, Error> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached("SELECT root FROM projects")?;
            statement.query_map([], |row| row.get::<_, String>(0).map(PathBuf::from))?.collect()
        })
    }
}
