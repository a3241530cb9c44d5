//! What happened to a file since it was last read, by its stat and its fingerprint.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::catalogue::{SourceRow, Stamp};
use crate::fingerprint::WHOLE_SIZE_MAX;

/// A stat may be too coarse to see what was written in the moment of reading.
const RACY_NS: i64 = 2_000_000_000;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// There is more after what was read.
    Grown,
    /// It says something else.
    Rewritten,
}

/// Whether a stat proves that nothing happened.
pub(crate) fn is_unchanged(known: &Stamp, seen: i64, now: &Stamp) -> bool {
    known == now && seen.saturating_sub(known.changed) > RACY_NS
}

/// What happened to the file of a known source.
pub(crate) fn of(row: &SourceRow, file: &mut File, now: &Stamp) -> io::Result<Change> {
    let fingerprint = row.fingerprint();
    if now.size < fingerprint.end || now.size < fingerprint.head_length {
        return Ok(Change::Rewritten);
    }
    let same = fingerprint.is_on(file)?;
    Ok(match (same, now.size == row.stamp.size) {
        (false, _) => Change::Rewritten,
        // The same moment proves nothing either way, and the same ends then have to do.
        (true, true) if now.changed == row.stamp.changed => Change::None,
        // Only its time is another: it was touched, or copied over by itself.
        (true, true) if sum(file, 0, 0..now.size)? == row.content.whole => Change::None,
        (true, true) => Change::Rewritten,
        (true, false) if row.settled > 0 => {
            let is_read = row.settled <= WHOLE_SIZE_MAX;
            let is_same = !is_read || sum(file, 0, 0..row.settled)? == row.content.settled;
            if is_same { Change::Grown } else { Change::Rewritten }
        }
        (true, false) => Change::Rewritten,
    })
}

/// The checksum of a file's bytes in a range, going on from the checksum of those before it.
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

/// Whether two files hold the same bytes.
pub(super) fn is_copy(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    is_same(one, other)
}

/// Whether two streams give the same bytes.
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
