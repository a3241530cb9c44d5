//! The pack files: their names, reading a piece, and scanning them without the log. This file writes nothing.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::block::{BlockHeader, Damage, HEADER_SIZE, MAGIC};
use super::state::{ArchiveState, Piece};
use crate::error::{Error, Problem};
use crate::files::Files;

/// How many decoded pieces are cached: neighbouring records are mostly in the same one.
const CACHED_MAX: usize = 3;

/// Reads pieces.
#[derive(Debug)]
pub(super) struct Packs {
    files: Arc<dyn Files>,
    folder: PathBuf,
    /// The most recently used one is last.
    cached: Mutex<Vec<(u32, Arc<Vec<u8>>)>>,
}

impl Packs {
    pub fn new(files: Arc<dyn Files>, folder: &Path) -> Packs {
        Packs { files, folder: folder.to_owned(), cached: Mutex::new(Vec::new()) }
    }

    /// The bytes of a piece, checked against its hash.
    pub fn piece(&self, state: &ArchiveState, number: u32) -> Result<Arc<Vec<u8>>, Damage> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cached.iter().position(|(other, _)| *other == number).map(|at| cached.remove(at));
        let raw = match found {
            Some((_, raw)) => raw,
            None => {
                let piece = state.pieces.get(number as usize).ok_or(Damage::Unreadable)?;
                let (header, body) = self.block(piece)?;
                Arc::new(header.decode(&body)?)
            }
        };
        let surplus = (cached.len() + 1).saturating_sub(CACHED_MAX);
        cached.drain(..surplus);
        cached.push((number, Arc::clone(&raw)));
        Ok(raw)
    }

    /// The header and the compressed bytes of a piece.
    fn block(&self, piece: &Piece) -> Result<(BlockHeader, Vec<u8>), Damage> {
        let path = pack_path(&self.folder, piece.pack);
        let mut input = self.files.reader(&path, piece.at).map_err(|_| Damage::Unreadable)?;
        let header = BlockHeader::read(input.as_mut()).map_err(|_| Damage::Unreadable)??;
        if header.hash != piece.hash || header.size() != piece.size {
            return Err(Damage::Header);
        }
        let body = header.body(input.as_mut()).map_err(|_| Damage::Unreadable)??;
        Ok((header, body))
    }
}

/// Scans the blocks of a pack from an offset on. After a damaged header it continues at the next intact one.
pub(super) struct PackScan<'w> {
    files: &'w dyn Files,
    path: PathBuf,
    input: BufReader<Box<dyn Read>>,
    at: u64,
}

/// One block of a scan.
#[derive(Debug)]
pub(super) struct ScannedBlock {
    pub at: u64,
    /// How many bytes it covers.
    pub size: u64,
    pub found: Result<(BlockHeader, Vec<u8>), Damage>,
}

impl<'w> PackScan<'w> {
    pub fn new(files: &'w dyn Files, folder: &Path, pack: u32, from: u64) -> Result<PackScan<'w>, Error> {
        let path = pack_path(folder, pack);
        let input = files.reader(&path, from).map_err(|error| Error::at(&path, Problem::Unreadable, error))?;
        Ok(PackScan { files, path, input: BufReader::with_capacity(256 << 10, input), at: from })
    }

    /// The next block; `None` at the end of the pack.
    pub fn next(&mut self) -> Result<Option<ScannedBlock>, Error> {
        let step = self.step().map_err(|error| Error::at(&self.path, Problem::Unreadable, error))?;
        self.at += step.as_ref().map_or(0, |step| step.size);
        Ok(step)
    }

    fn step(&mut self) -> io::Result<Option<ScannedBlock>> {
        let at = self.at;
        match BlockHeader::read(&mut self.input)? {
            Ok(header) => match header.body(&mut self.input)? {
                Ok(body) => Ok(Some(ScannedBlock { at, size: header.size(), found: Ok((header, body)) })),
                Err(Damage::Truncated) => {
                    Ok(Some(ScannedBlock { at, size: self.rest()?, found: Err(Damage::Truncated) }))
                }
                Err(damage) => Ok(Some(ScannedBlock { at, size: header.size(), found: Err(damage) })),
            },
            Err(Damage::Truncated) => {
                let size = self.rest()?;
                Ok((size > 0).then_some(ScannedBlock { at, size, found: Err(Damage::Truncated) }))
            }
            Err(damage) => {
                let size = self.next_magic(at + 1)? - at;
                self.input = BufReader::with_capacity(256 << 10, self.files.reader(&self.path, at + size)?);
                Ok(Some(ScannedBlock { at, size, found: Err(damage) }))
            }
        }
    }

    /// The number of bytes from here to the end.
    fn rest(&self) -> io::Result<u64> {
        Ok(self.files.length(&self.path)?.unwrap_or(0).saturating_sub(self.at))
    }

    /// The offset of the next intact header, or the end of the pack.
    fn next_magic(&self, from: u64) -> io::Result<u64> {
        let mut input = self.files.reader(&self.path, from)?;
        let (mut window, mut start) = (Vec::new(), from);
        loop {
            let read = input.by_ref().take(1 << 20).read_to_end(&mut window)?;
            for found in memchr::memmem::find_iter(&window, MAGIC) {
                let header = window.get(found..found + HEADER_SIZE).map(|mut bytes| BlockHeader::read(&mut bytes));
                // A header that the window cuts off is found in the next window.
                if matches!(header, Some(Ok(Ok(_)))) {
                    return Ok(start + found as u64);
                }
            }
            if read == 0 {
                return Ok(start + window.len() as u64);
            }
            let passed = window.len().saturating_sub(HEADER_SIZE);
            window.drain(..passed);
            start += passed as u64;
        }
    }
}

/// The existing packs by number, with their lengths.
pub(super) fn present(files: &dyn Files, folder: &Path) -> Result<Vec<(u32, u64)>, Error> {
    let packs = packs_folder(folder);
    let paths = files.list(&packs).map_err(|error| Error::at(&packs, Problem::Unreadable, error))?;
    let mut present = Vec::new();
    for path in paths {
        let Some(pack) = pack_number(&path) else { continue };
        if let Some(length) = files.length(&path).map_err(|error| Error::at(&path, Problem::Unreadable, error))? {
            present.push((pack, length));
        }
    }
    present.sort_unstable();
    Ok(present)
}

/// The folder of the packs.
pub(super) fn packs_folder(folder: &Path) -> PathBuf {
    folder.join("packs")
}

/// The path of a pack.
pub(super) fn pack_path(folder: &Path, pack: u32) -> PathBuf {
    packs_folder(folder).join(format!("{pack:06}.pack"))
}

/// The pack number in a file name.
fn pack_number(path: &Path) -> Option<u32> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".pack")?;
    stem.bytes().all(|byte| byte.is_ascii_digit()).then(|| stem.parse().ok())?
}

/// The path of the log.
pub(super) fn log_path(folder: &Path) -> PathBuf {
    folder.join("log.jsonl")
}
