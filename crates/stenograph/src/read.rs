//! Reading: chunks of bytes in, events and notes out. Reading cannot fail. Opening a source can; that is not done here.

mod json_lines;

use std::io;

use crate::evidence::states_model_calls;
use crate::format::Format;
use crate::frame::{Frame, Framer, RECORD_SIZE_MAX};
use crate::model::{Body, Event, Fact, Note, NoteKind, Span, Wanted};
pub use crate::model::{Reader, Sink};
pub use json_lines::{At, JsonLines, JsonRecord, Objects};

/// How many bytes to read from a stream at a time.
const CHUNK_SIZE: usize = 256 << 10;

/// A source being read, in chunks of any size.
pub struct Reading {
    framer: Framer,
    reader: Box<dyn Reader>,
    want: Wanted,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reading").field("framer", &self.framer).finish_non_exhaustive()
    }
}

impl Reading {
    /// Starts to read a source of this format.
    pub fn new(format: &dyn Format, want: Wanted) -> Reading {
        Reading::with_limit(format, want, RECORD_SIZE_MAX)
    }

    /// Starts to read with another limit on the size of a record.
    pub fn with_limit(format: &dyn Format, want: Wanted, size_max: usize) -> Reading {
        Reading { framer: Framer::new(format.info().framing, size_max), reader: format.reader(want), want }
    }

    /// Starts to read in the middle of a source, at the start of a line, for formats that allow it
    /// ([`crate::model::Traits::pieces`]).
    pub fn from_line(format: &dyn Format, want: Wanted, at: Span) -> Reading {
        Reading { framer: Framer::from_line(RECORD_SIZE_MAX, at), reader: format.reader(want), want }
    }

    /// Takes the next bytes of the source.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn Sink) {
        let (reader, mut sink) = (&mut self.reader, Projection { want: self.want, sink });
        self.framer.feed(chunk, &mut |frame| read(frame, reader.as_mut(), &mut sink));
    }

    /// Takes the rest of a stream.
    pub fn feed_all(&mut self, stream: &mut dyn io::Read, sink: &mut dyn Sink) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK_SIZE];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => self.feed(buffer.get(..length).unwrap_or_default(), sink),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The offset before which more input changes nothing: events that end before it are final.
    pub fn stable_until(&self) -> u64 {
        let framed = self.framer.stable_until();
        self.reader.open().map_or(framed, |open| framed.min(open))
    }

    /// Ends the source.
    pub fn end(mut self, sink: &mut dyn Sink) {
        let (reader, mut sink) = (&mut self.reader, Projection { want: self.want, sink });
        self.framer.end(&mut |frame| read(frame, reader.as_mut(), &mut sink));
        reader.finish(&mut sink);
    }
}

fn read(frame: Frame<'_>, reader: &mut dyn Reader, sink: &mut dyn Sink) {
    match frame {
        Frame::Record(record) => reader.record(record, sink),
        Frame::Oversize(span) => {
            let message =
                format!("a record of {} bytes is over the size limit; it can be copied, but not parsed", span.length);
            sink.note(Note::new(NoteKind::Oversize, span, message));
            sink.event(&Event { at: Some(span), ..Event::new(Body::Other { name: None, bytes: None }) });
        }
    }
}

/// Passes on only what the caller wants.
struct Projection<'a> {
    want: Wanted,
    sink: &'a mut dyn Sink,
}

impl Sink for Projection<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match self.want {
            Wanted::All => self.sink.event(event),
            // The ledger also reads the extra fields of these events.
            Wanted::Usage if is_counted(event) => self.sink.event(event),
            Wanted::Usage => {}
        }
    }

    fn note(&mut self, note: Note) {
        if self.want == Wanted::All {
            self.sink.note(note);
        }
    }
}

/// Whether the ledger needs this event: it states a usage, or the running total, session or model that a usage belongs to. An
/// oversize record may state any of these.
pub(crate) fn is_counted(event: &Event<'_>) -> bool {
    // A fact with a model and a folder sets both for the following usage.
    let is_head = || match &event.body {
        Body::Fact { fact: name, .. } => event.model.is_some() && event.cwd.is_some() || *name == Fact::Session,
        _ => false,
    };
    event.usage.is_some() || is_head() || event.is_oversize() || states_model_calls(event)
}

/// The fields of an event that [`Wanted::Usage`] guarantees. The event itself may have more where they cost nothing.
pub fn usage_of<'a>(event: &Event<'a>) -> Option<Event<'a>> {
    is_counted(event).then(|| Event {
        at: event.at,
        session: event.session.clone(),
        thread: event.thread.clone(),
        id: event.id.clone(),
        group: event.group.clone(),
        request_id: event.request_id.clone(),
        restates: event.restates,
        time: event.time.clone(),
        model: event.model.clone(),
        cwd: event.cwd.clone(),
        branch: event.branch.clone(),
        usage: event.usage,
        ..Event::default()
    })
}

/// Collects all events and notes: for small sources and tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// The events, in order.
    pub events: Vec<Event<'static>>,
    /// The notes, in order.
    pub notes: Vec<Note>,
}

impl Sink for Collected {
    fn event(&mut self, event: &Event<'_>) {
        self.events.push(event.clone().into_owned());
    }

    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }
}

/// Reads a whole source that is in memory.
pub fn all(format: &dyn Format, bytes: &[u8]) -> Collected {
    let mut found = Collected::default();
    let mut reading = Reading::new(format, Wanted::All);
    reading.feed(bytes, &mut found);
    reading.end(&mut found);
    found
}
