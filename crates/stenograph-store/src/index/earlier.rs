//! What earlier versions of a source said: a file that is compacted, cut off or rewritten loses words that the archive still has. They
//! stay findable, marked by their version. What a later version says too is not indexed twice.

use std::collections::HashSet;

use stenograph::format::{Format, Want};
use stenograph::ledger::CountingState;
use stenograph::model::{Event, Note};
use stenograph::query::EntryBuilder;
use stenograph::read::{Reading, Sink};

use super::archive_worker::{Kept, copy_of};
use super::catalogue::SourceRow;
use super::intake::Intake;
use super::run::{Report, Run};
use super::source::Start;
use crate::archive::{CopyId, CopyInfo};
use crate::decode::{Counter, Guard, decode};
use crate::tail::Warning;
use crate::{Error, Passes, Place, Source};

impl Run<'_> {
    /// The version in the archive that a source is about to replace, if it does. From here on the keys of what it says are collected.
    pub(super) fn version_before(&mut self, row: &SourceRow, start: Start) -> Result<Option<(CopyId, u32)>, Error> {
        self.said = None;
        let Some(copy) = copy_of(row).filter(|_| start == Start::Anew && row.id != 0) else { return Ok(None) };
        let version = self.archive()?.copy(copy).and_then(|copy| copy.versions.last().map(|version| version.number));
        self.said = version.map(|_| HashSet::new());
        Ok(version.map(|version| (copy, version)))
    }

    /// Indexes what an earlier version of a source says and `said` does not have.
    pub(super) fn take_in_version(
        &mut self,
        row: &SourceRow,
        copy: CopyId,
        version: u32,
        said: &mut HashSet<u64>,
        report: &mut Report,
    ) -> Result<(), Error> {
        let Some(format) = stenograph::format::named(&row.format) else { return Ok(()) };
        let lot = self.catalogue.new_lot()?;
        let fresh = SourceRow { lot, ..SourceRow::new(&row.path) };
        let writer = self.take_writer()?;
        let mut vanished = Vanished {
            intake: Intake::resumed(&writer, format, self.batch, &fresh, CountingState::default()),
            trail: EntryBuilder::default().through(format),
            said,
            count: 0,
        };
        let read = self.archive().and_then(|archive| read_version(archive, row, copy, version, format, &mut vanished));
        let (count, failed) = (vanished.count, vanished.intake.failed.take());
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
            self.catalogue.put_earlier(lot, row.id, version)?;
        }
        Ok(())
    }

    /// Indexes what all earlier versions of kept copies say: an index that is rebuilt must not forget them.
    pub(super) fn take_in_versions(&mut self, report: &mut Report) -> Result<(), Error> {
        let copies: Vec<CopyInfo> =
            self.archive()?.copies().into_iter().filter(|copy| copy.versions.len() > 1).collect();
        for copy in copies {
            let Some(row) = self.catalogue.source_at(&copy.path)?.filter(|row| row.copy_of.is_none()) else { continue };
            let Some(format) = stenograph::format::named(&row.format) else { continue };
            let mut said = HashSet::new();
            let mut keys = Keys { trail: EntryBuilder::default().through(format), said: &mut said };
            if let Ok(mut source) = Source::open(&row.path, Passes::Many)
                && let Ok(mut pass) = source.pass()
            {
                let mut reading = Reading::new(format, Want::All);
                let _ = reading.feed_all(&mut pass, &mut keys);
                reading.end(&mut keys);
            }
            let mut versions: Vec<u32> = copy.versions.iter().map(|version| version.number).collect();
            // What is gone is indexed as its last version was.
            if said.is_empty()
                && let Some(last) = versions.pop()
            {
                let mut keys = Keys { trail: EntryBuilder::default().through(format), said: &mut said };
                let archive = self.archive()?;
                let _ = read_version(archive, &row, copy.id, last, format, &mut keys);
            }
            for version in versions.into_iter().rev() {
                if self.catalogue.has_earlier(row.id, version)? {
                    let mut keys = Keys { trail: EntryBuilder::default().through(format), said: &mut said };
                    let _ = read_version(self.archive()?, &row, copy.id, version, format, &mut keys);
                } else {
                    self.take_in_version(&row, copy.id, version, &mut said, report)?;
                }
            }
        }
        Ok(())
    }
}

fn read_version(
    archive: &Kept,
    row: &SourceRow,
    copy: CopyId,
    version: u32,
    format: &'static dyn Format,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let Some(stream) = archive.read_version(copy, version, 0)? else { return Ok(()) };
    let place = Place::Path(row.path.clone());
    let mut stream = decode(stream, &place, &Counter::default(), Guard::USUAL)?;
    let mut reading = Reading::new(format, Want::All);
    let read = reading.feed_all(&mut stream, sink);
    reading.end(sink);
    read.map_err(|error| Error::from_system(&place, crate::Problem::Damaged, error))
}

/// Takes the events that nothing later says.
struct Vanished<'v, 'w> {
    intake: Intake<'w>,
    trail: EntryBuilder,
    said: &'v mut HashSet<u64>,
    count: u64,
}

impl Sink for Vanished<'_, '_> {
    fn event(&mut self, event: &Event<'_>) {
        let Vanished { intake, trail, said, count } = self;
        trail.entries(event, &mut |event, entry| {
            if said.insert(entry.key) && intake.failed.is_none() {
                *count += 1;
                intake.failed = intake.put(event, entry).err();
            }
        });
        self.intake.event += 1;
    }

    fn note(&mut self, _note: Note) {}
}

/// Takes the keys of events.
struct Keys<'k> {
    trail: EntryBuilder,
    said: &'k mut HashSet<u64>,
}

impl Sink for Keys<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.trail.entries(event, &mut |_, entry| {
            self.said.insert(entry.key);
        });
    }

    fn note(&mut self, _note: Note) {}
}
