//! Copies sources into the archive beside the indexing, on a thread of its own, and says what is safe. And reads them back for those who
//! look for what is gone. What a copy is is the archive's business.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use super::Store;
use super::catalogue::{SourceId, SourceRow};
use super::run::{Keep, Plan};
use crate::archive::{self, Archive, CopyId, CopyInfo, Label, Which};
use crate::files::Disk;
use crate::tail::Remark;
use crate::{Error, Problem};

/// How many sources wait to be kept.
const QUEUE: usize = 64;

/// Keeps sources while they are indexed.
pub(super) struct Keeper {
    folder: PathBuf,
    keep: Keep,
    now: i64,
    worker: Option<Worker>,
    added: u64,
    /// What could not be kept.
    pub remarks: Vec<Remark>,
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
struct Done {
    kept: Vec<KeptSource>,
    remarks: Vec<Remark>,
    added: u64,
    failed: Option<Error>,
}

/// A source that is safe: which, its name in the archive, and how much of it.
pub(super) type KeptSource = (SourceId, String, u64);

impl Keeper {
    pub(super) fn new(store: &Store, plan: &Plan<'_>) -> Keeper {
        let (folder, keep) = (store.archive(), plan.keep);
        Keeper { folder, keep, now: plan.now / 1_000_000, worker: None, added: 0, remarks: Vec::new() }
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
        self.remarks.extend(done.remarks);
        match done.failed {
            Some(failed) => Err(failed),
            None => Ok(done.kept),
        }
    }
}

impl Drop for Keeper {
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
    let mut keeper = archive::Keeper::open(Arc::new(Disk), folder);
    let empty = || Done { kept: Vec::new(), remarks: Vec::new(), added: 0, failed: None };
    let mut done = empty();
    while let Ok(work) = queue.recv() {
        match (work, &mut keeper) {
            (Work::Keep { id, path, label }, Ok(keeper)) => match keeper.keep(&path, &label) {
                Ok(Some(kept)) => {
                    done.added += kept.added;
                    done.kept.push((id, kept.copy.to_string(), kept.length));
                }
                Ok(None) => {}
                // One bad file does not stop the rest; a disk that fails is told by the commit.
                Err(error) => done.remarks.push(Remark::new(&path, format!("not kept: {error}"))),
            },
            (Work::Move { copy, to }, Ok(keeper)) => {
                let moved = keeper.moved(copy, &to);
                done.remarks.extend(moved.err().map(|error| Remark::new(&to, format!("not kept: {error}"))));
            }
            (Work::Keep { .. } | Work::Move { .. }, Err(_)) => {}
            (Work::Commit, keeper) => {
                done.failed = match keeper {
                    Ok(keeper) => keeper.commit(now).err(),
                    Err(error) => Some(error.again()),
                };
                if sender.send(std::mem::replace(&mut done, empty())).is_err() {
                    return;
                }
            }
        }
    }
}

/// What a source is in the archive.
fn copy_of(row: &SourceRow) -> Option<CopyId> {
    row.kept.as_deref()?.parse().ok().map(CopyId)
}

/// The archive, to read from.
#[derive(Debug)]
pub(super) struct Kept(Archive);

impl Kept {
    /// Opens it; one that is not there is empty.
    pub(super) fn open(store: &Store) -> Result<Kept, Error> {
        Archive::open(Arc::new(Disk), &store.archive()).map(Kept)
    }

    /// Whether a source was forgotten on purpose. `begin` is how it begins.
    pub(super) fn is_forgotten(&self, label: &Label, begin: &[u8]) -> bool {
        self.0.is_forgotten(label, begin)
    }

    /// The folders that the user added.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        self.0.folders().to_vec()
    }

    /// Everything that is kept.
    pub(super) fn copies(&self) -> Vec<CopyInfo> {
        self.0.copies().collect()
    }

    /// The bytes of a source, from an offset on, where they were kept.
    pub(super) fn read(&self, row: &SourceRow, from: u64) -> Result<Option<Box<dyn Read + '_>>, Error> {
        let Some(copy) = copy_of(row) else { return Ok(None) };
        match self.0.read(copy, Which::Last, from) {
            Ok(reader) => Ok(Some(Box::new(reader))),
            // It may have been forgotten since.
            Err(Error { problem: Problem::NotKept, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
