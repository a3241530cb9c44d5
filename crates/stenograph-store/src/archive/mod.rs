//! Kept copies of sources: what survives an agent deleting its own history.
//!
//! `log.jsonl` says what was done, and nothing else does; `packs/` holds the bytes. A source is cut into pieces by its content; a
//! piece that is there already is not stored again; new ones are compressed together in frames. [`Archive`] reads and needs no
//! lock: it sees what was committed. [`Keeper`] writes, one at a time. Nothing here knows what the bytes mean.

mod cut;
mod frame;
mod grow;
mod history;
mod keeper;
mod line;
mod open;
mod packs;
mod read;
mod reclaim;
mod spare;
mod spell;
mod stage;
mod state;
mod verify;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::error::{Error, Problem};
use crate::files::Files;
use crate::output::{Existing, NewFile};
use crate::tail::Remark;
use history::History;
use packs::{Packs, log_path};
use state::{Held, State};

pub use frame::Damage;
pub use keeper::{Change, Keeper, Kept};
pub use read::CopyReader;
pub use reclaim::Reclaimed;
pub use spare::Standing;
pub use verify::{Damaged, Progress, Verified};

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

/// The kept copies, to be read.
#[derive(Debug)]
pub struct Archive {
    files: Arc<dyn Files>,
    folder: PathBuf,
    history: History,
    packs: Packs,
}

impl Archive {
    /// Opens the archive in a folder. One that is not there yet is an empty one.
    pub fn open(files: Arc<dyn Files>, folder: &Path) -> Result<Archive, Error> {
        let history = History::load(files.as_ref(), &log_path(folder))?;
        let packs = Packs::new(Arc::clone(&files), folder);
        Ok(Archive { files, folder: folder.to_owned(), history, packs })
    }

    /// Sees what was committed since.
    /// A copy that cannot be read any more where it was may have been moved in between.
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.packs.clear();
        self.history.refresh(self.files.as_ref(), &log_path(&self.folder))
    }

    /// What is odd about the log.
    pub fn remarks(&self) -> &[Remark] {
        &self.history.remarks
    }

    /// All copies, in the order they were first kept in.
    pub fn copies(&self) -> impl Iterator<Item = CopyInfo> {
        self.state().infos()
    }

    /// One copy.
    pub fn copy(&self, copy: CopyId) -> Option<CopyInfo> {
        self.state().copies.get(&copy.0).map(|held| held.info(copy))
    }

    /// The copy of a source.
    pub fn copy_at(&self, path: &Path) -> Option<CopyInfo> {
        self.state().copy_at(path).map(|(copy, held)| held.info(CopyId(copy)))
    }

    /// The folders that were added, in that order.
    pub fn folders(&self) -> &[PathBuf] {
        &self.state().folders
    }

    /// Whether a source was forgotten. `begin` is how it begins, 4,096 bytes of it where it has them.
    pub fn is_forgotten(&self, label: &Label, begin: &[u8]) -> bool {
        self.state().is_forgotten(label, begin)
    }

    /// The sessions that were forgotten, in no order.
    pub fn forgotten(&self) -> impl Iterator<Item = Label> {
        self.state().forgotten.labels()
    }

    /// How much there is.
    pub fn size(&self) -> Size {
        let state = self.state();
        let packs = state.packs.values().filter(|pack| pack.need == state::Need::Needed);
        Size {
            sources: state.copies.values().map(Held::length).sum(),
            stored: packs.map(|pack| pack.length).sum::<u64>() + self.history.good,
        }
    }

    /// The original bytes of a copy, from an offset on.
    pub fn read(&self, copy: CopyId, which: Which, from: u64) -> Result<CopyReader<'_>, Error> {
        let missing = || Error::about(&self.folder, Problem::NotKept);
        let held = self.state().copies.get(&copy.0).ok_or_else(missing)?;
        let version = match which {
            Which::Last => held.versions.last(),
            Which::Number(number) => held.versions.iter().find(|version| version.number == number),
        };
        Ok(CopyReader::new(self.state(), &self.packs, version.ok_or_else(missing)?, from))
    }

    /// Writes the original bytes of a copy to a file, whole or not at all.
    pub fn restore(&self, copy: CopyId, which: Which, to: &Path, present: Present) -> Result<u64, Error> {
        let existing = match present {
            Present::Stays => Existing::Refused,
            Present::Replaced => Existing::Replaced,
        };
        let mut reader = self.read(copy, which, 0)?;
        let mut file = NewFile::options().existing(existing).create(to, [])?;
        let length = io::copy(&mut reader, &mut file).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Error::at(to, Problem::Damaged, error),
            _ => Error::at(to, Problem::Unwritable, error),
        })?;
        file.commit()?;
        let held = self.state().copies.get(&copy.0).filter(|_| which == Which::Last);
        if let Some(modified_ns) = held.and_then(|held| u64::try_from(held.modified_ns).ok()) {
            // Agents go by the time of a file; that it could not be set takes nothing from what is in it.
            let moment = UNIX_EPOCH + Duration::from_nanos(modified_ns);
            let _ = File::options().write(true).open(to).and_then(|file| file.set_modified(moment));
        }
        Ok(length)
    }

    fn state(&self) -> &State {
        &self.history.state
    }
}

impl State {
    fn infos(&self) -> impl Iterator<Item = CopyInfo> {
        self.copies.iter().map(|(copy, held)| held.info(CopyId(*copy)))
    }

    fn is_forgotten(&self, label: &Label, begin: &[u8]) -> bool {
        let session = label.session.as_deref();
        self.forgotten.by_label(&label.format, session) || self.forgotten.by_head(session, begin).is_some()
    }
}

impl Held {
    fn length(&self) -> u64 {
        self.versions.last().map_or(0, |version| version.length)
    }

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
