//! Sources that are unchanged since they were indexed: their ledger pages come from the catalogue.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use stenograph::ledger::SourceUsage;

use super::job::UsageJob;
use super::{QUEUE, SourcePage, UsageRunReport};
use crate::Error;
use crate::index::catalogue::{Catalogue, KnownFile, LedgerPages, SavedDatabases, SourcePages};
use crate::tail::Warning;

/// A source whose pages the index has.
pub(super) enum IndexedSource {
    /// Its file exists.
    There { job: UsageJob, source: SourcePages },
    /// Its file is gone.
    Gone { path: PathBuf, changed: i64, source: SourcePages },
}

impl IndexedSource {
    pub fn path(&self) -> &Path {
        match self {
            IndexedSource::There { job, .. } => job.path(),
            IndexedSource::Gone { path, .. } => path,
        }
    }

    fn changed(&self) -> i64 {
        match self {
            IndexedSource::There { job, .. } => job.changed(),
            IndexedSource::Gone { changed, .. } => *changed,
        }
    }

    fn source(&self) -> &SourcePages {
        let (IndexedSource::There { source, .. } | IndexedSource::Gone { source, .. }) = self;
        source
    }

    /// Delivers its pages. If they are unreadable in the index, the source must be read itself.
    fn deliver(
        self,
        pages: Option<Vec<SourceUsage>>,
        give: &mut dyn FnMut(SourcePage),
        jobs: &mut Vec<UsageJob>,
        report: &mut UsageRunReport,
    ) {
        match (pages, self) {
            (Some(pages), known) => {
                match known {
                    IndexedSource::There { .. } => report.known += 1,
                    IndexedSource::Gone { .. } => report.from_archive += 1,
                }
                let (path, session) = (known.path(), Some(known.source().session.clone()));
                let written = known.changed();
                for page in pages {
                    give(SourcePage::new(path, session.clone(), written, page));
                }
            }
            (None, IndexedSource::There { job, .. }) => jobs.push(job),
            (None, IndexedSource::Gone { path, .. }) => {
                let text = "its usage in the index is damaged; use --no-index to read the archived copy";
                report.warnings.push(Warning::new(&path, text));
            }
        }
    }
}

/// Delivers the pages from the index. Another thread unpacks them ahead; unpacking all of them at once would take more memory
/// than the ledger.
pub(super) fn deliver_indexed(
    known: Vec<IndexedSource>,
    pages: &LedgerPages,
    give: &mut dyn FnMut(SourcePage),
    jobs: &mut Vec<UsageJob>,
    report: &mut UsageRunReport,
) {
    std::thread::scope(|scope| {
        let (sender, unpacked) = sync_channel(QUEUE);
        scope.spawn(move || {
            for known in known {
                let found = pages.of(known.source());
                // The receiver is gone.
                if sender.send((known, found)).is_err() {
                    break;
                }
            }
        });
        for (known, found) in unpacked {
            known.deliver(found, give, jobs, report);
        }
    });
}

/// What the index knows about all sources.
#[derive(Default)]
pub(super) struct IndexSnapshot {
    /// Sources, with their stat when they were indexed.
    pub known: HashMap<PathBuf, KnownFile>,
    /// Files without a known format: their sizes and times of change.
    pub unrecognized: HashMap<PathBuf, (u64, i64)>,
    /// The databases whose conversations are indexed.
    pub databases: SavedDatabases,
    /// The groups of each source's pages.
    pub paged: HashMap<PathBuf, SourcePages>,
    /// The pages.
    pub pages: LedgerPages,
}

impl IndexSnapshot {
    /// Reads all of it in one snapshot: a source and its pages must be consistent even if another process indexes meanwhile.
    pub fn of(catalogue: &Catalogue) -> Result<IndexSnapshot, Error> {
        catalogue.snapshot()?;
        let (known, unrecognized) = (catalogue.stamps()?, catalogue.non_transcripts()?);
        let databases = catalogue.databases()?;
        Ok(IndexSnapshot { known, unrecognized, databases, paged: catalogue.paged()?, pages: catalogue.pages()? })
    }
}
