//! What is written: a new file that appears whole or not at all, and a spool that only this process sees.
//! Nothing here writes over an input. Where the system can, a file under way has no name, so that whatever stops the program
//! leaves nothing behind.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Place, Problem};
use crate::source::Source;

const BUFFER_SIZE: usize = 256 << 10;

/// A file being written. It appears under its name when it is committed, and not at all when it is dropped before.
pub struct NewFile {
    place: Place,
    target: Target,
}

enum Target {
    /// A file that has no name yet, in the folder it will be in.
    #[cfg(target_os = "linux")]
    Nameless { file: BufWriter<File>, path: PathBuf },
    /// A temporary file beside the name it will have.
    Beside { file: BufWriter<NamedTempFile>, path: PathBuf },
    /// Something that is no file, such as a pipe or a device: it cannot be replaced, only written to.
    Direct(BufWriter<File>),
}

impl fmt::Debug for NewFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NewFile").field("place", &self.place).finish_non_exhaustive()
    }
}

impl NewFile {
    /// Begins a file of that name, which must not be the input.
    pub fn create(path: &Path, input: Option<&Source>) -> Result<NewFile, Error> {
        let place = Place::Path(path.to_owned());
        let unwritable = |error| Error::from_system(&place, Problem::Unwritable, error);
        if input.is_some_and(|input| input.is_at(path)) {
            return Err(Error::new(&place, Problem::OwnInput));
        }
        // A link stays a link: what it points to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let target = match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => return Err(Error::new(&place, Problem::OutputIsFolder)),
            Ok(metadata) if !metadata.is_file() => {
                let file = File::options().write(true).open(&path).map_err(unwritable)?;
                Target::Direct(BufWriter::with_capacity(BUFFER_SIZE, file))
            }
            _ => Target::new_file(path).map_err(unwritable)?,
        };
        Ok(NewFile { place, target })
    }

    /// Puts the file in its place, once its bytes are on disk.
    pub fn commit(self) -> Result<(), Error> {
        let unwritable = |error| Error::from_system(&self.place, Problem::Unwritable, error);
        match self.target {
            Target::Direct(mut file) => file.flush().map_err(unwritable),
            #[cfg(target_os = "linux")]
            Target::Nameless { file, path } => {
                let file = file.into_inner().map_err(|error| unwritable(error.into_error()))?;
                keep_permissions(&file, &path).map_err(unwritable)?;
                file.sync_all().map_err(unwritable)?;
                let prefix = temporary_name(&path);
                let mut builder = tempfile::Builder::new();
                builder.prefix(&prefix).suffix(".tmp");
                let named = nameless::name(&file, &builder, folder_of(&path)).map_err(unwritable)?;
                named.persist(&path).map_err(|error| unwritable(error.error))?;
                sync_folder(&path).map_err(unwritable)
            }
            Target::Beside { file, path } => {
                let file = file.into_inner().map_err(|error| unwritable(error.into_error()))?;
                keep_permissions(file.as_file(), &path).map_err(unwritable)?;
                file.as_file().sync_all().map_err(unwritable)?;
                file.persist(&path).map_err(|error| unwritable(error.error))?;
                sync_folder(&path).map_err(unwritable)
            }
        }
    }
}

/// Whom a file is hidden from, its replacement is hidden from too.
fn keep_permissions(file: &File, path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(before) => file.set_permissions(before.permissions()),
        Err(_) => Ok(()),
    }
}

impl Target {
    fn new_file(path: PathBuf) -> io::Result<Target> {
        #[cfg(target_os = "linux")]
        if let Some(file) = nameless::create(folder_of(&path)) {
            return Ok(Target::Nameless { file: BufWriter::with_capacity(BUFFER_SIZE, file), path });
        }
        let file = beside(&path)?;
        Ok(Target::Beside { file: BufWriter::with_capacity(BUFFER_SIZE, file), path })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            #[cfg(target_os = "linux")]
            Target::Nameless { file, .. } => file,
            Target::Beside { file, .. } => file,
            Target::Direct(file) => file,
        }
    }
}

/// Files without a name, which not every system and file system has.
#[cfg(target_os = "linux")]
mod nameless {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, OFlags, linkat};
    use tempfile::NamedTempFile;

    const OPEN_FILES: &str = "/proc/self/fd";

    /// A file without a name in this folder, where it could be given one later.
    pub(super) fn create(folder: &Path) -> Option<File> {
        let flag = i32::try_from(OFlags::TMPFILE.bits()).ok().filter(|_| Path::new(OPEN_FILES).is_dir())?;
        File::options().read(true).write(true).custom_flags(flag).open(folder).ok()
    }

    /// Gives it a temporary name: only renaming can replace a file in one step.
    pub(super) fn name(
        file: &File,
        builder: &tempfile::Builder<'_, '_>,
        folder: &Path,
    ) -> io::Result<NamedTempFile<()>> {
        let open = format!("{OPEN_FILES}/{}", file.as_raw_fd());
        builder.make_in(folder, |path| Ok(linkat(CWD, &open, CWD, path, AtFlags::SYMLINK_FOLLOW)?))
    }
}

/// A hidden name like that of `path`; a long one is cut, so that what is added still fits.
fn temporary_name(path: &Path) -> OsString {
    const CHARS_MAX: usize = 40;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    OsString::from(format!(".{}.", name.chars().take(CHARS_MAX).collect::<String>()))
}

/// A temporary file in the folder of `path`, so that renaming it is one step, with the permissions of any new file.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let prefix = temporary_name(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder_of(path))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The new name is on disk only when its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder_of(path))?.sync_all() } else { Ok(()) }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.target.writer().write(bytes);
        written.map_err(|error| Error::from_system(&self.place, Problem::Unwritable, error).into())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.target.writer().flush();
        flushed.map_err(|error| Error::from_system(&self.place, Problem::Unwritable, error).into())
    }
}

/// Bytes put aside in a temporary file that has no name.
#[derive(Debug)]
pub struct Spool(File);

impl Spool {
    /// An empty spool.
    pub fn new() -> Result<Spool, Error> {
        let file = tempfile::tempfile();
        file.map(Spool).map_err(|error| Error::from_system(&Place::Temporary, Problem::Unwritable, error))
    }

    /// Copies all that was put aside.
    pub fn copy_to(mut self, out: &mut dyn Write) -> io::Result<()> {
        self.0.rewind()?;
        io::copy(&mut self.0, out)?;
        Ok(())
    }

    pub(crate) fn into_file(self) -> File {
        self.0
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes);
        written.map_err(|error| Error::from_system(&Place::Temporary, Problem::Unwritable, error).into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A new folder among the temporary ones, which stays.
pub fn fresh_folder(prefix: &str) -> Result<PathBuf, Error> {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir();
    let folder = folder.map_err(|error| Error::from_system(&Place::Temporary, Problem::Unwritable, error))?;
    Ok(folder.keep())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Passes;

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_when_it_is_committed_and_leaves_nothing_when_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut file = NewFile::create(&path, None).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert!(names(folder.path()).is_empty());
        let mut file = NewFile::create(&path, None).unwrap();
        file.write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_under_way_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        if nameless::create(folder.path()).is_none() {
            return;
        }
        let path = folder.path().join("out");
        fs::write(&path, "before").unwrap();
        let mut file = NewFile::create(&path, None).unwrap();
        file.write_all(b"after").unwrap();
        file.flush().unwrap();
        // Whatever ends the program here leaves this behind.
        assert_eq!(names(folder.path()), ["out"]);
        assert_eq!(fs::read(&path).unwrap(), b"before");
        file.commit().unwrap();
        assert_eq!(names(folder.path()), ["out"]);
        assert_eq!(fs::read(&path).unwrap(), b"after");
    }

    #[test]
    fn the_longest_name_a_file_can_have_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(255));
        NewFile::create(&path, None).unwrap().commit().unwrap();
        let target = beside(&path).unwrap();
        target.persist(&path).unwrap();
        assert_eq!(names(folder.path()).len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn the_input_is_known_under_every_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input");
        fs::write(&path, "text").unwrap();
        fs::hard_link(&path, folder.path().join("hard")).unwrap();
        std::os::unix::fs::symlink(&path, folder.path().join("soft")).unwrap();
        let source = Source::open(&path, Passes::Many).unwrap();
        for name in ["input", "hard", "soft", "./input"] {
            let refused = NewFile::create(&folder.path().join(name), Some(&source)).unwrap_err();
            assert_eq!(refused.problem, Problem::OwnInput, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_has_the_permissions_of_any_new_file_and_a_link_stays_one() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let usual = folder.path().join("usual");
        fs::write(&usual, "").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&usual, &link).unwrap();
        let mut file = NewFile::create(&link, None).unwrap();
        file.write_all(b"text").unwrap();
        file.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&usual).unwrap(), b"text");
        let fresh = folder.path().join("fresh");
        fs::write(&fresh, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&usual), mode(&fresh));
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600)).unwrap();
        NewFile::create(&fresh, None).unwrap().commit().unwrap();
        assert_eq!(mode(&fresh), 0o600);
    }
}
