//! A document of lines that is kept in step with a journal, and the measure of what a document says. The journal is always right:
//! whatever happens to the document is made up for from there. What was there before a recording is never touched.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::format::{Format, Want};
use stenograph::json;
use stenograph::loss::LossComparison;
use stenograph::model::{Event, Note, Outline};
use stenograph::read::{Reading, Sink};
use stenograph::write::{OutputPiece, Writing};

use crate::error::{Error, Problem};
use crate::files::{Files, OpenFile, folder_of, make_folder, write_again, write_all};
use crate::journal::{Author, Recorded, author};
use crate::layouts::{Journal, StatedFields};
use crate::tail::{self, LastLine, Warning};

/// Which events a document takes.
pub type Takes = fn(&Event<'_>) -> bool;

/// What a document makes of an event before it is written, or that it does not take it. It may remember what came before.
pub type Pass = Box<dyn FnMut(&Event<'_>) -> Option<Event<'static>> + Send>;

/// Makes a [`Pass`] that has seen nothing yet: a document that is completed sees all events again.
pub type Passes = Arc<dyn Fn() -> Pass + Send + Sync>;

/// A file of lines in a system's own format.
pub struct LineDocument {
    files: Arc<dyn Files>,
    path: PathBuf,
    format: &'static dyn Format,
    outline: Outline,
    takes: Takes,
    passes: Option<Passes>,
    /// How long the file was before the recording.
    base: u64,
    /// How much of it is ours, when it is in step.
    written: u64,
    /// What turns events into lines.
    writing: Option<Lines>,
    /// The open file; `None` when it is out of step.
    file: Option<Box<dyn OpenFile>>,
}

impl std::fmt::Debug for LineDocument {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LineDocument").field("path", &self.path).finish_non_exhaustive()
    }
}

impl LineDocument {
    /// Looks at the end of the file, moves half a line aside, and says how long it is: what stands there is not ours.
    pub fn base(files: &Arc<dyn Files>, path: &Path) -> Result<(u64, Option<Warning>), Error> {
        let unwritable = |error| Error::at(path, Problem::Unwritable, error);
        make_folder(files.as_ref(), folder_of(path)).map_err(unwritable)?;
        let tail = tail::settle(files.as_ref(), path, LastLine::MayLackNewline)?;
        if tail.lacks_newline {
            let mut file = files.open(path).map_err(unwritable)?;
            write_all(file.as_mut(), b"\n").and_then(|()| file.sync()).map_err(unwritable)?;
        }
        Ok((tail.length + u64::from(tail.lacks_newline), tail.warning))
    }

    /// A document that goes on after `base` bytes of others.
    pub fn new(files: &Arc<dyn Files>, path: &Path, format: &'static dyn Format, base: u64) -> LineDocument {
        LineDocument {
            files: Arc::clone(files),
            path: path.to_owned(),
            format,
            outline: Outline::default(),
            takes: |_| true,
            passes: None,
            base,
            written: 0,
            writing: None,
            file: None,
        }
    }

    /// The same for events that belong there only.
    pub fn taking(mut self, takes: Takes) -> LineDocument {
        self.takes = takes;
        self
    }

    /// The same with every event passed through this first.
    pub fn passing(mut self, passes: Passes) -> LineDocument {
        self.passes = Some(passes);
        self
    }

    /// The same with what is known of the session beforehand. It must be the same again when the document is completed.
    pub fn outlined(mut self, outline: Outline) -> LineDocument {
        self.outline = outline;
        self
    }

    /// Begins to write. Where that fails the document is out of step, and completed at the end.
    pub fn begin(&mut self) {
        self.writing = Some(self.fresh());
        self.file = self.files.open(&self.path).ok();
        self.written = 0;
    }

    /// Removes the file that beginning made, after a recording into which nothing was recorded.
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

    /// Where what is ours begins.
    pub fn starts_at(&self) -> u64 {
        self.base
    }

    fn fresh(&self) -> Lines {
        let writing = Writing::new(self.format, &self.outline);
        Lines { writing, takes: self.takes, pass: self.passes.as_ref().map(|passes| passes()) }
    }

    /// Takes an event that is in the journal.
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
            // How much of it is there is not known: it is compared with the journal at the end.
            self.file = None;
            return;
        }
        self.written += bytes.len() as u64;
    }

    /// Completes the document and makes it durable.
    pub fn finish(&mut self, recorded: &Recorded) -> Result<Vec<Warning>, Error> {
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
            // Whoever wrote it may have seen a sync fail.
            None => self.files.open(&self.path).and_then(|_| write_again(self.files.as_ref(), &self.path, self.base)),
        };
        synced.map_err(|error| unwritable(&self.path, error))?;
        self.files.sync_folder(folder_of(&self.path)).map_err(|error| unwritable(&self.path, error))?;
        Ok(warnings)
    }

    /// Compares the file with what the journal says it holds, and writes what is missing.
    fn complete(&mut self, recorded: &Recorded) -> Result<Vec<Warning>, Error> {
        self.file = None;
        let unwritable = |error| Error::at(&self.path, Problem::Unwritable, error);
        make_folder(self.files.as_ref(), folder_of(&self.path)).map_err(unwritable)?;
        let length = self.files.length(&self.path).map_err(unwritable)?.unwrap_or(0);
        if length < self.base {
            return Ok(vec![Warning::new(
                &self.path,
                "is shorter than it was: what was recorded is in the journal only",
            )]);
        }
        let mut match_up = MatchUp::Same(self.reader()?);
        let mut missing = Missing::new(self);
        let mut writing = self.fresh();
        recorded.read(&mut |event| missing.next(&writing.event(event), &mut match_up))?;
        missing.next(&writing.finish(), &mut match_up);
        missing.end()
    }

    fn reader(&self) -> Result<Box<dyn Read>, Error> {
        match self.files.reader(&self.path, self.base) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Box::new(io::empty())),
            opened => opened.map_err(|error| Error::at(&self.path, Problem::Unreadable, error)),
        }
    }
}

/// What turns events into lines.
struct Lines {
    writing: Writing,
    takes: Takes,
    pass: Option<Pass>,
}

impl Lines {
    fn event(&mut self, event: &Event<'_>) -> Vec<u8> {
        match &mut self.pass {
            _ if !(self.takes)(event) => Vec::new(),
            None => joined(self.writing.event(event)),
            Some(pass) => pass(event).map(|event| joined(self.writing.event(&event))).unwrap_or_default(),
        }
    }

    fn finish(self) -> Vec<u8> {
        joined(self.writing.finish())
    }
}

/// How a file compares with what it should hold.
enum MatchUp {
    /// So far they are the same.
    Same(Box<dyn Read>),
    /// The file ended, or stopped making sense: from here on it is written.
    Writing(Box<dyn OpenFile>),
    /// Somebody else wrote there.
    Foreign,
    Failed(Error),
}

/// Writes what a file lacks.
struct Missing<'a> {
    document: &'a LineDocument,
    /// How far file and journal are the same.
    at: u64,
    warnings: Vec<Warning>,
    failed: Option<Error>,
}

impl<'a> Missing<'a> {
    fn new(document: &'a LineDocument) -> Missing<'a> {
        Missing { document, at: document.base, warnings: Vec::new(), failed: None }
    }

    fn next(&mut self, bytes: &[u8], match_up: &mut MatchUp) {
        if bytes.is_empty() {
            return;
        }
        if let MatchUp::Same(reader) = match_up {
            let mut there = Vec::new();
            let read = reader.by_ref().take(bytes.len() as u64).read_to_end(&mut there);
            if let Err(error) = read {
                *match_up = MatchUp::Failed(Error::at(&self.document.path, Problem::Unreadable, error));
            } else if there == bytes {
                self.at += bytes.len() as u64;
                return;
            } else {
                *match_up = self.part(&there, bytes);
            }
        }
        match match_up {
            MatchUp::Same(_) | MatchUp::Foreign => {}
            MatchUp::Writing(file) => {
                if let Err(error) = write_all(file.as_mut(), bytes) {
                    *match_up = MatchUp::Failed(Error::at(&self.document.path, Problem::Unwritable, error));
                    self.next(bytes, match_up);
                }
            }
            MatchUp::Failed(error) => self.failed = self.failed.take().or_else(|| Some(error.again())),
        }
    }

    /// Where the file is no longer what it should be: it ends there, or half a line or garbage follows, which is moved aside; or
    /// somebody else wrote whole lines there, and then it is left as it is.
    fn part(&mut self, there: &[u8], wanted: &[u8]) -> MatchUp {
        let (files, path) = (&self.document.files, &self.document.path);
        let cut = |length: u64| {
            let mut file = files.open(path)?;
            file.truncate(length)?;
            Ok(file)
        };
        let unwritable = |error: io::Error| MatchUp::Failed(Error::at(path, Problem::Unwritable, error));
        if wanted.starts_with(there) {
            return cut(self.at).map_or_else(unwritable, MatchUp::Writing);
        }
        let rest = match files.read(path, self.at) {
            Ok(rest) => rest,
            Err(error) => return MatchUp::Failed(Error::at(path, Problem::Unreadable, error)),
        };
        let whole = |line: &[u8]| std::str::from_utf8(line).is_ok_and(|text| json::is_valid(text.trim()));
        // A power cut leaves holes, and behind one a line of ours may be whole: what has holes is all moved aside.
        let holed = rest.contains(&0);
        if !holed && rest.split(|byte| *byte == b'\n').any(|line| !line.trim_ascii().is_empty() && whole(line)) {
            let text = "somebody else wrote there during the recording, which is whole in the journal only";
            self.warnings.push(Warning::new(path, text));
            return MatchUp::Foreign;
        }
        match tail::move_aside(files.as_ref(), path, &rest) {
            Ok(aside) => {
                let text = format!("{} damaged bytes at the end were moved to {}", rest.len(), aside.display());
                self.warnings.push(Warning::new(path, text));
                cut(self.at).map_or_else(unwritable, MatchUp::Writing)
            }
            Err(error) => unwritable(error),
        }
    }

    fn end(self) -> Result<Vec<Warning>, Error> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.warnings),
        }
    }
}

fn joined(pieces: Vec<OutputPiece>) -> Vec<u8> {
    pieces.into_iter().fold(Vec::new(), |mut bytes, piece| {
        let (OutputPiece::Record(piece) | OutputPiece::Glue(piece)) = piece;
        bytes.extend_from_slice(&piece);
        bytes
    })
}

/// A document to be measured: its format, its bytes from where the recording begins.
pub struct Measured<'a> {
    /// Its format.
    pub format: &'static dyn Format,
    /// What the recording wrote.
    pub bytes: Box<dyn Read + 'a>,
}

/// Reads a document back and compares it with the journal: does it say all that was given? What the recorder stamped on events
/// is not missed.
pub fn measure(recorded: &Recorded, document: Measured<'_>, given: StatedFields) -> Result<Journal, Error> {
    measure_part(recorded, document, given, &mut |_| true)
}

/// The same for a document that is there for some of the events only.
pub fn measure_part(
    recorded: &Recorded,
    document: Measured<'_>,
    given: StatedFields,
    belongs: &mut dyn FnMut(&Event<'_>) -> bool,
) -> Result<Journal, Error> {
    let name = document.format.info().name;
    let mut comparison = LossComparison::new(move |origin| origin == name);
    let unreadable = |error| Error::at(&recorded.journal, Problem::Unreadable, error);
    recorded.read(&mut |event| {
        if author(event) == Author::Given && belongs(event) {
            comparison.source(&unstamped(event, given));
        }
    })?;
    let mut bytes = document.bytes;
    let mut reading = Reading::new(document.format, Want::All);
    let mut sink = Back { comparison, given };
    reading.feed_all(&mut bytes, &mut sink).map_err(unreadable)?;
    reading.end(&mut sink);
    let report = sink.comparison.finish();
    // The order in which things happened is a part of what was given.
    let lossy = report.is_lossy() || report.is_reordered();
    Ok(if lossy { Journal::Needed } else { Journal::Redundant })
}

struct Back {
    comparison: LossComparison,
    given: StatedFields,
}

impl Sink for Back {
    fn event(&mut self, event: &Event<'_>) {
        self.comparison.target(&unstamped(event, self.given));
    }

    fn note(&mut self, _note: Note) {}
}

/// The event as it was given.
fn unstamped<'e>(event: &Event<'e>, given: StatedFields) -> Event<'e> {
    let mut event = event.clone();
    if !given.time {
        event.time = None;
    }
    if !given.id {
        event.id = None;
    }
    event
}
