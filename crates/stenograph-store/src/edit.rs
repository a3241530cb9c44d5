//! Changes a file that other processes may write. The edit holds the recorders' locks from before the file is read until its
//! new content is in place, no process may have it open for writing, and right before the replacement its content must be what
//! was read. The old content is saved beside it first, in an undo file.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::databases;
use crate::error::{Error, Place, Problem};
use crate::files::{Disk, FileMode, Files, folder_of, resolve_links, write_all};
use crate::identity::Identity;
use crate::journal;
use crate::layouts::LAYOUTS;
use crate::lock::{self, Lock};
use crate::output::{Existing, NewFile};
use crate::recover;
use crate::undo;
use crate::writers::writer_of;

/// The content of a file, identified by its length and a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The number of bytes.
    pub size: u64,
    /// Their fingerprint.
    pub fingerprint: String,
}

/// Computes the state of bytes piece by piece.
#[derive(Clone, Default)]
pub struct FileStateBuilder {
    size: u64,
    hasher: Box<Xxh3>,
}

impl FileStateBuilder {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.hasher.update(bytes);
    }

    /// The state of the bytes so far.
    pub fn state(&self) -> FileState {
        FileState { size: self.size, fingerprint: format!("{:032x}", self.hasher.digest128()) }
    }
}

impl FileState {
    /// The state of all these bytes.
    pub fn of(bytes: &mut dyn Read) -> io::Result<FileState> {
        let mut state = FileStateBuilder::default();
        let mut buffer = vec![0; 256 << 10];
        loop {
            match bytes.read(&mut buffer) {
                Ok(0) => return Ok(state.state()),
                Ok(length) => state.add(buffer.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// An edit of a file. Until it is dropped, no process that respects the locks writes there.
#[derive(Debug)]
pub struct FileEdit {
    files: Arc<dyn Files>,
    path: PathBuf,
    identity: Option<Identity>,
    before: FileState,
    _locks: Vec<Lock>,
}

impl FileEdit {
    /// Begins an edit: takes the recorders' locks, or fails with the holder of one.
    pub fn begin(path: &Path) -> Result<FileEdit, Error> {
        let files: Arc<dyn Files> = Arc::new(Disk);
        FileEdit::begin_on(&files, path)
    }

    /// The same on another disk.
    pub fn begin_on(files: &Arc<dyn Files>, path: &Path) -> Result<FileEdit, Error> {
        if databases::is_inside(path) {
            return Err(Error::about(path, Problem::InDatabase));
        }
        let real = resolve_links(path);
        let metadata = std::fs::metadata(&real).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
        if metadata.is_dir() {
            return Err(Error::about(path, Problem::Folder));
        }
        let locks = lock_for_edit(path)?;
        let place = Place::Path(path.to_owned());
        let (identity, before) = state_at(files.as_ref(), &real, &place)?;
        Ok(FileEdit { files: Arc::clone(files), path: real, identity, before, _locks: locks })
    }

    /// The file itself, with all links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content before the edit.
    pub fn before(&self) -> &FileState {
        &self.before
    }

    /// Begins the new content.
    pub fn output(&self) -> Result<EditOutput, Error> {
        let mode = FileMode::of(&self.path).unwrap_or(FileMode::PRIVATE);
        let options = NewFile::options().existing(Existing::Replaced).mode(mode).on(&self.files);
        Ok(EditOutput { file: options.create(&self.path, [])?, state: FileStateBuilder::default() })
    }

    /// Replaces the file with the new content and saves the old content beside it. Returns the path of the undo file; `None` if
    /// nothing changes. A file that has changed since the edit began is left alone.
    pub fn finish(&self, output: EditOutput, by: undo::EditCommand) -> Result<Option<PathBuf>, Error> {
        let after = output.state.state();
        if after == self.before {
            return Ok(None);
        }
        let place = Place::Path(self.path.clone());
        let now = self.files.reader(&self.path, 0);
        let mut now = now.map_err(|error| Error::from_system(&place, Problem::Unreadable, error))?;
        let step = undo::UndoStep { before: &self.before, after: &after, by };
        let undo = undo::save_undo_on(&self.files, &self.path, &step, now.as_mut())?;
        if let Err(error) = self.replace(output.file) {
            // The undo file of an edit that failed is useless. A disk may have done what it reported as failed.
            let is_after = state_at(self.files.as_ref(), &self.path, &place).map_or(true, |(_, now)| now == after);
            if !is_after {
                let _ = self.files.remove(&undo);
            }
            return Err(error);
        }
        Ok(Some(undo))
    }

    /// Removes an undo file.
    pub(crate) fn remove(&self, undo: &Path) -> Result<(), Error> {
        let removed = self.files.remove(undo).and_then(|()| self.files.sync_folder(folder_of(undo)));
        removed.map_err(|error| Error::at(undo, Problem::Unwritable, error))
    }

    /// Removes the file itself, unless it changed.
    pub(crate) fn remove_file(&self) -> Result<(), Error> {
        self.refuse_changed()?;
        self.remove(&self.path)
    }

    /// Replaces the file with the new content without an undo file.
    pub(crate) fn restore(&self, output: EditOutput) -> Result<(), Error> {
        self.replace(output.file)
    }

    /// Replaces the edited file, unless it changed. Agents append without a lock: bytes appended between the last check and the
    /// replacement are added to the new file.
    fn replace(&self, mut new: NewFile) -> Result<(), Error> {
        let place = Place::Path(self.path.clone());
        let failed = |error| Error::from_system(&place, Problem::Unwritable, error);
        new.sync()?;
        // This handle reads the old file, whatever has its name.
        let mut old = self.files.reader(&self.path, self.before.size).map_err(failed)?;
        self.refuse_changed()?;
        new.commit()?;
        let writer = self.wait_for_writers();
        let mut appended = Vec::new();
        old.read_to_end(&mut appended).map_err(failed)?;
        if !appended.is_empty() {
            let mut file = self.files.open(&self.path).map_err(failed)?;
            write_all(file.as_mut(), &appended).and_then(|()| file.sync()).map_err(failed)?;
        }
        writer.map_or(Ok(()), |process| Err(Error::new(&place, Problem::OpenElsewhere { process })))
    }

    /// Waits until no process writes to the replaced file. Returns a process that keeps it open.
    fn wait_for_writers(&self) -> Option<u32> {
        const LOOKS: u32 = 100;
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
        let identity = self.identity.as_ref()?;
        let mut writer = writer_of(identity);
        for _ in 1..LOOKS {
            writer?;
            std::thread::sleep(PAUSE);
            writer = writer_of(identity);
        }
        writer
    }

    /// Fails if the file has changed since the edit began.
    fn refuse_changed(&self) -> Result<(), Error> {
        let place = Place::Path(self.path.clone());
        refuse_writers(&self.path, &place)?;
        let (identity, now) = state_at(self.files.as_ref(), &self.path, &place)?;
        if identity == self.identity && now == self.before { Ok(()) } else { Err(Error::new(&place, Problem::Changed)) }
    }
}

/// The new content of an edited file.
#[derive(Debug)]
pub struct EditOutput {
    file: NewFile,
    state: FileStateBuilder,
}

impl Write for EditOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.file.write(bytes)?;
        self.state.add(bytes.get(..length).unwrap_or_default());
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl std::fmt::Debug for FileStateBuilder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StateOf").field("size", &self.size).finish_non_exhaustive()
    }
}

/// Takes the locks of the recorders of a file, or fails with the process that holds one or has the file open for writing.
pub(crate) fn lock_for_edit(path: &Path) -> Result<Vec<Lock>, Error> {
    let real = resolve_links(path);
    let taken = locks_of(&real).into_iter().map(|lock| Lock::take(&lock).map_err(|error| error.about_path(path)));
    let locks = taken.collect::<Result<Vec<Lock>, Error>>()?;
    refuse_writers(&real, &Place::Path(path.to_owned()))?;
    LAYOUTS.iter().try_for_each(|layout| layout.refuse_edit(&real).map_err(|error| error.about_path(path)))?;
    Ok(locks)
}

fn refuse_writers(path: &Path, place: &Place) -> Result<(), Error> {
    match Identity::of_path(path).as_ref().and_then(writer_of) {
        Some(process) => Err(Error::new(place, Problem::OpenElsewhere { process })),
        None => Ok(()),
    }
}

fn state_at(files: &dyn Files, path: &Path, place: &Place) -> Result<(Option<Identity>, FileState), Error> {
    let unreadable = |error| Error::from_system(place, Problem::Unreadable, error);
    let mut file = files.reader(path, 0).map_err(unreadable)?;
    Ok((Identity::of_path(path), FileState::of(file.as_mut()).map_err(unreadable)?))
}

/// The locks that a recorder of this file takes: its own, that of the journal beside it, and those of journals in its folder
/// that name it or name no document at all.
fn locks_of(path: &Path) -> Vec<PathBuf> {
    let own = recover::journal_path(path);
    let mut locks = vec![lock::lock_path(path), lock::lock_path(&own)];
    let files: Arc<dyn Files> = Arc::new(Disk);
    let name = path.file_name().and_then(|name| name.to_str());
    // With the file's real name: the same lock under two names would be taken twice.
    let journals = files.list(folder_of(path)).unwrap_or_default().into_iter();
    let journals = journals.filter_map(|journal| Some(path.with_file_name(journal.file_name()?)));
    for journal in journals.filter(|journal| recover::is_journal_name(journal) && *journal != own) {
        let last = journal::recordings(&files, &journal).ok().and_then(|mut found| found.pop());
        let guards = |recorded: &journal::Recording| {
            let documents = &recorded.header.documents;
            documents.is_empty() || name.is_some_and(|name| documents.contains_key(name))
        };
        if journal != path && last.as_ref().is_some_and(guards) {
            locks.push(lock::lock_path(&journal));
        }
    }
    locks.sort();
    locks.dedup();
    locks
}
