//! The catalogue: which sources, sessions and projects there are, and how far each source is indexed. It is the authority of the
//! index: what a transaction here has not said did not happen, whatever the text index holds. It must not open a source.

mod batch;
mod ledger;
mod row;
mod schema;
mod session;
mod view;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

pub use batch::PartedCopy;
pub use ledger::{Paged, Pages};
pub use row::{ContentSum, Gone, SourceId, SourceRow, Stamp, Tally};
pub use schema::VERSION;
pub use session::{Project, Session, SessionId};
pub use view::{KeptRow, Lot, Lots, Stamped, Touched, Unknown};

use crate::{Error, Place, Problem};

/// An open catalogue.
#[derive(Debug)]
pub struct Catalogue {
    connection: Connection,
    path: PathBuf,
}

/// What opening found.
#[derive(Debug)]
pub enum Opened {
    /// A current catalogue.
    Current(Catalogue),
    /// There is none.
    Missing,
    /// What is there cannot be used, with the reason for people.
    Unusable(String),
    /// A later version of this program made it, with this version of the tables.
    Later(i64),
}

impl Catalogue {
    /// Opens what is there, to read.
    pub fn open(path: &Path) -> Result<Opened, Error> {
        if !path.exists() {
            return Ok(Opened::Missing);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Catalogue::checked(path, flags)
    }

    /// Opens or makes one, to write. Only the holder of the index's lock may.
    pub fn make(path: &Path) -> Result<Opened, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Catalogue::checked(path, flags)
    }

    fn checked(path: &Path, flags: OpenFlags) -> Result<Opened, Error> {
        let place = Place::Path(path.to_owned());
        match Catalogue::prepared(path, flags) {
            Ok(opened) => Ok(opened),
            Err(error) if is_damage(&error) => Ok(Opened::Unusable(format!("it is damaged ({error})"))),
            Err(error) => Err(of_database(&place, &error)),
        }
    }

    fn prepared(path: &Path, flags: OpenFlags) -> rusqlite::Result<Opened> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        connection.pragma_update(None, "cache_size", -24_576)?;
        // Else many statements are prepared again for every value they are asked with.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        match schema::look(&connection)? {
            schema::Found::Current => {}
            schema::Found::Empty if flags.contains(OpenFlags::SQLITE_OPEN_CREATE) => schema::make(&connection)?,
            // Whoever made the file did not get to the tables.
            schema::Found::Empty => return Ok(Opened::Missing),
            schema::Found::Earlier => {
                return Ok(Opened::Unusable("it was made by an earlier version of steno".to_owned()));
            }
            schema::Found::Later(version) => return Ok(Opened::Later(version)),
        }
        // Whether the file holds what it says is seen now, not in the middle of a search.
        let _: i64 = connection.query_row("SELECT batch + commits FROM state", [], |row| row.get(0))?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Opened::Current(Catalogue { connection, path: path.to_owned() }))
    }

    /// The last batch that was committed.
    pub(crate) fn batch_number(&self) -> Result<u64, Error> {
        self.ask(|connection| connection.query_row("SELECT batch FROM state", [], |row| row.get(0).map(row::bits)))
    }

    /// How many commits there were.
    pub fn commits(&self) -> Result<u64, Error> {
        self.ask(|connection| connection.query_row("SELECT commits FROM state", [], |row| row.get(0).map(row::bits)))
    }

    /// Rewrites the database without what was deleted from it: that would stay readable in the file, and take room.
    pub fn compact(&self) -> Result<(), Error> {
        self.ask(|connection| {
            connection.execute_batch(
                "DELETE FROM files WHERE id NOT IN (SELECT file FROM touches); VACUUM; PRAGMA wal_checkpoint(TRUNCATE);",
            )
        })
    }

    /// Whether the database finds nothing wrong with itself. It reads all of it.
    pub fn is_whole(&self) -> bool {
        let check = |connection: &Connection| -> rusqlite::Result<String> {
            connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        };
        check(&self.connection).is_ok_and(|answer| answer == "ok")
    }

    /// Whether everything that only the archive has was read, too.
    pub(crate) fn is_complete(&self) -> Result<bool, Error> {
        self.ask(|connection| connection.query_row("SELECT complete FROM state", [], |row| row.get(0)))
    }

    /// Lots whose documents the next batch deletes.
    pub(crate) fn dead_lots(&self) -> Result<Vec<u64>, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("SELECT lot FROM dead")?;
            statement.query_map([], |row| row.get(0).map(row::bits))?.collect()
        })
    }

    /// Sees everything from here on as it is now, as long as it is open. Search takes this first, then the text.
    pub fn hold(&self) -> Result<(), Error> {
        self.ask(|connection| connection.execute_batch("BEGIN; SELECT batch FROM state"))
    }

    fn ask<T>(&self, question: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        question(&self.connection).map_err(|error| of_database(&Place::Path(self.path.clone()), &error))
    }
}

/// Whether the file itself is to blame, so that making it anew helps.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    match error {
        // A read that ends too early: the file is shorter than it says.
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
        // Values that nobody of us writes: not text, not a number, out of range, missing.
        _ => true,
    }
}

/// What the database says, as an error with a place.
pub(super) fn of_database(place: &Place, error: &rusqlite::Error) -> Error {
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
