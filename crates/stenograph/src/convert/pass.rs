//! The pass that writes: every event goes to the writer, what it writes goes out, and into a reader of the target's format, whose
//! events are compared with what was given. How the source is read is not known here.

use std::io::{self, Write};

use super::NOTES_MAX;
use super::carry_writer::CarryWriter;
use super::early::EarlyResults;
use super::totals::RunningTotal;
use crate::evidence::{hosted_status, nested_events};
use crate::format::{Format, Want};
use crate::loss::{Comparison, Report};
use crate::model::{Body, Content, Event, Extra, LeftOut, Note, NoteKind, Outline, Span, Spine};
use crate::read::{Reading, Sink};
use crate::record_schema::RecordSchema;
use crate::text::Str;
use crate::time::Time;
use crate::write::{Writing, Written};

/// The second pass: takes events, writes them, reads them back.
pub struct Pass<'o> {
    writing: Option<Writing>,
    target: Target<'o>,
    spine: Spine,
    total: RunningTotal,
    early: EarlyResults,
    stream: Stream,
    to: &'static str,
    bearer: Option<CarryWriter>,
}

/// Where the output goes: to the caller, and into a reader of its own format.
struct Target<'o> {
    out: &'o mut dyn Write,
    reading: Option<Reading>,
    /// What the target's own reader demands of a record.
    sheet: RecordSchema,
    /// How much was written.
    offset: u64,
    /// Whether what is written now was made here.
    judges: bool,
    back: ReadBack,
    failed: Option<io::Error>,
}

impl Sink for Pass<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.early.due_before(event).iter().for_each(|result| self.write_now(result));
        let left_out = self.total.left_out(event, &mut self.spine);
        if event.is_oversize() {
            return self.target.back.comparison.left_out(event, "larger than any record that is read");
        }
        // A record that returns to its own format through the native one is not weighed either.
        if self.stream == Stream::Whole || event.extra.get(self.to).is_some() {
            self.target.back.repeats |= event.restates;
            self.target.back.comparison.source(event);
            return self.write(event);
        }
        if let Some(left_out) = left_out {
            self.leave_out(event, left_out);
            if let Some(bearer) = &mut self.bearer {
                bearer.passed_over(event);
            }
            return;
        }
        if event.restates {
            // Nothing else says it, so that it is no restatement any more.
            let event = Event { restates: false, ..event.clone() };
            self.target.back.comparison.source(&event);
            return self.write(&event);
        }
        if self.spine.usage_said_later(event) {
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

    fn note(&mut self, _note: Note) {}
}

/// What stands for the result of a call that ran where the model runs, and whose result nobody recorded: other systems take no call
/// without a result. It shows in the loss report as invented.
fn hosted_result(event: &Event<'_>) -> Option<Event<'static>> {
    let Body::ToolCall { call, name, .. } = &event.body else { return None };
    let status = hosted_status(event)?;
    let (said, error) = match status.as_deref() {
        Some("completed") => ("(completed; the result is not recorded)", None),
        Some("failed" | "incomplete") => ("(failed; the result is not recorded)", Some(true)),
        Some(_) | None => ("(not completed; no result is recorded)", None),
    };
    let own = |text: &Option<Str<'_>>| text.as_deref().map(|text| Str::Owned(text.to_owned()));
    let body =
        Body::ToolResult { call: own(call), name: Some(name.to_string().into()), content: Content::text(said), error };
    Some(Event {
        session: own(&event.session),
        thread: own(&event.thread),
        parent: own(&event.id),
        time: event.time.clone().map(Time::into_owned),
        ..Event::new(body)
    })
}

/// Why a fact without words is not written.
const REPORTS_ON_ANOTHER: &str = "repeats another record or reports on it";

/// What of the source is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// All of it: into its own format, and into the native one, which has a place for everything.
    Whole,
    /// The conversation that goes on.
    Spine,
}

impl<'o> Pass<'o> {
    /// A pass that writes into `out`.
    pub fn new(
        to: &dyn Format,
        outline: &Outline,
        out: &'o mut dyn Write,
        stream: Stream,
        spine: Spine,
        early: EarlyResults,
        bearer: Option<CarryWriter>,
    ) -> Pass<'o> {
        let (name, native) = (to.info().name, to.info().name == crate::wire::NAME);
        let own = outline.origin == name;
        let target = Target {
            out,
            reading: Some(Reading::new(to, Want::All)),
            sheet: if own { RecordSchema::default() } else { RecordSchema::new(to.info().record_schema) },
            offset: 0,
            judges: true,
            back: ReadBack {
                comparison: Comparison::new(move |origin| native || origin == name),
                repeats: false,
                notes: Vec::new(),
            },
            failed: None,
        };
        let (writing, total) = (Some(Writing::new(to, outline)), RunningTotal::default());
        Pass { writing, target, spine, total, early, stream, to: name, bearer }
    }

    /// Takes the next bytes of the source, before they are read.
    pub fn source(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.bearer.as_mut().map_or(Ok(()), |bearer| bearer.source(chunk))
    }

    /// What went wrong since it was asked last.
    pub fn failure(&mut self) -> io::Result<()> {
        self.target.failed.take().map_or(Ok(()), Err)
    }
}

impl Pass<'_> {
    /// Reports an event that is not written. A record that holds a record of a side conversation repeats nothing, unless the source has
    /// that record too.
    fn leave_out(&mut self, event: &Event<'_>, left_out: LeftOut) {
        let comparison = &mut self.target.back.comparison;
        if !left_out.is_said_elsewhere() {
            return comparison.left_out(event, left_out.reason());
        }
        let nested = nested_events(event);
        // A fact without words, such as the progress of a hook, has nothing that could be found in another record.
        if nested.is_empty() && event.restates && matches!(event.body, Body::Fact { content: None, .. }) {
            return comparison.repeated(event, REPORTS_ON_ANOTHER);
        }
        let nested: Vec<_> = nested.into_iter().filter(|inner| self.spine.is_only_nested(inner)).collect();
        if nested.is_empty() {
            return comparison.repeated(event, left_out.reason());
        }
        let why = LeftOut::Thread.reason();
        // What the nested record states, usage included, is reported with its own events.
        comparison.left_out(&Event { extra: Extra::default(), ..event.clone() }, why);
        nested.iter().for_each(|inner| comparison.left_out(inner, why));
    }

    /// Writes an event; a result whose call comes later waits for it.
    fn write(&mut self, event: &Event<'_>) {
        let returns = self.stream == Stream::Whole || event.extra.get(self.to).is_some();
        if returns || !self.early.is_early() {
            return self.write_now(event);
        }
        if let Some(bearer) = &mut self.bearer {
            bearer.passed_over(event);
        }
        self.early.hold(event);
    }

    fn write_now(&mut self, event: &Event<'_>) {
        let Some(writing) = &mut self.writing else { return };
        let pieces = writing.event(event);
        // A record that returns to its own system is what that system wrote, and not ours to judge.
        self.target.judges = event.extra.get(self.to).is_none();
        let pieces = match &mut self.bearer {
            Some(bearer) => bearer.load(event, pieces),
            None => Ok(pieces),
        };
        match pieces {
            Ok(pieces) => self.target.take(pieces),
            Err(error) => self.target.failed = self.target.failed.take().or(Some(error)),
        }
    }

    /// Ends the output, and gives the account of it.
    pub fn finish(mut self) -> io::Result<(Report, Vec<Note>)> {
        self.early.rest().iter().for_each(|result| self.write_now(result));
        let pieces = self.writing.take().map(Writing::finish).unwrap_or_default();
        let pieces = match self.bearer.take() {
            Some(bearer) => bearer.finish(pieces)?,
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

impl Target<'_> {
    fn take(&mut self, pieces: Vec<Written>) {
        for piece in pieces {
            if let (Written::Record(record), true) = (&piece, self.judges) {
                self.check(record);
            }
            let (Written::Record(bytes) | Written::Glue(bytes)) = piece;
            self.offset += bytes.len() as u64;
            if self.failed.is_none() {
                self.failed = self.out.write_all(&bytes).err();
            }
            if let Some(reading) = &mut self.reading {
                reading.feed(&bytes, &mut self.back);
            }
        }
    }
}

impl Target<'_> {
    /// Holds a record against the target's sheet.
    fn check(&mut self, record: &[u8]) {
        let objection = std::str::from_utf8(record).ok().and_then(|record| self.sheet.objection(record));
        if let Some(objection) = objection {
            let at = Span { offset: self.offset, length: record.len() as u64, line: 0 };
            self.back.note(Note::new(NoteKind::OffSheet, at, objection));
        }
    }
}

/// Gives what is read back to the comparison.
struct ReadBack {
    comparison: Comparison,
    /// Whether records that restate others were written. Where none were, those that are read back are the target's own
    /// way of saying everything twice.
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
