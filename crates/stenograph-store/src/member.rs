//! Sources that are members of a container: an entry of a zip archive, or rows of a table in a SQLite database. A reader gets
//! the bytes of one member as if they were a file; only this file knows the position of a record in the container.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, Place, Problem};
use crate::output::Spool;
use crate::source::Source;

/// Selects a source of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceMember {
    /// An entry of a zip archive, by its name.
    Entry(String),
    /// Rows of a table in a SQLite database, one record each.
    Rows(TableRows),
}

/// Selects the rows of a table that form one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// The table.
    pub table: String,
    /// The column with the record.
    pub record: String,
    /// The column with the session's name, and the name.
    pub session: (String, String),
    /// The column that orders the records.
    pub order: String,
}

impl Source {
    /// Opens a member of a container. Its current content is spooled, so that every pass reads the same.
    pub fn open_member(path: &Path, member: &SourceMember) -> Result<Source, Error> {
        let place = Place::Path(path.to_owned());
        match member {
            SourceMember::Entry(name) => {
                let mut file = File::open(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
                let entry = entry(&mut file, name).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
                Source::spooled(place, entry)
            }
            SourceMember::Rows(rows) => {
                let mut spool = Spool::new()?;
                let length = copy_rows(path, rows, &mut spool)?;
                let mut file = spool.into_file()?;
                file.rewind().map_err(|error| Error::at(path, Problem::Unreadable, error))?;
                Source::spooled(place, file.take(length))
            }
        }
    }
}

/// Writes each row as a line. Returns how many bytes that took.
fn copy_rows(path: &Path, rows: &TableRows, out: &mut impl Write) -> Result<u64, Error> {
    let failed = |error: rusqlite::Error| Error::at(path, Problem::Unreadable, io::Error::other(error));
    // Reading must not change or lock the database.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags).map_err(failed)?;
    let sql = format!(
        "SELECT {} FROM {} WHERE {} = ?1 ORDER BY {}",
        name(&rows.record),
        name(&rows.table),
        name(&rows.session.0),
        name(&rows.order)
    );
    let mut statement = database.prepare(&sql).map_err(failed)?;
    let mut found = statement.query([&rows.session.1]).map_err(failed)?;
    let mut length = 0;
    while let Some(row) = found.next().map_err(failed)? {
        let value = row.get_ref(0).map_err(failed)?;
        let record = value.as_bytes().map_err(|error| failed(error.into()))?;
        // A record on one line is the same record: line breaks inside strings are escaped.
        let line: Vec<u8> = record.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect();
        let written = out.write_all(&line).and_then(|()| out.write_all(b"\n"));
        written.map_err(|error| Error::at(path, Problem::Unreadable, error))?;
        length += line.len() as u64 + 1;
    }
    Ok(length)
}

/// A quoted SQL identifier.
fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Where to search the end record of a zip archive: its size, and that of the longest comment after it.
const END_SIZE: u64 = 22;
const COMMENT_SIZE_MAX: u64 = 0xffff;

/// The maximum size of the list of entries.
const LIST_SIZE_MAX: u64 = 64 << 20;

/// The bytes of an entry.
fn entry<'f>(file: &'f mut File, wanted: &str) -> io::Result<Box<dyn Read + 'f>> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "the zip archive is damaged");
    let length = file.metadata()?.len();
    let tail = read_at(file, length.saturating_sub(END_SIZE + COMMENT_SIZE_MAX), END_SIZE + COMMENT_SIZE_MAX)?;
    let end = memchr::memmem::rfind(&tail, b"PK\x05\x06").ok_or_else(broken)?;
    let end = tail.get(end..).unwrap_or_default();
    let warning = number(end, 20, 2).ok_or_else(broken)?;
    if end.len() as u64 != END_SIZE + warning {
        return Err(broken());
    }
    let (size, offset) = (number(end, 12, 4).ok_or_else(broken)?, number(end, 16, 4).ok_or_else(broken)?);
    let list = read_at(file, offset, size.min(LIST_SIZE_MAX))?;
    let mut rest = list.as_slice();
    while rest.starts_with(b"PK\x01\x02") {
        let field = |at: usize, size: usize| number(rest, at, size).and_then(|number| usize::try_from(number).ok());
        let (Some(method), Some(packed), Some(size), Some(at)) =
            (field(10, 2), field(20, 4), field(24, 4), field(42, 4))
        else {
            break;
        };
        let (Some(name), Some(more), Some(warning)) = (field(28, 2), field(30, 2), field(32, 2)) else { break };
        if rest.get(46..46 + name) == Some(wanted.as_bytes()) {
            let head = read_at(file, at as u64, 30)?;
            let (Some(name), Some(more)) = (number(&head, 26, 2), number(&head, 28, 2)) else { return Err(broken()) };
            file.seek(SeekFrom::Start(at as u64 + 30 + name + more))?;
            let packed = file.take(packed as u64);
            return Ok(match method {
                0 => Box::new(packed),
                // It decodes to at most the size in the list.
                8 => Box::new(flate2::read::DeflateDecoder::new(packed).take(size as u64)),
                _ => return Err(io::Error::other("unsupported compression method")),
            });
        }
        rest = rest.get(46 + name + more + warning..).unwrap_or_default();
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "the zip archive has no such entry"))
}

fn read_at(file: &mut File, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A little-endian number of this many bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut number = [0; 8];
    Cursor::new(bytes.get(at..at + size)?).read_exact(number.get_mut(..size)?).ok()?;
    Some(u64::from_le_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::read::{Collected, Reading};

    const LINE: &str = "{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"find the walrus\"}";

    /// The words of the member, read twice: each pass sees the same.
    fn words(path: &Path, member: &SourceMember) -> Result<Vec<String>, Error> {
        let mut source = Source::open_member(path, member)?;
        let format = source.recognize(&crate::discover::PathHints::default()).unwrap().format;
        assert_eq!(source.access(format), crate::source_file::Access::ByRecord);
        let mut found = Collected::default();
        for _ in 0..2 {
            found = Collected::default();
            let mut reading = Reading::new(format, stenograph::format::Wanted::All);
            reading.feed_all(&mut source.pass()?, &mut found).unwrap();
            reading.end(&mut found);
        }
        Ok(found.events.iter().map(|event| event.content().unwrap().joined().decode().into_owned()).collect())
    }

    #[test]
    fn the_rows_of_a_database_are_a_source() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let database = Connection::open(&path).unwrap();
        database.execute_batch("CREATE TABLE messages (n INTEGER, session TEXT, data TEXT)").unwrap();
        for (number, session, word) in [(2, "s1", "seal"), (1, "s1", "wal\nrus"), (3, "s2", "fox")] {
            let record = LINE.replace("walrus\"", &format!("{word}\"").replace('\n', "\\n")).replace(',', ",\n");
            database.execute("INSERT INTO messages VALUES (?1, ?2, ?3)", (number, session, record)).unwrap();
        }
        let rows = |session: &str| {
            SourceMember::Rows(TableRows {
                table: "messages".to_owned(),
                record: "data".to_owned(),
                session: ("session".to_owned(), session.to_owned()),
                order: "n".to_owned(),
            })
        };
        assert_eq!(words(&path, &rows("s1")).unwrap(), ["find the wal\nrus", "find the seal"]);
        assert_eq!(words(&path, &rows("s2")).unwrap(), ["find the fox"]);
        std::fs::write(&path, "no database").unwrap();
        assert_eq!(words(&path, &rows("s1")).unwrap_err().problem, Problem::Unreadable);
    }

    /// A zip archive of these entries, every second one compressed.
    fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
        let (mut file, mut list) = (Vec::new(), Vec::new());
        for (at, (name, text)) in entries.iter().enumerate() {
            let mut packed = text.as_bytes().to_vec();
            if at % 2 == 1 {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(text.as_bytes()).unwrap();
                packed = encoder.finish().unwrap();
            }
            let method = if at % 2 == 1 { 8_u16 } else { 0 };
            let mut fields = [20_u16, 0, method, 0, 0].map(u16::to_le_bytes).concat();
            fields.extend(crc(text).to_le_bytes());
            fields.extend([packed.len() as u32, text.len() as u32].map(u32::to_le_bytes).concat());
            fields.extend([name.len() as u16, 0].map(u16::to_le_bytes).concat());
            let offset = file.len() as u32;
            file.extend([b"PK\x03\x04".as_slice(), &fields, name.as_bytes(), &packed].concat());
            list.extend([b"PK\x01\x02\x14\x00".as_slice(), &fields].concat());
            list.extend([0_u8; 10]);
            list.extend([&offset.to_le_bytes(), name.as_bytes()].concat());
        }
        let (size, offset) = (list.len() as u32, file.len() as u32);
        file.extend(list);
        file.extend(b"PK\x05\x06\0\0\0\0");
        file.extend([entries.len() as u16, entries.len() as u16].map(u16::to_le_bytes).concat());
        file.extend([size, offset].map(u32::to_le_bytes).concat());
        file.extend([0, 0]);
        file
    }

    fn crc(text: &str) -> u32 {
        let mut crc = flate2::Crc::new();
        crc.update(text.as_bytes());
        crc.sum()
    }

    #[test]
    fn an_entry_of_a_zip_archive_is_a_source() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let (one, two) = (format!("{LINE}\n"), format!("{LINE}\n").repeat(3));
        std::fs::write(&path, zip(&[("one.jsonl", &one), ("two.jsonl", &two), ("x", "y")])).unwrap();
        let entry = |name: &str| SourceMember::Entry(name.to_owned());
        assert_eq!(words(&path, &entry("one.jsonl")).unwrap().len(), 1);
        assert_eq!(words(&path, &entry("two.jsonl")).unwrap(), ["find the walrus"; 3]);
        assert_eq!(words(&path, &entry("none")).unwrap_err().problem, Problem::Missing);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(words(&path, &entry("two.jsonl")).is_err(), "{length}");
        }
    }
}
