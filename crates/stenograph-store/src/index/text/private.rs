//! The text engine's folder, readable by the owner only. The engine creates files with default modes; this restricts each one
//! before it has content.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr};

use crate::index::private::hide;

/// A folder of private files.
#[derive(Clone, Debug)]
pub(super) struct PrivateDirectory {
    inner: MmapDirectory,
    folder: PathBuf,
}

impl PrivateDirectory {
    /// Opens the folder.
    pub(super) fn open(folder: &Path) -> Result<PrivateDirectory, OpenDirectoryError> {
        Ok(PrivateDirectory { inner: MmapDirectory::open(folder)?, folder: folder.to_owned() })
    }
}

impl Directory for PrivateDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.inner.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.inner.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let writer = self.inner.open_write(path)?;
        hide(&self.folder.join(path)).map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        Ok(writer)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.inner.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.inner.atomic_write(path, data)?;
        hide(&self.folder.join(path))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        let held = self.inner.acquire_lock(lock)?;
        // A lock file holds no transcript, so a failure to restrict it does no harm.
        let _ = hide(&self.folder.join(&lock.filepath));
        Ok(held)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(callback)
    }
}
