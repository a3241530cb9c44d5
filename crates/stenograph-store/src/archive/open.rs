//! Opens an archive for writing. Moves an incomplete commit that a crash left at the end of the log aside, adds commits that
//! only packs hold to the log, and finds pieces whose packs are missing or too short.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::history::ArchiveHistory;
use super::pack_writer::PACK_MAX;
use super::packs::{log_path, pack_path, packs_folder, present};
use super::writer::ArchiveWriter;
use crate::error::{Error, Problem};
use crate::files::{Files, create_folder_durably, rewrite_from};
use crate::lock::Lock;
use crate::log::{Durability, Log};
use crate::tail::{Tail, Warning, move_aside};

impl ArchiveWriter {
    /// Opens the archive in a folder for writing, and creates it if it is missing.
    pub fn open(files: Arc<dyn Files>, folder: &Path) -> Result<ArchiveWriter, Error> {
        let lock = take_lock(files.as_ref(), folder)?;
        ArchiveWriter::locked(files, folder, lock)
    }

    /// Opens the archive as [`ArchiveWriter::open`] does. If another process writes to it, waits some seconds: marking a session
    /// takes only a moment.
    pub(crate) fn open_when_free(files: Arc<dyn Files>, folder: &Path) -> Result<ArchiveWriter, Error> {
        create(files.as_ref(), folder)?;
        let lock = Lock::wait_on(&log_path(folder))?;
        ArchiveWriter::locked(files, folder, lock)
    }

    pub(super) fn locked(files: Arc<dyn Files>, folder: &Path, lock: Lock) -> Result<ArchiveWriter, Error> {
        let path = log_path(folder);
        let mut history = ArchiveHistory::load(files.as_ref(), folder)?;
        let aside = move_incomplete_aside(files.as_ref(), &path, &history)?;
        let tail = Tail { length: history.complete_end, ..Tail::default() };
        let log = Log::open(Arc::clone(&files), &path, &tail, Durability::Always)?;
        let (only_in_packs, logged) = (std::mem::take(&mut history.only_in_packs), std::mem::take(&mut history.logged));
        if !only_in_packs.is_empty() {
            // A sync may have failed, so these blocks may not be on disk.
            for (pack, length) in present(files.as_ref(), folder)? {
                let known = logged.get(&pack).copied().unwrap_or(0);
                if length > known && !history.state.dropped.contains(&pack) {
                    let path = pack_path(folder, pack);
                    let written = rewrite_from(files.as_ref(), &path, known)
                        .and_then(|()| files.sync_folder(&packs_folder(folder)));
                    written.map_err(|error| Error::at(&path, Problem::Unwritable, error))?;
                }
            }
            for commit in &only_in_packs {
                log.append(&commit.bytes, (), &|_| {})?;
            }
        }
        let mut writer = ArchiveWriter::new(files, folder, history, log, lock)?;
        writer.warnings.extend(aside);
        writer.check_packs()?;
        Ok(writer)
    }

    /// Removes packs that are no longer needed, finds lost pieces, and decides where to write.
    fn check_packs(&mut self) -> Result<(), Error> {
        let present = present(self.files.as_ref(), &self.folder)?;
        let last_known = self.state.packs.keys().chain(&self.state.dropped).max().copied();
        let last = present.last().map(|(pack, _)| *pack).max(last_known).unwrap_or(0);
        self.packs.next_pack = last + 1;
        for (pack, _) in present.iter().filter(|(pack, _)| self.state.dropped.contains(pack)) {
            // Its replacement is durable; the process ended before it could remove the pack.
            self.remove_pack(*pack)?;
        }
        self.find_lost()?;
        let lengths: HashMap<u32, u64> = present.iter().copied().collect();
        for (pack, known) in self.state.packs.iter().filter(|(_, known)| **known > 0) {
            let text = match lengths.get(pack) {
                None => "is missing".to_owned(),
                Some(length) if length < known => format!("has {length} bytes instead of {known}"),
                Some(_) => continue,
            };
            let text = format!("{text}; sources that still exist are archived again");
            self.warnings.push(Warning::new(&pack_path(&self.folder, *pack), text));
        }
        match present.last() {
            // Blocks of a killed process may follow the known end; then a new pack begins.
            Some((pack, length)) if self.state.packs.get(pack) == Some(length) && *length < PACK_MAX / 2 => {
                self.packs.continue_pack(*pack, *length)
            }
            _ => Ok(()),
        }
    }

    /// Finds the pieces that cannot be read.
    pub(super) fn find_lost(&mut self) -> Result<(), Error> {
        self.lost = super::lost_pieces(&self.state, self.files.as_ref(), &self.folder)?;
        Ok(())
    }

    pub(super) fn remove_pack(&self, pack: u32) -> Result<(), Error> {
        let path = pack_path(&self.folder, pack);
        let removed = match self.files.remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        let removed = removed.and_then(|()| self.files.sync_folder(&packs_folder(&self.folder)));
        removed.map_err(|error| Error::at(&path, Problem::Unwritable, error))
    }
}

/// Creates the archive's folder and takes the write lock.
pub(super) fn take_lock(files: &dyn Files, folder: &Path) -> Result<Lock, Error> {
    create(files, folder)?;
    Lock::on(&log_path(folder))
}

fn create(files: &dyn Files, folder: &Path) -> Result<(), Error> {
    let made = create_folder_durably(files, &packs_folder(folder));
    made.map_err(|error| Error::at(folder, Problem::Unwritable, error))
}

/// Moves an incomplete, never acknowledged commit at the end of the log aside.
fn move_incomplete_aside(files: &dyn Files, path: &Path, history: &ArchiveHistory) -> Result<Option<Warning>, Error> {
    if history.length <= history.complete_end {
        return Ok(None);
    }
    let rest = files.read(path, history.complete_end).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    let moved = move_aside(files, path, &rest).and_then(|aside| {
        files.open(path)?.truncate(history.complete_end)?;
        Ok(aside)
    });
    let aside = moved.map_err(|error| Error::at(path, Problem::Unwritable, error))?;
    let text = format!("moved an incomplete commit of {} bytes at the end to {}", rest.len(), aside.display());
    Ok(Some(Warning::new(path, text)))
}
