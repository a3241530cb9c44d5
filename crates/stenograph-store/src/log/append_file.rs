//! The file under a log: tracks which bytes are written and durable, and restores a known state after a disk failure.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Durability;
use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, create_folder_durably, folder_of, write_all};
use crate::tail::{LastLineRule, Tail, repair_tail};

/// An open file in which every byte before `written_end` is acknowledged or about to be.
#[derive(Debug)]
pub struct AppendFile {
    files: Arc<dyn Files>,
    path: PathBuf,
    /// `None` after a failure that leaves the content unknown: it is opened and repaired before anything else.
    file: Option<Box<dyn OpenFile>>,
    /// The file that was open at that failure. If another file has its name by then, that one is not touched.
    failed: Option<Box<dyn OpenFile>>,
    /// The end of the bytes written.
    written_end: u64,
    /// The end of the bytes on disk.
    synced_end: u64,
    /// Whether a sync failed: the system may now assume that the failed bytes are written, and only writing them again helps.
    is_sync_failed: bool,
    /// When the file was last seen to have a name.
    name_checked_at: Option<Instant>,
}

/// How often to check whether the file was removed, if no thread waits for the disk: a check takes as long as a write.
const NAME_CHECK_INTERVAL: Duration = Duration::from_millis(1);

impl AppendFile {
    pub fn open(files: Arc<dyn Files>, path: &Path, tail: &Tail) -> Result<AppendFile, Error> {
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        create_folder_durably(files.as_ref(), folder_of(path)).map_err(unwritable)?;
        let mut file = files.open(path).map_err(unwritable)?;
        if tail.lacks_newline {
            write_all(file.as_mut(), b"\n").map_err(unwritable)?;
        }
        let length = tail.length + u64::from(tail.lacks_newline);
        let path = path.to_owned();
        let mut append_file = AppendFile {
            files,
            path,
            file: Some(file),
            failed: None,
            written_end: length,
            synced_end: 0,
            is_sync_failed: false,
            name_checked_at: None,
        };
        // Bytes that an earlier process left unsynced, and the file's name, are made durable before anything is acknowledged. A
        // failed sync is retried here, because a later caller cannot know what to write again.
        append_file.flush().or_else(|_| append_file.opened().map(|_| ()))?;
        let named = append_file.files.sync_folder(folder_of(&append_file.path));
        named.map_err(|error| append_file.unwritable(error))?;
        Ok(append_file)
    }

    pub fn length(&self) -> u64 {
        self.written_end
    }

    /// Writes a batch and syncs it if requested. After a failure nothing of the batch is in the file, unless the error says
    /// that this is in doubt.
    pub fn commit(&mut self, bytes: &[u8], durability: Durability) -> Result<(), Error> {
        // A repaired file may end earlier.
        self.opened()?;
        let before = self.written_end;
        let written = self.write(bytes, durability).and_then(|()| match durability {
            Durability::Always => self.sync(),
            Durability::Interval(_) | Durability::Never => Ok(()),
        });
        written.map_err(|error| {
            // These appends report a failure, so their bytes must never be found later, even if nothing is ever written here
            // again.
            self.written_end = before;
            match self.opened() {
                Err(_) if error.problem != Problem::Gone => error.in_doubt(),
                _ => error,
            }
        })
    }

    fn write(&mut self, bytes: &[u8], durability: Durability) -> Result<(), Error> {
        let (written_end, name_checked_at) = (self.written_end, self.name_checked_at);
        let looks = durability == Durability::Always
            || name_checked_at.is_none_or(|name_checked_at| name_checked_at.elapsed() >= NAME_CHECK_INTERVAL);
        let file = self.opened()?;
        let written = write_all(file.as_mut(), bytes).and_then(|()| if looks { file.is_linked() } else { Ok(true) });
        match written {
            Ok(true) => {
                self.written_end += bytes.len() as u64;
                if looks {
                    self.name_checked_at = Some(Instant::now());
                }
                Ok(())
            }
            Ok(false) => {
                self.failed = self.file.take();
                Err(self.gone())
            }
            Err(error) => {
                // Half a batch must not stay, or the next writer would continue half a line.
                if file.truncate(written_end).is_err() {
                    self.failed = self.file.take();
                }
                Err(self.unwritable(error))
            }
        }
    }

    /// Syncs everything to disk.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.opened()?;
        if self.synced_end == self.written_end { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let file = self.opened()?;
        if let Err(error) = file.sync() {
            (self.failed, self.is_sync_failed) = (self.file.take(), true);
            return Err(self.unwritable(error));
        }
        self.synced_end = self.written_end;
        Ok(())
    }

    /// The open file. After a failure it is opened again, and everything after its good part is removed.
    fn opened(&mut self) -> Result<&mut Box<dyn OpenFile>, Error> {
        if self.file.is_none() {
            let file = self.repair()?;
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| Error::about(&self.path, Problem::Unwritable))
    }

    fn repair(&mut self) -> Result<Box<dyn OpenFile>, Error> {
        let length = self.files.length(&self.path).map_err(|error| self.unwritable(error))?;
        let Some(length) = length else { return Err(self.gone()) };
        let is_own = self.failed.as_ref().map_or(Ok(true), |failed| failed.is_at(&self.path));
        if !is_own.map_err(|error| self.unwritable(error))? {
            return Err(self.gone());
        }
        if length < self.synced_end || (length < self.written_end && !self.is_sync_failed) {
            return Err(Error::about(&self.path, Problem::Changed));
        }
        if length < self.written_end {
            // The system dropped what it failed to write. The affected appends report the failure; the rest continues.
            self.written_end = repair_tail(self.files.as_ref(), &self.path, LastLineRule::EndsWithNewline)?.length;
        }
        let file = self.rewrite_unsynced().map_err(|error| self.unwritable(error))?;
        self.failed = None;
        Ok(file)
    }

    fn rewrite_unsynced(&mut self) -> io::Result<Box<dyn OpenFile>> {
        let mut file = self.files.open(&self.path)?;
        file.truncate(self.written_end)?;
        if self.is_sync_failed {
            // Overwrites instead of truncating and writing again: these bytes survive this process now and must continue to do
            // so.
            let bytes = self.files.read(&self.path, self.synced_end)?;
            self.files.overwrite(&self.path, self.synced_end, &bytes)?;
        }
        file.sync()?;
        (self.synced_end, self.is_sync_failed) = (self.written_end, false);
        Ok(file)
    }

    fn unwritable(&self, error: io::Error) -> Error {
        Error::at(&self.path, Problem::Unwritable, error)
    }

    fn gone(&self) -> Error {
        Error::about(&self.path, Problem::Gone)
    }
}

impl Drop for AppendFile {
    fn drop(&mut self) {
        // The last chance to remove refused bytes.
        let _ = self.opened();
    }
}
