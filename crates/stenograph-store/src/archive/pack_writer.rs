//! Writes blocks to packs. A pack that a write or a sync failed on is not written to again.

use std::path::PathBuf;
use std::sync::Arc;

use super::block::{Encoder, Hash, Kind};
use super::packs::{pack_path, packs_folder};
use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, write_all};

/// A pack that is larger is not continued.
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
    /// Everything before is on disk.
    synced: u64,
    name: Name,
}

#[derive(Debug, PartialEq)]
enum Name {
    Durable,
    New,
}

/// Where a block was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub pack: u32,
    pub at: u64,
    pub size: u64,
}

impl PackWriter {
    pub fn new(files: Arc<dyn Files>, folder: PathBuf) -> Result<PackWriter, Error> {
        let encoder = Encoder::new().map_err(|error| Error::at(&folder, Problem::Unwritable, error))?;
        Ok(PackWriter { files, folder, encoder, pack: None, next_pack: 1 })
    }

    /// Continues a pack.
    pub fn go_on_in(&mut self, number: u32, length: u64) -> Result<(), Error> {
        let path = pack_path(&self.folder, number);
        let file = self.files.open(&path).map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
        self.pack = Some(OpenPack { number, file, length, synced: length, name: Name::Durable });
        Ok(())
    }

    /// Continues in a new pack.
    pub fn leave_pack(&mut self) {
        self.pack = None;
    }

    /// The pack that is written to.
    pub fn current_pack(&self) -> Option<u32> {
        self.pack.as_ref().map(|pack| pack.number)
    }

    /// Where the next block will be written.
    pub fn position(&mut self) -> Result<(u32, u64), Error> {
        let pack = self.open_pack(0)?;
        Ok((pack.number, pack.length))
    }

    /// Compresses and writes a block.
    pub fn write(&mut self, kind: Kind, hash: &Hash, raw: &[u8]) -> Result<Written, Error> {
        let encoded = self.encoder.encode(kind, hash, raw);
        let block = encoded.map_err(|error| Error::at(&self.folder, Problem::Unwritable, error))?;
        // A commit names its place before it is compressed.
        let room = if kind == Kind::Commit { 0 } else { block.len() as u64 };
        self.write_block(&block, room)
    }

    /// Writes a block; a pack that has no room for so much is left.
    fn write_block(&mut self, block: &[u8], room: u64) -> Result<Written, Error> {
        let pack = self.open_pack(room)?;
        let (number, at, size) = (pack.number, pack.length, block.len() as u64);
        if let Err(error) = write_all(pack.file.as_mut(), block) {
            self.leave_pack();
            return Err(Error::at(&pack_path(&self.folder, number), Problem::Unwritable, error));
        }
        pack.length += size;
        Ok(Written { pack: number, at, size })
    }

    fn open_pack(&mut self, room: u64) -> Result<&mut OpenPack, Error> {
        if self.pack.as_ref().is_some_and(|pack| pack.length > 0 && pack.length + room > PACK_MAX) {
            self.sync()?;
            self.leave_pack();
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
