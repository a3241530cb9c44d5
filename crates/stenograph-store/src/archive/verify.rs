//! Reads every pack from end to end and compares its blocks with the log. It does not stop at damage, and changes nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::block::{BlockKind, Damage};
use super::history::commits_in;
use super::packs::{PackScan, present};
use super::writer::ArchiveWriter;
use super::{Archive, CopyId};
use crate::error::Error;

/// The progress of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyProgress {
    /// The stored bytes read so far.
    pub done: u64,
    /// All stored bytes.
    pub total: u64,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of copies.
    pub copies: u64,
    /// The number of marked sessions. Their marks are lines of the log, whose checksums were compared when it was read.
    pub marked: u64,
    /// The number of used pieces that are intact.
    pub pieces: u64,
    /// Their total size.
    pub bytes: u64,
    /// Versions of copies that cannot be read completely.
    pub damaged: Vec<DamagedVersion>,
    /// The number of blocks that no commit mentions.
    pub unmentioned: u64,
    /// The size of those blocks and of damaged ranges in the packs.
    pub unmentioned_bytes: u64,
    /// The number of commits without an intact second copy in the packs.
    pub single_commits: u64,
    bad_pieces: BTreeSet<u32>,
    is_recorded: bool,
}

/// A version of a copy that cannot be read completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedVersion {
    /// The copy.
    pub copy: CopyId,
    /// Its version.
    pub version: u32,
    /// The offset of the first damage.
    pub offset: u64,
    /// How many of its bytes cannot be read.
    pub bytes: u64,
    /// The kind of the first damage.
    pub damage: Damage,
}

impl Verified {
    /// Whether the archive has not recorded these damaged pieces yet.
    pub fn is_unrecorded(&self) -> bool {
        !self.is_recorded
    }
}

impl Archive {
    /// Reads and hashes everything. `progress` receives the progress and returns `false` to stop.
    pub fn verify(&self, progress: &mut dyn FnMut(VerifyProgress) -> bool) -> Result<Verified, Error> {
        let state = &self.state;
        let used = state.used();
        let mut verified =
            Verified { copies: state.copies.len() as u64, marked: state.marks.len() as u64, ..Verified::default() };
        let mut expected: HashMap<(u32, u64), Vec<u32>> = HashMap::new();
        for (number, piece) in (0..).zip(&state.pieces) {
            expected.entry((piece.pack, piece.at)).or_default().push(number);
        }
        let mut bad: BTreeMap<u32, Damage> = BTreeMap::new();
        let needed = (0..).zip(&used).filter(|(_, used)| **used).map(|(number, _)| number);
        bad.extend(needed.map(|number| (number, Damage::Unreadable)));
        let mut commits = BTreeSet::new();
        let mut packs = present(self.files.as_ref(), &self.folder)?;
        packs.retain(|(pack, _)| !state.dropped.contains(pack));
        let mut at = VerifyProgress { done: 0, total: packs.iter().map(|(_, length)| length).sum() };
        let mut is_stopped = false;
        'packs: for (pack, _) in packs {
            // A pack that the disk cannot read leaves its blocks unreadable; the others may be intact.
            let Ok(mut walk) = PackScan::new(self.files.as_ref(), &self.folder, pack, 0) else { continue };
            while let Ok(Some(step)) = walk.next() {
                at.done += step.size;
                if !progress(at) {
                    is_stopped = true;
                    break 'packs;
                }
                let found = commits_in(&step.found);
                if !found.is_empty() {
                    let logged = found.iter().filter(|commit| state.has_commit(commit));
                    commits.extend(logged.map(|commit| commit.head.commit));
                    continue;
                }
                let known = expected.get(&(pack, step.at));
                let is_block = matches!(&step.found, Ok((header, _)) if header.kind != BlockKind::Commit);
                if known.is_none() {
                    verified.unmentioned += u64::from(is_block);
                    verified.unmentioned_bytes += step.size;
                }
                let decoded = step.found.and_then(|(header, body)| header.decode(&body).map(|raw| (header, raw)));
                for number in known.into_iter().flatten() {
                    let piece = state.pieces.get(*number as usize).filter(|_| bad.contains_key(number));
                    let Some(piece) = piece else { continue };
                    match &decoded {
                        Ok((header, raw)) if header.hash == piece.hash => {
                            bad.remove(number);
                            verified.pieces += 1;
                            verified.bytes += raw.len() as u64;
                        }
                        Ok(_) => _ = bad.insert(*number, Damage::HashMismatch),
                        Err(damage) => _ = bad.insert(*number, *damage),
                    }
                }
            }
        }
        if is_stopped {
            bad.retain(|_, damage| *damage != Damage::Unreadable);
        } else {
            verified.single_commits = state.chains.keys().filter(|commit| !commits.contains(commit)).count() as u64;
        }
        verified.damaged = self.damaged_versions(&bad);
        verified.bad_pieces = bad.into_keys().collect();
        verified.is_recorded = is_stopped || verified.bad_pieces == state.damaged;
        Ok(verified)
    }

    /// The versions that have bad pieces.
    fn damaged_versions(&self, bad: &BTreeMap<u32, Damage>) -> Vec<DamagedVersion> {
        let mut damaged_versions = Vec::new();
        for (copy, copy_state) in &self.state.copies {
            for version in &copy_state.versions {
                let mut damaged: Option<DamagedVersion> = None;
                let mut at = 0;
                let mut add = |offset, bytes, damage| {
                    let (copy, version) = (CopyId(*copy), version.number);
                    damaged.get_or_insert(DamagedVersion { copy, version, offset, bytes: 0, damage }).bytes += bytes;
                };
                for number in &version.pieces {
                    let size = self.state.size_of(*number);
                    if let Some(damage) = bad.get(number) {
                        add(at, size, *damage);
                    }
                    at += size;
                }
                if at != version.length {
                    add(at, version.length.abs_diff(at), Damage::Unreadable);
                }
                damaged_versions.extend(damaged);
            }
        }
        damaged_versions
    }
}

impl ArchiveWriter {
    /// Records which pieces a verification found damaged, so that their sources are archived again.
    pub fn record_damage(&mut self, verified: &Verified) -> Result<(), Error> {
        self.ready()?;
        self.write(super::line::LogLine::Damaged { pieces: verified.bad_pieces.iter().copied().collect() })?;
        self.find_lost()
    }
}
