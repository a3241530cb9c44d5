//! The file under a log, in one pair of hands: what was written and is sure, and the way back when the disk fails.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Durability;
use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, folder_of, make_folder, write_all};
use crate::tail::{LastLine, Tail, settle};

/// An open file of which every byte up to `good` was acknowledged, or is about to be.
#[derive(Debug)]
pub struct Tape {
    files: Arc<dyn Files>,
    path: PathBuf,
    /// `None` after a failure that leaves open what is in the file: it is opened and mended before anything else.
    file: Option<Box<dyn OpenFile>>,
    /// The file as it was open before that failure: another file that has its name by then is not touched.
    failed: Option<Box<dyn OpenFile>>,
    /// Everything before this was written.
    good: u64,
    /// Everything before this is on disk.
    durable: u64,
    /// Whether a sync failed: the system may now believe that what it failed to write is written, and only writing it again
    /// helps.
    suspect: bool,
    /// When it was last seen to have a name.
    looked: Option<Instant>,
}

/// How often it is looked whether the file was removed, where nobody waits for the disk: looking takes as long as writing.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

impl Tape {
    pub fn open(files: Arc<dyn Files>, path: &Path, tail: &Tail) -> Result<Tape, Error> {
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        make_folder(files.as_ref(), folder_of(path)).map_err(unwritable)?;
        let mut file = files.open(path).map_err(unwritable)?;
        if tail.lacks_newline {
            write_all(file.as_mut(), b"\n").map_err(unwritable)?;
        }
        let length = tail.length + u64::from(tail.lacks_newline);
        let path = path.to_owned();
        let mut tape = Tape {
            files,
            path,
            file: Some(file),
            failed: None,
            good: length,
            durable: 0,
            suspect: false,
            looked: None,
        };
        // What an earlier process left unsynced, and the file's name, are durable before anything is acknowledged. A sync that
        // fails gets a second chance here: who tries again later cannot know any more what to write again.
        tape.flush().or_else(|_| tape.opened().map(|_| ()))?;
        let named = tape.files.sync_folder(folder_of(&tape.path));
        named.map_err(|error| tape.unwritable(error))?;
        Ok(tape)
    }

    pub fn length(&self) -> u64 {
        self.good
    }

    /// Writes a batch, and makes it durable where that is asked for. After a failure nothing of the batch is in the file, unless
    /// the error says that this is in doubt.
    pub fn commit(&mut self, bytes: &[u8], durability: Durability) -> Result<(), Error> {
        // What has to be mended may end earlier than it did.
        self.opened()?;
        let before = self.good;
        let written = self.write(bytes, durability).and_then(|()| match durability {
            Durability::Always => self.sync(),
            Durability::Interval(_) | Durability::Never => Ok(()),
        });
        written.map_err(|error| {
            // These appends hear that they failed: what is in the file of them must not be found later, not even when nothing
            // is ever written here again.
            self.good = before;
            match self.opened() {
                Err(_) if error.problem != Problem::Gone => error.in_doubt(),
                _ => error,
            }
        })
    }

    fn write(&mut self, bytes: &[u8], durability: Durability) -> Result<(), Error> {
        let (good, looked) = (self.good, self.looked);
        let looks = durability == Durability::Always || looked.is_none_or(|looked| looked.elapsed() >= LOOK_INTERVAL);
        let file = self.opened()?;
        let written = write_all(file.as_mut(), bytes).and_then(|()| if looks { file.is_linked() } else { Ok(true) });
        match written {
            Ok(true) => {
                self.good += bytes.len() as u64;
                if looks {
                    self.looked = Some(Instant::now());
                }
                Ok(())
            }
            Ok(false) => {
                self.failed = self.file.take();
                Err(self.gone())
            }
            Err(error) => {
                // Half a batch must not stay: whoever writes next would write on half a line.
                if file.truncate(good).is_err() {
                    self.failed = self.file.take();
                }
                Err(self.unwritable(error))
            }
        }
    }

    /// Makes everything durable.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.opened()?;
        if self.durable == self.good { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let file = self.opened()?;
        if let Err(error) = file.sync() {
            (self.failed, self.suspect) = (self.file.take(), true);
            return Err(self.unwritable(error));
        }
        self.durable = self.good;
        Ok(())
    }

    /// The open file; after a failure it is opened anew, and what is good of it is all that stays.
    fn opened(&mut self) -> Result<&mut Box<dyn OpenFile>, Error> {
        if self.file.is_none() {
            let file = self.mended()?;
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| Error::about(&self.path, Problem::Unwritable))
    }

    fn mended(&mut self) -> Result<Box<dyn OpenFile>, Error> {
        let length = self.files.length(&self.path).map_err(|error| self.unwritable(error))?;
        let Some(length) = length else { return Err(self.gone()) };
        let is_own = self.failed.as_ref().map_or(Ok(true), |failed| failed.is_at(&self.path));
        if !is_own.map_err(|error| self.unwritable(error))? {
            return Err(self.gone());
        }
        if length < self.durable || (length < self.good && !self.suspect) {
            return Err(Error::about(&self.path, Problem::Changed));
        }
        if length < self.good {
            // The system forgot what it failed to write. Whoever is concerned hears of the failure; the rest goes on.
            self.good = settle(self.files.as_ref(), &self.path, LastLine::EndsWithNewline)?.length;
        }
        let file = self.rewritten().map_err(|error| self.unwritable(error))?;
        self.failed = None;
        Ok(file)
    }

    fn rewritten(&mut self) -> io::Result<Box<dyn OpenFile>> {
        let mut file = self.files.open(&self.path)?;
        file.truncate(self.good)?;
        if self.suspect {
            // Written over and not cut off and written anew: it survives this process now, and has to go on doing so.
            let bytes = self.files.read(&self.path, self.durable)?;
            self.files.overwrite(&self.path, self.durable, &bytes)?;
        }
        file.sync()?;
        (self.durable, self.suspect) = (self.good, false);
        Ok(file)
    }

    fn unwritable(&self, error: io::Error) -> Error {
        Error::at(&self.path, Problem::Unwritable, error)
    }

    fn gone(&self) -> Error {
        Error::about(&self.path, Problem::Gone)
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        // The last chance to take back what was refused.
        let _ = self.opened();
    }
}
