//! Writes to the archive: copies sources, forgets copies, records folders and marks. A commit makes all changes since the last one
//! durable, or none of them.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::{BlockKind, Hash, PIECE_SIZE};
use super::forgotten::{ContentFingerprint, ForgottenState, Tombstone};
use super::history::ArchiveHistory;
use super::line::{Commit, CommitHeader, CopyLine, FIRST_VERSION, FolderChange, LogLine, PieceLine};
use super::open_source::{OpenSource, SourceComparison, stored_from};
use super::pack_writer::PackWriter;
use super::packs::Packs;
use super::read::CopyReader;
use super::state::{ArchiveState, CopyState, UNSTAMPED_MS, Version};
use super::{CopyId, CopyInfo, Label};
use crate::decode::{ByteCounter, DecodeGuard, decode};
use crate::error::{Error, Place, Problem};
use crate::files::Files;
use crate::lock::Lock;
use crate::log::Log;
use crate::tail::Warning;

/// Writes to an archive; there is one writer at a time.
#[derive(Debug)]
pub struct ArchiveWriter {
    pub(super) files: Arc<dyn Files>,
    pub(super) folder: PathBuf,
    pub(super) state: ArchiveState,
    /// The pieces' numbers by hash.
    pub(super) known: KnownPieces,
    /// Pieces that are damaged, or whose pack is missing or too short.
    pub(super) lost: HashSet<u32>,
    pub(super) packs: PackWriter,
    /// The lines of the next commit.
    pub(super) lines: String,
    /// The first version that understands those lines.
    version: u32,
    pub(super) log: Log<()>,
    /// Copies changed since the last commit.
    touched: Vec<u32>,
    pub(super) failed: Option<WriterFailure>,
    buffer: Vec<u8>,
    pub(super) warnings: Vec<Warning>,
    pub(super) _lock: Lock,
}

/// The state after a failure.
#[derive(Debug)]
pub(super) enum WriterFailure {
    /// The next commit must report it.
    Unreported(Error),
    /// It was reported; the state must be reloaded.
    Reported,
}

/// The result of adding a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddOutcome {
    /// The archive has a copy.
    Archived(AddedCopy),
    /// Its session was forgotten.
    Forgotten,
    /// Its session was forgotten and has grown since.
    Continued {
        /// The forgotten session, if it has a name.
        session: Option<String>,
    },
}

/// A source that the archive has a copy of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedCopy {
    /// The copy.
    pub copy: CopyId,
    /// Its last version.
    pub version: u32,
    /// How many bytes of the source the copy has; the source may have grown meanwhile.
    pub length: u64,
    /// How many bytes were stored.
    pub added: u64,
    /// How the source changed.
    pub change: CopyChange,
}

/// How a source changed since it was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyChange {
    /// It had no copy.
    New,
    /// Not at all.
    Same,
    /// Not at all, but its copy was damaged and is whole again.
    Renewed,
    /// Bytes were appended.
    Grown,
    /// Its content differs. The archive still has the old content.
    Rewritten,
}

/// The maximum number of versions of a source: a document may be rewritten with every message.
const VERSIONS_MAX: usize = 32;

impl ArchiveWriter {
    pub(super) fn new(
        files: Arc<dyn Files>,
        folder: &Path,
        history: ArchiveHistory,
        log: Log<()>,
        lock: Lock,
    ) -> Result<ArchiveWriter, Error> {
        Ok(ArchiveWriter {
            packs: PackWriter::new(Arc::clone(&files), folder.to_owned())?,
            files,
            folder: folder.to_owned(),
            known: known_pieces(&history.state),
            state: history.state,
            lost: HashSet::new(),
            lines: String::new(),
            version: FIRST_VERSION,
            log,
            touched: Vec::new(),
            failed: None,
            buffer: Vec::new(),
            warnings: history.warnings,
            _lock: lock,
        })
    }

    /// Copies the part of a source that the archive does not have.
    pub fn add(&mut self, path: &Path, label: &Label) -> Result<AddOutcome, Error> {
        self.ready()?;
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let mut source = OpenSource::open(path)?;
        let Some((copy, copy_state)) = self.state.copy_at(path) else {
            match self.forgotten_state(label, path)? {
                ForgottenState::Unknown => {}
                ForgottenState::Forgotten => return Ok(AddOutcome::Forgotten),
                ForgottenState::Continued { session } => return Ok(AddOutcome::Continued { session }),
            }
            let copy = self.state.next_copy;
            let line = CopyLine { copy, version: 1, path: Some(path.to_owned()), ..CopyLine::default() };
            return self.store(path, source, line, label, 0, CopyChange::New).map(AddOutcome::Archived);
        };
        let Some(last) = copy_state.versions.last().cloned() else { return Err(Error::about(path, Problem::NotKept)) };
        let untouched = source.modified_ns == copy_state.modified_ns && source.length == last.length;
        let relabelled =
            label.session.is_some() && (label.session != copy_state.session || label.format != copy_state.format);
        let is_intact = !last.pieces.iter().any(|piece| self.lost.contains(piece));
        let mut added = AddedCopy {
            copy: CopyId(copy),
            version: last.number,
            length: last.length,
            added: 0,
            change: CopyChange::Same,
        };
        if untouched && is_intact && !relabelled {
            return Ok(AddOutcome::Archived(added));
        }
        let mut line = CopyLine { copy, version: last.number, ..CopyLine::default() };
        let is_same = untouched && is_intact;
        let compared =
            if is_same { SourceComparison::Same } else { source.compare(&last, &self.state).map_err(unreadable)? };
        match compared {
            SourceComparison::Same => {
                added.added = self.store_lost(path, &mut source, &last.pieces)?;
                added.change = if added.added > 0 { CopyChange::Renewed } else { CopyChange::Same };
                line.same = last.pieces.len() as u32;
                (line.length, line.modified) = (last.length, source.modified_ns);
                self.set_label(&mut line, label);
                self.write_copy(line)?;
            }
            SourceComparison::Grown => {
                let same = stored_from(&self.state, &last, source.length - last.length);
                let stays = last.pieces.get(..same).unwrap_or_default();
                let offset = stays.iter().map(|piece| self.state.size_of(*piece)).sum();
                let renewed = self.store_lost(path, &mut source, stays)?;
                line.same = same as u32;
                added = self.store(path, source, line, label, offset, CopyChange::Grown)?;
                added.added += renewed;
            }
            SourceComparison::Other => {
                line.version = last.number + 1;
                added = self.store(path, source, line, label, 0, CopyChange::Rewritten)?;
                self.thin(copy)?;
            }
        }
        Ok(AddOutcome::Archived(added))
    }

    /// Records that a source has moved, so that its copy follows it. If the new path already has a copy, that one stays.
    pub fn moved(&mut self, copy: CopyId, to: &Path) -> Result<(), Error> {
        self.ready()?;
        let Some(copy_state) = self.state.copies.get(&copy.0).filter(|copy_state| copy_state.path != to) else {
            return Ok(());
        };
        let Some(last) = copy_state.versions.last().filter(|_| self.state.copy_at(to).is_none()) else { return Ok(()) };
        let line = CopyLine {
            copy: copy.0,
            version: last.number,
            path: Some(to.to_owned()),
            length: last.length,
            modified: copy_state.modified_ns,
            same: last.pieces.len() as u32,
            ..CopyLine::default()
        };
        self.write_copy(line)
    }

    /// Stores a source from an offset on, after the pieces that are reused.
    fn store(
        &mut self,
        path: &Path,
        mut source: OpenSource,
        mut line: CopyLine,
        label: &Label,
        from: u64,
        change: CopyChange,
    ) -> Result<AddedCopy, Error> {
        line.modified = source.modified_ns;
        let (mut length, mut added) = (from, 0);
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let size = PIECE_SIZE as u64 - length % PIECE_SIZE as u64;
            source.read(length, size, &mut buffer).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
            if buffer.is_empty() {
                break;
            }
            length += buffer.len() as u64;
            let (number, stored) = self.put_piece(&buffer)?;
            added += stored;
            line.pieces.push(number);
        }
        self.buffer = buffer;
        let result = AddedCopy { copy: CopyId(line.copy), version: line.version, length, added, change };
        let last = self.state.copies.get(&line.copy).and_then(|copy_state| copy_state.versions.last());
        match change {
            CopyChange::Grown if length < source.length => {
                // It was truncated meanwhile; the next run compares it again.
                return Ok(AddedCopy {
                    length: last.map_or(0, |last| last.length),
                    change: CopyChange::Same,
                    ..result
                });
            }
            CopyChange::Rewritten => {
                let before = last.map_or(&[][..], |last| &last.pieces);
                let same = before.iter().zip(&line.pieces).take_while(|(one, other)| one == other).count();
                line.pieces.drain(..same);
                line.same = same as u32;
            }
            CopyChange::Grown | CopyChange::New | CopyChange::Same | CopyChange::Renewed => {}
        }
        line.length = length;
        self.set_label(&mut line, label);
        self.write_copy(line)?;
        Ok(result)
    }

    /// Stores those of the first pieces of a source that are lost. Returns how many bytes were stored.
    fn store_lost(&mut self, path: &Path, source: &mut OpenSource, pieces: &[u32]) -> Result<u64, Error> {
        let (mut at, mut added, mut bytes) = (0, 0, Vec::new());
        for number in pieces {
            let size = self.state.size_of(*number);
            if self.lost.contains(number) {
                source.read(at, size, &mut bytes).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
                let hash = self.state.pieces.get(*number as usize).map(|piece| piece.hash);
                // A source that changed meanwhile is compared again in the next run.
                if hash == Some(*blake3::hash(&bytes).as_bytes()) {
                    added += self.put_piece(&bytes)?.1;
                }
            }
            at += size;
        }
        Ok(added)
    }

    /// Stores a piece unless the archive has it. Returns its number and how many bytes were stored.
    fn put_piece(&mut self, raw: &[u8]) -> Result<(u32, u64), Error> {
        let hash = *blake3::hash(raw).as_bytes();
        let number = match self.known.get(&hash) {
            Some(number) if !self.lost.contains(number) => return Ok((*number, 0)),
            // Every copy that uses the lost piece is whole again.
            Some(number) => *number,
            None => u32::try_from(self.state.pieces.len())
                .map_err(|_| Error::about(&self.folder, Problem::TooMany { most: u64::from(u32::MAX) }))?,
        };
        let written = self.packs.write(BlockKind::Piece, &hash, raw).map_err(|error| fail(&mut self.failed, error))?;
        let (pack, at, size) = (written.pack, written.at, written.size);
        self.write(LogLine::Piece(PieceLine { number, pack, at, size, raw: raw.len() as u32, hash }))?;
        self.known.insert(hash, number);
        self.lost.remove(&number);
        Ok((number, raw.len() as u64))
    }

    /// Sets the parts of the label that are new or changed.
    fn set_label(&self, line: &mut CopyLine, label: &Label) {
        let copy_state = self.state.copies.get(&line.copy);
        if copy_state.is_none_or(|copy_state| copy_state.format != label.format) && !label.format.is_empty() {
            line.format = Some(label.format.clone());
        }
        if copy_state.is_none_or(|copy_state| copy_state.session != label.session) {
            line.session.clone_from(&label.session);
        }
    }

    fn write_copy(&mut self, line: CopyLine) -> Result<(), Error> {
        self.touched.push(line.copy);
        self.write(LogLine::Copy(line))
    }

    /// Drops an old version if there are too many, preferably one that its successor only appended to.
    fn thin(&mut self, copy: u32) -> Result<(), Error> {
        let Some(copy_state) = self.state.copies.get(&copy) else { return Ok(()) };
        if copy_state.versions.len() <= VERSIONS_MAX {
            return Ok(());
        }
        let pairs = copy_state.versions.iter().zip(copy_state.versions.iter().skip(1));
        let least =
            pairs.min_by_key(|(version, next)| (next.length < version.length, version.length.abs_diff(next.length)));
        let Some((version, _)) = least else { return Ok(()) };
        let versions = vec![version.number];
        self.write(LogLine::Thin { copy, versions })
    }

    /// Forgets copies, for a reason. Their sources are not archived again, wherever they are found.
    pub fn forget(&mut self, copies: &[CopyId], why: &str) -> Result<(), Error> {
        self.ready()?;
        let mut tombstones = Vec::with_capacity(copies.len());
        let packs = Packs::new(Arc::clone(&self.files), &self.folder);
        for copy in copies {
            let missing = || Error::about(&self.folder.join(copy.to_string()), Problem::NotKept);
            let copy_state = self.state.copies.get(&copy.0).ok_or_else(missing)?;
            let contents =
                copy_state.versions.iter().filter_map(|version| fingerprint(copy_state, version, &self.state, &packs));
            let (format, session) = (copy_state.format.clone(), copy_state.session.clone());
            tombstones.push(Tombstone { format, session, contents: contents.collect() });
        }
        if copies.is_empty() {
            return Ok(());
        }
        let copies = copies.iter().map(|copy| copy.0).collect();
        self.write(LogLine::Forget { copies, tombstones, why: why.to_owned() })
    }

    /// Allows a forgotten session to be archived again.
    pub fn unforget(&mut self, label: &Label) -> Result<(), Error> {
        self.ready()?;
        self.write(LogLine::Unforget { format: label.format.clone(), session: label.session.clone() })
    }

    /// Whether the source at a path was forgotten.
    pub fn forgotten_state(&self, label: &Label, path: &Path) -> Result<ForgottenState, Error> {
        let state = self.state.forgotten_state(label, path);
        state.map_err(|error| Error::at(path, Problem::Unreadable, error))
    }

    /// Adds a folder to those that are searched.
    pub fn add_folder(&mut self, path: &Path) -> Result<(), Error> {
        self.set_folder(path, FolderChange::Added)
    }

    /// Removes a folder from those that are searched.
    pub fn remove_folder(&mut self, path: &Path) -> Result<(), Error> {
        self.set_folder(path, FolderChange::Removed)
    }

    fn set_folder(&mut self, path: &Path, known: FolderChange) -> Result<(), Error> {
        self.ready()?;
        let is_known = self.state.folders.iter().any(|folder| folder == path);
        if is_known == (known == FolderChange::Added) {
            return Ok(());
        }
        self.write(LogLine::Folder { path: path.to_owned(), known })
    }

    /// The folders that the user added.
    pub fn folders(&self) -> &[PathBuf] {
        &self.state.folders
    }

    /// All copies, including uncommitted ones.
    pub fn copies(&self) -> impl Iterator<Item = CopyInfo> {
        self.state.copy_infos()
    }

    /// Whether the last version of a copy is readable, as far as that is known without reading it.
    pub fn is_intact(&self, copy: CopyId) -> bool {
        let last = self.state.copies.get(&copy.0).and_then(|copy_state| copy_state.versions.last());
        last.is_some_and(|last| !last.pieces.iter().any(|piece| self.lost.contains(piece)))
    }

    /// Problems found when the archive was opened.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Makes all changes since the last commit durable. After a failure none of them count, unless the error says that this is
    /// in doubt; then opening the archive again decides it.
    pub fn commit(&mut self, now_ms: i64) -> Result<(), Error> {
        if matches!(self.failed, Some(WriterFailure::Unreported(_)))
            && let Some(WriterFailure::Unreported(error)) = self.failed.replace(WriterFailure::Reported)
        {
            return Err(error);
        }
        self.ready()?;
        self.try_commit(now_ms).inspect_err(|_| self.failed = Some(WriterFailure::Reported))
    }

    fn try_commit(&mut self, now_ms: i64) -> Result<(), Error> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let (pack, at) = self.packs.position()?;
        let (commit, after) = (self.state.commits + 1, self.state.chain);
        let head = CommitHeader { archive: self.version, commit, time: now_ms, after, pack, at, bytes: 0, sum: 0 };
        let commit = Commit::new(head, &self.lines);
        let commit = commit.map_err(|error| Error::at(&self.folder, Problem::Unwritable, error))?;
        // The log is written last, after its blocks are in the packs. From here on, a process that finds both treats this
        // commit as done.
        let written = self.packs.write(BlockKind::Commit, blake3::hash(&commit.bytes).as_bytes(), &commit.bytes)?;
        self.packs.sync().map_err(Error::in_doubt)?;
        self.log.append(&commit.bytes, (), &|_| {}).map_err(Error::in_doubt)?;
        self.lines.clear();
        self.version = FIRST_VERSION;
        self.state.commits = commit.head.commit;
        self.state.chain = commit.chain();
        self.state.chains.insert(commit.head.commit, self.state.chain);
        self.state.packs.insert(pack, at + written.size);
        let touched = std::mem::take(&mut self.touched);
        touched.into_iter().for_each(|copy| self.state.stamp(copy, now_ms));
        Ok(())
    }

    /// Adds a line to the next commit and applies it.
    pub(super) fn write(&mut self, line: LogLine) -> Result<(), Error> {
        let text = line.encode().map_err(|error| Error::at(&self.folder, Problem::Unwritable, error))?;
        let version = line.version();
        let applied = self.state.apply(line, UNSTAMPED_MS);
        applied.ok_or_else(|| Error::about(&self.folder, Problem::Unwritable))?;
        self.lines.push_str(&text);
        self.version = self.version.max(version);
        Ok(())
    }

    /// Reloads the state after a failure that was reported.
    pub(super) fn ready(&mut self) -> Result<(), Error> {
        match &self.failed {
            None => Ok(()),
            Some(WriterFailure::Unreported(error)) => Err(error.again()),
            Some(WriterFailure::Reported) => {
                let end = self.log.length();
                self.state = ArchiveHistory::load_until(self.files.as_ref(), &self.folder, end)?.state;
                self.known = known_pieces(&self.state);
                self.find_lost()?;
                self.lines.clear();
                self.version = FIRST_VERSION;
                self.packs.start_new_pack();
                self.touched.clear();
                self.failed = None;
                Ok(())
            }
        }
    }
}

/// Records a failure for the next commit.
pub(super) fn fail(failed: &mut Option<WriterFailure>, error: Error) -> Error {
    *failed = Some(WriterFailure::Unreported(error.again()));
    error
}

/// The fingerprint of a version, decompressed if possible; `None` if it cannot be read.
fn fingerprint(
    copy_state: &CopyState,
    version: &Version,
    state: &ArchiveState,
    packs: &Packs,
) -> Option<ContentFingerprint> {
    let raw = || CopyReader::new(state, packs, version, 0);
    let place = Place::Path(copy_state.path.clone());
    let decoded = decode(raw(), &place, &ByteCounter::default(), DecodeGuard::USUAL)
        .ok()
        .and_then(|stream| ContentFingerprint::of(stream).ok());
    decoded.or_else(|| ContentFingerprint::of(raw()).ok())
}

/// Piece numbers by hash.
pub(super) type KnownPieces = HashMap<Hash, u32, BuildHasherDefault<IdentityHasher>>;

/// The numbers of all pieces by hash.
pub(super) fn known_pieces(state: &ArchiveState) -> KnownPieces {
    let mut known = KnownPieces::with_capacity_and_hasher(state.pieces.len(), BuildHasherDefault::default());
    for (number, piece) in state.pieces.iter().enumerate() {
        known.entry(piece.hash).or_insert(number as u32);
    }
    known
}

/// A hasher for keys that are hashes already.
#[derive(Debug, Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // The array's length comes first and is the same for all.
        self.0 ^= bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
    }
}
