//! One indexing run: find changed files, read them, commit in batches. It may be killed at any time; the next run continues
//! after the last committed batch. `source.rs` handles a single source.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::archive_worker::{ArchiveReader, ArchiveWorker};
use super::assign_session::CopiedSession;
use super::catalogue::{Catalogue, FileStamp, Gone, SessionId, SourceId, SourceRow, Unknown};
use super::passed_over::PassedOver;
use super::saved_status::StatusCollector;
use super::seal::Seal;
use super::survey::{IndexJob, Survey, survey};
use super::text::{TextIndex, TextWriter};
use super::{Check, IndexCreation, OpenIndex, Store, TextAhead, saved_contents};
use crate::discover::{Places, Stat, registry_path_hints};
use crate::tail::Warning;
use crate::{Error, Problem};

/// What to index, and how.
#[derive(Debug)]
pub struct IndexPlan<'p> {
    /// Where to look for files.
    pub places: &'p Places,
    /// Which files to look at.
    pub scope: IndexScope,
    /// Whether to copy sources into the archive.
    pub archiving: Archiving,
    /// How many bytes of memory the run may use.
    pub memory: usize,
    /// How many threads the run may use.
    pub threads: usize,
    /// The current time, in nanoseconds since 1970.
    pub now: i64,
}

/// Which files a run looks at.
#[derive(Clone, Debug)]
pub enum IndexScope {
    /// All files.
    All,
    /// These known files; if one of them is unknown, all files.
    Files(Vec<PathBuf>),
}

/// Whether a run copies sources into the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archiving {
    /// Copy them.
    Yes,
    /// Do not copy them.
    No,
}

/// The progress of a run.
#[derive(Clone, Debug, Default)]
pub struct IndexProgress {
    /// The number of files to read.
    pub files: u64,
    /// The number of files read.
    pub files_done: u64,
    /// The number of bytes to read.
    pub bytes: u64,
    /// The number of bytes read.
    pub bytes_done: u64,
    /// The current file.
    pub path: PathBuf,
}

/// Observes the progress of a run and can stop it.
pub trait RunObserver {
    /// Receives the progress.
    fn progress(&mut self, progress: &IndexProgress);
    /// Whether the run should stop as soon as its work so far is durable.
    fn is_stopped(&self) -> bool;
    /// Called when another process holds the index's lock and the run waits for it.
    fn waiting_for_lock(&mut self, _holder: Option<u32>) {}
}

/// Observes nothing and never stops the run.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl RunObserver for NoObserver {
    fn progress(&mut self, _progress: &IndexProgress) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct IndexReport {
    /// Files that may be sources.
    pub found: u64,
    /// Unchanged sources.
    pub unchanged: u64,
    /// New sources.
    pub added: u64,
    /// Sources that grew.
    pub grown: u64,
    /// Sources that were read again from their beginning.
    pub rewritten: u64,
    /// Sources with a new path.
    pub moved: u64,
    /// Copies of other sources.
    pub copies: u64,
    /// Sources that disappeared since the last run.
    pub gone: u64,
    /// Files that are not transcripts.
    pub non_transcripts: u64,
    /// Files of forgotten sessions.
    pub forgotten: u64,
    /// Forgotten sessions that have grown since, or their files if they have no name.
    pub continued: Vec<String>,
    /// Bytes read.
    pub bytes: u64,
    /// Events indexed.
    pub events: u64,
    /// Bytes copied into the archive.
    pub archived_bytes: u64,
    /// Types of unknown records that appeared for the first time.
    pub unknown: Vec<Unknown>,
    /// Files in a place where a format keeps its sources, but of no known format.
    pub unrecognised: Vec<(PathBuf, String)>,
    /// Files that the run skipped, because of their name or their content.
    pub passed_over: PassedOver,
    /// Files that could not be read, and other warnings.
    pub warnings: Vec<Warning>,
    /// Why the index was created, if it was.
    pub made: Option<IndexCreation>,
    /// Whether the run was stopped before it read everything.
    pub stopped: bool,
}

/// How many bytes are read between two commits: few enough that a killed run loses little, enough that commits cost nothing.
const BATCH_SIZE: u64 = 1 << 30;

/// How many files are indexed between two commits, which bounds the memory held until a commit.
const BATCH_FILES: u64 = 8 << 10;

/// Updates the index. One that turns out to be damaged, before or during the run, is rebuilt once.
pub fn run(store: &Store, plan: &IndexPlan<'_>, observer: &mut dyn RunObserver) -> Result<IndexReport, Error> {
    let Some(_lock) = store.lock(observer)? else { return Ok(IndexReport { stopped: true, ..IndexReport::default() }) };
    let now_s = plan.now / 1_000_000_000;
    let check = match plan.scope {
        IndexScope::All => Check::Full { now_s },
        IndexScope::Files(_) => Check::Quick,
    };
    let mut before = Seal::read(&store.index());
    let mut done = match store.open(check) {
        Ok(Ok(pair)) => attempt(store, plan, observer, pair),
        Ok(Err(reason)) => attempt(store, plan, observer, store.rebuild(reason)?),
        Err(error) => Err(error),
    };
    if let Err(error) = &done
        && store.is_damage(error)
    {
        let pair = store.rebuild(IndexCreation::Rebuilt(error.to_string()))?;
        done = attempt(store, plan, observer, pair);
    }
    let (report, commits) = done?;
    before.take_if(|_| report.made.is_some());
    store.seal(before.as_ref(), commits, now_s, check);
    Ok(report)
}

/// One attempt on an open index. Returns the report and the catalogue's commit count.
fn attempt(
    store: &Store,
    plan: &IndexPlan<'_>,
    observer: &mut dyn RunObserver,
    pair: OpenIndex,
) -> Result<(IndexReport, u64), Error> {
    let OpenIndex { catalogue, text, text_ahead, made } = pair;
    let mut report = IndexReport { made, ..IndexReport::default() };
    let before = catalogue.batch_number()?;
    // Reports a damaged archive before anything asks it.
    let archive = ArchiveReader::open(store)?;
    if plan.archiving == Archiving::Yes {
        archive.reconcile(&catalogue, &mut report.warnings)?;
    }
    let Survey { mut jobs, gone, databases } = survey(&catalogue, plan, &mut report)?;
    // New files first, in case the run is stopped early.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.stamp.changed));
    let mut run = IndexRun::new(store, plan, &catalogue, &text, text_ahead)?;
    run.archive = Some(archive);
    run.databases = databases;
    if text_ahead == TextAhead::Yes {
        run.open_writer()?;
    }
    let work = run.work(&jobs, &gone, &mut report, observer);
    if work.is_err() {
        // The next run reads again what was not committed.
        let _ = catalogue.roll_back();
    }
    work?;
    run.purge()?;
    if let Some(writer) = run.writer.take() {
        writer.close();
    }
    saved_contents::sweep(&store.index(), &catalogue)?;
    report.unknown = catalogue.unknown(before)?;
    report.unrecognised = catalogue.unrecognised()?;
    Ok((report, catalogue.commits()?))
}

/// The state of a run.
pub(super) struct IndexRun<'r> {
    pub catalogue: &'r Catalogue,
    text: &'r TextIndex,
    pub plan: &'r IndexPlan<'r>,
    writer: Option<TextWriter>,
    pub archive_worker: ArchiveWorker,
    /// The number of the current batch.
    pub batch: u64,
    /// Bytes read since the last commit.
    pub read: u64,
    /// Groups whose documents this batch deletes. They were retired before it began, so that a concurrent search still finds
    /// their documents.
    retired: Vec<u64>,
    text_ahead: TextAhead,
    /// The source being read, if it is a known one.
    pub reading: Option<SourceId>,
    /// Copies of rewritten sources, which must be read now.
    pub diverged: Vec<IndexJob>,
    /// Sessions whose sources have changed, so that the run must decide again which one is read.
    pub unresolved: HashSet<SessionId>,
    /// Copies that are not linked to their originals yet.
    pub copies: Vec<CopiedSession>,
    /// First keys that this run read. The run must decide which of the sessions with such a key is the
    /// original.
    pub unordered: HashSet<u64>,
    /// Copies of rewritten sources that only the archive has.
    pub diverged_gone: Vec<SourceId>,
    /// The checksum of all bytes of the current source, if it was read to its end.
    pub content_read: Option<u32>,
    /// Sources that changed while they were read, and are read once more in this run.
    pub read_again: HashSet<SourceId>,
    /// The keys of the current source's events, if it replaces an earlier version of itself.
    pub seen_keys: Option<HashSet<u64>>,
    /// Collects the status of the current source.
    pub status: Option<StatusCollector>,
    /// The archive as it was when the run first needed it.
    pub archive: Option<ArchiveReader>,
    /// The projects of working folders.
    pub projects: HashMap<String, i64>,
    /// Databases that have changed, with the state that this run reads.
    databases: Vec<(PathBuf, FileStamp)>,
    store: &'r Store,
}

impl<'r> IndexRun<'r> {
    /// A source of which nothing is known yet.
    pub(super) fn new_row(&self, path: &Path) -> SourceRow {
        SourceRow::new(path, self.catalogue.registry())
    }

    fn new(
        store: &'r Store,
        plan: &'r IndexPlan<'r>,
        catalogue: &'r Catalogue,
        text: &'r TextIndex,
        text_ahead: TextAhead,
    ) -> Result<IndexRun<'r>, Error> {
        Ok(IndexRun {
            catalogue,
            text,
            plan,
            writer: None,
            archive_worker: ArchiveWorker::new(store, plan),
            batch: catalogue.batch_number()? + 1,
            read: 0,
            retired: catalogue.retired_groups()?,
            text_ahead,
            reading: None,
            diverged: Vec::new(),
            unresolved: HashSet::new(),
            copies: Vec::new(),
            unordered: HashSet::new(),
            diverged_gone: Vec::new(),
            content_read: None,
            read_again: HashSet::new(),
            seen_keys: None,
            status: None,
            archive: None,
            projects: HashMap::new(),
            databases: Vec::new(),
            store,
        })
    }

    /// Takes the text writer, opened on first use. The caller must give it back.
    pub(super) fn take_writer(&mut self) -> Result<TextWriter, Error> {
        match self.writer.take() {
            Some(writer) => Ok(writer),
            None => {
                let unsealed = Seal::remove(&self.store.index());
                unsealed.map_err(|error| Error::at(&self.store.index(), Problem::Unwritable, error))?;
                // The rest is for reading, compressing and the database.
                let writer = self.text.writer(self.plan.memory * 7 / 20, self.plan.threads)?;
                self.retired.iter().for_each(|doc_group| writer.delete_group(*doc_group));
                if self.text_ahead == TextAhead::Yes {
                    writer.delete_after(self.batch - 1)?;
                }
                Ok(writer)
            }
        }
    }

    /// Opens the text writer.
    fn open_writer(&mut self) -> Result<(), Error> {
        let writer = self.take_writer()?;
        self.give_writer(writer);
        Ok(())
    }

    /// Gives the text writer back.
    pub(super) fn give_writer(&mut self, writer: TextWriter) {
        self.writer = Some(writer);
    }

    /// The archive as it was when the run began.
    pub(super) fn archive(&mut self) -> Result<&ArchiveReader, Error> {
        match &mut self.archive {
            Some(archive) => Ok(archive),
            empty => Ok(empty.insert(ArchiveReader::open(self.store)?)),
        }
    }

    fn work(
        &mut self,
        jobs: &[IndexJob],
        gone: &[SourceId],
        report: &mut IndexReport,
        observer: &mut dyn RunObserver,
    ) -> Result<(), Error> {
        let bytes = jobs.iter().map(|job| job.stamp.size).sum();
        let mut progress = IndexProgress { files: jobs.len() as u64, bytes, ..IndexProgress::default() };
        self.catalogue.begin()?;
        for id in gone {
            if let Some(row) = self.catalogue.source(*id)? {
                self.unresolved.insert(row.session);
                self.catalogue.put(&SourceRow { gone: Gone::Gone, ..row })?;
                report.gone += 1;
                self.check_copies(*id)?;
            }
        }
        // A copy replaces its original only after every new file was checked: one of them may be the moved original.
        let diverged: HashSet<SourceId> = self.diverged.iter().filter_map(|job| job.known).collect();
        for job in jobs.iter().filter(|job| !job.known.is_some_and(|known| diverged.contains(&known))) {
            progress.path.clone_from(&job.path);
            observer.progress(&progress);
            if observer.is_stopped() {
                report.stopped = true;
                break;
            }
            self.index_file(job, report, &mut progress, observer)?;
            progress.files_done += 1;
            if self.read >= BATCH_SIZE || progress.files_done.is_multiple_of(BATCH_FILES) {
                self.commit()?;
                self.catalogue.begin()?;
            }
        }
        observer.progress(&progress);
        while !report.stopped
            && let Some(job) = self.diverged.pop()
        {
            self.index_file(&job, report, &mut progress, observer)?;
        }
        while !report.stopped
            && let Some(id) = self.diverged_gone.pop()
        {
            self.index_diverged(id, report)?;
        }
        if !report.stopped && !self.catalogue.is_complete()? {
            self.index_archived(report)?;
            self.index_versions(report)?;
            self.catalogue.set_complete()?;
        }
        if !report.stopped {
            for (path, stamp) in &self.databases {
                self.catalogue.put_database(path, stamp, self.plan.now)?;
            }
        }
        self.commit()?;
        report.archived_bytes = self.archive_worker.added();
        report.warnings.append(&mut self.archive_worker.warnings);
        Ok(())
    }

    /// Queues the copies of a source that is gone: one of them takes its place.
    fn check_copies(&mut self, original: SourceId) -> Result<(), Error> {
        for copy in self.catalogue.copies_of(original)? {
            if let Ok(stat) = Stat::of(&copy.path) {
                let (stamp, hints) = (FileStamp::from(stat), registry_path_hints(copy.registry, &copy.path));
                self.diverged.push(IndexJob { path: copy.path, stamp, hints, known: Some(copy.id) });
            }
        }
        Ok(())
    }

    /// Commits everything so far: first the archive, then the text, then the catalogue.
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        self.resolve_sessions()?;
        let catalogue = self.catalogue;
        catalogue.sync_marks(self.archive()?.marks())?;
        for key in std::mem::take(&mut self.unordered) {
            self.catalogue.link_to_oldest(key)?;
        }
        for (id, name, length) in self.archive_worker.commit()? {
            self.catalogue.set_archived(id, &name, length)?;
        }
        // The next batch deletes only groups that are retired in every state of this number, so a catalogue that retires groups
        // needs a new number.
        if self.writer.is_none() && !self.catalogue.retired_groups()?.is_empty() {
            self.open_writer()?;
        }
        let Some(writer) = &mut self.writer else {
            // The text has no changes, so the number stays.
            return self.catalogue.commit(self.batch - 1);
        };
        writer.commit(self.batch)?;
        self.text_ahead = TextAhead::No;
        self.catalogue.purged(&self.retired)?;
        self.catalogue.commit(self.batch)?;
        self.batch += 1;
        self.read = 0;
        // A merge maps its input, so more memory allows larger merges.
        let documents_max = u32::try_from(self.plan.memory / (4 << 10)).unwrap_or(u32::MAX);
        writer.tidy(documents_max)?;
        self.retired = self.catalogue.retired_groups()?;
        self.retired.iter().for_each(|doc_group| writer.delete_group(*doc_group));
        Ok(())
    }

    /// Deletes the documents that the last batch retired, instead of waiting for the next batch.
    fn purge(&mut self) -> Result<(), Error> {
        if self.retired.is_empty() || self.writer.is_none() {
            return Ok(());
        }
        self.catalogue.begin()?;
        self.commit()
    }
}

/// Removes sources and everything about them from the index. The archive is not touched.
pub fn remove(store: &Store, sources: &[SourceId], plan: &IndexPlan<'_>) -> Result<(), Error> {
    let Some(_lock) = store.lock(&mut NoObserver)? else { return Ok(()) };
    let before = Seal::read(&store.index());
    let Ok(pair) = store.open(Check::Quick)? else {
        return Err(Error::about(&store.index(), Problem::IndexDamaged));
    };
    let commits = remove_from(store, sources, plan, &pair)?;
    drop(pair);
    store.seal(before.as_ref(), commits, plan.now / 1_000_000_000, Check::Quick);
    Ok(())
}

fn remove_from(store: &Store, sources: &[SourceId], plan: &IndexPlan<'_>, pair: &OpenIndex) -> Result<u64, Error> {
    let OpenIndex { catalogue, text, text_ahead, .. } = pair;
    let mut run = IndexRun::new(store, plan, catalogue, text, *text_ahead)?;
    run.open_writer()?;
    catalogue.begin()?;
    for id in sources {
        if let Some(row) = catalogue.source(*id)? {
            catalogue.remove(&row)?;
        }
    }
    run.commit()?;
    run.purge()?;
    if let Some(writer) = &mut run.writer {
        writer.drop_deleted()?;
    }
    saved_contents::sweep(&store.index(), catalogue)?;
    let commits = catalogue.commits();
    catalogue.compact()?;
    commits
}
