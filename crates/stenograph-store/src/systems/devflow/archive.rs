//! Archives runs and restores them: `archive/YYYY-MM/<runId>.tar.gz`, every entry below `<runId>/`. An archive is read back
//! before the run's folder is removed, and a crash at any moment leaves the run complete in one of the two places.

use std::fs;
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use stenograph::time::{Time, TimeUnit};

use super::compare::{self, ArchiveComparison};
use super::tree::{self, PathKind, TreeEntry};
use crate::error::{Error, Problem};
use crate::files::{Files, create_folder_durably, folder_of, write_all};
use crate::layouts::devflow::run::METADATA_SIZE_MAX;
use crate::layouts::devflow::{
    ARCHIVE_ENDING, Base, DevflowRun, JOURNAL, METADATA, REMOVED, RESTORING, RunStatus, date_of,
};
use crate::layouts::rewrite::FileWriter;
use crate::lock::{self, Lock, safe_component};

/// An archived run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedRun {
    /// The run's id.
    pub id: String,
    /// The archive's path.
    pub path: PathBuf,
    /// When it was archived, in seconds since 1970.
    pub moment: Option<i64>,
    /// Its size in bytes.
    pub size: u64,
}

/// Whether an archive stays after its run is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveAfterRestore {
    /// It is removed: a run is in one place.
    Removed,
    /// It stays.
    Kept,
}

/// A base in which this process alone moves runs. What a crash left behind is removed first.
#[derive(Debug)]
pub struct Maintenance<'a> {
    files: &'a dyn Files,
    base: &'a Base,
    _lock: Lock,
}

impl<'a> Maintenance<'a> {
    /// Takes the lock without waiting; fails with the process that holds it.
    pub fn enter(files: &'a dyn Files, base: &'a Base) -> Result<Maintenance<'a>, Error> {
        if !base.path().is_dir() {
            return Err(Error::about(base.path(), Problem::Missing));
        }
        let maintenance = Maintenance { files, base, _lock: base.lock_maintenance()? };
        maintenance.sweep()?;
        Ok(maintenance)
    }

    /// Removes folders that were being removed or restored: a complete archive of both exists.
    fn sweep(&self) -> Result<(), Error> {
        let runs = self.base.runs();
        for path in self.files.list(&runs).map_err(|error| Error::at(&runs, Problem::Unreadable, error))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(REMOVED) || name.starts_with(RESTORING) {
                tree::remove(self.files, &path)?;
            }
        }
        Ok(())
    }

    /// Archives a run and returns the archive's path. An active run is refused.
    pub fn archive(&self, run: &DevflowRun) -> Result<PathBuf, Error> {
        let path = destination(self.base, run)?;
        let folder = self.idle_folder(run)?;
        let entries = tree::walk(self.files, &folder)?;
        if let Some(odd) = entries.iter().find(|entry| entry.kind == PathKind::Odd) {
            return Err(Error::about(&folder.join(&odd.path), Problem::Odd));
        }
        let unwritable = |error| Error::at(&path, Problem::Unwritable, error);
        if path.exists() {
            // A crash happened after the archive was complete and before the folder was removed.
            match compare::matches(self.files, &path, &folder, &run.id, &entries)? {
                ArchiveComparison::Same => {}
                ArchiveComparison::Differs => return Err(Error::about(&path, Problem::Differs)),
            }
        } else {
            create_folder_durably(self.files, folder_of(&path)).map_err(unwritable)?;
            let temporary = path.with_file_name(format!(".{}{ARCHIVE_ENDING}.new", run.id));
            let packed = self.pack(&temporary, &folder, &run.id, &entries);
            let checked = packed.map_err(unwritable).and_then(|()| {
                match compare::matches(self.files, &temporary, &folder, &run.id, &entries)? {
                    ArchiveComparison::Same => self.files.rename(&temporary, &path).map_err(unwritable),
                    ArchiveComparison::Differs => Err(Error::about(&folder, Problem::Changed)),
                }
            });
            if checked.is_err() {
                let _ = self.files.remove(&temporary);
            }
            checked?;
            self.files.sync_folder(folder_of(&path)).map_err(unwritable)?;
        }
        self.remove_folder(&run.id)?;
        Ok(path)
    }

    /// Deletes a run. An active run is refused.
    pub fn remove(&self, run: &DevflowRun) -> Result<(), Error> {
        self.idle_folder(run)?;
        self.remove_folder(&run.id)
    }

    /// Deletes an archive.
    pub fn remove_archived(&self, archived: &ArchivedRun) -> Result<(), Error> {
        let path = &archived.path;
        let removed = self.files.remove(path).and_then(|()| self.files.sync_folder(folder_of(path)));
        removed.map_err(|error| Error::at(path, Problem::Unwritable, error))
    }

    /// Restores a run and returns its folder. An existing run is not touched.
    pub fn restore(&self, archived: &ArchivedRun, afterwards: ArchiveAfterRestore) -> Result<PathBuf, Error> {
        let id = safe_component(&archived.id)?;
        let folder = self.base.run(id);
        let unwritable = |error| Error::at(&folder, Problem::Unwritable, error);
        if fs::symlink_metadata(&folder).is_ok() {
            return Err(Error::about(&folder, Problem::Exists));
        }
        let temporary_path = self.base.runs().join(format!("{RESTORING}{id}"));
        let unpacked = self.unpack(&archived.path, &temporary_path, id);
        if unpacked.is_err() {
            let _ = tree::remove(self.files, &temporary_path);
        }
        unpacked?;
        self.files.rename(&temporary_path, &folder).map_err(unwritable)?;
        self.files.sync_folder(folder_of(&folder)).map_err(unwritable)?;
        match afterwards {
            ArchiveAfterRestore::Removed => self.remove_archived(archived)?,
            ArchiveAfterRestore::Kept => {}
        }
        Ok(folder)
    }

    /// The folder of a run that no process writes to.
    fn idle_folder(&self, run: &DevflowRun) -> Result<PathBuf, Error> {
        destination(self.base, run)?;
        let folder = self.base.run(&run.id);
        if lock::lock_path(&folder.join(JOURNAL)).exists() {
            // A recorder holds the lock; what a crash left of it is removed.
            drop(Lock::on(&folder.join(JOURNAL))?);
        }
        Ok(folder)
    }

    /// Hides the folder in one step and then removes it: half a run is never visible.
    fn remove_folder(&self, id: &str) -> Result<(), Error> {
        let (folder, temporary_path) = (self.base.run(id), self.base.runs().join(format!("{REMOVED}{id}")));
        let hidden =
            self.files.rename(&folder, &temporary_path).and_then(|()| self.files.sync_folder(&self.base.runs()));
        hidden.map_err(|error| Error::at(&folder, Problem::Unwritable, error))?;
        tree::remove(self.files, &temporary_path)
    }

    fn pack(&self, path: &Path, folder: &Path, id: &str, entries: &[TreeEntry]) -> io::Result<()> {
        let mut file = self.files.open(path)?;
        file.truncate(0)?;
        let out = BufWriter::with_capacity(256 << 10, FileWriter(file.as_mut()));
        let mut builder = tar::Builder::new(GzEncoder::new(out, Compression::default()));
        let root = TreeEntry { path: PathBuf::new(), kind: PathKind::Folder };
        for entry in std::iter::once(&root).chain(entries) {
            let (mut header, from) = (tar::Header::new_gnu(), folder.join(&entry.path));
            header.set_metadata(&fs::symlink_metadata(&from)?);
            let name = Path::new(id).join(&entry.path);
            match entry.kind {
                PathKind::File { size } => {
                    header.set_size(size);
                    builder.append_data(&mut header, name, self.files.reader(&from, 0)?.take(size))?;
                }
                PathKind::Folder => {
                    header.set_size(0);
                    builder.append_data(&mut header, name, io::empty())?;
                }
                PathKind::Odd => {}
            }
        }
        let out = builder.into_inner()?.finish()?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync()
    }

    fn unpack(&self, archive: &Path, folder: &Path, id: &str) -> Result<(), Error> {
        create_folder_durably(self.files, folder).map_err(|error| Error::at(folder, Problem::Unwritable, error))?;
        compare::each_entry(archive, id, &mut |path, header, content| {
            let target = folder.join(path);
            let unwritable = |error| Error::at(&target, Problem::Unwritable, error);
            match compare::kind_of(header) {
                PathKind::Folder => self.files.create_folder(&target).map_err(unwritable),
                PathKind::File { .. } => {
                    self.files.create_folder(folder_of(&target)).map_err(unwritable)?;
                    self.put(&target, header, content)
                }
                PathKind::Odd => Err(Error::about(archive, Problem::LeadsOut)),
            }
        })?;
        for entry in tree::walk(self.files, folder)?.iter().filter(|entry| entry.kind == PathKind::Folder) {
            let inner = folder.join(&entry.path);
            self.files.sync_folder(&inner).map_err(|error| Error::at(&inner, Problem::Unwritable, error))?;
        }
        self.files.sync_folder(folder).map_err(|error| Error::at(folder, Problem::Unwritable, error))
    }

    fn put(&self, target: &Path, header: &tar::Header, content: &mut dyn Read) -> Result<(), Error> {
        let unwritable = |error| Error::at(target, Problem::Unwritable, error);
        let mut file = self.files.create_new(target).map_err(unwritable)?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    write_all(file.as_mut(), buffer.get(..length).unwrap_or_default()).map_err(unwritable)?;
                }
                Err(error) => return Err(compare::explain(target, error)),
            }
        }
        file.sync().map_err(unwritable)?;
        drop(file);
        // Time and permissions are useful, but not a reason to fail.
        if let Ok(seconds) = header.mtime() {
            let moment = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
            let _ = moment.map(|moment| fs::File::open(target).and_then(|file| file.set_modified(moment)));
        }
        #[cfg(unix)]
        if let Ok(mode) = header.mode() {
            use std::os::unix::fs::PermissionsExt;
            let _ = fs::set_permissions(target, fs::Permissions::from_mode(mode & 0o777 | 0o600));
        }
        Ok(())
    }
}

/// All archived runs, by month and id. Other names are skipped.
pub fn list(files: &dyn Files, base: &Base) -> Result<Vec<ArchivedRun>, Error> {
    let mut found = Vec::new();
    let unreadable = |path: &Path, error| Error::at(path, Problem::Unreadable, error);
    let folder = base.archive();
    for month in files.list(&folder).map_err(|error| unreadable(&folder, error))? {
        if !month.is_dir() {
            continue;
        }
        for path in files.list(&month).map_err(|error| unreadable(&month, error))? {
            let Some(id) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(ARCHIVE_ENDING)) else {
                continue;
            };
            let metadata = fs::symlink_metadata(&path).map_err(|error| unreadable(&path, error))?;
            if safe_component(id).is_ok() && metadata.is_file() {
                let moment = metadata.modified().ok().and_then(seconds);
                found.push(ArchivedRun { id: id.to_owned(), path, moment, size: metadata.len() });
            }
        }
    }
    Ok(found)
}

/// The archive path of a run. A run that cannot be archived is refused.
pub fn destination(base: &Base, run: &DevflowRun) -> Result<PathBuf, Error> {
    let folder = base.run(safe_component(&run.id)?);
    if tree::kind_of(&folder)? != PathKind::Folder {
        return Err(Error::about(&folder, Problem::Odd));
    }
    if run.status == RunStatus::Running {
        return Err(Error::about(&folder, Problem::Running));
    }
    Ok(base.archive().join(month_of(run, &folder)).join(format!("{}{ARCHIVE_ENDING}", run.id)))
}

impl ArchivedRun {
    /// The run and its archive as one line of JSON.
    pub fn to_json(&self, run: &DevflowRun) -> String {
        let mut draft = run.draft();
        draft.set_str("archive", &self.path.display().to_string());
        draft.set("archiveSize", self.size.to_string());
        draft.render(None)
    }

    /// The run as its archive describes it.
    pub fn read(&self) -> DevflowRun {
        let mut stated = None;
        let read = compare::each_entry(&self.path, &self.id, &mut |path, _, content| {
            if path == Path::new(METADATA) {
                let mut text = String::new();
                let length = content.take(METADATA_SIZE_MAX).read_to_string(&mut text);
                stated = length.is_ok().then_some(text);
            }
            Ok(())
        });
        DevflowRun::stated(&self.id, stated.as_deref(), read.err().map(|error| error.to_string()))
    }
}

/// The month of a run: from the date in its id, otherwise from its start, otherwise from its folder.
fn month_of(run: &DevflowRun, folder: &Path) -> String {
    let by_folder = || {
        let moment = fs::metadata(folder).and_then(|metadata| metadata.modified()).ok().and_then(seconds)?;
        Time::number(moment.to_string().into(), TimeUnit::Seconds)?.wall("%Y-%m")
    };
    let by_id = date_of(&run.id).and_then(|date| date.get(..7)).map(str::to_owned);
    let by_start = || run.started.as_ref()?.wall("%Y-%m");
    by_id.or_else(by_start).or_else(by_folder).unwrap_or_else(|| "1970-01".to_owned())
}

fn seconds(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

#[cfg(test)]
mod tests;
