//! Where GoodVibes keeps its things in a project. Nothing here reads or writes them.

use std::path::{Component, Path, PathBuf};

use super::agent::moment_of;
use crate::error::{Error, Problem};
use crate::files::{Files, folder_of, make_folder};
use crate::lock::{self, Lock};

/// A project: the folder in which `.goodvibes` stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    folder: PathBuf,
}

/// The folder that GoodVibes makes in a project.
pub const GOODVIBES: &str = ".goodvibes";

/// The folder of event logs in it.
pub const TRANSCRIPTS: &str = "transcripts";

/// How the name of an event log ends.
pub const LOG_ENDING: &str = "jsonl";

impl Project {
    /// The project in this folder.
    pub fn at(folder: &Path) -> Project {
        Project { folder: folder.to_owned() }
    }

    /// The project that is this way from a folder, by the shortest path.
    pub fn seen(folder: &Path, way: &str) -> Project {
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
        Project { folder: if here { PathBuf::from(".") } else { path } }
    }

    /// The folder as it is written down: from the root, so that it means the same everywhere.
    pub fn name_from_root(&self) -> String {
        from_root(&self.folder)
    }

    /// The folder of all event logs, one folder a session.
    pub fn transcripts(&self) -> PathBuf {
        self.folder.join(GOODVIBES).join(TRANSCRIPTS)
    }

    /// The event log of an agent.
    pub fn log(&self, session: &str, agent: &str) -> PathBuf {
        self.transcripts().join(session).join(format!("{agent}.{LOG_ENDING}"))
    }

    /// When a recording starts that starts now. Where ids are made up of the moment it comes after all others beside it, even if the
    /// clock was set back: they are read in that order.
    pub fn start(&self, session: Option<&str>, now_ms: i64, files: &dyn Files) -> Result<i64, Error> {
        let folder = session.map_or_else(|| self.transcripts(), |session| self.transcripts().join(session));
        let beside = files.list(&folder).map_err(|error| Error::at(&folder, Problem::Unreadable, error))?;
        let moments = beside.iter().filter_map(|path| moment_of(path.file_name()?.to_str()?.split('.').next()?));
        Ok(moments.max().map_or(now_ms, |latest| now_ms.max(latest + 1)))
    }

    /// The list of the agents at work.
    pub fn tracking(&self) -> PathBuf {
        self.folder.join(GOODVIBES).join("state").join("agent-tracking.json")
    }

    /// The folder of telemetry, a file for every month.
    pub fn telemetry(&self) -> PathBuf {
        self.folder.join(GOODVIBES).join("telemetry")
    }

    /// Waits until nobody else of us changes what all agents share.
    pub fn lock(&self, files: &dyn Files) -> Result<Lock, Error> {
        let tracking = self.tracking();
        let state = folder_of(&tracking);
        make_folder(files, state).map_err(|error| Error::at(state, Problem::Unwritable, error))?;
        // Where the list may not be written, no lock is put beside it.
        files.length(&tracking).map_err(|error| Error::at(&tracking, Problem::Unwritable, error))?;
        Lock::wait(&lock::beside(&tracking))
    }

    /// The way from a folder to the project: upwards where it is inside, so that the project may be moved with all that is in
    /// it, and from the root where it is not.
    pub fn seen_from(&self, folder: &Path) -> Result<String, Error> {
        if let Ok(inside) = absolute(folder).strip_prefix(absolute(&self.folder)) {
            let steps = inside.components().filter(|part| matches!(part, Component::Normal(_))).count();
            let way = if steps == 0 { ".".to_owned() } else { vec![".."; steps].join("/") };
            // Behind a link, upwards leads elsewhere.
            let (there, here) = (folder.join(&way).canonicalize(), self.folder.canonicalize());
            if matches!((there, here), (Ok(there), Ok(here)) if there == here) {
                return Ok(way);
            }
        }
        let way = absolute(&self.folder);
        way.to_str().map(str::to_owned).ok_or_else(|| Error::about(&way, Problem::BadName))
    }
}

/// A path from the root, as text.
pub fn from_root(path: &Path) -> String {
    absolute(path).to_string_lossy().into_owned()
}

fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // A step on the spot says nothing.
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_project_goes_upwards_from_inside_and_from_the_root_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        let session = project.transcripts().join("s1");
        std::fs::create_dir_all(&session).unwrap();
        assert_eq!(project.seen_from(&session).unwrap(), "../../..");
        assert_eq!(project.seen_from(folder.path()).unwrap(), ".");
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(project.seen_from(elsewhere.path()).unwrap(), folder.path().to_str().unwrap());
        for from in [session.as_path(), folder.path(), elsewhere.path()] {
            assert_eq!(Project::seen(from, &project.seen_from(from).unwrap()), project);
        }
        assert_eq!(Project::seen(Path::new("s1"), ".."), Project::at(Path::new(".")));
        assert_eq!(Project::seen(Path::new("s1"), "../.."), Project::at(Path::new("..")));
    }

    #[cfg(unix)]
    #[test]
    fn behind_a_link_the_way_is_from_the_root() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = folder.path().join("logs");
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        assert_eq!(Project::at(folder.path()).seen_from(&link).unwrap(), folder.path().to_str().unwrap());
    }
}
