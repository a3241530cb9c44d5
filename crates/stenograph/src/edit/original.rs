//! Sources to edit: [`EditSource`] is read several times and never held, [`Original`] is small and in memory with its events.

use std::io::{self, Read, Write};

use super::apply::{Edited, carry_out};
use super::gaps::{each_between, gaps};
use super::sketch::{SketchBuilder, Sketches};
use super::{Plan, SIZE_MAX};
use crate::convert::Reopen;
use crate::format::{Format, Wanted};
use crate::model::{Event, Note, NoteKind, Outline};
use crate::read::{self, Reading, Sink};

/// A source to edit. It holds the sketches of the events, not the events.
pub struct EditSource<'a> {
    /// Its format.
    pub format: &'a dyn Format,
    pub(super) source: &'a mut dyn Reopen,
    /// The sketches of its events. A plan refers to events by their numbers, from 0.
    pub sketches: Sketches,
    /// The outline of the session.
    pub outline: Outline,
    pub(super) notes: NoteCounts,
}

impl std::fmt::Debug for EditSource<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (format, events) = (self.format.info().name, self.sketches.len());
        formatter.debug_struct("EditSource").field("format", &format).field("events", &events).finish_non_exhaustive()
    }
}

/// Refuses a format whose sources are never edited.
fn refuse_never_edited(format: &dyn Format) -> io::Result<()> {
    let info = format.info();
    if !info.is_never_edited {
        return Ok(());
    }
    let message = format!("{} cannot be edited: one record holds a whole conversation, or repeats others", info.title);
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

impl<'a> EditSource<'a> {
    /// Reads a source, and calls `each` with every event. Refuses formats whose sources are never edited.
    pub fn read(
        format: &'a dyn Format,
        source: &'a mut dyn Reopen,
        each: &mut dyn FnMut(&Event<'_>),
    ) -> io::Result<EditSource<'a>> {
        refuse_never_edited(format)?;
        let mut builder = SketchBuilder::default();
        let mut outline = Outline::new(format.info().name);
        let mut notes = NoteCounts::default();
        let mut add = |event: &Event<'_>| {
            builder.add(event);
            outline.add(event);
            each(event);
        };
        pass(format, source, &mut Each { event: &mut add, note: &mut |note| notes.add(note.kind) })?;
        let mut search = builder.search_names();
        if search.is_needed() {
            let gaps = gaps(format, search.sketches(), |numbers| !search.needs_any(numbers));
            each_between(format, &mut *source.open()?, &gaps, &mut |number, event| search.add(number, event))?;
        }
        Ok(EditSource { format, source, sketches: search.finish(), outline, notes })
    }

    /// Reads the source again, and calls `each` with every event.
    pub fn each(&mut self, each: &mut dyn FnMut(&Event<'_>)) -> io::Result<()> {
        pass(self.format, self.source, &mut Each { event: each, note: &mut |_| {} })
    }

    /// Reads the source again, and calls `each` with the events of these numbers, which must be in order.
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

/// A sink that calls functions.
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

/// The number of notes of each kind.
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

/// The output of an edit: it is read back, and may have to be written again with another method.
pub trait Rewritable: Write {
    /// Discards everything that was written.
    fn restart(&mut self) -> io::Result<()>;

    /// Reads everything that was written.
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

/// A source in memory with its events.
pub struct Original<'a> {
    /// Its format.
    pub format: &'a dyn Format,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its events, in order. A plan refers to them by their numbers, from 0.
    pub events: Vec<Event<'static>>,
}

impl std::fmt::Debug for Original<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (format, events) = (self.format.info().name, self.events.len());
        formatter.debug_struct("Original").field("format", &format).field("events", &events).finish_non_exhaustive()
    }
}

impl<'a> Original<'a> {
    /// Reads a source. Refuses sources over [`SIZE_MAX`].
    pub fn read(format: &'a dyn Format, bytes: &'a [u8]) -> io::Result<Original<'a>> {
        refuse_never_edited(format)?;
        if bytes.len() > SIZE_MAX {
            let message = format!("the source is larger than {} MiB, the limit for editing in memory", SIZE_MAX >> 20);
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        Ok(Original { format, bytes, events: read::all(format, bytes).events })
    }
}

/// An edited source in memory.
#[derive(Debug)]
pub struct Applied {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its events.
    pub events: Vec<Event<'static>>,
    /// The outcome of the edit.
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
