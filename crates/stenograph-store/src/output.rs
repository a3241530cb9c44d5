//! What is written: a new file that appears whole or not at all, and a spool that only this process sees.
//! Nothing here writes over an input.

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
            Ok(metadata) if metadata.is_dir() => return Err(Error::new(&place, Problem::Folder)),
            Ok(metadata) if !metadata.is_file() => {
                let file = File::options().write(true).open(&path).map_err(unwritable)?;
                Target::Direct(BufWriter::with_capacity(BUFFER_SIZE, file))
            }
            _ => {
                let file = beside(&path).map_err(unwritable)?;
                Target::Beside { file: BufWriter::with_capacity(BUFFER_SIZE, file), path }
            }
        };
        Ok(NewFile { place, target })
    }

    /// Puts the file in its place, once its bytes are on disk.
    pub fn commit(self) -> Result<(), Error> {
        let unwritable = |error| Error::from_system(&self.place, Problem::Unwritable, error);
        match self.target {
            Target::Direct(mut file) => file.flush().map_err(unwritable),
            Target::Beside { file, path } => {
                let file = file.into_inner().map_err(|error| unwritable(error.into_error()))?;
                file.as_file().sync_all().map_err(unwritable)?;
                file.persist(&path).map_err(|error| unwritable(error.error))?;
                sync_folder(&path).map_err(unwritable)
            }
        }
    }
}

/// A temporary file in the folder of `path`, so that renaming it is one step, with the permissions of any new file.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
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
        let written = match &mut self.target {
            Target::Beside { file, .. } => file.write(bytes),
            Target::Direct(file) => file.write(bytes),
        };
        written.map_err(|error| Error::from_system(&self.place, Problem::Unwritable, error).into())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.target {
            Target::Beside { file, .. } => file.flush(),
            Target::Direct(file) => file.flush(),
        };
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
    }
}
