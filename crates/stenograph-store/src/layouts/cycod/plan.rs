//! Decides which documents a recording makes and how they are named. CycoD saves both kinds in its history folder unless a
//! setting prevents it, plus an explicitly requested one; the same path is written once.

use std::io;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

use stenograph::formats::openai_chat::file_name;
use stenograph::time::Time;

use super::DocumentKind;
use crate::error::{Error, Problem};
use crate::files::{Files, create_folder_durably, folder_of};
use crate::layouts::{Environment, Target};
use crate::tail::Warning;

/// The documents of a recording.
#[derive(Debug)]
pub struct DocumentPlan {
    /// The requested document.
    pub asked: Option<PathBuf>,
    /// Documents that are saved in addition.
    pub saved: Vec<PlannedDocument>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

/// A document to write.
#[derive(Debug)]
pub struct PlannedDocument {
    /// Its path.
    pub path: PathBuf,
    /// Its kind.
    pub kind: DocumentKind,
    /// Why it is written.
    pub role: DocumentRole,
}

/// Why a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentRole {
    /// The user asked for it.
    Asked,
    /// Chat histories are saved by default.
    SavedChat,
    /// Trajectories are saved by default.
    SavedTrajectory,
}

impl DocumentRole {
    /// All roles, the most important first.
    pub const ALL: [DocumentRole; 3] = [DocumentRole::Asked, DocumentRole::SavedChat, DocumentRole::SavedTrajectory];

    /// Its name in a journal's header.
    pub fn name(self) -> &'static str {
        match self {
            DocumentRole::Asked => "asked",
            DocumentRole::SavedChat => "saved_chat",
            DocumentRole::SavedTrajectory => "saved_trajectory",
        }
    }
}

/// CycoD's default file names.
const CHAT_TEMPLATE: &str = "chat-history-{time}.jsonl";
const TRAJECTORY_TEMPLATE: &str = "trajectory-{time}.md";

/// CycoD's history folder in the home folder.
pub const HISTORY: &str = ".cycod/history";

/// The settings that switch saving on and off.
pub const AUTO_SAVE_CHAT: &str = "auto_save_chat_history";
pub const AUTO_SAVE_TRAJECTORY: &str = "auto_save_trajectory";

impl DocumentPlan {
    /// The documents of a recording.
    pub fn new(target: &Target, environment: &Environment) -> Result<DocumentPlan, Error> {
        let now = (environment.clock)();
        let mut asked = target.path.as_deref().map(|path| explicit(path, target, &now)).transpose()?;
        let mut saved = Vec::new();
        let mut warnings = Vec::new();
        for (key, template, kind, role) in [
            (AUTO_SAVE_CHAT, CHAT_TEMPLATE, DocumentKind::Chat, DocumentRole::SavedChat),
            (AUTO_SAVE_TRAJECTORY, TRAJECTORY_TEMPLATE, DocumentKind::Trajectory, DocumentRole::SavedTrajectory),
        ] {
            if !is_on(target, key) {
                continue;
            }
            let Some(home) = &environment.home else {
                let text = "is not saved: no home folder";
                warnings.push(Warning::new(&Path::new("~").join(HISTORY).join(template), text));
                continue;
            };
            let path = home.join(HISTORY).join(file_name(template, None, &now));
            let same = asked.as_deref().is_some_and(|asked| absolute(asked).ok() == absolute(&path).ok());
            if !same {
                saved.push(PlannedDocument { path, kind, role });
            }
        }
        // The user wants a recording: if nothing would be saved, it is the file that CycoD uses without a name.
        if asked.is_none() && saved.is_empty() {
            asked = Some(PathBuf::from(file_name(CHAT_TEMPLATE, None, &now)));
        }
        Ok(DocumentPlan { asked, saved, warnings })
    }
}

fn is_on(target: &Target, key: &str) -> bool {
    let off = ["false", "0", "no", "off"];
    !target.settings.get(key).is_some_and(|value| off.contains(&value.trim().to_ascii_lowercase().as_str()))
}

/// The requested path: a template, filled in; in a folder, the default name.
fn explicit(given: &Path, target: &Target, now: &Time<'_>) -> Result<PathBuf, Error> {
    let text = given.to_str().ok_or_else(|| Error::about(given, Problem::BadName))?;
    let continued = target.load.as_deref().map(Path::to_string_lossy);
    let named = file_name(text, continued.as_deref(), now);
    let path = if named.is_empty() { given.to_owned() } else { PathBuf::from(named) };
    Ok(if path.is_dir() || text.ends_with(['/', '\\']) {
        path.join(file_name(CHAT_TEMPLATE, continued.as_deref(), now))
    } else {
        path
    })
}

/// How many recordings may begin at the same time.
const SAME_MOMENT_MAX: u32 = 1_000;

/// Creates the file of a document that is saved by default. Its name contains a time, and two recordings may begin at the same
/// one: then the next free name is used.
pub fn claim(files: &Arc<dyn Files>, path: &Path, kind: DocumentKind) -> Result<PathBuf, Error> {
    let unwritable = |error| Error::at(path, Problem::Unwritable, error);
    create_folder_durably(files.as_ref(), folder_of(path)).map_err(unwritable)?;
    let ending = match kind {
        DocumentKind::Chat => "jsonl",
        DocumentKind::Trajectory => "md",
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (start, moment) = stem.rsplit_once('-').unwrap_or((&stem, "0"));
    let moment: u64 = moment.parse().unwrap_or(0);
    for later in 0..SAME_MOMENT_MAX {
        let path = path.with_file_name(format!("{start}-{}.{ending}", moment + u64::from(later)));
        match files.create_new(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unwritable(error)),
        }
    }
    Err(Error::about(path, Problem::Exists))
}
