//! The recorder: takes events and writes a durable record of them. It never loses an acknowledged event; `layouts/` derives
//! documents from the record.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stenograph::format::Wanted;
use stenograph::model::{Body, Event};
use stenograph::read::{Reading, Sink};
use stenograph::time::{Time, TimeUnit};
use stenograph::wire;

use crate::error::{Error, Problem};
use crate::files::truncate_durably;
use crate::journal::{self, Recording, RecordingEnd};
use crate::layouts::{
    AddedFields, Clock, ContinuedConversation, Documents, Environment, JournalKind, JournalNeed, Layout, LockedJournal,
    OpenedRecording, StatedFields, Target,
};
use crate::lock::Lock;
use crate::log::Log;
use crate::recover;
use crate::tail::Warning;

/// A recording in progress. Threads may share it: simultaneous appends become durable together.
///
/// A recorder that is dropped without [`Recorder::finish`] leaves the same state as a crash: all acknowledged events, for
/// [`crate::recover::recover`] to complete.
pub struct Recorder {
    log: Log<Vec<u8>>,
    recorded: Option<Recording>,
    feed: Option<Mutex<DocumentFeed>>,
    stamper: Stamper,
    given_time: AtomicBool,
    given_id: AtomicBool,
    /// Whether the last event stated that the agent stopped.
    stopped: AtomicBool,
    continued: ContinuedConversation,
    warnings: Vec<Warning>,
    environment: Environment,
    path: PathBuf,
    /// The length of the authoritative file before this recording.
    begin: u64,
    // Dropped last, after the files that they guard are complete.
    _locks: Vec<Box<dyn std::any::Any + Send + Sync>>,
    _lock: Lock,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Recorder").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The result of a recording.
#[derive(Debug)]
pub struct RecordingFiles {
    /// The files that hold it.
    pub files: Vec<PathBuf>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

impl Recorder {
    /// Begins a recording. Completes an unfinished earlier one in the same place first.
    pub fn open(layout: &dyn Layout, target: &Target, environment: Environment) -> Result<Recorder, Error> {
        let OpenedRecording { journal_lock, kind, documents, first, added_fields, continued, locks, warnings } =
            layout.open(target, &environment)?;
        let LockedJournal { journal: path, tail, warnings: mut found, lock } = journal_lock;
        found.extend(warnings);
        let log = Log::open(environment.files.clone(), &path, &tail, environment.durability)?;
        let begin = tail.length;
        let stamper = Stamper { clock: environment.clock.clone(), last: Mutex::new(None), added_fields };
        let recorded = match kind {
            JournalKind::Stream => None,
            JournalKind::Journal(header) => {
                let begin = log.length();
                log.append(&line(&header.event(stamper.now())), Vec::new(), &|_| {})?;
                Some(Recording::new(&environment.files, &path, header, (begin, log.length())))
            }
        };
        let mut feed = documents.map(DocumentFeed::new).transpose()?;
        if let Some(feed) = &mut feed {
            found.extend(feed.documents.begin());
        }
        let recorder = Recorder {
            log,
            recorded,
            feed: feed.map(Mutex::new),
            stamper,
            given_time: AtomicBool::new(false),
            given_id: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            continued,
            warnings: found,
            environment,
            path,
            begin,
            _locks: locks,
            _lock: lock,
        };
        recorder.append_lines(&first)?;
        Ok(recorder)
    }

    /// Warnings from opening.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The authoritative file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How to treat the conversation that is continued: record it first, unless the documents already contain it.
    pub fn continued(&self) -> ContinuedConversation {
        self.continued
    }

    /// Records an event and returns when it is as durable as requested.
    pub fn append(&self, event: &Event<'_>) -> Result<(), Error> {
        self.append_all(std::slice::from_ref(event))
    }

    /// Records several events at once: all of them or none.
    pub fn append_all(&self, events: &[Event<'_>]) -> Result<(), Error> {
        let Some(last) = events.last() else { return Ok(()) };
        self.append_lines(events)?;
        for event in events {
            // Most sessions set these with the first event; later ones need no write.
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
        match &self.feed {
            None => self.log.append(&lines, Vec::new(), &|_| {}),
            Some(feed) => {
                let item = lines.clone();
                self.log.append(&lines, item, &|batch| locked(feed).follow(&batch))
            }
        }
    }

    /// Ends the recording: states how it ended, completes the documents, and removes the journal if they hold everything.
    pub fn finish(self, end: &RecordingEnd) -> Result<RecordingFiles, Error> {
        if !self.stopped.load(Ordering::Relaxed) || *end != RecordingEnd::Completed {
            self.append_lines(&[end.stop(self.stamper.now())])?;
        }
        let Some(recorded) = &self.recorded else {
            self.sync_log()?;
            return Ok(RecordingFiles { files: vec![self.path.clone()], warnings: self.warnings });
        };
        let recorded = recorded.clone().ended_at(self.log.length(), end.clone());
        self.log.append(&line(&journal::end_line(end, self.stamper.now())), Vec::new(), &|_| {})?;
        self.sync_log()?;
        let given =
            StatedFields { time: self.given_time.load(Ordering::Relaxed), id: self.given_id.load(Ordering::Relaxed) };
        let Some(feed) = self.feed else {
            return Ok(RecordingFiles { files: vec![self.path.clone()], warnings: self.warnings });
        };
        let mut feed = feed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let finished = feed.documents.finish(&recorded, given)?;
        let mut warnings = self.warnings;
        warnings.extend(finished.warnings);
        let mut files = finished.written;
        match recover::needed_journal(finished.journal, &recorded, &self.environment) {
            JournalNeed::Needed => {
                self.log.append(&line(&journal::completed_line(self.stamper.now())), Vec::new(), &|_| {})?;
                files.push(self.path.clone());
            }
            JournalNeed::Unfinished => files.push(self.path.clone()),
            JournalNeed::Redundant => {
                drop(self.log);
                recover::remove_recording(&recorded, &self.environment)?;
            }
        }
        Ok(RecordingFiles { files, warnings })
    }

    /// Discards a recording without events: everything is as it was before.
    pub fn discard(self) -> Result<(), Error> {
        let Recorder { log, feed, environment, path, begin, _locks: locks, _lock: lock, .. } = self;
        drop(log);
        let files = environment.files.as_ref();
        let unwritable = |error| Error::at(&path, Problem::Unwritable, error);
        if files.length(&path).map_err(unwritable)?.is_some() {
            truncate_durably(files, &path, begin).map_err(unwritable)?;
        }
        drop((locks, lock));
        match feed {
            Some(feed) => feed.into_inner().unwrap_or_else(PoisonError::into_inner).documents.discard(),
            None => Ok(()),
        }
    }

    /// Syncs the log at the end, unless the durability is `Never`.
    fn sync_log(&self) -> Result<(), Error> {
        match self.environment.durability {
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

/// The documents, and the reading that passes them the journal's lines: they receive exactly what a recovery would pass them.
struct DocumentFeed {
    documents: Box<dyn Documents>,
    reading: Reading,
}

impl DocumentFeed {
    fn new(documents: Box<dyn Documents>) -> Result<DocumentFeed, Error> {
        Ok(DocumentFeed { documents, reading: Reading::new(journal::NATIVE, Wanted::All) })
    }

    fn follow(&mut self, batch: &[Vec<u8>]) {
        let mut sink = DocumentSink(self.documents.as_mut());
        for lines in batch {
            self.reading.feed(lines, &mut sink);
        }
    }
}

struct DocumentSink<'d>(&'d mut dyn Documents);

impl Sink for DocumentSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if journal::author(event) != journal::Author::Mark {
            self.0.add(event);
        }
    }
}

/// A random id.
pub fn random_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The time in nanoseconds since 1970. A timestamp as a number needs no calendar.
fn nanoseconds(time: &Time<'_>) -> Option<i128> {
    match time.unit {
        TimeUnit::Millis => time.text.parse::<i128>().ok()?.checked_mul(1_000_000),
        TimeUnit::Iso | TimeUnit::Seconds => Some(time.instant()?.as_nanosecond()),
    }
}

/// Adds a time, and an id if needed, to events without one.
struct Stamper {
    clock: Clock,
    /// The latest time so far, in nanoseconds and as it was stated.
    last: Mutex<Option<(i128, Time<'static>)>>,
    added_fields: AddedFields,
}

impl Stamper {
    /// The current time. If the clock is set back, the latest time is used, which preserves the order of events.
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
        if self.added_fields == AddedFields::TimeAndId && event.id.is_none() {
            event.id = Some(random_id().into());
        }
        event
    }
}
