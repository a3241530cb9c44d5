//! The catalogue: which sources, sessions and projects exist, and how far each source is indexed. It is the authority of the
//! index: only what a transaction here recorded counts, whatever the text index holds. It must not open a source.

mod batch;
mod ledger;
mod marks;
mod row;
mod schema;
mod session;
mod view;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use stenograph::Registry;

pub use batch::DivergedCopy;
pub use ledger::{LedgerPages, SourcePages};
pub use row::{ContentSum, FileStamp, Gone, SourceId, SourceRow, SourceSummary};
pub use schema::VERSION;
pub(in crate::index) use session::OwnedSessionFacts;
pub use session::{IndexedSession, ProjectRow, SessionId, TimesFrom};
pub(crate) use view::SavedDatabases;
pub use view::{ArchivedRow, DocGroup, DocGroups, KnownFile, Touched, Unknown};

use crate::{Error, Place, Problem};

/// An open catalogue.
#[derive(Debug)]
pub struct Catalogue {
    connection: Connection,
    path: PathBuf,
    registry: &'static Registry,
}

/// The result of opening a catalogue file.
#[derive(Debug)]
pub enum OpenedCatalogue {
    /// A current catalogue.
    Current(Catalogue),
    /// There is no file.
    Missing,
    /// The file cannot be used, for this reason.
    Unusable(String),
    /// An earlier version of this program made the file, with other tables.
    Earlier,
    /// A later version of this program made the file, with this schema version.
    Later(i64),
}

impl Catalogue {
    /// Opens an existing catalogue. Its sources have formats of this registry.
    pub fn open(path: &Path, registry: &'static Registry) -> Result<OpenedCatalogue, Error> {
        if !path.exists() {
            return Ok(OpenedCatalogue::Missing);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Catalogue::checked(path, flags, registry)
    }

    /// Opens or creates a catalogue for writing. The caller must hold the index's lock.
    pub fn create(path: &Path, registry: &'static Registry) -> Result<OpenedCatalogue, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Catalogue::checked(path, flags, registry)
    }

    fn checked(path: &Path, flags: OpenFlags, registry: &'static Registry) -> Result<OpenedCatalogue, Error> {
        let place = Place::Path(path.to_owned());
        match Catalogue::prepared(path, flags, registry) {
            Ok(opened) => Ok(opened),
            Err(error) if is_damage(&error) => Ok(OpenedCatalogue::Unusable(format!("it is damaged ({error})"))),
            Err(error) => Err(database_error(&place, &error)),
        }
    }

    fn prepared(path: &Path, flags: OpenFlags, registry: &'static Registry) -> rusqlite::Result<OpenedCatalogue> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        // Before the first setting, because setting the journal mode writes to an empty file.
        let state = schema::state(&connection)?;
        match state {
            schema::SchemaState::Current => {}
            schema::SchemaState::Empty if flags.contains(OpenFlags::SQLITE_OPEN_CREATE) => {}
            // The process that made the file ended before it created the tables.
            schema::SchemaState::Empty => return Ok(OpenedCatalogue::Missing),
            schema::SchemaState::Earlier => return Ok(OpenedCatalogue::Earlier),
            schema::SchemaState::Later(version) => return Ok(OpenedCatalogue::Later(version)),
        }
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        connection.pragma_update(None, "cache_size", -24_576)?;
        // Otherwise SQLite prepares many statements again for every parameter value.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        if state == schema::SchemaState::Empty {
            schema::create(&connection)?;
        }
        // Detects a damaged file now, not in the middle of a search.
        let _: i64 = connection.query_row("SELECT batch + commits FROM state", [], |row| row.get(0))?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(OpenedCatalogue::Current(Catalogue { connection, path: path.to_owned(), registry }))
    }

    /// The formats that its sources may have.
    pub(crate) fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// The number of the last committed batch.
    pub(crate) fn batch_number(&self) -> Result<u64, Error> {
        self.query(|connection| {
            connection.query_row("SELECT batch FROM state", [], |row| row.get(0).map(row::to_unsigned))
        })
    }

    /// The number of commits so far.
    pub fn commits(&self) -> Result<u64, Error> {
        self.query(|connection| {
            connection.query_row("SELECT commits FROM state", [], |row| row.get(0).map(row::to_unsigned))
        })
    }

    /// Removes files, folders and projects that no session has, and rewrites the database without deleted rows, which would stay readable in the file and take space.
    pub fn compact(&self) -> Result<(), Error> {
        self.query(|connection| {
            connection.execute_batch(
                "DELETE FROM files WHERE id NOT IN (SELECT file FROM touches); \
                 DELETE FROM folders WHERE path NOT IN (SELECT cwd FROM sources WHERE cwd IS NOT NULL) \
                   AND project NOT IN (SELECT project FROM sessions WHERE project IS NOT NULL); \
                 DELETE FROM projects WHERE id NOT IN (SELECT project FROM sessions WHERE project IS NOT NULL) \
                   AND id NOT IN (SELECT project FROM folders); \
                 VACUUM; PRAGMA wal_checkpoint(TRUNCATE);",
            )
        })
    }

    /// Whether SQLite's integrity check passes. It reads the whole database.
    pub fn is_whole(&self) -> bool {
        let check = |connection: &Connection| -> rusqlite::Result<String> {
            connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        };
        check(&self.connection).is_ok_and(|answer| answer == "ok")
    }

    /// Whether all sources that only the archive has were indexed.
    pub(crate) fn is_complete(&self) -> Result<bool, Error> {
        self.query(|connection| connection.query_row("SELECT complete FROM state", [], |row| row.get(0)))
    }

    /// Document groups that the next batch deletes.
    pub(crate) fn retired_groups(&self) -> Result<Vec<u64>, Error> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached("SELECT doc_group FROM retired_doc_groups")?;
            statement.query_map([], |row| row.get(0).map(row::to_unsigned))?.collect()
        })
    }

    /// Pins the view of the database: later queries see it as it is now. A search takes this snapshot before it opens the text.
    pub fn snapshot(&self) -> Result<(), Error> {
        self.query(|connection| connection.execute_batch("BEGIN; SELECT batch FROM state"))
    }

    fn query<T>(&self, question: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        question(&self.connection).map_err(|error| database_error(&Place::Path(self.path.clone()), &error))
    }
}

/// Whether the file itself is damaged, so that rebuilding it helps.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    match error {
        // A read that ends too early: the file is shorter than its header says.
        rusqlite::Error::SqliteFailure(failure, _)
            if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ =>
        {
            true
        }
        rusqlite::Error::SqliteFailure(failure, _) => !matches!(
            failure.code,
            ErrorCode::DiskFull
                | ErrorCode::PermissionDenied
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::SystemIoFailure
                | ErrorCode::OperationAborted
                | ErrorCode::OperationInterrupted
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::NoLargeFileSupport
                | ErrorCode::OutOfMemory
        ),
        // Values that this program never writes: of a wrong type, out of range or missing.
        _ => true,
    }
}

/// Turns a database error into an [`Error`] with a place.
pub(super) fn database_error(place: &Place, error: &rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    let problem = match error {
        _ if is_damage(error) => Problem::IndexDamaged,
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => Problem::Full,
            ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::CannotOpen => Problem::Denied,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Problem::Locked { holder: None },
            _ => Problem::Unwritable,
        },
        _ => Problem::Unwritable,
    };
    Error::from_engine(place, problem, error)
}
