//! How a source changed since it was kept, and how little of it has to be stored. Nothing here writes.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::cut::PIECE_MAX;
use super::line::{HEAD_SIZE, Head};
use super::state::{Held, State};
use crate::error::{Error, Problem};

/// A source as it is now. How long it is, is decided when it is opened: what is written to it meanwhile is for the next time.
#[derive(Debug)]
pub(super) struct OpenSource {
    file: File,
    pub length: u64,
    pub modified_ns: i64,
}

/// How a source changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// It is what it was.
    Same,
    /// It goes on from where it was.
    Grown,
    /// It is another one.
    Other,
}

/// So much of the end of what was kept must still be there.
const TAIL_SIZE: u64 = 4096;

impl OpenSource {
    pub fn open(path: &Path) -> Result<OpenSource, Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        // Opening a pipe would wait for somebody who writes to it.
        let metadata = fs::metadata(path).map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(Error::about(path, Problem::Folder));
        }
        if !metadata.is_file() {
            return Err(Error::about(path, Problem::Odd));
        }
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_ns = modified.and_then(|time| i64::try_from(time.as_nanos()).ok()).unwrap_or(0);
        Ok(OpenSource { file, length: metadata.len(), modified_ns })
    }

    /// Reads on from an offset up to the length it was opened with.
    pub fn from(&mut self, offset: u64) -> io::Result<io::Take<&mut File>> {
        self.file.seek(SeekFrom::Start(offset))?;
        Ok((&mut self.file).take(self.length.saturating_sub(offset)))
    }

    /// How it begins.
    pub fn begin(&mut self) -> io::Result<Vec<u8>> {
        let mut begin = Vec::with_capacity(HEAD_SIZE);
        self.from(0)?.take(HEAD_SIZE as u64).read_to_end(&mut begin)?;
        Ok(begin)
    }

    /// How it begins, where that is not known yet as far as it is looked at.
    pub fn new_head(&mut self, held: Option<&Held>) -> io::Result<Option<Head>> {
        match held.and_then(|held| held.head) {
            Some(head) if head.length as usize == HEAD_SIZE => Ok(None),
            _ => Ok(Some(Head::of(&self.begin()?))),
        }
    }

    /// Compares it with what was kept of it.
    pub fn compare(&mut self, held: &Held, state: &State) -> io::Result<Compared> {
        let Some(last) = held.versions.last() else { return Ok(Compared::Other) };
        if self.length < last.length {
            return Ok(Compared::Other);
        }
        let grows = self.length > last.length;
        let mut at = 0;
        let mut buffer = Vec::new();
        for number in &last.pieces {
            let Some(piece) = state.pieces.get(*number as usize) else { return Ok(Compared::Other) };
            let end = at + u64::from(piece.size);
            // What only grew is known by how it begins and ended; what is as long as it was may differ anywhere.
            if !grows || at == 0 || end + TAIL_SIZE >= last.length {
                buffer.clear();
                self.from(at)?.take(u64::from(piece.size)).read_to_end(&mut buffer)?;
                if *blake3::hash(&buffer).as_bytes() != piece.hash {
                    return Ok(Compared::Other);
                }
            }
            at = end;
        }
        Ok(if at != last.length {
            Compared::Other
        } else if grows {
            Compared::Grown
        } else {
            Compared::Same
        })
    }
}

/// So many small pieces of about one size are stored before they are made one.
const LOOSE_MAX: usize = 15;

/// With which of the loose pieces a source is cut anew when it grew: `sizes` are theirs, `added` is what is new. Most of the
/// time it is none of them. Small pieces are gathered into ones about sixteen times as large, so that a byte is stored again
/// only a few times until it is in a piece that stays.
pub(super) fn cut_anew_from(sizes: &[u32], added: u64) -> usize {
    let total: u64 = sizes.iter().map(|size| u64::from(*size)).sum();
    if total + added >= PIECE_MAX as u64 {
        return 0;
    }
    let tier = |size: u64| size.max(1).ilog2() / 4;
    let (mut from, mut gathered) = (sizes.len(), added);
    loop {
        let before = sizes.get(..from).unwrap_or_default();
        let run = before.iter().rev().take_while(|size| tier(u64::from(**size)) <= tier(gathered));
        let (count, size) = run.fold((0, 0), |(count, sum), size| (count + 1, sum + u64::from(*size)));
        if count < LOOSE_MAX {
            return from;
        }
        (from, gathered) = (from - count, gathered + size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_by_lines_is_stored_a_few_times_and_in_few_pieces() {
        let (mut sizes, mut stored, mut settled, mut most) = (Vec::<u32>::new(), 0_u64, 0_u64, 0);
        let line = 700;
        for _ in 0..4_000 {
            let from = cut_anew_from(&sizes, line);
            let gathered: u64 = sizes.drain(from..).map(u64::from).sum();
            stored += gathered + line;
            if gathered + line >= PIECE_MAX as u64 {
                settled += gathered + line;
            } else {
                sizes.push((gathered + line) as u32);
            }
            most = most.max(sizes.len());
        }
        assert_eq!(settled + sizes.iter().map(|size| u64::from(*size)).sum::<u64>(), 4_000 * line);
        assert!(most <= 5 * LOOSE_MAX, "{most}");
        assert!(stored < 5 * 4_000 * line, "{stored}");
    }
}
