//! Rebuilds a damaged log from its intact commits and from the second copies in the packs, and restores missing second copies.
//! Forgotten sessions stay forgotten: tombstones are lines of commits like all others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::BlockKind;
use super::history::{ArchiveHistory, commits_in};
use super::line::{Commit, CommitHeader, LogLine};
use super::open::take_lock;
use super::packs::{PackScan, log_path, present};
use super::state::ArchiveState;
use super::writer::ArchiveWriter;
use crate::error::{Error, Problem};
use crate::files::{Files, folder_of, write_all};

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The number of commits in the log now.
    pub commits: u64,
    /// How many of them only the packs had.
    pub from_packs: u64,
    /// Commits that are damaged in both places: the first and the last number of each gap.
    pub lost: Vec<(u64, u64)>,
    /// How many lines refer to a lost commit.
    pub lines_lost: u64,
    /// The new path of the damaged log, if it was damaged.
    pub moved_to: Option<PathBuf>,
    /// How many commits got a new second copy in the packs.
    pub to_packs: u64,
}

impl ArchiveWriter {
    /// Repairs the log and the second copies of its commits.
    pub fn repair(files: &Arc<dyn Files>, folder: &Path) -> Result<Repaired, Error> {
        let lock = take_lock(files.as_ref(), folder)?;
        let in_packs = commits_in_packs(files.as_ref(), folder)?;
        let mut repaired = Repaired::default();
        match ArchiveHistory::load(files.as_ref(), folder) {
            Ok(history) => repaired.from_packs = history.only_in_packs.len() as u64,
            Err(error) if matches!(error.problem, Problem::LogDamaged { .. }) => {
                let in_log = commits_in_log(files.as_ref(), &log_path(folder))?;
                rebuild(files.as_ref(), folder, &in_log, &in_packs, &mut repaired)?;
            }
            Err(error) => return Err(error),
        }
        let mut writer = ArchiveWriter::locked(Arc::clone(files), folder, lock)?;
        repaired.commits = writer.state.commits;
        repaired.to_packs = writer.copy_commits(&in_packs)?;
        Ok(repaired)
    }

    /// Gives every commit without a second copy a new one.
    fn copy_commits(&mut self, in_packs: &[Commit]) -> Result<u64, Error> {
        let chains: Vec<u64> = in_packs.iter().map(Commit::chain).collect();
        let log = commits_in_log(self.files.as_ref(), &log_path(&self.folder))?;
        let mut count = 0;
        for commit in log.iter().filter(|commit| !chains.contains(&commit.chain())) {
            self.packs.write(BlockKind::Commit, blake3::hash(&commit.bytes).as_bytes(), &commit.bytes)?;
            count += 1;
        }
        self.packs.sync()?;
        Ok(count)
    }
}

/// Writes a log of all remaining commits.
fn rebuild(
    files: &dyn Files,
    folder: &Path,
    in_log: &[Commit],
    in_packs: &[Commit],
    repaired: &mut Repaired,
) -> Result<(), Error> {
    let mut by_number: BTreeMap<u64, Vec<(&Commit, u64)>> = BTreeMap::new();
    for (commits, from_packs) in [(in_packs, 1), (in_log, 0)] {
        for commit in commits {
            by_number.entry(commit.head.commit).or_default().push((commit, from_packs));
        }
    }
    let unwritable = |error| Error::at(&log_path(folder), Problem::Unwritable, error);
    let (mut state, mut bytes) = (ArchiveState::default(), Vec::new());
    for (commit, from_packs) in chain(&by_number) {
        let first = state.commits + 1;
        if commit.head.commit > first {
            let (lost, sum) = (commit.head.commit - first, commit.head.after);
            let line = LogLine::Lost { commits: lost, sum }.encode().map_err(unwritable)?;
            let head = CommitHeader { commit: first, after: state.chain, pack: 0, at: 0, ..commit.head };
            let marker = Commit::new(head, &line).map_err(unwritable)?;
            state.commit(&marker);
            bytes.extend_from_slice(&marker.bytes);
            repaired.lost.push((first, first + lost - 1));
        }
        repaired.lines_lost += state.commit(commit) as u64;
        repaired.from_packs += from_packs;
        bytes.extend_from_slice(&commit.bytes);
    }
    replace_log(files, folder, &bytes, repaired)
}

/// The commits that lead to the last one, oldest first. Each names its predecessor; if that one is lost, the chain continues
/// with the next smaller number.
fn chain<'c>(by_number: &BTreeMap<u64, Vec<(&'c Commit, u64)>>) -> Vec<(&'c Commit, u64)> {
    // The one from the log comes last; of those in the packs, the later one was written after the earlier one failed.
    let last_of = |candidates: &Vec<(&'c Commit, u64)>| candidates.last().copied();
    let mut path = Vec::new();
    let mut next = by_number.last_key_value().and_then(|(_, candidates)| last_of(candidates));
    while let Some((commit, from_packs)) = next {
        path.push((commit, from_packs));
        let before = commit.head.commit.saturating_sub(1);
        let is_before = |(other, _): &&(&Commit, u64)| other.chain() == commit.head.after;
        let linked = by_number.get(&before).and_then(|candidates| candidates.iter().rev().find(is_before)).copied();
        next = linked.or_else(|| by_number.range(..before).next_back().and_then(|(_, candidates)| last_of(candidates)));
    }
    path.reverse();
    path
}

/// Moves the damaged log aside and puts the new one in its place.
fn replace_log(files: &dyn Files, folder: &Path, bytes: &[u8], repaired: &mut Repaired) -> Result<(), Error> {
    let path = log_path(folder);
    let unwritable = |error| Error::at(&path, Problem::Unwritable, error);
    let new = path.with_file_name("log.jsonl.new");
    let mut file = files.open(&new).map_err(unwritable)?;
    let written = file.truncate(0).and_then(|()| write_all(file.as_mut(), bytes)).and_then(|()| file.sync());
    written.map_err(unwritable)?;
    drop(file);
    if files.length(&path).map_err(unwritable)?.is_some() {
        let aside = (1_u32..).map(|number| path.with_file_name(format!("log.jsonl.damaged-{number}")));
        let aside = aside.into_iter().find(|aside| !aside.exists()).unwrap_or_else(|| path.with_extension("damaged"));
        files.rename(&path, &aside).map_err(unwritable)?;
        repaired.moved_to = Some(aside);
    }
    files.rename(&new, &path).and_then(|()| files.sync_folder(folder_of(&path))).map_err(unwritable)
}

/// Every intact commit in the log, even between damaged ones.
fn commits_in_log(files: &dyn Files, path: &Path) -> Result<Vec<Commit>, Error> {
    let unreadable = |error| Error::at(path, Problem::Unreadable, error);
    if files.length(path).map_err(unreadable)?.is_none() {
        return Ok(Vec::new());
    }
    Ok(Commit::all_in(&files.read(path, 0).map_err(unreadable)?))
}

/// Every intact commit in the packs, in the order of writing.
fn commits_in_packs(files: &dyn Files, folder: &Path) -> Result<Vec<Commit>, Error> {
    let mut commits = Vec::new();
    for (pack, _) in present(files, folder)? {
        let mut walk = PackScan::new(files, folder, pack, 0)?;
        while let Some(step) = walk.next()? {
            commits.extend(commits_in(&step.found));
        }
    }
    Ok(commits)
}
