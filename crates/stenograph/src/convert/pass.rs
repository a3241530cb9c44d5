//! The writing pass: it passes every event to the writer, and the output both to the caller and to a reader of the target
//! format, whose events it compares with those written. How the source is read is not known here.

use std::collections::VecDeque;
use std::io::Write;

use super::carry_writer::CarryWriter;
use super::early::EarlyResults;
use super::totals::RunningTotal;
use super::{NOTES_MAX, NewSession};
use crate::Error;
use crate::evidence::{hosted_status, nested_events};
use crate::format::{Format, FormatInfo, Wanted};
use crate::ledger::SupersededUsage;
use crate::loss::{LossComparison, LossReport};
use crate::model::{Body, Content, Event, Extra, LeftOut, Note, NoteKind, Outline, Span, Spine};
use crate::read::{Reading, Sink};
use crate::record_schema::RecordSchema;
use crate::text::Str;
use crate::time::Time;
use crate::write::{OutputPiece, Writing};

/// The second pass: writes events and reads them back.
pub struct WritePass<'o> {
    writing: Option<Writing>,
    target: Target<'o>,
    spine: Spine,
    usage: SupersededUsage,
    total: RunningTotal,
    early: EarlyResults,
    stream: Stream,
    to: &'static FormatInfo,
    carry_writer: Option<CarryWriter>,
    new: Option<&'o NewSession>,
}

/// The destination of the output: the caller, and a reader of its format.
struct Target<'o> {
    out: &'o mut dyn Write,
    reading: Option<Reading>,
    /// The requirements of the target agent's own reader.
    schema: RecordSchema,
    /// The number of bytes written.
    offset: u64,
    /// For each record that is not written yet: whether our writer created it, so that it is checked. A record with an
    /// embedded source waits for the next one.
    checks: VecDeque<Check>,
    back: ReadBack,
    failed: Option<Error>,
}

impl Sink for WritePass<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.early.due_before(event).iter().for_each(|result| self.write_now(result));
        let left_out = self.spine.left_out_of(self.to, &self.total.marked(event));
        let is_usage_superseded = self.usage.is_superseded(event);
        let adopted = self.new.map(|new| new.adopt(event));
        let event = adopted.as_ref().unwrap_or(event);
        if event.is_oversize() {
            return self.target.back.comparison.left_out(event, "over the size limit for records");
        }
        // A record that returns to its own format through the native one is always written.
        if self.stream == Stream::Whole || event.extra.get(self.to.name).is_some() {
            self.target.back.repeats |= event.restates;
            self.target.back.comparison.source(event);
            return self.write(event);
        }
        if let Some(left_out) = left_out {
            self.leave_out(event, left_out);
            return self.skip(event);
        }
        if event.restates {
            // No other record has its content.
            let event = event.as_original();
            self.target.back.comparison.source(&event);
            return self.write(&event);
        }
        if is_usage_superseded {
            let mut event = event.clone();
            event.usage = None;
            self.target.back.comparison.source(&event);
            return self.write(&event);
        }
        self.target.back.comparison.source(event);
        self.write(event);
        if let Some(result) = hosted_result(event) {
            self.write(&result);
        }
    }
}

/// A substitute for the result of a hosted tool, which no record has: other agents require a result for every call. The loss
/// report lists it as invented.
fn hosted_result(event: &Event<'_>) -> Option<Event<'static>> {
    let Body::ToolCall { call, name, .. } = &event.body else { return None };
    let status = hosted_status(event)?;
    let (text, error) = match status.as_deref() {
        Some("completed") => ("(completed; the result is not recorded)", None),
        Some("failed" | "incomplete") => ("(failed; the result is not recorded)", Some(true)),
        Some(_) | None => ("(not completed; no result is recorded)", None),
    };
    let own = |text: &Option<Str<'_>>| text.as_deref().map(|text| Str::Owned(text.to_owned()));
    let body =
        Body::ToolResult { call: own(call), name: Some(name.to_string().into()), content: Content::text(text), error };
    Some(Event {
        session: own(&event.session),
        thread: own(&event.thread),
        parent: own(&event.id),
        time: event.time.clone().map(Time::into_owned),
        ..Event::new(body)
    })
}

/// Why a fact without content is not written.
const REPORTS_ON_ANOTHER: &str = "repeats another record or reports on it";

/// Which events of the source are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// All: to the format of the source, and to the native one, which has a place for everything.
    Whole,
    /// The active conversation.
    Spine,
}

impl<'o> WritePass<'o> {
    /// A pass that writes into `out`.
    #[expect(clippy::too_many_arguments, reason = "each is the result of another step of the conversion")]
    pub fn new(
        to: &dyn Format,
        outline: &Outline,
        out: &'o mut dyn Write,
        stream: Stream,
        (spine, usage): (Spine, SupersededUsage),
        early: EarlyResults,
        carry_writer: Option<CarryWriter>,
        new: Option<&'o NewSession>,
    ) -> WritePass<'o> {
        let (name, native) = (to.info().name, to.info().name == crate::wire::NAME);
        let own = outline.origin == name;
        let target = Target {
            out,
            reading: Some(Reading::new(to, Wanted::All)),
            schema: if own { RecordSchema::default() } else { RecordSchema::new(to.info().record_schema) },
            offset: 0,
            checks: VecDeque::new(),
            back: ReadBack {
                comparison: LossComparison::new(move |origin| native || origin == name),
                repeats: false,
                notes: Vec::new(),
            },
            failed: None,
        };
        let (writing, total) = (Some(Writing::new(to, outline)), RunningTotal::default());
        WritePass { writing, target, spine, usage, total, early, stream, to: to.info(), carry_writer, new }
    }

    /// Takes the next bytes of the source, before they are read.
    pub fn source(&mut self, chunk: &[u8]) -> Result<(), Error> {
        self.carry_writer.as_mut().map_or(Ok(()), |carry_writer| carry_writer.source(chunk))
    }

    /// The error since the last call, if any.
    pub fn failure(&mut self) -> Result<(), Error> {
        self.target.failed.take().map_or(Ok(()), Err)
    }
}

impl WritePass<'_> {
    /// Reports an event that is not written. A record with a nested record of a side conversation is not a repetition, unless
    /// the source has that record too.
    fn leave_out(&mut self, event: &Event<'_>, left_out: LeftOut) {
        let comparison = &mut self.target.back.comparison;
        if !left_out.is_said_elsewhere() {
            return comparison.left_out(event, left_out.reason());
        }
        let nested = nested_events(event);
        // A fact without content, such as the progress of a hook, cannot be found in another record.
        if nested.is_empty() && event.restates && matches!(event.body, Body::Fact { content: None, .. }) {
            return comparison.repeated(event, REPORTS_ON_ANOTHER);
        }
        let nested: Vec<_> = nested.into_iter().filter(|inner| self.spine.is_only_nested(inner)).collect();
        if nested.is_empty() {
            return comparison.repeated(event, left_out.reason());
        }
        let why = LeftOut::Thread.reason();
        // The events of the nested record report its statements, including usage.
        comparison.left_out(&Event { extra: Extra::default(), ..event.clone() }, why);
        nested.iter().for_each(|inner| comparison.left_out(inner, why));
    }

    /// Writes an event; a result that precedes its call waits for the call.
    fn write(&mut self, event: &Event<'_>) {
        let returns = self.stream == Stream::Whole || event.extra.get(self.to.name).is_some();
        if returns || !self.early.is_early() {
            return self.write_now(event);
        }
        self.skip(event);
        self.early.push(event);
    }

    /// Keeps the source that an event carries although the event is not written now.
    fn skip(&mut self, event: &Event<'_>) {
        let skipped = self.carry_writer.as_mut().map_or(Ok(()), |carry_writer| carry_writer.skip(event));
        self.target.failed = self.target.failed.take().or(skipped.err());
    }

    fn write_now(&mut self, event: &Event<'_>) {
        let Some(writing) = &mut self.writing else { return };
        let pieces = writing.event(event);
        // A record that returns to its own format is what the agent wrote, so it is not checked.
        let check = if event.extra.get(self.to.name).is_none() { Check::Needed } else { Check::Agents };
        self.target.expect(&pieces, check);
        let pieces = match &mut self.carry_writer {
            Some(carry_writer) => carry_writer.embed(event, pieces),
            None => Ok(pieces),
        };
        match pieces {
            Ok(pieces) => self.target.take(pieces),
            Err(error) => self.target.failed = self.target.failed.take().or(Some(error)),
        }
    }

    /// Ends the output and returns the loss report and the notes.
    pub fn finish(mut self) -> Result<(LossReport, Vec<Note>), Error> {
        self.early.drain().iter().for_each(|result| self.write_now(result));
        let pieces = self.writing.take().map(Writing::finish).unwrap_or_default();
        self.target.expect(&pieces, Check::Needed);
        let pieces = match self.carry_writer.take() {
            Some(carry_writer) => carry_writer.finish(pieces)?,
            None => pieces,
        };
        self.target.take(pieces);
        if let Some(error) = self.target.failed {
            return Err(error);
        }
        if let Some(reading) = self.target.reading.take() {
            reading.end(&mut self.target.back);
        }
        self.target.out.flush()?;
        let ReadBack { comparison, notes, .. } = self.target.back;
        Ok((comparison.finish(), notes))
    }
}

/// Whether a record is checked against the target's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    Needed,
    /// The target agent wrote it.
    Agents,
}

impl Target<'_> {
    /// Announces the records among these pieces, which are taken in the same order.
    fn expect(&mut self, pieces: &[OutputPiece], check: Check) {
        let records = pieces.iter().filter(|piece| matches!(piece, OutputPiece::Record(_)));
        self.checks.extend(records.map(|_| check));
    }

    fn take(&mut self, pieces: Vec<OutputPiece>) {
        for piece in pieces {
            if let OutputPiece::Record(record) = &piece
                && self.checks.pop_front() == Some(Check::Needed)
            {
                self.check(record);
            }
            let (OutputPiece::Record(bytes) | OutputPiece::Glue(bytes)) = piece;
            self.offset += bytes.len() as u64;
            if self.failed.is_none() {
                self.failed = self.out.write_all(&bytes).err().map(Error::from);
            }
            if let Some(reading) = &mut self.reading {
                reading.feed(&bytes, &mut self.back);
            }
        }
    }

    /// Checks a record against the target's schema.
    fn check(&mut self, record: &[u8]) {
        let objection = std::str::from_utf8(record).ok().and_then(|record| self.schema.objection(record));
        if let Some(objection) = objection {
            let at = Span { offset: self.offset, length: record.len() as u64, line: 0 };
            self.back.note(Note::new(NoteKind::SchemaMismatch, at, objection));
        }
    }
}

/// Passes the events read back to the comparison.
struct ReadBack {
    comparison: LossComparison,
    /// Whether restatements were written. If not, restatements that are read back are how the target repeats its records, and
    /// are ignored.
    repeats: bool,
    notes: Vec<Note>,
}

impl Sink for ReadBack {
    fn event(&mut self, event: &Event<'_>) {
        if self.repeats || !event.restates {
            self.comparison.target(event);
        }
    }

    fn note(&mut self, note: Note) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }
}
