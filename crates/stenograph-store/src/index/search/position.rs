//! Where an event of a source is read from: the record nearest before it that the index knows, so that nobody reads all before it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Bound;

use stenograph::Registry;
use stenograph::format::{Format, Want};
use stenograph::model::{Event, Note, Span};
use stenograph::query::EntryBuilder;
use stenograph::read::{Reading, Sink};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, RangeQuery, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{Order as Direction, Term};

use super::{Columns, Hit, Searcher, of_engine};
use crate::Error;
use crate::discover::Stat;
use crate::index::catalogue::{SourceRow, Stamp};
use crate::index::change::{self, Change};
use crate::source_file::Access;

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Where the record stands.
    pub at: Span,
    /// The number of its first event, from 0.
    pub event: u64,
}

impl Searcher {
    /// The record to read a source from to meet the event of this number, from 0. There is none where the source has to be read from its
    /// beginning: because of its format, or because the file is not what was indexed.
    pub fn start_before(&self, row: &SourceRow, event: u64) -> Result<Option<Start>, Error> {
        let Some(format) =
            Registry::built_in().named(&row.format).filter(|_| row.access == Access::ByRecord && event > 0)
        else {
            return Ok(None);
        };
        let Some(mut file) = unchanged(row) else { return Ok(None) };
        let term = |field, number| Term::from_field_u64(field, number);
        let lot: Box<dyn Query> = Box::new(TermQuery::new(term(self.fields.lot, row.lot), IndexRecordOption::Basic));
        let before: Box<dyn Query> =
            Box::new(RangeQuery::new(Bound::Unbounded, Bound::Included(term(self.fields.event, event))));
        let query = BooleanQuery::new(vec![(Occur::Must, lot), (Occur::Must, before)]);
        let nearest = TopDocs::with_limit(1).order_by_fast_field::<u64>("event", Direction::Desc);
        let failed = |error| of_engine(&self.place, error);
        let found = self.engine.search(&query, &nearest).map_err(failed)?;
        let Some((_, address)) = found.first() else { return Ok(None) };
        let columns = Columns::of(self.engine.segment_reader(address.segment_ord)).map_err(failed)?;
        let hit = columns.hit(address.doc_id, 0.0, &self.lots).filter(|hit| hit.source == row.id);
        Ok(hit.and_then(|hit| start(&mut file, format, &hit)))
    }
}

/// The file of a source, if what was indexed still stands where it stood.
fn unchanged(row: &SourceRow) -> Option<File> {
    let mut file = File::open(&row.path).ok()?;
    let now = Stamp::from(Stat::of(&row.path).ok()?);
    let change = change::of(row, &mut file, &now).ok()?;
    (change != Change::Rewritten).then_some(file)
}

/// The record of a hit, and the number of its first event: how many events of the record come before the hit is seen by reading it.
fn start(file: &mut File, format: &'static dyn Format, hit: &Hit) -> Option<Start> {
    let mut bytes = vec![0; usize::try_from(hit.at.length).ok()?];
    file.seek(SeekFrom::Start(hit.at.offset)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    let at = Span { length: 0, ..hit.at };
    let mut counted = Counted { hit, seen: 0, before: None };
    let mut reading = Reading::from_line(format, Want::All, at);
    reading.feed(&bytes, &mut counted);
    reading.end(&mut counted);
    Some(Start { at, event: hit.event.checked_sub(counted.before?)? })
}

/// Counts the events of a record that come before a hit.
struct Counted<'h> {
    hit: &'h Hit,
    seen: u64,
    before: Option<u64>,
}

impl Sink for Counted<'_> {
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

    fn note(&mut self, _note: Note) {}
}
