//! A conversation unit: a user's message and everything up to the next one. It is a range of the recording's journal, rendered
//! as Leslie does and measured without being held in memory. This file does not decide where it is stored.

use std::borrow::Cow;
use std::io::{self, Read};

use stenograph::convert::{self, Carry, Outcome, convert};
use stenograph::formats::leslie::{Leslie, file_name};
use stenograph::json::Draft;
use stenograph::model::{Body, Event, Outline, Role};
use stenograph::time::Time;
use stenograph::wire;

use super::{CHAT, MODE, MODE_DEFAULT, STOP, THREAD, setting};
use crate::document::{ComparedDocument, measure};
use crate::error::{Error, Problem};
use crate::files::Files;
use crate::journal::{self, Author, Recording, RecordingEnd, author};
use crate::layouts::rewrite::header_line;
use crate::layouts::{JournalNeed, StatedFields};

/// A unit, as a range of its recording.
pub struct ConversationUnit {
    recorded: Recording,
    /// When it began and ended, according to its events.
    began: Option<Time<'static>>,
    ended: Option<Time<'static>>,
    last: bool,
    /// Whether the agent reacted to the question.
    is_answered: bool,
}

/// A unit as Leslie renders it.
pub struct RenderedUnit {
    /// Its file name.
    pub name: String,
    /// The text.
    pub text: Vec<u8>,
    /// Whether the journal is needed beside the text.
    pub journal: JournalNeed,
}

impl ConversationUnit {
    /// The units of a recording. Events before the first question belong to the first unit.
    pub fn split(recorded: &Recording) -> Result<Vec<ConversationUnit>, Error> {
        let mut units: Vec<ConversationUnit> = Vec::new();
        let mut asked = false;
        recorded.read(&mut |event| {
            let (Author::Given, Some(at)) = (author(event), event.at) else { return };
            let asks = matches!(event.body, Body::Message { role: Role::User, .. })
                && event.part.index == 0
                && event.thread.is_none()
                && !event.restates;
            if units.is_empty() || (asks && asked) {
                let mut stretch = recorded.clone();
                stretch.start = recorded.start + at.offset;
                units.push(ConversationUnit {
                    recorded: stretch,
                    began: None,
                    ended: None,
                    last: false,
                    is_answered: false,
                });
            }
            asked |= asks;
            if let Some(unit) = units.last_mut() {
                // The newline after a line belongs to it.
                unit.recorded.end = recorded.start + at.end() + 1;
                unit.is_answered |= is_answer(event);
                if let Some(time) = event.time.as_ref().filter(|time| time.instant().is_some()) {
                    unit.ended = Some(time.clone().into_owned());
                    unit.began.get_or_insert_with(|| time.clone().into_owned());
                }
            }
        })?;
        if let Some(unit) = units.last_mut() {
            unit.last = true;
        }
        Ok(units)
    }

    /// Several consecutive units as one range.
    pub fn joined(units: &[ConversationUnit]) -> Option<ConversationUnit> {
        let (first, last) = (units.first()?, units.last()?);
        let mut recorded = first.recorded.clone();
        recorded.end = last.recorded.end;
        let is_answered = units.iter().any(|unit| unit.is_answered);
        Some(ConversationUnit {
            recorded,
            began: first.began.clone(),
            ended: last.ended.clone(),
            last: last.last,
            is_answered,
        })
    }

    /// Its file name.
    pub fn name(&self) -> Result<String, Error> {
        let mut outline = Outline::default();
        self.recorded.read(&mut |event| outline.add(event))?;
        Ok(self.named(&outline))
    }

    fn named(&self, outline: &Outline) -> String {
        let nowhen = Time { text: "0".into(), unit: stenograph::time::TimeUnit::Seconds };
        file_name(self.began.as_ref().unwrap_or(&nowhen), outline.first_message.as_deref().unwrap_or_default())
    }

    /// Renders the unit and measures what the text lacks.
    pub fn render(&self, given: StatedFields) -> Result<RenderedUnit, Error> {
        let unreadable = |error| Error::at(&self.recorded.journal, Problem::Unreadable, error);
        // The header states how many calls follow, so they are counted first.
        let outline = self.convert(&Outline::default(), &mut io::sink()).map_err(unreadable)?.outline;
        let mut text = Vec::new();
        self.convert(&outline, &mut text).map_err(unreadable)?;
        let journal =
            measure(&self.recorded, ComparedDocument { format: &Leslie, bytes: Box::new(text.as_slice()) }, given)?;
        Ok(RenderedUnit { name: self.named(&outline), text, journal })
    }

    fn convert(&self, outline: &Outline, out: &mut dyn io::Write) -> io::Result<Outcome> {
        let mut source = UnitSource { head: self.head(outline), recorded: self.recorded.clone() };
        Ok(convert(journal::NATIVE, &mut source, &Leslie, out, Carry::Omit)?)
    }

    /// The header of the text as an event, which the format writes unchanged.
    fn head(&self, outline: &Outline) -> String {
        let settings = &self.recorded.header.settings;
        let iso = |time: &Option<Time<'_>>| time.as_ref().and_then(|time| time.to_iso().map(Cow::into_owned));
        let (began, ended) = (iso(&self.began).unwrap_or_default(), iso(&self.ended).unwrap_or_default());
        let mut own = Draft::new();
        own.set_str("Thread ID", setting(settings, THREAD).unwrap_or_default());
        own.set_str("Chat ID", setting(settings, CHAT).unwrap_or_default());
        own.set_str("Time Range", &format!("{began} ~ {ended}"));
        own.set_str("Agent Mode", setting(settings, MODE).unwrap_or(MODE_DEFAULT));
        own.set_opt("Stop Reason", self.stop(outline).as_deref());
        own.set_str("Tool Calls", &outline.calls.to_string());
        header_line(&Leslie, own)
    }

    /// Why it stopped: from the agent, otherwise from the settings, otherwise from the recording's end. A unit followed by
    /// another question was answered; a turn that never began has no end.
    fn stop(&self, outline: &Outline) -> Option<String> {
        let by_end = match self.recorded.ended.as_ref() {
            _ if !self.last => None,
            Some(RecordingEnd::Completed) if !self.is_answered => None,
            Some(RecordingEnd::Completed) => Some("end_turn"),
            Some(RecordingEnd::Canceled) => Some("cancelled"),
            Some(RecordingEnd::Failed(_)) => Some("error"),
            Some(RecordingEnd::Interrupted) | None => Some("interrupted"),
        };
        let beforehand = setting(&self.recorded.header.settings, STOP).filter(|_| self.last);
        outline.stop.clone().or_else(|| beforehand.or(by_end).map(str::to_owned))
    }

    /// The unit as a separate, complete journal, which recovery leaves alone.
    pub fn journal(&self, files: &dyn Files) -> io::Result<Box<dyn Read>> {
        let nowhen = || Time { text: "0".into(), unit: stenograph::time::TimeUnit::Seconds };
        let (began, ended) = (self.began.clone().unwrap_or_else(nowhen), self.ended.clone().unwrap_or_else(nowhen));
        let line = |event| wire::event(&event) + "\n";
        let end = match (&self.recorded.ended, self.last) {
            (Some(end), true) => end.clone(),
            (None, true) => RecordingEnd::Interrupted,
            (_, false) => RecordingEnd::Completed,
        };
        let header = line(self.recorded.header.event(began));
        let marks = line(journal::end_line(&end, ended.clone())) + &line(journal::completed_line(ended));
        let length = self.recorded.end.saturating_sub(self.recorded.start);
        let events = files.reader(&self.recorded.journal, self.recorded.start)?.take(length);
        Ok(Box::new(io::Cursor::new(header).chain(events).chain(io::Cursor::new(marks))))
    }
}

/// Whether an event is something that an agent says or does.
fn is_answer(event: &Event<'_>) -> bool {
    match &event.body {
        Body::Message { role, .. } => *role == Role::Assistant,
        Body::Thinking { .. } | Body::ToolCall { .. } | Body::ToolResult { .. } | Body::Failure { .. } => true,
        Body::Stop { .. } | Body::Fact { .. } | Body::Compaction { .. } | Body::Other { .. } => false,
    }
}

/// The input of the conversion: our header and the events of the unit.
struct UnitSource {
    head: String,
    recorded: Recording,
}

impl convert::Reopen for UnitSource {
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>> {
        let events = convert::Reopen::open(&mut self.recorded)?;
        Ok(Box::new(self.head.as_bytes().chain(events)))
    }
}
