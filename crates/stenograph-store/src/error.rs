//! The error type of this crate: a place, a problem, and a hint. A defect inside a transcript is a note, never an error.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::decode::Container;

/// The place of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file or folder.
    Path(PathBuf),
    /// Standard input.
    StandardInput,
    /// Standard output.
    StandardOutput,
    /// A temporary file of this process.
    Temporary,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Path(path) => write!(formatter, "{}", path.display()),
            Place::StandardInput => formatter.write_str("standard input"),
            Place::StandardOutput => formatter.write_str("standard output"),
            Place::Temporary => formatter.write_str("temporary file"),
        }
    }
}

/// The problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file or folder does not exist.
    #[error("no such file or folder")]
    Missing,
    /// The permissions do not allow it.
    #[error("permission denied")]
    Denied,
    /// It is a folder.
    #[error("is a folder")]
    Folder,
    /// Another file has the name of the lock file.
    #[error("cannot be locked: another file has the name of its lock file")]
    LockNameTaken,
    /// It is marked as out of date and must be rebuilt first.
    #[error("is marked as out of date (.dirty)")]
    OutOfDate,
    /// The output path is a folder.
    #[error("is a folder")]
    OutputIsFolder,
    /// The folder of the output does not exist.
    #[error("the output folder does not exist")]
    OutputFolderMissing,
    /// The compressed data is truncated.
    #[error("the {0} data is truncated")]
    Truncated(Container),
    /// The compressed data is damaged.
    #[error("the {0} data is damaged")]
    Corrupt(Container),
    /// The compressed data expands too much.
    #[error("{raw} bytes decompress to over {decoded} bytes ({} times as many): possibly a decompression bomb", decoded / (*raw).max(1))]
    Bomb {
        /// The number of decompressed bytes.
        decoded: u64,
        /// The number of compressed bytes.
        raw: u64,
    },
    /// It is too large to hold in memory.
    #[error("is larger than {} MiB", size_max >> 20)]
    TooLarge {
        /// The size limit.
        size_max: u64,
    },
    /// It can be read only once, and was.
    #[error("can be read only once")]
    ReadAlready,
    /// The output is the input itself.
    #[error("is the input itself")]
    OwnInput,
    /// Another process writes to it.
    #[error("{} is writing to it", process(*holder))]
    Locked {
        /// That process, if it is known.
        holder: Option<u32>,
    },
    /// It was removed while it was being written.
    #[error("was removed while it was being written")]
    Gone,
    /// It already exists.
    #[error("already exists")]
    Exists,
    /// The output already exists, and the user did not ask to replace it.
    #[error("already exists")]
    OutputExists,
    /// A process has it open for writing.
    #[error("process {process} has it open for writing")]
    OpenElsewhere {
        /// The process.
        process: u32,
    },
    /// A recording was interrupted there.
    #[error("a recording was interrupted here")]
    CutOff,
    /// It already exists and is not a native stream.
    #[error("already exists and is not a native stream")]
    NotNative,
    /// It is not a valid name of a file or folder.
    #[error("is not a valid file or folder name")]
    BadName,
    /// It is not a valid name of a context.
    #[error("is not a valid context name")]
    BadContext,
    /// A setting of a recording has an invalid value.
    #[error("has an invalid value")]
    BadSetting,
    /// A setting of a recording is none of its possible values.
    #[error("is not a valid {setting}; use {choices}")]
    BadChoice {
        /// The setting.
        setting: &'static str,
        /// Its possible values.
        choices: &'static str,
    },
    /// It has no known layout, so nothing can be recorded or completed there.
    #[error("no known layout")]
    NoLayout,
    /// Another program changed it, so the recording cannot be written there.
    #[error("was changed by another program")]
    Changed,
    /// A database has no conversation of this name.
    #[error("the database has no conversation of that name")]
    NoSuchConversation,
    /// A fork has only its new records, and those before it are nowhere.
    #[error("the session with the records before the fork is missing or damaged")]
    HistoryMissing,
    /// A database has no conversations.
    #[error("the database has no conversations yet")]
    NoConversations,
    /// A database has several conversations, of which one must be named.
    #[error("ambiguous: {count} conversations in this database")]
    Conversations {
        /// Their number.
        count: u64,
    },
    /// A conversation in a database, which only its agent changes.
    #[error("is in the database of an agent, which steno never changes")]
    InDatabase,
    /// Another program locks the database, or changes it all the time.
    #[error("another program has locked the database")]
    DatabaseBusy,
    /// A file that should be a database is none.
    #[error("cannot be read as a SQLite database: it is encrypted, damaged, or none")]
    NoDatabase,
    /// A database is damaged.
    #[error("the database is damaged, or was copied while it was being written")]
    DatabaseDamaged,
    /// A transaction in a database was interrupted.
    #[error("the database has a transaction that was interrupted")]
    DatabaseHalfWritten,
    /// A database lacks a column that all known versions of the agent have.
    #[error("the database has no column {table}.{column}: a version of the agent that steno does not know wrote it")]
    NewerDatabase {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A zip archive is damaged.
    #[error("the zip archive is damaged or incomplete")]
    ArchiveFileDamaged,
    /// A zip archive has two members of one name, or members that share bytes.
    #[error("the zip archive has members with one name or with the same bytes: it is unclear which of them counts")]
    AmbiguousMembers,
    /// Two files state a conversation of one id.
    #[error("two files have the conversation of this id: it is unclear which of them counts")]
    AmbiguousConversation,
    /// A document has two conversations of one name.
    #[error("two conversations in it have one name: it is unclear which of them counts")]
    AmbiguousConversations,
    /// A document has a conversation over the size limit.
    #[error("a conversation in it is too large")]
    LargeConversation,
    /// Its format is unknown.
    #[error("the format is unknown")]
    NoFormat,
    /// It already exists with different contents.
    #[error("already exists with different contents")]
    Differs,
    /// It contains a link, or an entry that would be placed outside its folder.
    #[error("contains a link, or an entry outside its folder")]
    LeadsOut,
    /// A file refers to this path, which is a link, or outside the folders that the user named.
    #[error("is a link, or is outside the folder of the recording: not touched")]
    Outside,
    /// It is a link, a pipe or a device, which cannot be archived.
    #[error("is neither a file nor a folder")]
    Odd,
    /// It is still running.
    #[error("is still running")]
    Running,
    /// It contains too many files and folders.
    #[error("contains more than {most} files and folders")]
    TooMany {
        /// The limit.
        most: u64,
    },
    /// It was never archived, or was forgotten.
    #[error("the archive has no copy of it")]
    NotKept,
    /// Its archived copy is damaged.
    #[error("the archived copy is damaged")]
    Damaged,
    /// The archive log is damaged.
    #[error("the archive log is damaged from byte {at}")]
    LogDamaged {
        /// The offset of the first unreadable commit.
        at: u64,
    },
    /// It was written by a later version of this program.
    #[error("was written by a later version of steno")]
    Newer,
    /// It was written by an earlier version of this program, in a format that is no longer supported.
    #[error("was written by an earlier version of steno")]
    Older,
    /// The disk is full.
    #[error("no space left on the device")]
    Full,
    /// Reading failed.
    #[error("cannot be read")]
    Unreadable,
    /// Writing failed.
    #[error("cannot be written")]
    Unwritable,
    /// A text is not a tag.
    #[error("not a valid tag")]
    BadTag,
    /// A title or note is empty.
    #[error("the text is empty")]
    EmptyMark,
    /// A title is too long.
    #[error("the title has more than {most} characters")]
    LongTitle {
        /// The limit.
        most: usize,
    },
    /// A note is too long.
    #[error("the note has more than {most} bytes")]
    LongNote {
        /// The limit.
        most: usize,
    },
    /// A session has too many tags.
    #[error("has {most} tags already")]
    TooManyTags {
        /// The limit.
        most: usize,
    },
    /// A session has too many notes.
    #[error("has {most} notes already")]
    TooManyNotes {
        /// The limit.
        most: usize,
    },
    /// A session has no note with this number.
    #[error("has no note {number}")]
    NoNote {
        /// The number.
        number: u32,
    },
    /// The index is damaged; it can be rebuilt.
    #[error("the index is damaged")]
    IndexDamaged,
    /// Nothing is indexed yet.
    #[error("nothing is indexed yet")]
    IndexMissing,
    /// An earlier version of this program wrote the index; it can be rebuilt.
    #[error("an earlier version of steno wrote the index")]
    IndexOlder,
    /// A later version of this program wrote the index.
    #[error("the index has version {found}, but this steno supports only versions up to {known}")]
    IndexNewer {
        /// The version of the index.
        found: i64,
        /// The latest supported version.
        known: i64,
    },
    /// Writing failed, and so did undoing it.
    #[error("cannot be written; part of it may be on disk")]
    InDoubt,
}

/// An error of opening, reading or writing.
#[derive(Debug)]
pub struct Error {
    /// The place.
    pub place: Place,
    /// The problem.
    pub problem: Problem,
    source: Option<io::Error>,
}

impl Error {
    /// An error without a cause.
    pub fn new(place: &Place, problem: Problem) -> Error {
        Error { place: place.clone(), problem, source: None }
    }

    /// An error of the system; `otherwise` is the problem if the system's error is not more specific.
    pub fn from_system(place: &Place, otherwise: Problem, source: io::Error) -> Error {
        if let Some(inside) = Error::inside(&source) {
            return inside.again();
        }
        let problem = match source.kind() {
            io::ErrorKind::NotFound if otherwise == Problem::Unwritable => Problem::OutputFolderMissing,
            io::ErrorKind::NotFound => Problem::Missing,
            io::ErrorKind::PermissionDenied => Problem::Denied,
            io::ErrorKind::IsADirectory => Problem::Folder,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Problem::Full,
            _ => otherwise,
        };
        Error { place: place.clone(), problem, source: Some(source) }
    }

    /// An error of an engine that has its own error type.
    pub(crate) fn from_engine(place: &Place, problem: Problem, error: impl fmt::Display) -> Error {
        Error { source: Some(io::Error::other(error.to_string())), ..Error::new(place, problem) }
    }

    /// An error of the system about a path.
    pub fn at(path: &Path, otherwise: Problem, source: io::Error) -> Error {
        Error::from_system(&Place::Path(path.to_owned()), otherwise, source)
    }

    /// An error about a path, without a cause.
    pub fn about(path: &Path, problem: Problem) -> Error {
        Error::new(&Place::Path(path.to_owned()), problem)
    }

    /// The same error, about a path that the user knows.
    pub(crate) fn about_path(mut self, path: &Path) -> Error {
        self.place = Place::Path(path.to_owned());
        self
    }

    /// A copy of the error, for another receiver.
    pub fn again(&self) -> Error {
        let source = self.source.as_ref().map(|source| match source.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(source.kind(), source.to_string()),
        });
        Error { place: self.place.clone(), problem: self.problem, source }
    }

    /// The same error, if the rejected data may have been written anyway.
    pub(crate) fn in_doubt(self) -> Error {
        Error { problem: Problem::InDoubt, ..self }
    }

    /// The hint, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self.problem {
            Problem::Missing => "check the spelling of the path",
            Problem::Denied => "check its permissions with ls -l",
            Problem::Folder => "name the files in it, for example with a shell pattern: folder/*.jsonl",
            Problem::OutputIsFolder => "name the file to write, for example FOLDER/session.jsonl",
            Problem::OutputFolderMissing => "create the folder first: mkdir -p FOLDER",
            Problem::Truncated(_) => {
                "the file was probably copied only in part, or while it was being written: copy it again"
            }
            Problem::Corrupt(_) => "copy the file again; if it is not compressed, it is not a transcript either",
            Problem::Bomb { .. } => "if you trust the file, decompress it yourself and name the result",
            Problem::TooLarge { .. } => "split the file; other commands accept files of any size",
            Problem::ReadAlready => "name a file instead",
            Problem::OwnInput => "write to another file; steno never overwrites its input",
            Problem::Locked { .. } => "wait until that process ends",
            Problem::LockNameTaken => "move the lock file away: its name is the file name followed by .lock",
            Problem::OutOfDate => "run steno record or steno compact, which rebuild it",
            Problem::OpenElsewhere { .. } => "wait until that process ends; otherwise its writes would be lost",
            Problem::Gone => "put the folder back, or start a new recording somewhere else",
            Problem::NotNative => {
                "name another file; to create a stream from this one, run steno convert FILE --to steno"
            }
            Problem::CutOff => "complete it with steno recover PATH, or record under another name",
            Problem::Exists => "choose another name, or remove the existing one",
            Problem::OutputExists => "name another file, or replace this one with --force",
            Problem::BadSetting | Problem::BadChoice { .. } => "see steno record --help for the values of each --set",
            Problem::BadContext => "use letters, digits, hyphens and underscores, and no hyphen first; new is reserved",
            Problem::BadName => "use letters, digits, dots, hyphens and underscores, and no path separators",
            Problem::NoLayout => "name the file or folder that was given to steno record",
            Problem::Changed => "the journal next to it is complete: read it with steno show",
            Problem::NoSuchConversation => "list the conversations with steno show DATABASE",
            Problem::HistoryMissing => {
                "restore that session first; steno convert converts only the records of the fork"
            }
            Problem::NoConversations => "the agent may still write to it; try again later",
            Problem::Conversations { .. } => "name one of them: DATABASE#CONVERSATION",
            Problem::InDatabase => "write the result to a new file with -o FILE",
            Problem::DatabaseBusy => "wait until that program is done",
            Problem::NoDatabase | Problem::DatabaseDamaged => {
                "copy the database again, together with its -wal file if it has one"
            }
            Problem::DatabaseHalfWritten => "start the agent once: it completes or undoes the transaction",
            Problem::NewerDatabase { .. } => "update steno, or report the version of the agent",
            Problem::ArchiveFileDamaged => "copy the archive again when its program is done",
            Problem::AmbiguousConversation => "compare them, and move the older one to another folder",
            Problem::AmbiguousConversations => "give each of them an id and an epoch of its own",
            Problem::LargeConversation => "let its program write a log with one file for each conversation",
            Problem::AmbiguousMembers => "do not trust it: list its members with unzip -l",
            Problem::NoFormat => "see steno formats for the supported formats, and name this one with --from FORMAT",
            Problem::Differs => "compare the two, then rename or remove one of them",
            Problem::LeadsOut => "do not trust it: list its entries with tar -tvzf before you unpack anything by hand",
            Problem::Outside => "do not trust the journal: its first line names files in other folders",
            Problem::Odd => "replace it with a regular file or folder, or remove it",
            Problem::Running => "wait until it ends; if it was interrupted, complete it with steno recover",
            Problem::TooMany { .. } => "name the folder of a single run",
            Problem::NotKept => "see steno archive list for the archived sessions",
            Problem::Damaged => "run steno archive verify to list all damage; an older version may be intact",
            Problem::LogDamaged { .. } => {
                "run steno archive verify --repair to rebuild the log from the packs; it lists what is lost"
            }
            Problem::Older => "move that folder away, then run steno index to archive the files that still exist",
            Problem::Newer => "use the version of steno that wrote it, or a newer one",
            Problem::Full if self.place == Place::Temporary => {
                "free some space, or set TMPDIR to a folder on another disk"
            }
            Problem::Full => "free some space, or write to another disk",
            Problem::InDoubt => "when the disk works again, check the file with steno show",
            Problem::BadTag => {
                "use at most 64 letters, digits and signs such as - _ . / without spaces, commas and quotes"
            }
            Problem::EmptyMark => "write some text",
            Problem::LongTitle { .. } => "shorten it, or write a note instead",
            Problem::LongNote { .. } => "shorten it, or write several notes",
            Problem::TooManyTags { .. } => "remove one with steno mark SESSION --untag TAG",
            Problem::TooManyNotes { .. } => "remove one with steno mark SESSION --remove-note N",
            Problem::NoNote { .. } => "list the notes with steno mark SESSION",
            Problem::IndexDamaged | Problem::IndexOlder => "run steno index to rebuild it; the archive is not affected",
            Problem::IndexNewer { .. } => {
                "use the version of steno that wrote it, or a newer one; or remove the folder and run steno index"
            }
            Problem::IndexMissing => "run steno index to index the sessions on this machine",
            Problem::Unreadable | Problem::Unwritable => return None,
        })
    }

    /// The error of this crate inside an I/O error, if there is one.
    pub fn inside(error: &io::Error) -> Option<&Error> {
        error.get_ref()?.downcast_ref()
    }
}

/// The name of the process that writes somewhere.
fn process(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |holder| format!("process {holder}"))
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.without_place())
    }
}

impl Error {
    /// The problem and its cause, for a message that names the place in another way.
    pub(crate) fn without_place(&self) -> String {
        match (&self.source, self.problem) {
            (
                Some(source),
                Problem::Unreadable
                | Problem::Unwritable
                | Problem::InDoubt
                | Problem::Corrupt(_)
                | Problem::Damaged
                | Problem::DatabaseDamaged
                | Problem::IndexDamaged
                | Problem::HistoryMissing,
            ) => format!("{}: {source}", self.problem),
            (_, problem) => problem.to_string(),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = error.source.as_ref().map_or(io::ErrorKind::Other, io::Error::kind);
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_has_a_hint() {
        let full = |place| Error::from_system(&place, Problem::Unwritable, io::ErrorKind::StorageFull.into());
        assert!(full(Place::Temporary).hint().is_some_and(|hint| hint.contains("TMPDIR")));
        assert!(full(Place::StandardOutput).hint().is_some());
    }
}
