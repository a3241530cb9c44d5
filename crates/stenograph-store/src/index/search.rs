//! Asking the index: a query in, hits out, each with the place where it stands. The catalogue says what counts; what a hit says is
//! read from its source, or from the archive when that is gone.

mod check;
mod counts;
mod load;
mod position;
mod translate;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use stenograph::model::Span;
use stenograph::query::{Query, Same, collapse_pieces};
use tantivy::collector::{Count, TopDocs};
use tantivy::columnar::{Column, StrColumn};
use tantivy::{DocAddress, Order as Direction, Searcher as Engine};

use check::Verdicts;
pub use load::{Absent, Depth, Each};
pub use position::Start;

use super::catalogue::{Catalogue, Lots, Session, SessionId, SourceId, SourceRow};
use super::seal::Part;
use super::text::{self, Fields, TextIndex, of_engine, twin};
use super::{Store, keeper};
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
    /// How many hits are passed over.
    pub offset: usize,
    /// How many hits are wanted.
    pub limit: usize,
    /// Only sources below this folder.
    pub within: Option<&'q Path>,
}

/// One event that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
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
    lots: Lots,
    sessions: HashMap<SessionId, Session>,
    sources: HashMap<SourceId, SourceRow>,
    archive: Option<keeper::Kept>,
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
            lots,
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
            let same: Vec<Same<SessionId>> = fetched
                .iter()
                .map(|hit| Same { session: hit.session, key: hit.key, twin: hit.twin, restates: hit.restates })
                .collect();
            let stating = fetched.iter().filter(|hit| !hit.restates);
            let pieces = stating.flat_map(|hit| hit.pieces.iter().map(|piece| (hit.session, *piece)));
            let shown = collapse_pieces(&same, pieces);
            if shown.len() < wanted && !all {
                fetch = fetch.saturating_mul(4);
                continue;
            }
            let total = if all || translated.must_check() { shown.len() } else { matching };
            let hits = shown.iter().skip(request.offset).take(request.limit).filter_map(|shown| {
                fetched.get(shown.hit).map(|hit| Hit { copies: shown.copies.len(), ..hit.clone() })
            });
            let hits: Vec<Hit> = hits.collect();
            let has_more = shown.len() > wanted || !all;
            return Ok(Answer { hits, total: total as u64, is_exact: all, has_more });
        }
    }

    /// The first matches in order, those that count.
    fn fetch(&self, query: &dyn tantivy::query::Query, order: Order, limit: usize) -> Result<Vec<Hit>, Error> {
        let failed = |error| of_engine(&self.place, error);
        let found: Vec<(f32, DocAddress)> = match order {
            Order::Best => {
                let collector = TopDocs::with_limit(limit).order_by_score();
                self.engine.search(query, &collector).map_err(failed)?
            }
            Order::Newest => {
                let collector = TopDocs::with_limit(limit).order_by_fast_field::<i64>("time", Direction::Desc);
                let found = self.engine.search(query, &collector).map_err(failed)?;
                found.into_iter().map(|(_, address)| (0.0, address)).collect()
            }
        };
        let mut columns = HashMap::new();
        let mut hits = Vec::with_capacity(found.len());
        for (score, address) in found {
            let columns = match columns.entry(address.segment_ord) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(Columns::of(&self.engine, address.segment_ord).map_err(failed)?)
                }
            };
            hits.extend(columns.hit(address.doc_id, score, &self.lots));
        }
        // Equally good ones come newest first; that also makes the order the same every time.
        if order == Order::Best {
            hits.sort_by(|one, other| {
                let place = |hit: &Hit| (hit.version, hit.source, hit.event, hit.part, hit.key);
                let by_place = place(one).cmp(&place(other));
                other.score.total_cmp(&one.score).then(Reverse(one.time).cmp(&Reverse(other.time))).then(by_place)
            });
        } else {
            hits.sort_by_key(Hit::newest_first);
        }
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

/// The numbers of one segment's documents.
struct Columns {
    lot: Column<u64>,
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
    fn of(engine: &Engine, segment: u32) -> tantivy::Result<Columns> {
        let fast = engine.segment_reader(segment).fast_fields();
        Ok(Columns {
            lot: fast.u64("lot")?,
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

    fn tool(&self, document: u32) -> Option<String> {
        let column = self.tool.as_ref()?;
        let mut name = String::new();
        let is_known = column.ord_to_str(column.term_ords(document).next()?, &mut name).ok()?;
        is_known.then_some(name)
    }

    /// The hit that a document is, if it counts.
    fn hit(&self, document: u32, score: f32, lots: &Lots) -> Option<Hit> {
        let event = self.event.first(document)?;
        let lot = lots.live(self.lot.first(document)?, event)?;
        let (mut twin, mut pieces) = (0, Vec::new());
        for number in self.twin.values_for_doc(document) {
            if twin::is_piece(number) { pieces.push(twin::print(number)) } else { twin = number }
        }
        Some(Hit {
            score,
            source: lot.source,
            session: lot.session,
            version: lot.version,
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
            restates: lot.is_told || twin::restates(twin),
            pieces,
            tool: self.tool(document),
            has_failed: self.failed.first(document) == Some(1),
            copies: 0,
        })
    }
}
