//! The one error of this crate: where, what, and the way out. What is wrong inside a transcript is a note, never an error.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::decode::Container;

/// What is opened or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file or folder.
    Path(PathBuf),
    /// Standard input.
    StandardInput,
    /// Standard output.
    StandardOutput,
    /// A file that only this process sees.
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

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is nothing of that name.
    #[error("no such file or folder")]
    Missing,
    /// It may not be read or written.
    #[error("permission denied")]
    Denied,
    /// It is a folder.
    #[error("is a folder")]
    Folder,
    /// What has the name of its lock is no lock.
    #[error("cannot be locked: its lock file is somebody else's file")]
    LockNameTaken,
    /// It is marked to be rebuilt before anything else is done with it.
    #[error("is marked as out of date (.dirty)")]
    OutOfDate,
    /// What is to be written is a folder.
    #[error("is a folder")]
    OutputIsFolder,
    /// The folder of what is to be written is not there.
    #[error("the folder to write it into is not there")]
    OutputFolderMissing,
    /// It ends in the middle of its compressed data.
    #[error("the {0} data ends in the middle")]
    Truncated(Container),
    /// Its compressed data makes no sense.
    #[error("the {0} data is damaged")]
    Corrupt(Container),
    /// It decodes to absurdly much.
    #[error("{raw} bytes decode to {decoded} and more, {} times as many: a decompression bomb?", decoded / (*raw).max(1))]
    Bomb {
        /// Bytes that came out.
        decoded: u64,
        /// Bytes that went in.
        raw: u64,
    },
    /// It does not fit where it has to be held whole.
    #[error("is larger than {} MiB", size_max >> 20)]
    TooLarge {
        /// What would fit.
        size_max: u64,
    },
    /// It can be read only once, and was.
    #[error("can be read only once")]
    ReadAlready,
    /// What is to be written is the input itself.
    #[error("is the input itself")]
    OwnInput,
    /// Somebody else writes there.
    #[error("{} is writing there", process(*holder))]
    Locked {
        /// The process that does, where it says so.
        holder: Option<u32>,
    },
    /// It was taken away while it was being written.
    #[error("was removed while it was being written")]
    Gone,
    /// It is there already.
    #[error("is there already")]
    Exists,
    /// What is to be written exists, and nobody asked to replace it.
    #[error("exists already")]
    OutputExists,
    /// A process has it open for writing.
    #[error("process {process} has it open for writing")]
    OpenElsewhere {
        /// The process.
        process: u32,
    },
    /// A recording was cut off there.
    #[error("a recording was cut off here")]
    CutOff,
    /// It is something else than a native stream.
    #[error("is there already, and is no native stream")]
    NotNative,
    /// It is no name for a single file or folder.
    #[error("is not a name for one file or folder")]
    BadName,
    /// It is no name that a context can have.
    #[error("is not the name of a context")]
    BadContext,
    /// What was said of a recording beforehand makes no sense.
    #[error("has a value that it cannot have")]
    BadSetting,
    /// It is not laid out as anything that can be recorded into or completed.
    #[error("no layout is known here")]
    NoLayout,
    /// It was changed by somebody else, so that what was recorded cannot be put there.
    #[error("was changed by somebody else since")]
    Changed,
    /// Nobody can say what it is.
    #[error("the format is unknown")]
    NoFormat,
    /// It is there already, and holds something else.
    #[error("is there already and holds something else")]
    Differs,
    /// Something in it would be put outside of its own folder, or is a link.
    #[error("holds a link, or an entry that leads out of its folder")]
    LeadsOut,
    /// A file says that it is to be read or written, and it is outside of the folders that the user named, or is a link.
    #[error("is outside the folder of the recording, or is a link: left alone")]
    Outside,
    /// It is a link, a pipe or a device, and can be put away neither as a file nor as a folder.
    #[error("is neither a file nor a folder")]
    Odd,
    /// It still goes on.
    #[error("is still running")]
    Running,
    /// There is more in it than anything sensible has.
    #[error("holds more than {most} files and folders")]
    TooMany {
        /// How much there may be.
        most: u64,
    },
    /// It was never kept, or was forgotten.
    #[error("no copy of it is kept")]
    NotKept,
    /// What was kept of it is damaged.
    #[error("what was kept of it is damaged")]
    Damaged,
    /// The log of the archive is damaged.
    #[error("the log of the archive is damaged from byte {at} on")]
    LogDamaged {
        /// Where the first commit begins that cannot be read.
        at: u64,
    },
    /// It was written by a later version of this program.
    #[error("was written by a later version of steno")]
    Newer,
    /// It was written by an earlier version of this program, and cannot be read any more.
    #[error("was written by an earlier version of steno")]
    Older,
    /// There is no room.
    #[error("there is no room left")]
    Full,
    /// Reading failed.
    #[error("cannot be read")]
    Unreadable,
    /// Writing failed.
    #[error("cannot be written")]
    Unwritable,
    /// The index is damaged; it can be made anew.
    #[error("the index is damaged")]
    IndexDamaged,
    /// Nothing was indexed yet.
    #[error("nothing is indexed yet")]
    IndexMissing,
    /// A later version of this program made the index.
    #[error("the index has version {found}, and this steno knows versions up to {known}")]
    IndexNewer {
        /// The version of the index.
        found: i64,
        /// The latest version that this program knows.
        known: i64,
    },
    /// Writing failed, and so did taking back what was written.
    #[error("cannot be written, and some of it may be there all the same")]
    InDoubt,
}

/// An error of opening, reading or writing.
#[derive(Debug)]
pub struct Error {
    /// Where.
    pub place: Place,
    /// What.
    pub problem: Problem,
    source: Option<io::Error>,
}

impl Error {
    /// An error of which nothing more is known.
    pub fn new(place: &Place, problem: Problem) -> Error {
        Error { place: place.clone(), problem, source: None }
    }

    /// An error from the system; `otherwise` is what it is when the system's word says nothing better.
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

    /// An error from an engine that has errors of its own.
    pub(crate) fn from_engine(place: &Place, problem: Problem, error: impl fmt::Display) -> Error {
        Error { source: Some(io::Error::other(error.to_string())), ..Error::new(place, problem) }
    }

    /// An error about a path, from the system.
    pub fn at(path: &Path, otherwise: Problem, source: io::Error) -> Error {
        Error::from_system(&Place::Path(path.to_owned()), otherwise, source)
    }

    /// An error about a path of which nothing more is known.
    pub fn about(path: &Path, problem: Problem) -> Error {
        Error::new(&Place::Path(path.to_owned()), problem)
    }

    /// The same error, of what the user knows about.
    pub(crate) fn about_path(mut self, path: &Path) -> Error {
        self.place = Place::Path(path.to_owned());
        self
    }

    /// The same error once more, for somebody else it concerns.
    pub fn again(&self) -> Error {
        let source = self.source.as_ref().map(|source| match source.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(source.kind(), source.to_string()),
        });
        Error { place: self.place.clone(), problem: self.problem, source }
    }

    /// The same error where what was refused may be found all the same.
    pub fn in_doubt(self) -> Error {
        Error { problem: Problem::InDoubt, ..self }
    }

    /// The way out, where there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self.problem {
            Problem::Missing => "check the spelling of the path",
            Problem::Denied => "check who may read or write it: ls -l shows it",
            Problem::Folder => "name the files in it, for example with a pattern of the shell: folder/*.jsonl",
            Problem::OutputIsFolder => "name the file to write, for example FOLDER/session.jsonl",
            Problem::OutputFolderMissing => "make the folder first: mkdir -p FOLDER",
            Problem::Truncated(_) => {
                "the file was probably copied while it was being written, or only in part: copy it again"
            }
            Problem::Corrupt(_) => "copy the file again; if it is not compressed at all, it is no transcript either",
            Problem::Bomb { .. } => "if you trust the file, decompress it yourself and name the result",
            Problem::TooLarge { .. } => "cut the file into smaller ones; everything else works on files of any size",
            Problem::ReadAlready => "name a file instead",
            Problem::OwnInput => "write to another file: an input is never written over",
            Problem::Locked { .. } => "wait until that process ends",
            Problem::LockNameTaken => "move that file away; it has the name of the file and .lock after it",
            Problem::OutOfDate => "steno record and steno compact rebuild it first",
            Problem::OpenElsewhere { .. } => "wait until that process ends: what it writes meanwhile would be lost",
            Problem::Gone => "put the folder back, or start a new recording somewhere else",
            Problem::NotNative => "name another file; steno convert FILE --to steno makes a stream of one",
            Problem::CutOff => "steno recover PATH completes it; to go on, record under another name",
            Problem::Exists => "choose another name, or remove what is there",
            Problem::OutputExists => "name another file, or replace this one with --force",
            Problem::BadSetting => "steno record --help says what each --set takes",
            Problem::BadContext => {
                "names have letters, digits, hyphens and underscores, and no hyphen first; new is not one: it asks for a new context"
            }
            Problem::BadName => "use letters, digits, points, hyphens and underscores, and no separators",
            Problem::NoLayout => "name the file or folder that was given to steno record",
            Problem::Changed => "the journal beside it has everything: steno show reads it",
            Problem::NoFormat => "steno formats lists what can be read; --from FORMAT says what this is",
            Problem::Differs => "compare the two, and rename or remove the one that is not wanted",
            Problem::LeadsOut => "do not trust it: look at it with tar -tvzf before unpacking anything by hand",
            Problem::Outside => "do not trust the journal: its first line names files that are not beside it",
            Problem::Odd => "replace it by what it stands for, or remove it",
            Problem::Running => "wait until it ends; if it was broken off, steno recover completes it",
            Problem::TooMany { .. } => "name a folder that is a single run",
            Problem::NotKept => "steno archive list shows what is kept",
            Problem::Damaged => "steno archive verify says what else is damaged; an older version of it may be whole",
            Problem::LogDamaged { .. } => {
                "steno archive verify --repair rebuilds the log from the packs, and says what is lost"
            }
            Problem::Older => "move that folder away, then run steno index: it archives again what still exists",
            Problem::Newer => "use the version of steno that wrote it, or a later one",
            Problem::Full if self.place == Place::Temporary => {
                "make room there, or let the variable TMPDIR name a folder that has some"
            }
            Problem::Full => "make room there, or write somewhere else",
            Problem::InDoubt => "when the disk is well again, look with steno show whether it is there",
            Problem::IndexDamaged => "steno index rebuilds it; the archive is not touched",
            Problem::IndexNewer { .. } => {
                "use the steno that made it, or a later one; or remove the folder, and steno index rebuilds it"
            }
            Problem::IndexMissing => "steno index reads what the agents on this machine wrote",
            Problem::Unreadable | Problem::Unwritable => return None,
        })
    }

    /// The error inside an error of input or output, where this crate put one there.
    pub fn inside(error: &io::Error) -> Option<&Error> {
        error.get_ref()?.downcast_ref()
    }
}

/// The process that writes somewhere, where it is known.
fn process(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |holder| format!("process {holder}"))
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.problem)?;
        match (&self.source, self.problem) {
            (
                Some(source),
                Problem::Unreadable
                | Problem::Unwritable
                | Problem::InDoubt
                | Problem::Corrupt(_)
                | Problem::Damaged
                | Problem::IndexDamaged,
            ) => {
                write!(formatter, ": {source}")
            }
            _ => Ok(()),
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
