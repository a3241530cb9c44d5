//! Changing a file that somebody else may write: the locks that recorders take are held from before the file is read until its
//! new content is in place, no process may have it open for writing, and it must be, right before it is replaced, what it was
//! when it was read. What it was is kept beside it first, in an undo file.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Place, Problem};
use crate::files::{Disk, FileMode, Files, behind_links, folder_of, write_all};
use crate::identity::Identity;
use crate::journal;
use crate::layouts::LAYOUTS;
use crate::lock::{self, Lock};
use crate::output::{Existing, NewFile};
use crate::recover;
use crate::undo;
use crate::writers::writer_of;

/// What a file holds, told by its length and a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// How many bytes.
    pub size: u64,
    /// Their fingerprint.
    pub print: String,
}

/// Bytes being counted and fingerprinted.
#[derive(Clone, Default)]
pub struct StateOf {
    size: u64,
    hasher: Box<Xxh3>,
}

impl StateOf {
    /// Takes the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.hasher.update(bytes);
    }

    /// What they are.
    pub fn state(&self) -> FileState {
        FileState { size: self.size, print: format!("{:032x}", self.hasher.digest128()) }
    }
}

impl FileState {
    /// The state of all these bytes.
    pub fn of(bytes: &mut dyn Read) -> io::Result<FileState> {
        let mut state = StateOf::default();
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

/// An edit of a file. Until it is dropped, nobody who takes locks writes there.
#[derive(Debug)]
pub struct FileEdit {
    files: Arc<dyn Files>,
    path: PathBuf,
    identity: Option<Identity>,
    before: FileState,
    _locks: Vec<Lock>,
}

impl FileEdit {
    /// Begins to edit a file: takes the locks of those who record it, or says who holds one.
    pub fn begin(path: &Path) -> Result<FileEdit, Error> {
        let files: Arc<dyn Files> = Arc::new(Disk);
        FileEdit::begin_on(&files, path)
    }

    /// The same on another disk.
    pub fn begin_on(files: &Arc<dyn Files>, path: &Path) -> Result<FileEdit, Error> {
        let real = behind_links(path);
        let metadata = std::fs::metadata(&real).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
        if metadata.is_dir() {
            return Err(Error::about(path, Problem::Folder));
        }
        let locks = guard(path)?;
        let place = Place::Path(path.to_owned());
        let (identity, before) = state_at(files.as_ref(), &real, &place)?;
        Ok(FileEdit { files: Arc::clone(files), path: real, identity, before, _locks: locks })
    }

    /// The file itself, through all links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file holds.
    pub fn before(&self) -> &FileState {
        &self.before
    }

    /// Begins its new content.
    pub fn output(&self) -> Result<EditOutput, Error> {
        let mode = FileMode::of(&self.path).unwrap_or(FileMode::PRIVATE);
        let options = NewFile::options().existing(Existing::Replaced).mode(mode).on(&self.files);
        Ok(EditOutput { file: options.create(&self.path, [])?, state: StateOf::default() })
    }

    /// Puts the new content in the place of the file, and what the file was beside it. Gives the path of the undo file; `None`
    /// when nothing changes. A file that is not what it was when the edit began is left alone.
    pub fn finish(&self, output: EditOutput, by: &str) -> Result<Option<PathBuf>, Error> {
        let after = output.state.state();
        if after == self.before {
            return Ok(None);
        }
        let place = Place::Path(self.path.clone());
        let now = self.files.reader(&self.path, 0);
        let mut now = now.map_err(|error| Error::from_system(&place, Problem::Unreadable, error))?;
        let step = undo::UndoStep { before: &self.before, after: &after, by };
        let undo = undo::keep_on(&self.files, &self.path, &step, now.as_mut())?;
        if let Err(error) = self.replace(output.file) {
            // What was kept of an edit that did not happen is of no use. A disk may do what it says it did not.
            let is_after = state_at(self.files.as_ref(), &self.path, &place).map_or(true, |(_, now)| now == after);
            if !is_after {
                let _ = self.files.remove(&undo);
            }
            return Err(error);
        }
        Ok(Some(undo))
    }

    /// Takes away an undo file.
    pub(crate) fn remove(&self, undo: &Path) -> Result<(), Error> {
        let removed = self.files.remove(undo).and_then(|()| self.files.sync_folder(folder_of(undo)));
        removed.map_err(|error| Error::at(undo, Problem::Unwritable, error))
    }

    /// Puts the new content in the place of the file, and nothing beside it: what it was is had back another way.
    pub(crate) fn restore(&self, output: EditOutput) -> Result<(), Error> {
        self.replace(output.file)
    }

    /// Puts a new file in the place of the edited one, unless that changed. Agents append without a lock: what one appends between the
    /// last look and the replacement goes to the end of the new file.
    fn replace(&self, mut new: NewFile) -> Result<(), Error> {
        let place = Place::Path(self.path.clone());
        let failed = |error| Error::from_system(&place, Problem::Unwritable, error);
        new.sync()?;
        // It reads the old file, whatever has its name.
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

    /// Waits until nobody writes to the file that was replaced. Gives a process that does not end it.
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

    /// Refuses to go on when the file is no longer what it was when the edit began.
    fn refuse_changed(&self) -> Result<(), Error> {
        let place = Place::Path(self.path.clone());
        refuse_writers(&self.path, &place)?;
        let (identity, now) = state_at(self.files.as_ref(), &self.path, &place)?;
        if identity == self.identity && now == self.before { Ok(()) } else { Err(Error::new(&place, Problem::Changed)) }
    }
}

/// The new content of a file that is edited.
#[derive(Debug)]
pub struct EditOutput {
    file: NewFile,
    state: StateOf,
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

impl std::fmt::Debug for StateOf {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StateOf").field("size", &self.size).finish_non_exhaustive()
    }
}

/// Takes the locks of those who record into a file, or says who holds one or has the file open for writing.
pub(crate) fn guard(path: &Path) -> Result<Vec<Lock>, Error> {
    let real = behind_links(path);
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

/// The locks that whoever records into a file takes: its own, that of the journal beside it, and those of journals in its folder
/// that name it, or name no document at all.
fn locks_of(path: &Path) -> Vec<PathBuf> {
    let beside = recover::beside(path);
    let mut locks = vec![lock::beside(path), lock::beside(&beside)];
    let files: Arc<dyn Files> = Arc::new(Disk);
    let name = path.file_name().and_then(|name| name.to_str());
    // Named as the file is: the same lock under two names would be taken twice.
    let journals = files.list(folder_of(path)).unwrap_or_default().into_iter();
    let journals = journals.filter_map(|journal| Some(path.with_file_name(journal.file_name()?)));
    for journal in journals.filter(|journal| recover::is_journal_name(journal) && *journal != beside) {
        let last = journal::recordings(&files, &journal).ok().and_then(|mut found| found.pop());
        let guards = |recorded: &journal::Recorded| {
            let documents = &recorded.header.documents;
            documents.is_empty() || name.is_some_and(|name| documents.contains_key(name))
        };
        if journal != path && last.as_ref().is_some_and(guards) {
            locks.push(lock::beside(&journal));
        }
    }
    locks.sort();
    locks.dedup();
    locks
}
