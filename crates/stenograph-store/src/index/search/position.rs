//! Finds where to start reading a source to reach an event: the nearest indexed record before it, so that not everything before
//! it must be read.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Bound;

use stenograph::format::{Format, Wanted};
use stenograph::model::{Event, Span};
use stenograph::query::EntryBuilder;
use stenograph::read::{Reading, Sink};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, RangeQuery, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{Order as Direction, Term};

use super::{Columns, Hit, Searcher, engine_error};
use crate::Error;
use crate::databases;
use crate::discover::Stat;
use crate::index::catalogue::{FileStamp, SourceRow};
use crate::index::change::{self, SourceChange};
use crate::source_file::Access;

/// Where reading starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStart {
    /// The position of the record.
    pub at: Span,
    /// The number of its first event, from 0.
    pub event: u64,
}

impl Searcher {
    /// The record to start at to reach the event with this number, from 0. `None` if the source must be read from its
    /// beginning: because of its format, or because the file has changed.
    pub fn start_before(&self, row: &SourceRow, event: u64) -> Result<Option<ReadStart>, Error> {
        let Some(format) = row.known_format().filter(|_| row.access == Access::ByRecord && event > 0) else {
            return Ok(None);
        };
        let Some(mut file) = unchanged(row) else { return Ok(None) };
        let term = |field, number| Term::from_field_u64(field, number);
        let doc_group: Box<dyn Query> =
            Box::new(TermQuery::new(term(self.fields.doc_group, row.doc_group), IndexRecordOption::Basic));
        let before: Box<dyn Query> =
            Box::new(RangeQuery::new(Bound::Unbounded, Bound::Included(term(self.fields.event, event))));
        let query = BooleanQuery::new(vec![(Occur::Must, doc_group), (Occur::Must, before)]);
        let nearest = TopDocs::with_limit(1).order_by_fast_field::<u64>("event", Direction::Desc);
        let failed = |error| engine_error(&self.place, error);
        let found = self.engine.search(&query, &nearest).map_err(failed)?;
        let Some((_, address)) = found.first() else { return Ok(None) };
        let columns = Columns::of(self.engine.segment_reader(address.segment_ord)).map_err(failed)?;
        let doc_groups = self.catalogue.doc_groups(&HashSet::from([row.doc_group]))?;
        let hit = columns.hit(address.doc_id, 0.0, &doc_groups).filter(|hit| hit.source == row.id);
        Ok(hit.and_then(|hit| start(&mut file, format, &hit)))
    }
}

/// The file of a source, if it still begins with what was indexed.
fn unchanged(row: &SourceRow) -> Option<File> {
    let mut file = databases::open_file(&row.path).ok()?;
    let now = FileStamp::from(Stat::of(&row.path).ok()?);
    let change = change::detect(row, &mut file, &now).ok()?;
    (change != SourceChange::Rewritten).then_some(file)
}

/// The record of a hit and the number of its first event, found by reading the record and counting the events before the hit.
fn start(file: &mut File, format: &'static dyn Format, hit: &Hit) -> Option<ReadStart> {
    let mut bytes = vec![0; usize::try_from(hit.at.length).ok()?];
    file.seek(SeekFrom::Start(hit.at.offset)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    let at = Span { length: 0, ..hit.at };
    let mut counted = EventsBeforeHit { hit, seen: 0, before: None };
    let mut reading = Reading::from_line(format, Wanted::All, at);
    reading.feed(&bytes, &mut counted);
    reading.end(&mut counted);
    Some(ReadStart { at, event: hit.event.checked_sub(counted.before?)? })
}

/// Counts the events of a record before a hit.
struct EventsBeforeHit<'h> {
    hit: &'h Hit,
    seen: u64,
    before: Option<u64>,
}

impl Sink for EventsBeforeHit<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let mut is_it = false;
        EntryBuilder::default().entries(event, &mut |event, entry| {
            is_it |= event.part.index == self.hit.part && entry.key == self.hit.key;
        });
        if is_it && self.before.is_none() {
            self.before = Some(self.seen);
        }
        self.seen += 1;
    }
}
