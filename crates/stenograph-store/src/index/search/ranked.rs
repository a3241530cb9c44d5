//! The first matching documents in a stable order; without it, pages of results would lose some hits and repeat others.
//! Document values come from the columns of their segment.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use stenograph::model::Span;
use tantivy::collector::{Collector, SegmentCollector, TopDocs};
use tantivy::columnar::{Column, StrColumn};
use tantivy::query::Query;
use tantivy::{DocAddress, Order as Direction, Searcher as Engine, SegmentReader};

use super::{Hit, Order};
use crate::index::catalogue::{Catalogue, DocGroups};
use crate::index::text::{engine_error, twin};
use crate::{Error, Place};

/// What orders documents first: the score, unless the newest come first, and the time.
type Rank = (f32, Option<i64>);

/// The first documents, with their scores if the order needs them. The engine orders ties arbitrarily, so if the limit splits a
/// tie of scores, the times decide, and if it splits a tie of those, the rest of the sort key decides.
pub(super) fn first(
    engine: &Engine,
    place: &Place,
    query: &dyn Query,
    order: Order,
    limit: usize,
    catalogue: &Catalogue,
) -> Result<Vec<(f32, DocAddress)>, Error> {
    let failed = |error| engine_error(place, error);
    let top = || TopDocs::with_limit(limit.saturating_add(1));
    let found: Vec<(Rank, DocAddress)> = match order {
        Order::Best => {
            let mut found = engine.search(query, &top().order_by_score()).map_err(failed)?;
            if !parts_equals(&found, limit) {
                found.truncate(limit);
                return Ok(found);
            }
            engine.search(query, &top().tweak_score(|segment: &SegmentReader| ranks(segment, Order::Best)))
        }
        Order::Newest => {
            let newest = top().order_by_fast_field::<i64>("time", Direction::Desc);
            let found = engine.search(query, &newest);
            found.map(|found| found.into_iter().map(|(time, address)| ((0.0, time), address)).collect())
        }
    }
    .map_err(failed)?;
    let tied = found.get(limit.saturating_sub(1)).filter(|_| parts_equals(&found, limit)).map(|(rank, _)| *rank);
    let sure = found.iter().take_while(|(rank, _)| Some(*rank) != tied).take(limit);
    let mut first: Vec<(f32, DocAddress)> = sure.map(|((score, _), address)| (*score, *address)).collect();
    if let Some(tied) = tied {
        let numbers = engine.search(query, &TiedGroups { tied, order }).map_err(failed)?;
        let doc_groups = catalogue.doc_groups(&numbers)?;
        let left = limit - first.len();
        first.extend(first_tied(engine, query, order, left, tied, doc_groups).map_err(failed)?);
    }
    Ok(first)
}

/// Whether the last document within the limit ties with the first one beyond it.
fn parts_equals<R: PartialEq>(found: &[(R, DocAddress)], limit: usize) -> bool {
    let rank = |at: Option<usize>| found.get(at?).map(|(rank, _)| rank);
    found.len() > limit && rank(limit.checked_sub(1)) == rank(Some(limit))
}

/// The ranks of the documents of a segment.
fn ranks(segment: &SegmentReader, order: Order) -> impl Fn(u32, f32) -> Rank + use<> {
    let times = segment.fast_fields().i64("time").ok();
    move |document, score| {
        let time = times.as_ref().and_then(|times| times.first(document));
        (if order == Order::Best { score } else { 0.0 }, time)
    }
}

/// The first live documents of those with the rank `tied`, ordered as in [`Hit::best_first`] and [`Hit::newest_first`].
fn first_tied(
    engine: &Engine,
    query: &dyn Query,
    order: Order,
    limit: usize,
    tied: Rank,
    doc_groups: DocGroups,
) -> tantivy::Result<impl Iterator<Item = (f32, DocAddress)>> {
    let doc_groups = Arc::new(doc_groups);
    let by_sort_key = move |segment: &SegmentReader| {
        let (ranks, columns, doc_groups) = (ranks(segment, order), Columns::of(segment).ok(), Arc::clone(&doc_groups));
        move |document: u32, score: f32| {
            let columns = columns.as_ref().filter(|_| ranks(document, score) == tied)?;
            let event = columns.event.first(document)?;
            let doc_group = doc_groups.live(columns.doc_group.first(document)?, event)?;
            let (part, key) = (columns.part.first(document)?, columns.key.first(document)?);
            // The greatest comes first. Of one moment that is the later event for newest first, and the earlier event
            // otherwise.
            let event = i64::try_from(event).unwrap_or(i64::MAX);
            let event = if order == Order::Newest { event } else { -event };
            Some((Reverse((doc_group.version, doc_group.source)), event, Reverse((part, key))))
        }
    };
    let found = engine.search(query, &TopDocs::with_limit(limit.max(1)).tweak_score(by_sort_key))?;
    Ok(found.into_iter().take(limit).filter(|(key, _)| key.is_some()).map(move |(_, address)| (tied.0, address)))
}

/// Collects the document groups of the documents with this rank.
struct TiedGroups {
    tied: Rank,
    order: Order,
}

struct TiedGroupsOfSegment<R> {
    tied: Rank,
    ranks: R,
    doc_group: Column<u64>,
    found: HashSet<u64>,
}

impl Collector for TiedGroups {
    type Fruit = HashSet<u64>;
    type Child = TiedGroupsOfSegment<Box<dyn Fn(u32, f32) -> Rank>>;

    fn for_segment(&self, _number: u32, segment: &SegmentReader) -> tantivy::Result<Self::Child> {
        let doc_group = segment.fast_fields().u64("doc_group")?;
        let ranks = Box::new(ranks(segment, self.order));
        Ok(TiedGroupsOfSegment { tied: self.tied, ranks, doc_group, found: HashSet::new() })
    }

    fn requires_scoring(&self) -> bool {
        self.order == Order::Best
    }

    fn merge_fruits(&self, found: Vec<HashSet<u64>>) -> tantivy::Result<HashSet<u64>> {
        Ok(found.into_iter().flatten().collect())
    }
}

impl<R: Fn(u32, f32) -> Rank + 'static> SegmentCollector for TiedGroupsOfSegment<R> {
    type Fruit = HashSet<u64>;

    fn collect(&mut self, document: u32, score: f32) {
        if (self.ranks)(document, score) == self.tied {
            self.found.extend(self.doc_group.first(document));
        }
    }

    fn harvest(self) -> HashSet<u64> {
        self.found
    }
}

/// The columns of one segment.
pub(super) struct Columns {
    doc_group: Column<u64>,
    event: Column<u64>,
    offset: Column<u64>,
    length: Column<u64>,
    line: Column<u64>,
    part: Column<u64>,
    key: Column<u64>,
    twin: Column<u64>,
    time: Column<i64>,
    tool: Option<StrColumn>,
    failed: Column<u64>,
}

impl Columns {
    pub fn of(segment: &SegmentReader) -> tantivy::Result<Columns> {
        let fast = segment.fast_fields();
        Ok(Columns {
            doc_group: fast.u64("doc_group")?,
            event: fast.u64("event")?,
            offset: fast.u64("offset")?,
            length: fast.u64("length")?,
            line: fast.u64("line")?,
            part: fast.u64("part")?,
            key: fast.u64("key")?,
            twin: fast.u64("twin")?,
            time: fast.i64("time")?,
            tool: fast.str("tool_name")?,
            failed: fast.u64("failed")?,
        })
    }

    /// The number of the group of a document.
    pub fn doc_group(&self, document: u32) -> Option<u64> {
        self.doc_group.first(document)
    }

    fn tool(&self, document: u32) -> Option<String> {
        let column = self.tool.as_ref()?;
        let mut name = String::new();
        let is_known = column.ord_to_str(column.term_ords(document).next()?, &mut name).ok()?;
        is_known.then_some(name)
    }

    /// The hit of a document, if it is live.
    pub fn hit(&self, document: u32, score: f32, doc_groups: &DocGroups) -> Option<Hit> {
        let event = self.event.first(document)?;
        let doc_group = doc_groups.live(self.doc_group.first(document)?, event)?;
        let (mut twin, mut pieces) = (0, Vec::new());
        for number in self.twin.values_for_doc(document) {
            if twin::is_piece(number) { pieces.push(twin::fingerprint(number)) } else { twin = number }
        }
        Some(Hit {
            rank: 0,
            score,
            source: doc_group.source,
            session: doc_group.session,
            version: doc_group.version,
            event,
            at: Span {
                offset: self.offset.first(document)?,
                length: self.length.first(document)?,
                line: self.line.first(document)?,
            },
            part: u32::try_from(self.part.first(document)?).ok()?,
            time: self.time.first(document),
            key: self.key.first(document)?,
            twin: twin::fingerprint(twin),
            restates: twin::restates(twin),
            is_covered: doc_group.is_covered,
            pieces,
            tool: self.tool(document),
            has_failed: self.failed.first(document) == Some(1),
            copies: 0,
        })
    }
}
