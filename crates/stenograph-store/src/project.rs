//! Determines the project of a folder: by its git repository and that repository's remote, otherwise by the folder itself. It
//! reads a few small files, writes nothing and starts no process.

mod config;
mod remote;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

pub use remote::normal;

use crate::Error;
use crate::index::catalogue::Catalogue;

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its folder: the root of the work tree, otherwise the given folder.
    pub folder: PathBuf,
    /// The repository's git folder. All work trees of one repository share it.
    pub repository: Option<PathBuf>,
    /// The repository's remote: `host/path`, the same for every spelling, and without credentials.
    pub remote: Option<String>,
    /// Whether the folder exists.
    pub state: FolderState,
}

/// Whether a folder exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderState {
    /// It exists.
    There,
    /// It is gone: only its path is known.
    Gone,
}

impl Project {
    /// The project of a folder that a transcript states. A folder that is gone is its own project, because an existing folder
    /// above it need not be related. A relative folder has none: nobody knows what it is relative to.
    pub fn of(folder: &Path) -> Option<Project> {
        if !folder.is_absolute() && !is_absolute_elsewhere(folder) {
            return None;
        }
        let real = folder.is_absolute().then(|| fs::canonicalize(folder).map(|real| plain(&real)).ok()).flatten();
        let Some(real) = real else {
            if let Some(above) = above_gone_worktree(folder) {
                return Project::of(&above);
            }
            return Some(Project { folder: lexical(folder), repository: None, remote: None, state: FolderState::Gone });
        };
        let found = real.ancestors().find_map(|above| Some((above, git_folder(above)?)));
        let Some((root, git)) = found else {
            return Some(Project { folder: real, repository: None, remote: None, state: FolderState::There });
        };
        let repository = common_folder(&git);
        let remote = read(&repository.join("config")).and_then(|config| config::remote(&config));
        let remote = remote.and_then(|remote| normal(&remote, &repository));
        Some(Project { folder: root.to_owned(), repository: Some(repository), remote, state: FolderState::There })
    }

    /// The key that folders of the same project share: its remote, otherwise its root.
    pub fn key(&self) -> String {
        self.remote.clone().unwrap_or_else(|| self.root().to_string_lossy().into_owned())
    }

    /// Its folder: of a repository the main work tree, or a bare repository itself; otherwise the folder.
    pub fn root(&self) -> &Path {
        match self.repository.as_deref() {
            Some(repository) if repository.ends_with(".git") => repository.parent().unwrap_or(repository),
            // The repository of a submodule is inside another one.
            Some(repository) if !repository.iter().any(|part| part == ".git") => repository,
            Some(_) | None => &self.folder,
        }
    }

    /// Every name by which a query can select it: first its display name, then its root, its folder and its remote.
    pub fn names(&self) -> Vec<String> {
        let folders = [self.root(), &self.folder].map(|folder| folder.display().to_string());
        [self.name()].into_iter().chain(folders).chain(self.remote.clone()).collect()
    }

    /// Its display name: the last component of its remote, otherwise of its root.
    pub fn name(&self) -> String {
        let of_remote = self.remote.as_deref().and_then(|remote| remote.rsplit('/').next());
        // A work tree may be named after a branch; the root is not.
        let of_root = || self.root().file_name().map(|name| name.to_string_lossy().into_owned());
        let name = of_remote.map(str::to_owned).or_else(of_root);
        name.unwrap_or_else(|| self.folder.to_string_lossy().into_owned())
    }
}

/// The maximum size of a git file that is read here.
const SIZE_MAX: u64 = 1 << 20;

fn read(path: &Path) -> Option<String> {
    // Opening a pipe would block until another process writes to it.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(SIZE_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The git folder of a work tree with this root: `.git` itself, or the target of the file of that name. A file with a missing
/// target still marks the root.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    let metadata = fs::metadata(&git).ok()?;
    if metadata.is_dir() {
        // Any folder may have that name; git's own has a `HEAD`.
        return git.join("HEAD").is_file().then_some(git);
    }
    let text = read(&git)?;
    let leads = text.lines().find_map(|line| line.strip_prefix("gitdir:"))?.trim();
    Some(lexical(&root.join(leads)))
}

/// The folder that all work trees of a repository share.
fn common_folder(git: &Path) -> PathBuf {
    let common = read(&git.join("commondir"));
    let common = common.as_deref().map(str::trim).filter(|common| !common.is_empty());
    let common = common.map_or_else(|| git.to_owned(), |common| git.join(common));
    // A work tree whose entry was pruned, or whose repository moved: only the path is left.
    let by_name = || match git.parent() {
        Some(worktrees) if worktrees.ends_with("worktrees") && !git.exists() => worktrees.parent(),
        _ => None,
    };
    let common = by_name().map_or(common, Path::to_owned);
    fs::canonicalize(&common).map_or_else(|_| lexical(&common), |real| plain(&real))
}

/// The folders below a repository where agents and people keep its work trees.
const WORKTREE_FOLDERS: [&str; 3] = [".claude/worktrees", ".worktrees", ".trees"];

/// The repository above a work tree that is gone, recognized by the folder that it was in.
fn above_gone_worktree(folder: &Path) -> Option<PathBuf> {
    let folder = lexical(folder);
    let mut above = folder.ancestors().skip(1);
    above.find_map(|above| {
        let kept = WORKTREE_FOLDERS.iter().find(|kept| above.ends_with(kept))?;
        above
            .ancestors()
            .nth(Path::new(kept).components().count())
            .filter(|root| root.parent().is_some())
            .map(Path::to_owned)
    })
}

/// Whether a path is absolute on this or another system: it begins with `/`, a drive or a network share.
pub(crate) fn is_absolute_elsewhere(path: &Path) -> bool {
    match path.as_os_str().as_encoded_bytes() {
        [b'/', ..] | [b'\\', b'\\', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

/// A path without `..`.
fn lexical(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for step in path.components() {
        match step {
            Component::CurDir => {}
            Component::ParentDir => {
                found.pop();
            }
            step => found.push(step),
        }
    }
    found
}

/// A path without the prefix that Windows adds to real paths.
fn plain(path: &Path) -> PathBuf {
    let plain = path.to_str().and_then(|text| text.strip_prefix(r"\\?\")).filter(|text| !text.starts_with("UNC"));
    plain.map_or_else(|| path.to_owned(), PathBuf::from)
}

/// The project names of sessions and folders, each looked up once. The project of a session that the index knows is the one that
/// the index states, in whichever folder its agent worked.
#[derive(Debug, Default)]
pub struct ProjectNames {
    sessions: HashMap<String, Vec<String>>,
    folders: HashMap<String, Vec<String>>,
}

impl ProjectNames {
    /// The names of projects, with those of the sessions that the index knows.
    pub fn of(catalogue: &Catalogue) -> Result<ProjectNames, Error> {
        let sessions = catalogue.session_projects()?.into_iter().map(|(session, project)| {
            let names = [Some(project.name), Some(project.root), project.remote].into_iter().flatten();
            (session, names.collect())
        });
        Ok(ProjectNames { sessions: sessions.collect(), folders: HashMap::new() })
    }

    /// All names of the project of a session or else of a folder, and the folder.
    pub fn names(&mut self, folder: &str, session: Option<&str>) -> Vec<String> {
        match session.and_then(|session| self.sessions.get(session)) {
            Some(names) => names.iter().cloned().chain([folder.to_owned()]).collect(),
            None => self.names_of_folder(folder).to_vec(),
        }
    }

    fn names_of_folder(&mut self, folder: &str) -> &[String] {
        if !self.folders.contains_key(folder) {
            self.folders.insert(
                folder.to_owned(),
                // The folder itself is a name too, as it is in the index.
                Project::of(Path::new(folder))
                    .map_or_else(Vec::new, |project| project.names())
                    .into_iter()
                    .chain([folder.to_owned()])
                    .collect(),
            );
        }
        self.folders.get(folder).map(Vec::as_slice).unwrap_or_default()
    }

    /// The display name of the project of a session, or else of a folder.
    pub fn name(&mut self, folder: &str, session: Option<&str>) -> String {
        match session.and_then(|session| self.sessions.get(session)?.first()) {
            Some(name) => name.clone(),
            None => self.names_of_folder(folder).first().cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
