//! Reads every pack from end to end and compares what it holds with the log. It does not stop at damage, and changes nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::block::{Damage, Kind};
use super::history::commits_in;
use super::packs::{Walk, present};
use super::writer::ArchiveWriter;
use super::{Archive, CopyId};
use crate::error::Error;

/// How far a verification is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Stored bytes that were read.
    pub done: u64,
    /// All of them.
    pub total: u64,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many copies there are.
    pub copies: u64,
    /// How many needed pieces are sound.
    pub pieces: u64,
    /// How long these are together.
    pub bytes: u64,
    /// Versions of copies that cannot be read whole.
    pub damaged: Vec<Damaged>,
    /// How many blocks there are that no commit mentions.
    pub unmentioned: u64,
    /// How many bytes of the packs these take up, damaged ones among them.
    pub unmentioned_bytes: u64,
    /// How many commits of the log have no sound second copy in the packs.
    pub single_commits: u64,
    bad_pieces: BTreeSet<u32>,
    is_remembered: bool,
}

/// A version of a copy that cannot be read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The copy.
    pub copy: CopyId,
    /// Its version.
    pub version: u32,
    /// Where the first damage begins.
    pub offset: u64,
    /// How many of its bytes cannot be read.
    pub bytes: u64,
    /// What is wrong there.
    pub damage: Damage,
}

impl Verified {
    /// Whether the archive does not know yet which pieces are damaged.
    pub fn is_news(&self) -> bool {
        !self.is_remembered
    }
}

impl Archive {
    /// Reads and hashes everything. `progress` hears how far it is, and returns `false` to stop.
    pub fn verify(&self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<Verified, Error> {
        let state = &self.state;
        let used = state.used();
        let mut verified = Verified { copies: state.copies.len() as u64, ..Verified::default() };
        let mut expected: HashMap<(u32, u64), Vec<u32>> = HashMap::new();
        for (number, piece) in (0..).zip(&state.pieces) {
            expected.entry((piece.pack, piece.at)).or_default().push(number);
        }
        let mut bad: BTreeMap<u32, Damage> = BTreeMap::new();
        let needed = (0..).zip(&used).filter(|(_, used)| **used).map(|(number, _)| number);
        bad.extend(needed.map(|number| (number, Damage::Unreadable)));
        let mut commits = BTreeSet::new();
        let packs = present(self.files.as_ref(), &self.folder)?;
        let mut at = Progress { done: 0, total: packs.iter().map(|(_, length)| length).sum() };
        let mut is_stopped = false;
        'packs: for (pack, _) in packs.into_iter().filter(|(pack, _)| !state.dropped.contains(pack)) {
            let mut walk = Walk::new(self.files.as_ref(), &self.folder, pack, 0)?;
            while let Some(step) = walk.next()? {
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
                let is_block = !matches!(&step.found, Ok((header, _)) if header.kind == Kind::Commit);
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
                        Ok(_) => _ = bad.insert(*number, Damage::Piece),
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
        verified.damaged = self.concerned(&bad);
        verified.bad_pieces = bad.into_keys().collect();
        verified.is_remembered = is_stopped || verified.bad_pieces == state.damaged;
        Ok(verified)
    }

    /// The versions that have bad pieces.
    fn concerned(&self, bad: &BTreeMap<u32, Damage>) -> Vec<Damaged> {
        let mut concerned = Vec::new();
        for (copy, held) in &self.state.copies {
            for version in &held.versions {
                let mut damaged: Option<Damaged> = None;
                let mut at = 0;
                let mut add = |offset, bytes, damage| {
                    let (copy, version) = (CopyId(*copy), version.number);
                    damaged.get_or_insert(Damaged { copy, version, offset, bytes: 0, damage }).bytes += bytes;
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
                concerned.extend(damaged);
            }
        }
        concerned
    }
}

impl ArchiveWriter {
    /// Remembers which pieces a verification found damaged, so that their sources are archived again.
    pub fn remember(&mut self, verified: &Verified) -> Result<(), Error> {
        self.ready()?;
        self.write(super::line::Line::Damaged { pieces: verified.bad_pieces.iter().copied().collect() })?;
        self.find_lost()
    }
}
