//! Searching the index: a query in, hits out, each with its position. The catalogue decides which documents are live; the
//! content of a hit is read from its source, or from the archive if that is gone.

mod check;
mod counts;
mod load;
mod marks;
mod position;
mod ranked;
mod translate;

use std::cmp::{Ordering, Reverse};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use stenograph::model::Span;
use stenograph::query::{CollapsedHit, Query, Same, collapse};
use tantivy::collector::Count;
use tantivy::{DocAddress, Searcher as Engine};

use check::CheckedHits;
pub use load::{EntryDetail, HitReader, Unavailable};
pub use marks::MarkHit;
pub use position::ReadStart;
use ranked::Columns;

use super::catalogue::{Catalogue, IndexedSession, SessionId, SourceId, SourceRow};
use super::seal::Part;
use super::text::{self, Fields, TextIndex, engine_error};
use super::{Store, archive_worker};
use crate::{Error, Place, Problem};

/// The order of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The best first.
    #[default]
    Best,
    /// The newest first.
    Newest,
}

/// A search request.
#[derive(Clone, Copy, Debug)]
pub struct SearchRequest<'q> {
    /// What to search for.
    pub query: &'q Query,
    /// The order of the hits.
    pub order: Order,
    /// The rank of the first wanted hit: one more than [`Hit::rank`] of the last known one.
    pub offset: usize,
    /// The maximum number of hits.
    pub limit: usize,
    /// Search only sources below this folder.
    pub within: Option<&'q Path>,
}

/// One event that matches.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its rank among all matches in the requested order. The same index gives the same ranks again.
    pub rank: usize,
    /// How well it matches; comparable within one search only.
    pub score: f32,
    /// The source that contains it.
    pub source: SourceId,
    /// The session of that source.
    pub session: SessionId,
    /// The archived version that contains it, if the source itself no longer does.
    pub version: Option<u32>,
    /// The number of the event in the source, or in that version of it, from 0.
    pub event: u64,
    /// The position of its record in the decoded source.
    pub at: Span,
    /// The number of its part within the record.
    pub part: u32,
    /// The time, in milliseconds since 1970.
    pub time: Option<i64>,
    /// The key that it shares with its copies.
    pub key: u64,
    /// The key that it shares with its restatements.
    pub twin: u64,
    /// Whether it restates another event.
    pub restates: bool,
    /// Whether another source of its session covers its source.
    pub is_covered: bool,
    /// A `twin` for each of its texts, if it has several.
    pub pieces: Vec<u64>,
    /// The tool that was called or that returned a result. A result may not name it, and its record alone does not tell.
    pub tool: Option<String>,
    /// Whether it failed a call or the run, which other records may decide.
    pub has_failed: bool,
    /// How many other places have a copy of it.
    pub copies: usize,
}

impl Hit {
    /// The sort key for newest first, with and without an index. Of one moment, the later event comes first; events of one
    /// record are ordered by part.
    pub fn newest_first(&self) -> impl Ord + use<> {
        (Reverse(self.time), self.version, self.source, Reverse(self.event), self.part, self.key)
    }

    /// Compares hits for best first. Equally good ones come newest first.
    fn best_first(&self, other: &Hit) -> Ordering {
        let place = |hit: &Hit| (Reverse(hit.time), hit.version, hit.source, hit.event, hit.part, hit.key);
        other.score.total_cmp(&self.score).then_with(|| place(self).cmp(&place(other)))
    }
}

/// The results of a search.
#[derive(Clone, Debug, Default)]
pub struct SearchResults {
    /// The requested hits.
    pub hits: Vec<Hit>,
    /// The number of all hits.
    pub total: u64,
    /// Whether `total` is exact. With very many hits, copies are not merged and not every candidate is checked.
    pub is_exact: bool,
    /// Whether more hits follow.
    pub has_more: bool,
}

/// An index that is open for searches.
pub struct Searcher {
    store: Store,
    catalogue: Catalogue,
    engine: Engine,
    fields: Fields,
    place: Place,
    sessions: HashMap<SessionId, IndexedSession>,
    sources: HashMap<SourceId, SourceRow>,
    archive: Option<archive_worker::ArchiveReader>,
}

impl std::fmt::Debug for Searcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Searcher").field("store", &self.store).finish_non_exhaustive()
    }
}

/// How many hits are examined for copies beyond the wanted ones.
const MARGIN: usize = 64;

/// How often to reopen the index while another process writes to it.
const TRIES: usize = 100;

/// Up to this number all hits are examined, so that their count is exact.
const WHOLE_MAX: usize = 4_096;

impl Store {
    /// Opens the index for searches.
    pub fn searcher(&self) -> Result<Searcher, Error> {
        for _ in 1..TRIES {
            if let Some(searcher) = self.try_searcher()? {
                return Ok(searcher);
            }
        }
        self.try_searcher()?.ok_or_else(|| Error::about(&self.index(), Problem::Locked { holder: None }))
    }

    /// Opens the index once. `None` if two batches were committed meanwhile: the second may have deleted documents that the
    /// catalogue snapshot still lists.
    fn try_searcher(&self) -> Result<Option<Searcher>, Error> {
        let catalogue = self.catalogue()?;
        // The catalogue first, then the text: extra documents of the text are ignored.
        catalogue.snapshot()?;
        let folder = text::folder(&self.index());
        let damaged = || Error::about(&folder, Problem::IndexDamaged);
        self.check_seal(catalogue.commits()?, Part::Text)?;
        let text = TextIndex::open(&folder).ok_or_else(damaged)?;
        let commits = catalogue.commits()?;
        if self.is_unsealed(commits) && !text.is_whole() && self.is_unsealed(commits) {
            return Err(damaged());
        }
        if text.batch_number().is_none_or(|number| catalogue.batch_number().is_ok_and(|batch| number < batch)) {
            return Err(damaged());
        }
        let engine = text.reader()?.searcher();
        if text.batch_number().is_none_or(|number| catalogue.batch_number().is_ok_and(|batch| number > batch + 1)) {
            return Ok(None);
        }
        Ok(Some(Searcher {
            store: self.clone(),
            catalogue,
            engine,
            fields: text.fields,
            place: Place::Path(folder),
            sessions: HashMap::new(),
            sources: HashMap::new(),
            archive: None,
        }))
    }
}

impl Searcher {
    /// The catalogue as it was when the index was opened.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The session with this number.
    pub fn session(&mut self, id: SessionId) -> Result<Option<&IndexedSession>, Error> {
        if !self.sessions.contains_key(&id)
            && let Some(session) = self.catalogue.session(id)?
        {
            self.sessions.insert(id, session);
        }
        Ok(self.sessions.get(&id))
    }

    /// The source with this number.
    pub fn source(&mut self, id: SourceId) -> Result<Option<&SourceRow>, Error> {
        if !self.sources.contains_key(&id)
            && let Some(source) = self.catalogue.source(id)?
        {
            self.sources.insert(id, source);
        }
        Ok(self.sources.get(&id))
    }

    /// Runs a search.
    pub fn find(&mut self, request: &SearchRequest<'_>) -> Result<SearchResults, Error> {
        let translated = self.translate(request)?;
        let wanted = request.offset.saturating_add(request.limit);
        let matching =
            self.engine.search(&translated.query, &Count).map_err(|error| engine_error(&self.place, error))?;
        let mut fetch = wanted.saturating_mul(2).saturating_add(MARGIN);
        // Candidates are not read only to count them exactly.
        if matching <= WHOLE_MAX && !translated.must_check() {
            fetch = fetch.max(matching);
        }
        let mut verdicts = CheckedHits::default();
        loop {
            let all = fetch >= matching;
            let fetched = self.fetch(&translated.query, request.order, fetch.min(matching).max(1))?;
            let fetched = match translated.must_check() {
                true => self.checked(fetched, request.query, translated.depth, &mut verdicts)?,
                false => fetched,
            };
            let fetched = without_superseded(fetched);
            // A document that differs in words from its journal is a restatement; one with the same words is a copy.
            let stated_keys: HashSet<u64> = fetched.iter().filter(|hit| !hit.is_covered).map(|hit| hit.key).collect();
            let restates = |hit: &Hit| hit.restates || hit.is_covered && !stated_keys.contains(&hit.key);
            let same: Vec<Same<SessionId>> = fetched
                .iter()
                .map(|hit| Same { session: hit.session, key: hit.key, twin: hit.twin, restates: restates(hit) })
                .collect();
            let stating = fetched.iter().filter(|hit| !restates(hit));
            let pieces = stating.flat_map(|hit| hit.pieces.iter().map(|piece| (hit.session, *piece)));
            let shown = collapse(&same, pieces);
            let is_new = |shown: &&CollapsedHit| fetched.get(shown.hit).is_some_and(|hit| hit.rank >= request.offset);
            let new: Vec<&CollapsedHit> = shown.iter().filter(is_new).collect();
            if new.len() < request.limit && !all {
                fetch = fetch.saturating_mul(4);
                continue;
            }
            let total = if all || translated.must_check() { shown.len() } else { matching };
            let has_more = new.len() > request.limit || !all;
            let hits = new.into_iter().take(request.limit).filter_map(|shown| {
                fetched.get(shown.hit).map(|hit| Hit { copies: shown.copies.len(), ..hit.clone() })
            });
            let hits: Vec<Hit> = hits.collect();
            return Ok(SearchResults { hits, total: total as u64, is_exact: all, has_more });
        }
    }

    /// The first live matches, in order.
    fn fetch(&self, query: &dyn tantivy::query::Query, order: Order, limit: usize) -> Result<Vec<Hit>, Error> {
        let found = ranked::first(&self.engine, &self.place, query, order, limit, &self.catalogue)?;
        let mut columns: HashMap<u32, Columns> = HashMap::new();
        for (_, address) in &found {
            if let Entry::Vacant(entry) = columns.entry(address.segment_ord) {
                let segment = self.engine.segment_reader(address.segment_ord);
                entry.insert(Columns::of(segment).map_err(|error| engine_error(&self.place, error))?);
            }
        }
        let number = |address: &DocAddress| columns.get(&address.segment_ord)?.doc_group(address.doc_id);
        let doc_groups =
            self.catalogue.doc_groups(&found.iter().filter_map(|(_, address)| number(address)).collect())?;
        let hit = |(score, address): &(f32, DocAddress)| {
            columns.get(&address.segment_ord)?.hit(address.doc_id, *score, &doc_groups)
        };
        let mut hits: Vec<Hit> = found.iter().filter_map(hit).collect();
        match order {
            Order::Best => hits.sort_by(Hit::best_first),
            Order::Newest => hits.sort_by_key(Hit::newest_first),
        }
        (0..).zip(&mut hits).for_each(|(rank, hit)| hit.rank = rank);
        Ok(hits)
    }
}

/// Removes hits of earlier versions if another hit is a copy that still exists.
fn without_superseded(mut hits: Vec<Hit>) -> Vec<Hit> {
    if hits.iter().any(|hit| hit.version.is_some()) {
        let current: HashSet<u64> = hits.iter().filter(|hit| hit.version.is_none()).map(|hit| hit.key).collect();
        hits.retain(|hit| hit.version.is_none() || !current.contains(&hit.key));
    }
    hits
}
