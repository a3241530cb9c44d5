//! Pages in a real browser: Chromium, driven by Node scripts in `tests/browser/`.
//!
//! `STENO_NODE_MODULES` names a folder with `playwright-core` and `axe-core`, as in continuous integration; without it, they are
//! installed below `target/browser`. Where Node, Chromium or the packages are missing, the tests say so and skip; with `CI` set,
//! they fail. `STENO_UPDATE=1` updates the pictures in `docs/images`; `STENO_PICTURES` names a folder for all pictures.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The packages, with their exact versions.
const PACKAGES: [&str; 2] = ["playwright-core@1.65.1", "axe-core@4.14.0"];

/// A machine with a browser.
pub struct Browser {
    node_modules: PathBuf,
    chromium: PathBuf,
}

impl Browser {
    /// The browser of this machine; `None` if there is none.
    pub fn find() -> Option<&'static Browser> {
        static FOUND: OnceLock<Option<Browser>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            let chromium = program(&["chromium", "chromium-browser", "google-chrome"]);
            match (program(&["node"]), chromium, node_modules()) {
                (Some(_), Some(chromium), Some(node_modules)) => Some(Browser { node_modules, chromium }),
                _ => None,
            }
        });
        if found.is_none() {
            assert!(std::env::var_os("CI").is_none(), "Node, Chromium, playwright-core and axe-core are needed");
            eprintln!("skipped: no Node, no Chromium, or no playwright-core and axe-core");
        }
        found.as_ref()
    }

    /// Runs a script of `tests/browser/`, which must succeed.
    #[track_caller]
    pub fn run(&self, script: &str, arguments: &[&str]) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
        let mut command = Command::new("node");
        command.arg(folder.join(script)).args(arguments);
        command.env("STENO_NODE_MODULES", &self.node_modules).env("STENO_CHROMIUM", &self.chromium);
        if std::env::var_os("STENO_UPDATE").is_some() {
            command.env("STENO_DOCUMENT_PICTURES", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images"));
        }
        let done = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{script} {}:\n{stderr}", arguments.join(" "));
    }
}

fn program(names: &[&str]) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let named = |name: &&str| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    std::env::var_os("STENO_CHROMIUM")
        .filter(|_| names.contains(&"chromium"))
        .map(PathBuf::from)
        .or_else(|| names.iter().find_map(named))
}

/// The folder of the packages, which are installed if they are missing.
fn node_modules() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("STENO_NODE_MODULES").filter(|value| !value.is_empty()) {
        return Some(PathBuf::from(named));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("browser");
    let modules = folder.join("node_modules");
    if !PACKAGES.iter().all(|package| modules.join(package.split('@').next().unwrap()).is_dir()) {
        std::fs::create_dir_all(&folder).ok()?;
        let mut npm = Command::new(program(&["npm"])?);
        npm.args(["install", "--no-save", "--silent", "--prefix"]).arg(&folder).args(PACKAGES);
        npm.status().ok().filter(std::process::ExitStatus::success)?;
    }
    Some(modules)
}
