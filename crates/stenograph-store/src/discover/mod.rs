//! Finds sources: walks the places where agents keep them and takes each file's size and time. It opens no file and knows
//! formats only by their `homes`, whose syntax is described at [`stenograph::format::FormatInfo::homes`].

mod machine;
mod pattern;
mod state;
mod trie;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use stenograph::Registry;
use stenograph::format::Format;

use crate::databases;
use crate::tail::Warning;
pub use machine::{Machine, Platform, Variables};
pub(crate) use pattern::Pattern;

/// Where to look for sources.
#[derive(Clone, Debug)]
pub struct Places {
    /// The home folder and environment for the formats' homes.
    pub machine: Machine,
    /// Project folders: homes that begin neither with `~` nor with a variable are relative to them.
    pub projects: Vec<PathBuf>,
    /// Folders that are walked whole. Any folder in them may serve as a home folder or a project.
    pub folders: Vec<PathBuf>,
    /// Folders with copies of other files, which are not walked: the store's own.
    pub excluded: Vec<PathBuf>,
    /// The formats whose sources are wanted.
    pub registry: &'static Registry,
}

impl Places {
    /// The homes of agents on this machine, for the built-in formats.
    pub fn of(machine: Machine) -> Places {
        let (projects, folders, excluded) = (Vec::new(), Vec::new(), Vec::new());
        Places { machine, projects, folders, excluded, registry: Registry::built_in() }
    }

    /// The same places, for the formats of a registry.
    #[must_use]
    pub fn with_registry(self, registry: &'static Registry) -> Places {
        Places { registry, ..self }
    }

    /// A folder that serves as the home folder and is walked whole.
    pub fn below(root: PathBuf) -> Places {
        Places { folders: vec![root.clone()], ..Places::of(Machine::rooted(root)) }
    }
}

/// A file that may be a source.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// Its absolute path.
    pub path: PathBuf,
    /// Its stat.
    pub stat: Stat,
    /// What its path suggests.
    pub hints: PathHints,
}

impl FoundFile {
    /// The file at a path, wherever it is; `None` if none is there.
    pub fn at(path: &Path, registry: &'static Registry) -> Option<FoundFile> {
        let hints = registry_path_hints(registry, path);
        Some(FoundFile { path: path.to_owned(), stat: Stat::of(path).ok()?, hints })
    }
}

/// What the path of a file suggests. The content has precedence.
#[derive(Clone, Debug, Default)]
pub struct PathHints {
    /// The formats that it may have.
    pub registry: &'static Registry,
    /// Its format, if the place belongs to one. Otherwise the content must decide.
    pub format: Option<&'static dyn Format>,
    /// The format with this layout of files, if the path alone does not prove it: the names below count if the content turns
    /// out to have this format.
    pub like: Option<&'static dyn Format>,
    /// The session's name.
    pub session: Option<String>,
    /// The sub-agent's name.
    pub thread: Option<String>,
    /// The agent's name for the project, which need not be its path.
    pub project: Option<String>,
    /// The folder within which the session's name is unique.
    pub within: Option<Arc<Path>>,
    /// The project's folder, if the file was found below it.
    pub folder: Option<Arc<Path>>,
}

/// The metadata of a file, taken without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its identity.
    pub id: FileId,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub modified_ns: i64,
}

/// The identity of a file under any name: device and inode if the system has them, otherwise a hash of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The device, or 0.
    pub device: u64,
    /// The inode, or a hash of the path.
    pub inode: u64,
}

impl FileId {
    /// The identity of the file at this path.
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
    /// The stat of the file at this path, through links, or of a conversation in a database.
    pub fn of(path: &Path) -> io::Result<Stat> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Stat::of_metadata(path, &metadata)),
            Err(error) => databases::stat(path)?.ok_or(error),
        }
    }

    pub(crate) fn of_metadata(path: &Path, metadata: &fs::Metadata) -> Stat {
        let modified_ns = metadata.modified().ok().map_or(0, |time| match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |before| -before),
        });
        Stat { id: FileId::of(path, metadata), size: metadata.len(), modified_ns }
    }
}

/// Passes every file that may be a source to `each`, once, even if it has several names. Returns warnings about what could not
/// be accessed.
///
/// Homes come first, so that a file is found by its most specific place; the same places always give the same order.
pub fn discover(places: &Places, each: &mut dyn FnMut(FoundFile)) -> Vec<Warning> {
    walk::walk(places, &mut |_| {}, each)
}

/// Like [`discover()`], and also passes files whose names no source has, in folders that are walked whole, to `ignored`.
pub(crate) fn discover_all(
    places: &Places,
    ignored: &mut dyn FnMut(&Path),
    each: &mut dyn FnMut(FoundFile),
) -> Vec<Warning> {
    walk::walk(places, ignored, each)
}

/// What the path of one file suggests about the built-in formats, without accessing the file or its surroundings.
pub fn path_hints(path: &Path) -> PathHints {
    registry_path_hints(Registry::built_in(), path)
}

/// Like [`path_hints`], for the formats of a registry.
pub fn registry_path_hints(registry: &'static Registry, path: &Path) -> PathHints {
    match databases::split(path) {
        Some((container, session)) => {
            let place = walk::path_hints(registry, &databases::place_of(container, session));
            conversation_hints(&place, container, session)
        }
        None => walk::path_hints(registry, path),
    }
}

/// What the path of a conversation suggests, if the place of its container suggests this.
pub(crate) fn conversation_hints(place: &PathHints, container: &Path, name: &str) -> PathHints {
    // The name of a conversation is the id of its session.
    let hints = PathHints { session: Some(name.to_owned()), ..place.clone() };
    match databases::archive_format(place.registry, container) {
        // It may be anywhere, and its names are not unique.
        Some(format) => PathHints { like: Some(format), within: Some(Arc::from(container)), ..hints },
        None => hints,
    }
}

#[cfg(test)]
mod tests;
