//! The file operations on which all writing is built: few, so that a test can replace the disk and let each of them fail. Pure
//! reading goes through [`crate::Source`]. This file does not interpret the bytes.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::identity::Identity;

/// A disk.
pub trait Files: Debug + Send + Sync {
    /// Opens a file for appending. A missing file is created for its owner only.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Creates a file that must not exist yet, for its owner only.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Creates a file that must not exist yet, with these permissions, reduced by the process's umask.
    fn create_with(&self, path: &Path, _mode: FileMode) -> io::Result<Box<dyn OpenFile>> {
        self.create_new(path)
    }
    /// Creates a file without a name in a folder, if the system supports that: nothing is left behind if the program is
    /// stopped. [`OpenFile::link`] names it.
    fn create_unnamed(&self, _folder: &Path, _mode: FileMode) -> io::Result<Option<Box<dyn OpenFile>>> {
        Ok(None)
    }
    /// Overwrites the bytes of a file from an offset on.
    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Opens a file for reading from an offset on.
    fn reader(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read>>;
    /// All bytes of a file from an offset on.
    fn read(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader(path, offset)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
    /// The length of a file; `None` if it is missing.
    fn length(&self, path: &Path) -> io::Result<Option<u64>>;
    /// The paths in a folder, sorted; empty if it is missing.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Creates a folder and its missing parents, for their owner only.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;
    /// Renames a file and replaces an existing one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames a file to a name that must not exist yet.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir(folder)
    }
    /// Makes the names in a folder durable, if the system can.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// An open file.
pub trait OpenFile: Debug + Send {
    /// Appends bytes, perhaps not all of them.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Syncs the written bytes to disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Truncates the file.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Whether it still has a name: bytes written to a removed file are lost.
    fn is_linked(&self) -> io::Result<bool>;
    /// Whether this path still refers to it: another file may have taken its place.
    fn is_at(&self, _path: &Path) -> io::Result<bool> {
        self.is_linked()
    }
    /// Sets exactly these permissions.
    fn set_mode(&mut self, _mode: FileMode) -> io::Result<()> {
        Ok(())
    }
    /// Gives a file without a name one that must not exist yet.
    fn link(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The permissions of a file, on systems that have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(u32);

impl FileMode {
    /// The owner only: for files with transcripts, unless others may read their source.
    pub(crate) const PRIVATE: FileMode = FileMode(0o600);
    /// Readable by everyone that the umask allows: for files without private content.
    pub const PUBLIC: FileMode = FileMode(0o666);

    /// The permissions of a file; `None` if it is missing or not a regular file.
    pub fn of(path: &Path) -> Option<FileMode> {
        FileMode::of_metadata(&fs::metadata(path).ok()?)
    }

    /// The permissions in this metadata.
    pub(crate) fn of_metadata(metadata: &fs::Metadata) -> Option<FileMode> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            metadata.is_file().then(|| FileMode(metadata.permissions().mode() & 0o777))
        }
        #[cfg(not(unix))]
        {
            metadata.is_file().then_some(FileMode::PRIVATE)
        }
    }

    /// The permissions of the file that standard input is redirected from.
    pub(crate) fn of_standard_input() -> Option<FileMode> {
        #[cfg(unix)]
        {
            use std::os::fd::AsFd;
            let file = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
            FileMode::of_metadata(&file.metadata().ok()?)
        }
        #[cfg(not(unix))]
        {
            None
        }
    }

    /// The permissions that both allow.
    pub fn and(self, other: FileMode) -> FileMode {
        FileMode(self.0 & other.0)
    }
}

/// Writes all bytes. After a failure it is unknown how many were written.
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

/// Creates a folder and its parents, and makes all their names durable.
pub fn create_folder_durably(files: &dyn Files, folder: &Path) -> io::Result<()> {
    let steps: Vec<&Path> = folder.ancestors().filter(|path| !path.as_os_str().is_empty()).collect();
    let missing: Vec<&Path> = steps.iter().copied().take_while(|path| !path.is_dir()).collect();
    // The process that created the last existing folder may have been stopped before its name was durable. Its parent may be
    // inaccessible; then it was not just created here.
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

/// Replaces the content of a file durably, all or nothing. The temporary file has a fixed name, so that the next call
/// overwrites what a crash left: the caller holds a lock.
pub fn replace(files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(files, path, &mut |file| write_all(file, bytes))
}

/// The same, for content that is written piece by piece.
pub(crate) fn replace_with(
    files: &dyn Files,
    path: &Path,
    write: &mut dyn FnMut(&mut dyn OpenFile) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.new"));
    let mut file = match files.create_new(&temporary) {
        // Left by a crash; it may also be a link, which must not be followed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            files.remove(&temporary)?;
            files.create_new(&temporary)?
        }
        made => made?,
    };
    let written = write(file.as_mut()).and_then(|()| match FileMode::of(path) {
        Some(mode) => file.set_mode(mode),
        None => Ok(()),
    });
    let written = written.and_then(|()| file.sync());
    drop(file);
    let placed = written.and_then(|()| files.rename(&temporary, path));
    if placed.is_err() {
        let _ = files.remove(&temporary);
    }
    placed?;
    files.sync_folder(folder_of(path))
}

/// Writes the content of a file from an offset on over itself and syncs it. After a failed sync the system may assume that the
/// bytes it still shows are on disk: only writing them again makes that certain.
pub(crate) fn rewrite_from(files: &dyn Files, path: &Path, mut offset: u64) -> io::Result<()> {
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

/// Truncates a file durably; removes it if nothing is left.
pub(crate) fn truncate_durably(files: &dyn Files, path: &Path, length: u64) -> io::Result<()> {
    if length == 0 {
        files.remove(path)?;
        return files.sync_folder(folder_of(path));
    }
    let mut file = files.open(path)?;
    file.truncate(length)?;
    file.sync()
}

/// The file that a link refers to: files that accompany it lie beside it, not beside the link.
pub(crate) fn resolve_links(path: &Path) -> PathBuf {
    match path.is_symlink() {
        true => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        false => path.to_owned(),
    }
}

/// The folder of a path.
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
        Ok(Box::new(DiskFile(with_mode(FileMode::PRIVATE).create(true).append(true).open(path)?)))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.create_with(path, FileMode::PRIVATE)
    }

    fn create_with(&self, path: &Path, mode: FileMode) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(DiskFile(with_mode(mode).create_new(true).append(true).open(path)?)))
    }

    #[cfg(target_os = "linux")]
    fn create_unnamed(&self, folder: &Path, mode: FileMode) -> io::Result<Option<Box<dyn OpenFile>>> {
        Ok(unnamed::create(folder, mode).map(|file| Box::new(DiskFile(file)) as Box<dyn OpenFile>))
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
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        match rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, rustix::fs::RenameFlags::NOREPLACE)
        {
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            renamed => return Ok(renamed?),
        }
        // A hard link never replaces another file.
        fs::hard_link(from, to)?;
        fs::remove_file(from)
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

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let (own, named) = (Identity::of_metadata(&self.0.metadata()?), Identity::of_path(path));
        Ok(self.is_linked()? && (cfg!(not(unix)) || own == named))
    }

    fn is_linked(&self) -> io::Result<bool> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Ok(self.0.metadata()?.nlink() > 0)
        }
        #[cfg(not(unix))]
        {
            // An open file cannot be removed there.
            Ok(true)
        }
    }

    #[cfg(unix)]
    fn set_mode(&mut self, mode: FileMode) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        self.0.set_permissions(fs::Permissions::from_mode(mode.0))
    }

    #[cfg(target_os = "linux")]
    fn link(&self, path: &Path) -> io::Result<()> {
        unnamed::link(&self.0, path)
    }
}

/// Options to create a file with these permissions.
pub(crate) fn with_mode(mode: FileMode) -> fs::OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode.0);
    #[cfg(not(unix))]
    let _ = mode;
    options
}

/// Files without a name, which not every file system supports.
#[cfg(target_os = "linux")]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, OFlags, linkat};

    use super::FileMode;

    const OPEN_FILES: &str = "/proc/self/fd";

    /// A file without a name in this folder that can be named later.
    pub(super) fn create(folder: &Path, mode: FileMode) -> Option<File> {
        let flag = i32::try_from(OFlags::TMPFILE.bits()).ok().filter(|_| Path::new(OPEN_FILES).is_dir())?;
        super::with_mode(mode).read(true).write(true).custom_flags(flag).open(folder).ok()
    }

    /// Gives it a name that must not exist yet.
    pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
        let open = format!("{OPEN_FILES}/{}", file.as_raw_fd());
        Ok(linkat(CWD, &open, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode() & 0o777)
    }

    #[test]
    fn new_files_are_private_and_a_replacement_keeps_the_permissions() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        create_folder_durably(&Disk, &folder).unwrap();
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
        let path = folder.join("file");
        Disk.open(&path).unwrap();
        Disk.create_new(&folder.join("new")).unwrap();
        assert_eq!((mode(&path), mode(&folder.join("new"))), (0o600, 0o600));
        for before in [0o640, 0o664, 0o600] {
            fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
            replace(&Disk, &path, b"new").unwrap();
            assert_eq!(mode(&path), before);
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_temporary_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (other, path) = (folder.path().join("other"), folder.path().join("file"));
        fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join(".file.new")).unwrap();
        replace(&Disk, &path, b"new").unwrap();
        assert_eq!((fs::read(&other).unwrap(), fs::read(&path).unwrap()), (b"mine".to_vec(), b"new".to_vec()));
    }

    #[test]
    fn a_name_that_exists_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, "from").unwrap();
        fs::write(&to, "to").unwrap();
        assert_eq!(Disk.rename_new(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        fs::remove_file(&to).unwrap();
        Disk.rename_new(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"from");
    }
}
