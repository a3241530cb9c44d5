//! The index: makes sources searchable. It is derived from the sources and the archive, and may be deleted at any time.
//! [`catalogue`] is the authority and `text` finds words; [`run`] updates both and [`search`] queries them. `docs/design/011`
//! explains how the two commit as one.

mod archive_worker;
mod assign_session;
pub mod catalogue;
pub(crate) mod change;
mod earlier_versions;
mod event_indexer;
mod marks;
mod open;
mod passed_over;
mod private;
mod reading;
mod run;
mod saved_contents;
mod saved_status;
mod seal;
pub mod search;
mod source;
mod survey;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use stenograph::Registry;

use catalogue::{Catalogue, OpenedCatalogue};
pub(crate) use change::is_unchanged;
pub use marks::MarkedSession;
pub use open::SourceLocation;
pub use passed_over::{PassedOver, PassedOverReason};
pub use run::{Archiving, IndexPlan, IndexProgress, IndexReport, IndexScope, NoObserver, RunObserver, remove, run};
pub use saved_status::SavedStatuses;
pub(crate) use survey::is_missing;

use crate::archive::{Archive, CopyId};
use crate::files::{Disk, Files as _};
use crate::lock::Lock;
use crate::{Error, Place, Problem};
use seal::{Compare, Part, Seal};

/// The folder that holds the archive and the index.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    registry: &'static Registry,
}

impl Store {
    /// The store in this folder, which may not exist yet, for sources of the built-in formats.
    pub fn new(folder: impl Into<PathBuf>) -> Store {
        Store::with_registry(folder, Registry::built_in())
    }

    /// The store in this folder, for sources of the formats in this registry. Indexing and counting usage look for sources of
    /// these formats, whatever registry the places have.
    pub fn with_registry(folder: impl Into<PathBuf>, registry: &'static Registry) -> Store {
        Store { folder: folder.into(), registry }
    }

    /// The formats that the store knows.
    pub fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// The store's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The archive's folder.
    pub fn archive(&self) -> PathBuf {
        self.folder.join("archive")
    }

    /// The index's folder.
    pub fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    fn database(&self) -> PathBuf {
        self.index().join(seal::CATALOGUE)
    }

    fn lock_path(&self) -> PathBuf {
        self.folder.join("index.lock")
    }

    /// Opens the catalogue for queries.
    pub fn catalogue(&self) -> Result<Catalogue, Error> {
        let seal = Seal::read(&self.index());
        let catalogue = match Catalogue::open(&self.database(), self.registry)? {
            OpenedCatalogue::Current(catalogue) => catalogue,
            OpenedCatalogue::Missing if seal.is_none() => {
                return Err(Error::about(&self.folder, Problem::IndexMissing));
            }
            OpenedCatalogue::Later(found) if !is_contradicted(seal.as_ref()) => return Err(self.newer(found)),
            OpenedCatalogue::Earlier => return Err(Error::about(&self.index(), Problem::IndexOlder)),
            OpenedCatalogue::Missing | OpenedCatalogue::Unusable(_) | OpenedCatalogue::Later(_) => {
                return Err(Error::about(&self.database(), Problem::IndexDamaged));
            }
        };
        self.check_seal(catalogue.commits()?, Part::Catalogue)?;
        Ok(catalogue)
    }

    /// Checks that the files of one part of the index are as the last run left them. `commits` is the catalogue's own commit
    /// count: a seal of another commit proves nothing.
    fn check_seal(&self, commits: u64, part: Part) -> Result<(), Error> {
        let index = self.index();
        let seal = Seal::read(&index);
        let Some(sealed) = seal.as_ref().filter(|seal| seal.commit == commits) else { return Ok(()) };
        match sealed.first_changed(&index, part, Compare::Stat) {
            // A process that writes now, or wrote in between, explains the difference: that is not damage.
            Some(path) if !Lock::is_held(&self.lock_path()) && Seal::read(&index) == seal => {
                Err(Error::about(&path, Problem::IndexDamaged))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a run was killed before it sealed the index. Then only the files' own checksums can prove that they are intact.
    fn is_unsealed(&self, commits: u64) -> bool {
        let is_sealed = Seal::read(&self.index()).is_some_and(|seal| seal.commit == commits);
        !is_sealed && !Lock::is_held(&self.lock_path())
    }

    /// Sources whose copy the index lists but the archive lacks. If the end of the log and the end of a pack are lost together,
    /// only the index can reveal it. Empty if there is no index.
    pub fn missing_copies(&self, archive: &Archive) -> Result<Vec<PathBuf>, Error> {
        let Ok(catalogue) = self.catalogue() else { return Ok(Vec::new()) };
        let is_held = |row: &catalogue::ArchivedRow| {
            let copy = row.archive_copy.parse().ok().and_then(|copy| archive.copy(CopyId(copy)));
            copy.is_some_and(|copy| copy.length >= row.archived_length)
        };
        let rows = catalogue.archived_rows()?.into_iter().filter(|row| !is_held(row));
        Ok(rows.map(|row| row.path).collect())
    }

    fn newer(&self, found: i64) -> Error {
        Error::about(&self.index(), Problem::IndexNewer { found, known: catalogue::VERSION })
    }

    /// The folders that the user added to the archive.
    pub fn added_folders(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(archive_worker::ArchiveReader::open(self)?.folders())
    }

    /// Takes the index's write lock. Waits while another process holds it; `None` if `observer` stops the wait.
    fn lock(&self, observer: &mut dyn RunObserver) -> Result<Option<Lock>, Error> {
        let made = private::folder(&self.index());
        made.map_err(|error| Error::at(&self.index(), Problem::Unwritable, error))?;
        let mut steps = 0_u32;
        loop {
            match Lock::take(&self.lock_path()) {
                Err(Error { problem: Problem::Locked { holder }, .. }) => {
                    if steps == LOCK_QUIET_STEPS {
                        observer.waiting_for_lock(holder);
                    }
                    if observer.is_stopped() {
                        return Ok(None);
                    }
                    steps = steps.saturating_add(1);
                    std::thread::sleep(LOCK_STEP);
                }
                taken => return taken.map(Some).map_err(|error| error.about_path(&self.index())),
            }
        }
    }

    /// Opens both halves of the index, in step, or says why they must be rebuilt. The caller must hold the lock.
    fn open(&self, check: Check) -> Result<Result<OpenIndex, IndexCreation>, Error> {
        let seal = Seal::read(&self.index());
        let text = text::TextIndex::open(&text::folder(&self.index()));
        let is_text_empty = text.as_ref().and_then(text::TextIndex::batch_number).unwrap_or(0) == 0;
        let catalogue = match Catalogue::open(&self.database(), self.registry)? {
            OpenedCatalogue::Current(catalogue) => catalogue,
            // The first run was killed before it committed: nothing is lost.
            OpenedCatalogue::Missing if seal.is_none() && is_text_empty => return Ok(Err(IndexCreation::First)),
            OpenedCatalogue::Missing => return Ok(Err(IndexCreation::Rebuilt("the catalogue is missing".to_owned()))),
            OpenedCatalogue::Unusable(reason) => return Ok(Err(IndexCreation::Rebuilt(reason))),
            OpenedCatalogue::Earlier => {
                let reason = "it was written by an earlier version of steno".to_owned();
                return Ok(Err(IndexCreation::Rebuilt(reason)));
            }
            OpenedCatalogue::Later(found) if !is_contradicted(seal.as_ref()) => return Err(self.newer(found)),
            OpenedCatalogue::Later(_) => return Ok(Err(IndexCreation::Rebuilt("the catalogue is damaged".to_owned()))),
        };
        let Some(text) = text else {
            let is_empty = seal.is_none() && catalogue.batch_number()? == 0;
            let rebuilt = || IndexCreation::Rebuilt("the text index is missing or damaged".to_owned());
            return Ok(Err(if is_empty { IndexCreation::First } else { rebuilt() }));
        };
        if let Some(reason) = self.damage(&catalogue, &text, seal.as_ref(), check)? {
            return Ok(Err(IndexCreation::Rebuilt(reason)));
        }
        // A folder with missing files opens without error, but a search in it fails.
        if text.reader().is_err() {
            return Ok(Err(IndexCreation::Rebuilt("the text index is damaged".to_owned())));
        }
        let batch = catalogue.batch_number()?;
        Ok(match text.batch_number() {
            Some(number) if number == batch => Ok(OpenIndex { catalogue, text, text_ahead: TextAhead::No, made: None }),
            // The text was committed and the catalogue was not: the extra documents do not count.
            Some(number) if number > batch => Ok(OpenIndex { catalogue, text, text_ahead: TextAhead::Yes, made: None }),
            _ => Err(IndexCreation::Rebuilt("the text index is older than the catalogue".to_owned())),
        })
    }

    /// Describes the damage, if there is any, for people.
    fn damage(
        &self,
        catalogue: &Catalogue,
        text: &text::TextIndex,
        seal: Option<&Seal>,
        check: Check,
    ) -> Result<Option<String>, Error> {
        let index = self.index();
        let commits = catalogue.commits()?;
        let compare = match check {
            Check::Quick => Compare::Stat,
            Check::Full { now_s } if seal.is_some_and(|seal| seal.is_content_due(now_s)) => Compare::Content,
            Check::Full { .. } => Compare::Stat,
        };
        Ok(match seal {
            Some(seal) if seal.commit == commits => {
                let first_changed =
                    [Part::Catalogue, Part::Text].iter().find_map(|part| seal.first_changed(&index, *part, compare));
                first_changed.map(|path| format!("{} is damaged", path.display()))
            }
            Some(seal) if seal.commit > commits => Some("the catalogue lost its last commits".to_owned()),
            // The last run was killed. The engines check what it committed, as far as they can.
            Some(_) | None if check == Check::Quick => None,
            Some(_) | None if !catalogue.is_whole() => Some("the catalogue is damaged".to_owned()),
            Some(_) | None if !text.is_whole() => Some("the text index is damaged".to_owned()),
            Some(_) | None => None,
        })
    }

    /// Replaces the index with an empty one. The caller must hold the lock.
    fn rebuild(&self, reason: IndexCreation) -> Result<OpenIndex, Error> {
        let index = self.index();
        let removed = match fs::remove_dir_all(&index) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        let unwritable = |error| Error::at(&index, Problem::Unwritable, error);
        let emptied = removed.and_then(|()| private::folder(&index)).and_then(|()| private::file(&self.database()));
        emptied.map_err(unwritable)?;
        // The catalogue is durable before the text exists: a text without a catalogue means that the catalogue was lost.
        let OpenedCatalogue::Current(catalogue) = Catalogue::create(&self.database(), self.registry)? else {
            return Err(Error::about(&self.database(), Problem::IndexDamaged));
        };
        let emptied = Disk.sync_folder(&index).and_then(|()| private::folder(&text::folder(&index)));
        emptied.map_err(unwritable)?;
        let text = text::TextIndex::create(&text::folder(&index))?;
        Disk.sync_folder(&index).map_err(unwritable)?;
        Ok(OpenIndex { catalogue, text, text_ahead: TextAhead::No, made: Some(reason) })
    }

    /// Whether this error proves that the index is damaged, so that a rebuild helps.
    fn is_damage(&self, error: &Error) -> bool {
        let is_inside = matches!(&error.place, Place::Path(path) if path.starts_with(self.index()));
        match error.problem {
            Problem::IndexDamaged | Problem::IndexOlder => true,
            // These errors of the engines have many causes; the files decide.
            Problem::Unwritable | Problem::Unreadable => is_inside && !self.is_whole(),
            _ => false,
        }
    }

    fn is_whole(&self) -> bool {
        let catalogue = matches!(Catalogue::open(&self.database(), self.registry), Ok(OpenedCatalogue::Current(catalogue)) if catalogue.is_whole());
        catalogue && text::TextIndex::open(&text::folder(&self.index())).is_some_and(|text| text.is_whole())
    }

    /// Seals the index after a run has closed both halves. If that fails, the next run relies on the engines' own checks.
    fn seal(&self, before: Option<&Seal>, commits: u64, now_s: i64, check: Check) {
        let index = self.index();
        // While another process reads, the database cannot merge its write-ahead log, so the file is not final yet.
        let log = fs::metadata(index.join(format!("{}-wal", seal::CATALOGUE)));
        if log.is_ok_and(|log| log.len() > 0) {
            return;
        }
        let is_compared =
            matches!(check, Check::Full { now_s } if before.is_none_or(|before| before.is_content_due(now_s)));
        if !is_compared && before.is_some_and(|before| before.commit == commits && before.has_stats_of(&index)) {
            return;
        }
        let compared = before.filter(|_| !is_compared).map_or(now_s, |before| before.compared);
        let _ = Seal::write(&index, catalogue::VERSION, commits, before, compared);
    }
}

/// Whether the seal proves that the index is not of a later version, whatever the catalogue claims.
fn is_contradicted(seal: Option<&Seal>) -> bool {
    seal.is_some_and(|seal| seal.version <= catalogue::VERSION)
}

/// How many steps to wait for another writer before reporting it.
const LOCK_QUIET_STEPS: u32 = 10;
const LOCK_STEP: std::time::Duration = std::time::Duration::from_millis(50);

/// How thoroughly a run checks the index files before it relies on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// Compare with the seal only. For one run among many.
    Quick,
    /// Let the engines check files that no seal covers, and now and then compare the content of every file with the seal.
    Full {
        /// The current time, in seconds since 1970.
        now_s: i64,
    },
}

/// Both halves of the index, open.
struct OpenIndex {
    catalogue: Catalogue,
    text: text::TextIndex,
    text_ahead: TextAhead,
    made: Option<IndexCreation>,
}

/// Whether the text has documents of a batch that the catalogue does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextAhead {
    No,
    Yes,
}

/// Why an index was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexCreation {
    /// There was no index.
    First,
    /// The existing index was unusable, for this reason.
    Rebuilt(String),
}
