//! Reads the original bytes of a copy from any offset, checked piece by piece. This file writes nothing.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use super::block::Damage;
use super::packs::Packs;
use super::state::{ArchiveState, Version};

/// A reader of a copy's bytes.
#[derive(Debug)]
pub struct CopyReader<'a> {
    state: &'a ArchiveState,
    packs: &'a Packs,
    pieces: &'a [u32],
    /// The index of the next piece.
    next: usize,
    piece: Arc<Vec<u8>>,
    /// How much of the current piece was read.
    position: usize,
    /// How many bytes remain.
    rest: u64,
}

impl<'a> CopyReader<'a> {
    pub(super) fn new(state: &'a ArchiveState, packs: &'a Packs, version: &'a Version, from: u64) -> CopyReader<'a> {
        let pieces = version.pieces.as_slice();
        let (mut next, mut position) = (0, from);
        while let Some(size) = pieces.get(next).map(|number| state.size_of(*number)).filter(|size| position >= *size) {
            (next, position) = (next + 1, position - size);
        }
        let rest = version.length.saturating_sub(from);
        CopyReader { state, packs, pieces, next, piece: Arc::default(), position: position as usize, rest }
    }
}

/// The error for reading a damaged copy.
pub(super) fn damaged(damage: Damage) -> io::Error {
    let text = match damage {
        Damage::Truncated => "a piece is truncated",
        Damage::Header | Damage::Body => "the stored bytes of a piece are damaged",
        Damage::HashMismatch => "a piece does not match its hash",
        Damage::Unreadable => "a piece is missing",
    };
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl BufRead for CopyReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.piece.len() <= self.position && self.rest > 0 {
            // If the pieces end before the copy does, commits were lost.
            let number = self.pieces.get(self.next).ok_or_else(|| damaged(Damage::Unreadable))?;
            self.position -= self.piece.len();
            self.piece = self.packs.piece(self.state, *number).map_err(damaged)?;
            self.next += 1;
        }
        Ok(self.piece.get(self.position..).filter(|_| self.rest > 0).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.position += amount;
        self.rest = self.rest.saturating_sub(amount as u64);
    }
}

impl Read for CopyReader<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let length = bytes.len().min(room.len());
        if let (Some(room), Some(bytes)) = (room.get_mut(..length), bytes.get(..length)) {
            room.copy_from_slice(bytes);
        }
        self.consume(length);
        Ok(length)
    }
}
