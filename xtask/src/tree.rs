//! Finds files and folders of the repository. It must not judge or change them.

use std::fs;
use std::path::{Path, PathBuf};

use stenograph::format::Format;

use crate::Failure;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The folder of all formats.
pub fn formats() -> PathBuf {
    root().join("crates/stenograph/src/formats")
}

/// The folder of one format.
pub fn format(format: &dyn Format) -> PathBuf {
    formats().join(format.info().name.replace('-', "_"))
}

/// The names of the files in a folder, sorted; none if the folder does not exist.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Whether a file in the folder of fixtures is the expected output of a fixture.
pub fn is_golden(name: &str) -> bool {
    name.ends_with(".golden") || name.ends_with(".losses")
}

/// Whether a Rust file contains only tests.
pub fn is_test(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
        || file.iter().any(|part| part == "tests")
}

/// The files of the repository: those that git tracks, and untracked files that it does not ignore.
pub fn files() -> Result<Vec<PathBuf>, Failure> {
    let listed = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output();
    let mut files: Vec<PathBuf> = match listed {
        Ok(listed) if listed.status.success() => {
            let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
            listed.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect()
        }
        // An unpacked archive has no git: take all files except the build output.
        _ => {
            let mut found = Vec::new();
            walk(&root(), &mut found)?;
            found
        }
    };
    files.retain(|file| root().join(file).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let skipped = path.file_name().is_some_and(|name| name == "target" || name == ".git");
        if path.is_dir() && !skipped {
            walk(&path, found)?;
        } else if path.is_file() {
            found.push(path.strip_prefix(root())?.to_owned());
        }
    }
    Ok(())
}
