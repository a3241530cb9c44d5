//! The first matching documents in a stable order; without it, pages of results would lose some hits and repeat others.
//! Document values come from the columns of their segment.

use std::cmp::Reverse;
use std::sync::Arc;

use stenograph::model::Span;
use tantivy::collector::TopDocs;
use tantivy::columnar::{Column, StrColumn};
use tantivy::query::Query;
use tantivy::{DocAddress, Order as Direction, Searcher as Engine, SegmentReader};

use super::{Hit, Order};
use crate::index::catalogue::{DocGroups, SourceId};
use crate::index::text::twin;

/// The first documents, with their scores if the order needs them. The engine orders ties arbitrarily, so if the limit splits a
/// tie, all documents of the tie are compared by their sort keys.
pub(super) fn first(
    engine: &Engine,
    query: &dyn Query,
    order: Order,
    limit: usize,
    doc_groups: &Arc<DocGroups>,
) -> tantivy::Result<Vec<(f32, DocAddress)>> {
    let top = TopDocs::with_limit(limit.saturating_add(1));
    let (mut found, parts_equals) = match order {
        Order::Best => {
            let found = engine.search(query, &top.order_by_score())?;
            let parts_equals = parts_equals(&found, limit);
            (found, parts_equals)
        }
        Order::Newest => {
            let found = engine.search(query, &top.order_by_fast_field::<i64>("time", Direction::Desc))?;
            let parts_equals = parts_equals(&found, limit);
            (found.into_iter().map(|(_, address)| (0.0, address)).collect(), parts_equals)
        }
    };
    if parts_equals {
        return first_by_sort_key(engine, query, order, limit, doc_groups);
    }
    found.truncate(limit);
    Ok(found)
}

/// Whether the last document within the limit ties with the first one beyond it.
fn parts_equals<R: PartialEq>(found: &[(R, DocAddress)], limit: usize) -> bool {
    let rank = |at: Option<usize>| found.get(at?).map(|(rank, _)| rank);
    found.len() > limit && rank(limit.checked_sub(1)) == rank(Some(limit))
}

/// The tie breaker, as in [`Hit::best_first`] and [`Hit::newest_first`].
#[derive(Clone, Copy, Debug)]
struct SortKey {
    time: Option<i64>,
    version: Option<u32>,
    source: SourceId,
    event: u64,
    part: u64,
    key: u64,
}

fn first_by_sort_key(
    engine: &Engine,
    query: &dyn Query,
    order: Order,
    limit: usize,
    doc_groups: &Arc<DocGroups>,
) -> tantivy::Result<Vec<(f32, DocAddress)>> {
    let doc_groups = Arc::clone(doc_groups);
    let by_sort_key = move |segment: &SegmentReader| {
        let (columns, doc_groups) = (Columns::of(segment).ok(), Arc::clone(&doc_groups));
        move |document: u32, score: f32| {
            let sort_key = columns.as_ref().and_then(|columns| columns.sort_key(document, &doc_groups));
            let score = if order == Order::Best { score } else { 0.0 };
            // The greatest comes first. Of one moment that is the later event for newest first, and the earlier event
            // otherwise.
            let sort_key = sort_key.map(|key| {
                let event = i64::try_from(key.event).unwrap_or(i64::MAX);
                let event = if order == Order::Newest { event } else { -event };
                (key.time, Reverse((key.version, key.source)), event, Reverse((key.part, key.key)))
            });
            (score, sort_key)
        }
    };
    let found = engine.search(query, &TopDocs::with_limit(limit).tweak_score(by_sort_key))?;
    Ok(found.into_iter().map(|((score, _), address)| (score, address)).collect())
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
            doc_group: fast.u64("lot")?,
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

    /// The sort key of a document, if it is live.
    fn sort_key(&self, document: u32, doc_groups: &DocGroups) -> Option<SortKey> {
        let event = self.event.first(document)?;
        let doc_group = doc_groups.live(self.doc_group.first(document)?, event)?;
        let time = self.time.first(document);
        Some(SortKey {
            time,
            version: doc_group.version,
            source: doc_group.source,
            event,
            part: self.part.first(document)?,
            key: self.key.first(document)?,
        })
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
            if twin::is_piece(number) { pieces.push(twin::print(number)) } else { twin = number }
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
            twin: twin::print(twin),
            restates: twin::restates(twin),
            is_covered: doc_group.is_covered,
            pieces,
            tool: self.tool(document),
            has_failed: self.failed.first(document) == Some(1),
            copies: 0,
        })
    }
}
