//! The pages of the ledger of all sources there are: out of the index where that knows them, else read from the files, and what is gone
//! from the archive. What is counted, and how, is in [`stenograph::ledger`].

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use stenograph::format::{Detected, Format, Head, Want, detect_like};
use stenograph::ledger::{Calls, Counting, Page};
use stenograph::read::Reading;

use crate::archive::{Archive, CopyInfo, Label, Which};
use crate::decode::{Container, Counter, Guard, decode};
use crate::discover::{Found, Named, Places, discover};
use crate::files::Disk;
use crate::index::catalogue::{Catalogue, Gone, Paged, Pages, Stamp, Stamped};
use crate::index::{Progress, Store, Watch, is_missing, is_unchanged};
use crate::tail::Remark;
use crate::{Error, Place, Problem};

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
    pub calls: Calls,
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
    /// The page.
    pub page: Page,
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
    /// Sources that are of no format that is read.
    pub strangers: Strangers,
    /// What could not be read.
    pub remarks: Vec<Remark>,
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

/// How much is read at a time.
const CHUNK_SIZE: usize = 128 << 10;

/// The journal of a recording that fills a folder: it tells of the calls whose sum the document beside it states.
const JOURNAL: &str = "journal.steno";

/// How often whoever watches is told.
const BEAT: Duration = Duration::from_millis(50);

/// How many calls stand on one page of what is read in pieces, so that much of it can be let go as it is taken in.
const ROWS_MAX: usize = 4096;

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

/// What has to be read.
enum Job {
    File { path: PathBuf, size: u64, named: Named },
    Kept(CopyInfo),
}

struct Surveyed {
    jobs: Vec<Job>,
    known: Vec<Known>,
    pages: Pages,
    /// The archive, where it is needed.
    archive: Option<Archive>,
}

/// A source that the index knows as it is.
enum Known {
    /// It stands where it stood.
    There { job: Job, source: Paged },
    /// It is gone.
    Gone { path: PathBuf, source: Paged },
}

impl Known {
    fn path(&self) -> &Path {
        match self {
            Known::There { job, .. } => job.path(),
            Known::Gone { path, .. } => path,
        }
    }

    fn source(&self) -> &Paged {
        let (Known::There { source, .. } | Known::Gone { source, .. }) = self;
        source
    }

    /// Gives its pages. If they cannot be read in the index, it has to be read itself.
    fn hand_in(
        self,
        pages: Option<Vec<Page>>,
        give: &mut dyn FnMut(Told),
        jobs: &mut Vec<Job>,
        report: &mut Report,
    ) {
        match (pages, self) {
            (Some(pages), known) => {
                match known {
                    Known::There { .. } => report.known += 1,
                    Known::Gone { .. } => report.kept += 1,
                }
                let (path, session) = (known.path(), Some(known.source().session.clone()));
                for page in pages {
                    give(Told { path: path.to_owned(), session: session.clone(), page });
                }
            }
            (None, Known::There { job, .. }) => jobs.push(job),
            (None, Known::Gone { path, .. }) => {
                let said = "its page of the ledger is damaged; --no-index reads what is kept";
                report.remarks.push(Remark::new(&path, said));
            }
        }
    }
}

/// Gives the pages of what the index knows. Another thread unpacks them while those before are taken in; all of them at once would take
/// more memory than the ledger.
fn recall_all(
    known: Vec<Known>,
    pages: &Pages,
    give: &mut dyn FnMut(Told),
    jobs: &mut Vec<Job>,
    report: &mut Report,
) {
    std::thread::scope(|scope| {
        let (sender, unpacked) = sync_channel(QUEUE);
        scope.spawn(move || {
            for known in known {
                let found = pages.of(known.source());
                // Nobody listens any more when the other side has gone.
                if sender.send((known, found)).is_err() {
                    break;
                }
            }
        });
        for (known, found) in unpacked {
            known.hand_in(found, give, jobs, report);
        }
    });
}

/// What the index knows of all sources.
#[derive(Default)]
struct Recalled {
    known: HashMap<PathBuf, Stamped>,
    strangers: HashMap<PathBuf, (u64, i64)>,
    paged: HashMap<PathBuf, Paged>,
    pages: Pages,
}

impl Recalled {
    fn of(catalogue: &Catalogue) -> Result<Recalled, Error> {
        let (known, strangers) = (catalogue.stamps()?, catalogue.strangers()?);
        Ok(Recalled { known, strangers, paged: catalogue.paged()?, pages: catalogue.pages()? })
    }
}

/// The files that may be sources, and what could not be looked into.
fn walked(places: Option<&Places>) -> (Vec<Found>, Vec<Remark>) {
    let mut found = Vec::new();
    let remarks = places.map(|places| discover(places, &mut |file: Found| found.push(file)));
    (found, remarks.unwrap_or_default())
}

/// What has to be read, and what the index knows.
fn survey(asked: &Asked<'_>, catalogue: Option<&Catalogue>, report: &mut Report) -> Result<Surveyed, Error> {
    // Neither needs the other, and both take their time.
    let ((found, remarks), recalled) = std::thread::scope(|scope| {
        let walking = scope.spawn(|| walked(asked.places));
        let recalled = catalogue.map(Recalled::of).transpose();
        (walking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), recalled)
    });
    let Recalled { mut known, strangers, paged, pages } = recalled?.unwrap_or_default();
    report.remarks.extend(remarks);
    let (mut jobs, mut found_known) = (Vec::new(), Vec::new());
    for path in asked.files {
        let size = std::fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0);
        jobs.push(Job::File { path: path.clone(), size, named: Named::default() });
    }
    if asked.places.is_none() {
        return Ok(Surveyed { jobs, known: found_known, pages, archive: None });
    }
    for Found { path, stat, named } in found {
        let stamp = Stamp::from(stat);
        let is_known = |known: &Stamped| known.gone == Gone::There && is_unchanged(&known.stamp, known.seen, &stamp);
        match known.remove(&path) {
            Some(known) if is_known(&known) => {
                let source = paged.get(&path).cloned();
                let job = Job::File { path, size: stamp.size, named };
                match source {
                    Some(source) => found_known.push(Known::There { job, source }),
                    None => jobs.push(job),
                }
            }
            None if strangers.get(&path) == Some(&(stamp.size, stamp.changed)) => report.strangers.add(&path),
            Some(_) | None => jobs.push(Job::File { path, size: stamp.size, named }),
        }
    }
    let is_below = |path: &Path| asked.below.is_empty() || asked.below.iter().any(|below| path.starts_with(below));
    let is_meant = |path: &Path| is_below(path) && is_missing(path);
    for path in known.into_keys().filter(|path| is_meant(path)) {
        let source = paged.get(&path).cloned();
        found_known.extend(source.map(|source| Known::Gone { path, source }));
    }
    // An index that is complete knows all that the archive has, and what was forgotten on purpose.
    let is_complete = catalogue.map(Catalogue::is_complete).transpose()?.unwrap_or(false);
    let archive = match asked.store.archive() {
        folder if folder.exists() && !(is_complete && jobs.is_empty()) => Some(Archive::open(Arc::new(Disk), &folder)?),
        _ => None,
    };
    let is_gone = |copy: &CopyInfo| !paged.contains_key(&copy.path) && is_meant(&copy.path);
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
    let work = |sender: SyncSender<(usize, Result<Option<Counted>, Error>)>| {
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

/// What one thread uses again and again.
#[derive(Default)]
struct Hand {
    buffer: Vec<u8>,
    /// The format of the last file: the next one beside it is likely to be of the same.
    last: Option<&'static dyn Format>,
    /// The format that a source shows behind its first record, which is too long to show it.
    shown: Option<&'static dyn Format>,
}

impl Job {
    fn size(&self) -> u64 {
        match self {
            Job::File { size, .. } => *size,
            Job::Kept(copy) => copy.length,
        }
    }

    fn path(&self) -> &Path {
        match self {
            Job::File { path, .. } => path,
            Job::Kept(copy) => &copy.path,
        }
    }

    /// Gives what was counted.
    fn hand_in(&self, counted: Result<Option<Counted>, Error>, give: &mut dyn FnMut(Told), report: &mut Report) {
        match counted {
            Ok(Some(Counted { pages, damage })) => {
                match self {
                    Job::File { .. } => report.read += 1,
                    Job::Kept(_) => report.kept += 1,
                }
                let session = self.session();
                for page in pages {
                    give(Told { path: self.path().to_owned(), session: session.clone(), page });
                }
                report.remarks.extend(damage.map(|damage| Remark::new(self.path(), said(self.path(), &damage))));
            }
            Ok(None) => report.strangers.add(self.path()),
            Err(error) => report.remarks.push(Remark::new(self.path(), said(self.path(), &error))),
        }
    }

    /// The session that rows are of which name none.
    fn session(&self) -> Option<String> {
        match self {
            Job::Kept(copy) => copy.label.session.clone(),
            Job::File { path, named, .. } => named.session.clone().or_else(|| {
                let stem = path.file_name()?.to_string_lossy();
                stem.split('.').next().map(str::to_owned)
            }),
        }
    }

    /// Its page; nothing for what is no transcript.
    fn read(
        &self,
        calls: Calls,
        archive: Option<&Archive>,
        hand: &mut Hand,
        done: &AtomicU64,
    ) -> Result<Option<Counted>, Error> {
        match self.read_once(calls, archive, hand, done)? {
            None if hand.shown.is_some() => self.read_once(calls, archive, hand, done),
            counted => Ok(counted),
        }
    }

    /// Its page, unless it has yet to be read as what shows in the hand.
    fn read_once(
        &self,
        calls: Calls,
        archive: Option<&Archive>,
        hand: &mut Hand,
        done: &AtomicU64,
    ) -> Result<Option<Counted>, Error> {
        let place = Place::Path(self.path().to_owned());
        let unreadable = |error| Error::at(self.path(), Problem::Unreadable, error);
        hand.buffer.resize(CHUNK_SIZE, 0);
        match self {
            Job::File { path, named, .. } => {
                let mut file = File::open(path).map_err(unreadable)?;
                if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
                    return Ok(None);
                }
                let likely = named.format.or(named.like).or(hand.last);
                let is_forgotten = |format: &dyn Format, begin: &[u8]| {
                    let label = Label { format: format.info().name.to_owned(), session: named.session.clone() };
                    let begin = begin.get(..PRINT_SIZE).unwrap_or(begin);
                    archive.is_some_and(|archive| archive.is_forgotten(&label, begin))
                };
                let filled = fill(&mut file, &mut hand.buffer);
                let begin = hand.buffer.get(..filled.length).unwrap_or_default();
                if Container::of(begin) == Container::Plain {
                    return count(&mut file, filled, likely, &is_forgotten, calls, hand, done).map_err(unreadable);
                }
                let file = File::open(path).map_err(unreadable)?;
                let mut stream = decode(file, &place, &Counter::default(), Guard::USUAL)?;
                let filled = fill(&mut stream, &mut hand.buffer);
                count(&mut stream, filled, likely, &is_forgotten, calls, hand, done).map_err(unreadable)
            }
            Job::Kept(copy) => {
                let Some(archive) = archive else { return Ok(None) };
                let stream = archive.read(copy.id, Which::Last, 0)?;
                let mut stream = decode(stream, &place, &Counter::default(), Guard::USUAL)?;
                let filled = fill(&mut stream, &mut hand.buffer);
                let likely = stenograph::format::named(&copy.label.format);
                count(&mut stream, filled, likely, &|_, _| false, calls, hand, done).map_err(unreadable)
            }
        }
    }
}

/// The pages of a source, and what ended them before it did.
struct Counted {
    pages: Vec<Page>,
    damage: Option<io::Error>,
}

/// By how many bytes at its beginning a source that was forgotten is known.
const PRINT_SIZE: usize = 4 << 10;

/// Counts what a stream says, of which the first bytes are in hand.
fn count(
    stream: &mut dyn Read,
    filled: Filled,
    likely: Option<&'static dyn Format>,
    is_forgotten: &dyn Fn(&dyn Format, &[u8]) -> bool,
    calls: Calls,
    hand: &mut Hand,
    done: &AtomicU64,
) -> io::Result<Option<Counted>> {
    let Filled { length, mut damage } = filled;
    if length == 0
        && let Some(damage) = damage
    {
        return Err(damage);
    }
    let mut head = Vec::new();
    let begin = hand.buffer.get(..length).unwrap_or_default();
    if !Head::is_whole(begin) && length == CHUNK_SIZE && damage.is_none() {
        // The first line is longer than what is read at a time: the format may only show at its end.
        head.extend_from_slice(begin);
        damage = Head::read(stream, &mut head).err();
    }
    let begin = if head.is_empty() { begin } else { head.as_slice() };
    let format = hand.shown.take().or_else(|| claimed(begin, likely));
    if format.is_none() && damage.is_none() && Head::is_cut(begin) {
        hand.shown = claimed(&Head::beyond(stream)?, likely);
        return Ok(None);
    }
    let Some(format) = format.filter(|format| !is_forgotten(*format, begin)) else { return Ok(None) };
    hand.last = Some(format);
    let want = match calls {
        Calls::Numbers => Want::Usage,
        Calls::Tools => Want::All,
    };
    let mut counting = Counting::new(format.info().agent, calls);
    let mut reading = Reading::new(format, want);
    let mut pages = Vec::new();
    reading.feed(begin, &mut counting);
    done.fetch_add(begin.len() as u64, Ordering::Relaxed);
    // What stands before some damage counts.
    let damage = loop {
        if damage.is_some() {
            break damage;
        }
        match stream.read(&mut hand.buffer) {
            Ok(0) => break None,
            Ok(length) => {
                reading.feed(hand.buffer.get(..length).unwrap_or_default(), &mut counting);
                done.fetch_add(length as u64, Ordering::Relaxed);
                if counting.rows() >= ROWS_MAX && format.info().traits.pieces {
                    pages.push(counting.turn());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some(error),
        }
    };
    reading.end(&mut counting);
    pages.push(counting.page());
    Ok(Some(Counted { pages, damage }))
}

/// The format of a source that begins like this; its place settles what the beginning leaves open.
pub(crate) fn claimed(begin: &[u8], likely: Option<&'static dyn Format>) -> Option<&'static dyn Format> {
    match detect_like(begin, likely) {
        Detected::Format(format) => Some(format),
        Detected::Tie(formats) => {
            let by_place = formats.iter().find(|format| likely.is_some_and(|likely| is_same(likely, **format)));
            by_place.or(formats.first()).copied()
        }
        Detected::Unknown => None,
    }
}

fn is_same(one: &dyn Format, other: &dyn Format) -> bool {
    one.info().name == other.info().name
}

/// How much of a buffer was filled, and what ended that early.
struct Filled {
    length: usize,
    damage: Option<io::Error>,
}

/// What there is to say of an error about a file whose name is said before it.
pub(crate) fn said(path: &Path, error: &dyn std::error::Error) -> String {
    error.to_string().replace(&format!("{}: ", path.display()), "")
}

/// Fills a buffer as far as there is something.
fn fill(stream: &mut dyn Read, buffer: &mut [u8]) -> Filled {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match stream.read(rest) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Filled { length, damage: Some(error) },
        }
    }
    Filled { length, damage: None }
}
