//! What letting go of copies would lose, and how much room it would give. It reads and decides nothing.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

use super::{Archive, CopyId, Which};
use crate::error::{Error, Problem};

/// What stands where the source of a copy stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A file that begins with everything that is kept, byte for byte.
    Whole,
    /// A file that says something else.
    Other,
    /// Nothing.
    Nothing,
}

impl Archive {
    /// Whether a file has all of what was last kept of a source. Both are read to the end: neither a time nor a length is proof.
    pub fn standing(&self, copy: CopyId, path: &Path) -> Result<Standing, Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Nothing),
            Err(error) => return Err(unreadable(error)),
        };
        let mut kept = self.read(copy, Which::Last, 0)?;
        let mut there = Vec::new();
        loop {
            let bytes = kept.fill_buf().map_err(|error| Error::at(path, Problem::Damaged, error))?;
            if bytes.is_empty() {
                return Ok(Standing::Whole);
            }
            there.resize(bytes.len(), 0);
            match file.read_exact(&mut there) {
                Ok(()) if there == bytes => {}
                Ok(()) => return Ok(Standing::Other),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Standing::Other),
                Err(error) => return Err(unreadable(error)),
            }
            let length = bytes.len();
            kept.consume(length);
        }
    }

    /// About how many stored bytes nobody would need without these copies. What they share with others stays.
    pub fn room(&self, copies: &[CopyId]) -> u64 {
        let state = self.state();
        let gone: HashSet<u32> = copies.iter().map(|copy| copy.0).collect();
        let mut pieces: HashSet<u32> = HashSet::new();
        let of = |copy: &u32| state.copies.get(copy).into_iter().flat_map(|held| &held.versions);
        pieces.extend(gone.iter().flat_map(of).flat_map(|version| &version.pieces));
        for copy in state.copies.keys().filter(|copy| !gone.contains(copy)) {
            of(copy).flat_map(|version| &version.pieces).for_each(|piece| _ = pieces.remove(piece));
        }
        let stored = |number: &u32| {
            let (piece, frame) = state.piece(*number)?;
            Some(frame.size.saturating_mul(u64::from(piece.size)) / u64::from(frame.raw_size.max(1)))
        };
        pieces.iter().filter_map(stored).sum()
    }
}
