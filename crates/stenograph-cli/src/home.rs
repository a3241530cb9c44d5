//! This machine: its home folder and environment, or `--root DIR` instead of both. Only this file reads the environment to
//! locate the files of agents; the store interprets the paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph_store::discover::{Machine, Places, Platform};

use crate::error::CommandError;

/// Whose home folder is looked into.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Root {
    /// Use DIR as the home folder
    ///
    /// steno searches all of DIR, keeps the store in it unless STENO_HOME is set, and ignores other environment variables.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Root {
    /// The folder given instead of the home folder.
    pub fn given(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The machine to look at.
    pub fn machine(&self) -> Machine {
        match &self.root {
            Some(root) => Machine::rooted(root.clone()),
            None => machine(),
        }
    }

    /// Resolves a path written as in the homes of formats.
    pub fn resolve(&self, place: &str) -> Result<PathBuf, CommandError> {
        let unknown = || CommandError::new("the home folder is unknown").hint("set it with --root DIR");
        self.machine().resolve(place).ok_or_else(unknown)
    }

    /// Where to look for sources: below the root, or in this machine's homes and in the working folder.
    pub fn places(&self) -> Places {
        match &self.root {
            Some(root) => Places::below(std::fs::canonicalize(root).unwrap_or_else(|_| root.clone())),
            None => Places { projects: std::env::current_dir().into_iter().collect(), ..Places::of(machine()) },
        }
    }
}

fn machine() -> Machine {
    let variables = Arc::new(|name: &str| std::env::var_os(name));
    Machine { home: std::env::home_dir(), variables, platform: Platform::HERE }
}

/// The home folder that the environment names. The system's user list may name one too, but a user who unsets the variable
/// wants no files there.
pub fn from_environment() -> Option<PathBuf> {
    let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    std::env::var_os(variable).filter(|home| !home.is_empty()).map(PathBuf::from)
}
