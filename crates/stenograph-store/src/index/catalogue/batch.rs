//! Changes: how a batch updates sources, sessions and files. A batch takes effect as a whole or not at all.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use stenograph::query::Touch;

use super::row::{path_bytes, path_of, to_signed, to_unsigned};
use super::{Catalogue, FileStamp, SourceId, SourceRow};
use crate::Error;
use crate::index::event_indexer::NestedCounts;
use crate::session_files::SourceRole;

/// The link between sessions with the same beginning, if nothing better is known.
const SHARED: &str = "shares its beginning with";

/// A copy whose content no longer equals its original.
#[derive(Clone, Debug)]
pub struct DivergedCopy {
    /// The copy's number.
    pub id: SourceId,
    /// The copy's path.
    pub path: PathBuf,
}

impl Catalogue {
    /// Starts a batch. Changes count once it is committed.
    pub fn begin(&self) -> Result<(), Error> {
        self.query(|connection| connection.execute_batch("BEGIN IMMEDIATE"))
    }

    /// Discards the changes of this batch.
    pub(crate) fn roll_back(&self) -> Result<(), Error> {
        self.query(|connection| connection.execute_batch("ROLLBACK"))
    }

    /// Sets a savepoint in the batch.
    pub fn savepoint(&self) -> Result<(), Error> {
        self.query(|connection| connection.execute_batch("SAVEPOINT mark"))
    }

    /// Releases the savepoint.
    pub(crate) fn release_savepoint(&self) -> Result<(), Error> {
        self.query(|connection| connection.execute_batch("RELEASE mark"))
    }

    /// Discards the changes since [`Catalogue::savepoint`]. Documents in the text index cannot be discarded: those of new groups are
    /// retired, and the source must be read from its beginning, because some documents may continue its old group.
    pub(crate) fn rollback_to(&self, source: Option<SourceId>) -> Result<(), Error> {
        self.query(|connection| {
            let next_doc_group = || connection.query_row("SELECT next_doc_group FROM state", [], |row| row.get::<_, i64>(0));
            let next = next_doc_group()?;
            connection.execute_batch("ROLLBACK TO mark; RELEASE mark")?;
            for doc_group in next_doc_group()?..next {
                connection.prepare_cached("INSERT OR IGNORE INTO retired_doc_groups VALUES (?1)")?.execute([doc_group])?;
            }
            connection.prepare_cached("UPDATE state SET next_doc_group = ?1")?.execute([next])?;
            let sql = "UPDATE sources SET size = 0, changed = 0, stable_until = 0, head = 0, head_length = 0, tail_hash = 0, content = 0 \
                       WHERE id = ?1";
            connection.prepare_cached(sql)?.execute([source]).map(drop)
        })
    }

    /// Records that all sources that only the archive has were indexed.
    pub(crate) fn set_complete(&self) -> Result<(), Error> {
        self.query(|connection| connection.execute("UPDATE state SET complete = 1", []).map(drop))
    }

    /// Records that the archive has sources that were not indexed.
    pub(crate) fn set_incomplete(&self) -> Result<(), Error> {
        self.query(|connection| {
            connection.execute("UPDATE state SET complete = 0, commits = commits + 1", []).map(drop)
        })
    }

    /// Makes the next look re-read the copies of a source, whatever their stat says, because its content no longer equals
    /// theirs. Returns them.
    pub(crate) fn recheck_copies(&self, source: SourceId) -> Result<Vec<DivergedCopy>, Error> {
        self.query(|connection| {
            let sql = "UPDATE sources SET size = 0, changed = 0 WHERE copy_of = ?1 RETURNING id, path";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                let path = path_of(row.get_ref(1)?.as_bytes().unwrap_or_default());
                Ok(DivergedCopy { id: row.get(0)?, path })
            };
            statement.query_map([source], read)?.collect()
        })
    }

    /// Removes a copy, which has no documents: its original has taken its place.
    pub(crate) fn drop_copy(&self, source: SourceId) -> Result<(), Error> {
        let sql = "DELETE FROM sources WHERE id = ?1 AND copy_of IS NOT NULL";
        self.query(|connection| connection.prepare_cached(sql)?.execute([source]).map(drop))
    }

    /// A group number that no document has had. Numbers are never reused.
    pub(crate) fn new_doc_group(&self) -> Result<u64, Error> {
        self.query(|connection| {
            let sql = "UPDATE state SET next_doc_group = next_doc_group + 1 RETURNING next_doc_group - 1";
            connection.prepare_cached(sql)?.query_row([], |row| row.get(0).map(to_unsigned))
        })
    }

    /// The session with this name, created if missing. `home` separates sessions whose names are unique only within one folder.
    pub(crate) fn make_session(&self, agent: &str, name: &str, home: &str) -> Result<i64, Error> {
        self.query(|connection| {
            let find = "SELECT id FROM sessions WHERE agent = ?1 AND name = ?2 AND home = ?3";
            let found =
                connection.prepare_cached(find)?.query_row(params![agent, name, home], |row| row.get(0)).optional()?;
            match found {
                Some(id) => Ok(id),
                None => {
                    let sql = "INSERT INTO sessions (agent, name, home) VALUES (?1, ?2, ?3)";
                    connection.prepare_cached(sql)?.insert(params![agent, name, home])
                }
            }
        })
    }

    /// Links a session to its parent, unless it already has one or the link would form a cycle.
    pub fn link(&self, session: i64, parent: i64, how: &str) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "WITH RECURSIVE above (id, depth) AS (VALUES (?2, 0) UNION ALL \
                         SELECT sessions.parent, depth + 1 FROM above JOIN sessions ON sessions.id = above.id \
                         WHERE sessions.parent IS NOT NULL AND depth < 1000) \
                       UPDATE sessions SET parent = ?2, link = ?3 \
                       WHERE id = ?1 AND parent IS NULL AND NOT EXISTS (SELECT 1 FROM above WHERE id = ?1)";
            connection.prepare_cached(sql)?.execute(params![session, parent, how]).map(drop)
        })
    }

    /// The project with this root and remote. A known remote is one project at any path.
    pub fn project(&self, name: &str, root: &str, remote: Option<&str>) -> Result<i64, Error> {
        self.query(|connection| {
            let find = "SELECT id FROM projects WHERE (?2 IS NOT NULL AND remote = ?2) OR (?2 IS NULL AND remote IS NULL AND root = ?1)";
            let found = connection.prepare_cached(find)?.query_row(params![root, remote], |row| row.get(0)).optional()?;
            match found {
                Some(id) => Ok(id),
                None => {
                    let sql = "INSERT INTO projects (name, root, remote) VALUES (?1, ?2, ?3)";
                    connection.prepare_cached(sql)?.insert(params![name, root, remote])
                }
            }
        })
    }

    /// The project recorded for a working folder.
    pub(crate) fn project_of_folder(&self, folder: &str) -> Result<Option<i64>, Error> {
        self.query(|connection| {
            let sql = "SELECT project FROM folders WHERE path = ?1";
            connection.prepare_cached(sql)?.query_row([folder], |row| row.get(0)).optional()
        })
    }

    /// Records the project of a working folder.
    pub(crate) fn set_project_of_folder(&self, folder: &str, project: i64) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "INSERT INTO folders VALUES (?1, ?2) ON CONFLICT (path) DO UPDATE SET project = excluded.project";
            connection.prepare_cached(sql)?.execute(params![folder, project]).map(drop)
        })
    }

    /// Records the project of a session.
    pub(crate) fn set_project(&self, session: i64, project: i64) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "UPDATE sessions SET project = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![session, project]).map(drop)
        })
    }

    /// Inserts a source, or updates the row with its number.
    pub fn put(&self, source: &SourceRow) -> Result<SourceId, Error> {
        self.query(|connection| {
            let non_transcripts = "DELETE FROM non_transcripts WHERE path = ?1";
            connection.prepare_cached(non_transcripts)?.execute([path_bytes(&source.path)])?;
            source.write(connection)
        })
    }

    /// Records what the sub-agents did whose records are inside records of a source.
    pub(in crate::index) fn put_nested(&self, source: SourceId, nested: &NestedCounts) -> Result<(), Error> {
        self.query(|connection| {
            connection.prepare_cached("DELETE FROM nested WHERE source = ?1")?.execute([source])?;
            let mut statement = connection.prepare_cached("INSERT INTO nested VALUES (?1, ?2, ?3, ?4)")?;
            nested.by_thread().try_for_each(|(thread, calls, errors)| {
                statement.execute(params![source, thread, to_signed(calls), to_signed(errors)]).map(drop)
            })
        })
    }

    /// Saves the status of the run in a source; `None` removes it.
    pub(crate) fn put_status(&self, source: SourceId, status: Option<&str>) -> Result<(), Error> {
        self.query(|connection| match status {
            Some(status) => {
                let sql = "INSERT OR REPLACE INTO statuses VALUES (?1, ?2)";
                connection.prepare_cached(sql)?.execute(params![source, status]).map(drop)
            }
            None => connection.prepare_cached("DELETE FROM statuses WHERE source = ?1")?.execute([source]).map(drop),
        })
    }

    /// Links the sessions that begin with this key, and have no better link, to the oldest of them: the one that ended first,
    /// or whose file was written first if its records have no times. A continuation ends later than its original.
    pub(crate) fn link_to_oldest(&self, first_key: u64) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "SELECT session FROM sources WHERE first_key = ?1 AND thread IS NULL GROUP BY session \
                       ORDER BY min(coalesce(ended, changed / 1000000)), min(messages), session LIMIT 1";
            let oldest: Option<i64> =
                connection.prepare_cached(sql)?.query_row([to_signed(first_key)], |row| row.get(0)).optional()?;
            let Some(oldest) = oldest else { return Ok(()) };
            let sql = "UPDATE sessions SET parent = NULL, link = NULL WHERE id = ?1 AND link = ?2";
            connection.prepare_cached(sql)?.execute(params![oldest, SHARED])?;
            let sql = "WITH RECURSIVE above (id, depth) AS (VALUES (?1, 0) UNION ALL \
                         SELECT sessions.parent, depth + 1 FROM above JOIN sessions ON sessions.id = above.id \
                         WHERE sessions.parent IS NOT NULL AND depth < 1000) \
                       UPDATE sessions SET parent = ?1, link = ?2 \
                       WHERE id IN (SELECT session FROM sources WHERE first_key = ?3 AND thread IS NULL) \
                         AND (parent IS NULL OR link = ?2) AND id NOT IN (SELECT id FROM above)";
            connection.prepare_cached(sql)?.execute(params![oldest, SHARED, to_signed(first_key)]).map(drop)
        })
    }

    /// Records a source's role in its session.
    pub(crate) fn set_role(&self, role: &SourceRole) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "UPDATE sources SET covered_by = ?2 WHERE id = ?1 AND covered_by IS NOT ?2";
            connection.prepare_cached(sql)?.execute(params![role.source, role.by]).map(drop)
        })
    }

    /// Records the session, and the sub-agent in it, that a source and its copies belong to. Removes the previous session if no
    /// source is left in it.
    pub(crate) fn set_session(&self, source: SourceId, session: i64, thread: Option<&str>) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "SELECT session FROM sources WHERE id = ?1";
            let before: i64 = connection.prepare_cached(sql)?.query_row([source], |row| row.get(0))?;
            let sql = "UPDATE sources SET session = ?2, thread = ?3 WHERE id = ?1 OR copy_of = ?1";
            connection.prepare_cached(sql)?.execute(params![source, session, thread])?;
            if before == session { Ok(()) } else { drop_empty(connection, before, Some(session)) }
        })
    }

    /// Removes a session that has no source.
    pub(crate) fn drop_session_without_sources(&self, session: i64) -> Result<(), Error> {
        self.query(|connection| drop_empty(connection, session, None))
    }

    /// Removes a source and everything about it except its documents.
    pub fn remove(&self, source: &SourceRow) -> Result<(), Error> {
        self.retire(source.doc_group)?;
        self.retire(source.tail)?;
        for doc_group in self.earlier_groups(source.id)? {
            self.retire(doc_group)?;
        }
        self.query(|connection| {
            // A copy of it has no documents of its own, so it must be read now.
            let sql = "UPDATE sources SET copy_of = NULL, size = 0, changed = 0, head_length = 0 WHERE copy_of = ?1";
            connection.prepare_cached(sql)?.execute([source.id])?;
            connection.prepare_cached("DELETE FROM unknown WHERE source = ?1")?.execute([source.id])?;
            connection.prepare_cached("DELETE FROM earlier WHERE source = ?1")?.execute([source.id])?;
            connection.prepare_cached("DELETE FROM sources WHERE id = ?1")?.execute([source.id])?;
            let sql = "DELETE FROM sessions WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM sources WHERE session = ?1) \
                       AND NOT EXISTS (SELECT 1 FROM sessions AS child WHERE child.parent = ?1)";
            connection.prepare_cached(sql)?.execute([source.session]).map(drop)
        })
    }

    fn earlier_groups(&self, source: SourceId) -> Result<Vec<u64>, Error> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached("SELECT doc_group FROM earlier WHERE source = ?1")?;
            statement.query_map([source], |row| row.get(0).map(to_unsigned))?.collect()
        })
    }

    /// Whether the text index has documents of this earlier version of a source.
    pub(crate) fn has_earlier(&self, source: SourceId, version: u32) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM earlier WHERE source = ?1 AND version = ?2";
        self.query(|connection| connection.prepare_cached(sql)?.exists(params![source, version]))
    }

    /// Records that a group holds events that only an earlier version of a source has.
    pub(crate) fn put_earlier(&self, doc_group: u64, source: SourceId, version: u32) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "INSERT INTO earlier VALUES (?1, ?2, ?3)";
            connection.prepare_cached(sql)?.execute(params![to_signed(doc_group), source, version]).map(drop)
        })
    }

    /// Marks a group for deletion: the next batch deletes its documents.
    pub(crate) fn retire(&self, doc_group: u64) -> Result<(), Error> {
        if doc_group == 0 {
            return Ok(());
        }
        self.query(|connection| {
            connection
                .prepare_cached("INSERT OR IGNORE INTO retired_doc_groups VALUES (?1)")?
                .execute([to_signed(doc_group)])?;
            connection.prepare_cached("DELETE FROM pages WHERE doc_group = ?1")?.execute([to_signed(doc_group)])?;
            connection
                .prepare_cached("DELETE FROM touches WHERE doc_group = ?1")?
                .execute([to_signed(doc_group)])
                .map(drop)
        })
    }

    /// Records that the documents of these groups are deleted.
    pub(crate) fn purged(&self, doc_groups: &[u64]) -> Result<(), Error> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached("DELETE FROM retired_doc_groups WHERE doc_group = ?1")?;
            doc_groups.iter().try_for_each(|doc_group| statement.execute([to_signed(*doc_group)]).map(drop))
        })
    }

    /// Records which events touched which files, and empties the list: group, event, file, time.
    pub(crate) fn put_touches(&self, touches: &mut Vec<(u64, u64, Touch, Option<i64>)>) -> Result<(), Error> {
        self.query(|connection| {
            let mut file = connection.prepare_cached("INSERT OR IGNORE INTO files (path) VALUES (?1)")?;
            let sql = "INSERT OR IGNORE INTO touches SELECT id, ?2, ?3, ?4, ?5 FROM files WHERE path = ?1";
            let mut touch = connection.prepare_cached(sql)?;
            // Sorted by file, so that neighbouring rows are written together.
            touches.sort_by(|one, other| one.2.path.cmp(&other.2.path));
            for (doc_group, event, touched, at) in touches.drain(..) {
                file.execute([&touched.path])?;
                touch.execute(params![touched.path, to_signed(doc_group), to_signed(event), touched.how.name(), at])?;
            }
            Ok(())
        })
    }

    /// Records the archive's copy of a source.
    pub(crate) fn set_archived(&self, source: SourceId, name: &str, length: u64) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "UPDATE sources SET archive_copy = ?2, archived_length = ?3 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![source, name, to_signed(length)]).map(drop)
        })
    }

    /// Records how much of these sources the archive has, if a killed run could not record all of it.
    pub(crate) fn raise_archived(&self, sources: &[(SourceId, String, u64)]) -> Result<(), Error> {
        let execute = |sql| self.query(|connection| connection.execute_batch(sql));
        execute("BEGIN IMMEDIATE; UPDATE state SET commits = commits + 1")?;
        sources.iter().try_for_each(|(source, name, length)| self.set_archived(*source, name, *length))?;
        execute("COMMIT")
    }

    /// Records a source's new path.
    pub(crate) fn set_path(&self, source: SourceId, path: &Path) -> Result<(), Error> {
        self.query(|connection| {
            connection.execute_batch("BEGIN IMMEDIATE; UPDATE state SET commits = commits + 1")?;
            let sql = "UPDATE sources SET path = ?2, gone = 0 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![source, path_bytes(path)])?;
            connection.execute_batch("COMMIT")
        })
    }

    /// Records that the archive does not have these sources.
    pub(crate) fn clear_archived(&self, sources: &[SourceId]) -> Result<(), Error> {
        self.query(|connection| {
            // The existing seal describes an earlier commit from here on.
            connection.execute_batch("BEGIN IMMEDIATE; UPDATE state SET commits = commits + 1")?;
            let sql = "UPDATE sources SET archive_copy = NULL, archived_length = 0 WHERE id = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            sources.iter().try_for_each(|source| statement.execute([source]).map(drop))?;
            connection.execute_batch("COMMIT")
        })
    }

    /// Counts records of a type that no reader understands.
    pub(crate) fn count_unknown(
        &self,
        source: SourceId,
        name: &str,
        count: u64,
        line: u64,
        batch: u64,
    ) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "INSERT INTO unknown VALUES (?1, ?2, ?3, ?4, ?5) \
                       ON CONFLICT (source, name) DO UPDATE SET count = count + excluded.count";
            let values = params![source, name, to_signed(count), to_signed(line), to_signed(batch)];
            connection.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// Clears the counts of records that no reader understands, before the source is read from its beginning.
    pub(crate) fn forget_unknown(&self, source: SourceId) -> Result<(), Error> {
        let sql = "DELETE FROM unknown WHERE source = ?1";
        self.query(|connection| connection.prepare_cached(sql)?.execute([source]).map(drop))
    }

    /// Records that a file is not a transcript. `expected` is the format that its place suggests.
    pub(crate) fn put_non_transcript(
        &self,
        path: &Path,
        stamp: FileStamp,
        expected: Option<&str>,
    ) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "INSERT OR REPLACE INTO non_transcripts VALUES (?1, ?2, ?3, ?4)";
            let values = params![path_bytes(path), to_signed(stamp.size), stamp.changed, expected];
            connection.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// Records that all conversations of a database in this state are indexed.
    pub(crate) fn put_database(&self, path: &Path, stamp: &FileStamp, seen: i64) -> Result<(), Error> {
        self.query(|connection| {
            let sql = "INSERT OR REPLACE INTO databases VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let (device, inode) = (to_signed(stamp.device), to_signed(stamp.inode));
            let values = params![path_bytes(path), device, inode, to_signed(stamp.size), stamp.changed, seen];
            connection.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// Commits the batch under this number. If nothing was changed since the catalogue was opened, its file stays as it is.
    pub fn commit(&self, number: u64) -> Result<(), Error> {
        self.query(|connection| {
            let has_changed = connection.total_changes() > 0;
            connection
                .prepare_cached("UPDATE state SET batch = ?1, commits = commits + 1 WHERE ?2 OR batch <> ?1")?
                .execute(params![to_signed(number), has_changed])?;
            connection.execute_batch("COMMIT")
        })
    }
}

/// Removes a session that has no source. Its children get `instead` as their parent.
fn drop_empty(connection: &Connection, session: i64, instead: Option<i64>) -> rusqlite::Result<()> {
    let gone = "NOT EXISTS (SELECT 1 FROM sources WHERE session = ?1)";
    let sql = format!("UPDATE sessions SET parent = NULLIF(?2, id) WHERE parent = ?1 AND {gone}");
    connection.prepare_cached(&sql)?.execute(params![session, instead])?;
    let sql = format!("DELETE FROM sessions WHERE id = ?1 AND {gone}");
    connection.prepare_cached(&sql)?.execute([session]).map(drop)
}
