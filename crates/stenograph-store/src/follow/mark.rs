//! What a file looked like where it was read: its first bytes and the last ones before where reading stopped. A file in which both still
//! stand where they stood is the same and has grown; any other was written anew.

use std::fs::File;
use std::io;

use super::lines::read_at;

/// How many bytes are remembered at either end: more than the first line of any two sessions has in common.
const SIZE_MAX: usize = 1 << 10;

/// The remembered bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    first: Vec<u8>,
    last: Vec<u8>,
    /// Where the last ones end.
    offset: u64,
}

impl Mark {
    /// The mark of a file that was read up to `offset`.
    pub fn of(file: &File, offset: u64) -> io::Result<Mark> {
        let length = usize::try_from(offset).unwrap_or(usize::MAX).min(SIZE_MAX);
        let mut mark = Mark { first: vec![0; length], last: vec![0; length], offset };
        let found = read_at(file, 0, &mut mark.first)?;
        mark.first.truncate(found);
        let found = read_at(file, offset - length as u64, &mut mark.last)?;
        mark.last.truncate(found);
        Ok(mark)
    }

    /// How many bytes it has, which are read to compare it.
    pub fn size(&self) -> u64 {
        (self.first.len() + self.last.len()) as u64
    }

    /// Takes notice of the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let room = SIZE_MAX.saturating_sub(self.first.len());
        if self.first.len() as u64 == self.offset {
            self.first.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        }
        self.last.extend_from_slice(bytes.get(bytes.len().saturating_sub(SIZE_MAX)..).unwrap_or_default());
        self.last.drain(..self.last.len().saturating_sub(SIZE_MAX));
        self.offset += bytes.len() as u64;
    }

    /// Whether a file still has both.
    pub fn is_on(&self, file: &File) -> io::Result<bool> {
        let is_there = |offset: u64, expected: &[u8]| -> io::Result<bool> {
            let mut found = vec![0; expected.len()];
            Ok(read_at(file, offset, &mut found)? == expected.len() && found == expected)
        };
        Ok(is_there(0, &self.first)? && is_there(self.offset - self.last.len() as u64, &self.last)?)
    }
}
