//! A folder with sources and an archive.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph_store::archive::{
    AddOutcome, AddedCopy, Archive, ArchiveWriter, CopyChange, CopyId, Label, WhichVersion,
};
use stenograph_store::files::Disk;

pub struct Place {
    pub folder: tempfile::TempDir,
    now_ms: i64,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap(), now_ms: 0 }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a source and advances its time, however coarse the file system's clock is.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        self.now_ms += 1_000;
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(self.now_ms as u64);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        path
    }

    pub fn store(&self) -> PathBuf {
        self.path("archive")
    }

    pub fn keeper(&self) -> ArchiveWriter {
        ArchiveWriter::open(Arc::new(Disk), &self.store()).unwrap()
    }

    pub fn archive(&self) -> Archive {
        Archive::open(Arc::new(Disk), &self.store()).unwrap()
    }

    /// Writes a source, archives it and commits.
    pub fn keep(&mut self, keeper: &mut ArchiveWriter, name: &str, bytes: &[u8]) -> AddedCopy {
        let path = self.write(name, bytes);
        let kept = add(keeper, &path, &label(name)).unwrap();
        keeper.commit(self.now_ms).unwrap();
        kept
    }

    pub fn stored(&self) -> u64 {
        fs::read_dir(self.store().join("packs")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }

    pub fn packs(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(self.store().join("packs")).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }
}

/// Adds a source; `None` if it was forgotten.
pub fn add(keeper: &mut ArchiveWriter, path: &Path, label: &Label) -> Option<AddedCopy> {
    match keeper.add(path, label).unwrap() {
        AddOutcome::Archived(added) => Some(added),
        AddOutcome::Forgotten | AddOutcome::Continued { .. } => None,
    }
}

pub fn label(session: &str) -> Label {
    Label { format: "some".into(), session: Some(session.into()) }
}

pub fn read(archive: &Archive, copy: CopyId, which: WhichVersion, from: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    archive.read(copy, which, from).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

pub fn last(archive: &Archive, path: &Path) -> Vec<u8> {
    read(archive, archive.copy_at(path).unwrap().id, WhichVersion::Last, 0)
}

pub fn assert_whole(archive: &Archive) {
    let verified = archive.verify(&mut |_| true).unwrap();
    assert!(verified.damaged.is_empty() && verified.single_commits == 0, "{verified:?}");
    assert!(archive.warnings().is_empty(), "{:?}", archive.warnings());
}

/// Lines like those of a session: they differ, and much of them repeats.
pub fn lines(seed: u64, count: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut text = String::new();
    for number in 0..count {
        let words: Vec<String> = (0..random.usize(3..40)).map(|_| format!("word{}", random.u16(..800))).collect();
        text.push_str(&format!("{{\"seed\":{seed},\"n\":{number},\"text\":\"{}\"}}\n", words.join(" ")));
    }
    text.into_bytes()
}

pub fn assert_change(kept: AddedCopy, change: CopyChange) {
    assert_eq!(kept.change, change, "{kept:?}");
}
