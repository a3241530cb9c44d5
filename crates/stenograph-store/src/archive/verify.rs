//! Reads everything that is kept and compares it with its names. It never stops at the first damage, and changes nothing.

use std::collections::{BTreeMap, HashMap};

use super::frame::Damage;
use super::state::Need;
use super::{Archive, CopyId};

/// How far a verification is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Stored bytes that were looked at.
    pub done: u64,
    /// All of them.
    pub total: u64,
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many copies were looked at.
    pub copies: u64,
    /// How many pieces are what they are named.
    pub pieces: u64,
    /// How long these are together.
    pub bytes: u64,
    /// What is not as it was, by copy and version.
    pub damaged: Vec<Damaged>,
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

impl Archive {
    /// Reads and hashes everything. `progress` is told how far it is, and says with `false` that it is enough.
    pub fn verify(&self, progress: &mut dyn FnMut(Progress) -> bool) -> Verified {
        let state = self.state();
        let used = state.used();
        let mut pieces_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut verified = Verified { copies: state.copies.len() as u64, ..Verified::default() };
        let mut bad: HashMap<u32, Damage> = HashMap::new();
        for (number, piece) in state.pieces.iter().enumerate() {
            // What no copy is made of harms nobody.
            if used.get(number) == Some(&true) {
                pieces_of.entry(piece.frame).or_default().push(number as u32);
            }
        }
        let size = |frame: &u32| state.frames.get(*frame as usize).map_or(0, |frame| frame.size);
        let total = pieces_of.keys().map(size).sum();
        let mut done = 0;
        for (frame, numbers) in &pieces_of {
            self.verify_frame(*frame, numbers, &mut verified, &mut bad);
            done += size(frame);
            if !progress(Progress { done, total }) {
                break;
            }
        }
        verified.damaged = self.concerned(&bad);
        verified
    }

    fn verify_frame(&self, frame: u32, numbers: &[u32], verified: &mut Verified, bad: &mut HashMap<u32, Damage>) {
        let state = self.state();
        let raw = match state.frames.get(frame as usize) {
            Some(frame) if state.packs.get(&frame.pack).is_some_and(|pack| pack.need == Need::Needed) => {
                let loaded = self.packs.load(frame).unwrap_or(Err(Damage::Unreadable));
                loaded.and_then(|(header, body)| header.decode(&body, header.raw_size))
            }
            Some(_) | None => Err(Damage::Unreadable),
        };
        for number in numbers {
            let Some(piece) = state.pieces.get(*number as usize) else { continue };
            let checked = raw.as_ref().map_err(|damage| *damage).and_then(|raw| {
                let (start, size) = (piece.at as usize, piece.size as usize);
                let bytes = raw.get(start..start.saturating_add(size)).ok_or(Damage::Piece)?;
                if *blake3::hash(bytes).as_bytes() == piece.hash { Ok(()) } else { Err(Damage::Piece) }
            });
            match checked {
                Ok(()) => {
                    verified.pieces += 1;
                    verified.bytes += u64::from(piece.size);
                }
                Err(damage) => _ = bad.insert(*number, damage),
            }
        }
    }

    /// The versions that bad pieces are in.
    fn concerned(&self, bad: &HashMap<u32, Damage>) -> Vec<Damaged> {
        let state = self.state();
        let mut concerned = Vec::new();
        for (copy, held) in &state.copies {
            for version in &held.versions {
                let mut damaged: Option<Damaged> = None;
                let mut at = 0;
                for number in &version.pieces {
                    let size = state.pieces.get(*number as usize).map(|piece| u64::from(piece.size));
                    let damage = if size.is_none() { Some(Damage::Unreadable) } else { bad.get(number).copied() };
                    if let Some(damage) = damage {
                        let (copy, version) = (CopyId(*copy), version.number);
                        let first = Damaged { copy, version, offset: at, bytes: 0, damage };
                        damaged.get_or_insert(first).bytes += size.unwrap_or(0);
                    }
                    at += size.unwrap_or(0);
                }
                if at != version.length && damaged.is_none() {
                    let (copy, version_number) = (CopyId(*copy), version.number);
                    let bytes = version.length.abs_diff(at);
                    let damage = Damage::Unreadable;
                    damaged = Some(Damaged { copy, version: version_number, offset: at, bytes, damage });
                }
                concerned.extend(damaged);
            }
        }
        concerned
    }
}
