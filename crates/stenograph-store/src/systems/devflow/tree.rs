//! The files of a run's folder: walks them, and removes them in an order that is safe against crashes. This file follows no
//! link.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Problem};
use crate::files::Files;

/// The maximum number of files and folders of a run.
pub const ENTRIES_MAX: usize = 1_000_000;

/// The kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A file.
    File {
        /// Its size in bytes.
        size: u64,
    },
    /// A folder.
    Folder,
    /// A link, a pipe, a device.
    Odd,
}

/// One entry below a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its path relative to the folder.
    pub path: PathBuf,
    /// Its kind.
    pub kind: PathKind,
}

/// All entries below a folder, each folder before its content.
pub fn walk(files: &dyn Files, folder: &Path) -> Result<Vec<TreeEntry>, Error> {
    let mut entries = Vec::new();
    let mut ahead = vec![PathBuf::new()];
    while let Some(inner) = ahead.pop() {
        let here = folder.join(&inner);
        for path in files.list(&here).map_err(|error| Error::at(&here, Problem::Unreadable, error))? {
            let kind = kind_of(&path)?;
            let entry = TreeEntry { path: inner.join(path.file_name().unwrap_or_default()), kind };
            if kind == PathKind::Folder {
                ahead.push(entry.path.clone());
            }
            entries.push(entry);
            if entries.len() > ENTRIES_MAX {
                return Err(Error::about(folder, Problem::TooMany { most: ENTRIES_MAX as u64 }));
            }
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// The kind of a path, without following links.
pub fn kind_of(path: &Path) -> Result<PathKind, Error> {
    let metadata = fs::symlink_metadata(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    Ok(match metadata.file_type() {
        kind if kind.is_dir() => PathKind::Folder,
        kind if kind.is_file() => PathKind::File { size: metadata.len() },
        _ => PathKind::Odd,
    })
}

/// Removes a folder and its content; a link is removed, its target stays.
pub fn remove(files: &dyn Files, folder: &Path) -> Result<(), Error> {
    let failed = |path: &Path, error: io::Error| Error::at(path, Problem::Unwritable, error);
    for entry in walk(files, folder)?.iter().rev() {
        let path = folder.join(&entry.path);
        let removed = match entry.kind {
            PathKind::Folder => files.remove_folder(&path),
            PathKind::File { .. } | PathKind::Odd => files.remove(&path),
        };
        removed.map_err(|error| failed(&path, error))?;
    }
    files.remove_folder(folder).map_err(|error| failed(folder, error))
}

/// The path of an archive's entry below its run; `None` if it would lead elsewhere.
pub fn path_within(path: &Path, run: &str) -> Option<PathBuf> {
    let mut steps = path.components();
    match steps.next()? {
        Component::Normal(first) if first == run => {}
        _ => return None,
    }
    let mut within = PathBuf::new();
    for step in steps {
        match step {
            Component::Normal(name) => within.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Disk;

    #[test]
    fn an_entry_stays_within_its_run() {
        assert_eq!(path_within(Path::new("r/a/./b"), "r"), Some(PathBuf::from("a/b")));
        assert_eq!(path_within(Path::new("r/"), "r"), Some(PathBuf::new()));
        for bad in ["../r/a", "/r/a", "r/../a", "s/a", "", "./r/a", "r/a/../../../b"] {
            assert_eq!(path_within(Path::new(bad), "r"), None, "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_removed_and_what_it_points_to_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (run, other) = (folder.path().join("run"), folder.path().join("other"));
        fs::create_dir_all(run.join("deep/er")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "x").unwrap();
        fs::write(run.join("deep/er/file"), "x").unwrap();
        std::os::unix::fs::symlink(&other, run.join("deep/link")).unwrap();
        let paths: Vec<PathBuf> = walk(&Disk, &run).unwrap().into_iter().map(|entry| entry.path).collect();
        assert_eq!(paths, ["deep", "deep/er", "deep/er/file", "deep/link"].map(PathBuf::from));
        remove(&Disk, &run).unwrap();
        assert!(!run.exists() && other.join("kept").exists());
    }
}
