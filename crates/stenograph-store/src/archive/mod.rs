//! The archive: copies of sources, which remain when an agent deletes its own history.
//!
//! `log.jsonl` holds the changes, `packs/` the bytes. A source is cut at fixed offsets; each piece is compressed by itself,
//! which limits damage to that piece, and a piece that the archive already has is not stored again. Packs hold a second copy of
//! every commit of the log. [`Archive`] reads committed data and needs no lock. [`ArchiveWriter`] writes, one at a time. This
//! folder does not interpret the bytes.

mod block;
mod encoding;
mod forgotten;
mod history;
mod line;
mod marks;
mod open;
mod open_source;
mod pack_writer;
mod packs;
mod read;
mod reclaim;
mod repair;
mod rewrite;
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
use history::ArchiveHistory;
use packs::{Packs, present};
use state::{ArchiveState, CopyState};

pub use block::Damage;
pub use forgotten::ForgottenState;
pub(crate) use marks::is_tag;
pub use marks::{EventKey, MarkChange, Marks, NOTE_SIZE_MAX, NOTES_MAX, SessionKey, SessionNote, TITLE_LENGTH_MAX};
pub use read::CopyReader;
pub use reclaim::Reclaimed;
pub use repair::Repaired;
pub use rewrite::{Rewrite, RewriteOutcome};
pub use source_check::SourceCheck;
pub use verify::{DamagedVersion, Verified, VerifyProgress};
pub use writer::{AddOutcome, AddedCopy, ArchiveWriter, CopyChange};

/// The number of a copy. It is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyId(pub u32);

impl fmt::Display for CopyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// Metadata of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The name of its format; empty if unknown.
    pub format: String,
    /// Its session, if known.
    pub session: Option<String>,
}

/// A copy of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyInfo {
    /// Its number.
    pub id: CopyId,
    /// The source's path, or its last path if it is gone.
    pub path: PathBuf,
    /// The source's format and session.
    pub label: Label,
    /// The length of the last version.
    pub length: u64,
    /// The source's modification time; nanoseconds since 1970.
    pub modified_ns: i64,
    /// When it was first archived.
    pub first_ms: i64,
    /// When more of it was last archived.
    pub last_ms: i64,
    /// Its versions over time, oldest first. A source that only grows has one version.
    pub versions: Vec<VersionInfo>,
}

/// The content of a source until it was rewritten or truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionInfo {
    /// Its number.
    pub number: u32,
    /// Its length.
    pub length: u64,
    /// When it was first archived.
    pub first_ms: i64,
    /// When more of it was last archived.
    pub last_ms: i64,
}

/// Which version of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichVersion {
    /// The version that was archived last.
    Last,
    /// The version with this number.
    Number(u32),
}

/// What happens if the target file of a restore exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// The file stays, and the restore fails.
    Fail,
    /// The file is replaced.
    Replace,
}

/// The size of an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// The total length of the last versions of all copies.
    pub sources: u64,
    /// The total size of the packs and the log.
    pub stored: u64,
}

/// An archive, open for reading.
#[derive(Debug)]
pub struct Archive {
    files: Arc<dyn Files>,
    folder: PathBuf,
    state: ArchiveState,
    log_length: u64,
    warnings: Vec<Warning>,
    packs: Packs,
}

impl Archive {
    /// Opens the archive in a folder. A missing archive is empty.
    pub fn open(files: Arc<dyn Files>, folder: &Path) -> Result<Archive, Error> {
        let ArchiveHistory { state, complete_end, warnings, .. } = ArchiveHistory::load(files.as_ref(), folder)?;
        let packs = Packs::new(Arc::clone(&files), folder);
        Ok(Archive { files, folder: folder.to_owned(), state, log_length: complete_end, warnings, packs })
    }

    /// Reads the commits since the archive was opened.
    pub fn refresh(&mut self) -> Result<(), Error> {
        *self = Archive::open(Arc::clone(&self.files), &self.folder)?;
        Ok(())
    }

    /// Problems with the log.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// All copies, in the order in which they were first archived.
    pub fn copies(&self) -> impl Iterator<Item = CopyInfo> {
        self.state.copy_infos()
    }

    /// The copy with this number.
    pub fn copy(&self, copy: CopyId) -> Option<CopyInfo> {
        self.state.copies.get(&copy.0).map(|copy_state| copy_state.info(copy))
    }

    /// The copy of the source at this path.
    pub fn copy_at(&self, path: &Path) -> Option<CopyInfo> {
        self.state.copy_at(path).map(|(copy, copy_state)| copy_state.info(CopyId(copy)))
    }

    /// The folders that the user added, in that order.
    pub fn folders(&self) -> &[PathBuf] {
        &self.state.folders
    }

    /// Whether the source at a path was forgotten.
    pub fn forgotten_state(&self, label: &Label, path: &Path) -> Result<ForgottenState, Error> {
        let state = self.state.forgotten_state(label, path);
        state.map_err(|error| Error::at(path, Problem::Unreadable, error))
    }

    /// Whether the session of this label was forgotten. Its name must be globally unique.
    pub fn is_session_forgotten(&self, label: &Label) -> bool {
        self.state.forgotten.has_session(label)
    }

    /// The copies whose last version is readable, as far as that is known without reading it.
    pub fn intact(&self) -> Result<HashSet<CopyId>, Error> {
        let lost = lost_pieces(&self.state, self.files.as_ref(), &self.folder)?;
        let is_intact = |copy_state: &CopyState| {
            let last = copy_state.versions.last();
            last.is_some_and(|last| !last.pieces.iter().any(|piece| lost.contains(piece)))
        };
        let intact = self.state.copies.iter().filter(|(_, copy_state)| is_intact(copy_state));
        Ok(intact.map(|(copy, _)| CopyId(*copy)).collect())
    }

    /// The forgotten sessions, unordered.
    pub fn forgotten(&self) -> impl Iterator<Item = Label> {
        self.state.forgotten.labels()
    }

    /// The size of the archive.
    pub fn size(&self) -> Size {
        Size {
            sources: self.state.copies.values().map(CopyState::length).sum(),
            stored: self.state.packs.values().sum::<u64>() + self.log_length,
        }
    }

    /// The original bytes of a copy from an offset on.
    pub fn read(&self, copy: CopyId, which: WhichVersion, from: u64) -> Result<CopyReader<'_>, Error> {
        let missing = || Error::about(&self.folder, Problem::NotKept);
        let copy_state = self.state.copies.get(&copy.0).ok_or_else(missing)?;
        let version = match which {
            WhichVersion::Last => copy_state.versions.last(),
            WhichVersion::Number(number) => copy_state.versions.iter().find(|version| version.number == number),
        };
        Ok(CopyReader::new(&self.state, &self.packs, version.ok_or_else(missing)?, from))
    }

    /// Writes the original bytes of a copy to a file, all or nothing.
    pub fn restore(&self, copy: CopyId, which: WhichVersion, to: &Path, present: IfExists) -> Result<u64, Error> {
        let existing = match present {
            IfExists::Fail => Existing::Refused,
            IfExists::Replace => Existing::Replaced,
        };
        let mut reader = self.read(copy, which, 0)?;
        let mut file = NewFile::options().existing(existing).guarded().create(to, [])?;
        let length = io::copy(&mut reader, &mut file).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Error::at(to, Problem::Damaged, error),
            _ => Error::at(to, Problem::Unwritable, error),
        })?;
        file.commit()?;
        let copy_state = self.state.copies.get(&copy.0).filter(|_| which == WhichVersion::Last);
        if let Some(modified_ns) = copy_state.and_then(|copy_state| u64::try_from(copy_state.modified_ns).ok()) {
            // Agents sort files by time, so it is restored; the content is complete even if that fails.
            let moment = UNIX_EPOCH + Duration::from_nanos(modified_ns);
            let _ = File::options().write(true).open(to).and_then(|file| file.set_modified(moment));
        }
        Ok(length)
    }
}

/// The pieces that are damaged, or whose pack is missing or too short.
fn lost_pieces(state: &ArchiveState, files: &dyn Files, folder: &Path) -> Result<HashSet<u32>, Error> {
    let lengths: std::collections::HashMap<u32, u64> = present(files, folder)?.into_iter().collect();
    let is_there =
        |piece: &state::Piece| lengths.get(&piece.pack).is_some_and(|length| piece.at + piece.size <= *length);
    let pieces = (0..).zip(&state.pieces);
    let lost = pieces.filter(|(number, piece)| !is_there(piece) || state.damaged.contains(number));
    Ok(lost.map(|(number, _)| number).collect())
}

impl ArchiveState {
    fn copy_infos(&self) -> impl Iterator<Item = CopyInfo> {
        self.copies.iter().map(|(copy, copy_state)| copy_state.info(CopyId(*copy)))
    }
}

impl CopyState {
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
