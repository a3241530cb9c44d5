//! gzip and zstd, recognised by their first bytes and decoded on the way, with a guard against what decodes to absurdly much.
//! This file knows containers; it must not know what is in them.

use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Place, Problem};

/// What the bytes of a transcript are wrapped in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Nothing.
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
            // The second one is a frame to be skipped, with which some tools begin.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Container::Zstd,
            _ => Container::Plain,
        }
    }
}

/// When decoding is given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    /// Less than this is never too much.
    pub decoded_min: u64,
    /// So many times the bytes that went in are too many.
    pub ratio_max: u64,
}

impl Guard {
    /// The usual guard: gzip reaches 1,032 to 1, real transcripts 10 to 1.
    pub(crate) const USUAL: Guard = Guard { decoded_min: 1 << 30, ratio_max: 200 };
}

/// Counts the bytes that were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

impl Counter {
    /// The bytes so far.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, length: usize) {
        self.0.fetch_add(length as u64, Ordering::Relaxed);
    }
}

struct Counted<R> {
    inner: R,
    here: Counter,
    all: Counter,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.here.add(length);
        self.all.add(length);
        Ok(length)
    }
}

/// One reading of a source: decoded bytes, and errors that say where they happened.
pub(crate) struct Decoded<'a> {
    inner: Box<dyn Read + 'a>,
    container: Container,
    place: Place,
    raw: Counter,
    decoded: u64,
    guard: Guard,
}

/// Decodes what `raw` gives; `all` counts the raw bytes of all readings together.
pub(crate) fn decode<'a>(
    raw: impl Read + 'a,
    place: &Place,
    all: &Counter,
    guard: Guard,
) -> Result<Decoded<'a>, Error> {
    let here = Counter::default();
    let counted = Counted { inner: raw, here: here.clone(), all: all.clone() };
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
    /// What the bytes are wrapped in.
    pub(crate) fn container(&self) -> Container {
        self.container
    }

    fn explain(&self, error: io::Error) -> Error {
        // A disk that fails is no reason to blame the container.
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
                // A signal is no reason to stop, and not every caller knows that.
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

    fn read(raw: &[u8], guard: Guard) -> Result<Vec<u8>, Problem> {
        let mut decoded = decode(raw, &Place::StandardInput, &Counter::default(), guard).map_err(|e| e.problem)?;
        let mut bytes = Vec::new();
        match decoded.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(Error::inside(&error).unwrap().problem),
        }
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        let twice = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(read(&twice, Guard::USUAL), Ok(b"one two".to_vec()));
        let frame = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        let twice = [frame(b"one "), frame(b"two")].concat();
        assert_eq!(read(&twice, Guard::USUAL), Ok(b"one two".to_vec()));
        assert_eq!(read(b"x", Guard::USUAL), Ok(b"x".to_vec()));
        assert_eq!(read(b"", Guard::USUAL), Ok(Vec::new()));
    }

    #[test]
    fn what_is_cut_or_damaged_is_told_apart() {
        let text: Vec<u8> =
            (0..20_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let whole = gzip(&text);
        assert_eq!(read(&whole[..whole.len() / 2], Guard::USUAL), Err(Problem::Truncated(Container::Gzip)));
        let mut damaged = whole.clone();
        let last = damaged.len() - 6;
        damaged[last] ^= 0xff;
        assert_eq!(read(&damaged, Guard::USUAL), Err(Problem::Corrupt(Container::Gzip)));
        let whole = zstd::encode_all(text.as_slice(), 3).unwrap();
        assert_eq!(read(&whole[..whole.len() / 2], Guard::USUAL), Err(Problem::Truncated(Container::Zstd)));
        assert_eq!(read(b"\x28\xb5\x2f\xfdnonsense", Guard::USUAL), Err(Problem::Corrupt(Container::Zstd)));
    }

    #[test]
    fn a_bomb_is_given_up() {
        let bomb = gzip(&vec![b' '; 1 << 20]);
        let guard = Guard { decoded_min: 1 << 16, ratio_max: 200 };
        assert!(matches!(read(&bomb, guard), Err(Problem::Bomb { .. })));
        assert!(read(&bomb, Guard { decoded_min: 2 << 20, ratio_max: 200 }).is_ok());
    }
}
