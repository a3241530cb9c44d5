//! Where things are on a machine: a place such as `{CODEX_HOME|~/.codex}/sessions` as folders. This is the only place that knows
//! the syntax; it asks nobody for the environment, which comes in as a function, and looks at no file.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What a variable of the environment says.
pub type Variables = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// Whose folders are meant.
#[derive(Clone)]
pub struct Machine {
    /// The home folder, where it is known.
    pub home: Option<PathBuf>,
    /// The environment.
    pub variables: Variables,
    /// The kind of system, which has its own names for some folders.
    pub platform: Platform,
}

/// A kind of system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Linux and everything else that keeps to the XDG folders.
    Unix,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

impl Platform {
    /// The one this was built for.
    pub const HERE: Platform = if cfg!(windows) {
        Platform::Windows
    } else if cfg!(target_os = "macos") {
        Platform::Mac
    } else {
        Platform::Unix
    };

    /// The folder that programs keep their data in, spelled as a place.
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

/// A place, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start<'p> {
    /// `{NAME|place}`: what the variable says, else the place.
    Variable {
        /// The variable.
        name: &'p str,
        /// The place where it says nothing.
        otherwise: &'p str,
    },
    /// `{data}`: the folder that programs keep their data in.
    Data,
    /// `~`: the home folder.
    Home,
    /// Nothing of all that: it is taken as it is, below wherever one stands.
    Relative,
}

/// Where a place starts, and the way from there.
pub(super) fn start(place: &str) -> (Start<'_>, &str) {
    if let Some((inside, rest)) = place.strip_prefix('{').and_then(closed) {
        return match inside.split_once('|') {
            Some((name, otherwise)) => (Start::Variable { name, otherwise }, rest),
            None if inside == "data" => (Start::Data, rest),
            None => (Start::Relative, place),
        };
    }
    match place.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => (Start::Home, rest),
        _ => (Start::Relative, place),
    }
}

/// What stands before the brace that closes the one before it, and after.
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
    /// A folder that stands in for the home folder. Whoever names one wants to see what is there, and not what a shell happens to
    /// be set up for: no variable counts.
    pub fn rooted(root: PathBuf) -> Machine {
        Machine { home: Some(root), variables: Arc::new(|_| None), platform: Platform::HERE }
    }

    /// The folder or file that a place means: `~` is the home folder, `{NAME|place}` what the variable says, else that place,
    /// `{data}` the folder that programs keep their data in; what begins otherwise is taken as it is. `None` when it takes a
    /// home folder and none is known.
    pub fn resolve(&self, place: &str) -> Option<PathBuf> {
        self.resolve_all(place).into_iter().next()
    }

    /// All that a place may mean. A variable may name several folders with commas between them; a comma may also be part of a
    /// name, so the whole comes first.
    pub(crate) fn resolve_all(&self, place: &str) -> Vec<PathBuf> {
        let (start, rest) = start(place);
        let bases = match start {
            Start::Variable { name, otherwise } => match (self.variables)(name).filter(|value| !value.is_empty()) {
                Some(value) => self.listed(&value),
                None => self.resolve_all(otherwise),
            },
            Start::Data => self.resolve_all(self.platform.data()),
            Start::Home => self.home.iter().filter(|home| !home.as_os_str().is_empty()).cloned().collect(),
            Start::Relative => return vec![PathBuf::from(place)],
        };
        bases.into_iter().map(|base| below(base, rest)).collect()
    }

    fn listed(&self, value: &OsString) -> Vec<PathBuf> {
        let mut folders = vec![PathBuf::from(value)];
        if let Some(text) = value.to_str().filter(|text| text.contains(',')) {
            // A shell makes a home folder of the first `~` at most.
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
    fn what_begins_with_nothing_special_is_taken_as_it_is() {
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
