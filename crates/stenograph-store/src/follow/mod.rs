//! The end of a file, and what comes after it: the last events without the rest, then live, over growth, rename, truncation and rotation.
//! A file that is followed is only read. Nothing here waits: whoever follows looks now and then, and a [`ChangeSignal`] says when that is worth it.
//!
//! A plain file of lines whose format can be read in pieces is read from its end ([`lines`]): what that costs does not depend on how
//! large the file is. Everything else (documents, text for people, gzip, zstd) is read from its beginning, and again whenever it has
//! changed ([`whole`]).

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

use crate::decode::Container;
use crate::discover::{Named, place_of};
use crate::error::{Error, Problem};
use crate::source::{Passes, Source};
use crate::source_file::{Access, Confidence, Recognized, is_same};
use lines::Lines;
pub use lines::line_at;
use whole::Whole;

/// Takes what is found while a file is followed.
pub trait Listener: Sink {
    /// What happened to the file itself. What comes after it is of the file as it is then.
    fn turn(&mut self, turn: Turn);
}

/// What happened to a file that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Another file took its name; the rest of the old one was given.
    Rotated,
    /// It became shorter, and is read from its beginning again.
    Truncated,
    /// What was read before is there no more; it is read from its beginning again.
    Rewritten,
    /// It has another format than its first records showed, and is read from its beginning again.
    Recognized,
    /// There is no file of that name any more.
    Gone,
}

/// What becomes of half a last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLine {
    /// It is given as it is, with its note: nobody waits for the rest.
    Given,
    /// It is held back until it is whole.
    Held,
}

/// The last events of a file, as they were kept.
#[derive(Clone, Debug)]
pub struct Last<T> {
    /// The newest, oldest first.
    pub kept: VecDeque<T>,
    /// Notes about what was read on the way.
    pub notes: u64,
    /// That the last record is not whole, where it was given all the same.
    pub torn: Option<Note>,
    /// How far back was looked, where that was given up before enough was found.
    pub gave_up: Option<u64>,
}

/// A file that is followed.
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    /// What its place says of it.
    place: Named,
    way: Way,
    confidence: Confidence,
    /// How long the file was when it was last asked what format it has.
    asked_length: u64,
    /// Bytes that earlier ways have read.
    consumed: u64,
}

enum Way {
    /// There is nothing to tell the format by.
    Nothing {
        gone: bool,
        /// The file that was too short to tell: it is read when it grows, also if it loses its name before.
        file: Option<File>,
        /// What it is if nothing speaks against it.
        before: Option<&'static dyn Format>,
    },
    Lines(Box<Lines>),
    Whole(Box<Whole>),
}

/// The format that a file turns out to have, and the file where it is open.
type TurnedOut = (&'static dyn Format, Option<File>);

/// What a look found out about the file.
enum Looked {
    /// It is the one that was read before, and all of it was read.
    Same,
    /// It begins anew: this file, where it is open already, else the one that has the name.
    Anew(Turn, Option<File>),
}

impl Follow {
    /// Follows a file of this format; one that is still empty has none.
    pub fn open(path: &Path, format: Option<&'static dyn Format>) -> Result<Follow, Error> {
        Follow::open_recognized(path, format.map(Recognized::certain))
    }

    /// Follows a file that was recognised. It is asked again as it grows, until that is certain.
    pub fn open_recognized(path: &Path, recognized: Option<Recognized>) -> Result<Follow, Error> {
        let way = match recognized {
            Some(Recognized { format, .. }) => Way::open(path, format)?,
            None => Way::nothing(None),
        };
        let confidence = recognized.map_or(Confidence::Provisional, |recognized| recognized.confidence);
        Ok(Follow::through(path, way, confidence))
    }

    /// Follows a file like [`Follow::open_recognized`], and waits for one that lost its name meanwhile.
    pub fn wait_for(path: &Path, recognized: Option<Recognized>) -> Result<Follow, Error> {
        match Follow::open_recognized(path, recognized) {
            Err(error) if error.problem == Problem::Missing => {
                let before = recognized.map(|recognized| recognized.format);
                Ok(Follow::through(path, Way::nothing(before), Confidence::Provisional))
            }
            opened => opened,
        }
    }

    fn through(path: &Path, way: Way, confidence: Confidence) -> Follow {
        Follow { path: path.to_owned(), place: place_of(path), way, confidence, asked_length: 0, consumed: 0 }
    }

    /// The last `most` events there are now, of those that `keep` makes something of. It may be asked about an event more than once,
    /// and about some that are not among the last.
    pub fn last<T>(
        &mut self,
        most: usize,
        last_line: LastLine,
        keep: &mut dyn FnMut(&Event<'_>) -> Option<T>,
    ) -> Result<Last<T>, Error> {
        let mut ring = Ring::new(most, keep);
        match &mut self.way {
            Way::Nothing { .. } => {}
            Way::Lines(lines) => lines.last(&mut ring, last_line)?,
            Way::Whole(whole) => whole.last(&mut ring)?,
        }
        Ok(ring.last)
    }

    /// Looks once, and gives what came since.
    pub fn look(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        if let Some((format, file)) = self.turned_out()? {
            listener.turn(Turn::Recognized);
            self.consumed = self.consumed();
            return self.begin(Some(format), file, listener);
        }
        let looked = match &mut self.way {
            Way::Nothing { gone, file, before } => {
                let (held, before) = (file.take(), *before);
                if held.as_ref().is_some_and(|file| file.metadata().is_ok_and(|metadata| metadata.len() > 0)) {
                    return self.begin(before, held, listener);
                }
                match fs::metadata(&self.path) {
                    Ok(metadata) if metadata.len() == 0 => {
                        *file = File::open(&self.path).ok();
                        Looked::Same
                    }
                    Ok(_) => return self.begin(before, None, listener),
                    Err(error) => return missing(&self.path, error, gone, listener),
                }
            }
            Way::Lines(lines) => lines.look(listener)?,
            Way::Whole(whole) => whole.look(listener)?,
        };
        match looked {
            Looked::Same => Ok(()),
            Looked::Anew(turn, file) => {
                listener.turn(turn);
                let format = self.format();
                self.consumed = self.consumed();
                self.begin(format, file, listener)
            }
        }
    }

    /// Reads a file from its beginning. What it was before, it is still if nothing speaks against it. Everything is read through one
    /// open file: between two questions by name another file may take the name.
    fn begin(
        &mut self,
        before: Option<&'static dyn Format>,
        file: Option<File>,
        listener: &mut dyn Listener,
    ) -> Result<(), Error> {
        self.way = Way::nothing(before);
        let unreadable = |error| Error::at(&self.path, Problem::Unreadable, error);
        let file = match file.map_or_else(|| File::open(&self.path), Ok) {
            Ok(file) => file,
            // It went away between two questions: the next look finds out.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unreadable(error)),
        };
        let source = Source::of_open(&self.path, file.try_clone().map_err(unreadable)?, Passes::Once)?;
        let head = source.head();
        let place = Named { like: self.place.like.or(before), ..self.place.clone() };
        let recognized = match source.recognize(&place) {
            Some(recognized) => recognized,
            // Half a line is too little to tell by. One in a file that has lost its name stays half.
            None if !head.contains(&b'\n') && !Head::is_whole(head) => {
                let is_named = source.is_at(&self.path);
                self.way = Way::Nothing { gone: false, file: is_named.then_some(file), before };
                return Ok(());
            }
            None => match before {
                Some(format) => Recognized { format, confidence: Confidence::Provisional },
                None => return Err(Error::about(&self.path, Problem::NoFormat)),
            },
        };
        let format = recognized.format;
        (self.confidence, self.asked_length) = (recognized.confidence, source.length().unwrap_or(0));
        self.way = Way::of(&self.path, file, format)?;
        match &mut self.way {
            Way::Nothing { .. } => Ok(()),
            Way::Lines(lines) => lines.all(listener),
            Way::Whole(whole) => whole.all(listener),
        }
    }

    /// The format that the file turns out to have now that there is more of it, where that is another one.
    fn turned_out(&mut self) -> Result<Option<TurnedOut>, Error> {
        let Some(before) = self.format().filter(|_| self.confidence != Confidence::Certain) else { return Ok(None) };
        let file = match &self.way {
            Way::Lines(lines) => Some(lines.same_file()?),
            Way::Nothing { .. } | Way::Whole(_) => None,
        };
        let metadata = file.as_ref().map_or_else(|| fs::metadata(&self.path), File::metadata);
        let length = metadata.map_or(0, |metadata| metadata.len());
        if length <= self.asked_length {
            return Ok(None);
        }
        self.asked_length = length;
        let opened = file.as_ref().map_or_else(|| File::open(&self.path), File::try_clone);
        let source = match opened {
            Ok(opened) => Source::of_open(&self.path, opened, Passes::Once)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::at(&self.path, Problem::Unreadable, error)),
        };
        let place = Named { like: self.place.like.or(Some(before)), ..self.place.clone() };
        let Some(recognized) = source.recognize(&place) else { return Ok(None) };
        self.confidence = recognized.confidence;
        Ok((!is_same(recognized.format, before)).then_some((recognized.format, file)))
    }

    /// What it is, once that is known.
    pub fn format(&self) -> Option<&'static dyn Format> {
        match &self.way {
            Way::Nothing { .. } => None,
            Way::Lines(lines) => Some(lines.format),
            Way::Whole(whole) => Some(whole.format),
        }
    }

    /// How many bytes of the file were read so far, all in all.
    pub fn consumed(&self) -> u64 {
        let here = match &self.way {
            Way::Nothing { .. } => 0,
            Way::Lines(lines) => lines.consumed,
            Way::Whole(whole) => whole.consumed,
        };
        self.consumed + here
    }
}

impl Way {
    fn nothing(before: Option<&'static dyn Format>) -> Way {
        Way::Nothing { gone: false, file: None, before }
    }

    fn open(path: &Path, format: &'static dyn Format) -> Result<Way, Error> {
        Way::of(path, File::open(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?, format)
    }

    fn of(path: &Path, file: File, format: &'static dyn Format) -> Result<Way, Error> {
        let lines = Lines::of(path, file, format)?;
        Ok(match Access::of(format, Container::of(&lines.head), &lines.head) {
            Access::ByRecord => Way::Lines(Box::new(lines)),
            Access::Whole => Way::Whole(Box::new(Whole::new(path, format, lines.into_file()))),
        })
    }
}

impl std::fmt::Debug for Way {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Way::Nothing { gone, .. } => formatter.debug_struct("Nothing").field("gone", gone).finish_non_exhaustive(),
            Way::Lines(lines) => lines.fmt(formatter),
            Way::Whole(whole) => whole.fmt(formatter),
        }
    }
}

/// That the file is not there, said once.
fn missing(path: &Path, error: io::Error, gone: &mut bool, listener: &mut dyn Listener) -> Result<(), Error> {
    if error.kind() != io::ErrorKind::NotFound {
        return Err(Error::at(path, Problem::Unreadable, error));
    }
    if !*gone {
        *gone = true;
        listener.turn(Turn::Gone);
    }
    Ok(())
}

/// Keeps the newest of what comes.
struct Ring<'k, T> {
    most: usize,
    keep: &'k mut dyn FnMut(&Event<'_>) -> Option<T>,
    last: Last<T>,
}

/// A ring of whatever is kept: all that a way of reading needs to know of it.
trait Rings: Sink {
    /// Whether no more fits.
    fn is_full(&self) -> bool;
    /// How many fit.
    fn most(&self) -> usize;
    /// Forgets everything.
    fn clear(&mut self);
    /// Says how far back was looked when that was given up.
    fn give_up(&mut self, length: u64);
}

impl<'k, T> Ring<'k, T> {
    fn new(most: usize, keep: &'k mut dyn FnMut(&Event<'_>) -> Option<T>) -> Ring<'k, T> {
        Ring { most, keep, last: Last { kept: VecDeque::new(), notes: 0, torn: None, gave_up: None } }
    }
}

impl<T> Rings for Ring<'_, T> {
    fn is_full(&self) -> bool {
        self.last.kept.len() >= self.most
    }

    fn most(&self) -> usize {
        self.most
    }

    fn clear(&mut self) {
        self.last = Last { kept: VecDeque::new(), notes: 0, torn: None, gave_up: None };
    }

    fn give_up(&mut self, length: u64) {
        self.last.gave_up = Some(length);
    }
}

impl<T> Sink for Ring<'_, T> {
    fn event(&mut self, event: &Event<'_>) {
        let Some(kept) = (self.keep)(event) else { return };
        self.last.kept.push_back(kept);
        if self.last.kept.len() > self.most {
            self.last.kept.pop_front();
        }
    }

    fn note(&mut self, note: Note) {
        self.last.notes += 1;
        if note.kind == NoteKind::Torn {
            self.last.torn = Some(note);
        }
    }
}
