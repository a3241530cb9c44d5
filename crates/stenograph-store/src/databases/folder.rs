//! Conversations in a folder of JSON files, one file per row, which `FormatInfo::folder` describes. The files are only read. The
//! lines are those of the same rows in a database.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use stenograph::edit::Rewritable as _;
use stenograph::formats::FORMATS;
use stenograph::frame::RECORD_SIZE_MAX;
use stenograph::json::{self, Object};
use stenograph::model::{DatabaseTables, RowFolder, RowTable};
use xxhash_rust::xxh3::Xxh3;

use super::{DatabaseConversation, changed_ns, rows};
use crate::discover::Stat;
use crate::error::{Error, Problem};
use crate::output::Spool;

/// How many files a folder with rows may have. The longest conversations have some ten thousand.
const FILES_MAX: usize = 1_000_000;

/// How large the file of a row may be: a line with it is still a record.
const FILE_SIZE_MAX: u64 = RECORD_SIZE_MAX as u64 / 2;

/// How often a conversation is read again if its files changed meanwhile. Its agent may write all the time.
const ATTEMPTS: usize = 3;

/// The extension of all files.
const EXTENSION: &str = "json";

/// A folder with conversations.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    tables: DatabaseTables,
    layout: RowFolder,
}

/// The file of a row.
#[derive(Debug)]
struct RowFile {
    path: PathBuf,
    /// The id of the row.
    name: String,
    stat: Stat,
    /// Whether it is a file itself: nothing is read through a link, which may lead anywhere.
    is_file: bool,
}

/// A conversation while its lines are written.
struct LineWriter<'w> {
    folder: &'w Folder,
    /// The id of the conversation.
    session: &'w str,
    out: &'w mut Spool,
    line: Vec<u8>,
}

fn described() -> &'static [(DatabaseTables, RowFolder)] {
    static ALL: OnceLock<Vec<(DatabaseTables, RowFolder)>> = OnceLock::new();
    let described = |info: &stenograph::format::FormatInfo| info.database.zip(info.folder);
    ALL.get_or_init(|| FORMATS.iter().filter_map(|format| described(format.info())).collect())
}

/// The tables of a folder of this name.
fn named(path: &Path) -> Option<&'static (DatabaseTables, RowFolder)> {
    let name = path.file_name()?;
    described().iter().find(|(_, layout)| name == layout.name)
}

/// Whether a path has the name of such a folder.
pub(super) fn is_named(path: &Path) -> bool {
    named(path).is_some()
}

/// The folder and the id of the conversation whose session a file may state, by its path alone.
pub(super) fn session_of(path: &Path) -> Option<(&Path, &str)> {
    let table = path.parent()?.parent()?;
    let folder = table.parent()?;
    let (tables, _) = named(folder)?;
    let is_session = table.file_name()? == tables.session.table && path.extension()? == EXTENSION;
    is_session.then_some((folder, path.file_stem()?.to_str()?))
}

/// A path that the file of a session may have.
pub(super) fn session_path(folder: &Path, session: &str) -> PathBuf {
    let table = named(folder).map_or("", |(tables, _)| tables.session.table);
    folder.join(table).join("project").join(format!("{session}.{EXTENSION}"))
}

/// Whether a path is that of a file in such a folder.
pub(super) fn is_inside(path: &Path) -> bool {
    // `part/<message>/<id>.json` is deepest.
    let is_json = path.extension().is_some_and(|ending| ending == EXTENSION);
    is_json && path.ancestors().skip(1).take(3).any(|folder| Folder::at(folder).is_some())
}

impl Folder {
    /// The folder at a path, if it has the layout of a format.
    pub fn at(path: &Path) -> Option<Folder> {
        let (tables, layout) = named(path)?;
        let rows = tables.rows.first()?;
        let has = |table: &str| path.join(table).is_dir();
        let is_one = has(tables.session.table) && has(rows.table);
        is_one.then(|| Folder { path: path.to_owned(), tables: *tables, layout: *layout })
    }

    /// The conversations, with their titles.
    pub fn conversations(&self) -> Result<Vec<DatabaseConversation>, Error> {
        let mut found = Vec::new();
        for project in subfolders(&self.path.join(self.tables.session.table))? {
            for file in files(&project)? {
                let is_read = file.is_file && file.stat.size <= FILE_SIZE_MAX;
                let text = is_read.then(|| fs::read_to_string(&file.path).ok()).flatten();
                let title = text.as_deref().and_then(Object::parse).zip(self.tables.session.title);
                let title = title.and_then(|(object, key)| object.peek_str(key).map(String::from));
                let is_known = found.iter().any(|one: &DatabaseConversation| one.name == file.name);
                if let Some(conversation) = self.conversation(&file.name)?.filter(|_| !is_known) {
                    found.push(DatabaseConversation { title: title.filter(|title| !title.is_empty()), ..conversation });
                }
            }
        }
        Ok(found)
    }

    /// The conversation with this id. No file is opened: their sizes and times are its version.
    pub fn conversation(&self, session: &str) -> Result<Option<DatabaseConversation>, Error> {
        let (mut size, mut latest, mut version) = (0, i64::MIN, Xxh3::new());
        let mut add = |file: RowFile| {
            size += file.stat.size;
            latest = latest.max(file.stat.modified_ns);
            version.update(file.name.as_bytes());
            version.update(&file.stat.size.to_le_bytes());
            version.update(&file.stat.modified_ns.to_le_bytes());
        };
        let Some(file) = self.session_file(session)? else { return Ok(None) };
        add(file);
        for rows in self.tables.rows {
            for row in self.rows(rows, session)? {
                let below = rows.below.map(|below| files(&self.path.join(below.table).join(&row.name))).transpose()?;
                add(row);
                below.into_iter().flatten().for_each(&mut add);
            }
        }
        let changed_ns = changed_ns(latest / 1_000_000, &version.digest().to_le_bytes());
        Ok(Some(DatabaseConversation { name: session.to_owned(), title: None, changed_ns, size }))
    }

    /// Writes the rows of a conversation as lines. Nothing is written if the folder does not have it.
    pub fn copy(&self, session: &str, lines: &mut Spool) -> Result<(), Error> {
        let unreadable = |error| Error::at(&self.path, Problem::Unreadable, error);
        for _ in 0..ATTEMPTS {
            let before = self.conversation(session)?;
            lines.restart().map_err(unreadable)?;
            let mut writer = LineWriter { folder: self, session, out: lines, line: Vec::new() };
            writer.conversation()?;
            if self.conversation(session)? == before {
                break;
            }
        }
        Ok(())
    }

    /// The file of a session, whatever project it belongs to.
    fn session_file(&self, session: &str) -> Result<Option<RowFile>, Error> {
        if !is_name(session) {
            return Ok(None);
        }
        let mut found: Option<RowFile> = None;
        for project in subfolders(&self.path.join(self.tables.session.table))? {
            let path = project.join(format!("{session}.{EXTENSION}"));
            if path.symlink_metadata().is_err() {
                continue;
            }
            let stat = Stat::of(&path).map_err(|error| Error::at(&path, Problem::Unreadable, error))?;
            if found.is_some() {
                return Err(Error::about(&path, Problem::AmbiguousConversation));
            }
            found = Some(RowFile { path, name: session.to_owned(), stat, is_file: true });
        }
        Ok(found)
    }

    /// The rows of a table that belong to a conversation: a folder of them, or one file.
    fn rows(&self, rows: &RowTable, session: &str) -> Result<Vec<RowFile>, Error> {
        let table = self.path.join(rows.table);
        if rows.below.is_some() {
            return files(&table.join(session));
        }
        let path = table.join(format!("{session}.{EXTENSION}"));
        Ok(row_file(path)?.into_iter().collect())
    }
}

impl LineWriter<'_> {
    fn conversation(&mut self) -> Result<(), Error> {
        let tables = self.folder.tables;
        let Some(file) = self.folder.session_file(self.session)? else { return Ok(()) };
        let owner = tables.owner.map(|owner| [("agent", format!("\"{}\"", owner.agent))]);
        let owner = owner.as_ref().map(|owner| ("database", owner.as_slice()));
        self.row(tables.session.table, &file, owner, &[(tables.session.key, self.session)], None)?;
        let head = self.line.clone();
        for rows in tables.rows {
            let inherited = rows::inherited(rows.inherits, &head);
            let inherited = (!inherited.is_empty()).then_some((tables.session.table, inherited.as_slice()));
            self.rows(rows, inherited)?;
        }
        Ok(())
    }

    fn rows(&mut self, rows: &RowTable, of_session: Option<rows::Inherited<'_>>) -> Result<(), Error> {
        let mut files_of_rows = self.folder.rows(rows, self.session)?;
        let Some(below) = &rows.below else {
            for file in files_of_rows {
                self.row(rows.table, &file, of_session, &[(rows.session, self.session)], None)?;
            }
            return Ok(());
        };
        // As the database orders them. The ids begin with a time that repeats after two years.
        files_of_rows.sort_by_cached_key(|file| self.created(file));
        for file in files_of_rows {
            let of_row = [(below.upper_key, file.name.as_str()), (rows.session, self.session)];
            self.row(rows.table, &file, of_session, &of_row, None)?;
            let inherited = rows::inherited(below.inherits, &self.line);
            let created = rows::inherited(CREATED, &self.line);
            let created = created.first().map(|(_, created)| created.as_str());
            for lower in files(&self.folder.path.join(below.table).join(&file.name))? {
                let of_row = [
                    (below.upper_key, lower.name.as_str()),
                    (below.upper, file.name.as_str()),
                    (below.session, self.session),
                ];
                self.row(below.table, &lower, Some((rows.table, &inherited)), &of_row, created)?;
            }
        }
        Ok(())
    }

    /// When a row was made. One that does not state it comes first.
    fn created(&self, file: &RowFile) -> (u64, String) {
        let text = Some(file)
            .filter(|file| file.is_file)
            .and_then(|file| read(file).ok())
            .and_then(|text| String::from_utf8(text).ok())
            .unwrap_or_default();
        let created = self.folder.layout.created.iter().find_map(|path| json::number(&at(&text, path)?));
        (created.unwrap_or(0), file.name.clone())
    }

    /// Writes the line of a row. `of_row` are the columns that its path states, in case that it does not state them itself;
    /// `created` is the time of its upper row.
    fn row(
        &mut self,
        table: &str,
        file: &RowFile,
        inherited: Option<rows::Inherited<'_>>,
        of_row: &[(&str, &str)],
        created: Option<&str>,
    ) -> Result<(), Error> {
        rows::begin(table, inherited, &mut self.line);
        let content = match file.stat.size > FILE_SIZE_MAX {
            _ if !file.is_file => Err(("is a link, or no file".to_owned(), Vec::new())),
            true => Err((format!("{} bytes are too many for the file of a row", file.stat.size), Vec::new())),
            false => match String::from_utf8(read(file)?) {
                Ok(text) if json::is_valid(text.trim()) => Ok(text),
                Ok(text) => Err(("is not JSON".to_owned(), text.into_bytes())),
                Err(error) => Err(("is not UTF-8".to_owned(), error.into_bytes())),
            },
        };
        let line = &mut self.line;
        let mut columns: Vec<(&str, String)> = Vec::new();
        let data = match &content {
            Ok(text) => {
                let of_table = |(name, _): &&(&str, _)| *name == table;
                let fields = self.folder.layout.columns.iter().find(of_table).map_or(&[][..], |(_, fields)| *fields);
                let mut object = Object::parse(text).filter(|object| object.duplicate().is_none());
                for (key, column) in fields {
                    let value = object.as_mut().and_then(|object| object.take(key));
                    columns.extend(value.map(|value| (*column, json::compact(value).into_owned())));
                }
                let stated = |path: &&str| at(text, path).filter(|value| json::number(value).is_some());
                let created = self.folder.layout.created.iter().find_map(stated).or(created.map(str::to_owned));
                columns.extend(created.map(|created| ("time_created", created)));
                match object {
                    Some(object) => spelled(&object),
                    None => json::compact(text.trim()).into_owned(),
                }
            }
            Err(_) => String::new(),
        };
        for (column, value) in of_row {
            if !columns.iter().any(|(known, _)| known == column) {
                columns.push((column, json_text(value)));
            }
        }
        for (column, value) in columns {
            rows::column(column, line);
            line.extend_from_slice(value.as_bytes());
        }
        if let Err((problem, bytes)) = &content {
            let path = file.path.strip_prefix(&self.folder.path).unwrap_or(&file.path);
            rows::column("unread", line);
            line.extend_from_slice(json_text(&format!("{}: {problem}", path.display())).as_bytes());
            rows::column("data", line);
            rows::value(rusqlite::types::ValueRef::Text(bytes), line);
        } else {
            rows::column("data", line);
            line.extend_from_slice(data.as_bytes());
        }
        line.push(b'}');
        let written = self.out.write_all(line).and_then(|()| self.out.write_all(b"\n"));
        written.map_err(|error| Error::at(&self.folder.path, Problem::Unreadable, error))
    }
}

/// The time of a row in its line.
const CREATED: &[(&str, &str)] = &[("time_created", "time_created")];

fn json_text(text: &str) -> String {
    stenograph::text::quote(text)
}

/// The raw value at a path of a JSON text.
fn at(text: &str, path: &str) -> Option<String> {
    path.split('.').try_fold(text, |value, key| Object::parse(value)?.peek(key)).map(str::to_owned)
}

/// An object with the fields that are left in it.
fn spelled(object: &Object<'_>) -> String {
    let fields: Vec<String> =
        object.pairs().map(|(key, value)| format!("{}:{}", json_text(key), json::compact(value))).collect();
    format!("{{{}}}", fields.join(","))
}

/// Whether an id can be the name of a file.
fn is_name(id: &str) -> bool {
    matches!(Path::new(id).components().collect::<Vec<_>>().as_slice(), [Component::Normal(_)])
}

/// The folders in a folder, by name.
fn subfolders(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = entries(folder)?;
    found.retain(|path| path.is_dir());
    Ok(found)
}

/// The files of rows in a folder, by name; none if there is no such folder.
fn files(folder: &Path) -> Result<Vec<RowFile>, Error> {
    let is_json = |path: &PathBuf| path.extension().is_some_and(|ending| ending == EXTENSION);
    entries(folder)?.into_iter().filter(is_json).filter_map(|path| row_file(path).transpose()).collect()
}

/// The file of a row; `None` if it was removed meanwhile.
fn row_file(path: PathBuf) -> Result<Option<RowFile>, Error> {
    let Some(name) = path.file_stem().map(|name| name.to_string_lossy().into_owned()) else { return Ok(None) };
    if !is_name(&name) {
        return Ok(None);
    }
    match path.symlink_metadata() {
        Ok(metadata) => {
            let is_file = metadata.is_file();
            Ok(Some(RowFile { stat: Stat::of_metadata(&path, &metadata), name, path, is_file }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::at(&path, Problem::Unreadable, error)),
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |error| Error::at(folder, Problem::Unreadable, error);
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut found = Vec::new();
    for entry in listed {
        if found.len() >= FILES_MAX {
            return Err(Error::about(folder, Problem::TooMany { most: FILES_MAX as u64 }));
        }
        found.push(entry.map_err(unreadable)?.path());
    }
    found.sort_unstable();
    Ok(found)
}

/// The content of a file, which may have grown since its stat.
fn read(file: &RowFile) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = File::open(&file.path).and_then(|open| open.take(FILE_SIZE_MAX).read_to_end(&mut bytes));
    read.map_err(|error| Error::at(&file.path, Problem::Unreadable, error))?;
    Ok(bytes)
}
