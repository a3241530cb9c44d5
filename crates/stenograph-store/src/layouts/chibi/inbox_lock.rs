//! A lock that Chibi also holds for a moment: a file that every process locks and none removes. A lock on a removed file would
//! guard nothing.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Problem};
use crate::files::{FileMode, with_mode};

/// The lock, held until it is dropped; the operating system also releases it when the process dies.
#[derive(Debug)]
pub struct InboxLock {
    _file: File,
}

/// How long to wait for a holder, which only ever reads or writes a few lines.
const WAIT_STEPS: u32 = 6_000;
const WAIT_STEP: Duration = Duration::from_millis(5);

impl InboxLock {
    /// Waits for the lock and holds it.
    pub fn wait(path: &Path) -> Result<InboxLock, Error> {
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        let open = with_mode(FileMode::PRIVATE).read(true).write(true).create(true).truncate(false).open(path);
        let file = open.map_err(unwritable)?;
        for _ in 0..WAIT_STEPS {
            match file.try_lock() {
                Ok(()) => return Ok(InboxLock { _file: file }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(WAIT_STEP),
                Err(TryLockError::Error(error)) => return Err(unwritable(error)),
            }
        }
        Err(Error::about(path, Problem::Locked { holder: None }))
    }
}
