//! The events of one conversation by number. A range costs what it contains: the index knows a record near its beginning. A
//! conversation in several files, or one that only the archive has, is read from its beginning.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use stenograph::format::Format;
use stenograph::model::Event;
use stenograph::read::Sink;
use stenograph::redact::Redactor;
use stenograph::repeat::CheckRepeats;

use crate::folder::{self, RecordingParts};
use crate::index::Store;
use crate::index::catalogue::{Gone, IndexedSession, SourceRow};
use crate::index::search::Searcher;
use crate::read::{self, Flow};
use crate::{Error, Source, session_files};

/// How many events before a range are read, so that its results know their calls and its repeats are detected.
const CONTEXT_EVENTS: u64 = 200;

/// One conversation of a session: that of its main agent, or that of a sub-agent.
#[derive(Debug)]
pub struct SessionEvents {
    row: SourceRow,
    parts: Option<RecordingParts>,
    format: &'static dyn Format,
    redactor: Option<Arc<Redactor>>,
}

/// Receives an event and its number, from 1.
pub type EachEvent<'e> = dyn FnMut(u64, &Event<'_>) + 'e;

/// Where the read of a range ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeEnd {
    /// The number of the first event after those that were read, from 1.
    pub next: u64,
    /// Whether the conversation has no further events.
    pub is_last: bool,
}

impl SessionEvents {
    /// The conversation of the main agent, or of the named sub-agent; `None` if there is none.
    pub fn of(session: &IndexedSession, sources: &[SourceRow], agent: Option<&str>) -> Option<SessionEvents> {
        let is_it = |row: &&SourceRow| match agent {
            None => row.path == session.path,
            Some(agent) => row.thread.as_deref() == Some(agent) && row.copy_of.is_none() && row.covered_by.is_none(),
        };
        let row = sources.iter().find(is_it)?.clone();
        let format = row.known_format()?;
        let parts = session_files::parts_of(&row, sources);
        Some(SessionEvents { row, parts, format, redactor: None })
    }

    /// The same conversation with its secrets masked. Only what is read is masked.
    #[must_use]
    pub fn redacted(self, redactor: Arc<Redactor>) -> SessionEvents {
        SessionEvents { redactor: Some(redactor), ..self }
    }

    /// Whether secrets are masked.
    pub(crate) fn is_redacted(&self) -> bool {
        self.redactor.is_some()
    }

    /// The main source of the conversation.
    pub fn row(&self) -> &SourceRow {
        &self.row
    }

    /// The format of the conversation.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// The files that hold the conversation.
    pub fn files(&self) -> Vec<std::path::PathBuf> {
        self.parts.as_ref().map_or_else(|| vec![self.row.path.clone()], |parts| parts.files().to_vec())
    }

    /// How many events the index has found in it. `None` if that is not known without reading: it has several files.
    pub fn count(&self) -> Option<u64> {
        self.parts.is_none().then(|| self.row.doc_group_events + self.row.tail_events)
    }

    /// Opens the main source, with its secrets masked if the conversation is redacted.
    pub fn open(&self, store: &Store) -> Result<Source, Error> {
        let (source, _) = store.open_source(&self.row)?;
        match self.redactor.as_deref() {
            Some(redactor) => Ok(source.redacted(self.format, redactor)?.0),
            None => Ok(source),
        }
    }

    /// Reads the events whose numbers are in a range; numbers count from 1. `each` receives them in order, after some events
    /// before them that tell what they belong to. [`Event::restates`] is set only where an event repeats another.
    pub fn range(
        &self,
        store: &Store,
        searcher: Option<&Searcher>,
        range: Range<u64>,
        each: &mut EachEvent<'_>,
    ) -> Result<RangeEnd, Error> {
        let first = range.start.saturating_sub(1).saturating_sub(CONTEXT_EVENTS);
        let start = match searcher {
            Some(searcher) if self.parts.is_none() && self.row.copy_of.is_none() => {
                searcher.start_before(&self.row, first)?
            }
            Some(_) | None => None,
        };
        let next = start.map_or(0, |start| start.event) + 1;
        let mut checked = CheckRepeats::new(RangeSink { range, next, each });
        match start {
            Some(start) => {
                let redactor = self.redactor.as_deref();
                read::file_from_masked(&self.row.path, self.format, start.at, redactor, &mut checked, RangeSink::flow)?;
            }
            None => self.read_into(store, &mut checked, RangeSink::flow)?,
        }
        checked.finish();
        let RangeSink { next, range, .. } = checked.sink;
        Ok(RangeEnd { next: next.min(range.end), is_last: next <= range.end })
    }

    /// Reads all events in order.
    pub fn all(&self, store: &Store, each: &mut EachEvent<'_>) -> Result<u64, Error> {
        let mut checked = CheckRepeats::new(RangeSink { range: 1..u64::MAX, next: 1, each });
        self.read_into(store, &mut checked, |_| Flow::Continue)?;
        checked.finish();
        Ok(checked.sink.next - 1)
    }

    /// Reads all events as their reader states them, without looking for repeats: for folds that find repeats themselves.
    pub fn as_stated(&self, store: &Store, each: &mut dyn FnMut(&Event<'_>)) -> Result<(), Error> {
        self.read_into(store, &mut EachStated(each), |_| Flow::Continue)
    }

    /// Reads the events with these numbers, in order. Events that are close together are read at once.
    pub fn numbered(
        &self,
        store: &Store,
        searcher: Option<&Searcher>,
        numbers: &BTreeSet<u64>,
        each: &mut EachEvent<'_>,
    ) -> Result<(), Error> {
        // A read in the middle needs the index; without it, one read from the beginning finds all events.
        let gap_max = match searcher {
            Some(_) if self.parts.is_none() && self.row.gone == Gone::There => CONTEXT_EVENTS,
            Some(_) | None => u64::MAX,
        };
        let numbers: Vec<u64> = numbers.iter().copied().collect();
        for group in numbers.chunk_by(|one, next| next - one <= gap_max) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            self.range(store, searcher, *first..last.saturating_add(1), &mut |number, event| {
                if group.binary_search(&number).is_ok() {
                    each(number, event);
                }
            })?;
        }
        Ok(())
    }

    fn read_into<S: Sink>(&self, store: &Store, sink: &mut S, flow: impl Fn(&S) -> Flow) -> Result<(), Error> {
        match (&self.parts, self.redactor.as_deref()) {
            (Some(parts), None) => folder::read(parts, sink),
            (Some(parts), Some(redactor)) => folder::read(&parts.redacted(redactor)?.0, sink),
            (None, redactor) => {
                let (mut source, _) = store.open_source(&self.row)?;
                read::source_masked(&mut source, self.format, redactor, sink, |_| (), flow)
            }
        }
    }
}

/// Passes every event on.
struct EachStated<'e>(&'e mut dyn FnMut(&Event<'_>));

impl Sink for EachStated<'_> {
    fn event(&mut self, event: &Event<'_>) {
        (self.0)(event);
    }
}

/// Numbers events and passes on those of a range.
struct RangeSink<'e> {
    range: Range<u64>,
    next: u64,
    each: &'e mut EachEvent<'e>,
}

impl RangeSink<'_> {
    /// One event more than wanted shows whether the conversation continues.
    fn flow(checked: &CheckRepeats<RangeSink<'_>>) -> Flow {
        if checked.sink.next > checked.sink.range.end { Flow::Stop } else { Flow::Continue }
    }
}

impl Sink for RangeSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let number = self.next;
        self.next += 1;
        if number < self.range.end {
            (self.each)(number, event);
        }
    }
}
