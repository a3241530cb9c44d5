//! Copies sources into the archive while they are indexed, on a thread of its own, compares the catalogue with the archive, and reads
//! copies of sources that are gone.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use xxhash_rust::xxh3::xxh3_64;

use super::Store;
use super::catalogue::{Catalogue, KeptRow, SourceId, SourceRow};
use super::run::{Keep, Plan, is_missing};
use crate::archive::{AddOutcome, Archive, ArchiveWriter, CopyId, CopyInfo, Label, Memory, Which};
use crate::files::Disk;
use crate::tail::Warning;
use crate::{Error, Problem};

/// How many sources wait to be kept.
const QUEUE: usize = 64;

/// Archives sources while the index reads them.
pub(super) struct ArchiveWorker {
    folder: PathBuf,
    keep: Keep,
    now: i64,
    worker: Option<Worker>,
    added: u64,
    /// What could not be kept.
    pub warnings: Vec<Warning>,
}

struct Worker {
    work: SyncSender<Work>,
    done: Receiver<Done>,
    thread: JoinHandle<()>,
}

enum Work {
    Keep { id: SourceId, path: PathBuf, label: Label },
    Move { copy: CopyId, to: PathBuf },
    Commit,
}

/// What became of everything since the last commit.
#[derive(Default)]
struct Done {
    kept: Vec<KeptSource>,
    warnings: Vec<Warning>,
    added: u64,
    failed: Option<Error>,
}

/// A source that is safe: which, its name in the archive, and how much of it.
pub(super) type KeptSource = (SourceId, String, u64);

impl ArchiveWorker {
    pub(super) fn new(store: &Store, plan: &Plan<'_>) -> ArchiveWorker {
        let (folder, keep) = (store.archive(), plan.keep);
        ArchiveWorker { folder, keep, now: plan.now / 1_000_000, worker: None, added: 0, warnings: Vec::new() }
    }

    /// Has a source kept.
    pub(super) fn keep(&mut self, row: &SourceRow, session: Option<String>) {
        if self.keep == Keep::No {
            return;
        }
        let worker = self.worker.get_or_insert_with(|| Worker::start(self.folder.clone(), self.now));
        let label = Label { format: row.format.clone(), session };
        // A worker that is gone has left a word about it, which the commit reads.
        let _ = worker.work.send(Work::Keep { id: row.id, path: row.path.clone(), label });
    }

    /// Says where a source that was kept stands now.
    pub(super) fn moved(&mut self, row: &SourceRow) {
        let Some(copy) = copy_of(row).filter(|_| self.keep == Keep::Yes) else { return };
        let worker = self.worker.get_or_insert_with(|| Worker::start(self.folder.clone(), self.now));
        let _ = worker.work.send(Work::Move { copy, to: row.path.clone() });
    }

    /// How many bytes had to be stored so far.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Waits until everything that was asked for is safe.
    pub(super) fn commit(&mut self) -> Result<Vec<KeptSource>, Error> {
        let Some(worker) = &self.worker else { return Ok(Vec::new()) };
        let _ = worker.work.send(Work::Commit);
        let lost = || Error::about(&self.folder, Problem::Unwritable);
        let done = worker.done.recv().map_err(|_| lost())?;
        self.added += done.added;
        self.warnings.extend(done.warnings);
        match done.failed {
            Some(failed) => Err(failed),
            None => Ok(done.kept),
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
        let thread = std::thread::spawn(move || keep_all(&folder, now, &queue, &sender));
        Worker { work, done, thread }
    }
}

fn keep_all(folder: &Path, now: i64, queue: &Receiver<Work>, sender: &Sender<Done>) {
    let mut writer = ArchiveWriter::open(Arc::new(Disk), folder);
    let mut done = Done::default();
    done.warnings.extend(writer.iter().flat_map(|writer| writer.warnings().to_vec()));
    while let Ok(work) = queue.recv() {
        match (work, &mut writer) {
            (Work::Keep { id, path, label }, Ok(writer)) => match writer.add(&path, &label) {
                Ok(AddOutcome::Archived(added)) => {
                    done.added += added.added;
                    done.kept.push((id, added.copy.to_string(), added.length));
                }
                // The run looked before, and says so.
                Ok(AddOutcome::Forgotten | AddOutcome::Continued { .. }) => {}
                // One bad file does not stop the rest; a disk that fails is told by the commit.
                Err(error) => done.warnings.push(Warning::new(&path, format!("not kept: {error}"))),
            },
            (Work::Move { copy, to }, Ok(writer)) => {
                let moved = writer.moved(copy, &to);
                done.warnings.extend(moved.err().map(|error| Warning::new(&to, format!("not kept: {error}"))));
            }
            (Work::Keep { .. } | Work::Move { .. }, Err(_)) => {}
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

/// What a source is in the archive.
pub(super) fn copy_of(row: &SourceRow) -> Option<CopyId> {
    row.kept.as_deref()?.parse().ok().map(CopyId)
}

/// The archive, to read from.
#[derive(Debug)]
pub(super) struct Kept {
    archive: Archive,
    /// Copies that the archive is about to have at another path.
    moved: HashMap<CopyId, PathBuf>,
}

impl Kept {
    /// Opens it; one that is not there is empty.
    pub(super) fn open(store: &Store) -> Result<Kept, Error> {
        let archive = Archive::open(Arc::new(Disk), &store.archive())?;
        Ok(Kept { archive, moved: HashMap::new() })
    }

    /// What the archive remembers of a source.
    pub(super) fn memory(&self, label: &Label, path: &Path) -> Result<Memory, Error> {
        self.archive.memory(label, path)
    }

    /// Compares the catalogue with the archive: only the archive knows what it holds. Sources whose copies are missing or damaged are
    /// archived again where they still exist; the others are lost, and named. Copies that the catalogue does not know are read later.
    pub(super) fn reconcile(&self, catalogue: &Catalogue, warnings: &mut Vec<Warning>) -> Result<(), Error> {
        let intact = self.archive.intact()?;
        let held = |kept: &KeptRow| {
            let copy = kept.kept.parse().ok().map(CopyId).filter(|copy| intact.contains(copy));
            let copy = copy.and_then(|copy| self.archive.copy(copy));
            copy.filter(|copy| copy.path == kept.path && copy.length >= kept.kept_length)
        };
        let (mut missing, mut longer) = (Vec::new(), Vec::new());
        for row in catalogue.kept_rows()? {
            match held(&row) {
                Some(copy) if copy.length == row.kept_length => continue,
                // A run was killed after it told the archive that a source had grown, and before it told the catalogue. The source may
                // have been cut off since, and then the archive has to be asked again.
                Some(copy) => {
                    longer.push((row.id, row.kept, copy.length));
                    continue;
                }
                None => {}
            }
            match self.moved_copy(catalogue, &row)?.filter(|copy| intact.contains(&copy.id)) {
                // A run was killed after it told the archive of a move, and before it told the catalogue.
                Some(copy) => catalogue.set_path(row.id, &copy.path)?,
                None => missing.push(row),
            }
        }
        if !longer.is_empty() {
            catalogue.correct_kept(&longer)?;
        }
        if !missing.is_empty() {
            catalogue.set_unkept(&missing.iter().map(|row| row.id).collect::<Vec<_>>())?;
        }
        for row in missing.iter().filter(|row| is_missing(&row.path)) {
            warnings
                .push(Warning::new(&row.path, "is lost: the file is gone, and the archive has no sound copy of it"));
        }
        let mut strange = self.archive.copies().filter(|copy| {
            is_missing(&copy.path) && stenograph::Registry::built_in().named(&copy.label.format).is_some()
        });
        if let Some(copy) = strange.find(|copy| !matches!(catalogue.source_at(&copy.path), Ok(Some(_)))) {
            drop(copy);
            catalogue.set_incomplete()?;
        }
        Ok(())
    }

    /// The copy of a source that the archive knows at a place of which the catalogue does not know: the same number, and the same bytes.
    fn moved_copy(&self, catalogue: &Catalogue, kept: &KeptRow) -> Result<Option<CopyInfo>, Error> {
        let copy = kept.kept.parse().ok().and_then(|copy| self.archive.copy(CopyId(copy)));
        let Some(copy) = copy.filter(|copy| copy.path != kept.path && copy.length >= kept.kept_length) else {
            return Ok(None);
        };
        let Some(row) = catalogue.source(kept.id)? else { return Ok(None) };
        if !is_missing(&kept.path)
            || self.archive.copy_at(&kept.path).is_some()
            || catalogue.source_at(&copy.path)?.is_some()
        {
            return Ok(None);
        }
        let mut begin = Vec::new();
        let read = self.archive.read(copy.id, Which::Last, 0)?.take(row.head_length).read_to_end(&mut begin);
        Ok((read.is_ok() && xxh3_64(&begin) == row.head).then_some(copy))
    }

    /// The folders that the user added.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        self.archive.folders().to_vec()
    }

    /// Everything that is kept.
    pub(super) fn copies(&self) -> Vec<CopyInfo> {
        self.archive.copies().collect()
    }

    /// One kept copy.
    pub(super) fn copy(&self, copy: CopyId) -> Option<CopyInfo> {
        self.archive.copy(copy)
    }

    /// Whether there is a copy of a file at this path.
    pub(super) fn has_copy_at(&self, path: &Path) -> bool {
        self.archive.copy_at(path).is_some()
    }

    /// Whether the archive has the copy that the catalogue names, under the path of the source.
    pub(super) fn has_own(&self, row: &SourceRow) -> bool {
        copy_of(row).and_then(|copy| self.archive.copy(copy)).is_some_and(|copy| copy.path == row.path)
    }

    /// Takes notice that the copy of a source gets the path of the source.
    pub(super) fn will_move(&mut self, row: &SourceRow) {
        self.moved.extend(copy_of(row).map(|copy| (copy, row.path.clone())));
    }

    fn is_at(&self, copy: &CopyInfo, path: &Path) -> bool {
        copy.path == path || self.moved.get(&copy.id).is_some_and(|moved| moved == path)
    }

    /// The bytes of a version of a copy, from an offset on, where it is kept.
    pub(super) fn read_version(
        &self,
        copy: CopyId,
        version: u32,
        from: u64,
    ) -> Result<Option<Box<dyn Read + '_>>, Error> {
        match self.archive.read(copy, Which::Number(version), from) {
            Ok(reader) => Ok(Some(Box::new(reader))),
            Err(Error { problem: Problem::NotKept, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The bytes of a source, from an offset on, where they were kept.
    pub(super) fn read(&self, row: &SourceRow, from: u64) -> Result<Option<Box<dyn Read + '_>>, Error> {
        // A number says little: another archive may be in the place of the one that gave it.
        let numbered = copy_of(row)
            .and_then(|copy| self.archive.copy(copy))
            .filter(|copy| copy.length >= row.kept_length && (self.is_at(copy, &row.path) || row.copy_of.is_some()));
        let Some(copy) = numbered.or_else(|| self.archive.copy_at(&row.path)).map(|copy| copy.id) else {
            return Ok(None);
        };
        match self.archive.read(copy, Which::Last, from) {
            Ok(reader) => Ok(Some(Box::new(reader))),
            // It may have been forgotten since.
            Err(Error { problem: Problem::NotKept, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
