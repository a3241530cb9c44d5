//! The journal: a native stream with every recorded event, and marks where recordings begin and end. It is the basis of a
//! recording; a layout's documents are derived from it. This file writes no document.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::format::{Format, Wanted};
use stenograph::formats::steno::Steno;
use stenograph::json::{Draft, Object};
use stenograph::model::{Body, Content, Event, Extra, ExtraFields, Held};
use stenograph::read::{Reading, Sink};
use stenograph::text::quote;
use stenograph::time::Time;
use stenograph::{convert, wire};

use crate::error::{Error, Problem};
use crate::files::Files;
use crate::layouts::{Layout, layout_named};

/// Settings of a recording by name: the flow, the thread, the agent's mode.
pub type Settings = BTreeMap<String, String>;

/// How a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingEnd {
    /// It completed.
    Completed,
    /// It failed, for this reason.
    Failed(String),
    /// It was stopped.
    Canceled,
    /// The recorder itself was cut off, so the agent's end is unknown.
    Interrupted,
}

impl RecordingEnd {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            RecordingEnd::Completed => "completed",
            RecordingEnd::Failed(_) => "failed",
            RecordingEnd::Canceled => "canceled",
            RecordingEnd::Interrupted => "interrupted",
        }
    }

    /// The error, if it failed.
    pub fn error(&self) -> Option<&str> {
        match self {
            RecordingEnd::Failed(error) => Some(error),
            RecordingEnd::Interrupted => Some("the recording was interrupted"),
            RecordingEnd::Completed | RecordingEnd::Canceled => None,
        }
    }

    /// The event that states it in the conversation.
    pub fn stop(&self, time: Time<'static>) -> Event<'static> {
        let content = self.error().map(|error| Content::text(error.to_owned()));
        let success = Some(matches!(self, RecordingEnd::Completed));
        let body = Body::Stop { reason: Some(self.name().into()), success, content };
        Event { time: Some(time), extra: own(quote("stop")), ..Event::new(body) }
    }
}

/// The key of the recorder's own data on a line.
const KEY: &str = "recording";

/// The first line of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingHeader {
    /// The layout of the recording.
    pub layout: String,
    /// The settings of the recording.
    pub settings: Settings,
    /// The documents that it makes, by path relative to the journal's folder, with their length before the recording: the bytes
    /// before that are not ours.
    pub documents: BTreeMap<String, u64>,
}

impl RecordingHeader {
    /// The line as an event.
    pub fn event(&self, time: Time<'static>) -> Event<'static> {
        let mut settings = Draft::new();
        self.settings.iter().for_each(|(key, value)| settings.set_str(key.clone(), value));
        let mut documents = Draft::new();
        self.documents.iter().for_each(|(path, length)| documents.set(path.clone(), length.to_string()));
        let mut header = Draft::new();
        header.set_str("layout", &self.layout);
        header.nest("settings", settings);
        header.nest("documents", documents);
        fact(header.render(None), time)
    }

    /// The agent of the recorded session, if the layout belongs to another system.
    pub fn agent(&self) -> Option<&'static str> {
        layout_named(&self.layout).map(Layout::info).filter(|info| info.name != wire::NAME).map(|info| info.agent)
    }

    /// The header of the recording in a journal's first line.
    pub fn at(path: &Path) -> Option<RecordingHeader> {
        const LINE_SIZE_MAX: u64 = 64 << 10;
        let mut line = Vec::new();
        std::fs::File::open(path).ok()?.take(LINE_SIZE_MAX).read_to_end(&mut line).ok()?;
        line.truncate(line.iter().position(|byte| *byte == b'\n')?);
        let mut first = HeaderSink(None);
        let mut reading = Reading::new(NATIVE, Wanted::All);
        reading.feed(&line, &mut first);
        reading.end(&mut first);
        first.0
    }

    /// The header in this event, if it begins a recording.
    pub(crate) fn of(event: &Event<'_>) -> Option<RecordingHeader> {
        let mut object = Object::parse(own_json(event)?)?;
        let layout = object.take_str("layout")?.into_owned();
        let settings = object.open("settings").map(|settings| {
            let text = |raw| stenograph::text::Text::from_json(raw).map(|text| text.decode().into_owned());
            settings.pairs().filter_map(|(key, raw)| Some((key.to_owned(), text(raw)?))).collect()
        });
        let documents = object.open("documents").map(|documents| {
            let length = |raw| stenograph::json::number(raw);
            documents.pairs().filter_map(|(path, raw)| Some((path.to_owned(), length(raw)?))).collect()
        });
        Some(RecordingHeader {
            layout,
            settings: settings.unwrap_or_default(),
            documents: documents.unwrap_or_default(),
        })
    }
}

/// Takes the header from the first event.
struct HeaderSink(Option<RecordingHeader>);

impl Sink for HeaderSink {
    fn event(&mut self, event: &Event<'_>) {
        self.0 = self.0.take().or_else(|| RecordingHeader::of(event));
    }
}

/// The line that ends a recording's events.
pub fn end_line(end: &RecordingEnd, time: Time<'static>) -> Event<'static> {
    let mut draft = Draft::new();
    draft.set_str("end", end.name());
    draft.set_opt("error", end.error());
    fact(draft.render(None), time)
}

/// The line that states that the documents of a recording are complete. Later changes to them are not undone.
pub(crate) fn completed_line(time: Time<'static>) -> Event<'static> {
    fact(Draft::new().with("settled", true).render(None), time)
}

/// A line by which the recorder divides a journal into recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingMark {
    /// A recording begins.
    Begin(RecordingHeader),
    /// The recording has ended.
    End(RecordingEnd),
    /// Its documents are complete.
    Completed,
}

impl RecordingMark {
    /// The mark in an event of a journal.
    pub fn of(event: &Event<'_>) -> Option<RecordingMark> {
        if author(event) != Author::Mark {
            return None;
        }
        let is_completed = || own_json(event).and_then(Object::parse).is_some_and(|object| object.peek_true("settled"));
        let begin = RecordingHeader::of(event).map(RecordingMark::Begin);
        begin
            .or_else(|| is_completed().then_some(RecordingMark::Completed))
            .or_else(|| end_of(event).map(RecordingMark::End))
    }
}

fn end_of(event: &Event<'_>) -> Option<RecordingEnd> {
    let mut object = Object::parse(own_json(event)?)?;
    let error = object.take_str("error").map(std::borrow::Cow::into_owned).unwrap_or_default();
    Some(match object.peek_str("end")?.as_ref() {
        "completed" => RecordingEnd::Completed,
        "failed" => RecordingEnd::Failed(error),
        "canceled" => RecordingEnd::Canceled,
        _ => RecordingEnd::Interrupted,
    })
}

fn fact(json: String, time: Time<'static>) -> Event<'static> {
    Event { time: Some(time), extra: own(json), ..Event::new(Body::Fact { fact: KEY.into(), content: None }) }
}

fn own(json: String) -> Extra<'static> {
    Extra::of(Steno.info(), ExtraFields(vec![(KEY.into(), Held::Raw(json.into()))]))
}

fn own_json<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    event.extra.get(wire::NAME)?.raw(KEY)
}

/// The author of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The caller gave it to be recorded.
    Given,
    /// The recorder states how the recording ended.
    Stop,
    /// The recorder states where a recording begins or ends. No document contains it.
    Mark,
}

/// The author of an event in a journal.
pub fn author(event: &Event<'_>) -> Author {
    match (own_json(event), &event.body) {
        (None, _) => Author::Given,
        (Some(_), Body::Stop { .. }) => Author::Stop,
        (Some(_), _) => Author::Mark,
    }
}

/// The native format.
pub const NATIVE: &dyn Format = &Steno;

/// One recording in a journal.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The journal.
    pub journal: PathBuf,
    /// Its first line.
    pub header: RecordingHeader,
    /// The offset of its first line.
    pub begin: u64,
    /// The offset of its first event.
    pub start: u64,
    /// The offset after its last event.
    pub end: u64,
    /// How it ended; `None` if it was cut off.
    pub ended: Option<RecordingEnd>,
    /// Whether its documents were completed.
    pub is_completed: bool,
    /// The number of events before it in the journal, including its first line.
    before: u64,
    files: Arc<dyn Files>,
}

impl Recording {
    /// A recording with known positions.
    pub fn new(
        files: &Arc<dyn Files>,
        journal: &Path,
        header: RecordingHeader,
        (begin, start): (u64, u64),
    ) -> Recording {
        let files = Arc::clone(files);
        let (journal, end) = (journal.to_owned(), start);
        Recording { journal, header, begin, start, end, ended: None, is_completed: false, before: 0, files }
    }

    /// The same recording, ended at this offset.
    pub fn ended_at(self, end: u64, ended: RecordingEnd) -> Recording {
        Recording { end, ended: Some(ended), ..self }
    }

    /// The path of a document in the header.
    pub fn document(&self, name: &str) -> PathBuf {
        crate::files::folder_of(&self.journal).join(name)
    }

    /// Whether the journal is named after this document and lies beside it. Anyone may have written a journal, so its header
    /// must not lead to any other file.
    pub(crate) fn is_named_after(&self, document: &str) -> bool {
        crate::recover::journal_path(Path::new(document)).as_os_str() == self.journal.file_name().unwrap_or_default()
    }

    /// Reads all its events, including the recorder's stop but not the marks.
    pub fn read(&self, visit: &mut dyn FnMut(&Event<'_>)) -> Result<(), Error> {
        self.read_numbered(&mut |_, event| visit(event))
    }

    /// The same, with the number of each event in the journal, from 0. A recording that [`recordings`] did not find counts only
    /// its own events.
    pub(crate) fn read_numbered(&self, visit: &mut dyn FnMut(u64, &Event<'_>)) -> Result<(), Error> {
        let mut number = self.before;
        let mut sink = EventVisitor(&mut |event: &Event<'_>| {
            if author(event) != Author::Mark {
                visit(number, event);
            }
            number += 1;
        });
        let mut reading = Reading::new(NATIVE, Wanted::All);
        let unreadable = |error| Error::at(&self.journal, Problem::Unreadable, error);
        let mut pass = self.bytes().map_err(unreadable)?;
        reading.feed_all(&mut pass, &mut sink).map_err(unreadable)?;
        reading.end(&mut sink);
        Ok(())
    }

    fn bytes(&self) -> io::Result<Box<dyn Read>> {
        let bytes = self.files.reader(&self.journal, self.start)?;
        Ok(Box::new(bytes.take(self.end.saturating_sub(self.start))))
    }
}

impl convert::Reopen for Recording {
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>> {
        self.bytes()
    }
}

struct EventVisitor<'v>(&'v mut dyn FnMut(&Event<'_>));

impl Sink for EventVisitor<'_> {
    fn event(&mut self, event: &Event<'_>) {
        (self.0)(event);
    }
}

/// All recordings in a journal, in order. A file that is not a journal has none.
pub fn recordings(files: &Arc<dyn Files>, journal: &Path) -> Result<Vec<Recording>, Error> {
    let length = files.length(journal).map_err(|error| Error::at(journal, Problem::Unreadable, error))?;
    let whole = Recording::new(files, journal, RecordingHeader::default(), (0, 0));
    let whole = Recording { end: length.unwrap_or(0), ..whole };
    let mut found: Vec<Recording> = Vec::new();
    let mut reading = Reading::new(NATIVE, Wanted::All);
    let mut events = 0;
    let mut sink = EventVisitor(&mut |event: &Event<'_>| {
        events += 1;
        let Some(at) = event.at else { return };
        // The newline after a line belongs to it.
        let next = at.end() + 1;
        match (RecordingMark::of(event), found.last_mut()) {
            (Some(RecordingMark::Begin(header)), _) => {
                let recorded = Recording::new(files, journal, header, (at.offset, next));
                found.push(Recording { before: events, ..recorded });
            }
            (Some(RecordingMark::Completed), Some(last)) => last.is_completed = true,
            (Some(RecordingMark::End(end)), Some(last)) if last.ended.is_none() => last.ended = Some(end),
            (None, Some(last)) if last.ended.is_none() && author(event) != Author::Mark => last.end = next,
            (Some(RecordingMark::End(_) | RecordingMark::Completed) | None, _) => {}
        }
    });
    if whole.end > 0 {
        let unreadable = |error| Error::at(journal, Problem::Unreadable, error);
        let mut pass = whole.bytes().map_err(unreadable)?;
        reading.feed_all(&mut pass, &mut sink).map_err(unreadable)?;
    }
    reading.end(&mut sink);
    Ok(found)
}
