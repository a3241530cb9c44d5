//! devflow's folder: `{base}/runs/{runId}/` with `metadata.json` and a transcript, `{base}/archive/YYYY-MM/` with archived
//! runs, and `{base}/index.json`, the searchable summary. The format writes transcripts.

mod account;
mod finish;
pub mod index;
mod metadata;
mod record;
pub mod run;

use std::path::{Path, PathBuf};

use stenograph::time::Time;

use crate::error::Error;
use crate::lock::Lock;

pub use record::DevflowLayout;
pub use run::{DevflowRun, RunStatus};

/// devflow's folder in a project.
pub const BASE: &str = ".devflow";

const RUNS: &str = "runs";
const ARCHIVE: &str = "archive";
const INDEX: &str = "index.json";
pub(crate) const METADATA: &str = "metadata.json";
const TRANSCRIPT: &str = "transcript.json";
const TRANSCRIPT_COMPRESSED: &str = "transcript.json.gz";
pub(crate) const JOURNAL: &str = "journal.steno";

/// The file name ending of an archive.
pub(crate) const ARCHIVE_ENDING: &str = ".tar.gz";

/// Prefixes of a folder that is being removed or restored. No run can have such a name.
pub(crate) const REMOVED: &str = ".removed-";
pub(crate) const RESTORING: &str = ".restoring-";

/// A folder of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base(PathBuf);

impl Base {
    /// The base at this path.
    pub fn at(path: &Path) -> Base {
        Base(path.to_owned())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of all runs.
    pub fn runs(&self) -> PathBuf {
        self.0.join(RUNS)
    }

    /// The folder of a run.
    pub fn run(&self, id: &str) -> PathBuf {
        self.runs().join(id)
    }

    /// The folder of archived runs.
    pub fn archive(&self) -> PathBuf {
        self.0.join(ARCHIVE)
    }

    /// The searchable summary.
    pub fn index(&self) -> PathBuf {
        self.0.join(INDEX)
    }

    /// Takes the lock under which runs are archived, restored or removed.
    pub(crate) fn lock_maintenance(&self) -> Result<Lock, Error> {
        Lock::on(&self.archive())
    }
}

/// The date at the beginning of an id, `2025-01-15`, if it has one.
pub(crate) fn date_of(id: &str) -> Option<&str> {
    let date = id.get(..10)?;
    let ends = id.get(10..)?.chars().next().is_none_or(|char| char == '-');
    let time = Time::iso(format!("{date}T00:00:00Z").into());
    (ends && time.is_some()).then_some(date)
}

#[cfg(test)]
mod tests;
