//! Output: a new file that appears complete or not at all, and a spool that only this process sees. All of it goes through
//! [`Files`]. An input is never overwritten, and an existing file is replaced only on request. If the system supports it, an
//! unfinished file has no name, so that a stopped program leaves nothing behind.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::edit::Rewritable;

use crate::edit;
use crate::error::{Error, Place, Problem};
use crate::files::{Disk, FileMode, Files, OpenFile, folder_of, resolve_links};
use crate::lock::Lock;
use crate::source::Source;

const BUFFER_SIZE: usize = 256 << 10;

/// What happens if a file with the name of the new one exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the new file is refused.
    #[default]
    Refused,
    /// It is replaced.
    Replaced,
}

/// Options for a new file.
#[derive(Clone, Debug)]
pub struct NewFileOptions {
    files: Arc<dyn Files>,
    existing: Existing,
    mode: FileMode,
    is_guarded: bool,
}

impl NewFileOptions {
    /// Sets what happens to an existing file of that name.
    pub fn existing(mut self, existing: Existing) -> NewFileOptions {
        self.existing = existing;
        self
    }

    /// Restricts reading to those who may read this source; to the owner if the source is not a file.
    pub fn like(mut self, source: Option<&Source>) -> NewFileOptions {
        self.mode = source.and_then(Source::mode).unwrap_or(FileMode::PRIVATE);
        self
    }

    /// Sets the file's permissions, which the umask reduces.
    pub fn mode(mut self, mode: FileMode) -> NewFileOptions {
        self.mode = mode;
        self
    }

    /// Refuses to replace a file that a recorder or another process has open for writing, and locks recorders out until the new
    /// file is in place.
    pub fn guarded(mut self) -> NewFileOptions {
        self.is_guarded = true;
        self
    }

    /// Writes to this disk instead of the machine's own.
    pub fn on(mut self, files: &Arc<dyn Files>) -> NewFileOptions {
        self.files = Arc::clone(files);
        self
    }

    /// Begins the file, which must not be one of the inputs under any name.
    pub fn create<'s>(self, path: &Path, inputs: impl IntoIterator<Item = &'s Source>) -> Result<NewFile, Error> {
        let place = Place::Path(path.to_owned());
        let unwritable = |error| Error::from_system(&place, Problem::Unwritable, error);
        if inputs.into_iter().any(|input| input.is_at(path)) {
            return Err(Error::new(&place, Problem::OwnInput));
        }
        let mut locks = Vec::new();
        let target = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(Error::new(&place, Problem::OutputIsFolder)),
            Ok(metadata) if !metadata.is_file() => {
                let file = File::options().write(true).open(path).map_err(unwritable)?;
                Target::Direct(BufWriter::with_capacity(BUFFER_SIZE, file))
            }
            found => {
                // The commit decides whether the name is free; checking here saves useless work.
                if self.existing == Existing::Refused && path.symlink_metadata().is_ok() {
                    return Err(Error::new(&place, Problem::OutputExists));
                }
                if self.is_guarded && found.is_ok() {
                    locks = edit::lock_for_edit(path)?;
                }
                let before = found.ok().as_ref().and_then(FileMode::of_metadata);
                Target::new_file(self, path, before).map_err(unwritable)?
            }
        };
        Ok(NewFile { place, target, _locks: locks })
    }
}

/// A file being written. It appears under its name when it is committed, and not at all if it is dropped before.
pub struct NewFile {
    place: Place,
    target: Target,
    /// The locks of the file that it replaces.
    _locks: Vec<Lock>,
}

enum Target {
    /// A file in its final folder.
    File {
        file: Option<BufWriter<Handle>>,
        /// Whether nothing was written since the last sync.
        is_synced: bool,
        path: PathBuf,
        options: NewFileOptions,
        temporary: Option<PathBuf>,
    },
    /// Not a regular file but a pipe or a device, which cannot be replaced, only written to.
    Direct(BufWriter<File>),
}

/// An open file as a writer.
struct Handle(Box<dyn OpenFile>);

impl Write for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for NewFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NewFile").field("place", &self.place).finish_non_exhaustive()
    }
}

impl NewFile {
    /// A new file for its owner only, which replaces no other.
    pub fn options() -> NewFileOptions {
        NewFileOptions {
            files: Arc::new(Disk),
            existing: Existing::default(),
            mode: FileMode::PRIVATE,
            is_guarded: false,
        }
    }

    /// Syncs the bytes now, so that the commit is fast.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.target.sync().map_err(|error| Error::from_system(&self.place, Problem::Unwritable, error))
    }

    /// Puts the file in its place, once its bytes are on disk.
    pub fn commit(mut self) -> Result<(), Error> {
        let committed = self.target.commit();
        committed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::new(&self.place, Problem::OutputExists),
            _ => Error::from_system(&self.place, Problem::Unwritable, error),
        })
    }
}

impl Target {
    /// `before` are the permissions of the file that is replaced.
    fn new_file(options: NewFileOptions, path: &Path, before: Option<FileMode>) -> io::Result<Target> {
        // A link stays a link: the file that it points to is replaced.
        let path = resolve_links(path);
        let mode = before.map_or(options.mode, |before| options.mode.and(before));
        let (mut file, temporary) = match options.files.create_unnamed(folder_of(&path), mode)? {
            Some(file) => (file, None),
            None => {
                let (file, temporary) = free_name(&path, &mut |name| options.files.create_with(name, mode))?;
                (file, Some(temporary))
            }
        };
        if before.is_some() {
            file.set_mode(mode)?;
        }
        let file = Some(BufWriter::with_capacity(BUFFER_SIZE, Handle(file)));
        Ok(Target::File { file, is_synced: false, path, options, temporary })
    }

    fn sync(&mut self) -> io::Result<()> {
        match self {
            Target::Direct(file) => file.flush(),
            Target::File { file: None, .. } => Ok(()),
            Target::File { file: Some(file), is_synced, .. } => {
                file.flush()?;
                file.get_mut().0.sync()?;
                *is_synced = true;
                Ok(())
            }
        }
    }

    fn commit(&mut self) -> io::Result<()> {
        if !matches!(self, Target::File { is_synced: true, .. }) {
            self.sync()?;
        }
        let (file, path, options, temporary) = match self {
            Target::Direct(_) => return Ok(()),
            Target::File { file, path, options, temporary, .. } => (file, path, options, temporary),
        };
        let Some(file) = file.take() else { return Ok(()) };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?.0;
        match (&temporary, options.existing) {
            (None, Existing::Refused) => file.link(path)?,
            (None, Existing::Replaced) => *temporary = Some(free_name(path, &mut |name| file.link(name))?.1),
            (Some(_), _) => {}
        }
        drop(file);
        if let Some(from) = &*temporary {
            match options.existing {
                Existing::Refused => options.files.rename_new(from, path)?,
                Existing::Replaced => options.files.rename(from, path)?,
            }
        }
        *temporary = None;
        options.files.sync_folder(folder_of(path))
    }

    fn writer(&mut self) -> io::Result<&mut dyn Write> {
        match self {
            Target::File { file: Some(file), is_synced, .. } => {
                *is_synced = false;
                Ok(file)
            }
            Target::File { file: None, .. } => Err(io::ErrorKind::BrokenPipe.into()),
            Target::Direct(file) => Ok(file),
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Target::File { file, options, temporary: Some(temporary), .. } = self {
            drop(file.take().map(BufWriter::into_parts));
            let _ = options.files.remove(temporary);
        }
    }
}

/// Creates something under a free hidden name beside `path`, so that a rename completes it. Shortens a long name to leave room
/// for the suffix.
fn free_name<T>(path: &Path, make: &mut dyn FnMut(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    const CHARS_MAX: usize = 40;
    const TRIES_MAX: u32 = 100;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(CHARS_MAX).collect();
    for _ in 0..TRIES_MAX {
        let random = uuid::Uuid::new_v4().simple().to_string();
        let free = path.with_file_name(format!(".{name}.{}.tmp", random.get(..8).unwrap_or_default()));
        match make(&free) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((made?, free)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.target.writer().and_then(|writer| writer.write(bytes));
        written.map_err(|error| Error::from_system(&self.place, Problem::Unwritable, error).into())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.target.writer().and_then(Write::flush);
        flushed.map_err(|error| Error::from_system(&self.place, Problem::Unwritable, error).into())
    }
}

/// Bytes in a temporary file without a name.
#[derive(Debug)]
pub struct Spool(BufWriter<File>);

impl Spool {
    /// An empty spool.
    pub fn new() -> Result<Spool, Error> {
        let file = tempfile::tempfile().map_err(unspooled)?;
        Ok(Spool(BufWriter::with_capacity(BUFFER_SIZE, file)))
    }

    /// Copies all bytes.
    pub fn copy_to(mut self, out: &mut dyn Write) -> io::Result<()> {
        io::copy(&mut *self.reread()?, out)?;
        Ok(())
    }

    pub(crate) fn into_file(self) -> Result<File, Error> {
        self.0.into_inner().map_err(|error| unspooled(error.into_error()))
    }
}

fn unspooled(error: io::Error) -> Error {
    Error::from_system(&Place::Temporary, Problem::Unwritable, error)
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(|error| unspooled(error).into())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(|error| unspooled(error).into())
    }
}

impl Rewritable for Spool {
    fn restart(&mut self) -> io::Result<()> {
        self.flush()?;
        let file = self.0.get_mut();
        file.set_len(0).and_then(|()| file.rewind()).map_err(|error| unspooled(error).into())
    }

    fn reread(&mut self) -> io::Result<Box<dyn Read + '_>> {
        self.flush()?;
        let file = self.0.get_mut();
        file.rewind().map_err(unspooled)?;
        Ok(Box::new(file))
    }
}

impl stenograph::convert::Reopen for Spool {
    fn open(&mut self) -> io::Result<Box<dyn Read + '_>> {
        self.reread()
    }
}

/// A new folder in the temporary folder, which is not removed.
pub fn fresh_folder(prefix: &str) -> Result<PathBuf, Error> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o700));
    }
    let folder = builder.prefix(prefix).tempdir();
    let folder = folder.map_err(|error| Error::from_system(&Place::Temporary, Problem::Unwritable, error))?;
    Ok(folder.keep())
}

/// Standard input as a private file, for commands that read a file by its path. The file is removed with the value.
#[derive(Debug)]
pub struct SpooledInput(tempfile::NamedTempFile);

impl SpooledInput {
    /// Reads standard input to its end.
    pub fn read() -> Result<SpooledInput, Error> {
        let failed = |error| Error::from_system(&Place::Temporary, Problem::Unwritable, error);
        let file = tempfile::Builder::new().prefix("steno-").tempfile().map_err(failed)?;
        io::copy(&mut io::stdin().lock(), &mut file.as_file()).map_err(failed)?;
        Ok(SpooledInput(file))
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Passes;
    use std::ffi::OsString;

    fn new(path: &Path) -> Result<NewFile, Error> {
        NewFile::options().existing(Existing::Replaced).create(path, [])
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_when_it_is_committed_and_leaves_nothing_when_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut file = new(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert!(names(folder.path()).is_empty());
        let mut file = new(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_under_way_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        if Disk.create_unnamed(folder.path(), FileMode::PRIVATE).unwrap().is_none() {
            return;
        }
        let path = folder.path().join("out");
        fs::write(&path, "before").unwrap();
        let mut file = new(&path).unwrap();
        file.write_all(b"after").unwrap();
        file.flush().unwrap();
        // This is left behind if the program ends here.
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
        new(&path).unwrap().commit().unwrap();
        new(&path).unwrap().commit().unwrap();
        assert_eq!(names(folder.path()).len(), 1);
    }

    #[test]
    fn a_file_that_exists_is_not_replaced_unasked_even_when_it_appears_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut file = NewFile::options().create(&path, []).unwrap();
        file.write_all(b"new").unwrap();
        fs::write(&path, "mine").unwrap();
        assert_eq!(file.commit().unwrap_err().problem, Problem::OutputExists);
        assert_eq!(NewFile::options().create(&path, []).unwrap_err().problem, Problem::OutputExists);
        assert_eq!((fs::read(&path).unwrap(), names(folder.path()).len()), (b"mine".to_vec(), 1));
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
            let refused = NewFile::options()
                .existing(Existing::Replaced)
                .create(&folder.path().join(name), [&source])
                .unwrap_err();
            assert_eq!(refused.problem, Problem::OwnInput, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_is_never_more_readable_than_its_source_or_the_file_it_replaces_and_a_link_stays_one() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (input, out, link) = (folder.path().join("in"), folder.path().join("out"), folder.path().join("link"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        fs::write(&input, "text").unwrap();
        std::os::unix::fs::symlink(&out, &link).unwrap();
        for (source, before, after) in [
            (0o600, None, 0o600),
            (0o640, None, 0o640),
            (0o600, Some(0o644), 0o600),
            (0o644, Some(0o600), 0o600),
            (0o644, Some(0o640), 0o640),
        ] {
            let _ = fs::remove_file(&out);
            set(&input, source);
            if let Some(before) = before {
                fs::write(&out, "before").unwrap();
                set(&out, before);
            }
            let source = Source::open(&input, Passes::Many).unwrap();
            let options = NewFile::options().existing(Existing::Replaced).like(Some(&source));
            let path = if before.is_some() { &link } else { &out };
            let mut file = options.create(path, [&source]).unwrap();
            file.write_all(b"text").unwrap();
            file.commit().unwrap();
            assert_eq!((mode(&out), fs::read(&out).unwrap()), (after, b"text".to_vec()));
        }
        assert!(link.is_symlink());
        let fresh = folder.path().join("fresh");
        NewFile::options().create(&fresh, []).unwrap().commit().unwrap();
        assert_eq!(mode(&fresh), 0o600);
    }
}
