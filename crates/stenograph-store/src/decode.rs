//! gzip and zstd, recognised by their first bytes and decoded while reading, with a guard against decompression bombs. This
//! file knows containers, not their content.

use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Place, Problem};

/// The compression of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// None.
    Plain,
    /// One or more gzip members.
    Gzip,
    /// One or more zstd frames.
    Zstd,
}

impl fmt::Display for Container {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Container::Plain => "plain",
            Container::Gzip => "gzip",
            Container::Zstd => "zstd",
        })
    }
}

impl Container {
    /// The container that begins with these bytes.
    pub fn of(first: &[u8]) -> Container {
        match first {
            [0x1f, 0x8b, ..] => Container::Gzip,
            // The second one is a skippable frame, with which some tools begin.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Container::Zstd,
            _ => Container::Plain,
        }
    }
}

/// When to stop decoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecodeGuard {
    /// A smaller output is never too large.
    pub decoded_min: u64,
    /// The largest allowed ratio of output to input.
    pub ratio_max: u64,
}

impl DecodeGuard {
    /// The usual guard: gzip reaches 1,032 to 1, real transcripts 10 to 1.
    pub(crate) const USUAL: DecodeGuard = DecodeGuard { decoded_min: 1 << 30, ratio_max: 200 };
}

/// Counts bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteCounter(Arc<AtomicU64>);

impl ByteCounter {
    /// The bytes so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, length: usize) {
        self.0.fetch_add(length as u64, Ordering::Relaxed);
    }
}

struct CountingReader<R> {
    inner: R,
    here: ByteCounter,
    all: ByteCounter,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.here.add(length);
        self.all.add(length);
        Ok(length)
    }
}

/// One reading of a source: decoded bytes, and errors with their place.
pub(crate) struct Decoded<'a> {
    inner: Box<dyn Read + 'a>,
    container: Container,
    place: Place,
    raw: ByteCounter,
    decoded: u64,
    guard: DecodeGuard,
}

/// Decodes `raw`; `all` counts the raw bytes of all readings together.
pub(crate) fn decode<'a>(
    raw: impl Read + 'a,
    place: &Place,
    all: &ByteCounter,
    guard: DecodeGuard,
) -> Result<Decoded<'a>, Error> {
    let here = ByteCounter::default();
    let counted = CountingReader { inner: raw, here: here.clone(), all: all.clone() };
    let mut buffered = BufReader::with_capacity(64 << 10, counted);
    let unreadable = |error| Error::from_system(place, Problem::Unreadable, error);
    // A pipe may give its first bytes one at a time.
    let mut first = Vec::with_capacity(4);
    buffered.by_ref().take(4).read_to_end(&mut first).map_err(unreadable)?;
    let container = Container::of(&first);
    let whole = Cursor::new(first).chain(buffered);
    let inner = unpack(whole, container).map_err(unreadable)?;
    Ok(Decoded { inner, container, place: place.clone(), raw: here, decoded: 0, guard })
}

fn unpack<'a>(whole: impl BufRead + 'a, container: Container) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match container {
        Container::Plain => Box::new(whole),
        Container::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(whole)),
        Container::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(whole)?),
    })
}

impl Decoded<'_> {
    /// The compression.
    pub(crate) fn container(&self) -> Container {
        self.container
    }

    fn explain(&self, error: io::Error) -> Error {
        // A failing disk does not mean that the container is damaged.
        let problem = match (self.container, error.kind(), error.raw_os_error()) {
            (Container::Plain, ..) | (_, _, Some(_)) => Problem::Unreadable,
            (container, io::ErrorKind::UnexpectedEof, None) => Problem::Truncated(container),
            (container, _, None) if error.to_string().contains("incomplete frame") => Problem::Truncated(container),
            (container, _, None) => Problem::Corrupt(container),
        };
        match Error::inside(&error) {
            Some(inside) => Error::new(&inside.place, inside.problem),
            None => Error::from_system(&self.place, problem, error),
        }
    }
}

impl Read for Decoded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = loop {
            match self.inner.read(buffer) {
                Ok(length) => break length,
                // A signal is not a reason to stop, and not every caller retries.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explain(error).into()),
            }
        };
        self.decoded += length as u64;
        let (decoded, raw) = (self.decoded, self.raw.count());
        let too_much = decoded > self.guard.decoded_min && decoded / self.guard.ratio_max > raw;
        if self.container != Container::Plain && too_much {
            return Err(Error::new(&self.place, Problem::Bomb { decoded, raw }).into());
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(raw: &[u8], guard: DecodeGuard) -> Result<Vec<u8>, Problem> {
        let mut decoded = decode(raw, &Place::StandardInput, &ByteCounter::default(), guard).map_err(|e| e.problem)?;
        let mut bytes = Vec::new();
        match decoded.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(Error::inside(&error).unwrap().problem),
        }
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        let twice = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(read(&twice, DecodeGuard::USUAL), Ok(b"one two".to_vec()));
        let frame = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        let twice = [frame(b"one "), frame(b"two")].concat();
        assert_eq!(read(&twice, DecodeGuard::USUAL), Ok(b"one two".to_vec()));
        assert_eq!(read(b"x", DecodeGuard::USUAL), Ok(b"x".to_vec()));
        assert_eq!(read(b"", DecodeGuard::USUAL), Ok(Vec::new()));
    }

    #[test]
    fn truncated_and_damaged_data_are_distinguished() {
        let text: Vec<u8> =
            (0..20_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let whole = gzip(&text);
        assert_eq!(read(&whole[..whole.len() / 2], DecodeGuard::USUAL), Err(Problem::Truncated(Container::Gzip)));
        let mut damaged = whole.clone();
        let last = damaged.len() - 6;
        damaged[last] ^= 0xff;
        assert_eq!(read(&damaged, DecodeGuard::USUAL), Err(Problem::Corrupt(Container::Gzip)));
        let whole = zstd::encode_all(text.as_slice(), 3).unwrap();
        assert_eq!(read(&whole[..whole.len() / 2], DecodeGuard::USUAL), Err(Problem::Truncated(Container::Zstd)));
        assert_eq!(read(b"\x28\xb5\x2f\xfdnonsense", DecodeGuard::USUAL), Err(Problem::Corrupt(Container::Zstd)));
    }

    #[test]
    fn a_decompression_bomb_is_refused() {
        let bomb = gzip(&vec![b' '; 1 << 20]);
        let guard = DecodeGuard { decoded_min: 1 << 16, ratio_max: 200 };
        assert!(matches!(read(&bomb, guard), Err(Problem::Bomb { .. })));
        assert!(read(&bomb, DecodeGuard { decoded_min: 2 << 20, ratio_max: 200 }).is_ok());
    }
}
