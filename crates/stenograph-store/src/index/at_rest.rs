//! Files that the index knows as they are and in which nothing happened lately: whoever looks for running agents does not open them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::catalogue::{Stamp, Stamped};
use super::{Store, is_unchanged};
use crate::discover::Stat;

/// Files whose last records are older than some moment.
#[derive(Debug, Default)]
pub struct FilesAtRest(HashMap<PathBuf, Stamped>);

impl Store {
    /// The files whose last records are older than a moment, in milliseconds since 1970. None, where there is no index.
    pub fn files_at_rest(&self, before_ms: i64) -> FilesAtRest {
        let known = self.catalogue().and_then(|catalogue| catalogue.ended_before(before_ms));
        FilesAtRest(known.unwrap_or_default())
    }
}

impl FilesAtRest {
    /// Whether a file is one of them, and has not changed since it was indexed.
    pub fn contains(&self, path: &Path, stat: &Stat) -> bool {
        let known = self.0.get(path).or_else(|| self.0.get(&std::path::absolute(path).ok()?));
        known.is_some_and(|known| is_unchanged(&known.stamp, known.seen, &Stamp::from(*stat)))
    }
}
