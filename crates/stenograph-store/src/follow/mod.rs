//! Follows a file: gives its last events without reading the rest, then new events as they arrive, through growth, rename,
//! truncation and rotation. It only reads the file and never waits: the caller looks regularly, and a [`ChangeSignal`] tells
//! when a look is worthwhile.
//!
//! A plain file of lines in a format that can be read in pieces is read from its end (`lines.rs`), at a cost that does not
//! depend on its size. All other files (documents, rendered text, gzip, zstd) are read from their beginning, and again after
//! every change (`whole.rs`).

mod change_signal;
mod lines;
#[cfg(test)]
mod tests;
mod whole;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use stenograph::format::{Format, Head};
use stenograph::model::{Event, Note, NoteKind};
use stenograph::read::Sink;

pub use change_signal::{ChangeSignal, SWEEP, Wake};

use crate::databases;
use crate::decode::Container;
use crate::discover::{PathHints, path_hints};
use crate::error::{Error, Problem};
use crate::source::{Passes, Source};
use crate::source_file::{Access, Confidence, Recognized, is_same};
use lines::Lines;
pub use lines::line_at;
use whole::Whole;

/// Receives the events of a followed file.
pub trait Listener: Sink {
    /// The file itself changed. Later events belong to the changed file.
    fn file_change(&mut self, change: FollowChange);
}

/// How a followed file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowChange {
    /// Another file took its name; the rest of the old file was given.
    Rotated,
    /// It became shorter and is read again from its beginning.
    Truncated,
    /// Its earlier content is gone; it is read again from its beginning.
    Rewritten,
    /// Its format differs from what its first records suggested; it is read again from its beginning.
    Recognized,
    /// No file has this name any more.
    Gone,
}

/// How to treat an incomplete last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLine {
    /// Give it as it is, with its note: the caller does not wait for the rest.
    Include,
    /// Hold it back until it is complete.
    HoldBack,
}

/// The last events of a file, as `keep` mapped them.
#[derive(Clone, Debug)]
pub struct Last<T> {
    /// The newest events, oldest first.
    pub events: VecDeque<T>,
    /// The number of notes on the way.
    pub notes: u64,
    /// The note that the last record is incomplete, if it was given anyway.
    pub torn: Option<Note>,
    /// How far back the search went, if it stopped before it found enough.
    pub gave_up: Option<u64>,
}

/// A followed file.
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    /// What its path suggests.
    hints: PathHints,
    strategy: ReadStrategy,
    confidence: Confidence,
    /// The length of the file when its format was last detected.
    detected_length: u64,
    /// Bytes that earlier strategies have read.
    consumed: u64,
}

enum ReadStrategy {
    /// The format is still unknown.
    Undecided {
        gone: bool,
        /// The file that was too short. It is read when it grows, even if it loses its name before.
        file: Option<File>,
        /// The format to assume unless the content contradicts it.
        before: Option<&'static dyn Format>,
    },
    Lines(Box<Lines>),
    Whole(Box<Whole>),
}

/// The detected format, and the file if it is open.
type DetectedFormat = (&'static dyn Format, Option<File>);

/// The result of one look at the file.
enum LookResult {
    /// It is the same file, and all of it was read.
    Same,
    /// Reading restarts: with this file if it is open, otherwise with the one that has the name.
    Restart(FollowChange, Option<File>),
}

impl Follow {
    /// Follows a file of this format; `None` for an empty file.
    pub fn open(path: &Path, format: Option<&'static dyn Format>) -> Result<Follow, Error> {
        Follow::open_recognized(path, format.map(Recognized::certain))
    }

    /// Follows a file whose format was detected. Detection repeats as the file grows, until it is certain.
    pub fn open_recognized(path: &Path, recognized: Option<Recognized>) -> Result<Follow, Error> {
        let strategy = match recognized {
            Some(Recognized { format, .. }) => ReadStrategy::open(path, format)?,
            None => ReadStrategy::undecided(None),
        };
        let confidence = recognized.map_or(Confidence::Provisional, |recognized| recognized.confidence);
        Ok(Follow::with_strategy(path, strategy, confidence))
    }

    /// Like [`Follow::open_recognized`], but also waits for a file that lost its name meanwhile.
    pub fn wait_for(path: &Path, recognized: Option<Recognized>) -> Result<Follow, Error> {
        match Follow::open_recognized(path, recognized) {
            Err(error) if error.problem == Problem::Missing => {
                let before = recognized.map(|recognized| recognized.format);
                Ok(Follow::with_strategy(path, ReadStrategy::undecided(before), Confidence::Provisional))
            }
            opened => opened,
        }
    }

    fn with_strategy(path: &Path, strategy: ReadStrategy, confidence: Confidence) -> Follow {
        Follow { path: path.to_owned(), hints: path_hints(path), strategy, confidence, detected_length: 0, consumed: 0 }
    }

    /// The last `most` events that `keep` maps to a value. `keep` may see an event more than once, and also events that are not
    /// among the last.
    pub fn last<T>(
        &mut self,
        most: usize,
        last_line: LastLine,
        keep: &mut dyn FnMut(&Event<'_>) -> Option<T>,
    ) -> Result<Last<T>, Error> {
        let mut ring = EventRing::new(most, keep);
        self.read_end(&mut ring, last_line)?;
        Ok(ring.last)
    }

    /// Gives events from the end of the file, as many as the sink wants.
    pub(crate) fn read_end(&mut self, sink: &mut dyn EndSink, last_line: LastLine) -> Result<(), Error> {
        match &mut self.strategy {
            ReadStrategy::Undecided { .. } => Ok(()),
            ReadStrategy::Lines(lines) => lines.last(sink, last_line),
            ReadStrategy::Whole(whole) => whole.last(sink),
        }
    }

    /// Looks once and gives the new events.
    pub fn look(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        if let Some((format, file)) = self.redetect()? {
            listener.file_change(FollowChange::Recognized);
            self.consumed = self.consumed();
            return self.begin(Some(format), file, listener);
        }
        let looked = match &mut self.strategy {
            ReadStrategy::Undecided { gone, file, before } => {
                let (held, before) = (file.take(), *before);
                if held.as_ref().is_some_and(|file| file.metadata().is_ok_and(|metadata| metadata.len() > 0)) {
                    return self.begin(before, held, listener);
                }
                match fs::metadata(&self.path) {
                    Ok(metadata) if metadata.len() == 0 => {
                        *file = File::open(&self.path).ok();
                        LookResult::Same
                    }
                    Ok(_) => return self.begin(before, None, listener),
                    Err(error) => return missing(&self.path, error, gone, listener),
                }
            }
            ReadStrategy::Lines(lines) => lines.look(listener)?,
            ReadStrategy::Whole(whole) => whole.look(listener)?,
        };
        match looked {
            LookResult::Same => Ok(()),
            LookResult::Restart(file_change, file) => {
                listener.file_change(file_change);
                let format = self.format();
                self.consumed = self.consumed();
                self.begin(format, file, listener)
            }
        }
    }

    /// Reads a file from its beginning. It keeps its previous format unless the content contradicts it. All reads use one open
    /// file, because another file may take the name between two opens.
    fn begin(
        &mut self,
        before: Option<&'static dyn Format>,
        file: Option<File>,
        listener: &mut dyn Listener,
    ) -> Result<(), Error> {
        self.strategy = ReadStrategy::undecided(before);
        let unreadable = |error| Error::at(&self.path, Problem::Unreadable, error);
        let file = match file.map_or_else(|| File::open(&self.path), Ok) {
            Ok(file) => file,
            // The file disappeared in between: the next look handles it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unreadable(error)),
        };
        let source = Source::of_open(&self.path, file.try_clone().map_err(unreadable)?, Passes::Once)?;
        let head = source.head();
        let place = PathHints { like: self.hints.like.or(before), ..self.hints.clone() };
        let recognized = match source.recognize(&place) {
            Some(recognized) => recognized,
            // An incomplete line is too little to detect the format. In a file that has lost its name it stays incomplete.
            None if !head.contains(&b'\n') && !Head::is_whole(head) => {
                let is_named = source.is_at(&self.path);
                self.strategy = ReadStrategy::Undecided { gone: false, file: is_named.then_some(file), before };
                return Ok(());
            }
            None => match before {
                Some(format) => Recognized { format, confidence: Confidence::Provisional },
                None => return Err(Error::about(&self.path, Problem::NoFormat)),
            },
        };
        let format = recognized.format;
        (self.confidence, self.detected_length) = (recognized.confidence, source.length().unwrap_or(0));
        self.strategy = ReadStrategy::of(&self.path, file, format)?;
        match &mut self.strategy {
            ReadStrategy::Undecided { .. } => Ok(()),
            ReadStrategy::Lines(lines) => lines.all(listener),
            ReadStrategy::Whole(whole) => whole.all(listener),
        }
    }

    /// The format that the longer content reveals, if it differs.
    fn redetect(&mut self) -> Result<Option<DetectedFormat>, Error> {
        let Some(before) = self.format().filter(|_| self.confidence != Confidence::Certain) else { return Ok(None) };
        let file = match &self.strategy {
            ReadStrategy::Lines(lines) => Some(lines.same_file()?),
            ReadStrategy::Undecided { .. } | ReadStrategy::Whole(_) => None,
        };
        let metadata = file.as_ref().map_or_else(|| fs::metadata(&self.path), File::metadata);
        let length = metadata.map_or(0, |metadata| metadata.len());
        if length <= self.detected_length {
            return Ok(None);
        }
        self.detected_length = length;
        let opened = file.as_ref().map_or_else(|| File::open(&self.path), File::try_clone);
        let source = match opened {
            Ok(opened) => Source::of_open(&self.path, opened, Passes::Once)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::at(&self.path, Problem::Unreadable, error)),
        };
        let place = PathHints { like: self.hints.like.or(Some(before)), ..self.hints.clone() };
        let Some(recognized) = source.recognize(&place) else { return Ok(None) };
        self.confidence = recognized.confidence;
        Ok((!is_same(recognized.format, before)).then_some((recognized.format, file)))
    }

    /// The format, once it is known.
    pub fn format(&self) -> Option<&'static dyn Format> {
        match &self.strategy {
            ReadStrategy::Undecided { .. } => None,
            ReadStrategy::Lines(lines) => Some(lines.format),
            ReadStrategy::Whole(whole) => Some(whole.format),
        }
    }

    /// Whether the last events are read from the end of the file, so that the events before them are not counted.
    pub fn reads_from_end(&self) -> bool {
        matches!(self.strategy, ReadStrategy::Lines(_))
    }

    /// The number of bytes read so far.
    pub fn consumed(&self) -> u64 {
        let here = match &self.strategy {
            ReadStrategy::Undecided { .. } => 0,
            ReadStrategy::Lines(lines) => lines.consumed,
            ReadStrategy::Whole(whole) => whole.consumed,
        };
        self.consumed + here
    }
}

impl ReadStrategy {
    fn undecided(before: Option<&'static dyn Format>) -> ReadStrategy {
        ReadStrategy::Undecided { gone: false, file: None, before }
    }

    fn open(path: &Path, format: &'static dyn Format) -> Result<ReadStrategy, Error> {
        // A conversation in a database is read from a copy.
        let file = databases::open_file(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
        ReadStrategy::of(path, file, format)
    }

    fn of(path: &Path, file: File, format: &'static dyn Format) -> Result<ReadStrategy, Error> {
        let lines = Lines::of(path, file, format)?;
        Ok(match Access::of(format, Container::of(&lines.head), &lines.head) {
            Access::ByRecord => ReadStrategy::Lines(Box::new(lines)),
            Access::Whole => ReadStrategy::Whole(Box::new(Whole::new(path, format, lines.into_file()))),
        })
    }
}

impl std::fmt::Debug for ReadStrategy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadStrategy::Undecided { gone, .. } => {
                formatter.debug_struct("Nothing").field("gone", gone).finish_non_exhaustive()
            }
            ReadStrategy::Lines(lines) => lines.fmt(formatter),
            ReadStrategy::Whole(whole) => whole.fmt(formatter),
        }
    }
}

/// Reports once that the file is missing.
fn missing(path: &Path, error: io::Error, gone: &mut bool, listener: &mut dyn Listener) -> Result<(), Error> {
    if error.kind() != io::ErrorKind::NotFound {
        return Err(Error::at(path, Problem::Unreadable, error));
    }
    if !*gone {
        *gone = true;
        listener.file_change(FollowChange::Gone);
    }
    Ok(())
}

/// Keeps the newest mapped events.
struct EventRing<'k, T> {
    most: usize,
    keep: &'k mut dyn FnMut(&Event<'_>) -> Option<T>,
    last: Last<T>,
}

/// Takes events from the end of a file: those of one window, or those of a larger window if that was not enough.
pub(crate) trait EndSink: Sink {
    /// How many bytes before the end to begin with. The default holds the last dozen records of most files.
    fn window_size(&self) -> u64 {
        64 << 10
    }
    /// How many events are enough.
    fn enough(&self) -> usize;
    /// Whether the events of this window are enough.
    fn has_enough(&self) -> bool;
    /// Forgets the events of this window, because a larger one follows.
    fn clear(&mut self);
    /// Records how far back the search went before it stopped.
    fn give_up(&mut self, length: u64);
}

impl<'k, T> EventRing<'k, T> {
    fn new(most: usize, keep: &'k mut dyn FnMut(&Event<'_>) -> Option<T>) -> EventRing<'k, T> {
        EventRing { most, keep, last: Last { events: VecDeque::new(), notes: 0, torn: None, gave_up: None } }
    }
}

impl<T> EndSink for EventRing<'_, T> {
    fn enough(&self) -> usize {
        self.most
    }

    fn has_enough(&self) -> bool {
        self.last.events.len() >= self.most
    }

    fn clear(&mut self) {
        self.last = Last { events: VecDeque::new(), notes: 0, torn: None, gave_up: None };
    }

    fn give_up(&mut self, length: u64) {
        self.last.gave_up = Some(length);
    }
}

impl<T> Sink for EventRing<'_, T> {
    fn event(&mut self, event: &Event<'_>) {
        let Some(value) = (self.keep)(event) else { return };
        self.last.events.push_back(value);
        if self.last.events.len() > self.most {
            self.last.events.pop_front();
        }
    }

    fn note(&mut self, note: Note) {
        self.last.notes += 1;
        if note.kind == NoteKind::Torn {
            self.last.torn = Some(note);
        }
    }
}
