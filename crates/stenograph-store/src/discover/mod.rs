//! Which sources there are: a walk over the places where agents keep them, and a look at each file's size and time. It opens no
//! file and knows no format but by its `homes`, whose language is described at [`stenograph::format::FormatInfo::homes`].

mod machine;
mod pattern;
mod state;
mod trie;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use stenograph::format::Format;

use crate::tail::Warning;
pub use machine::{Machine, Platform, Variables};
pub(crate) use pattern::Pattern;

/// Where to look.
#[derive(Clone, Debug)]
pub struct Places {
    /// Whose home folder and environment the homes of formats mean.
    pub machine: Machine,
    /// Folders of projects: homes that begin neither with `~` nor with a variable are found in them.
    pub projects: Vec<PathBuf>,
    /// Folders that are walked whole. In them any folder may stand in for a home folder or a project.
    pub folders: Vec<PathBuf>,
    /// Folders that hold copies of what stands elsewhere, and are not walked: the store's own.
    pub passed_over: Vec<PathBuf>,
}

impl Places {
    /// The homes of agents on this machine.
    pub fn of(machine: Machine) -> Places {
        Places { machine, projects: Vec::new(), folders: Vec::new(), passed_over: Vec::new() }
    }

    /// A folder that stands in for the home folder and is walked whole.
    pub fn below(root: PathBuf) -> Places {
        Places { folders: vec![root.clone()], ..Places::of(Machine::rooted(root)) }
    }
}

/// A file that may be a source.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it is, from the root of the file system.
    pub path: PathBuf,
    /// What the system says of it.
    pub stat: Stat,
    /// What its place says of it.
    pub named: Named,
}

/// What the place of a file says of it. What the file itself says counts more.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Its format, where the place belongs to one. A file without is to be looked into.
    pub format: Option<&'static dyn Format>,
    /// The format whose sources are laid out like this, where the place alone does not prove it: the names below are worth
    /// something when the file turns out to be of this format.
    pub like: Option<&'static dyn Format>,
    /// The session's name.
    pub session: Option<String>,
    /// The sub-agent's name.
    pub thread: Option<String>,
    /// What the agent calls the project, which need not be the way to it.
    pub project: Option<String>,
    /// The folder in which the session's name means one session: another home may have another of the same name.
    pub within: Option<Arc<Path>>,
    /// The folder of the project, where the file was found below it.
    pub folder: Option<Arc<Path>>,
}

/// What the system says of a file without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What makes it the file it is.
    pub id: FileId,
    /// How many bytes it has.
    pub size: u64,
    /// When it was written last, in nanoseconds since 1970.
    pub modified_ns: i64,
}

/// What makes a file the one it is, under whatever name: device and inode where the system has them, else a hash of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The device, or 0.
    pub device: u64,
    /// The inode, or a hash of the path.
    pub inode: u64,
}

impl FileId {
    /// What makes the file at this path the one it is.
    pub fn of(path: &Path, metadata: &fs::Metadata) -> FileId {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let _ = path;
            FileId { device: metadata.dev(), inode: metadata.ino() }
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            FileId { device: 0, inode: xxhash_rust::xxh3::xxh3_64(path.as_os_str().as_encoded_bytes()) }
        }
    }
}

impl Stat {
    /// What the system says of the file of that name, through links.
    pub fn of(path: &Path) -> io::Result<Stat> {
        Ok(Stat::of_metadata(path, &fs::metadata(path)?))
    }

    fn of_metadata(path: &Path, metadata: &fs::Metadata) -> Stat {
        let modified_ns = metadata.modified().ok().map_or(0, |time| match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |before| -before),
        });
        Stat { id: FileId::of(path, metadata), size: metadata.len(), modified_ns }
    }
}

/// Gives every file that may be a source, once, under whatever names it has. What could not be looked into is remarked.
///
/// Homes come first, so that a file is found by the place that says most of it; the same places always give the same order.
pub fn discover(places: &Places, each: &mut dyn FnMut(Found)) -> Vec<Warning> {
    walk::walk(places, &mut |_| {}, each)
}

/// The same, and gives every file that no source is called like, in folders that are walked whole.
pub(crate) fn discover_all(
    places: &Places,
    ignored: &mut dyn FnMut(&Path),
    each: &mut dyn FnMut(Found),
) -> Vec<Warning> {
    walk::walk(places, ignored, each)
}

/// What the place of one file says of it, without a look at the file or at what lies around it.
pub fn place_of(path: &Path) -> Named {
    walk::place_of(path)
}

#[cfg(test)]
mod tests;
