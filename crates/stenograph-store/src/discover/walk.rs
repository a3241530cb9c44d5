//! The walk: folders are listed once, files are looked at once, links are followed and never round in circles. It opens no file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use stenograph::formats::FORMATS;

use super::pattern::Slot;
use super::trie::{At, Leaf, Map, Standing, absolute};
use super::{FileId, Found, Named, Places, Stat};
use crate::recover;
use crate::tail::Remark;

/// How deep a folder is walked that is walked whole. Nobody keeps a transcript deeper, and a mount may lead in circles.
const DEPTH_MAX: usize = 48;

/// How many remarks there are at most: one disk that fails must not fill the memory.
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
pub(super) fn walk(places: &Places, each: &mut dyn FnMut(Found)) -> Vec<Remark> {
    let map = Map::of(places);
    let mut walk = Walk {
        map: &map,
        endings: endings(),
        passed_over: places.passed_over.iter().filter_map(|path| folder_id(path)).collect(),
        files: HashSet::new(),
        folders: HashSet::new(),
        remarks: Vec::new(),
        unsaid: 0,
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
    endings: Vec<String>,
    passed_over: Vec<FileId>,
    files: HashSet<FileId>,
    folders: HashSet<FileId>,
    remarks: Vec<Remark>,
    unsaid: usize,
    each: &'w mut dyn FnMut(Found),
}

/// Where one stands in a home, and what the way there was called.
#[derive(Clone)]
struct State {
    at: At,
    /// The folder in which the way began.
    start: Arc<Path>,
    /// The folder in which the first name of the way stands.
    within: Option<Arc<Path>>,
    session: Option<Arc<str>>,
    thread: Option<Arc<str>>,
    project: Option<Arc<str>>,
}

impl State {
    fn new(at: At, start: &Arc<Path>) -> State {
        State { at, start: Arc::clone(start), within: None, session: None, thread: None, project: None }
    }

    fn named(&self, leaf: Leaf) -> Named {
        let text = |name: &Option<Arc<str>>| name.as_deref().map(str::to_owned);
        Named {
            format: (leaf.standing != Standing::Like).then_some(leaf.format),
            like: Some(leaf.format),
            session: text(&self.session),
            thread: text(&self.thread),
            project: text(&self.project),
            within: self.within.clone(),
            folder: (leaf.standing == Standing::Project).then(|| Arc::clone(&self.start)),
        }
    }
}

/// How much of a folder is of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// What fits a home.
    Homes,
    /// Everything, so many folders deep.
    Whole(usize),
}

/// An entry of a folder.
struct Entry {
    path: PathBuf,
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
            Err(error) => self.remark(folder, &unreadable(&error)),
        }
    }

    fn folder(&mut self, folder: &Path, states: &[State], reach: Reach) {
        let mut reach = self.within_bounds(folder, reach);
        if reach == Reach::Homes && states.iter().all(|state| self.map.trie.is_known(state.at)) {
            self.step_on(folder, states);
            return;
        }
        let entries = match list(folder) {
            Ok(entries) => entries,
            Err(error) => {
                if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
                    self.remark(folder, &unreadable(&error));
                }
                return;
            }
        };
        if entries.iter().any(|entry| entry.name == CACHE_TAG) {
            reach = Reach::Homes;
        }
        let start: Arc<Path> = Arc::from(folder);
        let mut states = states.to_vec();
        if matches!(reach, Reach::Whole(_)) {
            states.push(State::new(self.map.anywhere, &start));
        }
        for entry in entries {
            self.entry(&start, entry, &states, reach);
        }
    }

    /// A folder is walked whole once, and not too deep.
    fn within_bounds(&mut self, folder: &Path, reach: Reach) -> Reach {
        let Reach::Whole(depth) = reach else { return reach };
        if depth > DEPTH_MAX {
            self.remark(folder, "lies too deep, and is not looked into");
            return Reach::Homes;
        }
        let Some(id) = folder_id(folder) else { return reach };
        let skipped = self.passed_over.contains(&id) || MADE_UP.iter().any(|made_up| folder == Path::new(made_up));
        if skipped || !self.folders.insert(id) { Reach::Homes } else { reach }
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
            let next = self.next(&within, name, states);
            self.folder(&folder.join(name), &next, Reach::Homes);
        }
    }

    /// Where a name leads from here.
    fn next(&self, within: &Arc<Path>, name: &str, states: &[State]) -> Vec<State> {
        let mut next = Vec::new();
        for state in states {
            for (pattern, to) in self.map.trie.steps(state.at) {
                let Some(names) = pattern.fits(name) else { continue };
                let mut state = State { at: *to, ..state.clone() };
                if state.within.is_none() && pattern.literal().is_none() {
                    state.within = Some(Arc::clone(within));
                }
                for (slot, name) in names {
                    let name = Some(Arc::from(name));
                    match slot {
                        Slot::Session => state.session = name,
                        Slot::Thread => state.thread = name,
                        Slot::Project => state.project = name,
                    }
                }
                next.push(state);
            }
        }
        next
    }

    fn entry(&mut self, folder: &Arc<Path>, entry: Entry, states: &[State], reach: Reach) {
        match entry.kind {
            Kind::Folder => self.subfolder(folder, &entry, states, reach),
            Kind::File => {
                let Some(named) = self.named(folder, &entry.name, states, reach) else { return };
                match entry.listed.metadata() {
                    Ok(metadata) => self.file(&entry.path, &metadata, named),
                    Err(error) => self.vanished(&entry.path, &error),
                }
            }
            Kind::Link => {
                // A link that leads nowhere is nothing, and most links are of no interest.
                let Ok(metadata) = fs::metadata(&entry.path) else { return };
                if metadata.is_dir() {
                    let reach = if is_above(&entry.path) { Reach::Homes } else { reach };
                    self.subfolder(folder, &entry, states, reach);
                } else if metadata.is_file()
                    && let Some(named) = self.named(folder, &entry.name, states, reach)
                {
                    self.file(&entry.path, &metadata, named);
                }
            }
        }
    }

    fn subfolder(&mut self, folder: &Arc<Path>, entry: &Entry, states: &[State], reach: Reach) {
        let mut next = self.next(folder, &entry.name, states);
        next.retain(|state| !self.map.trie.steps(state.at).is_empty());
        let reach = match reach {
            Reach::Whole(depth) if !DERIVED.contains(&entry.name.as_str()) => Reach::Whole(depth + 1),
            Reach::Whole(_) | Reach::Homes => Reach::Homes,
        };
        if reach != Reach::Homes || !next.is_empty() {
            self.folder(&entry.path, &next, reach);
        }
    }

    /// What a file is by its place, or `None` when it is of no interest.
    fn named(&self, folder: &Arc<Path>, name: &str, states: &[State], reach: Reach) -> Option<Named> {
        let bare = CONTAINERS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
        let next = self.next(folder, bare, states);
        let leaves = next.iter().filter_map(|state| Some((state, self.map.trie.leaf(state.at)?)));
        if let Some((state, leaf)) = leaves.min_by_key(|(_, leaf)| leaf.rank()) {
            return Some(state.named(leaf));
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

    fn vanished(&mut self, path: &Path, error: &io::Error) {
        if error.kind() != io::ErrorKind::NotFound {
            self.remark(path, &unreadable(error));
        }
    }

    fn remark(&mut self, path: &Path, text: &str) {
        if self.remarks.len() < REMARKS_MAX {
            self.remarks.push(Remark::new(path, text));
        } else {
            self.unsaid += 1;
        }
    }

    fn end(mut self) -> Vec<Remark> {
        if let (Some(last), 1..) = (self.remarks.last().map(|remark| remark.path.clone()), self.unsaid) {
            self.remarks.push(Remark::new(&last, format!("and {} more could not be looked into", self.unsaid)));
        }
        self.remarks
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
        let (path, name) = (listed.path(), listed.file_name().to_string_lossy().into_owned());
        entries.push(Entry { path, name, kind, listed });
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
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
