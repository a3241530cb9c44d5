//! Where a file is cut into pieces: by its content, so that the same run of bytes makes the same pieces wherever it stands. Nothing
//! here knows what becomes of them, and no more than one piece is held at a time.

use std::io::{self, Read};

use fastcdc::v2020::{Normalization, cut, select_masks};

/// A piece is at least this long, unless the file ends.
const PIECE_MIN: usize = 64 << 10;
const PIECE_USUAL: usize = 256 << 10;
/// A piece is at most this long.
pub(super) const PIECE_MAX: usize = 1 << 20;

/// Cuts what is read into pieces.
#[derive(Debug)]
pub(super) struct Cutter<R> {
    input: R,
    /// What was read and is not given out yet is from `start` on.
    buffer: Vec<u8>,
    start: usize,
    filled: usize,
    masks: (u64, u64),
    ended: bool,
}

impl<R: Read> Cutter<R> {
    pub fn new(input: R, mut buffer: Vec<u8>) -> Cutter<R> {
        buffer.resize(2 * PIECE_MAX, 0);
        let masks = select_masks(PIECE_USUAL, Normalization::Level1);
        Cutter { input, buffer, start: 0, filled: 0, masks, ended: false }
    }

    /// The next piece; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.filled - self.start < PIECE_MAX && !self.ended {
            self.fill()?;
        }
        let rest = self.buffer.get(self.start..self.filled).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let (strict, relaxed) = self.masks;
        let (_, end) = cut(rest, PIECE_MIN, PIECE_USUAL, PIECE_MAX, strict, relaxed, strict << 1, relaxed << 1);
        let end = end.clamp(1, rest.len());
        self.start += end;
        Ok(rest.get(..end))
    }

    /// The room, for the next file.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.filled, 0);
        (self.start, self.filled) = (0, self.filled - self.start);
        while self.filled < self.buffer.len() {
            match self.input.read(self.buffer.get_mut(self.filled..).unwrap_or_default()) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(length) => self.filled += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut cutter = Cutter::new(bytes, Vec::new());
        let mut pieces = Vec::new();
        while let Some(piece) = cutter.next().unwrap() {
            pieces.push(piece.to_vec());
        }
        pieces
    }

    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(seed);
        std::iter::repeat_with(|| random.u8(..)).take(length).collect()
    }

    #[test]
    fn all_of_a_file_is_in_its_pieces_and_none_is_too_large() {
        for bytes in [Vec::new(), vec![1], noise(1, PIECE_MIN), noise(2, 5_000_001), vec![0; 3_000_000]] {
            let pieces = pieces(&bytes);
            assert_eq!(pieces.concat(), bytes);
            assert!(pieces.iter().all(|piece| (1..=PIECE_MAX).contains(&piece.len())));
            let all_but_last = &pieces[..pieces.len().saturating_sub(1)];
            assert!(all_but_last.iter().all(|piece| piece.len() >= PIECE_MIN));
        }
    }

    #[test]
    fn what_is_inserted_changes_only_the_pieces_around_it() {
        let before = noise(3, 6_000_000);
        let mut after = before.clone();
        after.splice(2_000_000..2_000_000, *b"a few bytes");
        let (before, after) = (pieces(&before), pieces(&after));
        let shared = after.iter().filter(|piece| before.contains(piece)).count();
        assert!(shared + 3 >= after.len(), "{shared} of {}", after.len());
    }
}
