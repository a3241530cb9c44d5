//! Where things are in the repository. It only looks; it must not judge.

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

/// The names of the files in a folder, sorted; none when it is not there.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Whether a file beside the fixtures says what a fixture should give.
pub fn is_golden(name: &str) -> bool {
    name.ends_with(".golden") || name.ends_with(".losses")
}

/// Whether a Rust file holds only tests.
pub fn is_test(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
        || file.iter().any(|part| part == "tests")
}

/// The files that belong to the repository: those git knows and those it would add.
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
        // An unpacked archive has no git: everything that is not a product of the build belongs to it.
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
