//! A block of a pack: one piece of a source or one commit of the log, compressed, preceded by its hash and checksums, so that a
//! pack can be read without the log. This file does not know which source a piece belongs to.

use std::io::{self, Read};

use xxhash_rust::xxh3::xxh3_64;

/// The name of a block: the BLAKE3 hash of its raw bytes.
pub(super) type Hash = [u8; 32];

/// The size of a piece: a source is cut at multiples of it. `docs/design/012-the-archive.md` has the measurements.
pub(super) const PIECE_SIZE: usize = 2 << 20;

/// The maximum size of a commit of the log.
pub(super) const COMMIT_SIZE_MAX: usize = 256 << 20;

/// The compression level; `docs/design/012-the-archive.md` has the measurements.
const LEVEL: i32 = 6;

pub(super) const MAGIC: &[u8; 8] = b"STNBLOK2";

/// The length of a block's header.
pub(super) const HEADER_SIZE: usize = 72;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Piece,
    Commit,
}

/// The fields before a block's compressed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub kind: BlockKind,
    pub hash: Hash,
    pub raw_size: u32,
    body_size: u32,
    body_sum: u64,
}

/// The kind of damage of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It ends too early.
    Truncated,
    /// Its header is damaged.
    Header,
    /// Its compressed bytes are damaged.
    Body,
    /// Its bytes do not match the hash that names it.
    HashMismatch,
    /// Its pack is missing or cannot be read.
    Unreadable,
}

/// Compresses blocks and reuses the compressor's tables.
pub(super) struct Encoder(zstd::bulk::Compressor<'static>);

impl std::fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Encoder")
    }
}

impl Encoder {
    pub fn new() -> io::Result<Encoder> {
        zstd::bulk::Compressor::new(LEVEL).map(Encoder)
    }

    /// The block with these raw bytes.
    pub fn encode(&mut self, kind: BlockKind, hash: &Hash, raw: &[u8]) -> io::Result<Vec<u8>> {
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let body = self.0.compress(raw)?;
        let mut block = Vec::with_capacity(HEADER_SIZE + body.len());
        block.extend_from_slice(MAGIC);
        block.extend_from_slice(&u32::from(kind == BlockKind::Commit).to_le_bytes());
        for size in [raw.len(), body.len()] {
            block.extend_from_slice(&u32::try_from(size).map_err(too_large)?.to_le_bytes());
        }
        block.extend_from_slice(&[0; 4]);
        block.extend_from_slice(hash);
        block.extend_from_slice(&xxh3_64(&body).to_le_bytes());
        let sum = xxh3_64(&block);
        block.extend_from_slice(&sum.to_le_bytes());
        block.extend_from_slice(&body);
        Ok(block)
    }
}

impl BlockHeader {
    /// Reads the header of a block.
    pub fn read(input: &mut dyn Read) -> io::Result<Result<BlockHeader, Damage>> {
        let mut bytes = [0; HEADER_SIZE];
        if !fill(input, &mut bytes)? {
            return Ok(Err(Damage::Truncated));
        }
        Ok(BlockHeader::parse(&bytes).ok_or(Damage::Header))
    }

    fn parse(bytes: &[u8; HEADER_SIZE]) -> Option<BlockHeader> {
        let (checked_bytes, sum) = bytes.split_at(HEADER_SIZE - 8);
        if !checked_bytes.starts_with(MAGIC) || bytes_at::<8>(sum, 0)? != xxh3_64(checked_bytes).to_le_bytes() {
            return None;
        }
        let u32_at = |at| bytes_at::<4>(checked_bytes, at).map(u32::from_le_bytes);
        let kind = match u32_at(8)? {
            0 => BlockKind::Piece,
            1 => BlockKind::Commit,
            _ => return None,
        };
        let (raw_size, body_size) = (u32_at(12)?, u32_at(16)?);
        // Incompressible bytes grow a little. A larger size is damage, which must not allocate memory.
        let size_max = if kind == BlockKind::Piece { 2 * PIECE_SIZE } else { 2 * COMMIT_SIZE_MAX };
        let body_sum = u64::from_le_bytes(bytes_at::<8>(checked_bytes, 56)?);
        let header = BlockHeader { kind, hash: bytes_at::<32>(checked_bytes, 24)?, raw_size, body_size, body_sum };
        (raw_size.max(body_size) as usize <= size_max).then_some(header)
    }

    /// The length of the block.
    pub fn size(&self) -> u64 {
        HEADER_SIZE as u64 + u64::from(self.body_size)
    }

    /// Reads the compressed bytes after the header.
    pub fn body(&self, input: &mut dyn Read) -> io::Result<Result<Vec<u8>, Damage>> {
        let mut body = Vec::new();
        input.take(u64::from(self.body_size)).read_to_end(&mut body)?;
        if body.len() < self.body_size as usize {
            return Ok(Err(Damage::Truncated));
        }
        Ok(if xxh3_64(&body) == self.body_sum { Ok(body) } else { Err(Damage::Body) })
    }

    /// The raw bytes of a block, checked against its hash.
    pub fn decode(&self, body: &[u8]) -> Result<Vec<u8>, Damage> {
        let raw = zstd::bulk::decompress(body, self.raw_size as usize).map_err(|_| Damage::Body)?;
        if *blake3::hash(&raw).as_bytes() == self.hash { Ok(raw) } else { Err(Damage::HashMismatch) }
    }
}

fn bytes_at<const SIZE: usize>(bytes: &[u8], at: usize) -> Option<[u8; SIZE]> {
    bytes.get(at..)?.first_chunk::<SIZE>().copied()
}

/// Fills the buffer. Returns `false` if the input ends too early.
fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(raw: &[u8]) -> Vec<u8> {
        Encoder::new().unwrap().encode(BlockKind::Piece, blake3::hash(raw).as_bytes(), raw).unwrap()
    }

    fn read(mut block: &[u8]) -> Result<(BlockHeader, Vec<u8>), Damage> {
        let header = BlockHeader::read(&mut block).unwrap()?;
        let body = header.body(&mut block).unwrap()?;
        Ok((header, header.decode(&body)?))
    }

    #[test]
    fn a_block_reads_back_unchanged() {
        for raw in [&b""[..], b"one", &[7; 100_000]] {
            let block = block(raw);
            let (header, back) = read(&block).unwrap();
            assert_eq!((header.kind, back.as_slice()), (BlockKind::Piece, raw));
            assert_eq!(header.size(), block.len() as u64);
        }
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_noticed() {
        let block = block(b"some text and some more of the same text");
        for length in 0..block.len() {
            assert_eq!(read(&block[..length]).unwrap_err(), Damage::Truncated, "{length}");
        }
        for bit in 0..block.len() * 8 {
            let mut bad = block.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            read(&bad).unwrap_err();
        }
    }
}
