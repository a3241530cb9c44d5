//! Detects how a source changed since it was copied, and which part of it must be stored. This file writes nothing.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::block::PIECE_SIZE;
use super::state::{ArchiveState, Version};
use crate::databases;
use crate::error::{Error, Problem};
use crate::fingerprint::WHOLE_SIZE_MAX;

/// A source at the time of opening. Its length is fixed then; bytes written later belong to the next run.
#[derive(Debug)]
pub(super) struct OpenSource {
    file: File,
    pub length: u64,
    pub modified_ns: i64,
}

/// How a source changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceComparison {
    /// Not at all.
    Same,
    /// Bytes were appended.
    Grown,
    /// Its content differs.
    Other,
}

/// How many bytes of the copy's end the source must still have.
const TAIL_SIZE: u64 = 4096;

impl OpenSource {
    pub fn open(path: &Path) -> Result<OpenSource, Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        // Opening a pipe would block until another process writes to it.
        if let Some((file, stat)) = databases::open_conversation(path).map_err(unreadable)? {
            return Ok(OpenSource { file, length: stat.size, modified_ns: stat.modified_ns });
        }
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

    /// Reads a range into a buffer; less if the source ends earlier.
    pub fn read(&mut self, offset: u64, size: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        self.file.seek(SeekFrom::Start(offset))?;
        let size = size.min(self.length.saturating_sub(offset));
        self.file.by_ref().take(size).read_to_end(buffer).map(drop)
    }

    /// Compares the source with its last copied version.
    pub fn compare(&mut self, last: &Version, state: &ArchiveState) -> io::Result<SourceComparison> {
        if self.length < last.length {
            return Ok(SourceComparison::Other);
        }
        let grows = self.length > last.length;
        let (mut at, mut buffer) = (0, Vec::new());
        for number in &last.pieces {
            let Some(piece) = state.pieces.get(*number as usize) else { return Ok(SourceComparison::Other) };
            let end = at + u64::from(piece.raw);
            // A large source that grew is compared by its first and last bytes; any other source may differ anywhere.
            if !grows || last.length <= WHOLE_SIZE_MAX || at == 0 || end + TAIL_SIZE >= last.length {
                self.read(at, u64::from(piece.raw), &mut buffer)?;
                if *blake3::hash(&buffer).as_bytes() != piece.hash {
                    return Ok(SourceComparison::Other);
                }
            }
            at = end;
        }
        Ok(match at == last.length {
            false => SourceComparison::Other,
            true if grows => SourceComparison::Grown,
            true => SourceComparison::Same,
        })
    }
}

/// The first piece of a grown source that is stored again; the pieces before it are reused.
pub(super) fn stored_from(state: &ArchiveState, last: &Version, added: u64) -> usize {
    let sizes: Vec<u64> = last.pieces.iter().map(|number| state.size_of(*number)).collect();
    let whole = sizes.iter().take_while(|size| **size == PIECE_SIZE as u64).count();
    whole + merged_from(sizes.get(whole..).unwrap_or_default(), added)
}

/// How many small pieces of about one size are stored before they are merged.
const SMALL_MAX: usize = 15;

/// The first of the small pieces at the end of a source that is stored again, usually none. `sizes` are the pieces' sizes,
/// `added` is the number of new bytes. Small pieces are merged into pieces about sixteen times as large, so that each byte is
/// stored only a few times until it is in a full piece.
fn merged_from(sizes: &[u64], added: u64) -> usize {
    if sizes.iter().sum::<u64>() + added >= PIECE_SIZE as u64 {
        return 0;
    }
    let tier = |size: u64| size.max(1).ilog2() / 4;
    let (mut from, mut merged) = (sizes.len(), added);
    loop {
        let before = sizes.get(..from).unwrap_or_default();
        let run = before.iter().rev().take_while(|size| tier(**size) <= tier(merged));
        let (count, size) = run.fold((0, 0), |(count, sum), size| (count + 1, sum + size));
        if count < SMALL_MAX {
            return from;
        }
        (from, merged) = (from - count, merged + size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_grows_by_lines_is_stored_a_few_times_and_in_few_pieces() {
        let (mut sizes, mut stored, mut settled, mut most) = (Vec::<u64>::new(), 0_u64, 0_u64, 0);
        let line = 700;
        for _ in 0..8_000 {
            let from = merged_from(&sizes, line);
            let merged: u64 = sizes.drain(from..).sum();
            stored += merged + line;
            if merged + line >= PIECE_SIZE as u64 {
                settled += merged + line;
            } else {
                sizes.push(merged + line);
            }
            most = most.max(sizes.len());
        }
        assert_eq!(settled + sizes.iter().sum::<u64>(), 8_000 * line);
        assert!(most <= 5 * SMALL_MAX, "{most}");
        assert!(stored < 5 * 8_000 * line, "{stored}");
    }
}
