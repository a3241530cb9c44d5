//! Conversations inside SQLite databases, zip archives, JSON documents and folders of JSON files. A conversation is a source like a
//! file; its path is that of the database, `#`, and its id: `/home/mira/opencode.db#ses_1`. Only this folder opens databases and
//! archives of agents. It never writes to one.

mod document;
mod folder;
mod restore;
mod rows;
mod sqlite;
mod zip;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use stenograph::Registry;
use stenograph::format::Format;

use crate::discover::{FileId, FoundFile, Stat, conversation_hints, path_hints, registry_path_hints};
use crate::error::{Error, Place, Problem};
use crate::index::catalogue::{FileStamp, Gone, KnownFile, SavedDatabases};
use crate::index::change::is_unchanged;
use crate::output::Spool;
use crate::tail::Warning;
use document::Document;
use folder::Folder;
pub use restore::restore;
use sqlite::Database;
use zip::Archive;

/// The sign between the path of a database and the name of a conversation.
const SEPARATOR: char = '#';

/// The extensions of files with conversations.
pub(crate) const EXTENSIONS: [&str; 5] = ["db", "sqlite", "sqlite3", ARCHIVE_EXTENSION, DOCUMENT_EXTENSION];

/// The extension of archives.
const ARCHIVE_EXTENSION: &str = "eval";

/// The extension of documents. Most files that have it are one conversation.
const DOCUMENT_EXTENSION: &str = "json";

/// The format of the conversations in an archive or a document with this path; `None` if it is the path of a database.
pub(crate) fn archive_format(registry: &'static Registry, container: &Path) -> Option<&'static dyn Format> {
    let is = |extension: &str| container.extension().is_some_and(|ending| ending == extension);
    let (is_archive, is_document) = (is(ARCHIVE_EXTENSION), is(DOCUMENT_EXTENSION));
    registry
        .formats()
        .find(|format| is_archive && format.info().archive.is_some() || is_document && format.info().document.is_some())
}

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseConversation {
    /// Its name, which identifies it in the database.
    pub name: String,
    /// The title of its conversation, if the database states one.
    pub title: Option<String>,
    /// When it changed last, in nanoseconds since 1970. The digits below a millisecond are a checksum: every change of the
    /// conversation changes this number.
    pub changed_ns: i64,
    /// About how many bytes it has.
    pub size: u64,
}

/// A file or a folder with conversations.
enum Container {
    Folder(Folder),
    Database(Database),
    Archive(Archive),
    Document(Document),
}

impl Container {
    fn conversations(&self) -> Result<Vec<DatabaseConversation>, Error> {
        match self {
            Container::Folder(folder) => folder.conversations(),
            Container::Database(database) => database.conversations(),
            Container::Archive(archive) => Ok(archive.conversations().collect()),
            Container::Document(document) => Ok(document.conversations().collect()),
        }
    }

    fn conversation(&self, name: &str) -> Result<Option<DatabaseConversation>, Error> {
        match self {
            Container::Folder(folder) => folder.conversation(name),
            Container::Database(database) => database.conversation(name),
            Container::Archive(archive) => Ok(archive.conversations().find(|conversation| conversation.name == name)),
            Container::Document(document) => {
                Ok(document.conversations().find(|conversation| conversation.name == name))
            }
        }
    }

    fn copy(&self, name: &str, to: &mut Spool) -> Result<(), Error> {
        match self {
            Container::Folder(folder) => folder.copy(name, to),
            Container::Database(database) => database.copy(name, to),
            Container::Archive(archive) => archive.copy(name, to),
            Container::Document(document) => document.copy(name, to),
        }
    }
}

/// Opens the file or folder at a path; `None` if it has no conversations of a known format.
fn open(path: &Path) -> Result<Option<Container>, Error> {
    if let Some(folder) = Folder::at(path) {
        return Ok(Some(Container::Folder(folder)));
    }
    let expected = path_hints(path).format.filter(|format| format.info().database.is_some());
    let mut file = File::open(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    match is_database(&mut file) {
        true => Ok(Database::open(path, expected)?.map(Container::Database)),
        false if is_archive(&mut file) => Ok(Archive::open(path, file)?.map(Container::Archive)),
        false if expected.is_some() && file.metadata().is_ok_and(|metadata| metadata.len() > 0) => {
            Err(Error::about(path, Problem::NoDatabase))
        }
        false => match document::members(path, &mut file) {
            Some(members) => Ok(Some(Container::Document(Document::open(path, file, &members)?))),
            None => Ok(None),
        },
    }
}

/// Whether an open file begins like a database.
fn is_database(file: &mut File) -> bool {
    begins_with(file, b"SQLite format 3\0")
}

/// Whether an open file begins like a zip archive.
fn is_archive(file: &mut File) -> bool {
    begins_with(file, b"PK\x03\x04")
}

fn begins_with(file: &mut File, magic: &[u8]) -> bool {
    let mut first = Vec::new();
    // Reading a pipe would take its first bytes.
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let size = magic.len() as u64;
    let read = file.rewind().and_then(|()| file.take(size).read_to_end(&mut first)).and_then(|_| file.rewind());
    read.is_ok() && first == magic
}

/// The database and the name of the conversation that a path means; `None` if it is an ordinary path. No file is accessed.
pub fn split(path: &Path) -> Option<(&Path, &str)> {
    let text = path.to_str()?;
    text.match_indices(SEPARATOR).find_map(|(at, _)| {
        let (database, name) = (text.get(..at)?, text.get(at + 1..)?);
        let database = Path::new(database);
        let ending = database.extension().and_then(|ending| ending.to_str());
        let is_database = ending.is_some_and(|ending| EXTENSIONS.contains(&ending));
        let is_folder = || folder::is_named(database) && !name.contains(std::path::is_separator);
        (!name.is_empty() && (is_database || is_folder())).then_some((database, name))
    })
}

/// The path whose place tells to which agent a conversation belongs: that of its database, or of the file of its session.
pub(crate) fn place_of(container: &Path, name: &str) -> PathBuf {
    if folder::is_named(container) { folder::session_path(container, name) } else { container.to_owned() }
}

/// The path of the conversation whose session a file in a folder of an agent states.
pub fn conversation_stated_by(path: &Path) -> Option<PathBuf> {
    let (folder, name) = folder::session_of(path)?;
    Folder::at(folder).map(|_| conversation_path(folder, name))
}

/// The path of the conversation of this name in the database at a path, or in the folder that has this file.
pub(crate) fn named(path: &Path, name: &str) -> Option<PathBuf> {
    let container = folder::session_of(path).map_or(path, |(folder, _)| folder);
    open(container).ok()??.conversation(name).ok()?.map(|found| conversation_path(container, &found.name))
}

/// The path of a conversation.
pub fn conversation_path(database: &Path, name: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(SEPARATOR.to_string());
    path.push(name);
    PathBuf::from(path)
}

/// The same path with the links in it resolved, as [`fs::canonicalize`] gives it.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    match conversation_of(path) {
        Some((database, name)) => Ok(conversation_path(&fs::canonicalize(database)?, name)),
        None => fs::canonicalize(path),
    }
}

/// Like [`split`], if no file has this path and the database exists.
fn conversation_of(path: &Path) -> Option<(&Path, &str)> {
    split(path).filter(|(database, _)| database.exists() && path.symlink_metadata().is_err())
}

/// Whether a path is that of a conversation.
pub fn is_conversation(path: &Path) -> bool {
    conversation_of(path).is_some()
}

/// Whether a path is that of a database or of a conversation of one, which only an agent changes.
pub(crate) fn is_inside(path: &Path) -> bool {
    is_conversation(path) || folder::is_inside(path) || File::open(path).is_ok_and(|mut file| is_database(&mut file))
}

/// Whether a path is that of a file, a folder or a link, or of a conversation whose database exists.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok() || is_conversation(path)
}

/// Whether a database exists and has no conversation of this name any more. A database that cannot be read proves nothing.
pub(crate) fn is_gone(path: &Path) -> bool {
    let Some((database, name)) = conversation_of(path) else { return true };
    let found = open(database).and_then(|database| database.map_or(Ok(None), |database| database.conversation(name)));
    matches!(found, Ok(None))
}

/// Opens a file, or the current bytes of a conversation in a temporary file that has no name.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    match open_conversation(path)? {
        Some((file, _)) => Ok(file),
        None => File::open(path),
    }
}

/// Opens a conversation in a temporary file that has no name, with its exact stat. `None` if the path is not that of a conversation.
pub(crate) fn open_conversation(path: &Path) -> io::Result<Option<(File, Stat)>> {
    let Some((database, name)) = conversation_of(path) else { return Ok(None) };
    let missing = || io::Error::from(Error::about(path, Problem::NoSuchConversation));
    let id = FileId::of(database, &fs::metadata(database)?);
    let database = open(database)?.ok_or_else(missing)?;
    // The stat is the older one: if the conversation changes meanwhile, it is read again later.
    let found = database.conversation(name)?.ok_or_else(missing)?;
    let mut spool = Spool::new()?;
    database.copy(name, &mut spool)?;
    let mut file = spool.into_file()?;
    file.rewind()?;
    let size = file.metadata()?.len();
    Ok(Some((file, Stat { size, ..conversation_stat(id, &found) })))
}

/// The path to read instead of a database: that of its only conversation. `None` if the open file is not a database.
pub(crate) fn only_conversation(path: &Path, file: &mut File) -> Result<Option<PathBuf>, Error> {
    if let Some(conversation) = conversation_stated_by(path) {
        return Ok(Some(conversation));
    }
    let is_container = is_database(file) || is_archive(file) || folder::is_named(path);
    if !is_container && document::members(path, file).is_none() {
        return Ok(None);
    }
    let Some(database) = open(path)? else { return Ok(None) };
    match database.conversations()?.as_slice() {
        [only] => Ok(Some(conversation_path(path, &only.name))),
        [] => Err(Error::about(path, Problem::NoConversations)),
        several => Err(Error::about(path, Problem::Conversations { count: several.len() as u64 })),
    }
}

/// The conversations of a database, the last changed first; `None` if the file is not a database of a known format.
pub fn conversations(path: &Path) -> Result<Option<Vec<DatabaseConversation>>, Error> {
    let Some(database) = open(path)? else { return Ok(None) };
    let mut found = database.conversations()?;
    found.sort_by(|one, other| (other.changed_ns, &one.name).cmp(&(one.changed_ns, &other.name)));
    Ok(Some(found))
}

/// Whether the file at a path may be a database or an archive, or the session of a conversation in a folder. Only its name is looked
/// at.
pub(crate) fn may_be(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    folder::session_of(path).is_some()
        || ending.is_some_and(|ending| EXTENSIONS.contains(&ending) && ending != DOCUMENT_EXTENSION)
}

/// Whether a file that was found may be a document with conversations, and is not known as a file that is none.
fn may_be_document(found: &FoundFile, known: &HashMap<PathBuf, KnownFile>) -> bool {
    found.path.extension().is_some_and(|ending| ending == DOCUMENT_EXTENSION)
        && known.get(&found.path).is_none_or(|known| known.stamp != FileStamp::from(found.stat))
}

/// The state of a database, which every change of a conversation changes: that of the file and of its write-ahead log together.
fn state(found: &FoundFile) -> Stat {
    let mut log = found.path.as_os_str().to_owned();
    log.push("-wal");
    match Stat::of(Path::new(&log)) {
        Ok(log) => Stat {
            size: found.stat.size + log.size,
            modified_ns: found.stat.modified_ns.max(log.modified_ns),
            ..found.stat
        },
        Err(_) => found.stat,
    }
}

/// The conversations of a database that was found.
pub(crate) struct FoundConversations {
    /// The conversations, as files.
    pub files: Vec<FoundFile>,
    /// The state of the database, if it is not the one that the index knows.
    pub changed: Option<FileStamp>,
}

/// The conversations of a database that was found; `None` if it is not a database. `saved` and `known` are what the index knows: a
/// database that is unchanged since is not opened.
pub(crate) fn found_in(
    found: &FoundFile,
    saved: &SavedDatabases,
    known: &HashMap<PathBuf, KnownFile>,
) -> Result<Option<FoundConversations>, Error> {
    if folder::is_inside(&found.path) && conversation_stated_by(&found.path).is_none() {
        // The file of a row is no source of its own.
        return Ok(Some(FoundConversations { files: Vec::new(), changed: None }));
    }
    if !may_be(&found.path) && !may_be_document(found, known) {
        return Ok(None);
    }
    // All conversations have the place of their container.
    let place = registry_path_hints(found.hints.registry, &found.path);
    let known_file = |path: PathBuf, stamp: FileStamp| {
        let id = FileId { device: stamp.device, inode: stamp.inode };
        let stat = Stat { id, size: stamp.size, modified_ns: stamp.changed };
        let hints = split(&path).map(|(container, name)| conversation_hints(&place, container, name));
        FoundFile { hints: hints.unwrap_or_else(|| place.clone()), stat, path }
    };
    let state = FileStamp::from(state(found));
    let file = |container: (&Path, FileId), conversation: DatabaseConversation| {
        let path = conversation_path(container.0, &conversation.name);
        let stamp = FileStamp::from(conversation_stat(container.1, &conversation));
        // An unchanged conversation still has its size.
        let before = known.get(&path).map(|known| known.stamp);
        let same = before.filter(|before| FileStamp { size: stamp.size, ..*before } == stamp);
        known_file(path, same.unwrap_or(stamp))
    };
    if let Some((container, name)) = folder::session_of(&found.path)
        && let Some(folder) = Folder::at(container)
    {
        let unreadable = |error| Error::at(container, Problem::Unreadable, error);
        let id = FileId::of(container, &fs::metadata(container).map_err(unreadable)?);
        let files = folder.conversation(name)?.into_iter().map(|one| file((container, id), one)).collect();
        return Ok(Some(FoundConversations { files, changed: None }));
    }
    if saved.get(&found.path).is_some_and(|(before, seen)| is_unchanged(before, *seen, &state)) {
        let is_inside = |path: &Path| split(path).is_some_and(|(database, _)| database == found.path);
        let inside = known.iter().filter(|(path, known)| known.gone == Gone::There && is_inside(path));
        let mut files: Vec<FoundFile> = inside.map(|(path, known)| known_file(path.clone(), known.stamp)).collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        return Ok(Some(FoundConversations { files, changed: None }));
    }
    let inside = match conversations(&found.path) {
        Ok(Some(inside)) => inside,
        Ok(None) => return Ok(None),
        // Any program may have a file of this name in a place that belongs to no agent.
        Err(error) if found.hints.format.is_none() && !is_about_archive(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let files = inside.into_iter().map(|one| file((&found.path, found.stat.id), one)).collect();
    Ok(Some(FoundConversations { files, changed: Some(state) }))
}

/// Whether an archive has conversations that cannot be read.
fn is_about_archive(error: &Error) -> bool {
    matches!(
        error.problem,
        Problem::ArchiveFileDamaged
            | Problem::AmbiguousMembers
            | Problem::AmbiguousConversations
            | Problem::LargeConversation
            | Problem::Bomb { .. }
    )
}

/// The same files, with the conversations of databases instead of the databases.
pub(crate) fn expanded(
    found: Vec<FoundFile>,
    saved: &SavedDatabases,
    known: &HashMap<PathBuf, KnownFile>,
    warnings: &mut Vec<Warning>,
) -> Vec<FoundFile> {
    let mut all = Vec::with_capacity(found.len());
    for file in found {
        match found_in(&file, saved, known) {
            Ok(Some(inside)) => all.extend(inside.files),
            Ok(None) => all.push(file),
            Err(error) => warnings.push(warning(&file.path, &error)),
        }
    }
    all
}

/// A warning about a file that was found, or about the one among its rows that cannot be read.
pub(crate) fn warning(found: &Path, error: &Error) -> Warning {
    match &error.place {
        Place::Path(path) => Warning::new(path, error.without_place()),
        _ => Warning::new(found, error.without_place()),
    }
}

fn conversation_stat(database: FileId, conversation: &DatabaseConversation) -> Stat {
    let name = xxhash_rust::xxh3::xxh3_64_with_seed(conversation.name.as_bytes(), database.inode);
    let id = FileId { device: database.device, inode: name };
    Stat { id, size: conversation.size, modified_ns: conversation.changed_ns }
}

/// The exact stat of a conversation. Its bytes are read to count them.
pub(crate) fn stat(path: &Path) -> io::Result<Option<Stat>> {
    Ok(open_conversation(path)?.map(|(_, stat)| stat))
}

/// A time of change from a time in milliseconds and everything by which versions of a conversation differ.
fn changed_ns(millis: i64, version: &[u8]) -> i64 {
    let checksum = xxhash_rust::xxh3::xxh3_64(version) % 1_000_000;
    millis.saturating_mul(1_000_000).saturating_add(i64::try_from(checksum).unwrap_or(0))
}
