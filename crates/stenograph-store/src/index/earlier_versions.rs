//! Events that only earlier versions of a source have: a file that is compacted, truncated or rewritten loses words that the
//! archive still has. They stay findable, under their version. Events that a later version has are not indexed twice.

use std::collections::HashSet;

use stenograph::format::{Format, Wanted};
use stenograph::ledger::CountingState;
use stenograph::model::Event;
use stenograph::query::EntryBuilder;
use stenograph::read::{Reading, Sink};

use super::archive_worker::{ArchiveReader, copy_of};
use super::catalogue::SourceRow;
use super::event_indexer::EventIndexer;
use super::run::{IndexReport, IndexRun};
use super::source::StartAt;
use crate::archive::{CopyId, CopyInfo};
use crate::decode::{ByteCounter, DecodeGuard, decode};
use crate::tail::Warning;
use crate::{Error, Passes, Place, Source};

impl IndexRun<'_> {
    /// The archived version that a source is about to replace, if it replaces one. From here on the run collects the keys of
    /// the source's events.
    pub(super) fn version_before(&mut self, row: &SourceRow, start: StartAt) -> Result<Option<(CopyId, u32)>, Error> {
        self.seen_keys = None;
        let Some(copy) = copy_of(row).filter(|_| start == StartAt::Beginning && row.id != 0) else { return Ok(None) };
        let version = self.archive()?.copy(copy).and_then(|copy| copy.versions.last().map(|version| version.number));
        self.seen_keys = version.map(|_| HashSet::new());
        Ok(version.map(|version| (copy, version)))
    }

    /// Indexes the events of an earlier version that are not in `seen_keys`.
    pub(super) fn index_version(
        &mut self,
        row: &SourceRow,
        copy: CopyId,
        version: u32,
        seen_keys: &mut HashSet<u64>,
        report: &mut IndexReport,
    ) -> Result<(), Error> {
        let Some(format) = row.known_format() else { return Ok(()) };
        let doc_group = self.catalogue.new_doc_group()?;
        let fresh = SourceRow { doc_group, ..SourceRow::new(&row.path, row.registry) };
        let writer = self.take_writer()?;
        let mut vanished = RemovedEvents {
            event_indexer: EventIndexer::resumed(&writer, format, self.batch, &fresh, CountingState::default()),
            entry_builder: EntryBuilder::default().through(format),
            seen_keys,
            count: 0,
        };
        let read = self.archive().and_then(|archive| read_version(archive, row, copy, version, format, &mut vanished));
        let (count, failed) = (vanished.count, vanished.event_indexer.failed.take());
        drop(vanished);
        self.give_writer(writer);
        if let Some(failed) = failed {
            return Err(failed);
        }
        if let Err(error) = read {
            let text = format!("version {version} is not searchable: {error}");
            report.warnings.push(Warning::new(&row.path, text));
        }
        if count > 0 {
            self.catalogue.put_earlier(doc_group, row.id, version)?;
        }
        Ok(())
    }

    /// Indexes all earlier versions of archived copies, so that a rebuilt index has them too.
    pub(super) fn index_versions(&mut self, report: &mut IndexReport) -> Result<(), Error> {
        let copies: Vec<CopyInfo> =
            self.archive()?.copies().into_iter().filter(|copy| copy.versions.len() > 1).collect();
        for copy in copies {
            let Some(row) = self.catalogue.source_at(&copy.path)?.filter(|row| row.copy_of.is_none()) else { continue };
            let Some(format) = row.known_format() else { continue };
            let mut seen_keys = HashSet::new();
            let mut keys =
                KeyCollector { entry_builder: EntryBuilder::default().through(format), seen_keys: &mut seen_keys };
            if let Ok(mut source) = Source::open(&row.path, Passes::Many)
                && let Ok(mut pass) = source.pass()
            {
                let mut reading = Reading::new(format, Wanted::All);
                let _ = reading.feed_all(&mut pass, &mut keys);
                reading.end(&mut keys);
            }
            let mut versions: Vec<u32> = copy.versions.iter().map(|version| version.number).collect();
            // A source that is gone is indexed in its last version.
            if seen_keys.is_empty()
                && let Some(last) = versions.pop()
            {
                let mut keys =
                    KeyCollector { entry_builder: EntryBuilder::default().through(format), seen_keys: &mut seen_keys };
                let archive = self.archive()?;
                let _ = read_version(archive, &row, copy.id, last, format, &mut keys);
            }
            for version in versions.into_iter().rev() {
                if self.catalogue.has_earlier(row.id, version)? {
                    let mut keys = KeyCollector {
                        entry_builder: EntryBuilder::default().through(format),
                        seen_keys: &mut seen_keys,
                    };
                    let _ = read_version(self.archive()?, &row, copy.id, version, format, &mut keys);
                } else {
                    self.index_version(&row, copy.id, version, &mut seen_keys, report)?;
                }
            }
        }
        Ok(())
    }
}

fn read_version(
    archive: &ArchiveReader,
    row: &SourceRow,
    copy: CopyId,
    version: u32,
    format: &'static dyn Format,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let Some(stream) = archive.read_version(copy, version, 0)? else { return Ok(()) };
    let place = Place::Path(row.path.clone());
    let mut stream = decode(stream, &place, &ByteCounter::default(), DecodeGuard::USUAL)?;
    let mut reading = Reading::new(format, Wanted::All);
    let read = reading.feed_all(&mut stream, sink);
    reading.end(sink);
    read.map_err(|error| Error::from_system(&place, crate::Problem::Damaged, error))
}

/// Indexes the events that no later version has.
struct RemovedEvents<'v, 'w> {
    event_indexer: EventIndexer<'w>,
    entry_builder: EntryBuilder,
    seen_keys: &'v mut HashSet<u64>,
    count: u64,
}

impl Sink for RemovedEvents<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        let RemovedEvents { event_indexer, entry_builder, seen_keys, count } = self;
        entry_builder.entries(event, &mut |event, entry| {
            if seen_keys.insert(entry.key) && event_indexer.failed.is_none() {
                *count += 1;
                event_indexer.failed = event_indexer.put(event, entry).err();
            }
        });
        self.event_indexer.event += 1;
    }
}

/// Collects the keys of events.
struct KeyCollector<'k> {
    entry_builder: EntryBuilder,
    seen_keys: &'k mut HashSet<u64>,
}

impl Sink for KeyCollector<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.entry_builder.entries(event, &mut |_, entry| {
            self.seen_keys.insert(entry.key);
        });
    }
}
