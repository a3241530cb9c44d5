//! Reads the log commit by commit, then the commits that only packs hold: a killed process did not write them to the log, or
//! the log was truncated. This file writes nothing.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::block::{BlockHeader, BlockKind, Damage};
use super::line::{Commit, NextCommit, PieceLine};
use super::packs::{PackScan, log_path, present};
use super::state::ArchiveState;
use crate::error::{Error, Problem};
use crate::files::Files;
use crate::tail::Warning;

/// The commits of an archive, applied.
#[derive(Clone, Debug, Default)]
pub(super) struct ArchiveHistory {
    pub state: ArchiveState,
    /// The log holds complete commits up to this offset.
    pub complete_end: u64,
    /// The length of the log.
    pub length: u64,
    /// Commits that are complete in the packs and missing in the log.
    pub only_in_packs: Vec<Commit>,
    /// The end of each pack according to the log alone.
    pub logged: BTreeMap<u32, u64>,
    pub warnings: Vec<Warning>,
}

impl ArchiveHistory {
    /// Reads all commits.
    pub fn load(files: &dyn Files, folder: &Path) -> Result<ArchiveHistory, Error> {
        let mut history = ArchiveHistory::default();
        history.read_log(files, &log_path(folder), u64::MAX)?;
        history.logged.clone_from(&history.state.packs);
        history.apply_pack_commits(files, folder)?;
        Ok(history)
    }

    /// Reads the log up to an offset. Later data, in the log and in the packs, belongs to a failed commit.
    pub(crate) fn load_until(files: &dyn Files, folder: &Path, end: u64) -> Result<ArchiveHistory, Error> {
        let mut history = ArchiveHistory::default();
        history.read_log(files, &log_path(folder), end)?;
        Ok(history)
    }

    fn read_log(&mut self, files: &dyn Files, path: &Path, end: u64) -> Result<(), Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let input = match files.reader(path, 0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            input => input.map_err(unreadable)?,
        };
        self.length = files.length(path).map_err(unreadable)?.unwrap_or(0);
        let mut input = BufReader::with_capacity(256 << 10, input.take(end));
        loop {
            match Commit::read(&mut input).map_err(unreadable)? {
                NextCommit::Commit(commit) => {
                    self.apply_next(path, &commit)?;
                    self.complete_end += commit.bytes.len() as u64;
                }
                NextCommit::End | NextCommit::Incomplete => return Ok(()),
                NextCommit::Damaged if Commit::is_torn(&files.read(path, self.complete_end).map_err(unreadable)?) => {
                    return Ok(());
                }
                NextCommit::Damaged => return Err(Error::about(path, Problem::LogDamaged { at: self.complete_end })),
                NextCommit::Version(version) if version > super::line::VERSION => {
                    return Err(Error::about(path, Problem::Newer));
                }
                NextCommit::Version(_) => return Err(Error::about(path, Problem::Older)),
            }
        }
    }

    /// Applies a commit that must follow the previous one.
    fn apply_next(&mut self, path: &Path, commit: &Commit) -> Result<(), Error> {
        let follows = commit.head.commit == self.state.commits + 1 && commit.head.after == self.state.chain;
        let odd = if follows { self.state.commit(commit) } else { 1 };
        if !follows || (odd > 0 && !self.state.is_lossy) {
            return Err(Error::about(path, Problem::LogDamaged { at: self.complete_end }));
        }
        Ok(())
    }

    /// Applies the commits that packs hold and the log lacks.
    fn apply_pack_commits(&mut self, files: &dyn Files, folder: &Path) -> Result<(), Error> {
        let (mut found, mut ends, mut sound) = (Vec::new(), Vec::new(), HashSet::new());
        for (pack, length) in present(files, folder)? {
            let known = self.state.packs.get(&pack).copied().unwrap_or(0);
            if length <= known || self.state.dropped.contains(&pack) {
                continue;
            }
            let mut walk = PackScan::new(files, folder, pack, known)?;
            while let Some(step) = walk.next()? {
                let commits = commits_in(&step.found);
                sound.extend(step.found.is_ok().then_some((pack, step.at)));
                ends.push((pack, step.at, (!commits.is_empty()).then_some(step.at + step.size)));
                found.extend(commits);
            }
        }
        let path = log_path(folder);
        // Of two commits with the same number, the later one was written after the earlier one failed.
        while let Some(next) = found.iter().rposition(|commit: &Commit| {
            commit.head.commit == self.state.commits + 1 && commit.head.after == self.state.chain
        }) {
            let commit = found.remove(next);
            // A power failure may leave a commit whose pieces did not reach the disk. It is the last one and was not
            // acknowledged.
            let is_last = found.iter().all(|other| other.head.commit <= commit.head.commit);
            let is_there = |piece: &PieceLine| {
                let is_logged = self.logged.get(&piece.pack).is_some_and(|known| piece.at < *known);
                is_logged || sound.contains(&(piece.pack, piece.at))
            };
            if is_last && !commit.pieces().all(|piece| is_there(&piece)) {
                let text = format!("commit {} is incomplete and ignored", commit.head.commit);
                self.warnings.push(Warning::new(&path, text));
                continue;
            }
            self.apply_next(&path, &commit)?;
            self.only_in_packs.push(commit);
        }
        if found.iter().any(|commit| commit.head.commit > self.state.commits) {
            return Err(Error::about(&path, Problem::LogDamaged { at: self.complete_end }));
        }
        // The log does not record where the last commit in a pack ends.
        for (pack, at, end) in ends {
            let known = self.state.packs.entry(pack).or_default();
            *known = if at == *known { end.unwrap_or(at) } else { *known };
        }
        if !self.only_in_packs.is_empty() {
            let (count, all) = (self.only_in_packs.len(), self.state.commits);
            let text = format!("{count} of {all} commits are missing from the log; the packs have them");
            self.warnings.push(Warning::new(&path, text));
        }
        Ok(())
    }
}

/// The commits in a block.
pub(super) fn commits_in(found: &Result<(BlockHeader, Vec<u8>), Damage>) -> Vec<Commit> {
    let Ok((header, body)) = found else { return Vec::new() };
    let raw = if header.kind == BlockKind::Commit { header.decode(body).unwrap_or_default() } else { Vec::new() };
    let (mut rest, mut commits) = (raw.as_slice(), Vec::new());
    while let Ok(NextCommit::Commit(commit)) = Commit::read(&mut rest) {
        commits.push(commit);
    }
    commits
}
