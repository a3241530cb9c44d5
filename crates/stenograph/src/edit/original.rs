//! What is edited: a source that is read again and again and never held, and one that is small and in memory with all that it says.

use std::io::{self, Read, Write};

use super::apply::{Edited, carry_out};
use super::gaps::{each_between, gaps};
use super::sketch::{SketchBuilder, Sketches};
use super::{Plan, SIZE_MAX};
use crate::convert::Reopen;
use crate::format::{Format, Wanted};
use crate::model::{Event, Note, NoteKind, Outline};
use crate::read::{self, Reading, Sink};

/// A source that is edited, of which a few bytes for each event are held.
pub struct EditSource<'a> {
    /// Its format.
    pub format: &'a dyn Format,
    pub(super) source: &'a mut dyn Reopen,
    /// What planning knows of its events. A plan speaks of them by their numbers, from 0.
    pub sketches: Sketches,
    /// The session in a few lines.
    pub outline: Outline,
    pub(super) notes: NoteCounts,
}

impl std::fmt::Debug for EditSource<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (format, events) = (self.format.info().name, self.sketches.len());
        formatter.debug_struct("EditSource").field("format", &format).field("events", &events).finish_non_exhaustive()
    }
}

impl<'a> EditSource<'a> {
    /// Reads a source and shows each event.
    pub fn read(
        format: &'a dyn Format,
        source: &'a mut dyn Reopen,
        each: &mut dyn FnMut(&Event<'_>),
    ) -> io::Result<EditSource<'a>> {
        let mut builder = SketchBuilder::default();
        let mut outline = Outline::new(format.info().name);
        let mut notes = NoteCounts::default();
        let mut notice = |event: &Event<'_>| {
            builder.add(event);
            outline.add(event);
            each(event);
        };
        pass(format, source, &mut Each { event: &mut notice, note: &mut |note| notes.add(note.kind) })?;
        let mut naming = builder.naming();
        if naming.is_wanted() {
            let gaps = gaps(format, naming.sketches(), |numbers| !naming.wants(numbers));
            each_between(format, &mut *source.open()?, &gaps, &mut |number, event| naming.add(number, event))?;
        }
        Ok(EditSource { format, source, sketches: naming.finish(), outline, notes })
    }

    /// Shows each event once more.
    pub fn each(&mut self, each: &mut dyn FnMut(&Event<'_>)) -> io::Result<()> {
        pass(self.format, self.source, &mut Each { event: each, note: &mut |_| {} })
    }

    /// Shows the events with these numbers once more. The numbers are in order.
    pub fn each_of(&mut self, numbers: &[usize], each: &mut dyn FnMut(usize, &Event<'_>)) -> io::Result<()> {
        let wants = |number: usize| numbers.binary_search(&number).is_ok();
        let gaps = gaps(self.format, &self.sketches, |record| !record.clone().any(wants));
        each_between(self.format, &mut *self.source.open()?, &gaps, &mut |number, event| {
            if wants(number) {
                each(number, event);
            }
        })
    }
}

fn pass(format: &dyn Format, source: &mut dyn Reopen, sink: &mut dyn Sink) -> io::Result<()> {
    let mut reading = Reading::new(format, Wanted::All);
    reading.feed_all(&mut *source.open()?, sink)?;
    reading.end(sink);
    Ok(())
}

/// Shows events and notes to functions.
struct Each<'f> {
    event: &'f mut dyn FnMut(&Event<'_>),
    note: &'f mut dyn FnMut(Note),
}

impl Sink for Each<'_> {
    fn event(&mut self, event: &Event<'_>) {
        (self.event)(event);
    }

    fn note(&mut self, note: Note) {
        (self.note)(note);
    }
}

/// How many notes of each kind reading gave.
#[derive(Clone, Debug, Default)]
pub(super) struct NoteCounts([usize; NoteKind::ALL.len()]);

impl NoteCounts {
    pub(super) fn add(&mut self, kind: NoteKind) {
        let at = NoteKind::ALL.iter().position(|known| *known == kind);
        if let Some(count) = at.and_then(|at| self.0.get_mut(at)) {
            *count += 1;
        }
    }

    pub(super) fn of(&self, kind: NoteKind) -> usize {
        let at = NoteKind::ALL.iter().position(|known| *known == kind);
        at.and_then(|at| self.0.get(at)).copied().unwrap_or(0)
    }
}

/// Where an edited source is written: it is read back, and may have to be written once more in another way.
pub trait Rewritable: Write {
    /// Forgets what was written.
    fn restart(&mut self) -> io::Result<()>;

    /// Reads what was written, from the beginning.
    fn reread(&mut self) -> io::Result<Box<dyn Read + '_>>;
}

impl Rewritable for Vec<u8> {
    fn restart(&mut self) -> io::Result<()> {
        self.clear();
        Ok(())
    }

    fn reread(&mut self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.as_slice()))
    }
}

/// A source in memory, and what it says.
pub struct Original<'a> {
    /// Its format.
    pub format: &'a dyn Format,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its events, in order. A plan speaks of them by their numbers, from 0.
    pub events: Vec<Event<'static>>,
}

impl std::fmt::Debug for Original<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (format, events) = (self.format.info().name, self.events.len());
        formatter.debug_struct("Original").field("format", &format).field("events", &events).finish_non_exhaustive()
    }
}

impl<'a> Original<'a> {
    /// Reads a source. One that is too large to be held is refused.
    pub fn read(format: &'a dyn Format, bytes: &'a [u8]) -> io::Result<Original<'a>> {
        if bytes.len() > SIZE_MAX {
            let said = format!("the source is larger than {} MiB, the limit for editing in memory", SIZE_MAX >> 20);
            return Err(io::Error::new(io::ErrorKind::Unsupported, said));
        }
        Ok(Original { format, bytes, events: read::all(format, bytes).events })
    }
}

/// An edited source in memory.
#[derive(Debug)]
pub struct Applied {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What they say.
    pub events: Vec<Event<'static>>,
    /// What was done.
    pub edited: Edited,
}

impl std::ops::Deref for Applied {
    type Target = Edited;

    fn deref(&self) -> &Edited {
        &self.edited
    }
}

/// Carries out a plan in memory.
pub fn apply(original: &Original<'_>, plan: &Plan) -> io::Result<Applied> {
    let mut source = original.bytes;
    let mut source = EditSource::read(original.format, &mut source, &mut |_| {})?;
    let mut bytes = Vec::new();
    let edited = carry_out(&mut source, plan, &mut bytes)?;
    let events = read::all(original.format, &bytes).events;
    Ok(Applied { bytes, events, edited })
}
