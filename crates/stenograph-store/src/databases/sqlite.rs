//! Conversations in a SQLite database, which `FormatInfo::database` describes. The database is only read: in one transaction, so
//! that all rows are of one moment even while an agent writes, and without creating a file beside it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement};
use stenograph::edit::Rewritable as _;
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::model::{DatabaseTables, RowTable};

use super::{DatabaseConversation, changed_ns, rows};
use crate::discover::Stat;
use crate::error::{Error, Problem};
use crate::output::{Spool, fresh_folder};

/// How long a writer may lock the database before reading gives up. A database with a write-ahead log is never locked that long.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// How often reading is tried again if the file changed meanwhile.
const ATTEMPTS: usize = 4;

/// An open database.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    tables: DatabaseTables,
}

/// How a database is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadMode {
    /// With the locks that its writers know.
    Shared,
    /// As a file that does not change: it has no write-ahead log, and an ordinary reader would create one.
    Immutable,
    /// As a copy, because the log has no index, and an ordinary reader would create one.
    Copied,
}

/// The files of a database at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FilesState {
    file: Option<Stat>,
    log: Option<Stat>,
    has_log_index: bool,
    /// A transaction was interrupted, or is running.
    has_journal: bool,
}

/// The connection that was used last: most of the time the next conversation is in the same database.
struct LastConnection {
    path: PathBuf,
    state: FilesState,
    access: ReadMode,
    connection: Connection,
}

thread_local! {
    static LAST: RefCell<Option<LastConnection>> = const { RefCell::new(None) };
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}

impl FilesState {
    fn of(path: &Path) -> FilesState {
        let filled = |ending: &str| Stat::of(&beside(path, ending)).ok().filter(|stat| stat.size > 0);
        FilesState {
            file: Stat::of(path).ok(),
            log: filled("-wal"),
            has_log_index: filled("-shm").is_some(),
            has_journal: filled("-journal").is_some(),
        }
    }

    fn access(&self, path: &Path) -> ReadMode {
        /// The bytes 18 and 19 of the file are 2 if it is read with a write-ahead log.
        const LOG_VERSION_AT: usize = 18;
        let has_log_version = || {
            let mut first = [0; LOG_VERSION_AT + 2];
            let read = fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut first));
            read.is_ok() && first.ends_with(&[2, 2])
        };
        match (&self.log, self.has_log_index) {
            (Some(_), true) => ReadMode::Shared,
            (Some(_), false) => ReadMode::Copied,
            (None, true) => ReadMode::Shared,
            (None, false) if !self.has_journal && has_log_version() => ReadMode::Immutable,
            (None, false) => ReadMode::Shared,
        }
    }
}

impl Database {
    /// Opens a database, if it has the tables of a format. `expected` is the format whose databases have this place.
    pub fn open(path: &Path, expected: Option<&'static dyn Format>) -> Result<Option<Database>, Error> {
        let described = |format: &&'static dyn Format| format.info().database;
        if let Some(tables) = expected.as_ref().and_then(described) {
            return match with_connection(path, |connection| missing(connection, &tables))? {
                None => Ok(Some(Database { path: path.to_owned(), tables })),
                // The agent has created the file and no table yet.
                Some(_) if with_connection(path, is_blank)? => Ok(None),
                Some((table, column)) => Err(Error::about(path, Problem::NewerDatabase { table, column })),
            };
        }
        let mut all: Vec<DatabaseTables> = FORMATS.iter().filter_map(described).collect();
        // An agent without tables of its own comes last.
        all.sort_by_key(|tables| tables.owner.is_none());
        for tables in all {
            let is_its_own = with_connection(path, |connection| {
                let owned = tables.owner.map(|owner| columns_of(connection, owner.table)).transpose()?;
                Ok(owned.is_none_or(|columns| !columns.is_empty()) && missing(connection, &tables)?.is_none())
            });
            if is_its_own? {
                return Ok(Some(Database { path: path.to_owned(), tables }));
            }
        }
        Ok(None)
    }

    /// The conversations.
    pub fn conversations(&self) -> Result<Vec<DatabaseConversation>, Error> {
        with_connection(&self.path, |connection| conversations(connection, &self.tables, None))
    }

    /// The conversation with this id.
    pub fn conversation(&self, name: &str) -> Result<Option<DatabaseConversation>, Error> {
        with_connection(&self.path, |connection| Ok(conversations(connection, &self.tables, Some(name))?.pop()))
    }

    /// Writes the rows of a conversation as lines. Nothing is written if the database does not have it.
    pub fn copy(&self, session: &str, lines: &mut Spool) -> Result<(), Error> {
        let copied = with_connection(&self.path, |connection| {
            // The rows of an attempt before are not valid.
            let started = lines.restart();
            started.map_or_else(|error| Ok(Err(error)), |()| copy(connection, &self.tables, session, lines))
        })?;
        copied.map_err(|error| Error::at(&self.path, Problem::Unreadable, error))
    }
}

/// Runs a query until the database does not change meanwhile.
fn with_connection<T>(path: &Path, mut query: impl FnMut(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
    for _ in 0..ATTEMPTS {
        if let (found, true) = once(path, &mut query)? {
            return Ok(found);
        }
    }
    Err(Error::about(path, Problem::DatabaseBusy))
}

/// Runs a query in one transaction. Returns whether the result counts: a file that was read as one that does not change must
/// not have changed.
fn once<T>(path: &Path, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<(T, bool), Error> {
    let state = FilesState::of(path);
    let last = LAST.take().filter(|last| last.path == path && last.state == state);
    let last = match last {
        Some(last) => last,
        None => {
            let access = state.access(path);
            let connection = connect(path, access)?;
            LastConnection { path: path.to_owned(), state, access, connection }
        }
    };
    let transaction = last.connection.unchecked_transaction().map_err(|error| explain(path, &error))?;
    let found = query(&transaction);
    drop(transaction);
    let is_unchanged = last.access == ReadMode::Shared || FilesState::of(path) == last.state;
    match found {
        Ok(found) => {
            if is_unchanged {
                LAST.set(Some(last));
            }
            Ok((found, is_unchanged))
        }
        Err(error) => Err(explain(path, &error)),
    }
}

fn connect(path: &Path, access: ReadMode) -> Result<Connection, Error> {
    let failed = |error: rusqlite::Error| explain(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match access {
        ReadMode::Shared => Connection::open_with_flags(path, flags).map_err(failed)?,
        ReadMode::Immutable => {
            let escaped: String = path.to_string_lossy().chars().map(escape).collect();
            let uri = format!("file:{escaped}?immutable=1");
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI).map_err(failed)?
        }
        ReadMode::Copied => return copied(path),
    };
    connection.busy_timeout(LOCK_TIMEOUT).map_err(failed)?;
    // The views and triggers of a hostile database must not run functions.
    connection.pragma_update(None, "trusted_schema", false).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    Ok(connection)
}

fn escape(char: char) -> String {
    match char {
        '?' | '#' | '%' => format!("%{:02x}", char as u32),
        char => char.to_string(),
    }
}

/// A connection to a private copy, from which the log is merged into the file. The copy has no name any more when this returns.
fn copied(path: &Path) -> Result<Connection, Error> {
    let failed = |error: rusqlite::Error| explain(path, &error);
    let folder = fresh_folder("steno-database-")?;
    let copy = folder.join("copy.db");
    let made = (|| {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        // The log first: what a writer moves from it to the file meanwhile is then in both.
        copy_file(&beside(path, "-wal"), &beside(&copy, "-wal")).map_err(unreadable)?;
        copy_file(path, &copy).map_err(unreadable)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&copy, flags).map_err(failed)?;
        connection.pragma_update(None, "trusted_schema", false).map_err(failed)?;
        connection.pragma_update(None, "journal_mode", "DELETE").map_err(failed)?;
        connection.pragma_update(None, "query_only", true).map_err(failed)?;
        Ok(connection)
    })();
    // The system keeps the bytes until the connection is closed.
    let _ = fs::remove_dir_all(&folder);
    made
}

/// Copies the bytes of a file, without its permissions.
fn copy_file(from: &Path, to: &Path) -> std::io::Result<()> {
    std::io::copy(&mut fs::File::open(from)?, &mut fs::File::create_new(to)?).map(drop)
}

fn explain(path: &Path, error: &rusqlite::Error) -> Error {
    let problem = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Problem::DatabaseBusy,
        Some(ErrorCode::NotADatabase) => Problem::NoDatabase,
        Some(ErrorCode::DatabaseCorrupt) => Problem::DatabaseDamaged,
        // Only a writer can undo the transaction that was interrupted.
        Some(ErrorCode::ReadOnly) => Problem::DatabaseHalfWritten,
        Some(ErrorCode::PermissionDenied) => Problem::Denied,
        _ => Problem::Unreadable,
    };
    Error::from_engine(&crate::Place::Path(path.to_owned()), problem, error)
}

/// A quoted SQL identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn order(columns: &[&str]) -> String {
    columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ")
}

/// The columns of a table; none if there is no such table. A view is none: a query on it may never end.
fn columns_of(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM pragma_table_info(?1) WHERE EXISTS \
               (SELECT 1 FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name = ?1)";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0))
}

/// A table and a column that the database lacks.
fn missing(connection: &Connection, tables: &DatabaseTables) -> rusqlite::Result<Option<(&'static str, &'static str)>> {
    let lacks =
        |table: &'static str, wanted: &[&'static str]| -> rusqlite::Result<Option<(&'static str, &'static str)>> {
            let there = columns_of(connection, table)?;
            let column = wanted.iter().find(|column| !there.iter().any(|known| known == *column));
            Ok(column.map(|column| (table, *column)))
        };
    let session = &tables.session;
    let wanted: Vec<&str> = [session.key, session.updated].into_iter().chain(session.title).collect();
    let mut found = lacks(session.table, &wanted)?;
    for rows in tables.rows.iter().filter(|rows| !rows.columns.is_empty()) {
        let wanted: Vec<&str> = rows.order.iter().chain(rows.columns).copied().chain([rows.session]).collect();
        found = found.or(lacks(rows.table, &wanted)?);
        if let Some(below) = &rows.below {
            let wanted = below.order.iter().chain(below.columns).copied().chain([below.session, below.upper]);
            let wanted: Vec<&str> = wanted.collect();
            found = found.or(lacks(below.table, &wanted)?);
        }
    }
    Ok(found)
}

/// What tells the versions of a conversation apart.
#[derive(Default)]
struct Version {
    title: Option<String>,
    millis: i64,
    size: u64,
    digest: Vec<u8>,
}

fn conversations(
    connection: &Connection,
    tables: &DatabaseTables,
    only: Option<&str>,
) -> rusqlite::Result<Vec<DatabaseConversation>> {
    let mut versions: BTreeMap<String, Version> = BTreeMap::new();
    let session = &tables.session;
    let columns = columns_of(connection, session.table)?;
    let mut sql = format!("SELECT * FROM {}", quoted(session.table));
    if only.is_some() {
        sql.push_str(&format!(" WHERE {} = ?1", quoted(session.key)));
    }
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query(rusqlite::params_from_iter(only))?;
    let mut line = Vec::new();
    while let Some(row) = found.next()? {
        let Some(name) = key(row.get_ref(session.key)?) else { continue };
        rows::line(session.table, &columns, row, None, &mut line)?;
        let title = session.title.map(|column| row.get_ref(column)).transpose()?;
        let title = title.and_then(|title| title.as_str().ok()).filter(|title| !title.is_empty()).map(str::to_owned);
        let millis = millis(row.get_ref(session.updated)?);
        versions.insert(name, Version { title, millis, size: line.len() as u64 + 1, digest: line.clone() });
    }
    for rows in tables.rows {
        let below = rows.below.map(|below| (below.table, below.session));
        for (table, session) in [Some((rows.table, rows.session)), below].into_iter().flatten() {
            add_versions(connection, table, session, only, &mut versions)?;
        }
    }
    let conversation = |(name, version): (String, Version)| DatabaseConversation {
        name,
        title: version.title,
        changed_ns: changed_ns(version.millis, &version.digest),
        size: version.size,
    };
    Ok(versions.into_iter().map(conversation).collect())
}

/// Adds the numbers of rows and bytes and the latest times of a table to the versions. No text is read for that.
fn add_versions(
    connection: &Connection,
    table: &str,
    session: &str,
    only: Option<&str>,
    versions: &mut BTreeMap<String, Version>,
) -> rusqlite::Result<()> {
    let columns = columns_of(connection, table)?;
    if !columns.iter().any(|column| column == session) {
        return Ok(());
    }
    let size = |column: &String| format!("coalesce(octet_length({}), 4)", quoted(column));
    let sizes = columns.iter().map(size).collect::<Vec<_>>().join(" + ");
    let is_time = |column: &&String| ["time", "updated", "created"].iter().any(|word| column.contains(word));
    let times: String = columns.iter().filter(is_time).map(|column| format!(", max({})", quoted(column))).collect();
    let (session, table) = (quoted(session), quoted(table));
    let condition = if only.is_some() { format!("WHERE {session} = ?1") } else { String::new() };
    let sql = format!("SELECT {session}, count(*), sum({sizes}){times} FROM {table} {condition} GROUP BY 1");
    let mut statement = connection.prepare_cached(&sql)?;
    let count = statement.column_count();
    let mut found = statement.query(rusqlite::params_from_iter(only))?;
    while let Some(row) = found.next()? {
        let Some(version) = key(row.get_ref(0)?).and_then(|name| versions.get_mut(&name)) else { continue };
        version.size +=
            row.get::<_, i64>(2)?.unsigned_abs() + row.get::<_, i64>(1)?.unsigned_abs() * (columns.len() as u64) * 12;
        for at in 1..count {
            version.digest.extend_from_slice(format!("{:?};", row.get_ref(at)?).as_bytes());
        }
    }
    Ok(())
}

/// The id of a conversation as text.
fn key(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(text) => std::str::from_utf8(text).ok().filter(|text| !text.is_empty()).map(str::to_owned),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    }
}

/// A time in milliseconds since 1970: a number of milliseconds or seconds, or a date in UTC.
fn millis(value: ValueRef<'_>) -> i64 {
    /// Seconds reach this number in the year 5138, and milliseconds reached it in 1973.
    const SECONDS_MAX: u64 = 100_000_000_000;
    match value {
        ValueRef::Integer(number) if number.unsigned_abs() < SECONDS_MAX => number * 1000,
        ValueRef::Integer(number) => number,
        // A float becomes the nearest integer that there is.
        ValueRef::Real(seconds) => (seconds * 1000.0) as i64,
        ValueRef::Text(text) => {
            let date = std::str::from_utf8(text).unwrap_or_default().trim_end_matches('Z');
            let date = date.parse::<jiff::civil::DateTime>().ok();
            let zoned = date.and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC).ok());
            zoned.map_or(0, |zoned| zoned.timestamp().as_millisecond())
        }
        ValueRef::Null | ValueRef::Blob(_) => 0,
    }
}

fn copy(
    connection: &Connection,
    tables: &DatabaseTables,
    session: &str,
    out: &mut dyn Write,
) -> rusqlite::Result<std::io::Result<()>> {
    let mut lines = LineWriter { out, line: Vec::new(), result: Ok(()) };
    let table = tables.session.table;
    let columns = columns_of(connection, table)?;
    let sql = format!("SELECT * FROM {} WHERE {} = ?1", quoted(table), quoted(tables.session.key));
    let owner = tables.owner.map(|owner| [("agent", format!("\"{}\"", owner.agent))]);
    let owner = owner.as_ref().map(|owner| ("database", owner.as_slice()));
    lines.rows(&mut *connection.prepare_cached(&sql)?, &[&session], table, &columns, owner, &mut |_, _| Ok(()))?;
    let head = lines.line.clone();
    for rows in tables.rows {
        let inherited = rows::inherited(rows.inherits, &head);
        let inherited = (!inherited.is_empty()).then_some((table, inherited.as_slice()));
        copy_rows(connection, rows, session, inherited, &mut lines)?;
    }
    Ok(lines.result)
}

fn copy_rows(
    connection: &Connection,
    rows: &RowTable,
    session: &str,
    of_session: Option<rows::Inherited<'_>>,
    lines: &mut LineWriter<'_>,
) -> rusqlite::Result<()> {
    let columns = columns_of(connection, rows.table)?;
    if columns.is_empty() {
        return Ok(());
    }
    let (table, of) = (quoted(rows.table), quoted(rows.session));
    let sql = format!("SELECT * FROM {table} WHERE {of} = ?1 ORDER BY {}", order(rows.order));
    let mut upper = connection.prepare_cached(&sql)?;
    let Some(below) = &rows.below else {
        return lines.rows(&mut upper, &[&session], rows.table, &columns, of_session, &mut |_, _| Ok(()));
    };
    let lower_columns = columns_of(connection, below.table)?;
    let (lower, to, lower_of) = (quoted(below.table), quoted(below.upper), quoted(below.session));
    let order = order(below.order);
    let sql = format!("SELECT * FROM {lower} WHERE {to} = ?1 AND {lower_of} = ?2 ORDER BY {order}");
    let mut of_row = connection.prepare_cached(&sql)?;
    lines.rows(&mut upper, &[&session], rows.table, &columns, of_session, &mut |lines, row| {
        let Some(key) = key(row.get_ref(below.upper_key)?) else { return Ok(()) };
        let inherited = rows::inherited(below.inherits, &lines.line);
        let inherited = Some((rows.table, inherited.as_slice()));
        lines.rows(&mut of_row, &[&key, &session], below.table, &lower_columns, inherited, &mut |_, _| Ok(()))
    })?;
    let key = quoted(below.upper_key);
    let sql = format!(
        "SELECT * FROM {lower} WHERE {lower_of} = ?1 \
         AND NOT EXISTS (SELECT 1 FROM {table} AS upper WHERE upper.{key} = {lower}.{to} AND upper.{of} = ?1) ORDER BY {order}"
    );
    let mut orphans = connection.prepare_cached(&sql)?;
    lines.rows(&mut orphans, &[&session], below.table, &lower_columns, Some((rows.table, &[])), &mut |_, _| Ok(()))
}

/// Writes rows as lines. After an error it writes nothing more.
struct LineWriter<'w> {
    out: &'w mut dyn Write,
    /// The last line.
    line: Vec<u8>,
    result: std::io::Result<()>,
}

type AfterRow<'a, 'w> = dyn FnMut(&mut LineWriter<'w>, &rusqlite::Row<'_>) -> rusqlite::Result<()> + 'a;

impl<'w> LineWriter<'w> {
    fn rows(
        &mut self,
        statement: &mut Statement<'_>,
        values: &[&dyn rusqlite::ToSql],
        table: &str,
        columns: &[String],
        inherited: Option<rows::Inherited<'_>>,
        after: &mut AfterRow<'_, 'w>,
    ) -> rusqlite::Result<()> {
        let mut found = statement.query(values)?;
        while let Some(row) = found.next()? {
            if self.result.is_err() {
                return Ok(());
            }
            rows::line(table, columns, row, inherited, &mut self.line)?;
            self.result = self.out.write_all(&self.line).and_then(|()| self.out.write_all(b"\n"));
            after(self, row)?;
        }
        Ok(())
    }
}
