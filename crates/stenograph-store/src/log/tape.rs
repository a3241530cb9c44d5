//! The file under a log, in one pair of hands: what was written and is sure, and the way back when the disk fails.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Durability;
use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, folder_of, make_folder, write_all};
use crate::tail::Tail;

/// An open file of which every byte up to `good` was acknowledged, or is about to be.
#[derive(Debug)]
pub struct Tape {
    files: Arc<dyn Files>,
    path: PathBuf,
    /// `None` after a failure that leaves open what is in the file: it is opened and looked at again before the next write.
    file: Option<Box<dyn OpenFile>>,
    /// Everything before this was written.
    good: u64,
    /// Everything before this is on disk.
    durable: u64,
    /// What was acknowledged and then not made durable: after a failed sync the system may have forgotten it.
    unsure: Option<Vec<u8>>,
}

impl Tape {
    pub fn open(files: Arc<dyn Files>, path: &Path, tail: &Tail) -> Result<Tape, Error> {
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        make_folder(files.as_ref(), folder_of(path)).map_err(unwritable)?;
        let mut file = files.open(path).map_err(unwritable)?;
        if tail.lacks_newline {
            write_all(file.as_mut(), b"\n").map_err(unwritable)?;
        }
        // What an earlier process left unsynced, and the file's name, are durable before anything is acknowledged.
        file.sync().map_err(unwritable)?;
        files.sync_folder(folder_of(path)).map_err(unwritable)?;
        let length = tail.length + u64::from(tail.lacks_newline);
        Ok(Tape { files, path: path.to_owned(), file: Some(file), good: length, durable: length, unsure: None })
    }

    pub fn length(&self) -> u64 {
        self.good
    }

    /// Writes a batch, and makes it durable where that is asked for. After a failure nothing of the batch is in the file.
    pub fn commit(&mut self, bytes: &[u8], durability: Durability) -> Result<(), Error> {
        let before = self.good;
        self.write(bytes)?;
        if durability == Durability::Always
            && let Err(error) = self.sync()
        {
            // These appends hear that they failed: what is in the file of them must not be found later.
            (self.good, self.unsure) = (before, None);
            return Err(error);
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let good = self.good;
        let file = self.opened()?;
        match file.is_linked() {
            Ok(true) => {}
            Ok(false) => return Err(self.gone()),
            Err(error) => return Err(self.failed(error)),
        }
        if let Err(error) = write_all(file.as_mut(), bytes) {
            // Half a batch must not stay: whoever writes next would write on half a line.
            if file.truncate(good).is_err() {
                self.file = None;
            }
            return Err(self.failed(error));
        }
        self.good += bytes.len() as u64;
        Ok(())
    }

    /// Makes everything durable.
    pub fn sync(&mut self) -> Result<(), Error> {
        if self.durable == self.good && self.unsure.is_none() {
            return Ok(());
        }
        let file = self.opened()?;
        if let Err(error) = file.sync() {
            // The system may now believe that what it failed to write is written: only writing it again helps.
            self.file = None;
            self.unsure = self.files.read(&self.path, self.durable).ok();
            return Err(self.failed(error));
        }
        self.durable = self.good;
        Ok(())
    }

    /// The open file; after a failure it is opened anew, and what is sure of it is all that stays.
    fn opened(&mut self) -> Result<&mut Box<dyn OpenFile>, Error> {
        if self.file.is_none() {
            let file = self.reopened()?;
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| Error::about(&self.path, Problem::Unwritable))
    }

    fn reopened(&mut self) -> Result<Box<dyn OpenFile>, Error> {
        let length = self.files.length(&self.path).map_err(|error| self.failed(error))?;
        let Some(length) = length else { return Err(self.gone()) };
        let unsure = self.unsure.as_deref().unwrap_or_default();
        let sure = if self.unsure.is_some() { self.durable } else { self.good };
        if length < sure {
            return Err(Error::about(&self.path, Problem::Changed));
        }
        let mut file = self.files.open(&self.path).map_err(|error| self.failed(error))?;
        let mended = file.truncate(sure).and_then(|()| {
            let wanted = usize::try_from(self.good - sure).unwrap_or(usize::MAX);
            let lost = unsure.get(..wanted).ok_or(io::ErrorKind::UnexpectedEof)?;
            write_all(file.as_mut(), lost)?;
            file.sync()
        });
        mended.map_err(|error| self.failed(error))?;
        (self.durable, self.unsure) = (self.good, None);
        Ok(file)
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::at(&self.path, Problem::Unwritable, error)
    }

    fn gone(&self) -> Error {
        Error::about(&self.path, Problem::Gone)
    }
}
