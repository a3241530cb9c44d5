//! A file that has to be read from its beginning: a document, a text for people, something compressed. It is read again when it has
//! changed and is quiet, and what was not there before is given. Of an event no more than a fingerprint is remembered.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
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
    pub fn new(path: &Path, format: &'static dyn Format) -> Whole {
        Whole {
            format,
            consumed: 0,
            path: path.to_owned(),
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
        self.consumed += pass(&self.path, self.format, &mut both)?;
        self.prints = both.prints;
        Ok(())
    }

    /// Everything there is.
    pub fn all(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        self.read = self.stamp();
        self.again(listener)
    }

    fn stamp(&self) -> Option<Stamp> {
        let metadata = fs::metadata(&self.path).ok()?;
        Some((metadata.len(), metadata.modified().ok()))
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
        if std::mem::take(&mut self.gone) {
            return Ok(Looked::Anew(Turn::Rotated));
        }
        let stamp = Some((metadata.len(), metadata.modified().ok()));
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
        let mut now = Prints::default();
        match pass(&self.path, self.format, &mut now) {
            Ok(consumed) => self.consumed += consumed,
            Err(error) => match error.problem {
                Problem::Truncated(_) | Problem::Corrupt(_) | Problem::Missing => return Ok(()),
                _ => return Err(error),
            },
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
        self.consumed += pass(&self.path, self.format, &mut news)?;
        self.prints = now;
        Ok(())
    }
}

/// Reads a file once, and says how many bytes that took.
fn pass(path: &Path, format: &dyn Format, sink: &mut dyn Sink) -> Result<u64, Error> {
    let mut source = Source::open(path, Passes::Once)?;
    let consumed = source.consumed();
    let mut reading = Reading::new(format, Want::All);
    let read = reading.feed_all(&mut source.pass()?, sink);
    // What stands before the damage is worth having.
    reading.end(sink);
    read.map_err(|error| match Error::inside(&error) {
        Some(inside) => inside.again(),
        None => Error::at(path, Problem::Unreadable, error),
    })?;
    Ok(consumed())
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
