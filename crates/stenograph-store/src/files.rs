//! The file operations that everything that writes is made of: few, so that a test can stand in for the disk and let each of
//! them fail. What is only read goes through [`crate::Source`]. Nothing here knows what the bytes mean.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A disk.
pub trait Files: Debug + Send + Sync {
    /// Opens a file to be appended to, and makes it where it is not there.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Makes a file that must not be there yet.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Writes over the bytes that a file has from an offset on.
    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Opens a file to be read from an offset on.
    fn reader(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read>>;
    /// All bytes of a file from an offset on.
    fn read(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader(path, offset)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
    /// How long a file is; `None` when it is not there.
    fn length(&self, path: &Path) -> io::Result<Option<u64>>;
    /// The names in a folder, sorted; none when it is not there.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Makes a folder and those above it, unless they are there.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;
    /// Puts a file in the place of another.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir(folder)
    }
    /// Makes the names in a folder durable, where the system can.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// An open file.
pub trait OpenFile: Debug + Send {
    /// Writes at the end, perhaps not all.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Makes what was written durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file off.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Whether it still has a name: what is written to a file that was removed is lost.
    fn is_linked(&self) -> io::Result<bool>;
}

/// Writes all of it. How much was written before a failure is not known.
pub fn write_all(file: &mut dyn OpenFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => bytes = bytes.get(length..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes a folder, those above it and all their names durable.
pub fn make_folder(files: &dyn Files, folder: &Path) -> io::Result<()> {
    let steps: Vec<&Path> = folder.ancestors().filter(|path| !path.as_os_str().is_empty()).collect();
    let missing: Vec<&Path> = steps.iter().copied().take_while(|path| !path.is_dir()).collect();
    // Who made the last one that is there may have been stopped before its name was durable. The folder it is in may be closed
    // to us; then it is not one that was just made here.
    if let Some(last) = steps.get(missing.len()).filter(|path| path.parent().is_some()) {
        match files.sync_folder(folder_of(last)) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            Err(_) | Ok(()) => {}
        }
    }
    for path in missing.into_iter().rev() {
        files.create_folder(path)?;
        files.sync_folder(folder_of(path))?;
    }
    Ok(())
}

/// Puts new content in the place of a file, whole or not at all, and makes it durable. The temporary file has a fixed name, so
/// that what a crash leaves of it is written over the next time: the caller holds a lock.
pub fn replace(files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(files, path, &mut |file| write_all(file, bytes))
}

/// The same, for content that is written piece by piece.
pub fn replace_with(
    files: &dyn Files,
    path: &Path,
    write: &mut dyn FnMut(&mut dyn OpenFile) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.new"));
    let mut file = files.open(&temporary)?;
    file.truncate(0)?;
    let written = write(file.as_mut()).and_then(|()| file.sync());
    drop(file);
    let placed = written.and_then(|()| {
        if let Ok(before) = fs::metadata(path) {
            // Whom a file is hidden from, its replacement is hidden from too.
            let _ = fs::set_permissions(&temporary, before.permissions());
        }
        files.rename(&temporary, path)
    });
    if placed.is_err() {
        let _ = files.remove(&temporary);
    }
    placed?;
    files.sync_folder(folder_of(path))
}

/// Writes what a file holds from an offset on over itself and makes it durable. Where a sync failed, the system may believe that
/// what it still shows is on disk: only what is written again is certain to get there.
pub fn write_again(files: &dyn Files, path: &Path, mut offset: u64) -> io::Result<()> {
    let mut reader = files.reader(path, offset)?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        match reader.read(&mut buffer)? {
            0 => break,
            length => {
                files.overwrite(path, offset, buffer.get(..length).unwrap_or_default())?;
                offset += length as u64;
            }
        }
    }
    files.open(path)?.sync()
}

/// Takes off the end of a file, durably; a file of which nothing is left goes.
pub fn cut_off(files: &dyn Files, path: &Path, length: u64) -> io::Result<()> {
    if length == 0 {
        files.remove(path)?;
        return files.sync_folder(folder_of(path));
    }
    let mut file = files.open(path)?;
    file.truncate(length)?;
    file.sync()
}

/// Lets nobody read a file who may not read the one that it holds a part of. Where that cannot be done it stays as any new file is.
pub fn hide_like(new: &Path, old: &Path) {
    #[cfg(unix)]
    if let (Ok(new_metadata), Ok(old)) = (fs::metadata(new), fs::metadata(old)) {
        use std::os::unix::fs::PermissionsExt;
        let (mode, model) = (new_metadata.permissions().mode(), old.permissions().mode());
        if old.is_file() && mode & model & 0o777 != mode & 0o777 {
            let _ = fs::set_permissions(new, fs::Permissions::from_mode(mode & (model | !0o777) | 0o200));
        }
    }
    #[cfg(not(unix))]
    let _ = (new, old);
}

/// The folder a path is in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(DiskFile(File::options().create(true).append(true).open(path)?)))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(DiskFile(File::options().create_new(true).append(true).open(path)?)))
    }

    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::options().write(true).open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn reader(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Box::new(file))
    }

    fn length(&self, path: &Path) -> io::Result<Option<u64>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
    }
}

#[derive(Debug)]
struct DiskFile(File);

impl OpenFile for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn is_linked(&self) -> io::Result<bool> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Ok(self.0.metadata()?.nlink() > 0)
        }
        #[cfg(not(unix))]
        {
            // A file that is open cannot be removed there.
            Ok(true)
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_hidden_stays_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::write(&old, "x").unwrap();
        fs::write(&new, "x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o664)).unwrap();
        hide_like(&new, &old);
        assert_eq!(mode(&new), 0o644);
        fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).unwrap();
        hide_like(&new, &old);
        assert_eq!(mode(&new), 0o600);
        hide_like(&new, &folder.path().join("none"));
        assert_eq!(mode(&new), 0o600);
    }
}
