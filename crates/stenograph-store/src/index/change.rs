//! Detects how a file changed since it was last read, by its stat and its fingerprint.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::catalogue::{FileStamp, SourceRow};
use crate::databases;
use crate::fingerprint::WHOLE_SIZE_MAX;

/// A file system's clock may be too coarse to reveal a write in the moment of reading.
const RACY_NS: i64 = 2_000_000_000;

/// How a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceChange {
    /// Not at all.
    None,
    /// Bytes were appended.
    Grown,
    /// Its content differs.
    Rewritten,
}

/// Whether the stat proves that the file is unchanged.
pub(crate) fn is_unchanged(known: &FileStamp, seen: i64, now: &FileStamp) -> bool {
    known == now && seen.saturating_sub(known.changed) > RACY_NS
}

/// Detects how the file of a known source changed.
pub(crate) fn detect(row: &SourceRow, file: &mut File, now: &FileStamp) -> io::Result<SourceChange> {
    let fingerprint = row.fingerprint();
    if now.size < fingerprint.end || now.size < fingerprint.head_length {
        return Ok(SourceChange::Rewritten);
    }
    let same = fingerprint.is_on(file)?;
    Ok(match (same, now.size == row.stamp.size) {
        (false, _) => SourceChange::Rewritten,
        // The same time of change proves nothing either way; equal ends must suffice.
        (true, true) if now.changed == row.stamp.changed => SourceChange::None,
        // Only the time differs: the file was touched, or replaced with the same content.
        (true, true) if sum(file, 0, 0..now.size)? == row.content.whole => SourceChange::None,
        (true, true) => SourceChange::Rewritten,
        (true, false) if row.stable_until > 0 => {
            let is_read = row.stable_until <= WHOLE_SIZE_MAX;
            let is_same = !is_read || sum(file, 0, 0..row.stable_until)? == row.content.stable;
            if is_same { SourceChange::Grown } else { SourceChange::Rewritten }
        }
        (true, false) => SourceChange::Rewritten,
    })
}

/// The checksum of a file's bytes in a range, continuing the checksum of the bytes before it.
pub(super) fn sum(file: &mut File, before: u32, range: std::ops::Range<u64>) -> io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new_with_initial(before);
    file.seek(SeekFrom::Start(range.start))?;
    let mut bytes = file.take(range.end.saturating_sub(range.start));
    let mut buffer = vec![0; 256 << 10];
    loop {
        match fill(&mut bytes, &mut buffer)? {
            0 => return Ok(hasher.finalize()),
            length => hasher.update(buffer.get(..length).unwrap_or_default()),
        }
    }
}

/// Whether two files have the same bytes.
pub(super) fn is_copy(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (databases::open_file(one)?, databases::open_file(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    is_same(one, other)
}

/// Whether two streams have the same bytes.
pub(super) fn is_same(mut one: impl Read, mut other: impl Read) -> io::Result<bool> {
    let (mut here, mut there) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let (read, there_read) = (fill(&mut one, &mut here)?, fill(&mut other, &mut there)?);
        if here.get(..read) != there.get(..there_read) {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    loop {
        match file.read(buffer.get_mut(filled..).unwrap_or_default()) {
            Ok(0) => return Ok(filled),
            Ok(length) => filled += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
