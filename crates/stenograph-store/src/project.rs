//! Which project a folder belongs to: by its git repository and the remote of that, where there is one, else by the folder itself.
//! It reads a few small files, writes nothing and starts no process.

mod config;
mod remote;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

pub use remote::normal;

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its folder: the root of the repository's work tree, else the folder that was asked about.
    pub folder: PathBuf,
    /// The folder in which git keeps the repository. All work trees of one repository have the same.
    pub repository: Option<PathBuf>,
    /// Where the repository comes from: `host/path`, the same for every way of spelling it, and without anybody's password.
    pub remote: Option<String>,
    /// Whether the folder is there.
    pub state: State,
}

/// Whether a folder is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is.
    There,
    /// It is not: nothing but its path is known.
    Gone,
}

impl Project {
    /// The project that a folder belongs to. A folder that is gone is a project of its own, for what stands above it now need not
    /// have anything to do with it.
    pub fn of(folder: &Path) -> Project {
        let real = fs::canonicalize(folder).map(|real| plain(&real));
        let Ok(real) = real else {
            return Project { folder: lexical(folder), repository: None, remote: None, state: State::Gone };
        };
        let found = real.ancestors().find_map(|above| Some((above, git_folder(above)?)));
        let Some((root, git)) = found else {
            return Project { folder: real, repository: None, remote: None, state: State::There };
        };
        let repository = common_folder(&git);
        let remote = read(&repository.join("config")).and_then(|config| config::remote(&config));
        let remote = remote.and_then(|remote| normal(&remote, &repository));
        Project { folder: root.to_owned(), repository: Some(repository), remote, state: State::There }
    }

    /// What two folders have in common that belong to the same project: where it comes from, else its repository, else the
    /// folder.
    pub fn key(&self) -> String {
        let path = |path: &Path| format!("file:{}", path.to_string_lossy());
        match (&self.remote, &self.repository) {
            (Some(remote), _) => remote.clone(),
            (None, Some(repository)) => path(repository),
            (None, None) => path(&self.folder),
        }
    }

    /// Everything by which people ask for it: first what they call it, then its folder and where it comes from.
    pub fn names(&self) -> Vec<String> {
        [self.name(), self.folder.display().to_string()].into_iter().chain(self.remote.clone()).collect()
    }

    /// What people call it: the last part of where it comes from, else of its folder.
    pub fn name(&self) -> String {
        let of_remote = self.remote.as_deref().and_then(|remote| remote.rsplit('/').next());
        let of_repository = || {
            // A work tree may be called after a branch; the repository is not.
            let repository = self.repository.as_deref()?;
            let folder = if repository.ends_with(".git") { repository.parent()? } else { repository };
            Some(folder.file_name()?.to_string_lossy().into_owned())
        };
        let of_folder = || self.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = of_remote.map(str::to_owned).or_else(of_repository).or_else(of_folder);
        name.unwrap_or_else(|| self.folder.to_string_lossy().into_owned())
    }
}

/// Files of git that are read here are small. A larger one is something else.
const SIZE_MAX: u64 = 1 << 20;

fn read(path: &Path) -> Option<String> {
    // To open a pipe is to wait for whoever writes into it.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(SIZE_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The folder of git for a work tree with this root: `.git` itself, or where the file of that name leads. One that leads nowhere
/// any more still marks the root.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    let metadata = fs::metadata(&git).ok()?;
    if metadata.is_dir() {
        // Anybody may have a folder of that name; git's own has a head.
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
    // A work tree whose entry was pruned, or whose repository moved away: the way is all that is left.
    let by_name = || match git.parent() {
        Some(worktrees) if worktrees.ends_with("worktrees") && !git.exists() => worktrees.parent(),
        _ => None,
    };
    let common = by_name().map_or(common, Path::to_owned);
    fs::canonicalize(&common).map_or_else(|_| lexical(&common), |real| plain(&real))
}

/// A path from the root of the file system, with the steps back taken.
fn lexical(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
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

/// A path as people write it: Windows puts a prefix before real paths that nobody else does.
fn plain(path: &Path) -> PathBuf {
    let plain = path.to_str().and_then(|text| text.strip_prefix(r"\\?\")).filter(|text| !text.starts_with("UNC"));
    plain.map_or_else(|| path.to_owned(), PathBuf::from)
}

#[cfg(test)]
mod tests;
