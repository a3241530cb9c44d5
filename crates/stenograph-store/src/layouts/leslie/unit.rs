//! A conversation unit: a user's message and everything up to the next one. It is a stretch of the recording's journal, told as
//! Leslie tells it and measured, without being held in memory. Where it is put is not known here.

use std::borrow::Cow;
use std::io::{self, Read};

use stenograph::convert::{self, Carry, Outcome, convert};
use stenograph::formats::leslie::{Leslie, file_name};
use stenograph::json::Draft;
use stenograph::model::{Body, Event, Outline, Role};
use stenograph::time::Time;
use stenograph::wire;

use super::{CHAT, MODE, MODE_DEFAULT, STOP, THREAD, said};
use crate::document::{Measured, measure};
use crate::error::{Error, Problem};
use crate::files::Files;
use crate::journal::{self, Author, End, Recorded, author};
use crate::layouts::anew::header_line;
use crate::layouts::{Journal, StatedFields};

/// A unit, as a stretch of its recording.
pub struct Unit {
    recorded: Recorded,
    /// When it began and ended, as its events say.
    began: Option<Time<'static>>,
    ended: Option<Time<'static>>,
    last: bool,
    /// Whether anybody did something about the question.
    is_answered: bool,
}

/// A unit as Leslie tells it.
pub struct Telling {
    /// What its file is called.
    pub name: String,
    /// The text.
    pub text: Vec<u8>,
    /// Whether the text says it all.
    pub journal: Journal,
}

impl Unit {
    /// The units of a recording. What precedes the first question belongs to the first unit.
    pub fn split(recorded: &Recorded) -> Result<Vec<Unit>, Error> {
        let mut units: Vec<Unit> = Vec::new();
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
                units.push(Unit { recorded: stretch, began: None, ended: None, last: false, is_answered: false });
            }
            asked |= asks;
            if let Some(unit) = units.last_mut() {
                // The newline after a line is its own.
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

    /// Several units that follow each other, as one stretch.
    pub fn joined(units: &[Unit]) -> Option<Unit> {
        let (first, last) = (units.first()?, units.last()?);
        let mut recorded = first.recorded.clone();
        recorded.end = last.recorded.end;
        let is_answered = units.iter().any(|unit| unit.is_answered);
        Some(Unit { recorded, began: first.began.clone(), ended: last.ended.clone(), last: last.last, is_answered })
    }

    /// What its file is called.
    pub fn name(&self) -> Result<String, Error> {
        let mut outline = Outline::default();
        self.recorded.read(&mut |event| outline.add(event))?;
        Ok(self.named(&outline))
    }

    fn named(&self, outline: &Outline) -> String {
        let nowhen = Time { text: "0".into(), unit: stenograph::time::TimeUnit::Seconds };
        file_name(self.began.as_ref().unwrap_or(&nowhen), outline.query.as_deref().unwrap_or_default())
    }

    /// Tells the unit, and measures what the text does not say.
    pub fn tell(&self, given: StatedFields) -> Result<Telling, Error> {
        let unreadable = |error| Error::at(&self.recorded.journal, Problem::Unreadable, error);
        // A header says how many calls follow: they are counted first.
        let outline = self.convert(&Outline::default(), &mut io::sink()).map_err(unreadable)?.outline;
        let mut text = Vec::new();
        self.convert(&outline, &mut text).map_err(unreadable)?;
        let journal = measure(&self.recorded, Measured { format: &Leslie, bytes: Box::new(text.as_slice()) }, given)?;
        Ok(Telling { name: self.named(&outline), text, journal })
    }

    fn convert(&self, outline: &Outline, out: &mut dyn io::Write) -> io::Result<Outcome> {
        let mut told = Told { head: self.head(outline), recorded: self.recorded.clone() };
        convert(journal::NATIVE, &mut told, &Leslie, out, Carry::Not)
    }

    /// The header of the text as an event, which the format writes as it is.
    fn head(&self, outline: &Outline) -> String {
        let settings = &self.recorded.header.settings;
        let iso = |time: &Option<Time<'_>>| time.as_ref().and_then(|time| time.to_iso().map(Cow::into_owned));
        let (began, ended) = (iso(&self.began).unwrap_or_default(), iso(&self.ended).unwrap_or_default());
        let mut own = Draft::new();
        own.set_str("Thread ID", said(settings, THREAD).unwrap_or_default());
        own.set_str("Chat ID", said(settings, CHAT).unwrap_or_default());
        own.set_str("Time Range", &format!("{began} ~ {ended}"));
        own.set_str("Agent Mode", said(settings, MODE).unwrap_or(MODE_DEFAULT));
        own.set_opt("Stop Reason", self.stop(outline).as_deref());
        own.set_str("Tool Calls", &outline.calls.to_string());
        header_line(&Leslie, own)
    }

    /// Why it stopped: as the agent says, else as was said beforehand, else as the recording ended. Whoever asks on was answered; a
    /// turn that never began has no end.
    fn stop(&self, outline: &Outline) -> Option<String> {
        let by_end = match self.recorded.ended.as_ref() {
            _ if !self.last => None,
            Some(End::Completed) if !self.is_answered => None,
            Some(End::Completed) => Some("end_turn"),
            Some(End::Canceled) => Some("cancelled"),
            Some(End::Failed(_)) => Some("error"),
            Some(End::Interrupted) | None => Some("interrupted"),
        };
        let beforehand = said(&self.recorded.header.settings, STOP).filter(|_| self.last);
        outline.stop.clone().or_else(|| beforehand.or(by_end).map(str::to_owned))
    }

    /// The unit as a journal of its own: complete, so that nobody completes it again.
    pub fn journal(&self, files: &dyn Files) -> io::Result<Box<dyn Read>> {
        let nowhen = || Time { text: "0".into(), unit: stenograph::time::TimeUnit::Seconds };
        let (began, ended) = (self.began.clone().unwrap_or_else(nowhen), self.ended.clone().unwrap_or_else(nowhen));
        let line = |event| wire::event(&event) + "\n";
        let end = match (&self.recorded.ended, self.last) {
            (Some(end), true) => end.clone(),
            (None, true) => End::Interrupted,
            (_, false) => End::Completed,
        };
        let header = line(self.recorded.header.event(began));
        let marks = line(journal::end_line(&end, ended.clone())) + &line(journal::settled_line(ended));
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

/// What the conversion is told: our header, and the events of the unit.
struct Told {
    head: String,
    recorded: Recorded,
}

impl convert::Reopen for Told {
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>> {
        let events = convert::Reopen::open(&mut self.recorded)?;
        Ok(Box::new(self.head.as_bytes().chain(events)))
    }
}
