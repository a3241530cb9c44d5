//! A disk for the tests of layouts whose calls fail from some call on, as if the machine had stopped there.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::files::{Disk, Files, OpenFile};

/// A disk whose calls succeed a given number of times and then always fail. Reading always works.
#[derive(Debug)]
pub struct Stopping {
    calls: AtomicU32,
    last: AtomicU32,
}

impl Stopping {
    /// A disk that works for now.
    pub fn never() -> Stopping {
        Stopping::after(u32::MAX)
    }

    /// A disk that stops after this many calls.
    pub fn after(last: u32) -> Stopping {
        Stopping { calls: AtomicU32::new(0), last: AtomicU32::new(last) }
    }

    /// From now on, only this many calls succeed.
    pub fn stop_after(&self, last: u32) {
        self.calls.store(0, Ordering::Relaxed);
        self.last.store(last, Ordering::Relaxed);
    }

    /// The number of calls so far.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    fn call(&self) -> io::Result<()> {
        let stopped = self.calls.fetch_add(1, Ordering::Relaxed) >= self.last.load(Ordering::Relaxed);
        if stopped { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Files for Stopping {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.call().and_then(|()| Disk.open(path))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.call().and_then(|()| Disk.create_new(path))
    }

    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.call().and_then(|()| Disk.overwrite(path, offset, bytes))
    }

    fn reader(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read>> {
        Disk.reader(path, offset)
    }

    fn length(&self, path: &Path) -> io::Result<Option<u64>> {
        Disk.length(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        Disk.list(folder)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.call().and_then(|()| Disk.create_folder(folder))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call().and_then(|()| Disk.rename(from, to))
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call().and_then(|()| Disk.rename_new(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call().and_then(|()| Disk.remove(path))
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.call().and_then(|()| Disk.remove_folder(folder))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.call().and_then(|()| Disk.sync_folder(folder))
    }
}
