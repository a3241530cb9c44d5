//! The walk: folders are listed once, files are looked at once, links are followed and never round in circles. It opens no file.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use stenograph::formats::FORMATS;

use super::pattern::{Names, Pattern};
use super::state::State;
use super::trie::{At, Leaf, Map, absolute};
use super::{FileId, Found, Machine, Named, Places, Stat};
use crate::recover;
use crate::tail::Warning;

/// How deep a folder is walked that is walked whole. Nobody keeps a transcript deeper, and a mount may lead in circles.
const DEPTH_MAX: usize = 48;

/// How many warnings there are at most: one disk that fails must not fill the memory.
const REMARKS_MAX: usize = 100;

/// Folders that hold what others made and can make again: versions, packages, what was built, caches.
const DERIVED: [&str; 20] = [
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "node_modules",
    "target",
    "__pycache__",
    ".venv",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".cache",
    "Caches",
    ".npm",
    ".pnpm-store",
    ".cargo",
    ".rustup",
    ".gradle",
    ".Trash",
];

/// A folder with a file of this name is a cache, by its own word.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// What the system makes up as one looks: there is no end to it.
#[cfg(unix)]
const MADE_UP: [&str; 3] = ["/proc", "/sys", "/dev"];
#[cfg(not(unix))]
const MADE_UP: [&str; 0] = [];

/// The endings of compressed files, which stand after the one that says what is in them.
const CONTAINERS: [&str; 2] = [".gz", ".zst"];

/// Walks all places.
pub(super) fn walk(places: &Places, ignored: &mut dyn FnMut(&Path), each: &mut dyn FnMut(Found)) -> Vec<Warning> {
    let map = Map::of(places);
    let mut walk = Walk {
        map: &map,
        home: places.machine.home.as_deref().map(absolute),
        endings: endings(),
        passed_over: places.passed_over.iter().filter_map(|path| folder_id(path)).collect(),
        files: HashSet::new(),
        folders: HashSet::new(),
        warnings: Vec::new(),
        unsaid: 0,
        ignored,
        each,
    };
    for (folder, at) in &map.bases {
        walk.homes(folder, *at);
    }
    for folder in &places.projects {
        walk.homes(&absolute(folder), map.project);
    }
    for folder in &places.folders {
        walk.whole(&absolute(folder));
    }
    walk.end()
}

/// What the place of one file says of it, wherever the homes of agents are: any folder may stand in for a home folder or a project.
pub(super) fn place_of(path: &Path) -> Named {
    static ANYWHERE: OnceLock<Map> = OnceLock::new();
    let map = ANYWHERE.get_or_init(|| Map::of(&Places::of(Machine::rooted(PathBuf::new()))));
    let path = absolute(path);
    let (mut states, mut folder) = (Vec::new(), PathBuf::new());
    let Some(name) = path.file_name() else { return Named::default() };
    for step in path.parent().into_iter().flat_map(Path::components) {
        let within: Arc<Path> = Arc::from(folder.as_path());
        if let Component::Normal(step) = step {
            states = next(map, &within, &step.to_string_lossy(), &states);
        }
        folder.push(step);
        states.push(State::new(map.anywhere, &Arc::from(folder.as_path())));
    }
    fitting(map, &Arc::from(folder.as_path()), bare(&name.to_string_lossy()), &states).unwrap_or_default()
}

/// The name of a file without the ending that says how it is compressed.
fn bare(name: &str) -> &str {
    CONTAINERS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// What the best home says that a file of this name in this folder fits.
fn fitting(map: &Map, folder: &Arc<Path>, name: &str, states: &[State]) -> Option<Named> {
    let mut best: Option<(Leaf, &State, &Pattern, Names<'_>)> = None;
    for state in states {
        for (pattern, to) in map.trie.steps(state.at) {
            let Some(leaf) = map.trie.leaf(*to) else { continue };
            let better = best.as_ref().is_none_or(|(known, ..)| leaf.rank() < known.rank());
            if better && let Some(names) = pattern.fits(name) {
                best = Some((leaf, state, pattern, names));
            }
        }
    }
    let (leaf, state, pattern, names) = best?;
    Some(state.named(leaf, pattern.literal().is_none().then_some(folder), names))
}

/// Where a name leads from here.
fn next(map: &Map, folder: &Arc<Path>, name: &str, states: &[State]) -> Vec<State> {
    let mut next = Vec::new();
    for state in states {
        for (pattern, to) in map.trie.steps(state.at) {
            if let Some(names) = pattern.fits(name) {
                let within = pattern.literal().is_none().then_some(folder);
                next.push(state.step(*to, within, names));
            }
        }
    }
    next
}

/// The endings that a source may have.
fn endings() -> Vec<String> {
    let last = |ending: &str| ending.rsplit('.').next().unwrap_or_default().to_owned();
    let mut endings: Vec<String> = FORMATS.iter().map(|format| last(format.info().extension)).collect();
    endings.push(recover::ENDING.to_owned());
    endings.sort();
    endings.dedup();
    endings
}

struct Walk<'w> {
    map: &'w Map,
    home: Option<PathBuf>,
    endings: Vec<String>,
    passed_over: Vec<FileId>,
    files: HashSet<FileId>,
    folders: HashSet<FileId>,
    warnings: Vec<Warning>,
    unsaid: usize,
    ignored: &'w mut dyn FnMut(&Path),
    each: &'w mut dyn FnMut(Found),
}

/// How much of a folder is of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// What fits a home.
    Homes,
    /// Everything, so many folders deep.
    Whole(usize),
}

/// A folder that is looked into.
struct Folder {
    path: Arc<Path>,
    /// Which one it is, where somebody asked.
    id: Option<FileId>,
}

/// An entry of a folder.
struct Entry {
    name: String,
    kind: Kind,
    listed: fs::DirEntry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
    Link,
}

impl Walk<'_> {
    /// Walks what fits the homes at a place.
    fn homes(&mut self, folder: &Path, at: At) {
        let start: Arc<Path> = Arc::from(folder);
        self.folder(folder, &[State::new(at, &start)], Reach::Homes);
    }

    /// Walks a folder whole.
    fn whole(&mut self, folder: &Path) {
        match fs::metadata(folder) {
            Ok(metadata) if metadata.is_file() => self.file(folder, &metadata, Named::default()),
            Ok(_) => self.folder(folder, &[], Reach::Whole(0)),
            // A place that somebody named is expected to be there.
            Err(error) => self.warning(folder, &unreadable(&error)),
        }
    }

    fn folder(&mut self, path: &Path, states: &[State], reach: Reach) {
        let (id, mut reach) = self.within_bounds(path, reach);
        if reach == Reach::Homes && states.iter().all(|state| self.map.trie.is_known(state.at)) {
            self.step_on(path, states);
            return;
        }
        let entries = match list(path) {
            Ok(entries) => entries,
            Err(error) => {
                self.vanished(path, &error);
                return;
            }
        };
        if entries.iter().any(|entry| entry.name == CACHE_TAG) {
            reach = Reach::Homes;
        }
        let folder = Folder { path: Arc::from(path), id };
        let mut states = states.to_vec();
        if matches!(reach, Reach::Whole(_)) {
            states.push(State::new(self.map.anywhere, &folder.path));
        }
        // Homes come first: what is found there by another name, too, is found by the one that says more.
        let is_home = |entry: &&Entry| {
            reach != Reach::Homes
                && entry.kind != Kind::File
                && states.iter().any(|state| self.map.trie.leads_on(state.at, &entry.name))
        };
        let (homes, others): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(is_home);
        for entry in homes.into_iter().chain(others) {
            self.entry(&folder, entry, &states, reach);
        }
    }

    /// A folder is walked whole once, and not too deep.
    fn within_bounds(&mut self, path: &Path, reach: Reach) -> (Option<FileId>, Reach) {
        let Reach::Whole(depth) = reach else { return (None, reach) };
        if depth > DEPTH_MAX {
            self.warning(path, "lies too deep, and is not looked into");
            return (None, Reach::Homes);
        }
        let Some(id) = folder_id(path) else { return (None, reach) };
        let skipped = self.passed_over.contains(&id) || MADE_UP.iter().any(|made_up| path == Path::new(made_up));
        let reach = if skipped || !self.folders.insert(id) { Reach::Homes } else { reach };
        (Some(id), reach)
    }

    /// Goes on without looking where all names are known.
    fn step_on(&mut self, folder: &Path, states: &[State]) {
        let mut names: Vec<&str> = Vec::new();
        for state in states {
            names.extend(self.map.trie.steps(state.at).iter().filter_map(|(pattern, _)| pattern.literal()));
        }
        names.sort_unstable();
        names.dedup();
        let within: Arc<Path> = Arc::from(folder);
        for name in names {
            let next = next(self.map, &within, name, states);
            self.folder(&folder.join(name), &next, Reach::Homes);
        }
    }

    fn entry(&mut self, folder: &Folder, entry: &Entry, states: &[State], reach: Reach) {
        match entry.kind {
            Kind::Folder => self.subfolder(folder, entry, states, reach),
            Kind::File => {
                if folder.id.is_some_and(|id| self.is_known(id, &entry.listed)) {
                    return;
                }
                let Some(named) = self.named(folder, &entry.name, states, reach) else {
                    if reach != Reach::Homes {
                        (self.ignored)(&entry.listed.path());
                    }
                    return;
                };
                match entry.listed.metadata() {
                    Ok(metadata) => self.file(&entry.listed.path(), &metadata, named),
                    Err(error) => self.vanished(&entry.listed.path(), &error),
                }
            }
            Kind::Link => {
                let path = entry.listed.path();
                // A link that leads nowhere is nothing.
                let Ok(metadata) = fs::metadata(&path) else { return };
                if metadata.is_dir() {
                    let reach = if is_above(&path) { Reach::Homes } else { reach };
                    self.subfolder(folder, entry, states, reach);
                } else if metadata.is_file()
                    && let Some(named) = self.named(folder, &entry.name, states, reach)
                {
                    self.file(&path, &metadata, named);
                }
            }
        }
    }

    /// Whether a file was found before: the list of a folder names the inode, too, so that nobody has to ask again.
    fn is_known(&self, folder: FileId, listed: &fs::DirEntry) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirEntryExt;
            self.files.contains(&FileId { device: folder.device, inode: listed.ino() })
        }
        #[cfg(not(unix))]
        {
            let _ = (folder, listed);
            false
        }
    }

    fn subfolder(&mut self, folder: &Folder, entry: &Entry, states: &[State], reach: Reach) {
        let mut next = next(self.map, &folder.path, &entry.name, states);
        next.retain(|state| !self.map.trie.steps(state.at).is_empty());
        let reach = match reach {
            Reach::Whole(depth) if !DERIVED.contains(&entry.name.as_str()) => Reach::Whole(depth + 1),
            Reach::Whole(_) | Reach::Homes => Reach::Homes,
        };
        if reach != Reach::Homes || !next.is_empty() {
            self.folder(&entry.listed.path(), &next, reach);
        }
    }

    /// What a file is by its place, or `None` when it is of no interest.
    fn named(&self, folder: &Folder, name: &str, states: &[State], reach: Reach) -> Option<Named> {
        let bare = bare(name);
        if let Some(mut named) = fitting(self.map, &folder.path, bare, states) {
            // The home folder is nobody's project.
            named.folder = named.folder.filter(|folder| Some(folder.as_ref()) != self.home.as_deref());
            return Some(named);
        }
        let ending = bare.rsplit_once('.')?.1;
        let known = self.endings.iter().any(|known| known.eq_ignore_ascii_case(ending));
        (known && reach != Reach::Homes).then(Named::default)
    }

    fn file(&mut self, path: &Path, metadata: &fs::Metadata, named: Named) {
        let stat = Stat::of_metadata(path, metadata);
        if self.files.insert(stat.id) {
            (self.each)(Found { path: path.to_owned(), stat, named });
        }
    }

    /// What cannot be looked at is remarked, unless it is not there: nobody has every agent, and files come and go.
    fn vanished(&mut self, path: &Path, error: &io::Error) {
        if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            self.warning(path, &unreadable(error));
        }
    }

    fn warning(&mut self, path: &Path, text: &str) {
        if self.warnings.len() < REMARKS_MAX {
            self.warnings.push(Warning::new(path, text));
        } else {
            self.unsaid += 1;
        }
    }

    fn end(mut self) -> Vec<Warning> {
        if let (Some(last), 1..) = (self.warnings.last().map(|warning| warning.path.clone()), self.unsaid) {
            self.warnings.push(Warning::new(&last, format!("and {} more could not be looked into", self.unsaid)));
        }
        self.warnings
    }
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "may not be looked into: permission denied".to_owned(),
        io::ErrorKind::NotFound => "is not there".to_owned(),
        _ => format!("cannot be looked into: {error}"),
    }
}

/// What is in a folder, by name. The system says without being asked again what is a folder, a file or a link; all else is of
/// no interest.
fn list(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for listed in fs::read_dir(folder)? {
        // What fails in the middle of a list ends it; what was listed counts.
        let Ok(listed) = listed else { break };
        let Ok(kind) = listed.file_type() else { continue };
        let kind = match (kind.is_dir(), kind.is_file(), kind.is_symlink()) {
            (true, _, _) => Kind::Folder,
            (_, true, _) => Kind::File,
            (_, _, true) => Kind::Link,
            _ => continue,
        };
        let name = listed.file_name();
        let name = name.into_string().unwrap_or_else(|name| name.to_string_lossy().into_owned());
        entries.push(Entry { name, kind, listed });
    }
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn folder_id(folder: &Path) -> Option<FileId> {
    #[cfg(unix)]
    return fs::metadata(folder).ok().map(|metadata| FileId::of(folder, &metadata));
    #[cfg(not(unix))]
    {
        // Without inodes only the real path tells one folder from another.
        let real = fs::canonicalize(folder).ok()?;
        fs::metadata(&real).ok().map(|metadata| FileId::of(&real, &metadata))
    }
}

/// Whether a link leads to a folder that it stands in: all of that is walked already, or was not asked for.
fn is_above(link: &Path) -> bool {
    let (real, here) = (fs::canonicalize(link), link.parent().map(fs::canonicalize));
    matches!((real, here), (Ok(real), Some(Ok(here))) if here.starts_with(&real))
}
