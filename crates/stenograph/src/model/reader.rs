//! How a reader hands over the events of a source. Each format has a [`Reader`]; whoever looks at events is a [`Sink`].

use super::{Event, Note};
use crate::frame::Record;

/// What the caller will look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Everything.
    All,
    /// Only events with usage, and of those only the numbers and what it takes to count them once.
    Usage,
}

/// Reads the records of one format. It does no input or output, and what it does not understand it notes.
pub trait Reader: Send {
    /// Reads one record.
    fn record(&mut self, record: Record<'_>, out: &mut dyn Sink);

    /// Gives what is still open when the source ends.
    fn finish(&mut self, _out: &mut dyn Sink) {}

    /// The offset of the first byte that is read but not yet given as an event: the start of an open block of text.
    fn open(&self) -> Option<u64> {
        None
    }
}

/// Takes what a reader finds.
pub trait Sink {
    /// An event. It borrows from the reader's window; keep what you need.
    fn event(&mut self, event: &Event<'_>);

    /// A remark.
    fn note(&mut self, note: Note);
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn event(&mut self, event: &Event<'_>) {
        (**self).event(event);
    }

    fn note(&mut self, note: Note) {
        (**self).note(note);
    }
}
