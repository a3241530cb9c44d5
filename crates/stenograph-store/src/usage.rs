//! The ledger pages of all sources: from the index if it is up to date for a source, otherwise from the file, and from the
//! archive if the file is gone. [`stenograph::ledger`] defines how usage is counted.

mod grown;
mod job;
mod known;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use stenograph::ledger::{CallDetail, Ledger, LedgerBuilder, RecordingPart, SourceUsage};

use crate::Error;
use crate::archive::{Archive, CopyInfo};
use crate::databases;
use crate::discover::{FileId, FoundFile, Places, Stat, discover, registry_path_hints};
use crate::files::Disk;
use crate::index::catalogue::{Catalogue, FileStamp, Gone, IndexedSession, KnownFile, LedgerPages, SourcePages};
use crate::index::{IndexProgress, RunObserver, Store, is_missing, is_unchanged};
use crate::journal::RecordingHeader;
use crate::recover;
use crate::session_files;
use crate::tail::Warning;
use grown::LargeFile;
use job::{JobOutcome, ThreadState, UsageJob};
use known::{IndexSnapshot, IndexedSource, deliver_indexed};

pub(crate) use job::error_text;

/// A request for ledger pages.
#[derive(Debug)]
pub struct UsageRequest<'a> {
    /// Where to look for files; if `None`, only `files` are read.
    pub places: Option<&'a Places>,
    /// Files that are read regardless of the index; from the archive if they are gone.
    pub files: &'a [PathBuf],
    /// Restricts sources that only the store knows to those below one of these folders; empty means no restriction.
    pub below: &'a [PathBuf],
    /// The store.
    pub store: &'a Store,
    /// Whether to use the index.
    pub index: UseIndex,
    /// How much detail of calls is needed.
    pub calls: CallDetail,
    /// How many threads may be used.
    pub threads: usize,
}

/// Whether to use the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseIndex {
    /// Use it for files that are unchanged since they were indexed.
    Yes,
    /// Read everything from files and archive.
    No,
}

/// A page and its source.
#[derive(Debug)]
pub struct SourcePage {
    /// The source's path.
    pub path: PathBuf,
    /// The session that the source's path names.
    pub session: Option<String>,
    /// The agent of the recording, if the source is a journal: its calls count for that agent and for `session`.
    pub recorded_for: Option<&'static str>,
    /// The journal of the recording that the source is part of, if it is among the requested sources.
    pub journal: Option<PathBuf>,
    /// When the source was last written, in nanoseconds since 1970.
    pub written: i64,
    /// The page.
    pub page: SourceUsage,
}

impl SourcePage {
    fn new(path: &Path, session: Option<String>, written: i64, page: SourceUsage) -> SourcePage {
        let header = recover::is_journal_name(path).then(|| RecordingHeader::at(path)).flatten();
        let recorded_for = header.and_then(|header| header.agent());
        SourcePage { path: path.to_owned(), session, recorded_for, journal: None, written, page }
    }

    /// Adds the page to a ledger.
    pub fn add_to(self, builder: &mut LedgerBuilder) {
        let is_journal = self.journal.as_deref() == Some(&self.path);
        builder.add(&self.path.to_string_lossy(), self.session.as_deref(), self.written, self.page);
        if let Some(agent) = self.recorded_for {
            builder.set_owner_of_last(agent, self.session.as_deref());
        }
        if let Some(journal) = &self.journal {
            let part = if is_journal { RecordingPart::Journal } else { RecordingPart::Document };
            builder.set_recording_of_last(&journal.to_string_lossy(), part);
        }
    }
}

/// The ledger of some files of a session that the index knows. Calls that several of them state count once.
pub fn session_ledger(
    catalogue: &Catalogue,
    session: &IndexedSession,
    is_counted: impl Fn(&Path) -> bool,
) -> Result<Ledger, Error> {
    let mut pages = catalogue.session_usage(session.id)?;
    pages.retain(|(path, ..)| is_counted(path));
    let journals = Journals::among(pages.iter().map(|(path, ..)| path.as_path()));
    let mut builder = LedgerBuilder::default();
    for (path, written, page) in pages {
        journals.assign(SourcePage::new(&path, Some(session.name.clone()), written, page)).add_to(&mut builder);
    }
    Ok(builder.finish())
}

/// The journals among the sources of a request.
struct Journals(HashSet<PathBuf>);

impl Journals {
    fn among<'p>(paths: impl Iterator<Item = &'p Path>) -> Journals {
        Journals(paths.filter(|path| recover::is_journal_name(path)).map(Path::to_owned).collect())
    }

    /// Assigns a page to its recording. The journal has the single calls whose sum a document states.
    fn assign(&self, page: SourcePage) -> SourcePage {
        if self.0.is_empty() {
            return page;
        }
        if self.0.contains(&page.path) {
            return SourcePage { journal: Some(page.path.clone()), ..page };
        }
        match session_files::journals_of(&page.path).into_iter().find(|journal| self.0.contains(journal)) {
            Some(journal) => SourcePage { journal: Some(journal), page: page.page.without_runs(), ..page },
            None => page,
        }
    }
}

/// The results of a request.
#[derive(Debug, Default)]
pub struct UsageRunReport {
    /// Sources that were read.
    pub read: u64,
    /// Sources whose pages the index had.
    pub known: u64,
    /// Sources that are gone and came from the archive.
    pub from_archive: u64,
    /// Files of forgotten sessions; they are not counted.
    pub forgotten: u64,
    /// Files without a known format.
    pub unrecognized: UnrecognizedFiles,
    /// Files that could not be read.
    pub warnings: Vec<Warning>,
    /// Whether the observer stopped the run.
    pub stopped: bool,
}

/// Files without a known format.
#[derive(Debug, Default)]
pub struct UnrecognizedFiles {
    /// How many.
    pub count: u64,
    /// The first ones, by path.
    pub examples: Vec<PathBuf>,
}

impl UnrecognizedFiles {
    fn add(&mut self, path: &Path) {
        self.count += 1;
        let at = self.examples.partition_point(|known| known.as_path() <= path);
        if at < EXAMPLES_MAX {
            self.examples.insert(at, path.to_owned());
            self.examples.truncate(EXAMPLES_MAX);
        }
    }
}

/// The maximum number of examples.
const EXAMPLES_MAX: usize = 5;

/// How often the observer receives the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Passes the pages of all sources to `each`, in any order; those of one source are consecutive.
pub fn pages(
    request: &UsageRequest<'_>,
    observer: &mut dyn RunObserver,
    each: &mut dyn FnMut(SourcePage),
) -> Result<UsageRunReport, Error> {
    let mut report = UsageRunReport::default();
    let catalogue = match request.index {
        UseIndex::Yes => request.store.catalogue().ok(),
        UseIndex::No => None,
    };
    let Surveyed { mut jobs, known, pages, archive } = survey(request, catalogue.as_ref(), &mut report)?;
    let paths = jobs.iter().map(UsageJob::path).chain(known.iter().map(IndexedSource::path));
    let journals = Journals::among(paths);
    let mut give = |page: SourcePage| each(journals.assign(page));
    deliver_indexed(known, &pages, &mut give, &mut jobs, &mut report);
    drop(pages);
    // The largest first, so that no thread ends long after the others.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.size()));
    read_all(request, &jobs, archive.as_ref(), observer, &mut give, &mut report);
    Ok(report)
}

struct Surveyed {
    jobs: Vec<UsageJob>,
    known: Vec<IndexedSource>,
    pages: LedgerPages,
    /// The archive, if it is needed.
    archive: Option<Archive>,
}

/// The files that may be sources, and warnings about inaccessible folders.
fn discover_files(request: &UsageRequest<'_>) -> (Vec<FoundFile>, Vec<Warning>) {
    let mut found = Vec::new();
    let places = request.places.map(|places| places.clone().with_registry(request.store.registry()));
    let warnings = places.map(|places| discover(&places, &mut |file: FoundFile| found.push(file)));
    (found, warnings.unwrap_or_default())
}

/// The files of the store's sessions that exist, but are in none of the places: the index was built from another folder. They are
/// read even if the pages of the index are not used.
fn known_elsewhere(
    found: &[FoundFile],
    known: &HashMap<PathBuf, KnownFile>,
    request: &UsageRequest<'_>,
) -> Result<Vec<FoundFile>, Error> {
    let stamps = match request.index {
        UseIndex::Yes => None,
        UseIndex::No => request.store.catalogue().ok().map(|catalogue| catalogue.stamps()).transpose()?,
    };
    // A folder may be reached by several paths.
    let found: HashSet<FileId> = found.iter().map(|file| file.stat.id).collect();
    let known = stamps.as_ref().unwrap_or(known).iter().filter(|(_, known)| known.gone == Gone::There);
    let is_below = |path: &Path| request.below.is_empty() || request.below.iter().any(|below| path.starts_with(below));
    let paths = known.map(|(path, _)| path.as_path()).filter(|path| is_below(path));
    let at = |path| FoundFile::at(path, request.store.registry());
    Ok(paths.filter_map(at).filter(|file| !found.contains(&file.stat.id)).collect())
}

/// The archive, and its copies of the named files that are gone; `None` if none is gone.
fn archived_files(request: &UsageRequest<'_>) -> Result<Option<(Archive, Vec<CopyInfo>)>, Error> {
    let gone: HashSet<&Path> = request.files.iter().map(PathBuf::as_path).filter(|path| is_missing(path)).collect();
    let folder = request.store.archive();
    if gone.is_empty() || !folder.exists() {
        return Ok(None);
    }
    let archive = Archive::open(Arc::new(Disk), &folder)?;
    let copies = archive.copies().filter(|copy| gone.contains(copy.path.as_path())).collect();
    Ok(Some((archive, copies)))
}

/// Decides what must be read and what the index has.
fn survey(
    request: &UsageRequest<'_>,
    catalogue: Option<&Catalogue>,
    report: &mut UsageRunReport,
) -> Result<Surveyed, Error> {
    let hints_of = |path: &Path| registry_path_hints(request.store.registry(), path);
    // The two are independent, and both take time.
    let ((found, warnings), snapshot) = std::thread::scope(|scope| {
        let walking = scope.spawn(|| discover_files(request));
        let snapshot = catalogue.map(IndexSnapshot::of).transpose();
        (walking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), snapshot)
    });
    let IndexSnapshot { mut known, unrecognized, databases, paged, pages } = snapshot?.unwrap_or_default();
    report.warnings.extend(warnings);
    let (mut jobs, mut found_known) = (Vec::new(), Vec::new());
    for path in request.files {
        // A file that is gone may be in the archive.
        let Ok(stat) = Stat::of(path) else { continue };
        let (size, changed) = (stat.size, stat.modified_ns);
        jobs.push(UsageJob::File { path: path.clone(), size, changed, hints: hints_of(path), grown: None });
    }
    let named = archived_files(request)?;
    if let Some((archive, copies)) = named {
        jobs.extend(copies.into_iter().map(UsageJob::Archived));
        if request.places.is_none() {
            return Ok(Surveyed { jobs, known: found_known, pages, archive: Some(archive) });
        }
    }
    if request.places.is_none() {
        return Ok(Surveyed { jobs, known: found_known, pages, archive: None });
    }
    let found = databases::expanded(found, &databases, &known, &mut report.warnings);
    let elsewhere = known_elsewhere(&found, &known, request)?;
    for FoundFile { path, stat, hints } in found.into_iter().chain(elsewhere) {
        // A folder that the user names may be part of an agent's home.
        let hints = if hints.session.is_some() { hints } else { hints_of(&path) };
        let stamp = FileStamp::from(stat);
        let is_known = |known: &KnownFile| known.gone == Gone::There && is_unchanged(&known.stamp, known.seen, &stamp);
        let (size, changed) = (stamp.size, stamp.changed);
        match known.remove(&path) {
            Some(known) if is_known(&known) => {
                let source = paged.get(&path).cloned();
                let job = UsageJob::File { path, size, changed, hints, grown: None };
                match source {
                    Some(source) if !source.is_outgrown => found_known.push(IndexedSource::There { job, source }),
                    Some(_) | None => jobs.push(job),
                }
            }
            None if unrecognized.get(&path) == Some(&(stamp.size, stamp.changed)) => {
                if stamp.size > 0 {
                    report.unrecognized.add(&path);
                }
            }
            before => {
                let source = || paged.get(&path).filter(|source| !source.is_outgrown);
                let there = before.filter(|known| known.gone == Gone::There).zip(catalogue).zip(source());
                let large = there.map_or(LargeFile::Unknown, |((known, catalogue), source)| {
                    LargeFile::of(catalogue, &known, &path, &stamp, source, &pages)
                });
                let job = |grown| UsageJob::File { path: path.clone(), size, changed, hints, grown };
                match (large, source()) {
                    (LargeFile::Same, Some(source)) => {
                        let source = source.clone();
                        found_known.push(IndexedSource::There { job: job(None), source });
                    }
                    (LargeFile::Grown(grown), _) => jobs.push(job(Some(grown))),
                    (LargeFile::Same | LargeFile::Unknown, _) => jobs.push(job(None)),
                }
            }
        }
    }
    let is_below = |path: &Path| request.below.is_empty() || request.below.iter().any(|below| path.starts_with(below));
    let is_meant = |path: &Path| is_below(path) && is_missing(path);
    let mut is_paged = true;
    for (path, known) in known.into_iter().filter(|(path, _)| is_meant(path)) {
        match paged.get(&path).cloned() {
            Some(source) if !source.is_outgrown => {
                found_known.push(IndexedSource::Gone { path, changed: known.stamp.changed, source });
            }
            // It is read from the archive.
            Some(_) | None => is_paged = false,
        }
    }
    // A complete index includes everything in the archive, and excludes forgotten sessions.
    let is_complete = catalogue.map(Catalogue::is_complete).transpose()?.unwrap_or(false) && is_paged;
    let archive = match request.store.archive() {
        folder if folder.exists() && !(is_complete && jobs.is_empty()) => Some(Archive::open(Arc::new(Disk), &folder)?),
        _ => None,
    };
    let is_covered = |paged: &SourcePages| !paged.is_outgrown;
    let is_gone = |copy: &CopyInfo| !paged.get(&copy.path).is_some_and(is_covered) && is_meant(&copy.path);
    jobs.extend(archive.iter().flat_map(Archive::copies).filter(is_gone).map(UsageJob::Archived));
    Ok(Surveyed { jobs, known: found_known, pages, archive })
}

/// Reads files on several threads.
fn read_all(
    request: &UsageRequest<'_>,
    jobs: &[UsageJob],
    archive: Option<&Archive>,
    observer: &mut dyn RunObserver,
    give: &mut dyn FnMut(SourcePage),
    report: &mut UsageRunReport,
) {
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let mut progress = IndexProgress {
        files: jobs.len() as u64,
        bytes: jobs.iter().map(UsageJob::size).sum(),
        ..IndexProgress::default()
    };
    let work = |sender: SyncSender<(usize, Result<JobOutcome, Error>)>| {
        let mut hand = ThreadState::new(request.store.registry());
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { break };
            // If the receiver is gone, nothing is left to do.
            if sender.send((at, job.read(request.calls, archive, &mut hand, &done))).is_err() {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        let (sender, read) = sync_channel(QUEUE);
        let work = &work;
        for _ in 0..request.threads.clamp(1, jobs.len().max(1)) {
            let sender = sender.clone();
            scope.spawn(move || work(sender));
        }
        drop(sender);
        loop {
            match read.recv_timeout(PROGRESS_INTERVAL) {
                Ok((at, counted)) => {
                    if let Some(job) = jobs.get(at) {
                        job.deliver(counted, give, report);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            progress.bytes_done = done.load(Ordering::Relaxed);
            progress.files_done = (next.load(Ordering::Relaxed) as u64).min(progress.files);
            observer.progress(&progress);
            if observer.is_stopped() {
                next.store(jobs.len(), Ordering::Relaxed);
                report.stopped = true;
            }
        }
    });
}

/// How many finished sources may wait to be delivered.
const QUEUE: usize = 64;
