//! A session in memory: its events, and what the folds make of them. This is the shortest way from bytes to answers. It composes folds
//! and must not hold rules of its own.

mod calls;
mod stream;
mod usage;

use std::borrow::Cow;
use std::io::Read;

pub use calls::SessionCall;
pub use stream::{EventStream, RecordStream};
pub use usage::SessionUsage;

use crate::convert::{Carry, convert};
use crate::evidence::{self, RateLimit, ToolSchema};
use crate::format::{Format, Head};
use crate::frame::RECORD_SIZE_MAX;
use crate::ledger::CountedOutline;
use crate::loss::LossReport;
use crate::model::{Event, Note, Outline, Spine};
use crate::read::{self, Collected};
use crate::{Detected, Error, Registry};

/// A source that was read whole. Its events take several times the memory of its bytes; [`Session::stream`] reads larger sources.
///
/// ```
/// use stenograph::prelude::*;
///
/// # fn main() -> Result<(), stenograph::Error> {
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/formats/claude_code/fixtures/session.jsonl"));
/// let session = Session::from_bytes(bytes)?;
/// assert_eq!(session.format().info().name, "claude-code");
/// let prompts = session.spine().filter(|event| event.role() == Some(Role::User)).count();
/// assert!(prompts > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Session<'b> {
    bytes: Cow<'b, [u8]>,
    format: &'static dyn Format,
    registry: Registry,
    read: Collected,
    outline: Outline,
}

impl<'b> Session<'b> {
    /// Reads a source, and detects its format. Compressed bytes are not decoded.
    pub fn from_bytes(bytes: &'b [u8]) -> Result<Session<'b>, Error> {
        Registry::built_in().session(bytes)
    }

    /// Reads all that a reader gives, and detects its format.
    pub fn from_reader(mut reader: impl Read) -> Result<Session<'static>, Error> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        Registry::built_in().session(bytes)
    }

    /// Reads the events that a reader gives one after the other, and holds none of them. For sources that are larger than memory.
    pub fn stream<R: Read>(reader: R) -> Result<EventStream<R>, Error> {
        Registry::built_in().stream(reader)
    }

    /// Reads a source of a known format. [`Session::convert_to`] then knows the built-in formats; [`Registry::session`] adds others.
    pub fn of(format: &'static dyn Format, bytes: impl Into<Cow<'b, [u8]>>) -> Session<'b> {
        let bytes = bytes.into();
        let read = read::all(format, &bytes);
        let mut outline = CountedOutline::new(Some(format));
        read.events.iter().for_each(|event| outline.add(event));
        Session { bytes, format, registry: Registry::default(), read, outline: outline.finish() }
    }

    /// Its format.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// Its source.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All its events, in the order of the source: including abandoned branches and side conversations.
    pub fn events(&self) -> &[Event<'static>] {
        &self.read.events
    }

    /// The events of each record together, in the order of the source.
    pub fn records(&self) -> impl Iterator<Item = &[Event<'static>]> {
        self.read.events.chunk_by(|last, next| next.part.follows(last.part))
    }

    /// What reading found wrong in the source.
    pub fn notes(&self) -> &[Note] {
        &self.read.notes
    }

    /// Its id, title, models, first and last moment.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Its title: the last title or summary.
    pub fn title(&self) -> Option<&str> {
        self.outline.header.title.as_deref()
    }

    /// The conversation that continues: without abandoned branches, side conversations and repeated records.
    pub fn spine(&self) -> impl Iterator<Item = &Event<'static>> {
        let mut spine = Spine::of(self.events());
        self.events().iter().filter(move |event| spine.left_out(event).is_none())
    }

    /// Its tool calls, and what came of each.
    pub fn calls(&self) -> impl Iterator<Item = SessionCall<'_>> {
        calls::calls(self.events()).into_iter()
    }

    /// The texts that instruct its model: system prompts, and instructions in headers.
    pub fn instructions(&self) -> impl Iterator<Item = String> {
        self.events().iter().flat_map(evidence::instructions)
    }

    /// The tools that its records say the model may call.
    pub fn tool_schemas(&self) -> impl Iterator<Item = ToolSchema> {
        self.events().iter().flat_map(evidence::tool_schemas)
    }

    /// The windows of rate limits, each time a record states them.
    pub fn rate_limits(&self) -> impl Iterator<Item = RateLimit> {
        self.events().iter().flat_map(evidence::rate_limits)
    }

    /// The tokens that its model calls took.
    pub fn usage(&self) -> SessionUsage {
        SessionUsage::of(self)
    }

    /// Converts the session to the format of that name. The report says what the new source does not hold.
    pub fn convert_to(&self, name: &str) -> Result<(Vec<u8>, LossReport), Error> {
        let to = self.registry.named(name).ok_or_else(|| Error::NoSuchFormat(name.to_owned()))?;
        let mut written = Vec::new();
        let outcome = convert(self.format, &mut &*self.bytes, to, &mut written, Carry::Omit)?;
        Ok((written, outcome.losses))
    }
}

impl Registry {
    /// Reads a source, and detects its format among these.
    pub fn session<'b>(&self, bytes: impl Into<Cow<'b, [u8]>>) -> Result<Session<'b>, Error> {
        let bytes = bytes.into();
        let (head, mut rest) = bytes.split_at_checked(Head::LINE_SIZE_MAX).unwrap_or((&bytes, &[]));
        let format = self.detect_source(head, &mut rest)?.only()?;
        Ok(Session { registry: self.clone(), ..Session::of(format, bytes) })
    }

    /// Detects the format of what a reader gives, and reads its events one after the other.
    pub fn stream<R: Read>(&self, mut reader: R) -> Result<EventStream<R>, Error> {
        let mut head = Vec::new();
        Head::read(&mut reader, &mut head)?;
        let mut rest = Vec::new();
        let mut recorded = Recorded { reader: &mut reader, bytes: &mut rest }.take(RECORD_SIZE_MAX as u64);
        let format = self.detect_source(&head, &mut recorded)?.only()?;
        head.append(&mut rest);
        Ok(EventStream::new(format, head, reader))
    }
}

/// Keeps the bytes that it reads.
struct Recorded<'r, R> {
    reader: &'r mut R,
    bytes: &'r mut Vec<u8>,
}

impl<R: Read> Read for Recorded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.bytes.extend_from_slice(buffer.get(..length).unwrap_or_default());
        Ok(length)
    }
}

impl Detected {
    /// The format, where there is exactly one.
    pub fn only(self) -> Result<&'static dyn Format, Error> {
        match self {
            Detected::Format(format) => Ok(format),
            Detected::Tie(formats) => Err(Error::AmbiguousFormat(formats)),
            Detected::Unknown => Err(Error::UnknownFormat),
        }
    }
}
