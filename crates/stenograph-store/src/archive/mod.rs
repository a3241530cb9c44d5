//! The archive: copies of sources, which stay when an agent deletes its own history.
//!
//! `log.jsonl` holds the changes, `packs/` the bytes. A source is cut at fixed offsets; each piece is compressed by itself, so that
//! damage is bounded to it, and a piece that is there already is not stored again. Packs hold a second copy of every commit of the
//! log. [`Archive`] reads and needs no lock: it sees what was committed. [`ArchiveWriter`] writes, one at a time. Nothing here knows
//! what the bytes mean.

mod block;
mod encoding;
mod forgotten;
mod history;
mod line;
mod open;
mod open_source;
mod pack_writer;
mod packs;
mod read;
mod reclaim;
mod repair;
mod source_check;
mod state;
mod verify;
mod writer;

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::error::{Error, Problem};
use crate::files::Files;
use crate::output::{Existing, NewFile};
use crate::tail::Warning;
use history::History;
use packs::{Packs, present};
use state::{Held, State};

pub use block::Damage;
pub use forgotten::Memory;
pub use read::CopyReader;
pub use reclaim::Reclaimed;
pub use repair::Repaired;
pub use source_check::Standing;
pub use verify::{Damaged, Progress, Verified};
pub use writer::{AddOutcome, AddedCopy, ArchiveWriter, Change};

/// Which copy. The number of a copy is never given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyId(pub u32);

impl fmt::Display for CopyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// What is known of a source beside its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The name of its format; empty where it is not known.
    pub format: String,
    /// The session it is of, where that is known.
    pub session: Option<String>,
}

/// A kept copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyInfo {
    /// Which one.
    pub id: CopyId,
    /// Where the source is, or was.
    pub path: PathBuf,
    /// What is known of it.
    pub label: Label,
    /// How long the last version is.
    pub length: u64,
    /// When the source was last changed, as its file system said; nanoseconds since 1970.
    pub modified_ns: i64,
    /// When it was kept for the first time.
    pub first_ms: i64,
    /// When more of it was kept for the last time.
    pub last_ms: i64,
    /// What it was over time, oldest first. A source that grows has one version.
    pub versions: Vec<VersionInfo>,
}

/// What a source was at some time, before it was written anew or cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionInfo {
    /// Which one.
    pub number: u32,
    /// How long it is.
    pub length: u64,
    /// When it was kept for the first time.
    pub first_ms: i64,
    /// When more of it was kept for the last time.
    pub last_ms: i64,
}

/// Which version of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// What the source was when it was last seen.
    Last,
    /// The one of that number.
    Number(u32),
}

/// What becomes of a file that is in the place of one to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// It stays, and that is an error.
    Stays,
    /// It is replaced.
    Replaced,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// What the last versions of all copies are together.
    pub sources: u64,
    /// What the packs and the log take up.
    pub stored: u64,
}

/// An archive, to be read.
#[derive(Debug)]
pub struct Archive {
    files: Arc<dyn Files>,
    folder: PathBuf,
    state: State,
    log_length: u64,
    warnings: Vec<Warning>,
    packs: Packs,
}

impl Archive {
    /// Opens the archive in a folder. Where there is none yet it is empty.
    pub fn open(files: Arc<dyn Files>, folder: &Path) -> Result<Archive, Error> {
        let History { state, good, warnings, .. } = History::load(files.as_ref(), folder)?;
        let packs = Packs::new(Arc::clone(&files), folder);
        Ok(Archive { files, folder: folder.to_owned(), state, log_length: good, warnings, packs })
    }

    /// Sees what was committed since.
    pub fn refresh(&mut self) -> Result<(), Error> {
        *self = Archive::open(Arc::clone(&self.files), &self.folder)?;
        Ok(())
    }

    /// What is odd about the log.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// All copies, in the order they were first kept in.
    pub fn copies(&self) -> impl Iterator<Item = CopyInfo> {
        self.state.infos()
    }

    /// One copy.
    pub fn copy(&self, copy: CopyId) -> Option<CopyInfo> {
        self.state.copies.get(&copy.0).map(|held| held.info(copy))
    }

    /// The copy of a source.
    pub fn copy_at(&self, path: &Path) -> Option<CopyInfo> {
        self.state.copy_at(path).map(|(copy, held)| held.info(CopyId(copy)))
    }

    /// The folders that were added, in that order.
    pub fn folders(&self) -> &[PathBuf] {
        &self.state.folders
    }

    /// What the archive remembers of the source at a path.
    pub fn memory(&self, label: &Label, path: &Path) -> Result<Memory, Error> {
        let recalled = self.state.memory(label, path);
        recalled.map_err(|error| Error::at(path, Problem::Unreadable, error))
    }

    /// Whether the session of this label was forgotten; its name must be unique in the world.
    pub fn is_session_forgotten(&self, label: &Label) -> bool {
        self.state.forgotten.has_session(label)
    }

    /// The copies whose last version can be read, as far as is known without reading it.
    pub fn intact(&self) -> Result<HashSet<CopyId>, Error> {
        let lost = lost_pieces(&self.state, self.files.as_ref(), &self.folder)?;
        let is_intact = |held: &Held| {
            let last = held.versions.last();
            last.is_some_and(|last| !last.pieces.iter().any(|piece| lost.contains(piece)))
        };
        let intact = self.state.copies.iter().filter(|(_, held)| is_intact(held));
        Ok(intact.map(|(copy, _)| CopyId(*copy)).collect())
    }

    /// The sessions that were forgotten, in no order.
    pub fn forgotten(&self) -> impl Iterator<Item = Label> {
        self.state.forgotten.labels()
    }

    /// How much there is.
    pub fn size(&self) -> Size {
        Size {
            sources: self.state.copies.values().map(Held::length).sum(),
            stored: self.state.packs.values().sum::<u64>() + self.log_length,
        }
    }

    /// The original bytes of a copy, from an offset on.
    pub fn read(&self, copy: CopyId, which: Which, from: u64) -> Result<CopyReader<'_>, Error> {
        let missing = || Error::about(&self.folder, Problem::NotKept);
        let held = self.state.copies.get(&copy.0).ok_or_else(missing)?;
        let version = match which {
            Which::Last => held.versions.last(),
            Which::Number(number) => held.versions.iter().find(|version| version.number == number),
        };
        Ok(CopyReader::new(&self.state, &self.packs, version.ok_or_else(missing)?, from))
    }

    /// Writes the original bytes of a copy to a file, whole or not at all.
    pub fn restore(&self, copy: CopyId, which: Which, to: &Path, present: Present) -> Result<u64, Error> {
        let existing = match present {
            Present::Stays => Existing::Refused,
            Present::Replaced => Existing::Replaced,
        };
        let mut reader = self.read(copy, which, 0)?;
        let mut file = NewFile::options().existing(existing).guarded().create(to, [])?;
        let length = io::copy(&mut reader, &mut file).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Error::at(to, Problem::Damaged, error),
            _ => Error::at(to, Problem::Unwritable, error),
        })?;
        file.commit()?;
        let held = self.state.copies.get(&copy.0).filter(|_| which == Which::Last);
        if let Some(modified_ns) = held.and_then(|held| u64::try_from(held.modified_ns).ok()) {
            // Agents go by the time of a file; that it could not be set takes nothing from what is in it.
            let moment = UNIX_EPOCH + Duration::from_nanos(modified_ns);
            let _ = File::options().write(true).open(to).and_then(|file| file.set_modified(moment));
        }
        Ok(length)
    }
}

/// The pieces that are damaged, or whose pack is missing or too short.
fn lost_pieces(state: &State, files: &dyn Files, folder: &Path) -> Result<HashSet<u32>, Error> {
    let lengths: std::collections::HashMap<u32, u64> = present(files, folder)?.into_iter().collect();
    let is_there =
        |piece: &state::Piece| lengths.get(&piece.pack).is_some_and(|length| piece.at + piece.size <= *length);
    let pieces = (0..).zip(&state.pieces);
    let lost = pieces.filter(|(number, piece)| !is_there(piece) || state.damaged.contains(number));
    Ok(lost.map(|(number, _)| number).collect())
}

impl State {
    fn infos(&self) -> impl Iterator<Item = CopyInfo> {
        self.copies.iter().map(|(copy, held)| held.info(CopyId(*copy)))
    }
}

impl Held {
    fn info(&self, id: CopyId) -> CopyInfo {
        let versions = self.versions.iter().map(|version| VersionInfo {
            number: version.number,
            length: version.length,
            first_ms: version.first_ms,
            last_ms: version.last_ms,
        });
        CopyInfo {
            id,
            path: self.path.clone(),
            label: Label { format: self.format.clone(), session: self.session.clone() },
            length: self.length(),
            modified_ns: self.modified_ns,
            first_ms: self.first_ms,
            last_ms: self.last_ms,
            versions: versions.collect(),
        }
    }
}
