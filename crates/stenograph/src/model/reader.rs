//! The interface between formats and the rest: each format has a [`Reader`], and a [`Sink`] receives its events.

use super::{Event, Note};
use crate::frame::Record;

/// The part of a source that the caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Everything.
    All,
    /// Only events with usage, and of those only the numbers and the fields needed to count each call once.
    Usage,
}

/// Reads the records of one format. It does no I/O, and adds a note about anything it does not understand.
pub trait Reader: Send {
    /// Reads one record.
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink);

    /// Emits the incomplete rest when the source ends.
    fn finish(&mut self, _out: &mut dyn Sink) {}

    /// The offset of the first byte that is read but not yet emitted as an event: the start of an open block of text.
    fn open(&self) -> Option<u64> {
        None
    }
}

/// Receives the output of a reader.
pub trait Sink {
    /// Receives an event. It borrows from the reader's buffer; clone the fields you need.
    fn event(&mut self, event: &Event<'_>);

    /// Receives a note. A sink that does not report problems ignores it.
    fn note(&mut self, _note: Note) {}
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn event(&mut self, event: &Event<'_>) {
        (**self).event(event);
    }

    fn note(&mut self, note: Note) {
        (**self).note(note);
    }
}
