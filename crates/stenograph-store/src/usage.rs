//! The pages of the ledger of all sources there are: out of the index where that knows them, else read from the files, and what is gone
//! from the archive. What is counted, and how, is in [`stenograph::ledger`].

mod grown;
mod job;
mod known;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use stenograph::ledger::{CallDetail, SourceUsage};

use crate::Error;
use crate::archive::{Archive, CopyInfo};
use crate::discover::{Found, Named, Places, Stat, discover};
use crate::files::Disk;
use crate::index::catalogue::{Catalogue, Gone, Paged, Pages, Stamp, Stamped};
use crate::index::{Progress, Store, Watch, is_missing, is_unchanged};
use crate::tail::Warning;
use grown::Large;
use job::{Hand, Job, Outcome};
use known::{Known, Recalled, recall_all};

pub(crate) use job::said;

/// What is asked.
#[derive(Debug)]
pub struct Asked<'a> {
    /// Where to look; nowhere but in `files` if there is none.
    pub places: Option<&'a Places>,
    /// Files that are read whatever the index knows.
    pub files: &'a [PathBuf],
    /// Of what is gone, only what stood below one of these folders; all of it if there is none.
    pub below: &'a [PathBuf],
    /// The store.
    pub store: &'a Store,
    /// Whether the index may be asked.
    pub index: UseIndex,
    /// How closely calls are looked at.
    pub calls: CallDetail,
    /// How many threads may work.
    pub threads: usize,
}

/// Whether the index may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseIndex {
    /// Where it knows a file as it is.
    Yes,
    /// Everything is read from files and archive.
    No,
}

/// A page, and whose it is.
#[derive(Debug)]
pub struct Told {
    /// The source.
    pub path: PathBuf,
    /// The session that the place of the source names.
    pub session: Option<String>,
    /// When the source was last written, in nanoseconds since 1970.
    pub written: i64,
    /// The page.
    pub page: SourceUsage,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Report {
    /// Sources that were read.
    pub read: u64,
    /// Sources that the index knew.
    pub known: u64,
    /// Sources that are gone, and kept.
    pub kept: u64,
    /// Files whose session was forgotten on purpose; they are not counted.
    pub forgotten: u64,
    /// Sources that are of no format that is read.
    pub strangers: Strangers,
    /// What could not be read.
    pub warnings: Vec<Warning>,
    /// Whether somebody ended it early.
    pub stopped: bool,
}

/// Files that are of no format that is read.
#[derive(Debug, Default)]
pub struct Strangers {
    /// How many.
    pub count: u64,
    /// The first of them by their paths.
    pub examples: Vec<PathBuf>,
}

impl Strangers {
    fn add(&mut self, path: &Path) {
        self.count += 1;
        let at = self.examples.partition_point(|known| known.as_path() <= path);
        if at < EXAMPLES_MAX {
            self.examples.insert(at, path.to_owned());
            self.examples.truncate(EXAMPLES_MAX);
        }
    }
}

/// How many files are given as examples.
const EXAMPLES_MAX: usize = 5;

/// The journal of a recording that fills a folder: it tells of the calls whose sum the document beside it states.
const JOURNAL: &str = "journal.steno";

/// How often whoever watches is told.
const BEAT: Duration = Duration::from_millis(50);

/// Gives the pages of all sources, in any order; those of one source follow each other.
pub fn pages(asked: &Asked<'_>, watch: &mut dyn Watch, each: &mut dyn FnMut(Told)) -> Result<Report, Error> {
    let mut report = Report::default();
    let catalogue = match asked.index {
        UseIndex::Yes => asked.store.catalogue().ok(),
        UseIndex::No => None,
    };
    let Surveyed { mut jobs, known, pages, archive } = survey(asked, catalogue.as_ref(), &mut report)?;
    let paths = jobs.iter().map(Job::path).chain(known.iter().map(Known::path));
    let journals: HashSet<PathBuf> = paths.filter(|path| path.ends_with(JOURNAL)).map(Path::to_owned).collect();
    let mut give = |told: Told| {
        let has_journal = !told.path.ends_with(JOURNAL) && journals.contains(&told.path.with_file_name(JOURNAL));
        each(if has_journal { Told { page: told.page.without_runs(), ..told } } else { told });
    };
    recall_all(known, &pages, &mut give, &mut jobs, &mut report);
    drop(pages);
    // The largest first, so that nobody waits for one at the end.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.size()));
    read_all(asked, &jobs, archive.as_ref(), watch, &mut give, &mut report);
    Ok(report)
}

struct Surveyed {
    jobs: Vec<Job>,
    known: Vec<Known>,
    pages: Pages,
    /// The archive, where it is needed.
    archive: Option<Archive>,
}

/// The files that may be sources, and what could not be looked into.
fn walked(places: Option<&Places>) -> (Vec<Found>, Vec<Warning>) {
    let mut found = Vec::new();
    let warnings = places.map(|places| discover(places, &mut |file: Found| found.push(file)));
    (found, warnings.unwrap_or_default())
}

/// What has to be read, and what the index knows.
fn survey(asked: &Asked<'_>, catalogue: Option<&Catalogue>, report: &mut Report) -> Result<Surveyed, Error> {
    // Neither needs the other, and both take their time.
    let ((found, warnings), recalled) = std::thread::scope(|scope| {
        let walking = scope.spawn(|| walked(asked.places));
        let recalled = catalogue.map(Recalled::of).transpose();
        (walking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), recalled)
    });
    let Recalled { mut known, strangers, paged, pages } = recalled?.unwrap_or_default();
    report.warnings.extend(warnings);
    let (mut jobs, mut found_known) = (Vec::new(), Vec::new());
    for path in asked.files {
        let (size, changed) = Stat::of(path).map_or((0, 0), |stat| (stat.size, stat.modified_ns));
        jobs.push(Job::File { path: path.clone(), size, changed, named: Named::default(), grown: None });
    }
    if asked.places.is_none() {
        return Ok(Surveyed { jobs, known: found_known, pages, archive: None });
    }
    for Found { path, stat, named } in found {
        let stamp = Stamp::from(stat);
        let is_known = |known: &Stamped| known.gone == Gone::There && is_unchanged(&known.stamp, known.seen, &stamp);
        let (size, changed) = (stamp.size, stamp.changed);
        match known.remove(&path) {
            Some(known) if is_known(&known) => {
                let source = paged.get(&path).cloned();
                let job = Job::File { path, size, changed, named, grown: None };
                match source {
                    Some(source) if !source.is_outgrown => found_known.push(Known::There { job, source }),
                    Some(_) | None => jobs.push(job),
                }
            }
            None if strangers.get(&path) == Some(&(stamp.size, stamp.changed)) => report.strangers.add(&path),
            before => {
                let source = || paged.get(&path).filter(|source| !source.is_outgrown);
                let there = before.filter(|known| known.gone == Gone::There).zip(catalogue).zip(source());
                let large = there.map_or(Large::Unknown, |((known, catalogue), source)| {
                    Large::of(catalogue, &known, &path, &stamp, source, &pages)
                });
                let job = |grown| Job::File { path: path.clone(), size, changed, named, grown };
                match (large, source()) {
                    (Large::Same, Some(source)) => {
                        let source = source.clone();
                        found_known.push(Known::There { job: job(None), source });
                    }
                    (Large::Grown(grown), _) => jobs.push(job(Some(grown))),
                    (Large::Same | Large::Unknown, _) => jobs.push(job(None)),
                }
            }
        }
    }
    let is_below = |path: &Path| asked.below.is_empty() || asked.below.iter().any(|below| path.starts_with(below));
    let is_meant = |path: &Path| is_below(path) && is_missing(path);
    let mut is_paged = true;
    for (path, known) in known.into_iter().filter(|(path, _)| is_meant(path)) {
        match paged.get(&path).cloned() {
            Some(source) if !source.is_outgrown => {
                found_known.push(Known::Gone { path, changed: known.stamp.changed, source });
            }
            // It is read from the archive.
            Some(_) | None => is_paged = false,
        }
    }
    // An index that is complete knows all that the archive has, and what was forgotten on purpose.
    let is_complete = catalogue.map(Catalogue::is_complete).transpose()?.unwrap_or(false) && is_paged;
    let archive = match asked.store.archive() {
        folder if folder.exists() && !(is_complete && jobs.is_empty()) => Some(Archive::open(Arc::new(Disk), &folder)?),
        _ => None,
    };
    let is_told = |paged: &Paged| !paged.is_outgrown;
    let is_gone = |copy: &CopyInfo| !paged.get(&copy.path).is_some_and(is_told) && is_meant(&copy.path);
    jobs.extend(archive.iter().flat_map(Archive::copies).filter(is_gone).map(Job::Kept));
    Ok(Surveyed { jobs, known: found_known, pages, archive })
}

/// Reads files on several threads.
fn read_all(
    asked: &Asked<'_>,
    jobs: &[Job],
    archive: Option<&Archive>,
    watch: &mut dyn Watch,
    give: &mut dyn FnMut(Told),
    report: &mut Report,
) {
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let mut progress =
        Progress { files: jobs.len() as u64, bytes: jobs.iter().map(Job::size).sum(), ..Progress::default() };
    let work = |sender: SyncSender<(usize, Result<Outcome, Error>)>| {
        let mut hand = Hand::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { break };
            // Nobody listens any more when the other side has gone, and then nothing is left to do.
            if sender.send((at, job.read(asked.calls, archive, &mut hand, &done))).is_err() {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        let (sender, read) = sync_channel(QUEUE);
        let work = &work;
        for _ in 0..asked.threads.clamp(1, jobs.len().max(1)) {
            let sender = sender.clone();
            scope.spawn(move || work(sender));
        }
        drop(sender);
        loop {
            match read.recv_timeout(BEAT) {
                Ok((at, counted)) => {
                    if let Some(job) = jobs.get(at) {
                        job.hand_in(counted, give, report);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            progress.bytes_done = done.load(Ordering::Relaxed);
            progress.files_done = (next.load(Ordering::Relaxed) as u64).min(progress.files);
            watch.progress(&progress);
            if watch.is_stopped() {
                next.store(jobs.len(), Ordering::Relaxed);
                report.stopped = true;
            }
        }
    });
}

/// How many sources that were read wait to be taken in.
const QUEUE: usize = 64;
