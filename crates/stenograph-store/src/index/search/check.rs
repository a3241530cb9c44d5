//! Checks hits of a query that the engine cannot express exactly: reads their records and lets the query decide. Decisions are
//! cached for one search, so that no record is read twice; a source with many hits is read once as a whole.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use stenograph::format::{Format, Wanted};
use stenograph::model::Event;
use stenograph::query::{EntryBuilder, Query};
use stenograph::read::{Reading, Sink};

use super::load::{EntryDetail, SINGLES_MAX};
use super::{Hit, Searcher, Store};
use crate::databases;
use crate::decode::{ByteCounter, DecodeGuard, decode};
use crate::discover::Stat;
use crate::index::archive_worker::{ArchiveReader, copy_of};
use crate::index::catalogue::{FileStamp, OwnedSessionFacts, SourceId, SourceRow};
use crate::index::change::{self, SourceChange};
use crate::source_file::Access;
use crate::{Error, Passes, Place, Source};

/// A source, or an earlier version of it.
type ArchiveOrigin = (SourceId, Option<u32>);

/// The decisions about hits so far.
#[derive(Debug, Default)]
pub(super) struct CheckedHits {
    /// Sources that were read as a whole: their matching events, by number and key. A nested record has its outer record's
    /// number.
    whole: HashMap<ArchiveOrigin, HashSet<(u64, u64)>>,
    /// Single events, by source: whether they match.
    single: HashMap<ArchiveOrigin, HashMap<(u64, u64), bool>>,
}

impl CheckedHits {
    fn of(&self, hit: &Hit) -> Option<bool> {
        match self.whole.get(&hit.origin()) {
            Some(answers) => Some(answers.contains(&(hit.event, hit.key))),
            None => self.single.get(&hit.origin())?.get(&(hit.event, hit.key)).copied(),
        }
    }
}

/// A source to read as a whole.
struct WholeSource {
    row: SourceRow,
    version: Option<u32>,
    format: &'static dyn Format,
    facts: OwnedSessionFacts,
}

impl Hit {
    fn origin(&self) -> ArchiveOrigin {
        (self.source, self.version)
    }
}

impl Searcher {
    /// The hits that really match.
    pub(super) fn checked(
        &mut self,
        mut hits: Vec<Hit>,
        query: &Query,
        depth: EntryDetail,
        verdicts: &mut CheckedHits,
    ) -> Result<Vec<Hit>, Error> {
        let mut open: BTreeMap<ArchiveOrigin, Vec<&Hit>> = BTreeMap::new();
        for hit in hits.iter().filter(|hit| verdicts.of(hit).is_none()) {
            open.entry(hit.origin()).or_default().push(hit);
        }
        let (mut singles, mut whole, mut facts) = (Vec::new(), Vec::new(), HashMap::new());
        for (origin, hits) in open {
            let Some(row) = self.source(origin.0)?.cloned() else { continue };
            let Some(format) = row.known_format() else { continue };
            let of_session = self.facts(row.session)?;
            let read = verdicts.single.get(&origin).map_or(0, HashMap::len);
            if depth == EntryDetail::Texts && row.access == Access::ByRecord && read + hits.len() <= SINGLES_MAX {
                facts.insert(origin, of_session);
                singles.extend(hits.into_iter().cloned());
            } else {
                whole.push(WholeSource { row, version: origin.1, format, facts: of_session });
            }
        }
        self.read_each(&singles, depth, &mut |at, read| {
            let Some(hit) = singles.get(at) else { return };
            let answers = match (read, facts.get(&hit.origin())) {
                (Ok((_, entry)), Some(facts)) => query.matches(entry, &facts.borrowed()),
                _ => false,
            };
            verdicts.single.entry(hit.origin()).or_default().insert((hit.event, hit.key), answers);
        })?;
        for (origin, answers) in read_all(&self.store, &whole, query)? {
            verdicts.whole.insert(origin, answers);
        }
        hits.retain(|hit| verdicts.of(hit).unwrap_or(false));
        Ok(hits)
    }
}

/// The matching events of a source, by number and key.
type SourceMatches = (ArchiveOrigin, HashSet<(u64, u64)>);

/// Reads sources on as many threads as there are cores. Returns the matching events.
fn read_all(store: &Store, sources: &[WholeSource], query: &Query) -> Result<Vec<SourceMatches>, Error> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(sources.len())));
    let work = || -> Result<(), Error> {
        while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
            let answers = answers(store, source, query)?;
            done.lock().unwrap_or_else(PoisonError::into_inner).push(((source.row.id, source.version), answers));
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Result<(), Error> {
        let others: Vec<_> = (1..cores.min(sources.len())).map(|_| scope.spawn(work)).collect();
        let mut failed = work();
        for other in others {
            failed = failed.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        failed
    })?;
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The matching events of a source: from the file while it begins with what was indexed, otherwise from the archived copy.
fn answers(store: &Store, source: &WholeSource, query: &Query) -> Result<HashSet<(u64, u64)>, Error> {
    let WholeSource { row, version, format, facts } = source;
    let mut answering = MatchCollector {
        query,
        facts,
        entry_builder: EntryBuilder::default().through(*format),
        event: 0,
        found: HashSet::new(),
    };
    let mut reading = Reading::new(*format, Wanted::All);
    if version.is_some() || !is_as_indexed(row) {
        let archive = ArchiveReader::open(store)?;
        let stream = match (version, copy_of(row)) {
            (Some(version), Some(copy)) => archive.read_version(copy, *version, 0)?,
            _ => archive.read(row, 0)?,
        };
        if let Some(stream) = stream {
            let place = Place::Path(row.path.clone());
            if let Ok(mut stream) = decode(stream, &place, &ByteCounter::default(), DecodeGuard::USUAL) {
                let _ = reading.feed_all(&mut stream, &mut answering);
                reading.end(&mut answering);
                return Ok(answering.found);
            }
        }
    }
    // A damaged stream counts up to the damage, as it did for the index.
    if let Ok(mut opened) = Source::open(&row.path, Passes::Many)
        && let Ok(mut pass) = opened.pass()
    {
        let _ = reading.feed_all(&mut pass, &mut answering);
    }
    reading.end(&mut answering);
    Ok(answering.found)
}

/// Whether a file still begins with everything that was indexed.
fn is_as_indexed(row: &SourceRow) -> bool {
    let Ok(stamp) = Stat::of(&row.path).map(FileStamp::from) else { return false };
    let is_same =
        |mut file: File| change::detect(row, &mut file, &stamp).is_ok_and(|change| change != SourceChange::Rewritten);
    stamp == row.stamp || databases::open_file(&row.path).is_ok_and(is_same)
}

/// Collects the matching events of a source.
struct MatchCollector<'a> {
    query: &'a Query,
    facts: &'a OwnedSessionFacts,
    entry_builder: EntryBuilder,
    event: u64,
    found: HashSet<(u64, u64)>,
}

impl Sink for MatchCollector<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let number = self.event;
        self.event += 1;
        let facts = self.facts.borrowed();
        let (query, found) = (self.query, &mut self.found);
        self.entry_builder.entries(event, &mut |_, entry| {
            if query.matches(entry, &facts) {
                found.insert((number, entry.key));
            }
        });
    }
}
