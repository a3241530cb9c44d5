//! A file that has to be read from its beginning: a document, a text for people, something compressed. It is read again when it has
//! changed and is quiet, and what was not there before is given. Of an event no more than a fingerprint is remembered.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stenograph::format::{Format, Want};
use stenograph::model::{Event, Note, NoteKind};
use stenograph::read::{Reading, Sink};
use stenograph::wire;

use super::{Listener, Looked, Rings, Turn, missing};
use crate::error::{Error, Problem};
use crate::source::{Passes, Source};

/// How many events are told apart. What stands further on in a file is known by its number alone.
const PRINTS_MAX: usize = 1 << 20;

/// At how many looks in a row a file may have changed before it is read all the same.
const RESTLESS_MAX: u32 = 4;

#[derive(Debug)]
pub(super) struct Whole {
    pub format: &'static dyn Format,
    pub consumed: u64,
    path: PathBuf,
    /// The file that is read next, where it is open already: another one may have its name by then.
    opened: Option<File>,
    prints: Prints,
    /// How the file looked when it was read last, and at the last look.
    read: Option<Stamp>,
    seen: Option<Stamp>,
    restless: u32,
    gone: bool,
}

type Stamp = (u64, Option<SystemTime>);

/// What a file said, by fingerprint.
#[derive(Debug, Default)]
struct Prints {
    counts: HashMap<u64, u32>,
    events: usize,
    torn: bool,
}

impl Whole {
    pub fn new(path: &Path, format: &'static dyn Format, opened: File) -> Whole {
        Whole {
            format,
            consumed: 0,
            path: path.to_owned(),
            opened: Some(opened),
            prints: Prints::default(),
            read: None,
            seen: None,
            restless: 0,
            gone: false,
        }
    }

    /// The last events there are now.
    pub fn last(&mut self, ring: &mut dyn Rings) -> Result<(), Error> {
        self.read = self.stamp();
        let mut both = Both { prints: Prints::default(), sink: ring };
        self.consumed += pass(&mut self.open()?, self.format, &mut both)?;
        self.prints = both.prints;
        Ok(())
    }

    /// Everything there is.
    pub fn all(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        self.read = self.stamp();
        self.again(listener)
    }

    /// How the file looks that is read next.
    fn stamp(&self) -> Option<Stamp> {
        self.opened.as_ref().map_or_else(|| fs::metadata(&self.path), File::metadata).ok().as_ref().map(stamp)
    }

    fn open(&mut self) -> Result<Source, Error> {
        match self.opened.take() {
            Some(file) => Source::of_open(&self.path, file, Passes::Many),
            None => Source::open(&self.path, Passes::Many),
        }
    }

    /// Looks once, and gives what came since.
    pub fn look(&mut self, listener: &mut dyn Listener) -> Result<Looked, Error> {
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) => {
                missing(&self.path, error, &mut self.gone, listener)?;
                return Ok(Looked::Same);
            }
        };
        if self.gone {
            return match File::open(&self.path) {
                Ok(file) => Ok(Looked::Anew(Turn::Rotated, Some(file))),
                // It went away again: the next look finds out.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Looked::Same),
                Err(error) => Err(Error::at(&self.path, Problem::Unreadable, error)),
            };
        }
        let stamp = Some(stamp(&metadata));
        let quiet = stamp == self.seen;
        self.seen = stamp;
        if stamp == self.read {
            return Ok(Looked::Same);
        }
        self.restless += 1;
        if quiet || self.restless >= RESTLESS_MAX {
            (self.read, self.restless) = (stamp, 0);
            self.again(listener)?;
        }
        Ok(Looked::Same)
    }

    /// Reads it again and gives what was not there before. What is half written is left for later.
    fn again(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        // Both passes read one open file: between them another one may take the name.
        let mut source = match self.open() {
            Ok(source) => source,
            Err(error) if error.problem == Problem::Missing => {
                // Nothing was read: whatever has the name next is news, also if it looks alike.
                self.read = None;
                return Ok(());
            }
            Err(error) if is_half_written(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut now = Prints::default();
        match pass(&mut source, self.format, &mut now) {
            Ok(consumed) => self.consumed += consumed,
            Err(error) if is_half_written(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        let before = std::mem::take(&mut self.prints);
        if now.torn && before.events > 0 {
            self.prints = before;
            return Ok(());
        }
        if before.events > 0 && before.counts.keys().all(|print| !now.counts.contains_key(print)) {
            listener.turn(Turn::Rewritten);
        }
        let mut news = News { left: before, number: 0, listener };
        self.consumed += pass(&mut source, self.format, &mut news)?;
        self.prints = now;
        Ok(())
    }
}

fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.len(), metadata.modified().ok())
}

fn is_half_written(error: &Error) -> bool {
    matches!(error.problem, Problem::Truncated(_) | Problem::Corrupt(_))
}

/// Reads a file from its beginning, and says how many bytes that took.
fn pass(source: &mut Source, format: &dyn Format, sink: &mut dyn Sink) -> Result<u64, Error> {
    let (consumed, place) = (source.consumed(), source.place().clone());
    let before = consumed();
    let mut reading = Reading::new(format, Want::All);
    let read = reading.feed_all(&mut source.pass()?, sink);
    // What stands before the damage is worth having.
    reading.end(sink);
    read.map_err(|error| match Error::inside(&error) {
        Some(inside) => inside.again(),
        None => Error::from_system(&place, Problem::Unreadable, error),
    })?;
    Ok(consumed() - before)
}

fn print(event: &Event<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    wire::event(event).hash(&mut hasher);
    hasher.finish()
}

impl Sink for Prints {
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        if self.events <= PRINTS_MAX {
            *self.counts.entry(print(event)).or_default() += 1;
        }
    }

    fn note(&mut self, note: Note) {
        self.torn |= note.kind == NoteKind::Torn;
    }
}

/// Remembers and passes on.
struct Both<'s> {
    prints: Prints,
    sink: &'s mut dyn Rings,
}

impl Sink for Both<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.prints.event(event);
        self.sink.event(event);
    }

    fn note(&mut self, note: Note) {
        self.sink.note(note);
    }
}

/// Passes on what was not there before.
struct News<'s> {
    left: Prints,
    number: usize,
    listener: &'s mut dyn Listener,
}

impl Sink for News<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.number += 1;
        let known = match self.left.counts.get_mut(&print(event)).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                true
            }
            None => self.number > PRINTS_MAX && self.number <= self.left.events,
        };
        if !known {
            self.listener.event(event);
        }
    }

    /// Notes are about the whole file, and were given when it was read first.
    fn note(&mut self, _note: Note) {}
}
