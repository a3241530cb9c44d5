//! The recorder: events in, a durable record of them out. What it acknowledged is never lost; what a layout makes of it is in
//! `layouts/`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stenograph::format::Want;
use stenograph::model::{Body, Event, Note};
use stenograph::read::{Reading, Sink};
use stenograph::time::{Time, TimeUnit};
use stenograph::wire;

use crate::error::{Error, Problem};
use crate::files::cut_off;
use crate::journal::{self, End, Recorded};
use crate::layouts::{
    Clock, Documents, Environment, Journal, JournalKind, Layout, Loaded, LockedJournal, Opened, Stamps, StatedFields,
    Target,
};
use crate::lock::Lock;
use crate::log::Log;
use crate::recover;
use crate::tail::Warning;

/// A recording under way. It may be shared between threads: appends that come at the same time are made durable together.
///
/// A recorder that is dropped without [`Recorder::finish`] leaves what a crash leaves: everything that was acknowledged, to be
/// completed by [`crate::recover::recover`].
pub struct Recorder {
    log: Log<Vec<u8>>,
    recorded: Option<Recorded>,
    following: Option<Mutex<Following>>,
    stamper: Stamper,
    given_time: AtomicBool,
    given_id: AtomicBool,
    /// Whether the last event said that the agent stopped.
    stopped: AtomicBool,
    loaded: Loaded,
    warnings: Vec<Warning>,
    site: Environment,
    path: PathBuf,
    /// How long the authoritative file was before this recording.
    begin: u64,
    // Let go of last: what they guard is whole by then.
    _locks: Vec<Box<dyn std::any::Any + Send + Sync>>,
    _lock: Lock,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Recorder").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What came of a recording.
#[derive(Debug)]
pub struct Kept {
    /// The files that hold it.
    pub files: Vec<PathBuf>,
    /// What there is to say.
    pub warnings: Vec<Warning>,
}

impl Recorder {
    /// Begins a recording. What an earlier one left unfinished in the same place is completed first.
    pub fn open(layout: &dyn Layout, target: &Target, site: Environment) -> Result<Recorder, Error> {
        let Opened { ground, kind, documents, first, stamps, loaded, locks, warnings } = layout.open(target, &site)?;
        let LockedJournal { journal: path, tail, warnings: mut found, lock } = ground;
        found.extend(warnings);
        let log = Log::open(site.files.clone(), &path, &tail, site.durability)?;
        let begin = tail.length;
        let stamper = Stamper { clock: site.clock.clone(), last: Mutex::new(None), stamps };
        let recorded = match kind {
            JournalKind::Stream => None,
            JournalKind::Journal(header) => {
                let begin = log.length();
                log.append(&line(&header.event(stamper.now())), Vec::new(), &|_| {})?;
                Some(Recorded::new(&site.files, &path, header, (begin, log.length())))
            }
        };
        let mut following = documents.map(Following::new).transpose()?;
        if let Some(following) = &mut following {
            found.extend(following.documents.begin());
        }
        let recorder = Recorder {
            log,
            recorded,
            following: following.map(Mutex::new),
            stamper,
            given_time: AtomicBool::new(false),
            given_id: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            loaded,
            warnings: found,
            site,
            path,
            begin,
            _locks: locks,
            _lock: lock,
        };
        recorder.append_lines(&first)?;
        Ok(recorder)
    }

    /// What there is to say about what was found.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The authoritative file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is to be done with the conversation that goes on: recorded first, unless it stands there already.
    pub fn loaded(&self) -> Loaded {
        self.loaded
    }

    /// Records an event, and returns when it is as durable as was asked for.
    pub fn append(&self, event: &Event<'_>) -> Result<(), Error> {
        self.append_all(std::slice::from_ref(event))
    }

    /// Records several events at once: all of them or none.
    pub fn append_all(&self, events: &[Event<'_>]) -> Result<(), Error> {
        let Some(last) = events.last() else { return Ok(()) };
        self.append_lines(events)?;
        for event in events {
            // Most sessions say so at once, and then nothing is written here any more.
            if event.time.is_some() && !self.given_time.load(Ordering::Relaxed) {
                self.given_time.store(true, Ordering::Relaxed);
            }
            if event.id.is_some() && !self.given_id.load(Ordering::Relaxed) {
                self.given_id.store(true, Ordering::Relaxed);
            }
        }
        self.stopped.store(matches!(last.body, Body::Stop { .. }), Ordering::Relaxed);
        Ok(())
    }

    fn append_lines(&self, events: &[Event<'_>]) -> Result<(), Error> {
        let mut lines = String::with_capacity(2 << 10);
        for event in events {
            wire::write_event(&self.stamper.stamped(event), &mut lines);
            lines.push('\n');
        }
        let lines = lines.into_bytes();
        if lines.is_empty() {
            return Ok(());
        }
        match &self.following {
            None => self.log.append(&lines, Vec::new(), &|_| {}),
            Some(following) => {
                let item = lines.clone();
                self.log.append(&lines, item, &|batch| locked(following).follow(&batch))
            }
        }
    }

    /// Ends the recording: says how it ended, completes the documents, and lets go of the journal where they say it all.
    pub fn finish(self, end: &End) -> Result<Kept, Error> {
        if !self.stopped.load(Ordering::Relaxed) || *end != End::Completed {
            self.append_lines(&[end.stop(self.stamper.now())])?;
        }
        let Some(recorded) = &self.recorded else {
            self.settle_log()?;
            return Ok(Kept { files: vec![self.path.clone()], warnings: self.warnings });
        };
        let recorded = recorded.clone().ending(self.log.length(), end.clone());
        self.log.append(&line(&journal::end_line(end, self.stamper.now())), Vec::new(), &|_| {})?;
        self.settle_log()?;
        let given =
            StatedFields { time: self.given_time.load(Ordering::Relaxed), id: self.given_id.load(Ordering::Relaxed) };
        let Some(following) = self.following else {
            return Ok(Kept { files: vec![self.path.clone()], warnings: self.warnings });
        };
        let mut following = following.into_inner().unwrap_or_else(PoisonError::into_inner);
        let finished = following.documents.finish(&recorded, given)?;
        let mut warnings = self.warnings;
        warnings.extend(finished.warnings);
        let mut files = finished.written;
        match recover::kept_of(finished.journal, &recorded, &self.site) {
            Journal::Needed => {
                self.log.append(&line(&journal::settled_line(self.stamper.now())), Vec::new(), &|_| {})?;
                files.push(self.path.clone());
            }
            Journal::Unfinished => files.push(self.path.clone()),
            Journal::Redundant => {
                drop(self.log);
                recover::let_go(&recorded, &self.site)?;
            }
        }
        Ok(Kept { files, warnings })
    }

    /// Takes back a recording into which nothing was recorded: everything is as it was before.
    pub fn discard(self) -> Result<(), Error> {
        let Recorder { log, following, site, path, begin, _locks: locks, _lock: lock, .. } = self;
        drop(log);
        let files = site.files.as_ref();
        let unwritable = |error| Error::at(&path, Problem::Unwritable, error);
        if files.length(&path).map_err(unwritable)?.is_some() {
            cut_off(files, &path, begin).map_err(unwritable)?;
        }
        drop((locks, lock));
        match following {
            Some(following) => following.into_inner().unwrap_or_else(PoisonError::into_inner).documents.discard(),
            None => Ok(()),
        }
    }

    /// At the end everything is durable that anybody wanted to be.
    fn settle_log(&self) -> Result<(), Error> {
        match self.site.durability {
            crate::log::Durability::Always | crate::log::Durability::Interval(_) => self.log.sync(),
            crate::log::Durability::Never => Ok(()),
        }
    }
}

fn line(event: &Event<'_>) -> Vec<u8> {
    let mut line = wire::event(event).into_bytes();
    line.push(b'\n');
    line
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The documents, and what reads the journal's lines to them: they are told what a recovery would tell them.
struct Following {
    documents: Box<dyn Documents>,
    reading: Reading,
}

impl Following {
    fn new(documents: Box<dyn Documents>) -> Result<Following, Error> {
        Ok(Following { documents, reading: Reading::new(journal::NATIVE, Want::All) })
    }

    fn follow(&mut self, batch: &[Vec<u8>]) {
        let mut sink = Told(self.documents.as_mut());
        for lines in batch {
            self.reading.feed(lines, &mut sink);
        }
    }
}

struct Told<'d>(&'d mut dyn Documents);

impl Sink for Told<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if journal::author(event) != journal::Author::Mark {
            self.0.add(event);
        }
    }

    fn note(&mut self, _note: Note) {}
}

/// A random id, for what has its origin here.
pub fn random_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The moment on the time line. A clock that counts needs no calendar for that.
fn nanoseconds(time: &Time<'_>) -> Option<i128> {
    match time.unit {
        TimeUnit::Millis => time.text.parse::<i128>().ok()?.checked_mul(1_000_000),
        TimeUnit::Iso | TimeUnit::Seconds => Some(time.instant()?.as_nanosecond()),
    }
}

/// Stamps what arrives without a time, or without an id where one is needed.
struct Stamper {
    clock: Clock,
    /// The latest moment so far, in nanoseconds and as it was said.
    last: Mutex<Option<(i128, Time<'static>)>>,
    stamps: Stamps,
}

impl Stamper {
    /// The moment. A clock that is set back does not turn the order of events round.
    fn now(&self) -> Time<'static> {
        let now = (self.clock)();
        let Some(at) = nanoseconds(&now) else { return now };
        let mut last = locked(&self.last);
        match &*last {
            Some((latest, last)) if *latest > at => last.clone(),
            _ => {
                *last = Some((at, now.clone()));
                now
            }
        }
    }

    fn stamped<'e>(&self, event: &Event<'e>) -> Event<'e> {
        let mut event = event.clone();
        if event.time.is_none() {
            event.time = Some(self.now());
        }
        if self.stamps == Stamps::TimeAndId && event.id.is_none() {
            event.id = Some(random_id().into());
        }
        event
    }
}
