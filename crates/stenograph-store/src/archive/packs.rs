//! The files that frames are in: their names, and reading a piece out of them. Nothing here writes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::frame::{Damage, Header};
use super::state::{Frame, Piece, State};
use crate::files::Files;

/// How many decoded frames are kept at hand: neighbouring pieces are mostly in the same one.
const FRAMES_AT_HAND: usize = 3;

/// Reads pieces.
#[derive(Debug)]
pub(super) struct Packs {
    files: Arc<dyn Files>,
    folder: PathBuf,
    /// The last used one last. A frame is decoded as far as somebody wanted it.
    at_hand: Mutex<Vec<(u32, Arc<Vec<u8>>)>>,
}

impl Packs {
    pub fn new(files: Arc<dyn Files>, folder: &Path) -> Packs {
        Packs { files, folder: folder.to_owned(), at_hand: Mutex::new(Vec::new()) }
    }

    /// The bytes of a piece, checked against its name.
    pub fn piece(&self, state: &State, number: u32) -> Result<PieceBytes, Damage> {
        let (piece, frame) = state.piece(number).ok_or(Damage::Unreadable)?;
        let end = piece.at.checked_add(piece.size).ok_or(Damage::Header)?;
        let raw = self.frame(piece.frame, frame, end)?;
        let bytes = PieceBytes { raw, start: piece.at as usize, end: end as usize };
        check(piece, &bytes)?;
        Ok(bytes)
    }

    /// A frame's raw bytes, as far as they are wanted.
    fn frame(&self, number: u32, frame: &Frame, end: u32) -> Result<Arc<Vec<u8>>, Damage> {
        if let Some(raw) = self.take(number, end) {
            return Ok(raw);
        }
        let (header, body) = self.load(frame).unwrap_or(Err(Damage::Unreadable))?;
        let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        let before = at_hand.len();
        at_hand.retain(|(other, _)| *other != number);
        // Who looks at one place is served sooner; who reads on from one piece to the next needs all of it.
        let reads_on = at_hand.len() < before || end > header.raw_size / 2;
        let raw = Arc::new(header.decode(&body, if reads_on { header.raw_size } else { end })?);
        if at_hand.len() >= FRAMES_AT_HAND {
            at_hand.remove(0);
        }
        at_hand.push((number, Arc::clone(&raw)));
        Ok(raw)
    }

    /// Lets go of what is at hand: frames may have other numbers now.
    pub fn clear(&mut self) {
        self.at_hand = Mutex::new(Vec::new());
    }

    fn take(&self, number: u32, end: u32) -> Option<Arc<Vec<u8>>> {
        let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        let found = at_hand.iter().position(|(other, raw)| *other == number && raw.len() >= end as usize)?;
        let last = at_hand.remove(found);
        let raw = Arc::clone(&last.1);
        at_hand.push(last);
        Some(raw)
    }

    /// Reads a frame as it is on disk.
    pub fn load(&self, frame: &Frame) -> io::Result<Result<(Header, Vec<u8>), Damage>> {
        let mut input = self.files.reader(&pack_path(&self.folder, frame.pack), frame.at)?;
        let header = match Header::read(input.as_mut())? {
            Ok(header) if header.frame_size() == frame.size => header,
            Ok(_) => return Ok(Err(Damage::Header)),
            Err(damage) => return Ok(Err(damage)),
        };
        let body = header.body(input.as_mut())?;
        Ok(body.map(|body| (header, body)))
    }
}

/// A piece in a decoded frame.
#[derive(Clone, Debug)]
pub(super) struct PieceBytes {
    raw: Arc<Vec<u8>>,
    start: usize,
    end: usize,
}

impl PieceBytes {
    pub fn as_slice(&self) -> &[u8] {
        self.raw.get(self.start..self.end).unwrap_or_default()
    }
}

fn check(piece: &Piece, bytes: &PieceBytes) -> Result<(), Damage> {
    if *blake3::hash(bytes.as_slice()).as_bytes() == piece.hash { Ok(()) } else { Err(Damage::Piece) }
}

/// The folder of the packs.
pub(super) fn packs_folder(folder: &Path) -> PathBuf {
    folder.join("packs")
}

/// The file of a pack.
pub(super) fn pack_path(folder: &Path, pack: u32) -> PathBuf {
    packs_folder(folder).join(format!("{pack:06}.pack"))
}

/// The number of the pack in a file of that name.
pub(super) fn pack_number(path: &Path) -> Option<u32> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".pack")?;
    stem.bytes().all(|byte| byte.is_ascii_digit()).then(|| stem.parse().ok())?
}

/// The path of the log.
pub(super) fn log_path(folder: &Path) -> PathBuf {
    folder.join("log.jsonl")
}
