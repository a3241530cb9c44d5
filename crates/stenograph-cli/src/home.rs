//! The machine this runs on: its home folder, its environment, and `--root DIR` instead of both. This is the only file that asks the
//! environment where agents keep their things; what a place means is up to the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph_store::discover::{Machine, Places, Platform};

use crate::error::CommandError;

/// Whose home folder is looked into.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Root {
    /// Look below this folder instead of the home folder, and at no variable of the environment
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Root {
    /// The folder that was given instead of the home folder.
    pub fn given(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The machine whose folders are meant.
    pub fn machine(&self) -> Machine {
        match &self.root {
            Some(root) => Machine::rooted(root.clone()),
            None => machine(),
        }
    }

    /// The folder that `place` means here, spelled as the homes of formats are.
    pub fn resolve(&self, place: &str) -> Result<PathBuf, CommandError> {
        let unknown = || CommandError::new("the home folder is not known").hint("name one with --root DIR");
        self.machine().resolve(place).ok_or_else(unknown)
    }

    /// Where sources are looked for: below the root, or in the homes of this machine and in the folder where the command runs.
    pub fn places(&self) -> Places {
        match &self.root {
            Some(root) => Places::below(std::fs::canonicalize(root).unwrap_or_else(|_| root.clone())),
            None => Places { projects: std::env::current_dir().into_iter().collect(), ..Places::of(machine()) },
        }
    }
}

/// This machine.
fn machine() -> Machine {
    let variables = Arc::new(|name: &str| std::env::var_os(name));
    Machine { home: std::env::home_dir(), variables, platform: Platform::HERE }
}

/// The home folder that the environment names. Where it names none there may still be one in the system's list of users, and
/// nothing is put there unasked: whoever takes the variable away does not want it.
pub fn named() -> Option<PathBuf> {
    let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    std::env::var_os(variable).filter(|home| !home.is_empty()).map(PathBuf::from)
}
