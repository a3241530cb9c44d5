//! A file that must be read from its beginning: a document, rendered text or compressed data. It is read again after it has
//! changed and become quiet, and new events are given. Only a fingerprint of each event is kept.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stenograph::format::{Format, Wanted};
use stenograph::model::{Event, Note, NoteKind};
use stenograph::read::{Reading, Sink};
use stenograph::wire;

use super::{EndSink, FollowChange, Listener, LookResult, missing};
use crate::error::{Error, Problem};
use crate::source::{Passes, Source};

/// How many events are told apart. Later events are identified by their number alone.
const FINGERPRINTS_MAX: usize = 1 << 20;

/// After how many consecutive looks with changes the file is read even though it is not quiet.
const CHANGING_LOOKS_MAX: u32 = 4;

#[derive(Debug)]
pub(super) struct Whole {
    pub format: &'static dyn Format,
    pub consumed: u64,
    path: PathBuf,
    /// The file to read next, if it is already open: another one may have its name by then.
    opened: Option<File>,
    fingerprints: EventFingerprints,
    /// The file's size and time when it was last read, and at the last look.
    read: Option<SizeAndTime>,
    seen: Option<SizeAndTime>,
    changing_looks: u32,
    gone: bool,
}

type SizeAndTime = (u64, Option<SystemTime>);

/// The fingerprints of a file's events.
#[derive(Debug, Default)]
struct EventFingerprints {
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
            fingerprints: EventFingerprints::default(),
            read: None,
            seen: None,
            changing_looks: 0,
            gone: false,
        }
    }

    /// Collects the last events.
    pub fn last(&mut self, sink: &mut dyn EndSink) -> Result<(), Error> {
        self.read = self.stamp();
        let mut both = FingerprintingSink { fingerprints: EventFingerprints::default(), sink };
        self.consumed += pass(&mut self.open()?, self.format, &mut both)?;
        self.fingerprints = both.fingerprints;
        Ok(())
    }

    /// Gives all events.
    pub fn all(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        self.read = self.stamp();
        self.reread(listener)
    }

    /// The size and time of the file to read next.
    fn stamp(&self) -> Option<SizeAndTime> {
        self.opened.as_ref().map_or_else(|| fs::metadata(&self.path), File::metadata).ok().as_ref().map(stamp)
    }

    fn open(&mut self) -> Result<Source, Error> {
        match self.opened.take() {
            Some(file) => Source::of_open(&self.path, file, Passes::Many),
            None => Source::open(&self.path, Passes::Many),
        }
    }

    /// Looks once and gives the new events.
    pub fn look(&mut self, listener: &mut dyn Listener) -> Result<LookResult, Error> {
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) => {
                missing(&self.path, error, &mut self.gone, listener)?;
                return Ok(LookResult::Same);
            }
        };
        if self.gone {
            return match File::open(&self.path) {
                Ok(file) => Ok(LookResult::Restart(FollowChange::Rotated, Some(file))),
                // It disappeared again: the next look handles it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LookResult::Same),
                Err(error) => Err(Error::at(&self.path, Problem::Unreadable, error)),
            };
        }
        let stamp = Some(stamp(&metadata));
        let quiet = stamp == self.seen;
        self.seen = stamp;
        if stamp == self.read {
            return Ok(LookResult::Same);
        }
        self.changing_looks += 1;
        if quiet || self.changing_looks >= CHANGING_LOOKS_MAX {
            (self.read, self.changing_looks) = (stamp, 0);
            self.reread(listener)?;
        }
        Ok(LookResult::Same)
    }

    /// Reads the file again and gives the new events. An incompletely written file is left for later.
    fn reread(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        // Both passes read one open file, because another one may take the name between them.
        let mut source = match self.open() {
            Ok(source) => source,
            Err(error) if error.problem == Problem::Missing => {
                // Nothing was read: the next file with this name is new, even if it looks the same.
                self.read = None;
                return Ok(());
            }
            Err(error) if is_half_written(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut now = EventFingerprints::default();
        match pass(&mut source, self.format, &mut now) {
            Ok(consumed) => self.consumed += consumed,
            Err(error) if is_half_written(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        let before = std::mem::take(&mut self.fingerprints);
        if now.torn && before.events > 0 {
            self.fingerprints = before;
            return Ok(());
        }
        if before.events > 0 && before.counts.keys().all(|fingerprint| !now.counts.contains_key(fingerprint)) {
            listener.file_change(FollowChange::Rewritten);
        }
        let mut news = NewEvents { left: before, number: 0, listener };
        self.consumed += pass(&mut source, self.format, &mut news)?;
        self.fingerprints = now;
        Ok(())
    }
}

fn stamp(metadata: &Metadata) -> SizeAndTime {
    (metadata.len(), metadata.modified().ok())
}

fn is_half_written(error: &Error) -> bool {
    matches!(error.problem, Problem::Truncated(_) | Problem::Corrupt(_))
}

/// Reads a file from its beginning. Returns how many bytes that took.
fn pass(source: &mut Source, format: &dyn Format, sink: &mut dyn Sink) -> Result<u64, Error> {
    let (consumed, place) = (source.consumed(), source.place().clone());
    let before = consumed();
    let mut reading = Reading::new(format, Wanted::All);
    let read = reading.feed_all(&mut source.pass()?, sink);
    // The part before the damage is still useful.
    reading.end(sink);
    read.map_err(|error| match Error::inside(&error) {
        Some(inside) => inside.again(),
        None => Error::from_system(&place, Problem::Unreadable, error),
    })?;
    Ok(consumed() - before)
}

fn fingerprint_of(event: &Event<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    wire::event(event).hash(&mut hasher);
    hasher.finish()
}

impl Sink for EventFingerprints {
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        if self.events <= FINGERPRINTS_MAX {
            *self.counts.entry(fingerprint_of(event)).or_default() += 1;
        }
    }

    fn note(&mut self, note: Note) {
        self.torn |= note.kind == NoteKind::Torn;
    }
}

/// Records fingerprints and passes events on.
struct FingerprintingSink<'s> {
    fingerprints: EventFingerprints,
    sink: &'s mut dyn EndSink,
}

impl Sink for FingerprintingSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.fingerprints.event(event);
        self.sink.event(event);
    }

    fn note(&mut self, note: Note) {
        self.sink.note(note);
    }
}

/// Passes on events that the previous reading did not have.
struct NewEvents<'s> {
    left: EventFingerprints,
    number: usize,
    listener: &'s mut dyn Listener,
}

impl Sink for NewEvents<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.number += 1;
        let known = match self.left.counts.get_mut(&fingerprint_of(event)).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                true
            }
            None => self.number > FINGERPRINTS_MAX && self.number <= self.left.events,
        };
        if !known {
            self.listener.event(event);
        }
    }
}
