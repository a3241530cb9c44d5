//! What is about to be committed: pieces that wait for their frame to be full, the pack that frames are written to, and the lines
//! that will say so. A pack that a write or a sync failed on is not written to again.

use std::path::PathBuf;
use std::sync::Arc;

use super::frame::{Encoder, FRAME_RAW_MAX, Hash};
use super::line::{FrameLine, FramePieces, Line};
use super::packs::{pack_path, packs_folder};
use super::state::State;
use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, write_all};

/// A pack that is larger is not written on.
pub(super) const PACK_MAX: u64 = 256 << 20;

#[derive(Debug)]
pub(super) struct Stage {
    files: Arc<dyn Files>,
    folder: PathBuf,
    encoder: Encoder,
    raw: Vec<u8>,
    pieces: Vec<(Hash, u32)>,
    /// The numbers of the pieces, where they have one already.
    moved: Vec<u32>,
    pack: Option<OpenPack>,
    /// The number of the next pack.
    pub next_pack: u32,
    /// The lines about frames, which come first, and all others.
    pub frame_lines: String,
    pub lines: String,
}

#[derive(Debug)]
struct OpenPack {
    number: u32,
    file: Box<dyn OpenFile>,
    length: u64,
    /// Everything before is on disk.
    synced: u64,
    name: Name,
}

#[derive(Debug, PartialEq)]
enum Name {
    Durable,
    New,
}

impl Stage {
    pub fn new(files: Arc<dyn Files>, folder: PathBuf) -> Result<Stage, Error> {
        let encoder = Encoder::new().map_err(|error| Error::at(&folder, Problem::Unwritable, error))?;
        Ok(Stage {
            files,
            folder,
            encoder,
            raw: Vec::new(),
            pieces: Vec::new(),
            moved: Vec::new(),
            pack: None,
            next_pack: 1,
            frame_lines: String::new(),
            lines: String::new(),
        })
    }

    /// Writes on in a pack that is there.
    pub fn go_on_in(&mut self, number: u32, length: u64) -> Result<(), Error> {
        let path = pack_path(&self.folder, number);
        let file = self.files.open(&path).map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
        self.pack = Some(OpenPack { number, file, length, synced: length, name: Name::Durable });
        Ok(())
    }

    /// Forgets all that was not committed, and writes on in a new pack.
    pub fn reset(&mut self) {
        self.raw.clear();
        self.pieces.clear();
        self.moved.clear();
        self.frame_lines.clear();
        self.lines.clear();
        self.leave_pack();
    }

    /// Writes on in a new pack.
    pub fn leave_pack(&mut self) {
        self.pack = None;
    }

    /// The pack that is written to.
    pub fn current_pack(&self) -> Option<u32> {
        self.pack.as_ref().map(|pack| pack.number)
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.frame_lines.is_empty() && self.lines.is_empty()
    }

    /// Adds a new piece; its number is the next one.
    pub fn add(&mut self, state: &mut State, hash: Hash, bytes: &[u8]) -> Result<u32, Error> {
        self.make_room(state, bytes.len())?;
        let too_many = |_| Error::about(&self.folder, Problem::TooMany { most: u64::from(u32::MAX) });
        let number = u32::try_from(state.pieces.len() + self.pieces.len()).map_err(too_many)?;
        self.push(hash, bytes);
        Ok(number)
    }

    /// Adds a piece that is elsewhere. New and moved ones must not be in one frame.
    pub fn add_moved(&mut self, state: &mut State, number: u32, hash: Hash, bytes: &[u8]) -> Result<(), Error> {
        self.make_room(state, bytes.len())?;
        self.moved.push(number);
        self.push(hash, bytes);
        Ok(())
    }

    fn push(&mut self, hash: Hash, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        self.pieces.push((hash, bytes.len() as u32));
    }

    fn make_room(&mut self, state: &mut State, size: usize) -> Result<(), Error> {
        if self.raw.len() + size > FRAME_RAW_MAX { self.flush(state) } else { Ok(()) }
    }

    /// Writes the frame that waits.
    pub fn flush(&mut self, state: &mut State) -> Result<(), Error> {
        if self.pieces.is_empty() {
            return Ok(());
        }
        let encoded = self.encoder.encode(&self.pieces, &self.raw);
        let frame = encoded.map_err(|error| Error::at(&self.folder, Problem::Unwritable, error))?;
        let (pack, at) = self.write(&frame)?;
        let pieces = std::mem::take(&mut self.pieces);
        let pieces = if self.moved.is_empty() {
            FramePieces::New { first: state.pieces.len() as u32, pieces }
        } else {
            FramePieces::Moved(std::mem::take(&mut self.moved))
        };
        self.raw.clear();
        let line = Line::Frame(FrameLine { pack, at, size: frame.len() as u64, pieces });
        self.frame_lines.push_str(&line.spell());
        state.apply(line, 0).ok_or_else(|| Error::about(&self.folder, Problem::Unwritable))
    }

    fn write(&mut self, frame: &[u8]) -> Result<(u32, u64), Error> {
        let size = frame.len() as u64;
        if self.pack.as_ref().is_some_and(|pack| pack.length > 0 && pack.length + size > PACK_MAX) {
            self.sync()?;
            self.leave_pack();
        }
        if self.pack.is_none() {
            self.pack = Some(self.new_pack()?);
        }
        let Some(pack) = &mut self.pack else { return Err(Error::about(&self.folder, Problem::Unwritable)) };
        if let Err(error) = write_all(pack.file.as_mut(), frame) {
            let path = pack_path(&self.folder, pack.number);
            self.leave_pack();
            return Err(Error::at(&path, Problem::Unwritable, error));
        }
        let at = pack.length;
        pack.length += size;
        Ok((pack.number, at))
    }

    fn new_pack(&mut self) -> Result<OpenPack, Error> {
        let number = self.next_pack;
        let path = pack_path(&self.folder, number);
        // A file that was made although that was said to have failed is left alone.
        self.next_pack += 1;
        let file = self.files.create_new(&path).map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
        Ok(OpenPack { number, file, length: 0, synced: 0, name: Name::New })
    }

    /// Makes durable what was written.
    pub fn sync(&mut self) -> Result<(), Error> {
        let Some(pack) = &mut self.pack else { return Ok(()) };
        let unsynced = pack.synced < pack.length;
        let synced = if unsynced { pack.file.sync() } else { Ok(()) };
        let named = synced.and_then(|()| match pack.name {
            Name::New => self.files.sync_folder(&packs_folder(&self.folder)),
            Name::Durable => Ok(()),
        });
        let path = pack_path(&self.folder, pack.number);
        let outcome = match named.and_then(|()| if unsynced { pack.file.is_linked() } else { Ok(true) }) {
            Ok(true) => {
                (pack.synced, pack.name) = (pack.length, Name::Durable);
                return Ok(());
            }
            Ok(false) => Error::about(&path, Problem::Gone),
            Err(error) => Error::at(&path, Problem::Unwritable, error),
        };
        self.leave_pack();
        Err(outcome)
    }
}
