//! Asking the index: a query in, hits out, each with the place where it stands. The catalogue says what counts; what a hit says is
//! read from its source, or from the archive when that is gone.

mod check;
mod counts;
mod load;
mod position;
mod ranked;
mod translate;

use std::cmp::{Ordering, Reverse};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use stenograph::model::Span;
use stenograph::query::{Query, Same, Shown, collapse_pieces};
use tantivy::Searcher as Engine;
use tantivy::collector::Count;

use check::Verdicts;
pub use load::{Absent, Depth, Each};
pub use position::Start;
use ranked::Columns;

use super::catalogue::{Catalogue, Lots, Session, SessionId, SourceId, SourceRow};
use super::seal::Part;
use super::text::{self, Fields, TextIndex, of_engine};
use super::{Store, archive_worker};
use crate::{Error, Place, Problem};

/// In which order hits come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The best first.
    #[default]
    Best,
    /// The newest first.
    Newest,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'q> {
    /// For what.
    pub query: &'q Query,
    /// In which order.
    pub order: Order,
    /// The rank of the first hit that is wanted: [`Hit::rank`] of the last one that is known, and one more.
    pub offset: usize,
    /// How many hits are wanted.
    pub limit: usize,
    /// Only sources below this folder.
    pub within: Option<&'q Path>,
}

/// One event that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its place among all that match, in the order that was asked for. Asked again, the same index gives the same.
    pub rank: usize,
    /// How well it answers; comparable within one answer only.
    pub score: f32,
    /// The source it stands in.
    pub source: SourceId,
    /// The session of that source.
    pub session: SessionId,
    /// The version of the source in the archive that it stands in, where the source itself does not say it any more.
    pub version: Option<u32>,
    /// The number of the event in the source, or in that version of it, from 0.
    pub event: u64,
    /// Where its record stands in the source, decoded.
    pub at: Span,
    /// Which part of the record it is.
    pub part: u32,
    /// When, in milliseconds since 1970.
    pub time: Option<i64>,
    /// What copies of it have in common.
    pub key: u64,
    /// What it and its restatements have in common.
    pub twin: u64,
    /// Whether it says again what another says.
    pub restates: bool,
    /// Whether another source of its session tells the same and more.
    pub is_told: bool,
    /// The same as `twin` for each of its texts, where it has several.
    pub pieces: Vec<u64>,
    /// The tool that was called, or that answered. A result may not name it, and its record alone does not tell.
    pub tool: Option<String>,
    /// Whether a call or the run failed by it, which other records may decide.
    pub has_failed: bool,
    /// How many copies of it stand elsewhere.
    pub copies: usize,
}

impl Hit {
    /// What hits are sorted by to come newest first, with and without an index. Of one moment, the later event comes first; what stands
    /// inside one record goes by its parts.
    pub fn newest_first(&self) -> impl Ord + use<> {
        (Reverse(self.time), self.version, self.source, Reverse(self.event), self.part, self.key)
    }

    /// Compares hits that come best first. Equally good ones come newest first.
    fn best_first(&self, other: &Hit) -> Ordering {
        let place = |hit: &Hit| (Reverse(hit.time), hit.version, hit.source, hit.event, hit.part, hit.key);
        other.score.total_cmp(&self.score).then_with(|| place(self).cmp(&place(other)))
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The hits that were asked for.
    pub hits: Vec<Hit>,
    /// How many there are altogether.
    pub total: u64,
    /// Whether that is exact: with very many hits, copies among them are not told apart, and not all are read that would have to be.
    pub is_exact: bool,
    /// Whether there are more after these.
    pub has_more: bool,
}

/// An index that is open for questions.
pub struct Searcher {
    store: Store,
    catalogue: Catalogue,
    engine: Engine,
    fields: Fields,
    place: Place,
    lots: Arc<Lots>,
    sessions: HashMap<SessionId, Session>,
    sources: HashMap<SourceId, SourceRow>,
    archive: Option<archive_worker::Kept>,
}

impl std::fmt::Debug for Searcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Searcher").field("store", &self.store).finish_non_exhaustive()
    }
}

/// How many hits are looked at to find copies among them, beyond those that are wanted.
const MARGIN: usize = 64;

/// How often the index is opened anew while somebody writes to it.
const TRIES: usize = 100;

/// So many hits are always looked at as a whole, so that their number is exact.
const WHOLE_MAX: usize = 4_096;

impl Store {
    /// Opens the index for questions.
    pub fn searcher(&self) -> Result<Searcher, Error> {
        for _ in 1..TRIES {
            if let Some(searcher) = self.try_searcher()? {
                return Ok(searcher);
            }
        }
        self.try_searcher()?.ok_or_else(|| Error::about(&self.index(), Problem::Locked { holder: None }))
    }

    /// The same, unless two batches were committed in between: the second may have deleted what the catalogue still speaks of.
    fn try_searcher(&self) -> Result<Option<Searcher>, Error> {
        let catalogue = self.catalogue()?;
        // First what counts, then the text: what the text has more is passed over.
        catalogue.hold()?;
        let lots = catalogue.lots()?;
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
            lots: Arc::new(lots),
            sessions: HashMap::new(),
            sources: HashMap::new(),
            archive: None,
        }))
    }
}

impl Searcher {
    /// The catalogue, as it was when this was opened.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The session of this number.
    pub fn session(&mut self, id: SessionId) -> Result<Option<&Session>, Error> {
        if !self.sessions.contains_key(&id)
            && let Some(session) = self.catalogue.session(id)?
        {
            self.sessions.insert(id, session);
        }
        Ok(self.sessions.get(&id))
    }

    /// The source of this number.
    pub fn source(&mut self, id: SourceId) -> Result<Option<&SourceRow>, Error> {
        if !self.sources.contains_key(&id)
            && let Some(source) = self.catalogue.source(id)?
        {
            self.sources.insert(id, source);
        }
        Ok(self.sources.get(&id))
    }

    /// Answers a query.
    pub fn find(&mut self, request: &Request<'_>) -> Result<Answer, Error> {
        let translated = self.translate(request)?;
        let wanted = request.offset.saturating_add(request.limit);
        let matching = self.engine.search(&translated.query, &Count).map_err(|error| of_engine(&self.place, error))?;
        let mut fetch = wanted.saturating_mul(2).saturating_add(MARGIN);
        // What has to be read to be checked is not read for the sake of a number.
        if matching <= WHOLE_MAX && !translated.must_check() {
            fetch = fetch.max(matching);
        }
        let mut verdicts = Verdicts::default();
        loop {
            let all = fetch >= matching;
            let fetched = self.fetch(&translated.query, request.order, fetch.min(matching).max(1))?;
            let fetched = match translated.must_check() {
                true => self.checked(fetched, request.query, translated.depth, &mut verdicts)?,
                false => fetched,
            };
            let fetched = still_said_first(fetched);
            // What a document says in other words than its journal is said again; what both say in the same words is a copy.
            let stated_keys: HashSet<u64> = fetched.iter().filter(|hit| !hit.is_told).map(|hit| hit.key).collect();
            let restates = |hit: &Hit| hit.restates || hit.is_told && !stated_keys.contains(&hit.key);
            let same: Vec<Same<SessionId>> = fetched
                .iter()
                .map(|hit| Same { session: hit.session, key: hit.key, twin: hit.twin, restates: restates(hit) })
                .collect();
            let stating = fetched.iter().filter(|hit| !restates(hit));
            let pieces = stating.flat_map(|hit| hit.pieces.iter().map(|piece| (hit.session, *piece)));
            let shown = collapse_pieces(&same, pieces);
            let is_new = |shown: &&Shown| fetched.get(shown.hit).is_some_and(|hit| hit.rank >= request.offset);
            let new: Vec<&Shown> = shown.iter().filter(is_new).collect();
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
            return Ok(Answer { hits, total: total as u64, is_exact: all, has_more });
        }
    }

    /// The first matches in order, those that count.
    fn fetch(&self, query: &dyn tantivy::query::Query, order: Order, limit: usize) -> Result<Vec<Hit>, Error> {
        let failed = |error| of_engine(&self.place, error);
        let found = ranked::first(&self.engine, query, order, limit, &self.lots).map_err(failed)?;
        let mut columns = HashMap::new();
        let mut hits = Vec::with_capacity(found.len());
        for (score, address) in found {
            let columns = match columns.entry(address.segment_ord) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(Columns::of(self.engine.segment_reader(address.segment_ord)).map_err(failed)?)
                }
            };
            hits.extend(columns.hit(address.doc_id, score, &self.lots));
        }
        match order {
            Order::Best => hits.sort_by(Hit::best_first),
            Order::Newest => hits.sort_by_key(Hit::newest_first),
        }
        (0..).zip(&mut hits).for_each(|(rank, hit)| hit.rank = rank);
        Ok(hits)
    }
}

/// The hits without those of earlier versions that another source still says.
fn still_said_first(mut hits: Vec<Hit>) -> Vec<Hit> {
    if hits.iter().any(|hit| hit.version.is_some()) {
        let said: HashSet<u64> = hits.iter().filter(|hit| hit.version.is_none()).map(|hit| hit.key).collect();
        hits.retain(|hit| hit.version.is_none() || !said.contains(&hit.key));
    }
    hits
}
