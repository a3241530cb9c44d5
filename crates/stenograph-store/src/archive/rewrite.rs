//! Replaces the content of a copy in every version, so that the old bytes can be removed from the packs. The caller decides
//! about the bytes.

use std::io::{Read, Write};
use std::sync::Arc;

use stenograph::edit::Rewritable;

use super::CopyId;
use super::block::PIECE_SIZE;
use super::line::{CopyLine, LogLine};
use super::packs::Packs;
use super::read::CopyReader;
use super::writer::ArchiveWriter;
use crate::error::{Error, Problem};
use crate::output::Spool;

/// Whether a rewrite changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteOutcome {
    /// The bytes are as before.
    Same,
    /// The bytes differ.
    Changed,
}

/// Copies bytes and may change them.
pub type Rewrite<'r> = dyn FnMut(&mut dyn Read, &mut dyn Write) -> Result<RewriteOutcome, Error> + 'r;

impl ArchiveWriter {
    /// Replaces every version of a copy by what `rewrite` makes of it. The next commit makes that durable;
    /// [`ArchiveWriter::reclaim_all`] then removes the old bytes.
    pub fn rewrite(&mut self, copy: CopyId, rewrite: &mut Rewrite<'_>) -> Result<RewriteOutcome, Error> {
        self.ready()?;
        let missing = || Error::about(&self.folder.join(copy.to_string()), Problem::NotKept);
        let copy_state = self.state.copies.get(&copy.0).cloned().ok_or_else(missing)?;
        let (mut spools, mut outcome) = (Vec::new(), RewriteOutcome::Same);
        let packs = Packs::new(Arc::clone(&self.files), &self.folder);
        for version in &copy_state.versions {
            let mut spool = Spool::new()?;
            if rewrite(&mut CopyReader::new(&self.state, &packs, version, 0), &mut spool)? == RewriteOutcome::Changed {
                outcome = RewriteOutcome::Changed;
            }
            spools.push(spool);
        }
        let Some(last) = copy_state.versions.last().filter(|_| outcome == RewriteOutcome::Changed) else {
            return Ok(RewriteOutcome::Same);
        };
        for (number, mut spool) in (last.number + 1..).zip(spools) {
            let mut line =
                CopyLine { copy: copy.0, version: number, modified: copy_state.modified_ns, ..CopyLine::default() };
            let unreadable = |error| Error::at(&copy_state.path, Problem::Unreadable, error);
            let mut content = spool.reread().map_err(unreadable)?;
            loop {
                let mut piece = Vec::new();
                (&mut content).take(PIECE_SIZE as u64).read_to_end(&mut piece).map_err(unreadable)?;
                if piece.is_empty() {
                    break;
                }
                line.length += piece.len() as u64;
                line.pieces.push(self.put_piece(&piece)?.0);
            }
            self.write_copy(line)?;
        }
        let versions = copy_state.versions.iter().map(|version| version.number).collect();
        self.write(LogLine::Thin { copy: copy.0, versions })?;
        Ok(RewriteOutcome::Changed)
    }
}
