//! One test for every fixture of every format and every file of the corpus, if it is available. The caller supplies the check.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::{Detected, Registry};

/// The check of one file.
pub type Test = fn(&'static dyn Format, &Path) -> Result<(), Failed>;

/// Runs a check on every file.
pub fn run(file: Test) {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for format in FORMATS {
        let folder = format.info().name.replace('-', "_");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats").join(folder).join("fixtures");
        let mut files = Vec::new();
        walk(&folder, &mut files);
        files.retain(|path| !matches!(path.extension().and_then(|end| end.to_str()), Some("golden" | "losses")));
        for path in files {
            let name = format!("{}/{}", format.info().name, path.file_name().unwrap_or_default().to_string_lossy());
            trials.push(Trial::test(name, move || file(*format, &path)));
        }
    }
    trials.extend(corpus(file));
    libtest_mimic::run(&arguments, trials).exit();
}

fn corpus(file: Test) -> Vec<Trial> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let root = std::env::var_os("STENO_CORPUS").map_or(beside, PathBuf::from);
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    let trial = |path: PathBuf| {
        let name = format!("corpus/{}", path.strip_prefix(&root).unwrap_or(&path).to_string_lossy());
        Trial::test(name, move || match Registry::built_in().detect(&fs::read(&path)?) {
            Detected::Format(format) => file(format, &path),
            Detected::Tie(_) | Detected::Unknown => Ok(()),
        })
    };
    files.into_iter().map(trial).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}
