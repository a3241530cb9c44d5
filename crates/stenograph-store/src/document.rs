//! A document of lines that is kept in step with a journal, and the comparison of both. The journal is always right: any
//! problem with the document is repaired from it (`completion.rs`). Content from before a recording is never touched.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::format::{Format, Wanted};
use stenograph::loss::LossComparison;
use stenograph::model::{Event, Outline};
use stenograph::read::{Reading, Sink};
use stenograph::write::{OutputPiece, Writing};

use crate::completion::{CompletedKind, Completion};
use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, create_folder_durably, folder_of, rewrite_from, write_all};
use crate::journal::{Author, Recording, author};
use crate::layouts::{JournalNeed, StatedFields};
use crate::tail::{self, LastLineRule, Warning};

/// Transforms an event before it is written, or drops it. It may keep state.
pub type EventTransform = Box<dyn FnMut(&Event<'_>) -> Option<Event<'static>> + Send>;

/// Creates a [`EventTransform`] without state: completing a document passes all events again.
pub type TransformFactory = Arc<dyn Fn() -> EventTransform + Send + Sync>;

/// A file of lines in a system's own format.
pub struct LineDocument {
    files: Arc<dyn Files>,
    path: PathBuf,
    format: &'static dyn Format,
    outline: Outline,
    passes: Option<TransformFactory>,
    /// The length of the file before the recording.
    base: u64,
    /// How many of its bytes are ours, while it is in step.
    written: u64,
    /// Turns events into lines.
    writing: Option<LineWriter>,
    /// The open file; `None` if it is out of step.
    file: Option<Box<dyn OpenFile>>,
}

impl std::fmt::Debug for LineDocument {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LineDocument").field("path", &self.path).finish_non_exhaustive()
    }
}

impl LineDocument {
    /// Checks the end of the file, moves half a line aside, and returns the length: everything before it is not ours.
    pub fn base(files: &Arc<dyn Files>, path: &Path) -> Result<(u64, Option<Warning>), Error> {
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        create_folder_durably(files.as_ref(), folder_of(path)).map_err(unwritable)?;
        let tail = tail::repair_tail(files.as_ref(), path, LastLineRule::MayLackNewline)?;
        if tail.lacks_newline {
            let mut file = files.open(path).map_err(unwritable)?;
            write_all(file.as_mut(), b"\n").and_then(|()| file.sync()).map_err(unwritable)?;
        }
        Ok((tail.length + u64::from(tail.lacks_newline), tail.warning))
    }

    /// A document that continues after `base` bytes of others.
    pub fn new(files: &Arc<dyn Files>, path: &Path, format: &'static dyn Format, base: u64) -> LineDocument {
        LineDocument {
            files: Arc::clone(files),
            path: path.to_owned(),
            format,
            outline: Outline::default(),
            passes: None,
            base,
            written: 0,
            writing: None,
            file: None,
        }
    }

    /// The same, with every event transformed first.
    pub(crate) fn transformed(mut self, passes: TransformFactory) -> LineDocument {
        self.passes = Some(passes);
        self
    }

    /// The same, with facts about the session that are known beforehand. Completing the document requires the same facts.
    pub(crate) fn with_outline(mut self, outline: Outline) -> LineDocument {
        self.outline = outline;
        self
    }

    /// Starts writing. If that fails, the document is out of step and is completed at the end.
    pub fn begin(&mut self) {
        self.writing = Some(self.new_writer());
        self.file = self.files.open(&self.path).ok();
        self.written = 0;
    }

    /// Removes the file that beginning created, after a recording without events.
    pub fn discard(&mut self) -> Result<(), Error> {
        (self.file, self.writing) = (None, None);
        let unwritable = |error| Error::at(&self.path, Problem::Unwritable, error);
        match self.files.length(&self.path).map_err(unwritable)? {
            Some(0) if self.base == 0 => self.files.remove(&self.path).map_err(unwritable),
            _ => Ok(()),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// The offset at which our part begins.
    pub(crate) fn starts_at(&self) -> u64 {
        self.base
    }

    fn new_writer(&self) -> LineWriter {
        let writing = Writing::new(self.format, &self.outline);
        LineWriter { writing, pass: self.passes.as_ref().map(|passes| passes()) }
    }

    /// Adds an event that is in the journal.
    pub fn add(&mut self, event: &Event<'_>) {
        if let Some(writing) = &mut self.writing {
            let bytes = writing.event(event);
            self.put(&bytes);
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let linked = file.is_linked().unwrap_or(false);
        if !linked || write_all(file.as_mut(), bytes).is_err() {
            // How much was written is unknown: it is compared with the journal at the end.
            self.file = None;
            return;
        }
        self.written += bytes.len() as u64;
    }

    /// Completes the document and makes it durable.
    pub fn finish(&mut self, recorded: &Recording) -> Result<Vec<Warning>, Error> {
        let unwritable = |path: &Path, error| Error::at(path, Problem::Unwritable, error);
        if let Some(writing) = self.writing.take() {
            let rest = writing.finish();
            self.put(&rest);
        }
        let length = self.files.length(&self.path).map_err(|error| unwritable(&self.path, error))?;
        let in_step = self.file.is_some() && length == Some(self.base + self.written);
        let warnings = if in_step { Vec::new() } else { self.complete(recorded)? };
        let synced = match self.file.take() {
            Some(mut file) => file.sync(),
            // A sync by an earlier process may have failed.
            None => self.files.open(&self.path).and_then(|_| rewrite_from(self.files.as_ref(), &self.path, self.base)),
        };
        synced.map_err(|error| unwritable(&self.path, error))?;
        self.files.sync_folder(folder_of(&self.path)).map_err(|error| unwritable(&self.path, error))?;
        Ok(warnings)
    }

    /// Compares the file with what the journal implies and writes what is missing.
    fn complete(&mut self, recorded: &Recording) -> Result<Vec<Warning>, Error> {
        self.file = None;
        let mut completion = Completion::new(&self.files, &self.path, self.base, CompletedKind::Lines)?;
        let mut writing = self.new_writer();
        recorded.read(&mut |event| completion.next(&writing.event(event)))?;
        completion.next(&writing.finish());
        Ok(completion.end()?.warnings)
    }
}

/// Turns events into lines.
struct LineWriter {
    writing: Writing,
    pass: Option<EventTransform>,
}

impl LineWriter {
    fn event(&mut self, event: &Event<'_>) -> Vec<u8> {
        match &mut self.pass {
            None => joined(self.writing.event(event)),
            Some(pass) => pass(event).map(|event| joined(self.writing.event(&event))).unwrap_or_default(),
        }
    }

    fn finish(self) -> Vec<u8> {
        joined(self.writing.finish())
    }
}

fn joined(pieces: Vec<OutputPiece>) -> Vec<u8> {
    pieces.into_iter().fold(Vec::new(), |mut bytes, piece| {
        let (OutputPiece::Record(piece) | OutputPiece::Glue(piece)) = piece;
        bytes.extend_from_slice(&piece);
        bytes
    })
}

/// A document to compare: its format and its bytes from the beginning of the recording.
pub struct ComparedDocument<'a> {
    /// Its format.
    pub format: &'static dyn Format,
    /// The bytes that the recording wrote.
    pub bytes: Box<dyn Read + 'a>,
}

/// Reads a document back and compares it with the journal: does it hold everything that was given? Fields that the recorder
/// added are not required.
pub fn measure(
    recorded: &Recording,
    document: ComparedDocument<'_>,
    stated: StatedFields,
) -> Result<JournalNeed, Error> {
    measure_part(recorded, document, stated, &mut |_| true)
}

/// The same for a document that takes only some of the events.
pub(crate) fn measure_part(
    recorded: &Recording,
    document: ComparedDocument<'_>,
    stated: StatedFields,
    belongs: &mut dyn FnMut(&Event<'_>) -> bool,
) -> Result<JournalNeed, Error> {
    let name = document.format.info().name;
    let mut comparison = LossComparison::new(move |origin| origin == name);
    let unreadable = |error| Error::at(&recorded.journal, Problem::Unreadable, error);
    recorded.read(&mut |event| {
        if author(event) == Author::Given && belongs(event) {
            comparison.source(&unstamped(event, stated));
        }
    })?;
    let mut bytes = document.bytes;
    let mut reading = Reading::new(document.format, Wanted::All);
    let mut sink = ReadBack { comparison, stated };
    reading.feed_all(&mut bytes, &mut sink).map_err(unreadable)?;
    reading.end(&mut sink);
    let report = sink.comparison.finish();
    // The order of events is part of what was given.
    let lossy = report.is_lossy() || report.is_reordered();
    Ok(if lossy { JournalNeed::Needed } else { JournalNeed::Redundant })
}

struct ReadBack {
    comparison: LossComparison,
    stated: StatedFields,
}

impl Sink for ReadBack {
    fn event(&mut self, event: &Event<'_>) {
        self.comparison.target(&unstamped(event, self.stated));
    }
}

/// The event as it was given.
fn unstamped<'e>(event: &Event<'e>, stated: StatedFields) -> Event<'e> {
    let mut event = event.clone();
    if !stated.time {
        event.time = None;
    }
    if !stated.id {
        event.id = None;
    }
    event
}
