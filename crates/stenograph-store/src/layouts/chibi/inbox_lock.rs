//! A lock that Chibi holds for a moment too: a file that everybody locks and nobody removes. Whoever waits on a file that was
//! removed would guard nothing.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Problem};
use crate::files::{FileMode, with_mode};

/// The lock, held until it is dropped: the system lets go of it then, and when the process dies.
#[derive(Debug)]
pub struct InboxLock {
    _file: File,
}

/// How long a holder is waited for. It only ever reads or writes a few lines.
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
