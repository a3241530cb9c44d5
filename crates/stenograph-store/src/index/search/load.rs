//! What a hit says: its record, read from where it stands. Sources may have changed or gone since they were indexed; then the archive
//! has what was kept, and what was not kept is said to be absent.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use stenograph::evidence::nested_events;
use stenograph::format::{Format, Want};
use stenograph::model::{Event, Note, Span};
use stenograph::query::{Entry, EntryBuilder};
use stenograph::read::{Reading, Sink};

use super::{Hit, Searcher};
use crate::decode::{Counter, Guard, decode};
use crate::index::archive_worker::{Kept, copy_of};
use crate::index::catalogue::{SourceId, SourceRow};
use crate::source_file::Access;
use crate::{Error, Passes, Place, Source};

/// Why a hit cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Its source is gone, and was never kept.
    Gone,
    /// Its source says something else now, and what it said was never kept.
    Changed,
    /// Its source cannot be read.
    Unreadable,
}

impl Absent {
    /// For people.
    pub fn reason(self) -> &'static str {
        match self {
            Absent::Gone => "the source is gone and was never kept",
            Absent::Changed => "the source has changed since it was indexed",
            Absent::Unreadable => "the source cannot be read",
        }
    }
}

/// Takes what hits say, each with its place among the hits that were asked about.
pub type Each<'e> = dyn FnMut(usize, Result<(&Event<'_>, &Entry<'_>), Absent>) + 'e;

/// How true an entry has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Its texts: the record alone has them.
    Texts,
    /// Everything, also what events before it say of it: the source is read from its beginning.
    Everything,
}

/// From so many hits in one source on it is read as a whole.
pub(super) const SINGLES_MAX: usize = 48;

impl Searcher {
    /// Reads hits, source by source, and gives each of them once.
    pub fn read_each(&mut self, hits: &[Hit], depth: Depth, each: &mut Each<'_>) -> Result<(), Error> {
        let mut by_source: BTreeMap<(SourceId, Option<u32>), Vec<usize>> = BTreeMap::new();
        for (at, hit) in hits.iter().enumerate() {
            by_source.entry((hit.source, hit.version)).or_default().push(at);
        }
        for ((source, version), places) in by_source {
            let Some(row) = self.source(source)?.cloned() else {
                places.iter().for_each(|at| each(*at, Err(Absent::Gone)));
                continue;
            };
            let Some(format) = stenograph::Registry::built_in().named(&row.format) else { continue };
            let wanted: Vec<(usize, &Hit)> = places.iter().filter_map(|at| Some((*at, hits.get(*at)?))).collect();
            let single = row.access == Access::ByRecord && depth == Depth::Texts && wanted.len() <= SINGLES_MAX;
            if let Some(version) = version {
                self.read_version(&row, version, format, &wanted, each)?;
            } else if single {
                self.read_records(&row, format, &wanted, each)?;
            } else {
                self.read_source(&row, format, &wanted, each)?;
            }
        }
        Ok(())
    }

    /// Reads records one by one, where they stand.
    fn read_records(
        &mut self,
        row: &SourceRow,
        format: &'static dyn Format,
        wanted: &[(usize, &Hit)],
        each: &mut Each<'_>,
    ) -> Result<(), Error> {
        let mut file = File::open(&row.path);
        for (at, hit) in wanted {
            let mut found = Found { wanted: Some(hit), each, at: *at, is_found: false };
            let from_file = file.as_mut().map_err(|error| error.kind()).and_then(|file| {
                let mut bytes = vec![0; usize::try_from(hit.at.length).unwrap_or(0)];
                file.seek(SeekFrom::Start(hit.at.offset)).map_err(|error| error.kind())?;
                file.read_exact(&mut bytes).map_err(|error| error.kind()).map(|()| bytes)
            });
            if let Ok(bytes) = &from_file {
                found.record(format, hit.at, bytes);
            }
            if !found.is_found
                && let Some(kept) = self.kept()?
                && let Some(mut stream) = kept.read(row, hit.at.offset)?
            {
                let mut bytes = Vec::new();
                if stream.by_ref().take(hit.at.length).read_to_end(&mut bytes).is_ok() {
                    found.record(format, hit.at, &bytes);
                }
            }
            if !found.is_found {
                each(*at, Err(absent(from_file.err())));
            }
        }
        Ok(())
    }

    /// Reads an earlier version of a source, which only the archive has.
    fn read_version(
        &mut self,
        row: &SourceRow,
        version: u32,
        format: &'static dyn Format,
        wanted: &[(usize, &Hit)],
        each: &mut Each<'_>,
    ) -> Result<(), Error> {
        let mut left: HashMap<(u64, u64), usize> = wanted.iter().map(|(at, hit)| ((hit.event, hit.key), *at)).collect();
        if let (Some(kept), Some(copy)) = (self.kept()?, copy_of(row))
            && let Some(stream) = kept.read_version(copy, version, 0)?
        {
            let place = Place::Path(row.path.clone());
            if let Ok(mut stream) = decode(stream, &place, &Counter::default(), Guard::USUAL) {
                let mut all =
                    AllFound { left: &mut left, each, trail: EntryBuilder::default().through(format), event: 0 };
                let mut reading = Reading::new(format, Want::All);
                let _ = reading.feed_all(&mut stream, &mut all);
                reading.end(&mut all);
            }
        }
        left.values().for_each(|at| each(*at, Err(Absent::Changed)));
        Ok(())
    }

    /// Reads a source from its beginning.
    fn read_source(
        &mut self,
        row: &SourceRow,
        format: &'static dyn Format,
        wanted: &[(usize, &Hit)],
        each: &mut Each<'_>,
    ) -> Result<(), Error> {
        let mut left: HashMap<(u64, u64), usize> = wanted.iter().map(|(at, hit)| ((hit.event, hit.key), *at)).collect();
        let mut problem = None;
        match Source::open(&row.path, Passes::Many) {
            Ok(mut source) => {
                let mut all =
                    AllFound { left: &mut left, each, trail: EntryBuilder::default().through(format), event: 0 };
                let mut reading = Reading::new(format, Want::All);
                if let Ok(mut pass) = source.pass() {
                    let _ = reading.feed_all(&mut pass, &mut all);
                }
                reading.end(&mut all);
            }
            Err(error) => problem = Some(error.problem),
        }
        if !left.is_empty()
            && let Some(kept) = self.kept()?
            && let Some(stream) = kept.read(row, 0)?
        {
            let place = Place::Path(row.path.clone());
            if let Ok(mut stream) = decode(stream, &place, &Counter::default(), Guard::USUAL) {
                let mut all =
                    AllFound { left: &mut left, each, trail: EntryBuilder::default().through(format), event: 0 };
                let mut reading = Reading::new(format, Want::All);
                let _ = reading.feed_all(&mut stream, &mut all);
                reading.end(&mut all);
            }
        }
        let absent = match problem {
            Some(crate::Problem::Missing) => Absent::Gone,
            Some(_) => Absent::Unreadable,
            None => Absent::Changed,
        };
        left.values().for_each(|at| each(*at, Err(absent)));
        Ok(())
    }

    /// The archive, opened when it is first needed.
    fn kept(&mut self) -> Result<Option<&Kept>, Error> {
        if self.archive.is_none() {
            self.archive = Some(Kept::open(&self.store)?);
        }
        Ok(self.archive.as_ref())
    }
}

fn absent(error: Option<std::io::ErrorKind>) -> Absent {
    match error {
        Some(std::io::ErrorKind::NotFound) => Absent::Gone,
        Some(std::io::ErrorKind::UnexpectedEof) | None => Absent::Changed,
        Some(_) => Absent::Unreadable,
    }
}

/// Finds the event of one hit in its record.
struct Found<'f, 'e> {
    wanted: Option<&'f Hit>,
    each: &'f mut Each<'e>,
    at: usize,
    is_found: bool,
}

impl Found<'_, '_> {
    fn record(&mut self, format: &'static dyn Format, at: Span, bytes: &[u8]) {
        let mut reading = Reading::from_line(format, Want::All, Span { length: 0, ..at });
        reading.feed(bytes, self);
        reading.end(self);
    }
}

impl Sink for Found<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        self.one(event);
        nested_events(event).iter().for_each(|inner| self.one(inner));
    }

    fn note(&mut self, _note: Note) {}
}

impl Found<'_, '_> {
    fn one(&mut self, event: &Event<'_>) {
        let Some(hit) = self.wanted.filter(|hit| !self.is_found && hit.part == event.part.index) else { return };
        let Some(mut entry) = EntryBuilder::default().entry(event) else { return };
        // A record without id and time is known by all before it, which is not at hand.
        let is_told = event.id.is_some() || event.time.is_some();
        if !is_told || entry.key == hit.key {
            self.is_found = true;
            entry.tool = hit.tool.as_deref().map(Into::into);
            entry.error = hit.has_failed;
            (self.each)(self.at, Ok((event, &entry)));
        }
    }
}

/// Finds the events of hits on the way through a source.
struct AllFound<'f, 'e> {
    /// The hits that were not met yet: the number of the event and the key, and their place.
    left: &'f mut HashMap<(u64, u64), usize>,
    each: &'f mut Each<'e>,
    trail: EntryBuilder,
    event: u64,
}

impl Sink for AllFound<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        let number = self.event;
        self.event += 1;
        let (left, tell) = (&mut *self.left, &mut *self.each);
        self.trail.entries(event, &mut |event, entry| {
            if let Some(at) = left.remove(&(number, entry.key)) {
                tell(at, Ok((event, entry)));
            }
        });
    }

    fn note(&mut self, _note: Note) {}
}
