//! Copies sources into the archive on its own thread while they are indexed, reconciles the catalogue with the archive, and
//! reads copies of sources that are gone.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use xxhash_rust::xxh3::xxh3_64;

use super::Store;
use super::catalogue::{ArchivedRow, Catalogue, SourceId, SourceRow};
use super::run::{Archiving, IndexPlan};
use super::survey::is_missing;
use crate::archive::{
    AddOutcome, Archive, ArchiveWriter, CopyId, CopyInfo, ForgottenState, Label, Marks, SessionKey, WhichVersion,
};
use crate::files::Disk;
use crate::tail::Warning;
use crate::{Error, Problem};

/// How many sources may wait for the worker.
const QUEUE: usize = 64;

/// Archives sources while the index reads them.
pub(super) struct ArchiveWorker {
    folder: PathBuf,
    archiving: Archiving,
    now: i64,
    worker: Option<Worker>,
    added: u64,
    /// Sources that could not be archived.
    pub warnings: Vec<Warning>,
}

struct Worker {
    work: SyncSender<Work>,
    done: Receiver<Done>,
    thread: JoinHandle<()>,
}

enum Work {
    Archiving { id: SourceId, path: PathBuf, label: Label },
    Move { copy: CopyId, to: PathBuf },
    Commit,
}

/// The outcome of all work since the last commit.
#[derive(Default)]
struct Done {
    archived: Vec<ArchivedSource>,
    warnings: Vec<Warning>,
    added: u64,
    failed: Option<Error>,
}

/// A source that is safely archived: its number, its copy, and the copy's length.
pub(super) type ArchivedSource = (SourceId, String, u64);

impl ArchiveWorker {
    pub(super) fn new(store: &Store, plan: &IndexPlan<'_>) -> ArchiveWorker {
        let (folder, archiving) = (store.archive(), plan.archiving);
        ArchiveWorker { folder, archiving, now: plan.now / 1_000_000, worker: None, added: 0, warnings: Vec::new() }
    }

    /// Queues a source for archiving.
    pub(super) fn enqueue(&mut self, row: &SourceRow, session: Option<String>) {
        if self.archiving == Archiving::No {
            return;
        }
        let worker = self.worker.get_or_insert_with(|| Worker::start(self.folder.clone(), self.now));
        let label = Label { format: row.format.clone(), session };
        // If the worker has ended, its error is in the channel, and the commit reports it.
        let _ = worker.work.send(Work::Archiving { id: row.id, path: row.path.clone(), label });
    }

    /// Queues the new path of an archived source.
    pub(super) fn moved(&mut self, row: &SourceRow) {
        let Some(copy) = copy_of(row).filter(|_| self.archiving == Archiving::Yes) else { return };
        let worker = self.worker.get_or_insert_with(|| Worker::start(self.folder.clone(), self.now));
        let _ = worker.work.send(Work::Move { copy, to: row.path.clone() });
    }

    /// How many bytes the archive stored so far.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Waits until all queued work is durable.
    pub(super) fn commit(&mut self) -> Result<Vec<ArchivedSource>, Error> {
        let Some(worker) = &self.worker else { return Ok(Vec::new()) };
        let _ = worker.work.send(Work::Commit);
        let lost = || Error::about(&self.folder, Problem::Unwritable);
        let done = worker.done.recv().map_err(|_| lost())?;
        self.added += done.added;
        self.warnings.extend(done.warnings);
        match done.failed {
            Some(failed) => Err(failed),
            None => Ok(done.archived),
        }
    }
}

impl Drop for ArchiveWorker {
    fn drop(&mut self) {
        if let Some(Worker { work, thread, .. }) = self.worker.take() {
            drop(work);
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn start(folder: PathBuf, now: i64) -> Worker {
        let (work, queue) = sync_channel(QUEUE);
        let (sender, done) = channel();
        let thread = std::thread::spawn(move || archive_all(&folder, now, &queue, &sender));
        Worker { work, done, thread }
    }
}

fn archive_all(folder: &Path, now: i64, queue: &Receiver<Work>, sender: &Sender<Done>) {
    let mut writer = ArchiveWriter::open_when_free(Arc::new(Disk), folder);
    let mut done = Done::default();
    done.warnings.extend(writer.iter().flat_map(|writer| writer.warnings().to_vec()));
    while let Ok(work) = queue.recv() {
        match (work, &mut writer) {
            (Work::Archiving { id, path, label }, Ok(writer)) => match writer.add(&path, &label) {
                Ok(AddOutcome::Archived(added)) => {
                    done.added += added.added;
                    done.archived.push((id, added.copy.to_string(), added.length));
                }
                // The run checked this before and has reported it.
                Ok(AddOutcome::Forgotten | AddOutcome::Continued { .. }) => {}
                // One bad file does not stop the rest; the commit reports a failing disk.
                Err(error) => done.warnings.push(Warning::new(&path, format!("not archived: {error}"))),
            },
            (Work::Move { copy, to }, Ok(writer)) => {
                let moved = writer.moved(copy, &to);
                done.warnings.extend(moved.err().map(|error| Warning::new(&to, format!("not archived: {error}"))));
            }
            (Work::Archiving { .. } | Work::Move { .. }, Err(_)) => {}
            (Work::Commit, writer) => {
                done.failed = match writer {
                    Ok(writer) => writer.commit(now).err(),
                    Err(error) => Some(error.again()),
                };
                if sender.send(std::mem::take(&mut done)).is_err() {
                    return;
                }
            }
        }
    }
}

/// The archive's copy of a source.
pub(super) fn copy_of(row: &SourceRow) -> Option<CopyId> {
    row.archive_copy.as_deref()?.parse().ok().map(CopyId)
}

/// The archive, open for reading.
#[derive(Debug)]
pub(super) struct ArchiveReader {
    archive: Archive,
    /// Copies that are about to get another path.
    moved: HashMap<CopyId, PathBuf>,
}

impl ArchiveReader {
    /// Opens the archive. A missing one is empty.
    pub(super) fn open(store: &Store) -> Result<ArchiveReader, Error> {
        let archive = Archive::open(Arc::new(Disk), &store.archive())?;
        Ok(ArchiveReader { archive, moved: HashMap::new() })
    }

    /// What the archive remembers of a forgotten source.
    pub(super) fn forgotten_state(&self, label: &Label, path: &Path) -> Result<ForgottenState, Error> {
        self.archive.forgotten_state(label, path)
    }

    /// Reconciles the catalogue with the archive, which is the authority on its copies. Sources whose copies are missing or
    /// damaged are archived again if they still exist; the others are lost, and a warning names them. Copies that the catalogue
    /// does not know are indexed later.
    pub(super) fn reconcile(&self, catalogue: &Catalogue, warnings: &mut Vec<Warning>) -> Result<(), Error> {
        let intact = self.archive.intact()?;
        let sound_copy = |row: &ArchivedRow| {
            let copy = row.archive_copy.parse().ok().map(CopyId).filter(|copy| intact.contains(copy));
            let copy = copy.and_then(|copy| self.archive.copy(copy));
            copy.filter(|copy| copy.path == row.path && copy.length >= row.archived_length)
        };
        let (mut missing, mut longer) = (Vec::new(), Vec::new());
        let rows = catalogue.archived_rows()?;
        let known: HashSet<OsString> = rows.iter().map(|row| row.path.clone().into_os_string()).collect();
        for row in rows {
            match sound_copy(&row) {
                Some(copy) if copy.length == row.archived_length => continue,
                // A run was killed after the archive recorded a source's growth and before the catalogue did. The source may
                // have been truncated since, so the archive must be asked again.
                Some(copy) => {
                    longer.push((row.id, row.archive_copy, copy.length));
                    continue;
                }
                None => {}
            }
            match self.moved_copy(catalogue, &row)?.filter(|copy| intact.contains(&copy.id)) {
                // A run was killed after the archive recorded a move and before the catalogue did.
                Some(copy) => catalogue.set_path(row.id, &copy.path)?,
                None => missing.push(row),
            }
        }
        if !longer.is_empty() {
            catalogue.raise_archived(&longer)?;
        }
        if !missing.is_empty() {
            catalogue.clear_archived(&missing.iter().map(|row| row.id).collect::<Vec<_>>())?;
        }
        for row in missing.iter().filter(|row| is_missing(&row.path)) {
            warnings.push(Warning::new(
                &row.path,
                "is lost: the file no longer exists, and the archive has no intact copy",
            ));
        }
        // The catalogue knows almost all of them, and a look at a path takes longer than a look into memory.
        let mut gone_copies = self.archive.copies().filter(|copy| {
            !known.contains(copy.path.as_os_str())
                && is_missing(&copy.path)
                && catalogue.registry().named(&copy.label.format).is_some()
        });
        if let Some(copy) = gone_copies.find(|copy| !matches!(catalogue.source_at(&copy.path), Ok(Some(_)))) {
            drop(copy);
            catalogue.set_incomplete()?;
        }
        Ok(())
    }

    /// The archive's copy of a source under a path that the catalogue does not know: the same number and the same bytes.
    fn moved_copy(&self, catalogue: &Catalogue, archived: &ArchivedRow) -> Result<Option<CopyInfo>, Error> {
        let copy = archived.archive_copy.parse().ok().and_then(|copy| self.archive.copy(CopyId(copy)));
        let Some(copy) = copy.filter(|copy| copy.path != archived.path && copy.length >= archived.archived_length)
        else {
            return Ok(None);
        };
        let Some(row) = catalogue.source(archived.id)? else { return Ok(None) };
        if !is_missing(&archived.path)
            || self.archive.copy_at(&archived.path).is_some()
            || catalogue.source_at(&copy.path)?.is_some()
        {
            return Ok(None);
        }
        let mut begin = Vec::new();
        let read = self.archive.read(copy.id, WhichVersion::Last, 0)?.take(row.head_length).read_to_end(&mut begin);
        Ok((read.is_ok() && xxh3_64(&begin) == row.head).then_some(copy))
    }

    /// The marked sessions with their marks.
    pub(super) fn marks(&self) -> impl Iterator<Item = (&SessionKey, &Marks)> {
        self.archive.marks()
    }

    /// The folders that the user added to the archive.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        self.archive.folders().to_vec()
    }

    /// All copies.
    pub(super) fn copies(&self) -> Vec<CopyInfo> {
        self.archive.copies().collect()
    }

    /// The copy with this number.
    pub(super) fn copy(&self, copy: CopyId) -> Option<CopyInfo> {
        self.archive.copy(copy)
    }

    /// Whether there is a copy of a file at this path.
    pub(super) fn has_copy_at(&self, path: &Path) -> bool {
        self.archive.copy_at(path).is_some()
    }

    /// Whether the archive has the copy that the catalogue names, under the source's path.
    pub(super) fn has_own(&self, row: &SourceRow) -> bool {
        copy_of(row).and_then(|copy| self.archive.copy(copy)).is_some_and(|copy| copy.path == row.path)
    }

    /// Remembers that a source's copy is about to get the source's path.
    pub(super) fn will_move(&mut self, row: &SourceRow) {
        self.moved.extend(copy_of(row).map(|copy| (copy, row.path.clone())));
    }

    fn is_at(&self, copy: &CopyInfo, path: &Path) -> bool {
        copy.path == path || self.moved.get(&copy.id).is_some_and(|moved| moved == path)
    }

    /// The bytes of a version of a copy from an offset on, if it is archived.
    pub(super) fn read_version(
        &self,
        copy: CopyId,
        version: u32,
        from: u64,
    ) -> Result<Option<Box<dyn Read + '_>>, Error> {
        match self.archive.read(copy, WhichVersion::Number(version), from) {
            Ok(reader) => Ok(Some(Box::new(reader))),
            Err(Error { problem: Problem::NotKept, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The archived bytes of a source from an offset on.
    pub(super) fn read(&self, row: &SourceRow, from: u64) -> Result<Option<Box<dyn Read + '_>>, Error> {
        // The number alone proves little: another archive may have replaced the one that assigned it.
        let numbered = copy_of(row).and_then(|copy| self.archive.copy(copy)).filter(|copy| {
            copy.length >= row.archived_length && (self.is_at(copy, &row.path) || row.copy_of.is_some())
        });
        let Some(copy) = numbered.or_else(|| self.archive.copy_at(&row.path)).map(|copy| copy.id) else {
            return Ok(None);
        };
        match self.archive.read(copy, WhichVersion::Last, from) {
            Ok(reader) => Ok(Some(Box::new(reader))),
            // It may have been forgotten since.
            Err(Error { problem: Problem::NotKept, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
