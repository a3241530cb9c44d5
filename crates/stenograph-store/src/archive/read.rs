//! Reads a kept copy: the original bytes, from any offset on, checked piece by piece. Nothing here writes.

use std::io::{self, BufRead, Read};

use super::frame::Damage;
use super::packs::{Packs, PieceBytes};
use super::state::{State, Version};

/// The bytes of a kept copy.
#[derive(Debug)]
pub struct CopyReader<'a> {
    state: &'a State,
    packs: &'a Packs,
    pieces: &'a [u32],
    /// The next piece.
    next: usize,
    piece: Option<PieceBytes>,
    /// How much of the piece was given out.
    position: usize,
}

impl<'a> CopyReader<'a> {
    pub(super) fn new(state: &'a State, packs: &'a Packs, version: &'a Version, from: u64) -> CopyReader<'a> {
        let pieces = version.pieces.as_slice();
        let (mut next, mut position) = (0, from);
        while let Some(number) = pieces.get(next) {
            let size = state.pieces.get(*number as usize).map_or(0, |piece| u64::from(piece.size));
            if position < size {
                break;
            }
            (next, position) = (next + 1, position - size);
        }
        let position = if next < pieces.len() { position as usize } else { 0 };
        CopyReader { state, packs, pieces, next, piece: None, position }
    }
}

/// The error that a damaged copy is read with.
pub(super) fn damaged(damage: Damage) -> io::Error {
    let text = match damage {
        Damage::Torn => "a kept piece ends in the middle",
        Damage::Header | Damage::Body => "the bytes of a kept piece are damaged",
        Damage::Piece => "a kept piece is not what it was",
        Damage::Unreadable => "a kept piece cannot be read",
    };
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl BufRead for CopyReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.piece.as_ref().is_none_or(|piece| piece.as_slice().len() <= self.position) {
            if let Some(piece) = self.piece.take() {
                self.position -= piece.as_slice().len();
            }
            let Some(number) = self.pieces.get(self.next) else { return Ok(&[]) };
            self.piece = Some(self.packs.piece(self.state, *number).map_err(damaged)?);
            self.next += 1;
        }
        let piece = self.piece.as_ref().map_or(&[][..], PieceBytes::as_slice);
        Ok(piece.get(self.position..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.position += amount;
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
