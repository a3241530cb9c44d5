//! A disk that is confined to some folders. Anyone may have written a journal: whatever its header says, completing it reads
//! and writes only inside the folders that the user named, and follows no link out of them. Only this file decides whether a
//! path that came from a file may be used.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Problem};
use crate::files::{FileMode, Files, OpenFile};

/// A disk on which only paths inside some folders are accessible.
#[derive(Debug)]
pub struct Confined {
    files: Arc<dyn Files>,
    roots: Vec<PathBuf>,
}

impl Confined {
    /// The disk, confined to these folders. A folder that does not exist yet is confined to its future path.
    pub fn to(files: &Arc<dyn Files>, roots: &[PathBuf]) -> Arc<dyn Files> {
        let roots = roots.iter().filter_map(|root| real_path(root)).collect();
        Arc::new(Confined { files: Arc::clone(files), roots })
    }

    /// The path, unless it is outside or a link.
    fn inside<'p>(&self, path: &'p Path) -> io::Result<&'p Path> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let named = matches!(path.components().next_back(), Some(Component::Normal(_)));
        let whole = real_path(if named { folder } else { path });
        let is_inside = whole.is_some_and(|whole| self.roots.iter().any(|root| whole.starts_with(root)));
        if is_inside && is_plain(path) { Ok(path) } else { Err(Error::about(path, Problem::Outside).into()) }
    }

    /// The same for a folder, which may also be one of the roots or lead to one.
    fn folder_inside<'p>(&self, folder: &'p Path) -> io::Result<&'p Path> {
        let whole = real_path(folder);
        let is_inside =
            |whole: PathBuf| self.roots.iter().any(|root| whole.starts_with(root) || root.starts_with(&whole));
        if whole.is_some_and(is_inside) { Ok(folder) } else { Err(Error::about(folder, Problem::Outside).into()) }
    }
}

/// Whether the path is free, a file or a folder: not a link, and not a device or pipe that may never end or answer.
fn is_plain(path: &Path) -> bool {
    path.symlink_metadata().map_or(true, |metadata| metadata.is_file() || metadata.is_dir())
}

/// The path without links: links in existing folders are resolved, and missing parts must be plain names.
fn real_path(path: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut there = whole.as_path();
    loop {
        if let Ok(mut real) = there.canonicalize() {
            real.extend(missing.iter().rev());
            return Some(real);
        }
        // A dangling link may lead somewhere by the time it is followed.
        if there.symlink_metadata().is_ok() {
            return None;
        }
        match there.components().next_back()? {
            Component::Normal(name) => missing.push(name),
            _ => return None,
        }
        there = there.parent()?;
    }
}

impl Files for Confined {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.files.open(self.inside(path)?)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.files.create_new(self.inside(path)?)
    }

    fn create_with(&self, path: &Path, mode: FileMode) -> io::Result<Box<dyn OpenFile>> {
        self.files.create_with(self.inside(path)?, mode)
    }

    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.files.overwrite(self.inside(path)?, offset, bytes)
    }

    fn reader(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read>> {
        self.files.reader(self.inside(path)?, offset)
    }

    fn length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.files.length(self.inside(path)?)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.files.list(self.folder_inside(folder)?)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.files.create_folder(self.folder_inside(folder)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(self.inside(from)?, self.inside(to)?)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename_new(self.inside(from)?, self.inside(to)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(self.inside(path)?)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.files.remove_folder(self.inside(folder)?)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.files.sync_folder(self.folder_inside(folder)?)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::files::Disk;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_outside_or_behind_a_link_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("root"), place.path().join("outside"));
        fs::create_dir_all(root.join("deep")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "x").unwrap();
        symlink(&outside, root.join("out")).unwrap();
        symlink(outside.join("file"), root.join("file")).unwrap();
        symlink(outside.join("nothing"), root.join("nowhere")).unwrap();
        symlink(root.join("deep"), root.join("within")).unwrap();
        let disk: Arc<dyn Files> = Arc::new(Disk);
        let confined = Confined::to(&disk, std::slice::from_ref(&root));
        for bad in ["../outside/file", "out/file", "file", "nowhere", "nowhere/x", "deep/../../outside/file", ".."] {
            let path = root.join(bad);
            assert!(confined.open(&path).is_err(), "{bad}");
            assert!(confined.create_new(&path).is_err(), "{bad}");
            assert!(confined.reader(&path, 0).is_err(), "{bad}");
            assert!(confined.rename(&root.join("deep"), &path).is_err(), "{bad}");
            assert!(confined.remove(&path).is_err(), "{bad}");
        }
        let refused = confined.open(&outside.join("file")).unwrap_err();
        assert_eq!(Error::inside(&refused).unwrap().problem, Problem::Outside);
        assert!(confined.create_folder(&root.join("out/new")).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        for good in ["new", "deep/new", "within/other", "deep/../third"] {
            confined.create_new(&root.join(good)).unwrap();
        }
        confined.create_folder(&root.join("a/b")).unwrap();
    }
}
