//! Checks what forgetting copies would lose and how much space it would free. It only reads.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;

use super::{Archive, CopyId};
use crate::databases;
use crate::error::{Error, Problem};

/// The file at the path of a copy's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceCheck {
    /// A file that begins with all bytes of the copy.
    Whole,
    /// A file with other bytes.
    Other,
    /// No file.
    Nothing,
}

impl Archive {
    /// Checks whether a file has all bytes of the last version of a copy. Reads and hashes the file, because neither time nor
    /// length is proof.
    pub fn check_source(&self, copy: CopyId, path: &Path) -> Result<SourceCheck, Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let mut file = match databases::open_file(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SourceCheck::Nothing),
            Err(error) => return Err(unreadable(error)),
        };
        let last = self.state.copies.get(&copy.0).and_then(|copy_state| copy_state.versions.last());
        let last = last.ok_or_else(|| Error::about(path, Problem::NotKept))?;
        let (mut bytes, mut length) = (Vec::new(), 0);
        for piece in last.pieces.iter().map(|number| self.state.pieces.get(*number as usize)) {
            let Some(piece) = piece else { return Ok(SourceCheck::Other) };
            bytes.clear();
            file.by_ref().take(u64::from(piece.raw)).read_to_end(&mut bytes).map_err(unreadable)?;
            if *blake3::hash(&bytes).as_bytes() != piece.hash {
                return Ok(SourceCheck::Other);
            }
            length += bytes.len() as u64;
        }
        Ok(if length == last.length { SourceCheck::Whole } else { SourceCheck::Other })
    }

    /// How many stored bytes would be unused without these copies. Pieces shared with other copies stay.
    pub fn freed_bytes(&self, copies: &[CopyId]) -> u64 {
        let gone: HashSet<u32> = copies.iter().map(|copy| copy.0).collect();
        let mut pieces: HashSet<u32> = HashSet::new();
        let of = |copy: &u32| self.state.copies.get(copy).into_iter().flat_map(|copy_state| &copy_state.versions);
        pieces.extend(gone.iter().flat_map(of).flat_map(|version| &version.pieces));
        for copy in self.state.copies.keys().filter(|copy| !gone.contains(copy)) {
            of(copy).flat_map(|version| &version.pieces).for_each(|piece| _ = pieces.remove(piece));
        }
        let piece = |number: &u32| self.state.pieces.get(*number as usize);
        pieces.iter().filter_map(piece).map(|piece| piece.size).sum()
    }
}
