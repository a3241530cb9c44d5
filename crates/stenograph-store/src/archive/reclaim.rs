//! Frees space: rewrites each pack of which more than an eighth is unused. Nothing is removed before its replacement is durable
//! and recorded in the log.

use super::block::{BlockHeader, BlockKind};
use super::history::commits_in;
use super::line::{LogLine, PieceLine};
use super::pack_writer::BlockLocation;
use super::packs::{PackScan, pack_path};
use super::writer::{ArchiveWriter, fail};
use crate::error::{Error, Problem};
use crate::tail::Warning;

/// The result of reclaiming space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// The number of packs rewritten.
    pub packs: u64,
    /// Their size before.
    pub before: u64,
    /// Packs that could not be rewritten and stay as they are.
    pub warnings: Vec<Warning>,
}

impl ArchiveWriter {
    /// Rewrites every pack of which more than an eighth is unused. Pending changes are committed first.
    pub fn reclaim(&mut self, now_ms: i64) -> Result<Reclaimed, Error> {
        self.commit(now_ms)?;
        self.rewrite_packs(self.wasteful_packs(), now_ms)
    }

    /// Rewrites every pack that holds an unused piece, so that no byte of it is left on disk. Pending changes are committed
    /// first.
    pub fn reclaim_all(&mut self, now_ms: i64) -> Result<Reclaimed, Error> {
        self.commit(now_ms)?;
        let used = self.state.used();
        let unused = self.state.pieces.iter().zip(used).filter(|(_, used)| !used);
        let unused: std::collections::HashSet<u32> = unused.map(|(piece, _)| piece.pack).collect();
        let packs = self.state.packs.iter().filter(|(pack, _)| unused.contains(pack));
        self.rewrite_packs(packs.map(|(pack, length)| (*pack, *length)).collect(), now_ms)
    }

    fn rewrite_packs(&mut self, wasteful_packs: Vec<(u32, u64)>, now_ms: i64) -> Result<Reclaimed, Error> {
        let mut reclaimed = Reclaimed::default();
        if self.packs.current_pack().is_some_and(|pack| wasteful_packs.iter().any(|(other, _)| *other == pack)) {
            self.packs.start_new_pack();
        }
        for (pack, length) in wasteful_packs {
            if let Some(warning) = self.move_used_blocks(pack)? {
                reclaimed.warnings.push(warning);
                continue;
            }
            self.write(LogLine::Drop { pack })?;
            self.commit(now_ms)?;
            self.find_lost()?;
            self.remove_pack(pack)?;
            reclaimed.packs += 1;
            reclaimed.before += length;
        }
        Ok(reclaimed)
    }

    /// The packs of which more than an eighth is unused, with their lengths.
    fn wasteful_packs(&self) -> Vec<(u32, u64)> {
        let used = self.state.used();
        let mut waste = self.state.packs.clone();
        for (piece, _) in self.state.pieces.iter().zip(used).filter(|(_, used)| *used) {
            if let Some(waste) = waste.get_mut(&piece.pack) {
                *waste = waste.saturating_sub(piece.size);
            }
        }
        let lengths =
            self.state.packs.iter().filter(|(pack, length)| waste.get(pack).is_some_and(|waste| *waste * 8 > **length));
        lengths.map(|(pack, length)| (*pack, *length)).collect()
    }

    /// Stores the used pieces and the commits of a pack elsewhere. A damaged pack stays as it is.
    fn move_used_blocks(&mut self, pack: u32) -> Result<Option<Warning>, Error> {
        let used = self.state.used();
        let needed: std::collections::HashMap<u64, u32> = (0..)
            .zip(&self.state.pieces)
            .filter(|(number, piece)| piece.pack == pack && used.get(*number as usize) == Some(&true))
            .map(|(number, piece)| (piece.at, number))
            .collect();
        // Everything is read before anything is moved.
        let mut found = 0;
        let mut is_sound = true;
        self.walk(pack, |_, at, header, body| {
            if needed.contains_key(&at) {
                found += 1;
                is_sound &= header.decode(body).is_ok();
            }
            Ok(())
        })?;
        if !is_sound || found < needed.len() {
            let text = "kept unchanged, because part of it is damaged: steno archive verify lists the damage";
            return Ok(Some(Warning::new(&pack_path(&self.folder, pack), text)));
        }
        let (mut commits, mut moved) = (Vec::new(), 0);
        self.walk(pack, |writer, at, header, body| {
            let found = commits_in(&Ok((*header, body.to_vec())));
            let logged = found.into_iter().filter(|commit| writer.state.has_commit(commit));
            logged.for_each(|commit| commits.extend(commit.bytes));
            let Some(number) = needed.get(&at).copied() else { return Ok(()) };
            let Ok(raw) = header.decode(body) else { return Ok(()) };
            let written = writer.packs.write(BlockKind::Piece, &header.hash, &raw);
            let BlockLocation { pack, at, size } = written.map_err(|error| fail(&mut writer.failed, error))?;
            let (raw, hash) = (header.raw_size, header.hash);
            moved += 1;
            writer.write(LogLine::Piece(PieceLine { number, pack, at, size, raw, hash }))
        })?;
        if moved < needed.len() {
            let error = Error::about(&pack_path(&self.folder, pack), Problem::Damaged);
            return Err(fail(&mut self.failed, error));
        }
        if !commits.is_empty() {
            let written = self.packs.write(BlockKind::Commit, blake3::hash(&commits).as_bytes(), &commits);
            written.map_err(|error| fail(&mut self.failed, error))?;
        }
        Ok(None)
    }

    /// Passes every intact block of a pack to `take`.
    fn walk(
        &mut self,
        pack: u32,
        mut take: impl FnMut(&mut ArchiveWriter, u64, &BlockHeader, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let files = std::sync::Arc::clone(&self.files);
        let path = pack_path(&self.folder, pack);
        let length = files.length(&path).map_err(|error| Error::at(&path, Problem::Unreadable, error))?;
        if length.is_none() {
            return Ok(());
        }
        let mut walk = PackScan::new(files.as_ref(), &self.folder, pack, 0)?;
        while let Some(step) = walk.next()? {
            if let Ok((header, body)) = &step.found {
                take(self, step.at, header, body)?;
            }
        }
        Ok(())
    }
}
