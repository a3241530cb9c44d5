//! The walk: lists each folder once, takes each file's stat once, follows links and never loops. It opens no file.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use stenograph::Registry;

use super::pattern::{Names, Pattern};
use super::state::WalkState;
use super::trie::{HomeTrie, Leaf, TriePosition, absolute};
use super::{FileId, FoundFile, Machine, PathHints, Places, Stat};
use crate::databases;
use crate::recover;
use crate::tail::Warning;

/// The depth limit for folders that are walked whole. No transcript lies deeper, and a mount may loop.
const DEPTH_MAX: usize = 48;

/// The maximum number of warnings: a failing disk must not exhaust memory.
const WARNINGS_MAX: usize = 100;

/// Folders with derived content: version control, packages, build output, caches.
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

/// Files in which agents keep secrets and settings. They are no transcripts, and are never opened.
const SECRETS: [&str; 26] = [
    ".claude.json",
    ".credentials.json",
    "account.json",
    "accounts.json",
    "api_keys.json",
    "auth.db",
    "auth.json",
    "config.json",
    "config.local.json",
    "credential.json",
    "credentials.json",
    "google_accounts.json",
    "keys.json",
    "mcp-auth.json",
    "mcp-oauth-tokens.json",
    "mcp.json",
    "mcp_settings.json",
    "models.json",
    "oauth_creds.json",
    "secrets.json",
    "settings.json",
    "settings.local.json",
    "token.json",
    "tokens.json",
    "trustedfolders.json",
    "user_settings.json",
];

/// A folder with a file of this name declares itself a cache.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// Virtual file systems, which have no end.
#[cfg(unix)]
const VIRTUAL: [&str; 3] = ["/proc", "/sys", "/dev"];
#[cfg(not(unix))]
const VIRTUAL: [&str; 0] = [];

/// The extensions of compressed files, which follow the extension of the content.
const CONTAINERS: [&str; 2] = [".gz", ".zst"];

/// Walks all places.
pub(super) fn walk(places: &Places, ignored: &mut dyn FnMut(&Path), each: &mut dyn FnMut(FoundFile)) -> Vec<Warning> {
    let map = HomeTrie::of(places);
    let mut walk = Walker {
        map: &map,
        home: places.machine.home.as_deref().map(absolute),
        endings: endings(places.registry),
        excluded: places.excluded.iter().filter_map(|path| folder_id(path)).collect(),
        files: HashSet::new(),
        folders: HashSet::new(),
        warnings: Vec::new(),
        suppressed: 0,
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

/// What the path of one file suggests, wherever agents keep their homes: any folder may serve as a home folder or a project.
pub(super) fn path_hints(registry: &'static Registry, path: &Path) -> PathHints {
    static BUILT_IN: OnceLock<HomeTrie> = OnceLock::new();
    let make = || HomeTrie::of(&Places::of(Machine::rooted(PathBuf::new())).with_registry(registry));
    match std::ptr::eq(registry, Registry::built_in()) {
        true => hints_by(BUILT_IN.get_or_init(make), path),
        false => hints_by(&make(), path),
    }
}

fn hints_by(map: &HomeTrie, path: &Path) -> PathHints {
    let path = absolute(path);
    let (mut states, mut folder) = (Vec::new(), PathBuf::new());
    let no_hints = || PathHints { registry: map.registry, ..PathHints::default() };
    let Some(name) = path.file_name() else { return no_hints() };
    for step in path.parent().into_iter().flat_map(Path::components) {
        let within: Arc<Path> = Arc::from(folder.as_path());
        if let Component::Normal(step) = step {
            states = next(map, &within, &step.to_string_lossy(), &states);
        }
        folder.push(step);
        states.push(WalkState::new(map.anywhere, &Arc::from(folder.as_path())));
    }
    best_hints(map, &Arc::from(folder.as_path()), without_compression(&name.to_string_lossy()), &states)
        .unwrap_or_else(no_hints)
}

/// A file name without the extension of its compression.
fn without_compression(name: &str) -> &str {
    CONTAINERS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// What the best home suggests that a file of this name in this folder matches.
fn best_hints(map: &HomeTrie, folder: &Arc<Path>, name: &str, states: &[WalkState]) -> Option<PathHints> {
    let mut best: Option<(Leaf, &WalkState, &Pattern, Names<'_>)> = None;
    for state in states {
        for (pattern, to) in map.trie.steps(state.at) {
            let Some(leaf) = map.trie.leaf(*to) else { continue };
            let better = best.as_ref().is_none_or(|(known, ..)| leaf.rank() < known.rank());
            if better && let Some(names) = pattern.matches(name) {
                best = Some((leaf, state, pattern, names));
            }
        }
    }
    let (leaf, state, pattern, names) = best?;
    Some(state.named(map.registry, leaf, pattern.literal().is_none().then_some(folder), names))
}

/// The positions that a name leads to.
fn next(map: &HomeTrie, folder: &Arc<Path>, name: &str, states: &[WalkState]) -> Vec<WalkState> {
    let mut next = Vec::new();
    for state in states {
        for (pattern, to) in map.trie.steps(state.at) {
            if let Some(names) = pattern.matches(name) {
                let within = pattern.literal().is_none().then_some(folder);
                next.push(state.step(*to, within, names));
            }
        }
    }
    next
}

/// The extensions that a source may have.
fn endings(registry: &Registry) -> Vec<String> {
    let last = |ending: &str| ending.rsplit('.').next().unwrap_or_default().to_owned();
    let mut endings: Vec<String> = registry.formats().map(|format| last(format.info().extension)).collect();
    endings.push(recover::JOURNAL_EXTENSION.to_owned());
    endings.extend(databases::EXTENSIONS.map(str::to_owned));
    endings.sort();
    endings.dedup();
    endings
}

struct Walker<'w> {
    map: &'w HomeTrie,
    home: Option<PathBuf>,
    endings: Vec<String>,
    excluded: Vec<FileId>,
    files: HashSet<FileId>,
    folders: HashSet<FileId>,
    warnings: Vec<Warning>,
    suppressed: usize,
    ignored: &'w mut dyn FnMut(&Path),
    each: &'w mut dyn FnMut(FoundFile),
}

/// How much of a folder to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalkReach {
    /// What matches a home.
    Homes,
    /// Everything, this many folders deep.
    Whole(usize),
}

/// A folder being listed.
struct Folder {
    path: Arc<Path>,
    /// Its identity, if it was needed.
    id: Option<FileId>,
}

/// An entry of a folder.
struct FolderEntry {
    name: String,
    kind: EntryKind,
    listed: fs::DirEntry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    Folder,
    File,
    Link,
}

impl Walker<'_> {
    /// Walks what matches the homes at a position.
    fn homes(&mut self, folder: &Path, at: TriePosition) {
        let start: Arc<Path> = Arc::from(folder);
        self.folder(folder, &[WalkState::new(at, &start)], WalkReach::Homes);
    }

    /// Walks a folder whole.
    fn whole(&mut self, folder: &Path) {
        match fs::metadata(folder) {
            Ok(metadata) if metadata.is_file() => self.file(folder, &metadata, self.no_hints()),
            Ok(_) => self.folder(folder, &[], WalkReach::Whole(0)),
            // A place that the user named should exist.
            Err(error) => self.warning(folder, &unreadable(&error)),
        }
    }

    fn folder(&mut self, path: &Path, states: &[WalkState], reach: WalkReach) {
        let (id, mut reach) = self.within_bounds(path, reach);
        if reach == WalkReach::Homes && states.iter().all(|state| self.map.trie.is_literal(state.at)) {
            self.walk_literal(path, states);
            return;
        }
        let entries = match list(path) {
            Ok(entries) => entries,
            Err(error) => {
                self.warn_unless_missing(path, &error);
                return;
            }
        };
        if entries.iter().any(|entry| entry.name == CACHE_TAG) {
            reach = WalkReach::Homes;
        }
        let folder = Folder { path: Arc::from(path), id };
        let mut states = states.to_vec();
        if matches!(reach, WalkReach::Whole(_)) {
            states.push(WalkState::new(self.map.anywhere, &folder.path));
        }
        // Homes come first: a file with several names is found by the most specific one.
        let is_home = |entry: &&FolderEntry| {
            reach != WalkReach::Homes
                && entry.kind != EntryKind::File
                && states.iter().any(|state| self.map.trie.continues(state.at, &entry.name))
        };
        let (homes, others): (Vec<&FolderEntry>, Vec<&FolderEntry>) = entries.iter().partition(is_home);
        for entry in homes.into_iter().chain(others) {
            self.entry(&folder, entry, &states, reach);
        }
    }

    /// Ensures that a folder is walked whole only once, and not too deep.
    fn within_bounds(&mut self, path: &Path, reach: WalkReach) -> (Option<FileId>, WalkReach) {
        let WalkReach::Whole(depth) = reach else { return (None, reach) };
        if depth > DEPTH_MAX {
            self.warning(path, "is nested too deep: not searched");
            return (None, WalkReach::Homes);
        }
        let Some(id) = folder_id(path) else { return (None, reach) };
        let skipped = self.excluded.contains(&id) || VIRTUAL.iter().any(|made_up| path == Path::new(made_up));
        let reach = if skipped || !self.folders.insert(id) { WalkReach::Homes } else { reach };
        (Some(id), reach)
    }

    /// Continues without listing the folder if all names are literal.
    fn walk_literal(&mut self, folder: &Path, states: &[WalkState]) {
        let mut names: Vec<&str> = Vec::new();
        for state in states {
            names.extend(self.map.trie.steps(state.at).iter().filter_map(|(pattern, _)| pattern.literal()));
        }
        names.sort_unstable();
        names.dedup();
        let within: Arc<Path> = Arc::from(folder);
        for name in names {
            let next = next(self.map, &within, name, states);
            self.folder(&folder.join(name), &next, WalkReach::Homes);
        }
    }

    fn entry(&mut self, folder: &Folder, entry: &FolderEntry, states: &[WalkState], reach: WalkReach) {
        match entry.kind {
            EntryKind::Folder => self.subfolder(folder, entry, states, reach),
            EntryKind::File => {
                if folder.id.is_some_and(|id| self.is_known(id, &entry.listed)) {
                    return;
                }
                let Some(hints) = self.named(folder, &entry.name, states, reach) else {
                    if reach != WalkReach::Homes {
                        (self.ignored)(&entry.listed.path());
                    }
                    return;
                };
                match entry.listed.metadata() {
                    Ok(metadata) => self.file(&entry.listed.path(), &metadata, hints),
                    Err(error) => self.warn_unless_missing(&entry.listed.path(), &error),
                }
            }
            EntryKind::Link => {
                let path = entry.listed.path();
                // A dangling link counts as missing.
                let Ok(metadata) = fs::metadata(&path) else { return };
                if metadata.is_dir() {
                    let reach = if is_above(&path) { WalkReach::Homes } else { reach };
                    self.subfolder(folder, entry, states, reach);
                } else if metadata.is_file()
                    && let Some(hints) = self.named(folder, &entry.name, states, reach)
                {
                    self.file(&path, &metadata, hints);
                }
            }
        }
    }

    /// Whether a file was found before. The folder's listing includes the inode, which saves a stat.
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

    fn subfolder(&mut self, folder: &Folder, entry: &FolderEntry, states: &[WalkState], reach: WalkReach) {
        let mut next = next(self.map, &folder.path, &entry.name, states);
        next.retain(|state| !self.map.trie.steps(state.at).is_empty());
        let reach = match reach {
            WalkReach::Whole(depth) if !DERIVED.contains(&entry.name.as_str()) => WalkReach::Whole(depth + 1),
            WalkReach::Whole(_) | WalkReach::Homes => WalkReach::Homes,
        };
        if reach != WalkReach::Homes || !next.is_empty() {
            self.folder(&entry.listed.path(), &next, reach);
        }
    }

    /// What a file is by its path, or `None` if it is irrelevant.
    fn named(&self, folder: &Folder, name: &str, states: &[WalkState], reach: WalkReach) -> Option<PathHints> {
        let without_compression = without_compression(name);
        if let Some(mut hints) = best_hints(self.map, &folder.path, without_compression, states) {
            // The home folder is not a project.
            hints.folder = hints.folder.filter(|folder| Some(folder.as_ref()) != self.home.as_deref());
            return Some(hints);
        }
        let ending = without_compression.rsplit_once('.')?.1;
        let known = self.endings.iter().any(|known| known.eq_ignore_ascii_case(ending));
        let is_secret = || SECRETS.contains(&without_compression.to_ascii_lowercase().as_str());
        (known && reach != WalkReach::Homes && !is_secret()).then(|| self.no_hints())
    }

    /// What a path suggests that is not in a home.
    fn no_hints(&self) -> PathHints {
        PathHints { registry: self.map.registry, ..PathHints::default() }
    }

    fn file(&mut self, path: &Path, metadata: &fs::Metadata, hints: PathHints) {
        let stat = Stat::of_metadata(path, metadata);
        if self.files.insert(stat.id) {
            (self.each)(FoundFile { path: path.to_owned(), stat, hints });
        }
    }

    /// Adds a warning about an inaccessible path, unless it is missing: not every agent is installed, and files come and go.
    fn warn_unless_missing(&mut self, path: &Path, error: &io::Error) {
        if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            self.warning(path, &unreadable(error));
        }
    }

    fn warning(&mut self, path: &Path, text: &str) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(Warning::new(path, text));
        } else {
            self.suppressed += 1;
        }
    }

    fn end(mut self) -> Vec<Warning> {
        if let (Some(last), 1..) = (self.warnings.last().map(|warning| warning.path.clone()), self.suppressed) {
            self.warnings.push(Warning::new(&last, format!("and {} more could not be searched", self.suppressed)));
        }
        self.warnings
    }
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "cannot be searched: permission denied".to_owned(),
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be searched: {error}"),
    }
}

/// The entries of a folder, by name. The listing tells folders, files and links apart; everything else is skipped.
fn list(folder: &Path) -> io::Result<Vec<FolderEntry>> {
    let mut entries: Vec<FolderEntry> = Vec::new();
    for listed in fs::read_dir(folder)? {
        // An error in the middle ends the listing; the entries so far count.
        let Ok(listed) = listed else { break };
        let Ok(kind) = listed.file_type() else { continue };
        let kind = match (kind.is_dir(), kind.is_file(), kind.is_symlink()) {
            (true, _, _) => EntryKind::Folder,
            (_, true, _) => EntryKind::File,
            (_, _, true) => EntryKind::Link,
            _ => continue,
        };
        let name = listed.file_name();
        let name = name.into_string().unwrap_or_else(|name| name.to_string_lossy().into_owned());
        entries.push(FolderEntry { name, kind, listed });
    }
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn folder_id(folder: &Path) -> Option<FileId> {
    #[cfg(unix)]
    return fs::metadata(folder).ok().map(|metadata| FileId::of(folder, &metadata));
    #[cfg(not(unix))]
    {
        // Without inodes only the real path identifies a folder.
        let real = fs::canonicalize(folder).ok()?;
        fs::metadata(&real).ok().map(|metadata| FileId::of(&real, &metadata))
    }
}

/// Whether a link leads to a folder above it, which is already being walked, or was not asked for.
fn is_above(link: &Path) -> bool {
    let (real, here) = (fs::canonicalize(link), link.parent().map(fs::canonicalize));
    matches!((real, here), (Ok(real), Some(Ok(here))) if here.starts_with(&real))
}
