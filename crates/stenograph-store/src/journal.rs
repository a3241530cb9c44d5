//! The journal: a native stream that says everything that was recorded, and between which lines a recording began and ended.
//! It is what a recording rests on; the documents of a layout are made of it. Nothing here writes a document.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::format::{Format, Want};
use stenograph::formats::steno::Steno;
use stenograph::json::{Draft, Object};
use stenograph::model::{Body, Content, Event, Extra, ExtraFields, Held, Note};
use stenograph::read::{Reading, Sink};
use stenograph::text::quote;
use stenograph::time::Time;
use stenograph::{convert, wire};

use crate::error::{Error, Problem};
use crate::files::Files;
use crate::layouts::{Layout, layout_named};

/// What is said of a recording beforehand, by name: the flow, the thread, the agent's mode.
pub type Settings = BTreeMap<String, String>;

/// How a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It came to its end.
    Completed,
    /// It failed, and why.
    Failed(String),
    /// Somebody stopped it.
    Canceled,
    /// The recorder itself was cut off: nobody could say how the agent ended.
    Interrupted,
}

impl End {
    /// The word for it.
    pub fn name(&self) -> &'static str {
        match self {
            End::Completed => "completed",
            End::Failed(_) => "failed",
            End::Canceled => "canceled",
            End::Interrupted => "interrupted",
        }
    }

    /// Why, where it went wrong.
    pub fn error(&self) -> Option<&str> {
        match self {
            End::Failed(error) => Some(error),
            End::Interrupted => Some("the recording was interrupted"),
            End::Completed | End::Canceled => None,
        }
    }

    /// The event that says so in the conversation.
    pub fn stop(&self, time: Time<'static>) -> Event<'static> {
        let content = self.error().map(|error| Content::text(error.to_owned()));
        let success = Some(matches!(self, End::Completed));
        let body = Body::Stop { reason: Some(self.name().into()), success, content };
        Event { time: Some(time), extra: own(quote("stop")), ..Event::new(body) }
    }
}

/// The key under which the recorder's own words stand on a line.
const KEY: &str = "recording";

/// What the first line of a recording says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The layout it is recorded into.
    pub layout: String,
    /// What was said of it beforehand.
    pub settings: Settings,
    /// The documents it makes, by their path from the journal's folder, and how long each was before: what stands there is not
    /// ours.
    pub documents: BTreeMap<String, u64>,
}

impl Header {
    /// The line.
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

    /// The agent whose session the recording is, where its layout is another system's.
    pub fn agent(&self) -> Option<&'static str> {
        layout_named(&self.layout).map(Layout::info).filter(|info| info.name != wire::NAME).map(|info| info.agent)
    }

    /// What the first line of a journal says of its recording.
    pub fn at(path: &Path) -> Option<Header> {
        const LINE_SIZE_MAX: u64 = 64 << 10;
        let mut line = Vec::new();
        std::fs::File::open(path).ok()?.take(LINE_SIZE_MAX).read_to_end(&mut line).ok()?;
        line.truncate(line.iter().position(|byte| *byte == b'\n')?);
        let mut first = First(None);
        let mut reading = Reading::new(NATIVE, Want::All);
        reading.feed(&line, &mut first);
        reading.end(&mut first);
        first.0
    }

    /// What this event says of the recording that it begins, if it begins one.
    pub(crate) fn of(event: &Event<'_>) -> Option<Header> {
        let mut object = Object::parse(said(event)?)?;
        let layout = object.take_str("layout")?.into_owned();
        let settings = object.open("settings").map(|settings| {
            let text = |raw| stenograph::text::Text::from_json(raw).map(|text| text.decode().into_owned());
            settings.pairs().filter_map(|(key, raw)| Some((key.to_owned(), text(raw)?))).collect()
        });
        let documents = object.open("documents").map(|documents| {
            let length = |raw| stenograph::json::number(raw);
            documents.pairs().filter_map(|(path, raw)| Some((path.to_owned(), length(raw)?))).collect()
        });
        Some(Header { layout, settings: settings.unwrap_or_default(), documents: documents.unwrap_or_default() })
    }
}

/// Takes what the first event says of a recording.
struct First(Option<Header>);

impl Sink for First {
    fn event(&mut self, event: &Event<'_>) {
        self.0 = self.0.take().or_else(|| Header::of(event));
    }

    fn note(&mut self, _note: Note) {}
}

/// The line after which nothing more of a recording follows.
pub fn end_line(end: &End, time: Time<'static>) -> Event<'static> {
    let mut draft = Draft::new();
    draft.set_str("end", end.name());
    draft.set_opt("error", end.error());
    fact(draft.render(None), time)
}

/// The line after which the documents of a recording are complete. What is done to them from then on is not undone.
pub fn settled_line(time: Time<'static>) -> Event<'static> {
    fact("{\"settled\":true}".to_owned(), time)
}

/// A line with which the recorder divides a journal into recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingMark {
    /// A recording begins.
    Begin(Header),
    /// Nothing more of it follows; it ended so.
    End(End),
    /// Its documents are complete.
    Settled,
}

impl RecordingMark {
    /// The mark that an event of a journal is.
    pub fn of(event: &Event<'_>) -> Option<RecordingMark> {
        if author(event) != Author::Mark {
            return None;
        }
        let is_settled = || said(event).and_then(Object::parse).is_some_and(|object| object.peek_true("settled"));
        let begin = Header::of(event).map(RecordingMark::Begin);
        begin
            .or_else(|| is_settled().then_some(RecordingMark::Settled))
            .or_else(|| end_of(event).map(RecordingMark::End))
    }
}

fn end_of(event: &Event<'_>) -> Option<End> {
    let mut object = Object::parse(said(event)?)?;
    let error = object.take_str("error").map(std::borrow::Cow::into_owned).unwrap_or_default();
    Some(match object.peek_str("end")?.as_ref() {
        "completed" => End::Completed,
        "failed" => End::Failed(error),
        "canceled" => End::Canceled,
        _ => End::Interrupted,
    })
}

fn fact(json: String, time: Time<'static>) -> Event<'static> {
    Event { time: Some(time), extra: own(json), ..Event::new(Body::Fact { name: KEY.into(), content: None }) }
}

fn own(json: String) -> Extra<'static> {
    Extra::of(Steno.info(), ExtraFields(vec![(KEY.into(), Held::Raw(json.into()))]))
}

fn said<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    event.extra.get(wire::NAME)?.raw(KEY)
}

/// Whose words an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// Somebody gave it to be recorded.
    Given,
    /// The recorder says how it ended.
    Stop,
    /// The recorder says where a recording begins and ends. No document holds it.
    Mark,
}

/// Whose words an event of a journal is.
pub fn author(event: &Event<'_>) -> Author {
    match (said(event), &event.body) {
        (None, _) => Author::Given,
        (Some(_), Body::Stop { .. }) => Author::Stop,
        (Some(_), _) => Author::Mark,
    }
}

/// The native format.
pub const NATIVE: &dyn Format = &Steno;

/// One recording in a journal.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The journal.
    pub journal: PathBuf,
    /// What its first line says.
    pub header: Header,
    /// Where its first line begins.
    pub begin: u64,
    /// Where its events begin.
    pub start: u64,
    /// Where its events end.
    pub end: u64,
    /// How it ended; `None` when it was cut off.
    pub ended: Option<End>,
    /// Whether its documents were completed.
    pub settled: bool,
    /// How many events stand before it in the journal, its first line among them.
    before: u64,
    files: Arc<dyn Files>,
}

impl Recorded {
    /// A recording of which all is known.
    pub fn new(files: &Arc<dyn Files>, journal: &Path, header: Header, (begin, start): (u64, u64)) -> Recorded {
        let files = Arc::clone(files);
        let (journal, end) = (journal.to_owned(), start);
        Recorded { journal, header, begin, start, end, ended: None, settled: false, before: 0, files }
    }

    /// The same, ended there and so.
    pub fn ending(self, end: u64, ended: End) -> Recorded {
        Recorded { end, ended: Some(ended), ..self }
    }

    /// A path that stands in the header.
    pub fn document(&self, name: &str) -> PathBuf {
        crate::files::folder_of(&self.journal).join(name)
    }

    /// Whether the journal is named after this document and stands beside it. Anybody may have written a journal, so that a header must not
    /// lead to any other file.
    pub fn is_named_after(&self, document: &str) -> bool {
        crate::recover::beside(Path::new(document)).as_os_str() == self.journal.file_name().unwrap_or_default()
    }

    /// Reads all its events, the recorder's stop among them, and the marks not.
    pub fn read(&self, visit: &mut dyn FnMut(&Event<'_>)) -> Result<(), Error> {
        self.read_numbered(&mut |_, event| visit(event))
    }

    /// The same, with the number that each event has in the journal, from 0. A recording that was not found by [`recordings`] counts its
    /// own events.
    pub(crate) fn read_numbered(&self, visit: &mut dyn FnMut(u64, &Event<'_>)) -> Result<(), Error> {
        let mut number = self.before;
        let mut sink = Visit(&mut |event: &Event<'_>| {
            if author(event) != Author::Mark {
                visit(number, event);
            }
            number += 1;
        });
        let mut reading = Reading::new(NATIVE, Want::All);
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

impl convert::Reopen for Recorded {
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>> {
        self.bytes()
    }
}

struct Visit<'v>(&'v mut dyn FnMut(&Event<'_>));

impl Sink for Visit<'_> {
    fn event(&mut self, event: &Event<'_>) {
        (self.0)(event);
    }

    fn note(&mut self, _note: Note) {}
}

/// All recordings in a journal, in order. A file that is no journal has none.
pub fn recordings(files: &Arc<dyn Files>, journal: &Path) -> Result<Vec<Recorded>, Error> {
    let length = files.length(journal).map_err(|error| Error::at(journal, Problem::Unreadable, error))?;
    let whole = Recorded::new(files, journal, Header::default(), (0, 0));
    let whole = Recorded { end: length.unwrap_or(0), ..whole };
    let mut found: Vec<Recorded> = Vec::new();
    let mut reading = Reading::new(NATIVE, Want::All);
    let mut events = 0;
    let mut sink = Visit(&mut |event: &Event<'_>| {
        events += 1;
        let Some(at) = event.at else { return };
        // The newline after a line is its own.
        let next = at.end() + 1;
        match (RecordingMark::of(event), found.last_mut()) {
            (Some(RecordingMark::Begin(header)), _) => {
                let recorded = Recorded::new(files, journal, header, (at.offset, next));
                found.push(Recorded { before: events, ..recorded });
            }
            (Some(RecordingMark::Settled), Some(last)) => last.settled = true,
            (Some(RecordingMark::End(end)), Some(last)) if last.ended.is_none() => last.ended = Some(end),
            (None, Some(last)) if last.ended.is_none() && author(event) != Author::Mark => last.end = next,
            (Some(RecordingMark::End(_) | RecordingMark::Settled) | None, _) => {}
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
