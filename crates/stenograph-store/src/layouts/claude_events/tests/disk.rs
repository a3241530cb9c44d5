//! A disk that fails at one call, once or from then on. It does not sync; these tests do not depend on that.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::files::{Disk, Files, OpenFile};

/// How long it keeps failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    Once,
    Forever,
}

#[derive(Debug)]
pub struct Failing(Arc<Count>);

#[derive(Debug)]
struct Count {
    calls: AtomicU64,
    at: u64,
    lasting: Lasting,
    failed: AtomicBool,
}

impl Count {
    fn call(&self) -> io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if call == self.at || (call > self.at && self.lasting == Lasting::Forever) {
            self.failed.store(true, Ordering::Relaxed);
            return Err(io::Error::other("the disk fails"));
        }
        Ok(())
    }
}

impl Failing {
    pub fn at(at: u64, lasting: Lasting) -> Failing {
        Failing(Arc::new(Count { calls: AtomicU64::new(0), at, lasting, failed: AtomicBool::new(false) }))
    }

    pub fn never() -> Failing {
        Failing::at(u64::MAX, Lasting::Once)
    }

    pub fn has_failed(&self) -> bool {
        self.0.failed.load(Ordering::Relaxed)
    }

    fn opened(&self, file: Box<dyn OpenFile>) -> Box<dyn OpenFile> {
        Box::new(FailingFile(file, Arc::clone(&self.0)))
    }
}

impl Files for Failing {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.0.call().and_then(|()| Disk.open(path)).map(|file| self.opened(file))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.0.call().and_then(|()| Disk.create_new(path)).map(|file| self.opened(file))
    }

    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.call().and_then(|()| Disk.overwrite(path, offset, bytes))
    }

    fn reader(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read>> {
        self.0.call().and_then(|()| Disk.reader(path, offset))
    }

    fn length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.0.call().and_then(|()| Disk.length(path))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.call().and_then(|()| Disk.list(folder))
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.0.call().and_then(|()| Disk.create_folder(folder))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.call().and_then(|()| Disk.rename(from, to))
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.call().and_then(|()| Disk.rename_new(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.call().and_then(|()| Disk.remove(path))
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.0.call()
    }
}

#[derive(Debug)]
struct FailingFile(Box<dyn OpenFile>, Arc<Count>);

impl OpenFile for FailingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.1.call() {
            Ok(()) => self.0.write(bytes),
            Err(error) => {
                // Half of it is written all the same.
                let _ = self.0.write(bytes.get(..bytes.len() / 2).unwrap_or_default());
                Err(error)
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.call()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.1.call().and_then(|()| self.0.truncate(length))
    }

    fn is_linked(&self) -> io::Result<bool> {
        self.0.is_linked()
    }
}
