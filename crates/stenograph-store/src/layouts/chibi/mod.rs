//! Chibi's layout: a folder for each context, with its window, its transcript, its inbox and the logs of requests. `systems/chibi/`
//! changes contexts and inboxes; nothing here prints or reads the environment.

pub mod context;
pub mod context_lock;
mod documents;
pub mod entry;
pub(crate) mod inbox_lock;
mod partitions;
pub(crate) mod rebuild;
pub mod transcript;

pub use context::{Context, HOME};
pub use context_lock::{ContextLock, ContextLockStatus};
pub use entry::{Anchor, ContextEntry, EntryStamp};
pub use transcript::ContextTranscript;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use stenograph::format::Format;
use stenograph::formats::chibi;

use super::{
    AddedFields, ContinuedConversation, Documents, Environment, Layout, LayoutInfo, LockedJournal, OpenedRecording,
    Target,
};
use crate::error::{Error, Problem};
use crate::files::{Disk, Files, create_folder_durably, folder_of};
use crate::journal::{Recording, Settings};
use context_lock::HEARTBEAT_SECONDS;
use documents::{ContextDocuments, USER};

pub(crate) const NAME: &str = "chibi";

/// The layout.
pub struct ChibiLayout;

impl Layout for ChibiLayout {
    fn info(&self) -> &'static LayoutInfo {
        &LayoutInfo {
            name: NAME,
            agent: "chibi",
            title: "a Chibi context: a folder with context.jsonl",
            path: "the folder of the context; with --set context=NAME, the Chibi home folder (CHIBI_HOME or ~/.chibi by default)",
            keys: &[("context", "the name of the context"), ("user", "the name of the user")],
        }
    }

    fn open(&self, target: &Target, environment: &Environment) -> Result<OpenedRecording, Error> {
        let context = chosen(target, environment)?;
        let folder = &context.folder;
        create_folder_durably(environment.files.as_ref(), folder)
            .map_err(|error| Error::at(folder, Problem::Unwritable, error))?;
        let hold = ContextLock::take(folder, &environment.clock, HEARTBEAT_SECONDS)?;
        let journal_lock = LockedJournal::of_journal(&context.journal(), environment)?;
        let rebuilt = rebuild::refresh(&context, environment)?;
        let user = target.settings.get("user").map_or(USER, String::as_str);
        let (header, documents, mut warnings) = ContextDocuments::begin(&context, user, target.debug, environment)?;
        warnings.extend(hold.warning.iter().cloned().chain(rebuilt));
        let window = context.window();
        let same = target.load.as_deref().is_some_and(|load| crate::identity::is_same(load, &window));
        let mut opened = OpenedRecording::new(journal_lock, header, Box::new(documents));
        opened.added_fields = AddedFields::TimeAndId;
        opened.continued = if same { ContinuedConversation::InPlace } else { ContinuedConversation::ToBeRecorded };
        opened.locks.push(Box::new(hold));
        opened.warnings = warnings;
        Ok(opened)
    }

    fn resume(&self, recorded: &Recording, environment: &Environment) -> Result<Box<dyn Documents>, Error> {
        let mut context = Context::at(folder_of(&recorded.journal));
        if let Some(name) = recorded.header.settings.get("context") {
            context.name.clone_from(name);
        }
        let hold = ContextLock::take_unless_held(&context.folder, &environment.clock)?;
        Ok(Box::new(ContextDocuments::of(&context, &recorded.header, environment)?.holding(hold)))
    }

    fn default_path(&self, settings: &Settings) -> Option<String> {
        let name = settings.get("context").map_or("default", String::as_str);
        Some(format!("{HOME}/contexts/{name}"))
    }

    fn refuse_edit(&self, file: &Path) -> Result<(), Error> {
        Context::of_window(file).map_or(Ok(()), |context| context.refuse_edit())
    }

    fn is_locked(&self, file: &Path) -> Option<bool> {
        // A partition is two folders below its context.
        const FOLDERS_MAX: usize = 3;
        let mut folders = file.ancestors().skip(1).take(FOLDERS_MAX);
        let context = folders.find(|folder| Context::at(folder).is_recorded(&Disk));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let status = |folder: &Path| context_lock::status(folder, now, HEARTBEAT_SECONDS);
        context.map(|folder| status(folder) == Some(ContextLockStatus::Active))
    }

    fn contains(&self, whole: &Path, part: &Path) -> bool {
        Context::at(folder_of(part)).window() == part && ContextTranscript::is_whole(whole, folder_of(part))
    }

    fn format(&self) -> Option<&'static dyn Format> {
        Some(&chibi::Chibi)
    }

    fn files_to_read(&self, folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>> {
        let context = Context::at(folder);
        if context.is_recorded(files) { context.files_to_read(files).ok() } else { None }
    }
}

/// The context of a recording.
fn chosen(target: &Target, environment: &Environment) -> Result<Context, Error> {
    let name = target.settings.get("context").map(String::as_str);
    let home = || environment.home.as_ref().map(|home| home.join(".chibi"));
    match (&target.path, name) {
        (Some(path), None) => Ok(Context::at(path)),
        (Some(path), Some(name)) => {
            let named = Context::named(path, name)?;
            // The path may be the folder itself or Chibi's home.
            if path.ends_with(Path::new("contexts").join(name)) {
                return Ok(Context { folder: path.clone(), ..named });
            }
            Ok(named)
        }
        (None, name) => {
            let home = home().ok_or_else(|| Error::about(Path::new(HOME), Problem::Missing))?;
            Context::named(&home, name.unwrap_or("default"))
        }
    }
}

#[cfg(test)]
mod tests;
