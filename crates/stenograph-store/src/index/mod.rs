//! The index: what was said where, derived from sources and archive, and deletable at any time. [`catalogue`] is the authority,
//! [`text`] finds words; [`run`] brings both up to date and [`search`] asks them. `docs/design/011` says how the two commit as one.

mod archive_worker;
mod at_rest;
pub mod catalogue;
pub(crate) mod change;
mod earlier;
mod held;
mod intake;
mod passed;
mod place;
mod private;
mod reading;
mod run;
mod seal;
pub mod search;
mod source;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

pub use at_rest::FilesAtRest;
use catalogue::{Catalogue, Opened};
pub(crate) use change::is_unchanged;
pub use held::Held;
pub use passed::{PassedOver, PassedOverReason};
pub(crate) use run::is_missing;
pub use run::{Keep, Nobody, Plan, Progress, Report, Scope, Watch, remove, run};

use crate::archive::{Archive, CopyId};
use crate::files::{Disk, Files as _};
use crate::lock::Lock;
use crate::{Error, Place, Problem};
use seal::{Compare, Part, Seal};

/// The folder in which everything is kept.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The store in this folder, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>) -> Store {
        Store { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the archive stands.
    pub fn archive(&self) -> PathBuf {
        self.folder.join("archive")
    }

    /// Where the index stands.
    pub fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    fn database(&self) -> PathBuf {
        self.index().join(seal::CATALOGUE)
    }

    fn lock_path(&self) -> PathBuf {
        self.folder.join("index.lock")
    }

    /// The catalogue, to ask.
    pub fn catalogue(&self) -> Result<Catalogue, Error> {
        let seal = Seal::read(&self.index());
        let catalogue = match Catalogue::open(&self.database())? {
            Opened::Current(catalogue) => catalogue,
            Opened::Missing if seal.is_none() => return Err(Error::about(&self.folder, Problem::IndexMissing)),
            Opened::Later(found) if !is_contradicted(seal.as_ref()) => return Err(self.newer(found)),
            Opened::Missing | Opened::Unusable(_) | Opened::Later(_) => {
                return Err(Error::about(&self.database(), Problem::IndexDamaged));
            }
        };
        self.check_seal(catalogue.commits()?, Part::Catalogue)?;
        Ok(catalogue)
    }

    /// Whether the files of a part of the index are what the last run left, as far as that is known. `commits` is what the catalogue
    /// says of itself: the seal of another commit proves nothing.
    fn check_seal(&self, commits: u64, part: Part) -> Result<(), Error> {
        let index = self.index();
        let seal = Seal::read(&index);
        let Some(sealed) = seal.as_ref().filter(|seal| seal.commit == commits) else { return Ok(()) };
        match sealed.broken(&index, part, Compare::Stat) {
            // Whoever writes at the moment, or did so in between, is not damage.
            Some(path) if !Lock::is_held(&self.lock_path()) && Seal::read(&index) == seal => {
                Err(Error::about(&path, Problem::IndexDamaged))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a run was killed before it sealed the index: nothing tells then whether the files are what it wrote but their own checksums.
    fn is_unsealed(&self, commits: u64) -> bool {
        let is_sealed = Seal::read(&self.index()).is_some_and(|seal| seal.commit == commits);
        !is_sealed && !Lock::is_held(&self.lock_path())
    }

    /// Sources of which the index knows a copy that the archive does not have: the only witness of a loss where the end of the log and the
    /// end of a pack are lost together. Without an index nobody knows of any.
    pub fn missing_copies(&self, archive: &Archive) -> Result<Vec<PathBuf>, Error> {
        let Ok(catalogue) = self.catalogue() else { return Ok(Vec::new()) };
        let is_held = |row: &catalogue::KeptRow| {
            let copy = row.kept.parse().ok().and_then(|copy| archive.copy(CopyId(copy)));
            copy.is_some_and(|copy| copy.length >= row.kept_length)
        };
        let rows = catalogue.kept_rows()?.into_iter().filter(|row| !is_held(row));
        Ok(rows.map(|row| row.path).collect())
    }

    fn newer(&self, found: i64) -> Error {
        Error::about(&self.index(), Problem::IndexNewer { found, known: catalogue::VERSION })
    }

    /// The folders that the user added.
    pub fn added_folders(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(archive_worker::Kept::open(self)?.folders())
    }

    /// Takes the right to write the index. Waits as long as another process has it, unless `watch` wants to stop: then there is none.
    fn lock(&self, watch: &mut dyn Watch) -> Result<Option<Lock>, Error> {
        let made = private::folder(&self.index());
        made.map_err(|error| Error::at(&self.index(), Problem::Unwritable, error))?;
        let mut steps = 0_u32;
        loop {
            match Lock::take(&self.lock_path()) {
                Err(Error { problem: Problem::Locked { holder }, .. }) => {
                    if steps == LOCK_QUIET_STEPS {
                        watch.waits_for(holder);
                    }
                    if watch.is_stopped() {
                        return Ok(None);
                    }
                    steps = steps.saturating_add(1);
                    std::thread::sleep(LOCK_STEP);
                }
                taken => return taken.map(Some).map_err(|error| error.about_path(&self.index())),
            }
        }
    }

    /// Both halves of the index, in step; or why they have to be rebuilt. The lock must be held.
    fn open(&self, check: Check) -> Result<Result<Pair, Made>, Error> {
        let seal = Seal::read(&self.index());
        let text = text::TextIndex::open(&text::folder(&self.index()));
        let is_text_empty = text.as_ref().and_then(text::TextIndex::batch_number).unwrap_or(0) == 0;
        let catalogue = match Catalogue::open(&self.database())? {
            Opened::Current(catalogue) => catalogue,
            // Nothing ever counted here: a first run was killed before it committed.
            Opened::Missing if seal.is_none() && is_text_empty => return Ok(Err(Made::First)),
            Opened::Missing => return Ok(Err(Made::Again("the catalogue is missing".to_owned()))),
            Opened::Unusable(reason) => return Ok(Err(Made::Again(reason))),
            Opened::Later(found) if !is_contradicted(seal.as_ref()) => return Err(self.newer(found)),
            Opened::Later(_) => return Ok(Err(Made::Again("the catalogue is damaged".to_owned()))),
        };
        let Some(text) = text else {
            let is_empty = seal.is_none() && catalogue.batch_number()? == 0;
            let again = || Made::Again("the text index is missing or damaged".to_owned());
            return Ok(Err(if is_empty { Made::First } else { again() }));
        };
        if let Some(reason) = self.damage(&catalogue, &text, seal.as_ref(), check)? {
            return Ok(Err(Made::Again(reason)));
        }
        // A folder from which files are missing opens; whoever searches would hear of it.
        if text.reader().is_err() {
            return Ok(Err(Made::Again("the text index is damaged".to_owned())));
        }
        let batch = catalogue.batch_number()?;
        Ok(match text.batch_number() {
            Some(number) if number == batch => Ok(Pair { catalogue, text, behind: Behind::No, made: None }),
            // The text was committed and the catalogue was not: what the text has more never came to count.
            Some(number) if number > batch => Ok(Pair { catalogue, text, behind: Behind::Yes, made: None }),
            _ => Err(Made::Again("the text index is older than the catalogue".to_owned())),
        })
    }

    /// What is damaged, for people.
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
                let broken = [Part::Catalogue, Part::Text].iter().find_map(|part| seal.broken(&index, *part, compare));
                broken.map(|path| format!("{} is damaged", path.display()))
            }
            Some(seal) if seal.commit > commits => Some("the catalogue lost its last commits".to_owned()),
            // The last run was killed. What it committed is checked by the engines, as far as they can.
            Some(_) | None if check == Check::Quick => None,
            Some(_) | None if !catalogue.is_whole() => Some("the catalogue is damaged".to_owned()),
            Some(_) | None if !text.is_whole() => Some("the text index is damaged".to_owned()),
            Some(_) | None => None,
        })
    }

    /// An empty index in the place of the one that is there. The lock must be held.
    fn rebuild(&self, reason: Made) -> Result<Pair, Error> {
        let index = self.index();
        let removed = match fs::remove_dir_all(&index) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        let unwritable = |error| Error::at(&index, Problem::Unwritable, error);
        let emptied = removed.and_then(|()| private::folder(&index)).and_then(|()| private::file(&self.database()));
        emptied.map_err(unwritable)?;
        // The catalogue comes first and is durable before there is a text: a text without a catalogue has lost it.
        let Opened::Current(catalogue) = Catalogue::make(&self.database())? else {
            return Err(Error::about(&self.database(), Problem::IndexDamaged));
        };
        let emptied = Disk.sync_folder(&index).and_then(|()| private::folder(&text::folder(&index)));
        emptied.map_err(unwritable)?;
        let text = text::TextIndex::make(&text::folder(&index))?;
        Disk.sync_folder(&index).map_err(unwritable)?;
        Ok(Pair { catalogue, text, behind: Behind::No, made: Some(reason) })
    }

    /// Whether an error of a run proves that the index is damaged, so that rebuilding it helps.
    fn is_damage(&self, error: &Error) -> bool {
        let is_inside = matches!(&error.place, Place::Path(path) if path.starts_with(self.index()));
        match error.problem {
            Problem::IndexDamaged => true,
            // Both engines have errors that may mean anything; then the files decide.
            Problem::Unwritable | Problem::Unreadable => is_inside && !self.is_whole(),
            _ => false,
        }
    }

    fn is_whole(&self) -> bool {
        let catalogue =
            matches!(Catalogue::open(&self.database()), Ok(Opened::Current(catalogue)) if catalogue.is_whole());
        catalogue && text::TextIndex::open(&text::folder(&self.index())).is_some_and(|text| text.is_whole())
    }

    /// Seals what a run left, once it has closed both halves. Where that fails, the engines' own checks have to do.
    fn seal(&self, before: Option<&Seal>, commits: u64, now_s: i64, check: Check) {
        let index = self.index();
        // Somebody who reads keeps the database from writing its log back: the file does not say yet what it should.
        let log = fs::metadata(index.join(format!("{}-wal", seal::CATALOGUE)));
        if log.is_ok_and(|log| log.len() > 0) {
            return;
        }
        let is_compared =
            matches!(check, Check::Full { now_s } if before.is_none_or(|before| before.is_content_due(now_s)));
        let compared = before.filter(|_| !is_compared).map_or(now_s, |before| before.compared);
        let _ = Seal::write(&index, catalogue::VERSION, commits, before, compared);
    }
}

/// Whether a seal says that the index is not of a later version, whatever the catalogue says.
fn is_contradicted(seal: Option<&Seal>) -> bool {
    seal.is_some_and(|seal| seal.version <= catalogue::VERSION)
}

/// How long somebody who writes is waited for without a word.
const LOCK_QUIET_STEPS: u32 = 10;
const LOCK_STEP: std::time::Duration = std::time::Duration::from_millis(50);

/// How closely the files of an index are looked at before a run relies on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// Against the seal only: this run is one of many.
    Quick,
    /// By the engines where no seal helps, and against the content of every file now and then.
    Full {
        /// The moment, in seconds since 1970.
        now_s: i64,
    },
}

/// Both halves of the index.
struct Pair {
    catalogue: Catalogue,
    text: text::TextIndex,
    behind: Behind,
    made: Option<Made>,
}

/// Whether the text has documents of a batch that the catalogue does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    No,
    Yes,
}

/// Why an index was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// There was none.
    First,
    /// There was one that could not be used, and why.
    Again(String),
}
