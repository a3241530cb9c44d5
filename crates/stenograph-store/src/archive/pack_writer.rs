//! Writes blocks to packs. A pack with a failed write or sync is not written to again.

use std::path::PathBuf;
use std::sync::Arc;

use super::block::{BlockKind, Encoder, Hash};
use super::packs::{pack_path, packs_folder};
use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, write_all};

/// A pack beyond this size is not continued.
pub(super) const PACK_MAX: u64 = 256 << 20;

#[derive(Debug)]
pub(super) struct PackWriter {
    files: Arc<dyn Files>,
    folder: PathBuf,
    encoder: Encoder,
    pack: Option<OpenPack>,
    /// The number of the next pack.
    pub next_pack: u32,
}

#[derive(Debug)]
struct OpenPack {
    number: u32,
    file: Box<dyn OpenFile>,
    length: u64,
    /// All bytes before this offset are on disk.
    synced: u64,
    name: NameState,
}

#[derive(Debug, PartialEq)]
enum NameState {
    Durable,
    New,
}

/// The location of a written block.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLocation {
    pub pack: u32,
    pub at: u64,
    pub size: u64,
}

impl PackWriter {
    pub fn new(files: Arc<dyn Files>, folder: PathBuf) -> Result<PackWriter, Error> {
        let encoder = Encoder::new().map_err(|error| Error::at(&folder, Problem::Unwritable, error))?;
        Ok(PackWriter { files, folder, encoder, pack: None, next_pack: 1 })
    }

    /// Continues an existing pack.
    pub fn continue_pack(&mut self, number: u32, length: u64) -> Result<(), Error> {
        let path = pack_path(&self.folder, number);
        let file = self.files.open(&path).map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
        self.pack = Some(OpenPack { number, file, length, synced: length, name: NameState::Durable });
        Ok(())
    }

    /// Makes the next block start a new pack.
    pub fn start_new_pack(&mut self) {
        self.pack = None;
    }

    /// The pack being written.
    pub fn current_pack(&self) -> Option<u32> {
        self.pack.as_ref().map(|pack| pack.number)
    }

    /// The location of the next block.
    pub fn position(&mut self) -> Result<(u32, u64), Error> {
        let pack = self.open_pack(0)?;
        Ok((pack.number, pack.length))
    }

    /// Compresses and writes a block.
    pub fn write(&mut self, kind: BlockKind, hash: &Hash, raw: &[u8]) -> Result<BlockLocation, Error> {
        let encoded = self.encoder.encode(kind, hash, raw);
        let block = encoded.map_err(|error| Error::at(&self.folder, Problem::Unwritable, error))?;
        // A commit contains its own location, so room is reserved before it is compressed.
        let room = if kind == BlockKind::Commit { 0 } else { block.len() as u64 };
        self.write_block(&block, room)
    }

    /// Writes a block. Starts a new pack if the current one has less than `room` left.
    fn write_block(&mut self, block: &[u8], room: u64) -> Result<BlockLocation, Error> {
        let pack = self.open_pack(room)?;
        let (number, at, size) = (pack.number, pack.length, block.len() as u64);
        if let Err(error) = write_all(pack.file.as_mut(), block) {
            self.start_new_pack();
            return Err(Error::at(&pack_path(&self.folder, number), Problem::Unwritable, error));
        }
        pack.length += size;
        Ok(BlockLocation { pack: number, at, size })
    }

    fn open_pack(&mut self, room: u64) -> Result<&mut OpenPack, Error> {
        if self.pack.as_ref().is_some_and(|pack| pack.length > 0 && pack.length + room > PACK_MAX) {
            self.sync()?;
            self.start_new_pack();
        }
        let pack = match self.pack.take() {
            Some(pack) => pack,
            None => self.new_pack()?,
        };
        Ok(self.pack.insert(pack))
    }

    fn new_pack(&mut self) -> Result<OpenPack, Error> {
        let number = self.next_pack;
        let path = pack_path(&self.folder, number);
        // A failed create may still have left a file; it is not reused.
        self.next_pack += 1;
        let file = self.files.create_new(&path).map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
        Ok(OpenPack { number, file, length: 0, synced: 0, name: NameState::New })
    }

    /// Syncs the written blocks to disk.
    pub fn sync(&mut self) -> Result<(), Error> {
        let Some(pack) = &mut self.pack else { return Ok(()) };
        let unsynced = pack.synced < pack.length;
        let synced = if unsynced { pack.file.sync() } else { Ok(()) };
        let named = synced.and_then(|()| match pack.name {
            NameState::New => self.files.sync_folder(&packs_folder(&self.folder)),
            NameState::Durable => Ok(()),
        });
        let path = pack_path(&self.folder, pack.number);
        let outcome = match named.and_then(|()| if unsynced { pack.file.is_linked() } else { Ok(true) }) {
            Ok(true) => {
                (pack.synced, pack.name) = (pack.length, NameState::Durable);
                return Ok(());
            }
            Ok(false) => Error::about(&path, Problem::Gone),
            Err(error) => Error::at(&path, Problem::Unwritable, error),
        };
        self.start_new_pack();
        Err(outcome)
    }
}
