//! The native layout: one stream in one file, which is its own journal.

use std::path::{Path, PathBuf};

use stenograph::format::Head;
use stenograph::wire;
use stenograph::{Detected, Registry};

use super::{
    AddedFields, ContinuedConversation, Documents, Environment, JournalKind, Layout, LayoutInfo, LockedJournal,
    OpenedRecording, Target, appended,
};
use crate::error::{Error, Problem};
use crate::files::Files;
use crate::journal::Recording;
use crate::tail::{self, LastLineRule};
use crate::{lock, recover};

/// The layout.
pub struct StenoLayout;

impl Layout for StenoLayout {
    fn info(&self) -> &'static LayoutInfo {
        &LayoutInfo {
            name: "steno",
            agent: "steno",
            title: "one native stream",
            path: "the file, or a folder for a new file (the current folder by default)",
            keys: &[],
        }
    }

    fn open(&self, target: &Target, environment: &Environment) -> Result<OpenedRecording, Error> {
        let given = target.path.clone().unwrap_or_else(|| PathBuf::from("."));
        // A path with a trailing separator is a folder, even if it does not exist yet.
        let folder = given.is_dir() || given.as_os_str().to_string_lossy().ends_with(std::path::is_separator);
        let path = if folder { given.join(new_name(environment)) } else { given };
        refuse_others(&path, environment)?;
        let same = target.load.as_deref().is_some_and(|load| crate::identity::is_same(load, &path));
        let journal_lock = LockedJournal::of_stream(&path, LastLineRule::MayLackNewline, environment)?;
        let warnings = (journal_lock.tail.length > 0 && !same).then(|| appended(&path)).into_iter().collect();
        Ok(OpenedRecording {
            journal_lock,
            kind: JournalKind::Stream,
            documents: None,
            first: Vec::new(),
            added_fields: AddedFields::Time,
            continued: if same { ContinuedConversation::InPlace } else { ContinuedConversation::ToBeRecorded },
            locks: Vec::new(),
            warnings,
        })
    }

    fn resume(&self, recorded: &Recording, _environment: &Environment) -> Result<Box<dyn Documents>, Error> {
        // A stream has no documents beside it and no header.
        Err(Error::about(&recorded.journal, Problem::NoLayout))
    }

    fn files_to_read(&self, folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>> {
        // Only a folder with nothing else: any other layout reads its folder itself.
        let is_beside = |path: &PathBuf| tail::is_aside(path) || lock::is_lock(path);
        let found: Vec<PathBuf> = files.list(folder).ok()?.into_iter().filter(|path| !is_beside(path)).collect();
        found.iter().all(|path| recover::is_stream(path) && path.is_file()).then_some(found)
    }
}

/// Refuses a file of another kind, which our lines would damage.
fn refuse_others(path: &Path, environment: &Environment) -> Result<(), Error> {
    const START: &[u8] = b"{\"v\":";
    let mut head = Vec::new();
    let read = match environment.files.reader(path, 0) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened.and_then(|mut reader| Head::read(&mut reader, &mut head)),
    };
    read.map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    let start = head.trim_ascii_start();
    // Half of our first line is acceptable.
    let native =
        matches!(Registry::built_in().detect(&head), Detected::Format(format) if format.info().name == wire::NAME);
    let ours = native || start.starts_with(START) || START.starts_with(start);
    if ours { Ok(()) } else { Err(Error::about(path, Problem::NotNative)) }
}

fn new_name(environment: &Environment) -> String {
    let clock = (environment.clock)().wall("%Y%m%d-%H%M%S-%3f").unwrap_or_default();
    let number = uuid::Uuid::new_v4().simple().to_string();
    format!("{clock}-{}{}", number.get(..8).unwrap_or_default(), recover::STREAM_ENDING)
}
