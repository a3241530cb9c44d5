//! Files that are unchanged since they were indexed and without recent records: a search for running agents need not open them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::catalogue::{FileStamp, KnownFile};
use super::{Store, is_unchanged};
use crate::discover::Stat;

/// Files whose last records are older than some time.
#[derive(Debug, Default)]
pub struct FilesAtRest(HashMap<PathBuf, KnownFile>);

impl Store {
    /// The files whose last records are older than a time, in milliseconds since 1970. Empty if there is no index.
    pub fn files_at_rest(&self, before_ms: i64) -> FilesAtRest {
        let known = self.catalogue().and_then(|catalogue| catalogue.ended_before(before_ms));
        FilesAtRest(known.unwrap_or_default())
    }
}

impl FilesAtRest {
    /// Whether this file is one of them and unchanged since it was indexed.
    pub fn contains(&self, path: &Path, stat: &Stat) -> bool {
        let known = self.0.get(path).or_else(|| self.0.get(&std::path::absolute(path).ok()?));
        known.is_some_and(|known| is_unchanged(&known.stamp, known.seen, &FileStamp::from(*stat)))
    }
}
