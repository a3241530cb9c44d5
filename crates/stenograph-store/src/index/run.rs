//! One run: find what changed, read it, commit in batches. It may be killed at any instant; the next one goes on from the last
//! batch that counts. What a single source needs is in `source.rs`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::archive_worker::{ArchiveWorker, Kept};
use super::catalogue::{Catalogue, Gone, SessionId, SourceId, SourceRow, Stamp, Stamped, Unknown};
use super::change;
use super::passed::{PassedOver, PassedOverReason};
use super::seal::Seal;
use super::text::{TextIndex, TextWriter};
use super::{Behind, Check, Made, Pair, Store};
use crate::discover::{Found, Named, Places, Stat, discover_all, place_of};
use crate::tail::Warning;
use crate::{Error, Problem};

/// What is to be indexed, and how.
#[derive(Debug)]
pub struct Plan<'p> {
    /// Where to look.
    pub places: &'p Places,
    /// How much of it.
    pub scope: Scope,
    /// Whether sources are copied into the archive.
    pub keep: Keep,
    /// How many bytes of memory may be used.
    pub memory: usize,
    /// How many threads may work.
    pub threads: usize,
    /// The moment, in nanoseconds since 1970.
    pub now: i64,
}

/// How much is looked at.
#[derive(Clone, Debug)]
pub enum Scope {
    /// Everything.
    All,
    /// These known files; if one of them is not known, everything.
    Files(Vec<PathBuf>),
}

/// Whether sources are copied into the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They are.
    Yes,
    /// They are not.
    No,
}

/// How far a run is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Files that have to be read.
    pub files: u64,
    /// Files that were read.
    pub files_done: u64,
    /// Bytes that have to be read.
    pub bytes: u64,
    /// Bytes that were read.
    pub bytes_done: u64,
    /// The file at hand.
    pub path: PathBuf,
}

/// Who wants to know how far a run is, and may end it.
pub trait Watch {
    /// Takes notice.
    fn progress(&mut self, progress: &Progress);
    /// Whether to stop as soon as what is done is safe.
    fn is_stopped(&self) -> bool;
    /// Another process writes to the index, and the run waits until it has ended.
    fn waits_for(&mut self, _holder: Option<u32>) {}
}

/// Nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Watch for Nobody {
    fn progress(&mut self, _progress: &Progress) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

/// What a run did.
#[derive(Debug, Default)]
pub struct Report {
    /// Files that may be sources.
    pub found: u64,
    /// Sources as they were.
    pub unchanged: u64,
    /// New sources.
    pub added: u64,
    /// Sources with something new at their end.
    pub grown: u64,
    /// Sources that were read anew.
    pub rewritten: u64,
    /// Sources that stand somewhere else now.
    pub moved: u64,
    /// Copies of other sources.
    pub copies: u64,
    /// Sources that are not there any more, since the last run.
    pub gone: u64,
    /// Files that are no transcripts.
    pub strangers: u64,
    /// Files whose session was forgotten on purpose.
    pub forgotten: u64,
    /// Forgotten sessions that have grown since, or their files where they have no name.
    pub continued: Vec<String>,
    /// Bytes that were read.
    pub bytes: u64,
    /// Events that were indexed.
    pub events: u64,
    /// Bytes that were copied into the archive.
    pub kept: u64,
    /// Types of records that nobody understands and that were not seen before.
    pub unknown: Vec<Unknown>,
    /// Files that stand where sources of a format are found and are not of any known format.
    pub unrecognised: Vec<(PathBuf, String)>,
    /// Files that were passed over: no transcripts by their names, or by what they say.
    pub passed_over: PassedOver,
    /// What could not be read, and anything else worth a word.
    pub warnings: Vec<Warning>,
    /// Why the index was made, where it was.
    pub made: Option<Made>,
    /// Whether somebody ended the run before everything was read.
    pub stopped: bool,
}

/// A file to be read.
#[derive(Debug)]
pub(super) struct Job {
    pub path: PathBuf,
    pub stamp: Stamp,
    pub named: Named,
    pub known: Option<SourceId>,
}

/// How many bytes are read between two commits: little enough that a killed run has not lost much, and enough that commits cost
/// nothing.
const BATCH_SIZE: u64 = 1 << 30;

/// How many files are taken in between two commits: what is held until a commit must not grow with their number.
const BATCH_FILES: u64 = 8 << 10;

/// Brings the index up to date. One that turns out to be damaged, before or during the run, is rebuilt once.
pub fn run(store: &Store, plan: &Plan<'_>, watch: &mut dyn Watch) -> Result<Report, Error> {
    let Some(_lock) = store.lock(watch)? else { return Ok(Report { stopped: true, ..Report::default() }) };
    let now_s = plan.now / 1_000_000_000;
    let check = match plan.scope {
        Scope::All => Check::Full { now_s },
        Scope::Files(_) => Check::Quick,
    };
    let mut before = Seal::read(&store.index());
    let mut done = match store.open(check) {
        Ok(Ok(pair)) => attempt(store, plan, watch, pair),
        Ok(Err(reason)) => attempt(store, plan, watch, store.rebuild(reason)?),
        Err(error) => Err(error),
    };
    if let Err(error) = &done
        && store.is_damage(error)
    {
        let pair = store.rebuild(Made::Again(error.to_string()))?;
        done = attempt(store, plan, watch, pair);
    }
    let (report, commits) = done?;
    before.take_if(|_| report.made.is_some());
    store.seal(before.as_ref(), commits, now_s, check);
    Ok(report)
}

/// One try on an index that is open. Gives what was done, and how many commits the catalogue has.
fn attempt(store: &Store, plan: &Plan<'_>, watch: &mut dyn Watch, pair: Pair) -> Result<(Report, u64), Error> {
    let Pair { catalogue, text, behind, made } = pair;
    let mut report = Report { made, ..Report::default() };
    let before = catalogue.batch_number()?;
    // A damaged archive is told before anything that it should have been asked about.
    let archive = Kept::open(store)?;
    if plan.keep == Keep::Yes {
        archive.reconcile(&catalogue, &mut report.warnings)?;
    }
    let (mut jobs, gone) = survey(&catalogue, plan, &mut report)?;
    // What is new is wanted first, should somebody end the run early.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.stamp.changed));
    let mut run = Run::new(store, plan, &catalogue, &text, behind)?;
    run.archive = Some(archive);
    if behind == Behind::Yes {
        run.open_writer()?;
    }
    let work = run.work(&jobs, &gone, &mut report, watch);
    if work.is_err() {
        // What was not committed is read again next time.
        let _ = catalogue.roll_back();
    }
    work?;
    run.purge()?;
    if let Some(writer) = run.writer.take() {
        writer.close();
    }
    report.unknown = catalogue.unknown(before)?;
    report.unrecognised = catalogue.unrecognised()?;
    Ok((report, catalogue.commits()?))
}

/// What has to be read, and which sources are not there any more.
fn survey(catalogue: &Catalogue, plan: &Plan<'_>, report: &mut Report) -> Result<(Vec<Job>, Vec<SourceId>), Error> {
    let mut known = catalogue.stamps()?;
    if let Scope::Files(paths) = &plan.scope
        && paths.iter().all(|path| known.contains_key(path))
    {
        return Ok(survey_files(paths, &known, plan, report));
    }
    let strangers = catalogue.strangers()?;
    let mut jobs = Vec::new();
    let mut ignored = PassedOver::default();
    let warnings =
        discover_all(plan.places, &mut |path| ignored.add(path, PassedOverReason::Ending), &mut |found: Found| {
            report.found += 1;
            let stamp = Stamp::from(found.stat);
            match known.remove(&found.path) {
                Some(known) if is_settled(&known, &stamp, plan.keep) => report.unchanged += 1,
                Some(Stamped { id, .. }) => {
                    jobs.push(Job { path: found.path, stamp, named: found.named, known: Some(id) });
                }
                None if strangers.get(&found.path) == Some(&(stamp.size, stamp.changed)) => {
                    report.strangers += 1;
                    report.passed_over.add(&found.path, PassedOverReason::Format);
                }
                None => jobs.push(Job { path: found.path, stamp, named: found.named, known: None }),
            }
        });
    report.warnings.extend(warnings);
    report.passed_over.append(ignored);
    let missing = known.into_iter().filter(|(path, known)| known.gone == Gone::There && is_missing(path));
    let gone = missing.map(|(_, known)| known.id).collect();
    Ok((jobs, gone))
}

/// Whether a known file needs no look.
fn is_settled(known: &Stamped, stamp: &Stamp, keep: Keep) -> bool {
    known.gone == Gone::There
        && change::is_unchanged(&known.stamp, known.seen, stamp)
        && (known.is_kept || keep == Keep::No)
}

fn survey_files(
    paths: &[PathBuf],
    known: &HashMap<PathBuf, Stamped>,
    plan: &Plan<'_>,
    report: &mut Report,
) -> (Vec<Job>, Vec<SourceId>) {
    let (mut jobs, mut gone) = (Vec::new(), Vec::new());
    for path in paths {
        let Some(known) = known.get(path) else { continue };
        report.found += 1;
        // What is neither a file nor missing may be a pipe, and reading that may never end.
        match Stat::of(path).map(Stamp::from) {
            Ok(_) if !path.is_dir() && !path.is_file() => {}
            _ if is_missing(path) => gone.extend((known.gone == Gone::There).then_some(known.id)),
            Ok(stamp) if is_settled(known, &stamp, plan.keep) => report.unchanged += 1,
            Ok(stamp) => jobs.push(Job { path: path.clone(), stamp, named: place_of(path), known: Some(known.id) }),
            Err(_) => {}
        }
    }
    (jobs, gone)
}

/// Whether a file is not there. A folder that may not be looked into is no proof; one that has taken its place is.
pub(crate) fn is_missing(path: &Path) -> bool {
    use std::io::ErrorKind;
    match path.symlink_metadata() {
        Ok(metadata) => metadata.is_dir(),
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

impl From<Stat> for Stamp {
    fn from(stat: Stat) -> Stamp {
        Stamp { device: stat.id.device, inode: stat.id.inode, size: stat.size, changed: stat.modified_ns }
    }
}

/// A run at work.
pub(super) struct Run<'r> {
    pub catalogue: &'r Catalogue,
    text: &'r TextIndex,
    pub plan: &'r Plan<'r>,
    writer: Option<TextWriter>,
    pub keeper: ArchiveWorker,
    /// The number of the batch at hand.
    pub batch: u64,
    /// Bytes read since the last commit.
    pub read: u64,
    /// Lots whose documents this batch deletes: those that were dead before it began, so that who still sees them finds them.
    dead: Vec<u64>,
    behind: Behind,
    /// The source that is read, if it is a known one.
    pub reading: Option<SourceId>,
    /// Copies of what was read anew, which have to be read now.
    pub parted: Vec<Job>,
    /// Sessions whose sources have changed, so that it has to be decided again which of them is read.
    pub unresolved: HashSet<SessionId>,
    /// The first keys of sources that were placed, so that it has to be decided which of the sessions that begin so is the original.
    pub unordered: HashSet<u64>,
    /// Copies of what was read anew that only the archive has.
    pub parted_gone: Vec<SourceId>,
    /// The checksum of all bytes up to the last one that was read of the source at hand, where it was read to its end.
    pub content_read: Option<u32>,
    /// Sources that changed while they were read, and are read once more in this run.
    pub read_again: HashSet<SourceId>,
    /// The keys of what the source at hand says, where it replaces an earlier version of itself.
    pub said: Option<HashSet<u64>>,
    /// The archive as it was, opened when it is first asked.
    pub archive: Option<Kept>,
    /// Which project a working folder is.
    pub projects: HashMap<String, i64>,
    store: &'r Store,
}

impl<'r> Run<'r> {
    fn new(
        store: &'r Store,
        plan: &'r Plan<'r>,
        catalogue: &'r Catalogue,
        text: &'r TextIndex,
        behind: Behind,
    ) -> Result<Run<'r>, Error> {
        Ok(Run {
            catalogue,
            text,
            plan,
            writer: None,
            keeper: ArchiveWorker::new(store, plan),
            batch: catalogue.batch_number()? + 1,
            read: 0,
            dead: catalogue.dead_lots()?,
            behind,
            reading: None,
            parted: Vec::new(),
            unresolved: HashSet::new(),
            unordered: HashSet::new(),
            parted_gone: Vec::new(),
            content_read: None,
            read_again: HashSet::new(),
            said: None,
            archive: None,
            projects: HashMap::new(),
            store,
        })
    }

    /// The writer of the text, opened when it is first needed. Whoever takes it gives it back.
    pub(super) fn take_writer(&mut self) -> Result<TextWriter, Error> {
        match self.writer.take() {
            Some(writer) => Ok(writer),
            None => {
                let unsealed = Seal::remove(&self.store.index());
                unsealed.map_err(|error| Error::at(&self.store.index(), Problem::Unwritable, error))?;
                // What is left is for reading, packing and the database.
                let writer = self.text.writer(self.plan.memory * 7 / 20, self.plan.threads)?;
                self.dead.iter().for_each(|lot| writer.delete_lot(*lot));
                if self.behind == Behind::Yes {
                    writer.delete_after(self.batch - 1)?;
                }
                Ok(writer)
            }
        }
    }

    /// Has the writer ready.
    fn open_writer(&mut self) -> Result<(), Error> {
        let writer = self.take_writer()?;
        self.give_writer(writer);
        Ok(())
    }

    /// Gives the writer back.
    pub(super) fn give_writer(&mut self, writer: TextWriter) {
        self.writer = Some(writer);
    }

    /// The archive as it was when the run began.
    pub(super) fn archive(&mut self) -> Result<&Kept, Error> {
        match &mut self.archive {
            Some(archive) => Ok(archive),
            empty => Ok(empty.insert(Kept::open(self.store)?)),
        }
    }

    fn work(
        &mut self,
        jobs: &[Job],
        gone: &[SourceId],
        report: &mut Report,
        watch: &mut dyn Watch,
    ) -> Result<(), Error> {
        let bytes = jobs.iter().map(|job| job.stamp.size).sum();
        let mut progress = Progress { files: jobs.len() as u64, bytes, ..Progress::default() };
        self.catalogue.begin()?;
        for id in gone {
            if let Some(row) = self.catalogue.source(*id)? {
                self.catalogue.put(&SourceRow { gone: Gone::Gone, ..row })?;
                report.gone += 1;
                self.look_at_copies(*id)?;
            }
        }
        // A copy takes the place of its original only after every new file was asked whether it is the original, moved.
        let parted: HashSet<SourceId> = self.parted.iter().filter_map(|job| job.known).collect();
        for job in jobs.iter().filter(|job| !job.known.is_some_and(|known| parted.contains(&known))) {
            progress.path.clone_from(&job.path);
            watch.progress(&progress);
            if watch.is_stopped() {
                report.stopped = true;
                break;
            }
            self.take_in(job, report, &mut progress, watch)?;
            progress.files_done += 1;
            if self.read >= BATCH_SIZE || progress.files_done.is_multiple_of(BATCH_FILES) {
                self.commit()?;
                self.catalogue.begin()?;
            }
        }
        watch.progress(&progress);
        while !report.stopped
            && let Some(job) = self.parted.pop()
        {
            self.take_in(&job, report, &mut progress, watch)?;
        }
        while !report.stopped
            && let Some(id) = self.parted_gone.pop()
        {
            self.take_in_parted(id, report)?;
        }
        if !report.stopped && !self.catalogue.is_complete()? {
            self.take_in_kept(report)?;
            self.take_in_versions(report)?;
            self.catalogue.set_complete()?;
        }
        self.commit()?;
        report.kept = self.keeper.added();
        report.warnings.append(&mut self.keeper.warnings);
        Ok(())
    }

    /// Has the copies of a source looked at that is gone: one of them stands in its place now.
    fn look_at_copies(&mut self, original: SourceId) -> Result<(), Error> {
        for copy in self.catalogue.copies_of(original)? {
            if let Ok(stat) = Stat::of(&copy.path) {
                let (stamp, named) = (Stamp::from(stat), place_of(&copy.path));
                self.parted.push(Job { path: copy.path, stamp, named, known: Some(copy.id) });
            }
        }
        Ok(())
    }

    /// Makes everything so far count: first what is kept, then the text, then what says so.
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        self.resolve_sessions()?;
        for key in std::mem::take(&mut self.unordered) {
            self.catalogue.put_below_oldest(key)?;
        }
        for (id, name, length) in self.keeper.commit()? {
            self.catalogue.set_kept(id, &name, length)?;
        }
        // What is deleted by the next number must be dead in everything of this one, so a catalogue that buries needs a new number.
        if self.writer.is_none() && !self.catalogue.dead_lots()?.is_empty() {
            self.open_writer()?;
        }
        let Some(writer) = &mut self.writer else {
            // The text has nothing to say, so the number stays.
            return self.catalogue.commit(self.batch - 1);
        };
        writer.commit(self.batch)?;
        self.behind = Behind::No;
        self.catalogue.buried(&self.dead)?;
        self.catalogue.commit(self.batch)?;
        self.batch += 1;
        self.read = 0;
        // A merge maps what it takes: the more memory, the larger it may be.
        let documents_max = u32::try_from(self.plan.memory / (4 << 10)).unwrap_or(u32::MAX);
        writer.tidy(documents_max)?;
        self.dead = self.catalogue.dead_lots()?;
        self.dead.iter().for_each(|lot| writer.delete_lot(*lot));
        Ok(())
    }

    /// Deletes what the last batch put aside, so that nothing waits for a next one.
    fn purge(&mut self) -> Result<(), Error> {
        if self.dead.is_empty() || self.writer.is_none() {
            return Ok(());
        }
        self.catalogue.begin()?;
        self.commit()
    }
}

/// Takes sources out of the index, with all that is known of them. What the archive has is not touched.
pub fn remove(store: &Store, sources: &[SourceId], plan: &Plan<'_>) -> Result<(), Error> {
    let Some(_lock) = store.lock(&mut Nobody)? else { return Ok(()) };
    let before = Seal::read(&store.index());
    let Ok(pair) = store.open(Check::Quick)? else {
        return Err(Error::about(&store.index(), Problem::IndexDamaged));
    };
    let commits = remove_from(store, sources, plan, &pair)?;
    drop(pair);
    store.seal(before.as_ref(), commits, plan.now / 1_000_000_000, Check::Quick);
    Ok(())
}

fn remove_from(store: &Store, sources: &[SourceId], plan: &Plan<'_>, pair: &Pair) -> Result<u64, Error> {
    let Pair { catalogue, text, behind, .. } = pair;
    let mut run = Run::new(store, plan, catalogue, text, *behind)?;
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
    let commits = catalogue.commits();
    catalogue.compact()?;
    commits
}
