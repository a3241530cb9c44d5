//! Files that a run skips: how many, of which kinds, and where. A user who misses a transcript finds the reason here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::catalogue::FileStamp;

/// Why a run skips a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassedOverReason {
    /// Transcripts do not have this file name extension.
    Ending,
    /// The file was read and has no known format.
    Format,
}

impl PassedOverReason {
    /// The reason's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            PassedOverReason::Ending => "ending",
            PassedOverReason::Format => "format",
        }
    }
}

/// Files that a run skips, grouped by folder, extension and reason.
#[derive(Clone, Debug, Default)]
pub struct PassedOver {
    groups: BTreeMap<(PathBuf, String, PassedOverReason), u64>,
    count: u64,
}

/// Beyond this number of groups, folders are no longer told apart.
const GROUPS_MAX: usize = 10_000;

impl PassedOver {
    /// Counts a file.
    pub(super) fn add(&mut self, path: &Path, reason: PassedOverReason) {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        self.count += 1;
        let key = (folder, ending, reason);
        if let Some(count) = self.groups.get_mut(&key) {
            *count += 1;
        } else if self.groups.len() < GROUPS_MAX {
            self.groups.insert(key, 1);
        } else {
            *self.groups.entry((PathBuf::new(), key.1, reason)).or_default() += 1;
        }
    }

    /// Counts a file without a known format. An empty one may become a transcript, so nobody misses one there.
    pub(super) fn add_unrecognized(&mut self, path: &Path, stamp: &FileStamp) {
        if stamp.size > 0 {
            self.add(path, PassedOverReason::Format);
        }
    }

    /// Adds another's counts.
    pub(super) fn append(&mut self, other: PassedOver) {
        self.count += other.count;
        for (key, count) in other.groups {
            *self.groups.entry(key).or_default() += count;
        }
    }

    /// The number of files.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The groups: folder, extension in lower case without its dot, reason and count. The folder is empty if there are too
    /// many.
    pub fn groups(&self) -> impl Iterator<Item = (&Path, &str, PassedOverReason, u64)> {
        self.groups.iter().map(|((folder, ending, reason), count)| (folder.as_path(), ending.as_str(), *reason, *count))
    }

    /// The number of files for each extension, the most frequent first.
    pub fn by_ending(&self) -> Vec<(String, u64)> {
        sorted(self.groups().map(|(_, ending, _, count)| (ending.to_owned(), count)))
    }

    /// The number of files in each folder, the most frequent first.
    pub fn by_folder(&self) -> Vec<(PathBuf, u64)> {
        sorted(self.groups().map(|(folder, _, _, count)| (folder.to_owned(), count)))
    }
}

fn sorted<T: Ord + Clone>(counts: impl Iterator<Item = (T, u64)>) -> Vec<(T, u64)> {
    let mut sums: BTreeMap<T, u64> = BTreeMap::new();
    for (name, count) in counts {
        *sums.entry(name).or_default() += count;
    }
    let mut sums: Vec<(T, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sums
}
