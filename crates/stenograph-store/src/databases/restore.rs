//! Restores an archived conversation to a new SQLite database: its lines become the rows that they were. Nothing is ever written
//! to a database that exists.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use base64::Engine as _;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use stenograph::json::{Object, items};
use stenograph::model::DatabaseTables;
use stenograph::text::Text;

use crate::error::{Error, Problem};
use crate::files::{FileMode, with_mode};

/// How many columns a table may have; SQLite allows 2,000.
const COLUMNS_MAX: usize = 2_000;

/// Writes a new database with these rows, in tables with their columns. Returns the number of rows.
pub fn restore(tables: &DatabaseTables, lines: &mut dyn Read, to: &Path) -> Result<u64, Error> {
    if to.symlink_metadata().is_ok() {
        return Err(Error::about(to, Problem::OutputExists));
    }
    let unreadable = |error| Error::at(to, Problem::Unwritable, error);
    with_mode(FileMode::PRIVATE).write(true).create_new(true).open(to).map_err(unreadable)?;
    let restored = fill(tables, lines, to);
    if restored.is_err() {
        // Half of a conversation is no restored one, and would be in the way of the next attempt.
        let _ = std::fs::remove_file(to);
    }
    restored
}

/// Writes the rows to an empty file.
fn fill(tables: &DatabaseTables, lines: &mut dyn Read, to: &Path) -> Result<u64, Error> {
    let unreadable = |error| Error::at(to, Problem::Unwritable, error);
    let failed =
        |error: rusqlite::Error| Error::from_engine(&crate::Place::Path(to.to_owned()), Problem::Unwritable, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(to, flags).map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut lines, mut line, mut count) = (BufReader::new(lines), String::new(), 0);
    loop {
        line.clear();
        if lines.read_line(&mut line).map_err(unreadable)? == 0 {
            break;
        }
        let Some((table, row)) = row(tables, line.trim_end()) else { continue };
        let columns = known.entry(table.clone()).or_default();
        for (name, _) in &row {
            if columns.iter().any(|known| known == name) || columns.len() >= COLUMNS_MAX {
                continue;
            }
            // A column without a type keeps the type of each value.
            let sql = match columns.is_empty() {
                true => format!("CREATE TABLE {} ({})", quoted(&table), quoted(name)),
                false => format!("ALTER TABLE {} ADD COLUMN {}", quoted(&table), quoted(name)),
            };
            transaction.execute(&sql, []).map_err(failed)?;
            columns.push(name.clone());
        }
        let names: Vec<String> = row.iter().map(|(name, _)| quoted(name)).collect();
        let places = vec!["?"; row.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({places})", quoted(&table), names.join(", "));
        let values = row.into_iter().map(|(_, value)| value);
        transaction.execute(&sql, rusqlite::params_from_iter(values)).map_err(failed)?;
        count += 1;
    }
    transaction.commit().map_err(failed)?;
    Ok(count)
}

/// The table and the columns of a line; `None` if it is not that of a row.
fn row(tables: &DatabaseTables, line: &str) -> Option<(String, Vec<(String, Value)>)> {
    let row = Object::parse(line).filter(|row| row.duplicate().is_none())?;
    let table = row.peek_str("table")?.into_owned();
    let of_tables = tables.rows.iter().map(|rows| rows.table).chain([tables.session.table, "database"]);
    // What a row inherits is no column of its own.
    let inherited = row.keys().nth(1).filter(|key| of_tables.clone().any(|table| table == *key)).map(str::to_owned);
    let is_column = |key: &str| key != "table" && inherited.as_deref() != Some(key);
    let columns = row.pairs().filter(|(key, _)| is_column(key));
    Some((table, columns.map(|(key, raw)| (key.to_owned(), value(raw))).collect()))
}

/// The value that a column had.
fn value(raw: &str) -> Value {
    if let Some(text) = Text::from_json(raw) {
        return Value::Text(text.decode().into_owned());
    }
    let encoded = |key: &str| {
        let object = Object::parse(raw).filter(|object| object.keys().count() == 1)?;
        base64::engine::general_purpose::STANDARD.decode(object.peek_str(key)?.as_bytes()).ok()
    };
    match raw {
        "null" => Value::Null,
        _ if Object::parse(raw).is_some() || items(raw).is_some() => match (encoded("$blob"), encoded("$text")) {
            (Some(bytes), _) => Value::Blob(bytes),
            // Such a text is not Unicode: SQLite takes it only as bytes.
            (_, Some(bytes)) => Value::Blob(bytes),
            _ => Value::Text(raw.to_owned()),
        },
        _ => match (raw.parse::<i64>(), raw.parse::<f64>()) {
            (Ok(number), _) => Value::Integer(number),
            (_, Ok(number)) => Value::Real(number),
            _ => Value::Text(raw.to_owned()),
        },
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
