//! Projects in real folders, made by hand as git makes them.

use std::fs;
use std::path::{Path, PathBuf};

use super::{FolderState, Project};

fn of(folder: &Path) -> Project {
    Project::of(folder).unwrap()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A repository with a remote, and the real path of its work tree.
fn repository(folder: &Path, url: Option<&str>) -> PathBuf {
    write(&folder.join(".git/HEAD"), "ref: refs/heads/main\n");
    let remote = url.map(|url| format!("[remote \"origin\"]\n\turl = {url}\n")).unwrap_or_default();
    write(&folder.join(".git/config"), &format!("[core]\n\tbare = false\n{remote}"));
    folder.canonicalize().unwrap()
}

/// A work tree of it.
fn worktree(repository: &Path, name: &str, folder: &Path) {
    let entry = repository.join(".git/worktrees").join(name);
    write(&entry.join("HEAD"), "ref: refs/heads/side\n");
    write(&entry.join("commondir"), "../..\n");
    write(&folder.join(".git"), &format!("gitdir: {}\n", entry.display()));
}

#[test]
fn a_folder_deep_in_a_repository_belongs_to_it() {
    let place = tempfile::tempdir().unwrap();
    let root = repository(&place.path().join("tool"), Some("git@example.org:team/tool.git"));
    let deep = root.join("src/a");
    fs::create_dir_all(&deep).unwrap();
    let project = of(&deep);
    assert_eq!(project.folder, root);
    assert_eq!(project.remote.as_deref(), Some("example.org/team/tool"));
    assert_eq!((project.key().as_str(), project.name().as_str()), ("example.org/team/tool", "tool"));
}

#[test]
fn a_repository_without_a_remote_is_known_by_its_folder() {
    let place = tempfile::tempdir().unwrap();
    let root = repository(&place.path().join("tool"), None);
    let side = place.path().join("side");
    worktree(&root, "side", &side);
    let (main, side) = (of(&root), of(&side));
    assert_eq!(main.key(), root.display().to_string());
    assert_eq!(side.key(), main.key());
    assert_eq!((main.name().as_str(), side.name().as_str()), ("tool", "tool"));
    assert_ne!(side.folder, main.folder);
}

#[test]
fn a_work_tree_that_was_moved_stays_with_its_repository() {
    let place = tempfile::tempdir().unwrap();
    let root = repository(&place.path().join("tool"), Some("https://example.org/team/tool"));
    let (side, moved) = (place.path().join("side"), place.path().join("elsewhere/side"));
    worktree(&root, "side", &side);
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    fs::rename(&side, &moved).unwrap();
    let project = of(&moved.join("."));
    assert_eq!(project.folder, moved.canonicalize().unwrap());
    assert_eq!(project.key(), "example.org/team/tool");
}

#[test]
fn a_work_tree_whose_repository_moved_is_still_a_root_and_keeps_its_key() {
    let place = tempfile::tempdir().unwrap();
    let root = repository(&place.path().join("tool"), None);
    let side = place.path().join("side");
    worktree(&root, "side", &side);
    let before = of(&side);
    fs::rename(&root, place.path().join("moved")).unwrap();
    fs::create_dir_all(side.join("src")).unwrap();
    let after = of(&side.join("src"));
    assert_eq!(after.folder, side.canonicalize().unwrap());
    assert_eq!(after.key(), before.key());
    assert_eq!(after.remote, None);
}

#[test]
fn a_submodule_is_a_project_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let root = repository(place.path(), Some("https://example.org/team/tool"));
    let module = root.join(".git/modules/lib");
    write(&module.join("HEAD"), "ref: refs/heads/main\n");
    write(&module.join("config"), "[remote \"origin\"]\n\turl = ../lib.git\n\n");
    write(&root.join("lib/.git"), "gitdir: ../.git/modules/lib\n");
    let project = of(&root.join("lib"));
    assert_eq!(project.folder, root.join("lib"));
    assert_eq!(project.repository, Some(module));
    assert_ne!(project.key(), of(&root).key());
}

#[test]
fn a_folder_without_git_is_itself() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().canonicalize().unwrap().join("notes");
    // A folder with this name that is not git's.
    fs::create_dir_all(folder.join(".git")).unwrap();
    let project = of(&folder);
    assert_eq!((project.folder.clone(), project.state), (folder.clone(), FolderState::There));
    assert_eq!((project.key(), project.name()), (folder.display().to_string(), "notes".to_owned()));
}

#[test]
fn only_the_path_of_a_missing_folder_is_known() {
    let place = tempfile::tempdir().unwrap();
    let root = repository(place.path(), Some("https://example.org/team/tool"));
    let project = of(&root.join("gone/../gone/deep"));
    assert_eq!(project.state, FolderState::Gone);
    assert_eq!(project.folder, root.join("gone/deep"));
    assert_eq!((project.remote.as_deref(), project.repository.as_deref()), (None, None));
    assert_eq!(project.name(), "deep");
}

#[test]
fn a_work_tree_that_is_gone_belongs_to_the_repository_above_it() {
    let place = tempfile::tempdir().unwrap();
    let root = repository(place.path(), Some("https://example.org/team/tool"));
    for gone in [".claude/worktrees/fix-1/src", ".worktrees/fix-1"] {
        assert_eq!(of(&root.join(gone)), of(&root), "{gone}");
    }
    let project = of(Path::new("/nowhere/tool/.claude/worktrees/fix-1"));
    assert_eq!((project.name().as_str(), project.state), ("tool", FolderState::Gone));
    assert_eq!(of(Path::new("/.worktrees/fix-1")).name(), "fix-1");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_project_is_the_project() {
    let place = tempfile::tempdir().unwrap();
    let root = repository(&place.path().join("tool"), None);
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&root, &link).unwrap();
    assert_eq!(of(&link), of(&root));
}

#[test]
fn broken_git_files_stop_nothing() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    for (name, text) in
        [("empty", ""), ("binary", "\u{0}\u{fffd}"), ("loop", "gitdir: .git"), ("away", "gitdir: /none")]
    {
        let folder = root.join(name);
        write(&folder.join(".git"), text);
        assert_eq!(of(&folder).folder, folder, "{name}");
    }
    // A repository that links to itself leads nowhere and ends.
    fs::create_dir_all(root.join("huge")).unwrap();
    write(&root.join("huge/.git/HEAD"), "x");
    write(&root.join("huge/.git/config"), &"[x]\n".repeat(1 << 19));
    assert_eq!(of(&root.join("huge")).remote, None);
}

#[test]
fn a_relative_folder_has_no_project() {
    for folder in ["", ".", "src", "./src", "../up", "C:", "C:work"] {
        assert_eq!(Project::of(Path::new(folder)), None, "{folder}");
    }
    let elsewhere = of(Path::new(r"C:\work\app"));
    assert_eq!(elsewhere.state, FolderState::Gone);
    assert!(elsewhere.folder.ends_with(r"C:\work\app"), "{}", elsewhere.folder.display());
}
