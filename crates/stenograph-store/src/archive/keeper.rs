//! Writes to the archive: keeps sources, forgets copies, knows folders. What was done since the last commit is acknowledged by the
//! next one, all of it or nothing. After a failure nothing of it is.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cut::Cutter;
use super::frame::Hash;
use super::grow::{Compared, OpenSource, cut_anew_from};
use super::history::History;
use super::line::{KeepLine, Known, Line, VERSION, sum};
use super::packs::log_path;
use super::stage::Stage;
use super::state::{Held, NOWHERE, State, UNSTAMPED_MS, Version};
use super::{CopyId, CopyInfo, Label};
use crate::error::{Error, Problem};
use crate::files::Files;
use crate::lock::Lock;
use crate::log::Log;
use crate::tail::Remark;

/// The one who writes to an archive.
#[derive(Debug)]
pub struct Keeper {
    pub(super) files: Arc<dyn Files>,
    pub(super) folder: PathBuf,
    pub(super) history: History,
    /// The number of every piece that is somewhere.
    pub(super) known: KnownPieces,
    pub(super) stage: Stage,
    pub(super) log: Log<()>,
    /// Copies that were changed since the last commit.
    pub(super) touched: Vec<u32>,
    pub(super) failed: Option<Failed>,
    pub(super) buffer: Vec<u8>,
    pub(super) remarks: Vec<Remark>,
    pub(super) _lock: Lock,
}

/// What is to be done after a failure.
#[derive(Debug)]
pub(super) enum Failed {
    /// The commit that was to come must say so.
    Untold(Error),
    /// It was said; what is in memory must be read anew.
    Told,
}

/// What became of a source that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The copy.
    pub copy: CopyId,
    /// Its last version.
    pub version: u32,
    /// How much is kept of the source: it may have grown meanwhile.
    pub length: u64,
    /// How many bytes had to be stored.
    pub added: u64,
    /// How it changed.
    pub change: Change,
}

/// How a source changed since it was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not kept before.
    New,
    /// It did not.
    Same,
    /// It is longer, and begins as it was.
    Grown,
    /// It was written anew or cut off. What it was is still kept.
    Rewritten,
}

/// So many versions of a source are kept. A document that is written anew with every message must not be kept as often.
const VERSIONS_MAX: usize = 32;

impl Keeper {
    /// Keeps a source: what of it is not there yet. `None` when it was forgotten.
    pub fn keep(&mut self, path: &Path, label: &Label) -> Result<Option<Kept>, Error> {
        self.ready()?;
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let mut source = OpenSource::open(path)?;
        let Some((copy, held)) = self.history.state.copy_at(path) else {
            if self.is_forgotten(label, &source.begin().map_err(unreadable)?) {
                return Ok(None);
            }
            let copy = self.history.state.next_copy;
            let keep = KeepLine { copy, version: 1, path: Some(path.to_owned()), ..KeepLine::default() };
            return self.store(path, source, keep, label, 0, Change::New).map(Some);
        };
        if held.versions.last().is_some_and(|last| last.pieces.iter().any(|piece| self.is_staged(*piece))) {
            // It was kept a moment ago: what is known of its pieces is known once they are written.
            self.flush()?;
        }
        let state = &self.history.state;
        let Some(held) = state.copies.get(&copy) else { return Err(Error::about(path, Problem::NotKept)) };
        let Some(last) = held.versions.last() else { return Err(Error::about(path, Problem::NotKept)) };
        let untouched = source.modified_ns == held.modified_ns && source.length == last.length;
        let relabelled = label.session.is_some() && (label.session != held.session || label.format != held.format);
        let kept =
            Kept { copy: CopyId(copy), version: last.number, length: last.length, added: 0, change: Change::Same };
        let mut keep = KeepLine { copy, version: last.number, ..KeepLine::default() };
        let compared = if untouched { Compared::Same } else { source.compare(held, state).map_err(unreadable)? };
        match compared {
            Compared::Same if untouched && !relabelled => Ok(Some(kept)),
            Compared::Same => {
                (keep.same, keep.loose) = (last.pieces.len() as u32, held.loose as u32);
                (keep.length, keep.modified_ns) = (last.length, source.modified_ns);
                self.name(&mut keep, label);
                self.follow(keep)?;
                Ok(Some(kept))
            }
            Compared::Grown => {
                let from = grown_from(state, held, last, source.length);
                (keep.same, keep.loose) = (from.same as u32, from.loose as u32);
                self.store(path, source, keep, label, from.offset, Change::Grown).map(Some)
            }
            Compared::Other => {
                keep.version = last.number + 1;
                let kept = self.store(path, source, keep, label, 0, Change::Rewritten)?;
                self.thin(copy)?;
                Ok(Some(kept))
            }
        }
    }

    /// Says that a source stands somewhere else now: what it says there belongs to its copy. A place that has a copy keeps that one.
    pub fn moved(&mut self, copy: CopyId, to: &Path) -> Result<(), Error> {
        self.ready()?;
        let state = &self.history.state;
        let Some(held) = state.copies.get(&copy.0).filter(|held| held.path != to) else { return Ok(()) };
        let Some(last) = held.versions.last().filter(|_| state.copy_at(to).is_none()) else { return Ok(()) };
        let keep = KeepLine {
            copy: copy.0,
            version: last.number,
            path: Some(to.to_owned()),
            length: last.length,
            modified_ns: held.modified_ns,
            same: last.pieces.len() as u32,
            loose: held.loose as u32,
            ..KeepLine::default()
        };
        self.follow(keep)
    }

    /// Stores a source from an offset on, as what follows the pieces that stay.
    fn store(
        &mut self,
        path: &Path,
        mut source: OpenSource,
        mut keep: KeepLine,
        label: &Label,
        from: u64,
        change: Change,
    ) -> Result<Kept, Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let held = self.history.state.copies.get(&keep.copy);
        keep.head = source.new_head(held).map_err(unreadable)?;
        keep.modified_ns = source.modified_ns;
        let input = source.from(from).map_err(unreadable)?;
        let mut cutter = Cutter::new(input, std::mem::take(&mut self.buffer));
        let (mut length, mut added) = (from, 0);
        while let Some(piece) = cutter.next().map_err(unreadable)? {
            let hash = *blake3::hash(piece).as_bytes();
            length += piece.len() as u64;
            let number = match self.known.get(&hash) {
                Some(number) => *number,
                None => {
                    added += piece.len() as u64;
                    let staged = self.stage.add(&mut self.history.state, hash, piece);
                    let number = staged.map_err(|error| fail(&mut self.failed, error))?;
                    self.known.insert(hash, number);
                    number
                }
            };
            keep.pieces.push(number);
        }
        self.buffer = cutter.into_buffer();
        let kept = Kept { copy: CopyId(keep.copy), version: keep.version, length, added, change };
        match change {
            Change::Grown if length < source.length => {
                // It was cut off under our hands: the next time it is seen for what it is then.
                let last = self.history.state.copies.get(&keep.copy).map_or(0, Held::length);
                return Ok(Kept { length: last, change: Change::Same, ..kept });
            }
            // What is cut from a place where the content was cut is cut by content, but for its end.
            Change::Grown if keep.loose == 0 => keep.loose = 1,
            Change::Grown => keep.loose += keep.pieces.len() as u32,
            Change::Rewritten => {
                let before = self.history.state.copies.get(&keep.copy).and_then(|held| held.versions.last());
                let before = before.map_or(&[][..], |last| &last.pieces);
                let same = before.iter().zip(&keep.pieces).take_while(|(one, other)| one == other).count();
                keep.pieces.drain(..same);
                (keep.same, keep.loose) = (same as u32, 1);
            }
            Change::New | Change::Same => keep.loose = 1,
        }
        keep.length = length;
        self.name(&mut keep, label);
        self.follow(keep)?;
        Ok(kept)
    }

    /// Says what is known of a source, where that is new.
    fn name(&self, keep: &mut KeepLine, label: &Label) {
        let held = self.history.state.copies.get(&keep.copy);
        if held.is_none_or(|held| held.format != label.format) && !label.format.is_empty() {
            keep.format = Some(label.format.clone());
        }
        if held.is_none_or(|held| held.session != label.session) {
            keep.session.clone_from(&label.session);
        }
    }

    fn follow(&mut self, keep: KeepLine) -> Result<(), Error> {
        self.touched.push(keep.copy);
        self.write(Line::Keep(keep))
    }

    /// Lets go of an old version when there are too many: of one that the next one only made longer, if there is such a one.
    fn thin(&mut self, copy: u32) -> Result<(), Error> {
        let Some(held) = self.history.state.copies.get(&copy) else { return Ok(()) };
        if held.versions.len() <= VERSIONS_MAX {
            return Ok(());
        }
        let pairs = held.versions.iter().zip(held.versions.iter().skip(1));
        let least =
            pairs.min_by_key(|(version, next)| (next.length < version.length, version.length.abs_diff(next.length)));
        let Some((version, _)) = least else { return Ok(()) };
        let versions = vec![version.number];
        self.write(Line::Thin { copy, versions })
    }

    /// Lets go of copies, for a reason. They are not kept again when they are found again.
    pub fn forget(&mut self, copies: &[CopyId], why: &str) -> Result<(), Error> {
        self.ready()?;
        let copies: Vec<u32> = copies.iter().map(|copy| copy.0).collect();
        if let Some(missing) = copies.iter().find(|copy| !self.history.state.copies.contains_key(copy)) {
            return Err(Error::about(&self.folder.join(missing.to_string()), Problem::NotKept));
        }
        if copies.is_empty() { Ok(()) } else { self.write(Line::Forget { copies, why: why.to_owned() }) }
    }

    /// Lets a source that was forgotten come back. `begin` is how it begins.
    pub fn recall(&mut self, label: &Label, begin: &[u8]) -> Result<(), Error> {
        self.ready()?;
        let head = self.history.state.forgotten.by_head(label.session.as_deref(), begin);
        let (format, session) = (label.format.clone(), label.session.clone());
        self.write(Line::Recall { format, session, head })
    }

    /// Whether a source was forgotten. `begin` is how it begins, 4,096 bytes of it where it has them.
    pub fn is_forgotten(&self, label: &Label, begin: &[u8]) -> bool {
        self.history.state.is_forgotten(label, begin)
    }

    /// Adds a folder to those that are looked into.
    pub fn add_folder(&mut self, path: &Path) -> Result<(), Error> {
        self.folder_line(path, Known::Added)
    }

    /// Removes a folder from those that are looked into.
    pub fn remove_folder(&mut self, path: &Path) -> Result<(), Error> {
        self.folder_line(path, Known::Removed)
    }

    fn folder_line(&mut self, path: &Path, known: Known) -> Result<(), Error> {
        self.ready()?;
        let is_known = self.history.state.folders.iter().any(|folder| folder == path);
        if is_known == (known == Known::Added) {
            return Ok(());
        }
        self.write(Line::Folder { path: path.to_owned(), known })
    }

    /// The folders that were added.
    pub fn folders(&self) -> &[PathBuf] {
        &self.history.state.folders
    }

    /// All copies, those that are not committed among them.
    pub fn copies(&self) -> impl Iterator<Item = CopyInfo> {
        self.history.state.infos()
    }

    /// What was found odd when the archive was opened.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// Makes durable all that was done since the last commit. After a failure nothing of it was done, unless the error says that
    /// this is in doubt; then it is seen when the archive is opened again.
    pub fn commit(&mut self, now_ms: i64) -> Result<(), Error> {
        if matches!(self.failed, Some(Failed::Untold(_)))
            && let Some(Failed::Untold(error)) = self.failed.replace(Failed::Told)
        {
            return Err(error);
        }
        self.ready()?;
        self.write_group(now_ms).inspect_err(|_| self.failed = Some(Failed::Told))
    }

    fn write_group(&mut self, now_ms: i64) -> Result<(), Error> {
        self.stage.flush(&mut self.history.state)?;
        if self.stage.is_empty() {
            return Ok(());
        }
        self.stage.sync()?;
        let number = self.history.state.commits + 1;
        let mut group = if number == 1 { Line::Begin(VERSION).spell() } else { String::new() };
        group.push_str(&self.stage.frame_lines);
        group.push_str(&self.stage.lines);
        let commit = Line::Commit { number, time_ms: now_ms, sum: sum(group.as_bytes()) };
        group.push_str(&commit.spell());
        self.log.append(group.as_bytes(), (), &|_| {})?;
        self.stage.frame_lines.clear();
        self.stage.lines.clear();
        self.history.good = self.log.length();
        self.history.state.commits = number;
        let touched = std::mem::take(&mut self.touched);
        touched.into_iter().for_each(|copy| self.history.state.stamp(copy, now_ms));
        Ok(())
    }

    fn is_staged(&self, piece: u32) -> bool {
        piece as usize >= self.history.state.pieces.len()
    }

    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.stage.flush(&mut self.history.state).map_err(|error| fail(&mut self.failed, error))
    }

    /// Puts a line into the next commit, and follows it.
    pub(super) fn write(&mut self, line: Line) -> Result<(), Error> {
        let spelled = line.spell();
        let followed = self.history.state.apply(line, UNSTAMPED_MS);
        followed.ok_or_else(|| Error::about(&self.folder, Problem::Unwritable))?;
        self.stage.lines.push_str(&spelled);
        Ok(())
    }

    /// Reads anew what is known, after a failure that was told.
    pub(super) fn ready(&mut self) -> Result<(), Error> {
        match &self.failed {
            None => Ok(()),
            Some(Failed::Untold(error)) => Err(error.again()),
            Some(Failed::Told) => {
                let path = log_path(&self.folder);
                self.history = History::load_until(self.files.as_ref(), &path, self.log.length())?;
                self.known = known_pieces(&self.history.state);
                self.stage.reset();
                self.touched.clear();
                self.failed = None;
                Ok(())
            }
        }
    }
}

/// Keeps a failure in mind for the commit that was to come.
pub(super) fn fail(failed: &mut Option<Failed>, error: Error) -> Error {
    *failed = Some(Failed::Untold(error.again()));
    error
}

/// From where on a source that grew is stored.
struct From {
    offset: u64,
    /// How many pieces stay.
    same: usize,
    /// How many of those are loose.
    loose: usize,
}

fn grown_from(state: &State, held: &Held, last: &Version, length: u64) -> From {
    let settled = last.pieces.len().saturating_sub(held.loose);
    let size = |number: &u32| state.pieces.get(*number as usize).map_or(0, |piece| piece.size);
    let sizes: Vec<u32> = last.pieces.iter().skip(settled).map(size).collect();
    let loose = cut_anew_from(&sizes, length - last.length);
    let gathered: u64 = sizes.iter().skip(loose).map(|size| u64::from(*size)).sum();
    From { offset: last.length - gathered, same: settled + loose, loose }
}

/// Pieces by name.
pub(super) type KnownPieces = HashMap<Hash, u32, BuildHasherDefault<Uniform>>;

/// The number of every piece that is somewhere.
pub(super) fn known_pieces(state: &State) -> KnownPieces {
    let mut known = KnownPieces::with_capacity_and_hasher(state.pieces.len(), BuildHasherDefault::default());
    for (number, piece) in state.pieces.iter().enumerate().filter(|(_, piece)| piece.frame != NOWHERE) {
        known.entry(piece.hash).or_insert(number as u32);
    }
    known
}

/// A hash needs no hashing.
#[derive(Debug, Default)]
pub(super) struct Uniform(u64);

impl Hasher for Uniform {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // The length of the array comes first, and is the same for all.
        self.0 ^= bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
    }
}
