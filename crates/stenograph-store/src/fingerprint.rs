//! Detects whether a file still begins with what was read of it, by hashes of its first bytes and of the last bytes read. If
//! both are unchanged, it is the same file and may have grown; otherwise it was rewritten. The index stores fingerprints, and
//! `follow` keeps one while it reads. The archive compares the hashes of its stored pieces instead.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// How many bytes a fingerprint covers at either end: more than the first records of any two sessions have in common.
pub(crate) const FINGERPRINT_SIZE: u64 = 4 << 10;

/// Up to this size, a grown file is compared by all bytes that were read, beyond it by its fingerprint: reading a gigabyte for
/// every appended line takes too long.
pub(crate) const WHOLE_SIZE_MAX: u64 = 32 << 20;

/// The fingerprint of a file that was read up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    /// How many first bytes it covers.
    pub head_length: u64,
    /// The hash of the first bytes.
    pub head: u64,
    /// The end of the last bytes.
    pub end: u64,
    /// The hash of the last bytes before `end`.
    pub tail: u64,
}

impl Fingerprint {
    /// The fingerprint of a file as it is now.
    pub fn of(file: &File, head_length: u64, end: u64) -> io::Result<Fingerprint> {
        Ok(Fingerprint { head_length, head: head_of(file, head_length)?, end, tail: tail_of(file, end)? })
    }

    /// Whether a file has the same bytes in both places.
    pub fn is_on(&self, file: &File) -> io::Result<bool> {
        Ok(head_of(file, self.head_length)? == self.head && tail_of(file, self.end)? == self.tail)
    }
}

/// The hash of a file's first bytes.
pub(crate) fn head_of(file: &File, length: u64) -> io::Result<u64> {
    hash(file, 0, length)
}

/// The hash of the last bytes of a file before `end`.
pub(crate) fn tail_of(file: &File, end: u64) -> io::Result<u64> {
    let from = end.saturating_sub(FINGERPRINT_SIZE);
    hash(file, from, end - from)
}

fn hash(mut file: &File, from: u64, length: u64) -> io::Result<u64> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(xxh3_64(&bytes))
}

/// Builds the fingerprint of the bytes that were read, even if the file has changed since.
#[derive(Clone, Debug, Default)]
pub(crate) struct FingerprintBuilder {
    first: Vec<u8>,
    last: Vec<u8>,
    end: u64,
}

impl FingerprintBuilder {
    /// Starts at an offset of a file; the bytes before it are taken as they are now.
    pub fn at(mut file: &File, end: u64) -> io::Result<FingerprintBuilder> {
        let mut builder = FingerprintBuilder { end, ..FingerprintBuilder::default() };
        let length = end.min(FINGERPRINT_SIZE);
        file.seek(SeekFrom::Start(0))?;
        file.take(length).read_to_end(&mut builder.first)?;
        file.seek(SeekFrom::Start(end - length))?;
        file.take(length).read_to_end(&mut builder.last)?;
        Ok(builder)
    }

    /// How many bytes a comparison reads.
    pub fn size(&self) -> u64 {
        (self.first.len() + self.last.len()) as u64
    }

    /// Adds the next bytes that were read.
    pub fn add(&mut self, bytes: &[u8]) {
        const SIZE: usize = FINGERPRINT_SIZE as usize;
        if self.first.len() as u64 == self.end {
            let room = SIZE.saturating_sub(self.first.len());
            self.first.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        }
        self.last.extend_from_slice(bytes.get(bytes.len().saturating_sub(SIZE)..).unwrap_or_default());
        self.last.drain(..self.last.len().saturating_sub(SIZE));
        self.end += bytes.len() as u64;
    }

    /// The fingerprint of the bytes so far.
    pub fn build(&self) -> Fingerprint {
        Fingerprint {
            head_length: self.first.len() as u64,
            head: xxh3_64(&self.first),
            end: self.end,
            tail: xxh3_64(&self.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn bytes_that_were_read_have_the_fingerprint_of_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for length in [0, 1, 4095, 4096, 4097, 9000] {
            let bytes: Vec<u8> =
                (0..length).map(|number: u32| number.to_le_bytes()[0] ^ number.to_le_bytes()[1]).collect();
            fs::write(&path, &bytes).unwrap();
            let file = File::open(&path).unwrap();
            for chunk in [1, 100, 5000] {
                let mut builder = FingerprintBuilder::default();
                bytes.chunks(chunk).for_each(|chunk| builder.add(chunk));
                let length = u64::from(length);
                let expected = Fingerprint::of(&file, length.min(FINGERPRINT_SIZE), length).unwrap();
                assert_eq!(builder.build(), expected, "{length} by {chunk}");
                assert_eq!(FingerprintBuilder::at(&file, length).unwrap().build(), expected, "{length}");
            }
        }
    }

    #[test]
    fn a_file_that_grew_has_the_same_fingerprint_and_a_rewritten_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let on = |before: &[u8], after: &[u8]| {
            let mut builder = FingerprintBuilder::default();
            builder.add(before);
            fs::write(&path, after).unwrap();
            builder.build().is_on(&File::open(&path).unwrap()).unwrap()
        };
        assert!(on(b"one\n", b"one\n"));
        assert!(on(b"one\n", b"one\ntwo\n"));
        assert!(!on(b"one\n", b"One\ntwo\n"));
        assert!(!on(b"one\n", b"one"));
    }
}
