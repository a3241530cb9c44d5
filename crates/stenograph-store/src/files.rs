//! The file operations that everything that writes is made of: few, so that a test can stand in for the disk and let each of
//! them fail. What is only read goes through [`crate::Source`]. Nothing here knows what the bytes mean.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::identity::Identity;

/// A disk.
pub trait Files: Debug + Send + Sync {
    /// Opens a file to be appended to; one that does not exist is made, for its owner only.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Makes a file that must not exist yet, for its owner only.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Makes a file that must not exist yet, with these permissions. The system takes away what it takes from every new file.
    fn create_with(&self, path: &Path, _mode: FileMode) -> io::Result<Box<dyn OpenFile>> {
        self.create_new(path)
    }
    /// Makes a file without a name in a folder, where the system has such files: whatever stops the program, nothing of it
    /// stays behind. [`OpenFile::link`] names it.
    fn create_unnamed(&self, _folder: &Path, _mode: FileMode) -> io::Result<Option<Box<dyn OpenFile>>> {
        Ok(None)
    }
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
    /// Makes a folder and those above it, unless they exist, for their owner only.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;
    /// Puts a file in the place of another.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file another name, which must not exist yet.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
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
    /// Whether this name still means it: another file may have taken its place.
    fn is_at(&self, _path: &Path) -> io::Result<bool> {
        self.is_linked()
    }
    /// Gives it exactly these permissions.
    fn set_mode(&mut self, _mode: FileMode) -> io::Result<()> {
        Ok(())
    }
    /// Gives a file without a name one, which must not exist yet.
    fn link(&self, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Who may read and write a file, where the system knows such a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(u32);

impl FileMode {
    /// Its owner only: what a file has that holds a transcript, unless it is made of one that others may read.
    pub(crate) const PRIVATE: FileMode = FileMode(0o600);
    /// Everybody may read it, and who else the system's own settings let: for files that say nothing of anybody.
    pub const PUBLIC: FileMode = FileMode(0o666);

    /// The permissions of a file; `None` when there is none, or it is something else than a file.
    pub fn of(path: &Path) -> Option<FileMode> {
        FileMode::of_metadata(&fs::metadata(path).ok()?)
    }

    /// The permissions of a file of which this is known.
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

    /// The permissions of the file that standard input was redirected from.
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

    /// What both allow.
    pub fn and(self, other: FileMode) -> FileMode {
        FileMode(self.0 & other.0)
    }
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
pub(crate) fn replace_with(
    files: &dyn Files,
    path: &Path,
    write: &mut dyn FnMut(&mut dyn OpenFile) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.new"));
    let mut file = match files.create_new(&temporary) {
        // A crash left it; it may also be a link, which must not be followed.
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

/// Writes what a file holds from an offset on over itself and makes it durable. Where a sync failed, the system may believe that
/// what it still shows is on disk: only what is written again is certain to get there.
pub(crate) fn write_again(files: &dyn Files, path: &Path, mut offset: u64) -> io::Result<()> {
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

/// The file itself where a link was named: what belongs to a file is beside it, not beside a link to it.
pub(crate) fn behind_links(path: &Path) -> PathBuf {
    match path.is_symlink() {
        true => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        false => path.to_owned(),
    }
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
        // A second name is never put in the place of another file.
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
            // A file that is open cannot be removed there.
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

/// How a file is opened that is made with these permissions.
pub(crate) fn with_mode(mode: FileMode) -> fs::OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode.0);
    #[cfg(not(unix))]
    let _ = mode;
    options
}

/// Files without a name, which not every file system has.
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

    /// A file without a name in this folder, where it can be given one later.
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
    fn what_is_made_is_for_its_owner_only_and_a_replacement_for_whom_the_file_was() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        make_folder(&Disk, &folder).unwrap();
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
