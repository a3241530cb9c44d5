//! Reads the content of hits from their sources. A source may have changed or disappeared since it was indexed; then the
//! archived copy is read, and a hit that is not archived is reported as unavailable.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek, SeekFrom};

use stenograph::evidence::nested_events;
use stenograph::format::{Format, Wanted};
use stenograph::model::{Event, Span};
use stenograph::query::{Entry, EntryBuilder};
use stenograph::read::{Reading, Sink};

use super::{Hit, Searcher};
use crate::databases;
use crate::decode::{ByteCounter, DecodeGuard, decode};
use crate::index::archive_worker::{ArchiveReader, copy_of};
use crate::index::catalogue::{SourceId, SourceRow};
use crate::source_file::Access;
use crate::{Error, Passes, Place, Source};

/// Why a hit cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Its source is gone and was never archived.
    Gone,
    /// Its source has changed, and its previous content was never archived.
    Changed,
    /// Its source cannot be read.
    Unreadable,
    /// Only the archive has it, and its copy there is damaged.
    Damaged,
}

impl Unavailable {
    /// The reason, for people.
    pub fn reason(self) -> &'static str {
        match self {
            Unavailable::Gone => "the file no longer exists and was never archived",
            Unavailable::Changed => "the file has changed since it was indexed",
            Unavailable::Unreadable => "the file cannot be read",
            Unavailable::Damaged => "the copy in the archive is damaged; run steno archive verify",
        }
    }
}

/// Receives the content of each hit, with the hit's index in the request.
pub type HitReader<'e> = dyn FnMut(usize, Result<(&Event<'_>, &Entry<'_>), Unavailable>) + 'e;

/// The hits that are not found yet: by event number and key, with their index in the request.
type WantedHits = HashMap<(u64, u64), usize>;

/// How much of an entry the caller needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryDetail {
    /// Its texts, which the record alone has.
    Texts,
    /// Everything, including what earlier events determine: the source is read from its beginning.
    Everything,
}

/// From this number of hits on, a source is read as a whole, unless it is large: a record alone costs about as much as this many
/// bytes of a whole source.
pub(super) const SINGLES_MAX: usize = 48;
const SINGLE_COST: u64 = 64 << 10;

impl Searcher {
    /// Reads hits source by source and passes each to `each` once.
    pub fn read_each(&mut self, hits: &[Hit], depth: EntryDetail, each: &mut HitReader<'_>) -> Result<(), Error> {
        let mut by_source: BTreeMap<(SourceId, Option<u32>), Vec<usize>> = BTreeMap::new();
        for (at, hit) in hits.iter().enumerate() {
            by_source.entry((hit.source, hit.version)).or_default().push(at);
        }
        for ((source, version), places) in by_source {
            let Some(row) = self.source(source)?.cloned() else {
                places.iter().for_each(|at| each(*at, Err(Unavailable::Gone)));
                continue;
            };
            let Some(format) = row.known_format() else { continue };
            let wanted: Vec<(usize, &Hit)> = places.iter().filter_map(|at| Some((*at, hits.get(*at)?))).collect();
            let is_cheaper = wanted.len() <= SINGLES_MAX || row.stamp.size / SINGLE_COST > wanted.len() as u64;
            let single = row.access == Access::ByRecord && depth == EntryDetail::Texts && is_cheaper;
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

    /// Reads single records at their positions.
    fn read_records(
        &mut self,
        row: &SourceRow,
        format: &'static dyn Format,
        wanted: &[(usize, &Hit)],
        each: &mut HitReader<'_>,
    ) -> Result<(), Error> {
        let mut file = databases::open_file(&row.path);
        for (at, hit) in wanted {
            let mut found = RecordHitFinder { wanted: Some(hit), each, at: *at, is_found: false };
            let from_file = file.as_mut().map_err(|error| error.kind()).and_then(|file| {
                let mut bytes = vec![0; usize::try_from(hit.at.length).unwrap_or(0)];
                file.seek(SeekFrom::Start(hit.at.offset)).map_err(|error| error.kind())?;
                file.read_exact(&mut bytes).map_err(|error| error.kind()).map(|()| bytes)
            });
            if let Ok(bytes) = &from_file {
                found.record(format, hit.at, bytes);
            }
            let mut copy = CopyState::Intact;
            if !found.is_found
                && let Some(archive) = self.archive()?
                && let Some(mut stream) = archive.read(row, hit.at.offset)?
            {
                let mut bytes = Vec::new();
                match stream.by_ref().take(hit.at.length).read_to_end(&mut bytes) {
                    Ok(_) => found.record(format, hit.at, &bytes),
                    Err(_) => copy = CopyState::Damaged,
                }
            }
            if !found.is_found {
                each(*at, Err(copy.explains().unwrap_or_else(|| unavailable(from_file.err()))));
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
        each: &mut HitReader<'_>,
    ) -> Result<(), Error> {
        let mut left: WantedHits = wanted.iter().map(|(at, hit)| ((hit.event, hit.key), *at)).collect();
        let mut state = CopyState::Intact;
        if let (Some(archive), Some(copy)) = (self.archive()?, copy_of(row))
            && let Some(stream) = archive.read_version(copy, version, 0)?
        {
            state = find_in_copy(stream, row, format, &mut left, each);
        }
        let unavailable = state.explains().unwrap_or(Unavailable::Changed);
        left.values().for_each(|at| each(*at, Err(unavailable)));
        Ok(())
    }

    /// Reads a source from its beginning.
    fn read_source(
        &mut self,
        row: &SourceRow,
        format: &'static dyn Format,
        wanted: &[(usize, &Hit)],
        each: &mut HitReader<'_>,
    ) -> Result<(), Error> {
        let mut left: WantedHits = wanted.iter().map(|(at, hit)| ((hit.event, hit.key), *at)).collect();
        let mut problem = None;
        match Source::open(&row.path, Passes::Many) {
            Ok(mut source) => {
                if let Ok(mut pass) = source.pass() {
                    let _ = find_in(&mut pass, format, &mut left, each);
                }
            }
            Err(error) => problem = Some(error.problem),
        }
        let mut copy = CopyState::Intact;
        if !left.is_empty()
            && let Some(archive) = self.archive()?
            && let Some(stream) = archive.read(row, 0)?
        {
            copy = find_in_copy(stream, row, format, &mut left, each);
        }
        let unavailable = match problem {
            _ if copy == CopyState::Damaged => Unavailable::Damaged,
            Some(crate::Problem::Missing | crate::Problem::NoSuchConversation) => Unavailable::Gone,
            Some(_) => Unavailable::Unreadable,
            None => Unavailable::Changed,
        };
        left.values().for_each(|at| each(*at, Err(unavailable)));
        Ok(())
    }

    /// The archive, opened on first use.
    fn archive(&mut self) -> Result<Option<&ArchiveReader>, Error> {
        if self.archive.is_none() {
            self.archive = Some(ArchiveReader::open(&self.store)?);
        }
        Ok(self.archive.as_ref())
    }
}

/// Whether the archive could read its copy of a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyState {
    Intact,
    Damaged,
}

impl CopyState {
    /// Why a hit is not found, if this is the reason.
    fn explains(self) -> Option<Unavailable> {
        (self == CopyState::Damaged).then_some(Unavailable::Damaged)
    }
}

/// Finds hits in the copy of a source that the archive has.
fn find_in_copy(
    stream: impl Read,
    row: &SourceRow,
    format: &'static dyn Format,
    left: &mut WantedHits,
    each: &mut HitReader<'_>,
) -> CopyState {
    let place = Place::Path(row.path.clone());
    let read = match decode(stream, &place, &ByteCounter::default(), DecodeGuard::USUAL) {
        Ok(mut stream) => find_in(&mut stream, format, left, each).is_ok(),
        Err(_) => false,
    };
    if read { CopyState::Intact } else { CopyState::Damaged }
}

/// Finds hits in a whole source.
fn find_in(
    stream: &mut dyn Read,
    format: &'static dyn Format,
    left: &mut WantedHits,
    each: &mut HitReader<'_>,
) -> std::io::Result<()> {
    let mut finder = SourceHitFinder { left, each, entry_builder: EntryBuilder::default().through(format), event: 0 };
    let mut reading = Reading::new(format, Wanted::All);
    let read = reading.feed_all(stream, &mut finder);
    reading.end(&mut finder);
    read
}

fn unavailable(error: Option<std::io::ErrorKind>) -> Unavailable {
    match error {
        Some(std::io::ErrorKind::NotFound) => Unavailable::Gone,
        Some(std::io::ErrorKind::UnexpectedEof) | None => Unavailable::Changed,
        Some(_) => Unavailable::Unreadable,
    }
}

/// Finds the event of one hit in its record.
struct RecordHitFinder<'f, 'e> {
    wanted: Option<&'f Hit>,
    each: &'f mut HitReader<'e>,
    at: usize,
    is_found: bool,
}

impl RecordHitFinder<'_, '_> {
    fn record(&mut self, format: &'static dyn Format, at: Span, bytes: &[u8]) {
        let mut reading = Reading::from_line(format, Wanted::All, Span { length: 0, ..at });
        reading.feed(bytes, self);
        reading.end(self);
    }
}

impl Sink for RecordHitFinder<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        self.one(event);
        nested_events(event).iter().for_each(|inner| self.one(inner));
    }
}

impl RecordHitFinder<'_, '_> {
    fn one(&mut self, event: &Event<'_>) {
        let Some(hit) = self.wanted.filter(|hit| !self.is_found && hit.part == event.part.index) else { return };
        let Some(mut entry) = EntryBuilder::default().entry(event) else { return };
        // The key of a record without id and time depends on all records before it, which are not available here.
        let is_covered = event.id.is_some() || event.time.is_some();
        if !is_covered || entry.key == hit.key {
            self.is_found = true;
            entry.tool = hit.tool.as_deref().map(Into::into);
            entry.error = hit.has_failed;
            (self.each)(self.at, Ok((event, &entry)));
        }
    }
}

/// Finds the events of hits while reading a source.
struct SourceHitFinder<'f, 'e> {
    left: &'f mut WantedHits,
    each: &'f mut HitReader<'e>,
    entry_builder: EntryBuilder,
    event: u64,
}

impl Sink for SourceHitFinder<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        let number = self.event;
        self.event += 1;
        let (left, tell) = (&mut *self.left, &mut *self.each);
        self.entry_builder.entries(event, &mut |event, entry| {
            if let Some(at) = left.remove(&(number, entry.key)) {
                tell(at, Ok((event, entry)));
            }
        });
    }
}
