//! Sources that the index knows as they are: their pages of the ledger come out of the catalogue.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use stenograph::ledger::SourceUsage;

use super::job::Job;
use super::{QUEUE, Report, Told};
use crate::Error;
use crate::index::catalogue::{Catalogue, KnownFile, LedgerPages, SourcePages};
use crate::tail::Warning;

/// A source that the index knows as it is.
pub(super) enum Known {
    /// It stands where it stood.
    There { job: Job, source: SourcePages },
    /// It is gone.
    Gone { path: PathBuf, changed: i64, source: SourcePages },
}

impl Known {
    pub fn path(&self) -> &Path {
        match self {
            Known::There { job, .. } => job.path(),
            Known::Gone { path, .. } => path,
        }
    }

    fn changed(&self) -> i64 {
        match self {
            Known::There { job, .. } => job.changed(),
            Known::Gone { changed, .. } => *changed,
        }
    }

    fn source(&self) -> &SourcePages {
        let (Known::There { source, .. } | Known::Gone { source, .. }) = self;
        source
    }

    /// Gives its pages. If they cannot be read in the index, it has to be read itself.
    fn hand_in(
        self,
        pages: Option<Vec<SourceUsage>>,
        give: &mut dyn FnMut(Told),
        jobs: &mut Vec<Job>,
        report: &mut Report,
    ) {
        match (pages, self) {
            (Some(pages), known) => {
                match known {
                    Known::There { .. } => report.known += 1,
                    Known::Gone { .. } => report.from_archive += 1,
                }
                let (path, session) = (known.path(), Some(known.source().session.clone()));
                let written = known.changed();
                for page in pages {
                    give(Told { path: path.to_owned(), session: session.clone(), written, page });
                }
            }
            (None, Known::There { job, .. }) => jobs.push(job),
            (None, Known::Gone { path, .. }) => {
                let said = "its page of the ledger is damaged; --no-index reads what is kept";
                report.warnings.push(Warning::new(&path, said));
            }
        }
    }
}

/// Gives the pages of what the index knows. Another thread unpacks them while those before are taken in; all of them at once would take
/// more memory than the ledger.
pub(super) fn recall_all(
    known: Vec<Known>,
    pages: &LedgerPages,
    give: &mut dyn FnMut(Told),
    jobs: &mut Vec<Job>,
    report: &mut Report,
) {
    std::thread::scope(|scope| {
        let (sender, unpacked) = sync_channel(QUEUE);
        scope.spawn(move || {
            for known in known {
                let found = pages.of(known.source());
                // Nobody listens any more when the other side has gone.
                if sender.send((known, found)).is_err() {
                    break;
                }
            }
        });
        for (known, found) in unpacked {
            known.hand_in(found, give, jobs, report);
        }
    });
}

/// What the index knows of all sources.
#[derive(Default)]
pub(super) struct Recalled {
    /// Sources, and how they were when they were indexed.
    pub known: HashMap<PathBuf, KnownFile>,
    /// Files of no format that is read: their sizes and when they changed.
    pub strangers: HashMap<PathBuf, (u64, i64)>,
    /// Where the pages of a source are found.
    pub paged: HashMap<PathBuf, SourcePages>,
    /// The pages.
    pub pages: LedgerPages,
}

impl Recalled {
    /// Looks it up, all of one moment: a source and its pages must not be of two, whoever indexes meanwhile.
    pub fn of(catalogue: &Catalogue) -> Result<Recalled, Error> {
        catalogue.snapshot()?;
        let (known, strangers) = (catalogue.stamps()?, catalogue.strangers()?);
        Ok(Recalled { known, strangers, paged: catalogue.paged()?, pages: catalogue.pages()? })
    }
}
