//! Resolves a place such as `{CODEX_HOME|~/.codex}/sessions` to folders. Only this file knows the syntax. The environment is
//! passed in as a function; no file is accessed.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Looks up an environment variable.
pub type Variables = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// The home folder and environment in which places are resolved.
#[derive(Clone)]
pub struct Machine {
    /// The home folder, if known.
    pub home: Option<PathBuf>,
    /// The environment.
    pub variables: Variables,
    /// The kind of system, which determines some folders.
    pub platform: Platform,
}

/// A kind of system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Linux and other systems with XDG folders.
    Unix,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

impl Platform {
    /// The platform of this build.
    pub const HERE: Platform = if cfg!(windows) {
        Platform::Windows
    } else if cfg!(target_os = "macos") {
        Platform::Mac
    } else {
        Platform::Unix
    };

    /// The place of the folder for application data.
    fn data(self) -> &'static str {
        match self {
            Platform::Unix => "{XDG_DATA_HOME|~/.local/share}",
            Platform::Mac => "~/Library/Application Support",
            Platform::Windows => "{LOCALAPPDATA|~/AppData/Local}",
        }
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { home, variables: _, platform } = self;
        formatter.debug_struct("Machine").field("home", home).field("platform", platform).finish_non_exhaustive()
    }
}

/// The beginning of a parsed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceStart<'p> {
    /// `{NAME|place}`: the variable's value, or the place if it is not set.
    Variable {
        /// The variable.
        name: &'p str,
        /// The place if the variable is not set.
        otherwise: &'p str,
    },
    /// `{data}`: the folder for application data.
    Data,
    /// `~`: the home folder.
    Home,
    /// Anything else: a path as it is, relative to any folder.
    Relative,
}

/// Splits a place into its beginning and the rest of the path.
pub(super) fn start(place: &str) -> (PlaceStart<'_>, &str) {
    if let Some((inside, rest)) = place.strip_prefix('{').and_then(closed) {
        return match inside.split_once('|') {
            Some((name, otherwise)) => (PlaceStart::Variable { name, otherwise }, rest),
            None if inside == "data" => (PlaceStart::Data, rest),
            None => (PlaceStart::Relative, place),
        };
    }
    match place.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => (PlaceStart::Home, rest),
        _ => (PlaceStart::Relative, place),
    }
}

/// The text before the matching closing brace, and the text after it.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut open = 1;
    for (at, char) in text.char_indices() {
        match char {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some((text.get(..at)?, text.get(at + 1..)?));
        }
    }
    None
}

impl Machine {
    /// A machine with this folder as its home folder and without environment variables: a user who names a folder wants its
    /// content, not what the shell is set up for.
    pub fn rooted(root: PathBuf) -> Machine {
        Machine { home: Some(root), variables: Arc::new(|_| None), platform: Platform::HERE }
    }

    /// The folder or file of a place: `~` is the home folder, `{NAME|place}` the variable's value or that place, `{data}` the
    /// folder for application data; anything else is a path as it is. `None` if the place needs a home folder and none is
    /// known.
    pub fn resolve(&self, place: &str) -> Option<PathBuf> {
        self.resolve_all(place).into_iter().next()
    }

    /// All folders that a place may mean. A variable may list several folders separated by commas; a comma may also be part of
    /// a name, so the unsplit value comes first.
    pub(crate) fn resolve_all(&self, place: &str) -> Vec<PathBuf> {
        let (start, rest) = start(place);
        let bases = match start {
            PlaceStart::Variable { name, otherwise } => {
                match (self.variables)(name).filter(|value| !value.is_empty()) {
                    Some(value) => self.listed(&value),
                    None => self.resolve_all(otherwise),
                }
            }
            PlaceStart::Data => self.resolve_all(self.platform.data()),
            PlaceStart::Home => self.home.iter().filter(|home| !home.as_os_str().is_empty()).cloned().collect(),
            PlaceStart::Relative => return vec![PathBuf::from(place)],
        };
        bases.into_iter().map(|base| below(base, rest)).collect()
    }

    fn listed(&self, value: &OsString) -> Vec<PathBuf> {
        let mut folders = vec![PathBuf::from(value)];
        if let Some(text) = value.to_str().filter(|text| text.contains(',')) {
            // A shell expands only the first `~`.
            let pieces = text.split(',').map(str::trim).filter(|piece| !piece.is_empty() && !piece.starts_with('{'));
            folders.extend(pieces.filter_map(|piece| self.resolve(piece)));
        }
        folders
    }
}

fn below(base: PathBuf, rest: &str) -> PathBuf {
    rest.split('/').filter(|step| !step.is_empty()).fold(base, |base, step| base.join(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(home: Option<&str>, set: &'static [(&'static str, &'static str)]) -> Machine {
        let find =
            move |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        Machine { home: home.map(PathBuf::from), variables: Arc::new(find), platform: Platform::Unix }
    }

    #[test]
    fn a_variable_overrides_the_home_folder_and_an_empty_one_does_not() {
        let place = "{AGENT_HOME|~/.agent}/contexts/x";
        let home = Some("/home/alice");
        assert_eq!(machine(home, &[]).resolve(place), Some("/home/alice/.agent/contexts/x".into()));
        assert_eq!(machine(home, &[("AGENT_HOME", "/srv")]).resolve(place), Some("/srv/contexts/x".into()));
        assert_eq!(machine(home, &[("AGENT_HOME", "")]).resolve(place), Some("/home/alice/.agent/contexts/x".into()));
        assert_eq!(Machine::rooted("r".into()).resolve(place), Some("r/.agent/contexts/x".into()));
        assert_eq!(machine(None, &[]).resolve(place), None);
    }

    #[test]
    fn a_place_without_a_special_beginning_is_used_as_it_is() {
        let machine = machine(Some("/home/alice"), &[]);
        for place in [".agent/runs", "~other/x", "/srv/x", "{unknown}/x", "{half"] {
            assert_eq!(machine.resolve_all(place), [PathBuf::from(place)]);
        }
        assert_eq!(machine.resolve("~"), Some("/home/alice".into()));
    }

    #[test]
    fn a_variable_may_name_several_folders_or_one_with_a_comma_in_its_name() {
        let machine = machine(Some("/home/alice"), &[("AGENT_HOME", "/a, ~/b,,")]);
        let found = machine.resolve_all("{AGENT_HOME|~/.agent}/x");
        assert_eq!(found, [PathBuf::from("/a, ~/b,,/x"), "/a/x".into(), "/home/alice/b/x".into()]);
    }

    #[test]
    fn every_system_has_its_own_folder_for_data() {
        let place = "{STENO_HOME|{data}/stenograph}";
        let on = |platform, set| Machine { platform, ..machine(Some("/h"), set) }.resolve(place);
        assert_eq!(on(Platform::Unix, &[]), Some("/h/.local/share/stenograph".into()));
        assert_eq!(on(Platform::Unix, &[("XDG_DATA_HOME", "/x")]), Some("/x/stenograph".into()));
        assert_eq!(on(Platform::Mac, &[]), Some("/h/Library/Application Support/stenograph".into()));
        assert_eq!(on(Platform::Windows, &[("LOCALAPPDATA", "/l")]), Some("/l/stenograph".into()));
        assert_eq!(on(Platform::Unix, &[("STENO_HOME", "/s")]), Some("/s".into()));
    }
}
