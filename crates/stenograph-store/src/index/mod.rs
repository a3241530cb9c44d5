//! The index: what was said where, derived from sources and archive, and deletable at any time. [`catalogue`] is the authority,
//! [`text`] finds words; [`run`] brings both up to date and [`search`] asks them. `docs/design/011` says how the two commit as one.

pub mod catalogue;
mod change;
mod held;
mod intake;
mod keeper;
mod place;
mod reading;
mod run;
pub mod search;
mod source;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use catalogue::{Catalogue, Opened};
pub(crate) use change::is_unchanged;
pub use held::Held;
pub(crate) use run::is_missing;
pub use run::{Keep, Nobody, Plan, Progress, Report, Scope, Watch, remove, run};

use crate::lock::Lock;
use crate::{Error, Problem};

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
        self.index().join("catalogue.db")
    }

    /// The catalogue, to ask.
    pub fn catalogue(&self) -> Result<Catalogue, Error> {
        match Catalogue::open(&self.database())? {
            Opened::Current(catalogue) => Ok(catalogue),
            Opened::Missing => Err(Error::about(&self.folder, Problem::IndexMissing)),
            Opened::Unusable(_) => Err(Error::about(&self.database(), Problem::IndexDamaged)),
        }
    }

    /// The folders that the user added.
    pub fn added_folders(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(keeper::Kept::open(self)?.folders())
    }

    /// Takes the right to write the index, and waits for whoever has it for a moment.
    fn lock(&self) -> Result<Lock, Error> {
        let made = fs::create_dir_all(self.index());
        made.map_err(|error| Error::at(&self.index(), Problem::Unwritable, error))?;
        Lock::take(&self.folder.join("index.lock")).map_err(|error| error.about_path(&self.index()))
    }

    /// Both halves of the index, in step. What cannot be used is made anew; then the reason is given too. The lock must be held.
    fn open(&self) -> Result<Pair, Error> {
        let reason = match self.try_open()? {
            Ok(pair) => return Ok(pair),
            Err(reason) => reason,
        };
        let index = self.index();
        let emptied = fs::remove_dir_all(&index).and_then(|()| fs::create_dir_all(text::folder(&index)));
        emptied.map_err(|error| Error::at(&index, Problem::Unwritable, error))?;
        let text = text::TextIndex::make(&text::folder(&index))?;
        match Catalogue::make(&self.database())? {
            Opened::Current(catalogue) => Ok(Pair { catalogue, text, behind: Behind::No, made: Some(reason) }),
            Opened::Missing | Opened::Unusable(_) => Err(Error::about(&self.database(), Problem::IndexDamaged)),
        }
    }

    /// Opens both halves, or says why they have to be made anew.
    fn try_open(&self) -> Result<Result<Pair, Made>, Error> {
        let catalogue = match Catalogue::open(&self.database())? {
            Opened::Current(catalogue) => catalogue,
            Opened::Missing => return Ok(Err(Made::First)),
            Opened::Unusable(reason) => return Ok(Err(Made::Again(reason))),
        };
        let Some(text) = text::TextIndex::open(&text::folder(&self.index())) else {
            return Ok(Err(Made::Again("the text index is missing or damaged".to_owned())));
        };
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
