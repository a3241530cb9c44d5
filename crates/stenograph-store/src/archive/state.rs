//! The state that the log leads to: where pieces are, which copies consist of them, which sessions are forgotten or
//! marked, and which folders are searched. Every change is a line of the log, so that memory and log agree. This file opens no file.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::Label;
use super::block::Hash;
use super::forgotten::{Forgotten, ForgottenState};
use super::line::{Commit, CopyLine, FolderChange, LogLine, PieceLine};
use super::marks::{Marks, SessionKey};

/// The state of an archive.
#[derive(Clone, Debug, Default)]
pub(super) struct ArchiveState {
    /// By number.
    pub pieces: Vec<Piece>,
    /// The known end of each pack.
    pub packs: BTreeMap<u32, u64>,
    /// Packs that are no longer needed.
    pub dropped: BTreeSet<u32>,
    pub copies: BTreeMap<u32, CopyState>,
    /// By the text of the path, because paths compare and hash slowly.
    by_path: HashMap<OsString, u32>,
    pub folders: Vec<PathBuf>,
    pub forgotten: Forgotten,
    pub marks: BTreeMap<SessionKey, Marks>,
    /// Pieces that a verification found damaged.
    pub damaged: BTreeSet<u32>,
    /// The number of commits.
    pub commits: u64,
    /// The chain sum that the next commit must name.
    pub chain: u64,
    /// The chain sums of all commits, which identify their second copies.
    pub chains: HashMap<u64, u64>,
    /// Whether commits are lost, so that lines may refer to unknown items.
    pub is_lossy: bool,
    /// The number of the next copy.
    pub next_copy: u32,
}

/// A piece of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub hash: Hash,
    pub raw: u32,
    /// Its pack; 0 if it is in none.
    pub pack: u32,
    pub at: u64,
    pub size: u64,
}

const NOWHERE: Piece = Piece { hash: [0; 32], raw: 0, pack: 0, at: 0, size: 0 };

/// The time of a change that is not committed yet.
pub(super) const UNSTAMPED_MS: i64 = i64::MIN;

/// A copy of a source.
#[derive(Clone, Debug)]
pub(super) struct CopyState {
    pub path: PathBuf,
    pub format: String,
    pub session: Option<String>,
    pub modified_ns: i64,
    pub first_ms: i64,
    pub last_ms: i64,
    /// Oldest first; the last one was archived last. Never empty.
    pub versions: Vec<Version>,
}

/// The content of a source at some time.
#[derive(Clone, Debug, Default)]
pub(super) struct Version {
    pub number: u32,
    pub length: u64,
    pub pieces: Vec<u32>,
    pub first_ms: i64,
    pub last_ms: i64,
}

/// The largest accepted gap in piece numbers: a damaged number must not exhaust memory.
const HOLE_MAX: usize = 1 << 20;

impl ArchiveState {
    /// Applies a commit. Returns how many of its lines are invalid.
    pub fn commit(&mut self, commit: &Commit) -> usize {
        self.commits = commit.head.commit;
        self.chain = commit.chain();
        self.chains.insert(commit.head.commit, self.chain);
        let known = self.packs.entry(commit.head.pack).or_default();
        *known = (*known).max(commit.head.at);
        let time_ms = commit.head.time;
        commit.lines().filter(|line| LogLine::parse(line).and_then(|line| self.apply(line, time_ms)).is_none()).count()
    }

    /// Whether the source at a path was forgotten.
    pub fn forgotten_state(&self, label: &Label, path: &Path) -> io::Result<ForgottenState> {
        let is_kept = |copy_state: &CopyState| copy_state.format == label.format && copy_state.session == label.session;
        self.forgotten.state_of(label, path, || self.copies.values().any(is_kept))
    }

    /// Whether this commit was applied.
    pub(crate) fn has_commit(&self, commit: &Commit) -> bool {
        self.chains.get(&commit.head.commit) == Some(&commit.chain())
    }

    /// Applies a line; `None` if it is invalid here.
    pub fn apply(&mut self, line: LogLine, time_ms: i64) -> Option<()> {
        match line {
            LogLine::Piece(piece) => return self.piece(&piece),
            LogLine::Copy(copy) => return self.copy(copy, time_ms),
            LogLine::Thin { copy, versions } => {
                let copy_state = self.copies.get_mut(&copy)?;
                let last = copy_state.versions.last()?.number;
                copy_state.versions.retain(|version| version.number == last || !versions.contains(&version.number));
            }
            LogLine::Forget { copies, tombstones, .. } => {
                for copy in copies {
                    if let Some(copy_state) = self.copies.remove(&copy) {
                        self.by_path.remove(copy_state.path.as_os_str());
                    }
                }
                tombstones.into_iter().for_each(|tombstone| self.forgotten.add(tombstone));
            }
            LogLine::Unforget { format, session } => self.forgotten.remove(&format, session.as_deref()),
            LogLine::Folder { path, known } => {
                self.folders.retain(|folder| *folder != path);
                if known == FolderChange::Added {
                    self.folders.push(path);
                }
            }
            LogLine::Mark { session, marks } => self.set_marks(session, marks),
            LogLine::Drop { pack } => {
                let lost = self.pieces.iter_mut().filter(|piece| piece.pack == pack);
                lost.for_each(|piece| piece.pack = 0);
                self.packs.remove(&pack);
                self.dropped.insert(pack);
            }
            LogLine::Damaged { pieces } => self.damaged = pieces.into_iter().collect(),
            LogLine::Lost { commits, sum } => {
                (self.commits, self.chain, self.is_lossy) = (self.commits + commits - 1, sum, true);
            }
        }
        Some(())
    }

    fn piece(&mut self, line: &PieceLine) -> Option<()> {
        let number = line.number as usize;
        let holes_max = if self.is_lossy { HOLE_MAX } else { 0 };
        if number > self.pieces.len() + holes_max {
            return None;
        }
        self.pieces.resize(self.pieces.len().max(number + 1), NOWHERE);
        let piece = self.pieces.get_mut(number)?;
        *piece = Piece { hash: line.hash, raw: line.raw, pack: line.pack, at: line.at, size: line.size };
        self.damaged.remove(&line.number);
        let end = line.at.checked_add(line.size)?;
        let known = self.packs.entry(line.pack).or_default();
        *known = (*known).max(end);
        Some(())
    }

    fn copy(&mut self, line: CopyLine, time_ms: i64) -> Option<()> {
        self.next_copy = self.next_copy.max(line.copy.checked_add(1)?);
        let copy_state = match self.copies.entry(line.copy) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let path = line.path.clone()?;
                self.by_path.insert(path.clone().into_os_string(), line.copy);
                entry.insert(CopyState::new(path, time_ms))
            }
        };
        copy_state.last_ms = time_ms;
        copy_state.modified_ns = line.modified;
        if let Some(path) = line.path.as_ref().filter(|path| path.as_os_str() != copy_state.path.as_os_str()) {
            self.by_path.remove(copy_state.path.as_os_str());
            self.by_path.insert(path.clone().into_os_string(), line.copy);
            copy_state.path.clone_from(path);
        }
        copy_state.grow(line, time_ms);
        Some(())
    }

    /// Sets the time at which the changes of a copy were committed.
    pub fn stamp(&mut self, copy: u32, time_ms: i64) {
        let Some(copy_state) = self.copies.get_mut(&copy) else { return };
        let versions = copy_state.versions.iter_mut().flat_map(|version| [&mut version.first_ms, &mut version.last_ms]);
        let times = versions.chain([&mut copy_state.first_ms, &mut copy_state.last_ms]);
        times.filter(|time| **time == UNSTAMPED_MS).for_each(|time| *time = time_ms);
    }

    /// Whether each piece is used by a copy.
    pub fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.pieces.len()];
        for number in
            self.copies.values().flat_map(|copy_state| &copy_state.versions).flat_map(|version| &version.pieces)
        {
            if let Some(used) = used.get_mut(*number as usize) {
                *used = true;
            }
        }
        used
    }

    pub(crate) fn size_of(&self, piece: u32) -> u64 {
        self.pieces.get(piece as usize).map_or(0, |piece| u64::from(piece.raw))
    }

    /// The copy of the source at a path.
    pub fn copy_at(&self, path: &Path) -> Option<(u32, &CopyState)> {
        let copy = *self.by_path.get(path.as_os_str())?;
        Some((copy, self.copies.get(&copy)?))
    }
}

impl CopyState {
    fn new(path: PathBuf, time_ms: i64) -> CopyState {
        let (format, session, versions) = (String::new(), None, Vec::new());
        CopyState { path, format, session, modified_ns: 0, first_ms: time_ms, last_ms: time_ms, versions }
    }

    pub fn length(&self) -> u64 {
        self.versions.last().map_or(0, |version| version.length)
    }

    fn grow(&mut self, line: CopyLine, time_ms: i64) {
        if let Some(format) = line.format {
            self.format = format;
        }
        self.session = line.session.or(self.session.take());
        let same = line.same as usize;
        match self.versions.last_mut() {
            Some(last) if last.number == line.version => {
                last.pieces.truncate(same);
                last.pieces.extend_from_slice(&line.pieces);
                (last.length, last.last_ms) = (line.length, time_ms);
            }
            last => {
                let mut pieces = last.map_or(Vec::new(), |last| last.pieces.iter().take(same).copied().collect());
                pieces.extend_from_slice(&line.pieces);
                let (number, length) = (line.version, line.length);
                self.versions.push(Version { number, length, pieces, first_ms: time_ms, last_ms: time_ms });
            }
        }
    }
}
