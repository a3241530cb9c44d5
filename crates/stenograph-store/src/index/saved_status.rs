//! The status of the run in each source, saved so that `status` need not open files that are unchanged since they were indexed. A run
//! collects it while it reads; where that is not enough, it reads the end of the file as `status` does.

use std::path::Path;

use stenograph::Registry;
use stenograph::format::Format;
use stenograph::model::{Event, Outline};

use super::catalogue::{Catalogue, FileStamp, SourceId};
use super::run::IndexRun;
use super::survey::IndexJob;
use super::{Store, is_unchanged};
use crate::discover::{Stat, registry_path_hints};
use crate::file_status::{FileStatus, StatusBuilder, WINDOW_SIZE, head_facts};
use crate::follow::EndSink as _;
use crate::source_file::{Access, Confidence, Recognized, is_same};
use crate::{Error, Passes, Source};

/// Collects the status of a source that is read from its beginning.
#[derive(Debug)]
pub(super) struct StatusCollector {
    format: &'static dyn Format,
    head: HeadFacts,
    /// Events up to this offset are not collected, nor is the rest of the line in which it is.
    from: u64,
    line: Option<u64>,
    builder: StatusBuilder,
    /// Whether the window holds enough events. An incomplete last line does not count.
    has_enough: bool,
    length: u64,
}

/// The facts from the beginning of a source.
#[derive(Debug)]
enum HeadFacts {
    /// Records that end before this offset belong to the beginning.
    Until(u64, Box<Outline>),
    /// The beginning of a source whose records have no positions of their own.
    Bytes(Vec<u8>),
}

impl StatusCollector {
    /// A collector for a source of this length that begins with `head`.
    pub fn new(format: &'static dyn Format, access: Access, head: &[u8], length: u64) -> StatusCollector {
        let (head, from) = match access {
            Access::ByRecord => {
                let outline = Box::new(Outline::new(format.info().name));
                (HeadFacts::Until(head.len() as u64, outline), length.saturating_sub(WINDOW_SIZE))
            }
            Access::Whole => (HeadFacts::Bytes(head.to_owned()), 0),
        };
        let builder = StatusBuilder::default();
        StatusCollector { format, head, from, line: None, builder, has_enough: from == 0, length }
    }

    pub fn add(&mut self, event: &Event<'_>) {
        let at = event.at.unwrap_or_default();
        if let HeadFacts::Until(end, outline) = &mut self.head
            && at.end() < *end
        {
            outline.add(event);
        }
        if self.from > 0 && at.offset <= self.from {
            self.line = Some(at.line);
        } else if self.line != Some(at.line) || self.from == 0 {
            self.builder.add(event);
            self.has_enough |= at.end() < self.length && self.builder.has_enough();
        }
    }

    /// The status, if the collected events suffice.
    fn status(self, path: &Path) -> Option<FileStatus> {
        let StatusCollector { format, head, builder, .. } = self;
        self.has_enough.then(|| {
            builder.status(path, Some(format), |known| match head {
                HeadFacts::Until(_, outline) => *outline,
                HeadFacts::Bytes(head) => head_facts(format, &head, known),
            })
        })
    }
}

impl IndexRun<'_> {
    /// Has the status of a source collected while it is read from its beginning, if `status` would recognise the same format.
    pub(super) fn collect_status(&mut self, job: &IndexJob, source: &Source, recognized: Option<Recognized>) {
        self.status = None;
        let Some(Recognized { format, confidence }) = recognized else { return };
        let hints = registry_path_hints(self.catalogue.registry(), &job.path);
        let is_equal = |one: Option<&'static dyn Format>, other: Option<&'static dyn Format>| match (one, other) {
            (Some(one), Some(other)) => is_same(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let has_same_hints = is_equal(hints.format, job.hints.format) && is_equal(hints.like, job.hints.like);
        if has_same_hints && confidence != Confidence::Tied {
            let access = source.access(format);
            self.status = Some(StatusCollector::new(format, access, source.head(), job.stamp.size));
        }
    }

    /// Saves what was collected about a source that was just read to its end.
    pub(super) fn save_status(&mut self, job: &IndexJob, source: SourceId) -> Result<(), Error> {
        let collected = self.status.take().and_then(|collector| collector.status(&job.path));
        let status = collected.or_else(|| read_status(&job.path, self.catalogue.registry()));
        self.catalogue.put_status(source, status.map(|status| status.save()).as_deref())
    }

    /// Saves the status of a source that did not have to be read at this path.
    pub(super) fn save_status_of_known(&mut self, job: &IndexJob, source: SourceId) -> Result<(), Error> {
        self.status = None;
        self.save_status(job, source)
    }
}

/// Reads the status as `status` does. It reports what is wrong with a file itself.
fn read_status(path: &Path, registry: &'static Registry) -> Option<FileStatus> {
    let source = Source::open(path, Passes::Once).ok()?;
    let recognized = source.recognize(&registry_path_hints(registry, path))?;
    if recognized.confidence == Confidence::Tied {
        return None;
    }
    FileStatus::read(path, &source, Some(recognized.format)).ok()
}

/// The saved statuses of runs; by default there are none.
#[derive(Debug, Default)]
pub struct SavedStatuses(Option<Catalogue>);

impl Store {
    /// The saved statuses. Without a usable index there are none.
    pub fn saved_statuses(&self) -> SavedStatuses {
        SavedStatuses(self.catalogue().ok())
    }
}

impl SavedStatuses {
    /// The status of the run in a file that is unchanged since it was indexed.
    pub fn of(&self, path: &Path, stat: &Stat) -> Option<FileStatus> {
        let catalogue = self.0.as_ref()?;
        let saved = |path: &Path| catalogue.status_at(path).ok().flatten();
        let saved = saved(path).or_else(|| saved(&std::path::absolute(path).ok()?))?;
        is_unchanged(&saved.stamp, saved.seen, &FileStamp::from(*stat))
            .then(|| FileStatus::restore(&saved.status, catalogue.registry()))?
    }
}
