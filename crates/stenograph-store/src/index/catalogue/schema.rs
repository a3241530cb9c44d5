//! The tables of the catalogue, and how to tell an older file from a current one. There is no migration: the index is derived,
//! so one of another version is rebuilt.

use rusqlite::Connection;

/// The version of the tables and of the documents in the text index. Increment it with every change to either.
pub const VERSION: i64 = 20;

/// All of this can be derived again from the sources and the archive.
const TABLES: &str = "
-- `commits` counts commits, so that the seal can name the one it describes. `complete`: whether sources that only the archive has were indexed.
CREATE TABLE state (
  one INTEGER PRIMARY KEY CHECK (one = 1), batch INTEGER NOT NULL, next_doc_group INTEGER NOT NULL, complete INTEGER NOT NULL,
  commits INTEGER NOT NULL) STRICT;
INSERT INTO state VALUES (1, 0, 1, 0, 0);

-- A project: one repository at any path, or a folder.
CREATE TABLE projects (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, root TEXT NOT NULL, remote TEXT, UNIQUE (root, remote)) STRICT;
-- The project of each working folder, in case the folder disappears.
CREATE TABLE folders (path TEXT PRIMARY KEY, project INTEGER NOT NULL REFERENCES projects) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY, agent TEXT NOT NULL, name TEXT NOT NULL, home TEXT NOT NULL, parent INTEGER REFERENCES sessions, link TEXT,
  project INTEGER REFERENCES projects, UNIQUE (agent, name, home)) STRICT;
CREATE INDEX sessions_name ON sessions (name);
-- For the shortest unique prefix of a name, which ignores case.
CREATE INDEX sessions_folded_name ON sessions (lower(name));

-- A source: a file that was read. `doc_group` is the document group of its events up to `stable_until`, `tail` that of later events, which more input may change.
-- The long texts come last, because SQLite reads everything before a column to reach it.
CREATE TABLE sources (
  id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, format TEXT NOT NULL, session INTEGER NOT NULL REFERENCES sessions,
  thread TEXT, device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL, changed INTEGER NOT NULL,
  seen INTEGER NOT NULL, access INTEGER NOT NULL, head INTEGER NOT NULL, head_length INTEGER NOT NULL,
  tail_hash INTEGER NOT NULL, stable_until INTEGER NOT NULL, line INTEGER NOT NULL, doc_group INTEGER NOT NULL, doc_group_events INTEGER NOT NULL,
  tail INTEGER NOT NULL, tail_events INTEGER NOT NULL, first_key INTEGER, gone INTEGER NOT NULL DEFAULT 0,
  copy_of INTEGER REFERENCES sources, archive_copy TEXT, archived_length INTEGER NOT NULL DEFAULT 0,
  started INTEGER, ended INTEGER, messages INTEGER NOT NULL, calls INTEGER NOT NULL, errors INTEGER NOT NULL, notes INTEGER NOT NULL,
  coverage INTEGER NOT NULL, covered_by INTEGER, content INTEGER NOT NULL, branch TEXT, model TEXT, version TEXT, cwd TEXT, title TEXT,
  query TEXT, reading_state TEXT NOT NULL) STRICT;
-- With the columns that order sessions by time.
CREATE INDEX sources_session ON sources (session, ended, changed, coverage);
CREATE INDEX sources_doc_group ON sources (doc_group);
CREATE INDEX sources_tail ON sources (tail) WHERE tail <> 0;
CREATE INDEX sources_head ON sources (head);
-- A short file that is gone may have moved and grown since, so that its head is longer now.
CREATE INDEX sources_short ON sources (head_length) WHERE gone = 1 AND head_length < 4096;
CREATE INDEX sources_copy ON sources (copy_of) WHERE copy_of IS NOT NULL;
CREATE INDEX sources_first ON sources (first_key) WHERE first_key IS NOT NULL;

-- The status of the run in a source, as `FileStatus` saves it.
CREATE TABLE statuses (source INTEGER PRIMARY KEY REFERENCES sources ON DELETE CASCADE, status TEXT NOT NULL) STRICT;

-- Files that are not transcripts: checking one again costs a stat.
CREATE TABLE non_transcripts (path BLOB PRIMARY KEY, size INTEGER NOT NULL, changed INTEGER NOT NULL, expected TEXT) STRICT, WITHOUT ROWID;

-- Databases of agents: if one is unchanged, all of its members are, as they were when a run read it to its end.
CREATE TABLE databases (
  path BLOB PRIMARY KEY, device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL, changed INTEGER NOT NULL,
  seen INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Document groups of events that only an earlier version of a source has, which the archive keeps.
CREATE TABLE earlier (
  doc_group INTEGER PRIMARY KEY, source INTEGER NOT NULL REFERENCES sources ON DELETE CASCADE, version INTEGER NOT NULL) STRICT;
CREATE INDEX earlier_source ON earlier (source);

-- Retired document groups, whose documents the next batch deletes.
CREATE TABLE retired_doc_groups (doc_group INTEGER PRIMARY KEY) STRICT;

-- The marks that people gave sessions, in JSON. The archive has the original.
CREATE TABLE marks (session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE, marks TEXT NOT NULL) STRICT;

-- Which events touched which files.
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE touches (
  file INTEGER NOT NULL REFERENCES files, doc_group INTEGER NOT NULL, event INTEGER NOT NULL, how TEXT NOT NULL, at INTEGER,
  PRIMARY KEY (file, doc_group, event, how)) STRICT, WITHOUT ROWID;
CREATE INDEX touches_doc_group ON touches (doc_group);

-- The usage of model calls: packed pages of the ledger, by document group.
CREATE TABLE pages (doc_group INTEGER NOT NULL, part INTEGER NOT NULL, page BLOB NOT NULL, PRIMARY KEY (doc_group, part)) STRICT;

-- Calls and failures of a sub-agent whose records are inside records of a source. A file of the sub-agent counts them itself.
CREATE TABLE nested (
  source INTEGER NOT NULL REFERENCES sources ON DELETE CASCADE, thread TEXT NOT NULL, calls INTEGER NOT NULL, errors INTEGER NOT NULL,
  PRIMARY KEY (source, thread)) STRICT, WITHOUT ROWID;

-- Records that no reader understands, by type.
CREATE TABLE unknown (
  source INTEGER NOT NULL REFERENCES sources ON DELETE CASCADE, name TEXT NOT NULL, count INTEGER NOT NULL, line INTEGER NOT NULL,
  batch INTEGER NOT NULL, PRIMARY KEY (source, name)) STRICT, WITHOUT ROWID;
";

/// The state of an open database file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaState {
    /// No tables.
    Empty,
    /// The current tables.
    Current,
    /// The tables of an earlier version.
    Earlier,
    /// The tables of this later version.
    Later(i64),
}

/// Determines which tables the file has.
pub(super) fn state(connection: &Connection) -> rusqlite::Result<SchemaState> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (version, tables) {
        (0, 0) => SchemaState::Empty,
        (VERSION, _) => SchemaState::Current,
        (later, _) if later > VERSION => SchemaState::Later(later),
        _ => SchemaState::Earlier,
    })
}

/// Creates the tables in an empty file.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"))
}
