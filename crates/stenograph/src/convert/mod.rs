//! Conversion: read, take the spine, write, read back, compare. The differences are the loss report.
//!
//! A conversion reads the source twice: once to survey it (which branch is active, what a header must state), and once to
//! write. If the target receives only part of it, a pass in between collects the outline of that part for the header. No pass
//! holds more than a window of the source. A conversion to the same format copies the source byte for byte.

mod alignment;
mod carry_writer;
mod early;
mod merge_edits;
mod pass;
mod restore;
mod totals;

use std::io::{self, Read, Write};

use carry_writer::CarryWriter;
use early::EarlyResultFinder;
use pass::{Stream, WritePass};
use totals::RunningTotal;

use crate::Error;
use crate::edit::fields::FolderChange;
use crate::format::{Format, FormatInfo, Wanted};
use crate::ledger::{CountedOutline, SupersededUsage};
use crate::loss::LossReport;
use crate::model::{Event, Note, Outline, Spine};
use crate::read::{Reading, Sink};

/// A source that can be read more than once.
pub trait Reopen {
    /// Opens it at the beginning.
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>>;
}

impl Reopen for &[u8] {
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(*self))
    }
}

/// Whether the output embeds the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// It does, so that converting it back gives the source itself.
    Embed,
    /// It does not.
    Omit,
}

/// What a session is called and where it works after a move to another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Its id, which every event that states a session gets.
    pub id: String,
    /// The new working folder, if it changes.
    pub folder: Option<FolderChange>,
    /// The name of the converted session, which its source need not state.
    pub original: Option<String>,
}

impl NewSession {
    /// The event as an event of this session.
    fn adopt<'e>(&self, event: &Event<'e>) -> Event<'e> {
        let mut event = event.clone();
        if event.session.is_some() {
            event.session = Some(self.id.clone().into());
        }
        if let (Some(cwd), Some(folder)) = (event.cwd.as_deref(), &self.folder)
            && let Some(new) = folder.apply(cwd)
        {
            event.cwd = Some(new.into());
        }
        event
    }

    /// The outline of this session.
    fn outline(&self, mut outline: Outline) -> Outline {
        outline.original = outline.session.replace(self.id.clone()).or_else(|| self.original.clone());
        if let Some(folder) = &self.folder {
            outline.header.cwd = Some(folder.to.clone());
        }
        outline
    }
}

/// The outcome of a conversion.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The outline of the session.
    pub outline: Outline,
    /// The loss report.
    pub losses: LossReport,
    /// The first few hundred notes about the source.
    pub notes: Vec<Note>,
    /// The number of all notes.
    pub notes_count: u64,
    /// The notes about the output: records that the target agent's own reader would reject. Empty unless a writer has a bug or
    /// the output was copied.
    pub output_notes: Vec<Note>,
    /// How the output was produced.
    pub method: ConversionMethod,
    /// The format of the source that the output embeds: converting to it gives that source byte for byte.
    pub carries: Option<String>,
}

/// How an output was produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ConversionMethod {
    /// Written from events.
    #[default]
    Written,
    /// Copied: the source already has the target format.
    Copied,
    /// Restored from the runs that the source's records carry, byte for byte.
    Restored,
    /// Restored from carried runs, with later edits of the carrying file merged in.
    Merged {
        /// How many records were edited.
        edited: u64,
        /// How many records were added.
        added: u64,
        /// How many runs are missing.
        missing: u64,
    },
}

const NOTES_MAX: usize = 256;

/// How many bytes of a source are read at a time.
const CHUNK_SIZE: usize = 256 << 10;

/// Converts a source.
pub fn convert(
    from: &dyn Format,
    source: &mut dyn Reopen,
    to: &dyn Format,
    out: &mut dyn Write,
    carry: Carry,
) -> Result<Outcome, Error> {
    convert_as(from, source, to, out, carry, None)
}

/// Converts a source to a session of another name. A source that is restored keeps the name that it had.
pub fn convert_as(
    from: &dyn Format,
    source: &mut dyn Reopen,
    to: &dyn Format,
    out: &mut dyn Write,
    carry: Carry,
    new: Option<&NewSession>,
) -> Result<Outcome, Error> {
    if carry == Carry::Embed && !to.info().traits.carries {
        return Err(Error::NoRoomToCarry(to.info().name));
    }
    if from.info().name == to.info().name {
        return copy(from, source, out);
    }
    let mut survey = Survey::new(from);
    each_chunk(source, from, Wanted::All, &mut survey, &mut |_| Ok(()))?;
    survey.spine.decide();
    // The carried source itself needs nothing embedded.
    if survey.carried.as_ref().is_some_and(|(of, _)| of == to.info().name) {
        return restore::restore(from, source, to, out, survey);
    }
    if to.info().own_only {
        return Err(Error::ReadOnlyFormat(to.info().name));
    }
    rewrite(from, source, to, out, carry, survey, new)
}

/// Rewrites a source in its own format, through events. The laws use it.
pub fn rewrite_own(format: &dyn Format, source: &mut dyn Reopen, out: &mut dyn Write) -> Result<Outcome, Error> {
    let mut survey = Survey::new(format);
    each_chunk(source, format, Wanted::All, &mut survey, &mut |_| Ok(()))?;
    survey.own = true;
    rewrite(format, source, format, out, Carry::Omit, survey, None)
}

/// The results of the first pass.
struct Survey {
    outline: CountedOutline,
    spine: Spine,
    usage: SupersededUsage,
    total: RunningTotal,
    early: EarlyResultFinder,
    notes: Vec<Note>,
    notes_count: u64,
    read: LossReport,
    /// The format of the source that the records carry, and its session.
    carried: Option<(String, Option<String>)>,
    /// Whether source and target have the same format; then all events are written, not only the spine.
    own: bool,
}

impl Survey {
    fn new(from: &dyn Format) -> Survey {
        Survey {
            outline: CountedOutline::new(Some(from)),
            spine: Spine::default(),
            usage: SupersededUsage::default(),
            total: RunningTotal::default(),
            early: EarlyResultFinder::default(),
            notes: Vec::new(),
            notes_count: 0,
            read: LossReport::default(),
            carried: None,
            own: false,
        }
    }
}

impl Sink for Survey {
    fn event(&mut self, event: &Event<'_>) {
        // The target does not receive calls of side conversations that the record of another call repeats.
        match event.restates {
            true => self.outline.add_uncounted(event),
            false => self.outline.add(event),
        }
        let marked = self.total.marked(event);
        self.spine.add(&marked);
        self.usage.add(&marked);
        self.early.add(event);
        *self.read.read.entry(event.kind()).or_default() += 1;
        if let (Some(raw), None) = (&event.carried, &self.carried) {
            self.carried = crate::carry::Carried::parse(raw).map(|carried| (carried.of, carried.session));
        }
    }

    fn note(&mut self, note: Note) {
        self.notes_count += 1;
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }
}

/// Collects the outline of the events that the target receives.
struct SpineOutline {
    outline: CountedOutline,
    spine: Spine,
    total: RunningTotal,
    to: &'static FormatInfo,
}

impl Sink for SpineOutline {
    fn event(&mut self, event: &Event<'_>) {
        match self.spine.left_out_of(self.to, &self.total.marked(event)) {
            // No other record has its content.
            None => self.outline.add(&event.as_original()),
            Some(_) if event.extra.get(self.to.name).is_none() => {}
            Some(_) => self.outline.add(event),
        }
    }
}

fn copy(format: &dyn Format, source: &mut dyn Reopen, out: &mut dyn Write) -> Result<Outcome, Error> {
    let mut survey = Survey::new(format);
    each_chunk(source, format, Wanted::All, &mut survey, &mut |chunk| Ok(out.write_all(chunk)?))?;
    let mut losses = survey.read;
    losses.kept = losses.read.clone();
    let (outline, notes, notes_count) = (survey.outline.finish(), survey.notes, survey.notes_count);
    Ok(Outcome { outline, losses, notes, notes_count, method: ConversionMethod::Copied, ..Outcome::default() })
}

/// Reads a source and passes each chunk to `first` before it is parsed.
fn each_chunk(
    source: &mut dyn Reopen,
    format: &dyn Format,
    want: Wanted,
    sink: &mut dyn Sink,
    first: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reading = Reading::new(format, want);
    each_piece(source, &mut |chunk| {
        first(chunk)?;
        reading.feed(chunk, sink);
        Ok(())
    })?;
    reading.end(sink);
    Ok(())
}

/// Reads a source from beginning to end, in chunks.
fn each_piece(source: &mut dyn Reopen, visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
    let mut input = source.open()?;
    let mut buffer = vec![0; CHUNK_SIZE];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => visit(buffer.get(..length).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn rewrite(
    from: &dyn Format,
    source: &mut dyn Reopen,
    to: &dyn Format,
    out: &mut dyn Write,
    carry: Carry,
    survey: Survey,
    new: Option<&NewSession>,
) -> Result<Outcome, Error> {
    let Survey { mut outline, mut spine, mut usage, early, notes, notes_count, own, carried, .. } = survey;
    let carry_writer = match (carry, &carried) {
        (Carry::Omit, _) => None,
        // If the source itself carries an unchanged source, embed that one.
        (Carry::Embed, Some((of, session))) if restore::is_intact(from, source, of)? => {
            Some(CarryWriter::forwarding(of, session.clone(), to.info().name))
        }
        (Carry::Embed, _) => {
            let original = outline.session().or(new.and_then(|new| new.original.as_deref()));
            Some(CarryWriter::new(from.info().name, original.map(str::to_owned), to.info().name))
        }
    };
    let whole = own || to.info().name == crate::wire::NAME;
    if !whole && spine.leaves_out() {
        let mut sent = SpineOutline {
            outline: CountedOutline::new(Some(from)),
            spine,
            total: RunningTotal::default(),
            to: to.info(),
        };
        each_chunk(source, from, Wanted::All, &mut sent, &mut |_| Ok(()))?;
        (outline, spine) = (sent.outline, sent.spine);
        spine.rewind();
    }
    let carries = carry_writer.as_ref().map(|carry_writer| carry_writer.of().to_owned());
    let stream = if whole { Stream::Whole } else { Stream::Spine };
    usage.decide();
    let outline = outline.finish();
    let outline = match new {
        Some(new) => new.outline(outline),
        None => outline,
    };
    let mut pass = WritePass::new(to, &outline, out, stream, (spine, usage), early.finish(), carry_writer, new);
    let mut reading = Reading::new(from, Wanted::All);
    each_piece(source, &mut |chunk| {
        pass.source(chunk)?;
        reading.feed(chunk, &mut pass);
        pass.failure()
    })?;
    reading.end(&mut pass);
    let (losses, output_notes) = pass.finish()?;
    Ok(Outcome { outline, losses, notes, notes_count, output_notes, method: ConversionMethod::Written, carries })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{chibi::Chibi, leslie::Leslie, steno::Steno};
    use crate::model::{Body, Content, Input, Role};

    #[test]
    fn a_header_describes_the_written_events_only() {
        let message = |text: &'static str| Body::Message { role: Role::User, content: Content::text(text) };
        let call = || Body::ToolCall { call: None, name: "look".into(), input: Input::Json("{}".into()) };
        let event = |id: &'static str, parent: Option<&'static str>, body: Body<'static>| Event {
            id: Some(id.into()),
            parent: parent.map(Into::into),
            ..Event::new(body)
        };
        let side_call = Event { thread: Some("aside".into()), ..Event::new(call()) };
        let events = [
            event("a", None, message("go")),
            event("b", Some("a"), call()),
            event("c", Some("a"), message("again")),
            event("d", Some("c"), call()),
            side_call,
        ];
        let lines: Vec<String> = events.iter().map(crate::wire::event).collect();
        let (source, mut out) = (lines.join("\n"), Vec::new());
        let outcome = convert(&Steno, &mut source.as_bytes(), &Leslie, &mut out, Carry::Omit).unwrap();
        assert_eq!(outcome.outline.calls, 1);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("Tool Calls: 1\n") && text.matches("[Tool call]").count() == 1, "{text}");
    }

    #[test]
    fn a_record_that_the_agent_wrote_is_not_checked_while_it_waits_for_its_run() {
        let (own, mut native, mut out) =
            (r#"{"from":"x","content":"hi","entry_type":"message"}"#, Vec::new(), Vec::new());
        convert(&Chibi, &mut own.as_bytes(), &Steno, &mut native, Carry::Omit).unwrap();
        let foreign = Event::new(Body::Message { role: Role::User, content: Content::text("go") });
        native.extend(crate::wire::event(&foreign).into_bytes());
        let outcome = convert(&Steno, &mut native.as_slice(), &Chibi, &mut out, Carry::Embed).unwrap();
        assert!(outcome.output_notes.is_empty(), "{:?}", outcome.output_notes);
    }
}
