//! Gives room back: a pack most of which nobody needs is written anew without that. Nothing is removed before what replaces it is
//! durable and the log says so.

use super::keeper::{Keeper, fail, known_pieces};
use super::line::Line;
use super::packs::{Packs, pack_path};
use super::read::damaged;
use super::state::{NOWHERE, Need};
use crate::error::{Error, Problem};
use crate::tail::Remark;

/// What was given back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// How many packs were written anew.
    pub packs: u64,
    /// How many bytes these took up.
    pub before: u64,
    /// What could not be done, and stays as it is.
    pub remarks: Vec<Remark>,
}

impl Keeper {
    /// Writes every pack anew of which more than half is garbage. What waits to be committed is committed first.
    pub fn reclaim(&mut self, now_ms: i64) -> Result<Reclaimed, Error> {
        self.commit(now_ms)?;
        let mut reclaimed = Reclaimed::default();
        let used = self.history.state.used();
        let wasteful = self.wasteful(&used);
        if self.stage.current_pack().is_some_and(|pack| wasteful.contains(&pack)) {
            self.stage.leave_pack();
        }
        for pack in wasteful {
            let length = self.history.state.packs.get(&pack).map_or(0, |pack| pack.length);
            if let Some(damaged) = self.move_out(pack, &used)? {
                reclaimed.remarks.push(damaged);
                continue;
            }
            self.write(Line::Drop { pack })?;
            self.commit(now_ms)?;
            self.known = known_pieces(&self.history.state);
            self.remove_pack(pack)?;
            reclaimed.packs += 1;
            reclaimed.before += length;
        }
        Ok(reclaimed)
    }

    /// The packs of which more than half is garbage.
    fn wasteful(&self, used: &[bool]) -> Vec<u32> {
        let state = &self.history.state;
        let mut live: Vec<u64> = vec![0; state.frames.len()];
        for (piece, _) in state.pieces.iter().zip(used).filter(|(piece, used)| **used && piece.frame != NOWHERE) {
            if let Some(live) = live.get_mut(piece.frame as usize) {
                *live += u64::from(piece.size);
            }
        }
        let mut stored: std::collections::BTreeMap<u32, (u64, u64)> = std::collections::BTreeMap::new();
        for (frame, live) in state.frames.iter().zip(live) {
            let (all, needed) = stored.entry(frame.pack).or_default();
            *all += frame.size;
            *needed += frame.size.saturating_mul(live) / u64::from(frame.raw_size.max(1));
        }
        let is_there = |pack: &u32| state.packs.get(pack).is_some_and(|pack| pack.need == Need::Needed);
        let wasteful = stored.into_iter().filter(|(pack, (all, needed))| needed * 2 < *all && is_there(pack));
        wasteful.map(|(pack, _)| pack).collect()
    }

    /// Stores what is needed of a pack elsewhere. What cannot be read stays where it is, and so does the pack.
    fn move_out(&mut self, pack: u32, used: &[bool]) -> Result<Option<Remark>, Error> {
        let state = &self.history.state;
        let is_in = |frame: u32| state.frames.get(frame as usize).is_some_and(|frame| frame.pack == pack);
        let pieces = state.pieces.iter().enumerate().zip(used);
        let mut needed: Vec<(u32, u32, u32)> = pieces
            .filter(|((_, piece), used)| **used && is_in(piece.frame))
            .map(|((number, piece), _)| (piece.frame, piece.at, number as u32))
            .collect();
        needed.sort_unstable();
        let packs = Packs::new(std::sync::Arc::clone(&self.files), &self.folder);
        // All of it is read before anything is moved: half a pack that was moved would be in two places.
        for (_, _, number) in &needed {
            if packs.piece(&self.history.state, *number).is_err() {
                let text =
                    "some of what is kept in it is damaged, so it stays as it is: steno archive verify says what";
                return Ok(Some(Remark::new(&pack_path(&self.folder, pack), text)));
            }
        }
        for (_, _, number) in needed {
            let Some(piece) = self.history.state.pieces.get(number as usize).copied() else { continue };
            let bytes = packs.piece(&self.history.state, number).map_err(|damage| {
                let path = pack_path(&self.folder, pack);
                fail(&mut self.failed, Error::at(&path, Problem::Damaged, damaged(damage)))
            })?;
            let moved = self.stage.add_moved(&mut self.history.state, number, piece.hash, bytes.as_slice());
            moved.map_err(|error| fail(&mut self.failed, error))?;
        }
        self.flush()?;
        Ok(None)
    }
}
