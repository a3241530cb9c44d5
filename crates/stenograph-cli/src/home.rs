//! Where agents keep their things: a place such as `{CODEX_HOME|~/.codex}/sessions` as a folder of this machine. This is the
//! only file that asks the environment for one; `--root DIR` stands in for the home folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph_store::discover::{Machine, Places, Platform, Variables};

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

    /// The folder that `place` means here. `{NAME|~/.folder}` is what the variable `NAME` says, else the folder after the bar;
    /// `~` is the home folder; what begins otherwise is taken as it is, below where the command runs.
    pub fn resolve(&self, place: &str) -> Result<PathBuf, CommandError> {
        resolve(place, self.given(), |name| std::env::var_os(name), std::env::home_dir)
    }

    /// Where sources are looked for: below the root, or in the homes of this machine and in the folder where the command runs.
    pub fn places(&self) -> Places {
        if let Some(root) = self.given() {
            return Places::below(root.to_owned());
        }
        let variables: Variables = Arc::new(|name| std::env::var_os(name));
        let machine = Machine { home: std::env::home_dir(), variables, platform: Platform::HERE };
        Places { projects: std::env::current_dir().into_iter().collect(), ..Places::of(machine) }
    }
}

/// The home folder that the environment names. Where it names none there may still be one in the system's list of users, and
/// nothing is put there unasked: whoever takes the variable away does not want it.
pub fn named() -> Option<PathBuf> {
    let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    std::env::var_os(variable).filter(|home| !home.is_empty()).map(PathBuf::from)
}

fn resolve(
    place: &str,
    root: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
    home: impl Fn() -> Option<PathBuf>,
) -> Result<PathBuf, CommandError> {
    let choice = place.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    if let Some((choice, rest)) = choice
        && let Some((name, otherwise)) = choice.split_once('|')
    {
        // Whoever names a root wants to see what is there, and not what this shell happens to be set up for.
        let set = if root.is_none() { variable(name).filter(|value| !value.is_empty()) } else { None };
        let base = match set {
            Some(value) => PathBuf::from(value),
            None => resolve(otherwise, root, variable, home)?,
        };
        return Ok(below(base, rest));
    }
    match place.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let base = root.map(Path::to_owned).or_else(|| home().filter(|home| !home.as_os_str().is_empty()));
            let unknown = || CommandError::new("the home folder is not known").hint("name one with --root DIR");
            Ok(below(base.ok_or_else(unknown)?, rest))
        }
        _ => Ok(PathBuf::from(place)),
    }
}

fn below(base: PathBuf, rest: &str) -> PathBuf {
    rest.split('/').filter(|step| !step.is_empty()).fold(base, |base, step| base.join(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(place: &str, root: Option<&str>, set: Option<&str>) -> Option<PathBuf> {
        let variable = |name: &str| set.filter(|_| name == "AGENT_HOME").map(OsString::from);
        resolve(place, root.map(Path::new), variable, || Some(PathBuf::from("/home/alice"))).ok()
    }

    #[test]
    fn a_variable_overrides_the_home_folder_and_a_root_overrides_both() {
        let place = "{AGENT_HOME|~/.agent}/contexts/x";
        assert_eq!(resolved(place, None, None), Some("/home/alice/.agent/contexts/x".into()));
        assert_eq!(resolved(place, None, Some("/srv")), Some("/srv/contexts/x".into()));
        assert_eq!(resolved(place, None, Some("")), Some("/home/alice/.agent/contexts/x".into()));
        assert_eq!(resolved(place, Some("r"), Some("/srv")), Some("r/.agent/contexts/x".into()));
        assert_eq!(resolved("~", Some("r"), None), Some("r".into()));
        assert_eq!(resolved("~other/x", None, None), Some("~other/x".into()));
        assert_eq!(resolved(".agent/runs", Some("r"), None), Some(".agent/runs".into()));
    }

    #[test]
    fn without_a_home_folder_there_is_a_hint() {
        let error = resolve("~/.agent", None, |_| None, || None).unwrap_err();
        assert!(error.hints().iter().any(|hint| hint.contains("--root")));
    }
}
