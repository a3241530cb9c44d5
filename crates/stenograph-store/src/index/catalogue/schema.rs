//! The tables of the catalogue, and how an older file is told from a current one. Nothing is migrated: the index is derived, so one
//! of another version is made anew.

use rusqlite::Connection;

/// What the tables below are. Whoever changes them, or what is put into documents, counts it up.
pub const VERSION: i64 = 11;

/// Everything here can be read out of the sources and the archive again.
const TABLES: &str = "
-- `commits` counts commits, so that the seal says which one it describes. `complete` says whether sources that are gone were read out of the archive, which whoever makes the tables has yet to do.
CREATE TABLE state (
  one INTEGER PRIMARY KEY CHECK (one = 1), batch INTEGER NOT NULL, next_lot INTEGER NOT NULL, complete INTEGER NOT NULL,
  commits INTEGER NOT NULL) STRICT;
INSERT INTO state VALUES (1, 0, 1, 0, 0);

-- A project: one repository wherever it stands, or a folder.
CREATE TABLE projects (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, root TEXT NOT NULL, remote TEXT, UNIQUE (root, remote)) STRICT;
-- Which project a working folder was found to be, for when the folder is gone.
CREATE TABLE folders (path TEXT PRIMARY KEY, project INTEGER NOT NULL REFERENCES projects) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY, agent TEXT NOT NULL, name TEXT NOT NULL, home TEXT NOT NULL, parent INTEGER REFERENCES sessions, link TEXT,
  project INTEGER REFERENCES projects, UNIQUE (agent, name, home)) STRICT;
CREATE INDEX sessions_name ON sessions (name);

-- A source: a file that was read. `lot` marks its documents up to `settled`, `tail` those after it, which more input may change.
CREATE TABLE sources (
  id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, format TEXT NOT NULL, session INTEGER NOT NULL REFERENCES sessions,
  thread TEXT, device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL, changed INTEGER NOT NULL,
  seen INTEGER NOT NULL, access INTEGER NOT NULL, head INTEGER NOT NULL, head_length INTEGER NOT NULL,
  tail_hash INTEGER NOT NULL, settled INTEGER NOT NULL, line INTEGER NOT NULL, lot INTEGER NOT NULL, lot_events INTEGER NOT NULL,
  tail INTEGER NOT NULL, tail_events INTEGER NOT NULL, trail TEXT NOT NULL, first_key INTEGER, gone INTEGER NOT NULL DEFAULT 0,
  copy_of INTEGER REFERENCES sources, kept TEXT, kept_length INTEGER NOT NULL DEFAULT 0,
  title TEXT, query TEXT, cwd TEXT, branch TEXT, model TEXT, version TEXT, started INTEGER, ended INTEGER,
  messages INTEGER NOT NULL, calls INTEGER NOT NULL, errors INTEGER NOT NULL, notes INTEGER NOT NULL,
  tells INTEGER NOT NULL, told_by INTEGER, content INTEGER NOT NULL) STRICT;
CREATE INDEX sources_session ON sources (session);
CREATE INDEX sources_head ON sources (head);
-- What is gone may have moved and grown since, so that it begins with more than it had.
CREATE INDEX sources_short ON sources (head_length) WHERE gone = 1 AND head_length < 4096;
CREATE INDEX sources_copy ON sources (copy_of) WHERE copy_of IS NOT NULL;
CREATE INDEX sources_first ON sources (first_key) WHERE first_key IS NOT NULL;

-- Files that were looked at and are no transcripts: a second look costs a stat.
CREATE TABLE strangers (path BLOB PRIMARY KEY, size INTEGER NOT NULL, changed INTEGER NOT NULL, expected TEXT) STRICT, WITHOUT ROWID;

-- What earlier versions of a source said and no later one says: marked by `lot`, readable in the archive only, under that version.
CREATE TABLE earlier (
  lot INTEGER PRIMARY KEY, source INTEGER NOT NULL REFERENCES sources ON DELETE CASCADE, version INTEGER NOT NULL) STRICT;
CREATE INDEX earlier_source ON earlier (source);

-- Lots whose documents are to be deleted by the next batch.
CREATE TABLE dead (lot INTEGER PRIMARY KEY) STRICT;

-- Which events touched which files.
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE touches (
  file INTEGER NOT NULL REFERENCES files, lot INTEGER NOT NULL, event INTEGER NOT NULL, how TEXT NOT NULL, at INTEGER,
  PRIMARY KEY (file, lot, event, how)) STRICT, WITHOUT ROWID;
CREATE INDEX touches_lot ON touches (lot);

-- What model calls took: pages of the ledger, packed, by the lot whose events tell of them. Each is read as a whole or not at all.
CREATE TABLE pages (lot INTEGER NOT NULL, part INTEGER NOT NULL, page BLOB NOT NULL, PRIMARY KEY (lot, part)) STRICT;

-- Records that no reader understands, by type.
CREATE TABLE unknown (
  source INTEGER NOT NULL REFERENCES sources ON DELETE CASCADE, name TEXT NOT NULL, count INTEGER NOT NULL, line INTEGER NOT NULL,
  batch INTEGER NOT NULL, PRIMARY KEY (source, name)) STRICT, WITHOUT ROWID;
";

/// What an open file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It has no tables.
    Empty,
    /// It is ours and current.
    Current,
    /// It is of an earlier version.
    Earlier,
    /// It is of this later version.
    Later(i64),
}

/// What is in the file.
pub(super) fn look(connection: &Connection) -> rusqlite::Result<Found> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (version, tables) {
        (0, 0) => Found::Empty,
        (VERSION, _) => Found::Current,
        (later, _) if later > VERSION => Found::Later(later),
        _ => Found::Earlier,
    })
}

/// Makes the tables in an empty file.
pub(super) fn make(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"))
}
