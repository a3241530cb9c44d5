//! Changes: what a batch says about sources, sessions and files. It takes effect as a whole or not at all.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use stenograph::query::Touch;

use super::row::{bits, path_bytes, path_of, word};
use super::{Catalogue, SourceId, SourceRow, Stamp};
use crate::Error;
use crate::session_files::SourceRole;

/// The link between sessions that begin alike, where nothing better is known.
const SHARED: &str = "shares its beginning with";

/// A copy of a source that does not say any more what it says.
#[derive(Clone, Debug)]
pub struct PartedCopy {
    /// The number of the copy.
    pub id: SourceId,
    /// Where it stands.
    pub path: PathBuf,
}

impl Catalogue {
    /// Starts a batch. What is said from here on counts when it is committed.
    pub fn begin(&self) -> Result<(), Error> {
        self.ask(|connection| connection.execute_batch("BEGIN IMMEDIATE"))
    }

    /// Takes back what was said since the batch began.
    pub(crate) fn roll_back(&self) -> Result<(), Error> {
        self.ask(|connection| connection.execute_batch("ROLLBACK"))
    }

    /// Remembers this place in the batch, to come back to.
    pub fn mark(&self) -> Result<(), Error> {
        self.ask(|connection| connection.execute_batch("SAVEPOINT mark"))
    }

    /// Nobody wants to come back to [`Catalogue::mark`].
    pub(crate) fn unmark(&self) -> Result<(), Error> {
        self.ask(|connection| connection.execute_batch("RELEASE mark"))
    }

    /// Takes back what was said since [`Catalogue::mark`]. Documents cannot be taken back: those of new lots are as good as deleted, and
    /// the source has to be read anew, for there may be documents that go on from what it has.
    pub(crate) fn take_back(&self, source: Option<SourceId>) -> Result<(), Error> {
        self.ask(|connection| {
            let next_lot = || connection.query_row("SELECT next_lot FROM state", [], |row| row.get::<_, i64>(0));
            let next = next_lot()?;
            connection.execute_batch("ROLLBACK TO mark; RELEASE mark")?;
            for lot in next_lot()?..next {
                connection.prepare_cached("INSERT OR IGNORE INTO dead VALUES (?1)")?.execute([lot])?;
            }
            connection.prepare_cached("UPDATE state SET next_lot = ?1")?.execute([next])?;
            let sql = "UPDATE sources SET size = 0, changed = 0, settled = 0, head = 0, head_length = 0, tail_hash = 0, content = 0 \
                       WHERE id = ?1";
            connection.prepare_cached(sql)?.execute([source]).map(drop)
        })
    }

    /// Says that everything that only the archive has was read.
    pub(crate) fn set_complete(&self) -> Result<(), Error> {
        self.ask(|connection| connection.execute("UPDATE state SET complete = 1", []).map(drop))
    }

    /// Says that the archive has sources that were not read.
    pub(crate) fn set_incomplete(&self) -> Result<(), Error> {
        self.ask(|connection| connection.execute("UPDATE state SET complete = 0, commits = commits + 1", []).map(drop))
    }

    /// Has copies of a source looked at again, whatever their stat says: it does not say any more what they say. Gives where they stand.
    pub(crate) fn part_copies(&self, source: SourceId) -> Result<Vec<PartedCopy>, Error> {
        self.ask(|connection| {
            let sql = "UPDATE sources SET size = 0, changed = 0 WHERE copy_of = ?1 RETURNING id, path";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                let path = path_of(row.get_ref(1)?.as_bytes().unwrap_or_default());
                Ok(PartedCopy { id: row.get(0)?, path })
            };
            statement.query_map([source], read)?.collect()
        })
    }

    /// Takes a copy out, which has no documents: what it is a copy of stands in its place now.
    pub(crate) fn drop_copy(&self, source: SourceId) -> Result<(), Error> {
        let sql = "DELETE FROM sources WHERE id = ?1 AND copy_of IS NOT NULL";
        self.ask(|connection| connection.prepare_cached(sql)?.execute([source]).map(drop))
    }

    /// A mark for documents that no document has had. Numbers are never given twice, so that a mark means one thing for ever.
    pub(crate) fn new_lot(&self) -> Result<u64, Error> {
        self.ask(|connection| {
            let sql = "UPDATE state SET next_lot = next_lot + 1 RETURNING next_lot - 1";
            connection.prepare_cached(sql)?.query_row([], |row| row.get(0).map(bits))
        })
    }

    /// The session of this name, made when there is none. `home` tells sessions apart whose names mean something in one folder only.
    pub(crate) fn make_session(&self, agent: &str, name: &str, home: &str) -> Result<i64, Error> {
        self.ask(|connection| {
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

    /// Says what a session follows from, unless that is known or would go in a circle.
    pub fn link(&self, session: i64, parent: i64, how: &str) -> Result<(), Error> {
        self.ask(|connection| {
            let sql = "WITH RECURSIVE above (id, depth) AS (VALUES (?2, 0) UNION ALL \
                         SELECT sessions.parent, depth + 1 FROM above JOIN sessions ON sessions.id = above.id \
                         WHERE sessions.parent IS NOT NULL AND depth < 1000) \
                       UPDATE sessions SET parent = ?2, link = ?3 \
                       WHERE id = ?1 AND parent IS NULL AND NOT EXISTS (SELECT 1 FROM above WHERE id = ?1)";
            connection.prepare_cached(sql)?.execute(params![session, parent, how]).map(drop)
        })
    }

    /// The project of this root and remote: a known remote is one project wherever it stands.
    pub fn project(&self, name: &str, root: &str, remote: Option<&str>) -> Result<i64, Error> {
        self.ask(|connection| {
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

    /// The project that a working folder was found to be before.
    pub(crate) fn project_of_folder(&self, folder: &str) -> Result<Option<i64>, Error> {
        self.ask(|connection| {
            let sql = "SELECT project FROM folders WHERE path = ?1";
            connection.prepare_cached(sql)?.query_row([folder], |row| row.get(0)).optional()
        })
    }

    /// Remembers the project of a working folder.
    pub(crate) fn set_project_of_folder(&self, folder: &str, project: i64) -> Result<(), Error> {
        self.ask(|connection| {
            let sql = "INSERT INTO folders VALUES (?1, ?2) ON CONFLICT (path) DO UPDATE SET project = excluded.project";
            connection.prepare_cached(sql)?.execute(params![folder, project]).map(drop)
        })
    }

    /// Says which project a session belongs to.
    pub(crate) fn set_project(&self, session: i64, project: i64) -> Result<(), Error> {
        self.ask(|connection| {
            let sql = "UPDATE sessions SET project = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![session, project]).map(drop)
        })
    }

    /// Puts a source in, or over the one with its number.
    pub fn put(&self, source: &SourceRow) -> Result<SourceId, Error> {
        self.ask(|connection| {
            let strangers = "DELETE FROM strangers WHERE path = ?1";
            connection.prepare_cached(strangers)?.execute([path_bytes(&source.path)])?;
            source.write(connection)
        })
    }

    /// Has the sessions that begin with this key, and of which nothing better is known, follow from the oldest of them: the one that ended
    /// first, or whose file was written first where its records state no times. What continues a session ends later.
    pub(crate) fn put_below_oldest(&self, first_key: u64) -> Result<(), Error> {
        self.ask(|connection| {
            let sql = "SELECT session FROM sources WHERE first_key = ?1 AND thread IS NULL GROUP BY session \
                       ORDER BY min(coalesce(ended, changed / 1000000)), min(messages), session LIMIT 1";
            let oldest: Option<i64> =
                connection.prepare_cached(sql)?.query_row([word(first_key)], |row| row.get(0)).optional()?;
            let Some(oldest) = oldest else { return Ok(()) };
            let sql = "UPDATE sessions SET parent = NULL, link = NULL WHERE id = ?1 AND link = ?2";
            connection.prepare_cached(sql)?.execute(params![oldest, SHARED])?;
            let sql = "WITH RECURSIVE above (id, depth) AS (VALUES (?1, 0) UNION ALL \
                         SELECT sessions.parent, depth + 1 FROM above JOIN sessions ON sessions.id = above.id \
                         WHERE sessions.parent IS NOT NULL AND depth < 1000) \
                       UPDATE sessions SET parent = ?1, link = ?2 \
                       WHERE id IN (SELECT session FROM sources WHERE first_key = ?3 AND thread IS NULL) \
                         AND (parent IS NULL OR link = ?2) AND id NOT IN (SELECT id FROM above)";
            connection.prepare_cached(sql)?.execute(params![oldest, SHARED, word(first_key)]).map(drop)
        })
    }

    /// Says what a source is to the others of its session.
    pub(crate) fn set_told(&self, told: &SourceRole) -> Result<(), Error> {
        self.ask(|connection| {
            let sql = "UPDATE sources SET told_by = ?2 WHERE id = ?1 AND told_by IS NOT ?2";
            connection.prepare_cached(sql)?.execute(params![told.source, told.by]).map(drop)
        })
    }

    /// Says that a source tells this session, and this sub-agent of it. A session that no source tells any more goes.
    pub(crate) fn set_session(&self, source: SourceId, session: i64, thread: Option<&str>) -> Result<(), Error> {
        self.ask(|connection| {
            let sql = "SELECT session FROM sources WHERE id = ?1";
            let before: i64 = connection.prepare_cached(sql)?.query_row([source], |row| row.get(0))?;
            let sql = "UPDATE sources SET session = ?2, thread = ?3 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![source, session, thread])?;
            if before == session { Ok(()) } else { drop_empty(connection, before, Some(session)) }
        })
    }

    /// Takes a session out that has no source any more.
    pub(crate) fn drop_session_without_sources(&self, session: i64) -> Result<(), Error> {
        self.ask(|connection| drop_empty(connection, session, None))
    }

    /// Takes a source out, with everything about it but its documents.
    pub fn remove(&self, source: &SourceRow) -> Result<(), Error> {
        self.bury(source.lot)?;
        self.bury(source.tail)?;
        for lot in self.earlier_lots(source.id)? {
            self.bury(lot)?;
        }
        self.ask(|connection| {
            // A copy of it has to be read now: it has no documents of its own.
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

    fn earlier_lots(&self, source: SourceId) -> Result<Vec<u64>, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("SELECT lot FROM earlier WHERE source = ?1")?;
            statement.query_map([source], |row| row.get(0).map(bits))?.collect()
        })
    }

    /// Whether what an earlier version of a source said has documents.
    pub(crate) fn has_earlier(&self, source: SourceId, version: u32) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM earlier WHERE source = ?1 AND version = ?2";
        self.ask(|connection| connection.prepare_cached(sql)?.exists(params![source, version]))
    }

    /// Says that the documents of a lot are what an earlier version of a source said.
    pub(crate) fn put_earlier(&self, lot: u64, source: SourceId, version: u32) -> Result<(), Error> {
        self.ask(|connection| {
            let sql = "INSERT INTO earlier VALUES (?1, ?2, ?3)";
            connection.prepare_cached(sql)?.execute(params![word(lot), source, version]).map(drop)
        })
    }

    /// Has the next batch delete the documents of a lot.
    pub fn bury(&self, lot: u64) -> Result<(), Error> {
        if lot == 0 {
            return Ok(());
        }
        self.ask(|connection| {
            connection.prepare_cached("INSERT OR IGNORE INTO dead VALUES (?1)")?.execute([word(lot)])?;
            connection.prepare_cached("DELETE FROM pages WHERE lot = ?1")?.execute([word(lot)])?;
            connection.prepare_cached("DELETE FROM touches WHERE lot = ?1")?.execute([word(lot)]).map(drop)
        })
    }

    /// Says that the documents of these lots are deleted.
    pub(crate) fn buried(&self, lots: &[u64]) -> Result<(), Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("DELETE FROM dead WHERE lot = ?1")?;
            lots.iter().try_for_each(|lot| statement.execute([word(*lot)]).map(drop))
        })
    }

    /// Says which events touched which files, and empties the list: lot, event, file, time.
    pub(crate) fn touch_all(&self, touches: &mut Vec<(u64, u64, Touch, Option<i64>)>) -> Result<(), Error> {
        self.ask(|connection| {
            let mut file = connection.prepare_cached("INSERT OR IGNORE INTO files (path) VALUES (?1)")?;
            let sql = "INSERT OR IGNORE INTO touches SELECT id, ?2, ?3, ?4, ?5 FROM files WHERE path = ?1";
            let mut touch = connection.prepare_cached(sql)?;
            // In the order of the files, so that neighbours in the table are written together.
            touches.sort_by(|one, other| one.2.path.cmp(&other.2.path));
            for (lot, event, touched, at) in touches.drain(..) {
                file.execute([&touched.path])?;
                touch.execute(params![touched.path, word(lot), word(event), touched.how.name(), at])?;
            }
            Ok(())
        })
    }

    /// Says what the archive has of a source.
    pub(crate) fn set_kept(&self, source: SourceId, name: &str, length: u64) -> Result<(), Error> {
        self.ask(|connection| {
            let sql = "UPDATE sources SET kept = ?2, kept_length = ?3 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![source, name, word(length)]).map(drop)
        })
    }

    /// Says how much of these sources the archive has, where that is more than a run had time to write down.
    pub(crate) fn correct_kept(&self, sources: &[(SourceId, String, u64)]) -> Result<(), Error> {
        let execute = |sql| self.ask(|connection| connection.execute_batch(sql));
        execute("BEGIN IMMEDIATE; UPDATE state SET commits = commits + 1")?;
        sources.iter().try_for_each(|(source, name, length)| self.set_kept(*source, name, *length))?;
        execute("COMMIT")
    }

    /// Says where a source stands now.
    pub(crate) fn set_path(&self, source: SourceId, path: &Path) -> Result<(), Error> {
        self.ask(|connection| {
            connection.execute_batch("BEGIN IMMEDIATE; UPDATE state SET commits = commits + 1")?;
            let sql = "UPDATE sources SET path = ?2, gone = 0 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![source, path_bytes(path)])?;
            connection.execute_batch("COMMIT")
        })
    }

    /// Says that the archive does not have these sources.
    pub(crate) fn set_unkept(&self, sources: &[SourceId]) -> Result<(), Error> {
        self.ask(|connection| {
            // The seal is of another commit from here on.
            connection.execute_batch("BEGIN IMMEDIATE; UPDATE state SET commits = commits + 1")?;
            let sql = "UPDATE sources SET kept = NULL, kept_length = 0 WHERE id = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            sources.iter().try_for_each(|source| statement.execute([source]).map(drop))?;
            connection.execute_batch("COMMIT")
        })
    }

    /// Counts records of a type that nobody understands.
    pub(crate) fn count_unknown(
        &self,
        source: SourceId,
        name: &str,
        count: u64,
        line: u64,
        batch: u64,
    ) -> Result<(), Error> {
        self.ask(|connection| {
            let sql = "INSERT INTO unknown VALUES (?1, ?2, ?3, ?4, ?5) \
                       ON CONFLICT (source, name) DO UPDATE SET count = count + excluded.count";
            let values = params![source, name, word(count), word(line), word(batch)];
            connection.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// Forgets which records of a source nobody understands: it is read anew.
    pub(crate) fn forget_unknown(&self, source: SourceId) -> Result<(), Error> {
        let sql = "DELETE FROM unknown WHERE source = ?1";
        self.ask(|connection| connection.prepare_cached(sql)?.execute([source]).map(drop))
    }

    /// Remembers that a file is no transcript. `expected` is the format it should have been by its place.
    pub(crate) fn stranger(&self, path: &Path, stamp: Stamp, expected: Option<&str>) -> Result<(), Error> {
        self.ask(|connection| {
            let sql = "INSERT OR REPLACE INTO strangers VALUES (?1, ?2, ?3, ?4)";
            let values = params![path_bytes(path), word(stamp.size), stamp.changed, expected];
            connection.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    /// Makes what was said since the batch began count, as this batch.
    pub fn commit(&self, number: u64) -> Result<(), Error> {
        self.ask(|connection| {
            connection.prepare_cached("UPDATE state SET batch = ?1, commits = commits + 1")?.execute([word(number)])?;
            connection.execute_batch("COMMIT")
        })
    }
}

/// Takes a session out that has no source any more. What follows from it follows from `instead`.
fn drop_empty(connection: &Connection, session: i64, instead: Option<i64>) -> rusqlite::Result<()> {
    let gone = "NOT EXISTS (SELECT 1 FROM sources WHERE session = ?1)";
    let sql = format!("UPDATE sessions SET parent = NULLIF(?2, id) WHERE parent = ?1 AND {gone}");
    connection.prepare_cached(&sql)?.execute(params![session, instead])?;
    let sql = format!("DELETE FROM sessions WHERE id = ?1 AND {gone}");
    connection.prepare_cached(&sql)?.execute([session]).map(drop)
}
