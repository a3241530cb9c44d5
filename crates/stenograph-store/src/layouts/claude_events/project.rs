//! The paths of GoodVibes' files in a project. This file does not read or write them.

use std::path::{Component, Path, PathBuf};

use super::agent::moment_of;
use crate::error::{Error, Problem};
use crate::files::{Files, create_folder_durably, folder_of};
use crate::lock::{self, Lock};

/// A project: the folder that contains `.goodvibes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoodVibesProject {
    folder: PathBuf,
}

/// GoodVibes' folder in a project.
pub const GOODVIBES: &str = ".goodvibes";

/// The folder of event logs in it.
pub const TRANSCRIPTS: &str = "transcripts";

/// The file name extension of an event log.
pub const LOG_ENDING: &str = "jsonl";

impl GoodVibesProject {
    /// The project in this folder.
    pub fn at(folder: &Path) -> GoodVibesProject {
        GoodVibesProject { folder: folder.to_owned() }
    }

    /// The project at this path relative to a folder, simplified.
    pub fn relative_to(folder: &Path, way: &str) -> GoodVibesProject {
        let mut path = folder.to_owned();
        for step in Path::new(way).components() {
            match step {
                Component::CurDir => {}
                Component::ParentDir if matches!(path.components().next_back(), Some(Component::Normal(_))) => {
                    path.pop();
                }
                step => path.push(step),
            }
        }
        let here = path.as_os_str().is_empty();
        GoodVibesProject { folder: if here { PathBuf::from(".") } else { path } }
    }

    /// The absolute path of the folder as text.
    pub fn name_from_root(&self) -> String {
        from_root(&self.folder)
    }

    /// The folder of all event logs, with one folder per session.
    pub fn transcripts(&self) -> PathBuf {
        self.folder.join(GOODVIBES).join(TRANSCRIPTS)
    }

    /// The event log of an agent.
    pub fn log(&self, session: &str, agent: &str) -> PathBuf {
        self.transcripts().join(session).join(format!("{agent}.{LOG_ENDING}"))
    }

    /// The start time of a recording that starts now. If ids are generated from the time, it is later than all others in the
    /// session, even if the clock was set back: logs are read in that order.
    pub fn start(&self, session: Option<&str>, now_ms: i64, files: &dyn Files) -> Result<i64, Error> {
        let folder = session.map_or_else(|| self.transcripts(), |session| self.transcripts().join(session));
        let existing = files.list(&folder).map_err(|error| Error::at(&folder, Problem::Unreadable, error))?;
        let moments = existing.iter().filter_map(|path| moment_of(path.file_name()?.to_str()?.split('.').next()?));
        Ok(moments.max().map_or(now_ms, |latest| now_ms.max(latest + 1)))
    }

    /// The list of active agents.
    pub fn tracking(&self) -> PathBuf {
        self.folder.join(GOODVIBES).join("state").join("agent-tracking.json")
    }

    /// The folder of telemetry, with a file for every month.
    pub fn telemetry(&self) -> PathBuf {
        self.folder.join(GOODVIBES).join("telemetry")
    }

    /// Takes the lock on the files that all agents share.
    pub fn lock(&self, files: &dyn Files) -> Result<Lock, Error> {
        let tracking = self.tracking();
        let state = folder_of(&tracking);
        create_folder_durably(files, state).map_err(|error| Error::at(state, Problem::Unwritable, error))?;
        // If the list may not be written, no lock file is put beside it.
        files.length(&tracking).map_err(|error| Error::at(&tracking, Problem::Unwritable, error))?;
        Lock::wait(&lock::lock_path(&tracking))
    }

    /// The path from a folder to the project: relative if the folder is inside, so that the project may be moved with its
    /// content, and absolute otherwise.
    pub fn seen_from(&self, folder: &Path) -> Result<String, Error> {
        if let Ok(inside) = absolute(folder).strip_prefix(absolute(&self.folder)) {
            let steps = inside.components().filter(|part| matches!(part, Component::Normal(_))).count();
            let way = if steps == 0 { ".".to_owned() } else { vec![".."; steps].join("/") };
            // Through a link, `..` leads elsewhere.
            let (there, here) = (folder.join(&way).canonicalize(), self.folder.canonicalize());
            if matches!((there, here), (Ok(there), Ok(here)) if there == here) {
                return Ok(way);
            }
        }
        let way = absolute(&self.folder);
        way.to_str().map(str::to_owned).ok_or_else(|| Error::about(&way, Problem::BadName))
    }
}

/// An absolute path as text.
pub fn from_root(path: &Path) -> String {
    absolute(path).to_string_lossy().into_owned()
}

fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // A `.` component has no meaning.
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_to_the_project_is_relative_inside_it_and_absolute_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let project = GoodVibesProject::at(folder.path());
        let session = project.transcripts().join("s1");
        std::fs::create_dir_all(&session).unwrap();
        assert_eq!(project.seen_from(&session).unwrap(), "../../..");
        assert_eq!(project.seen_from(folder.path()).unwrap(), ".");
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(project.seen_from(elsewhere.path()).unwrap(), folder.path().to_str().unwrap());
        for from in [session.as_path(), folder.path(), elsewhere.path()] {
            assert_eq!(GoodVibesProject::relative_to(from, &project.seen_from(from).unwrap()), project);
        }
        assert_eq!(GoodVibesProject::relative_to(Path::new("s1"), ".."), GoodVibesProject::at(Path::new(".")));
        assert_eq!(GoodVibesProject::relative_to(Path::new("s1"), "../.."), GoodVibesProject::at(Path::new("..")));
    }

    #[cfg(unix)]
    #[test]
    fn behind_a_link_the_path_is_absolute() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = folder.path().join("logs");
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        assert_eq!(GoodVibesProject::at(folder.path()).seen_from(&link).unwrap(), folder.path().to_str().unwrap());
    }
}
