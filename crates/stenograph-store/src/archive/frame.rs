//! A frame of a pack: some pieces, compressed together, with their names and checksums in front, so that a pack can be read
//! without the log. Nothing here knows which source a piece is of.

use std::io::{self, Read};

use xxhash_rust::xxh3::xxh3_64;

/// The name of a piece: the BLAKE3 of its bytes.
pub(super) type Hash = [u8; 32];

/// How much is compressed together at most. Larger frames find more that repeats, and cost more to look into.
pub(super) const FRAME_RAW_MAX: usize = 8 << 20;

/// As much effort as is worth it: measured in `docs/design/012-the-archive.md`.
const LEVEL: i32 = 6;

const MAGIC: &[u8; 8] = b"STNFRAM1";
const FIXED_SIZE: usize = 28;
const ENTRY_SIZE: usize = 36;

/// No frame of ours has more: every piece has a byte at least.
const PIECES_MAX: u32 = 1 << 20;

/// What stands in front of a frame's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The pieces, in order: name and length.
    pub pieces: Vec<(Hash, u32)>,
    /// How long they are together.
    pub raw_size: u32,
    /// How long the compressed bytes are.
    body_size: u32,
    body_sum: u64,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It ends in the middle.
    Torn,
    /// It is something else, or its description is damaged.
    Header,
    /// Its compressed bytes are damaged.
    Body,
    /// A piece has not the content it is named by.
    Piece,
    /// Its pack is not there, or cannot be read.
    Unreadable,
}

/// Makes frames; the tables of the compressor are kept from one to the next.
pub(super) struct Encoder(zstd::bulk::Compressor<'static>);

impl std::fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Encoder")
    }
}

impl Encoder {
    pub fn new() -> io::Result<Encoder> {
        let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
        // What repeats anywhere in a frame is worth finding: sessions repeat whole files.
        compressor.window_log(FRAME_RAW_MAX.ilog2())?;
        Ok(Encoder(compressor))
    }

    /// The frame of some pieces; `raw` is their bytes, one after the other.
    pub fn encode(&mut self, pieces: &[(Hash, u32)], raw: &[u8]) -> io::Result<Vec<u8>> {
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let body = self.0.compress(raw)?;
        let mut frame = Vec::with_capacity(FIXED_SIZE + pieces.len() * ENTRY_SIZE + 8 + body.len());
        frame.extend_from_slice(MAGIC);
        for number in [pieces.len(), raw.len(), body.len()] {
            frame.extend_from_slice(&u32::try_from(number).map_err(too_large)?.to_le_bytes());
        }
        frame.extend_from_slice(&xxh3_64(&body).to_le_bytes());
        for (hash, length) in pieces {
            frame.extend_from_slice(hash);
            frame.extend_from_slice(&length.to_le_bytes());
        }
        let sum = xxh3_64(&frame);
        frame.extend_from_slice(&sum.to_le_bytes());
        frame.extend_from_slice(&body);
        Ok(frame)
    }
}

impl Header {
    /// Reads what stands in front of a frame.
    pub fn read(input: &mut dyn Read) -> io::Result<Result<Header, Damage>> {
        let mut bytes = vec![0; FIXED_SIZE];
        if !fill(input, &mut bytes)? {
            return Ok(Err(Damage::Torn));
        }
        let Some((mut header, count)) = Header::fixed(&bytes) else { return Ok(Err(Damage::Header)) };
        bytes.resize(FIXED_SIZE + count * ENTRY_SIZE + 8, 0);
        if !fill(input, bytes.get_mut(FIXED_SIZE..).unwrap_or_default())? {
            return Ok(Err(Damage::Torn));
        }
        let (described, sum) = bytes.split_at(bytes.len() - 8);
        if number(sum, 0, 8) != Some(xxh3_64(described)) {
            return Ok(Err(Damage::Header));
        }
        let entries = described.get(FIXED_SIZE..).unwrap_or_default().as_chunks::<ENTRY_SIZE>().0;
        for entry in entries {
            let Some((hash, length)) = entry.split_first_chunk::<32>() else { continue };
            header.pieces.push((*hash, length.first_chunk().copied().map_or(0, u32::from_le_bytes)));
        }
        let total: u64 = header.pieces.iter().map(|(_, length)| u64::from(*length)).sum();
        Ok(if total == u64::from(header.raw_size) { Ok(header) } else { Err(Damage::Header) })
    }

    /// What stands in front of the names of the pieces, and how many of them there are.
    fn fixed(bytes: &[u8]) -> Option<(Header, usize)> {
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let field = |at| u32::try_from(number(bytes, at, 4)?).ok();
        let (count, raw_size, body_size) = (field(8)?, field(12)?, field(16)?);
        if count > PIECES_MAX || raw_size as usize > 2 * FRAME_RAW_MAX || body_size as usize > 3 * FRAME_RAW_MAX {
            return None;
        }
        Some((Header { pieces: Vec::new(), raw_size, body_size, body_sum: number(bytes, 20, 8)? }, count as usize))
    }

    /// How long the frame is.
    pub fn frame_size(&self) -> u64 {
        (FIXED_SIZE + self.pieces.len() * ENTRY_SIZE + 8) as u64 + u64::from(self.body_size)
    }

    /// Reads the compressed bytes that follow.
    pub fn body(&self, input: &mut dyn Read) -> io::Result<Result<Vec<u8>, Damage>> {
        let mut body = vec![0; self.body_size as usize];
        if !fill(input, &mut body)? {
            return Ok(Err(Damage::Torn));
        }
        Ok(if xxh3_64(&body) == self.body_sum { Ok(body) } else { Err(Damage::Body) })
    }

    /// The first `size` raw bytes of a frame.
    pub fn decode(&self, body: &[u8], size: u32) -> Result<Vec<u8>, Damage> {
        let mut raw = Vec::with_capacity(size as usize);
        let decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(|_| Damage::Body)?;
        let read = decoder.take(u64::from(size)).read_to_end(&mut raw).map_err(|_| Damage::Body)?;
        if read == size as usize { Ok(raw) } else { Err(Damage::Body) }
    }
}

/// Whether there was enough to fill the room.
fn fill(input: &mut dyn Read, room: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(room) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut value = [0; 8];
    value.get_mut(..size)?.copy_from_slice(bytes.get(at..at + size)?);
    Some(u64::from_le_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(texts: &[&[u8]]) -> (Vec<(Hash, u32)>, Vec<u8>) {
        let names = texts.iter().map(|text| (*blake3::hash(text).as_bytes(), text.len() as u32)).collect();
        (names, texts.concat())
    }

    fn read(bytes: &[u8]) -> Result<(Header, Vec<u8>), Damage> {
        let mut input = bytes;
        let header = Header::read(&mut input).unwrap()?;
        let body = header.body(&mut input).unwrap()?;
        let raw = header.decode(&body, header.raw_size)?;
        Ok((header, raw))
    }

    #[test]
    fn a_frame_says_what_is_in_it_and_gives_it_back() {
        let (names, raw) = pieces(&[b"one", b"", &[7; 100_000]]);
        let frame = Encoder::new().unwrap().encode(&names, &raw).unwrap();
        let (header, back) = read(&frame).unwrap();
        assert_eq!((header.pieces.as_slice(), back.as_slice()), (names.as_slice(), raw.as_slice()));
        assert_eq!(header.frame_size(), frame.len() as u64);
        assert!(frame.len() < 1_000);
        let mut input = frame.as_slice();
        let header = Header::read(&mut input).unwrap().unwrap();
        let body = header.body(&mut input).unwrap().unwrap();
        assert_eq!(header.decode(&body, 5).unwrap(), b"one\x07\x07");
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_noticed() {
        let (names, raw) = pieces(&[b"some text", b"and some more of the same text"]);
        let frame = Encoder::new().unwrap().encode(&names, &raw).unwrap();
        for length in 0..frame.len() {
            assert_eq!(read(&frame[..length]).unwrap_err(), Damage::Torn, "{length}");
        }
        for bit in 0..frame.len() * 8 {
            let mut bad = frame.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            read(&bad).unwrap_err();
        }
    }
}
