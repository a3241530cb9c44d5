//! What people set once and for all: the settings there are, where they are kept, and which of several places counts. This is the
//! only part that reads settings; what is set is handed on as values. One file of them is in `config/file.rs`.

mod file;
mod value;

use std::env;
use std::path::{Path, PathBuf};

use stenograph::edit::trim::Limits;

use crate::error::CommandError;
use file::File;
pub use file::toml;
pub use value::{Kind, Value};

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name, as CycoD has it.
    pub key: &'static str,
    /// The environment variable that counts more than any file.
    pub variable: &'static str,
    /// What it can be.
    pub kind: Kind,
    /// What it is where nobody said.
    pub default: Option<Value>,
    /// What it does.
    pub about: &'static str,
}

impl Setting {
    /// How a layout that goes by it calls it: `App.AutoSaveTrajectory` is `auto_save_trajectory` there.
    pub fn layout_key(&self) -> String {
        let mut key = String::new();
        for char in self.key.rsplit('.').next().unwrap_or_default().chars() {
            if char.is_ascii_uppercase() && !key.is_empty() {
                key.push('_');
            }
            key.push(char.to_ascii_lowercase());
        }
        key
    }
}

/// All settings, sorted.
pub static SETTINGS: [&Setting; 5] =
    [&AUTO_SAVE_CHAT_HISTORY, &AUTO_SAVE_TRAJECTORY, &MAX_CHAT_TOKENS, &MAX_PROMPT_TOKENS, &MAX_TOOL_TOKENS];

/// Whether chat histories are saved without being asked for.
pub static AUTO_SAVE_CHAT_HISTORY: Setting = Setting {
    key: "App.AutoSaveChatHistory",
    variable: "CYCOD_AUTO_SAVE_CHAT_HISTORY",
    kind: Kind::Switch,
    default: Some(Value::Switch(true)),
    about: "record --to cycod also saves the chat history in ~/.cycod/history",
};

/// Whether trajectories are.
pub static AUTO_SAVE_TRAJECTORY: Setting = Setting {
    key: "App.AutoSaveTrajectory",
    variable: "CYCOD_AUTO_SAVE_TRAJECTORY",
    kind: Kind::Switch,
    default: Some(Value::Switch(true)),
    about: "record --to cycod also saves the trajectory there",
};

/// How much of a conversation is sent.
pub static MAX_CHAT_TOKENS: Setting = Setting {
    key: "App.MaxChatTokens",
    variable: "CYCOD_MAX_CHAT_TOKENS",
    kind: Kind::Tokens,
    default: None,
    about: "what a conversation is trimmed to where --max-tokens does not say; 0 is no limit",
};

/// How much of one message of a user is.
pub static MAX_PROMPT_TOKENS: Setting = Setting {
    key: "App.MaxPromptTokens",
    variable: "CYCOD_MAX_PROMPT_TOKENS",
    kind: Kind::Tokens,
    default: None,
    about: "what a message of the user is cut to where --max-prompt-tokens does not say; 0 is no limit",
};

/// How much of one tool's result is.
pub static MAX_TOOL_TOKENS: Setting = Setting {
    key: "App.MaxToolTokens",
    variable: "CYCOD_MAX_TOOL_TOKENS",
    kind: Kind::Tokens,
    default: None,
    about: "what a tool's result is cut to where --max-tool-tokens does not say; 0 is no limit",
};

/// The setting of that name, in any case, also by the name of its environment variable.
pub fn setting(name: &str) -> Result<&'static Setting, CommandError> {
    let is_named =
        |setting: &&&Setting| setting.key.eq_ignore_ascii_case(name) || setting.variable.eq_ignore_ascii_case(name);
    SETTINGS.iter().find(is_named).copied().ok_or_else(|| {
        let error = CommandError::new(format!("no setting is called {name}"));
        match nearest(name) {
            Some(setting) => error.hint(format!("did you mean {}? steno config list shows all", setting.key)),
            None => error.hint("steno config list shows all settings"),
        }
    })
}

/// The setting whose name is most like this one, if any is like it at all.
fn nearest(name: &str) -> Option<&'static Setting> {
    const LIKENESS_MIN: f64 = 0.5;
    let wanted = last_step(name);
    let likeness = |setting: &Setting| strsim::normalized_damerau_levenshtein(&wanted, &last_step(setting.key));
    let found = SETTINGS.into_iter().map(|setting| (likeness(setting), setting));
    let found = found.max_by(|(a, _), (b, _)| a.total_cmp(b));
    found.filter(|(likeness, _)| *likeness >= LIKENESS_MIN).map(|(_, setting)| setting)
}

fn last_step(name: &str) -> String {
    // What is typed may be megabytes long; what is like a setting is not.
    const CHARS_MAX: usize = 100;
    name.rsplit('.').next().unwrap_or(name).chars().take(CHARS_MAX).collect::<String>().to_ascii_lowercase()
}

/// Whose settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of the folder the command runs in.
    Local,
    /// Those of the user, everywhere.
    User,
}

impl Scope {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Local => "local",
            Scope::User => "user",
        }
    }

    /// The file of it.
    pub fn path(self) -> Result<PathBuf, CommandError> {
        match self {
            Scope::Local => Ok(Path::new(".steno").join(FILE_NAME)),
            Scope::User => user_path().ok_or_else(|| {
                CommandError::new("there is no folder for the user's settings: neither HOME nor STENO_CONFIG is set")
                    .hint("let the variable STENO_CONFIG name a file, or use --local")
            }),
        }
    }
}

const FILE_NAME: &str = "config.toml";

fn user_path() -> Option<PathBuf> {
    variable("STENO_CONFIG").map(PathBuf::from).or_else(|| user_file(FILE_NAME))
}

/// A file of the user's own, in the folder where they keep what they set; `None` where there is no such folder.
pub fn user_file(name: &str) -> Option<PathBuf> {
    let given = |name: &str| variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = if cfg!(windows) {
        given("APPDATA")
    } else {
        given("XDG_CONFIG_HOME").or_else(|| {
            let usual = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
            env::home_dir().map(|home| home.join(usual))
        })
    };
    Some(folder?.join("steno").join(name))
}

/// An environment variable that says something.
pub fn variable(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// An environment variable.
    Environment,
    /// The file of a scope.
    File(Scope, PathBuf),
    /// Nowhere: it is what it is where nobody said.
    Default,
}

/// The settings as they are now.
#[derive(Debug)]
pub struct Config {
    /// The files, the one that counts most first.
    files: Vec<(Scope, File)>,
}

impl Config {
    /// Reads the files. Those that are not there say nothing.
    pub fn load() -> Result<Config, CommandError> {
        let mut files = Vec::new();
        for scope in [Scope::Local, Scope::User] {
            match scope.path() {
                Ok(path) => files.push((scope, File::open(&path)?)),
                // Without a home there is nothing of the user's to read.
                Err(_) => continue,
            }
        }
        Ok(Config { files })
    }

    /// What a setting is, and who says so: the environment before the folder before the user.
    pub fn value(&self, setting: &Setting) -> Result<Option<(Value, ConfigSource)>, CommandError> {
        if let Some(text) = variable(setting.variable) {
            let text = text.to_string_lossy();
            let value = setting.kind.parse(&text).map_err(|wanted| {
                CommandError::new(format!("the variable {} is {text}, not {wanted}", setting.variable))
                    .hint(format!("unset {}, or let it be {wanted}", setting.variable))
            })?;
            return Ok(Some((value, ConfigSource::Environment)));
        }
        for (scope, file) in &self.files {
            if let Some(value) = file.value(setting)? {
                return Ok(Some((value, ConfigSource::File(*scope, file.path().to_owned()))));
            }
        }
        Ok(setting.default.map(|value| (value, ConfigSource::Default)))
    }

    /// What a setting is in one scope alone.
    pub fn value_in(&self, scope: Scope, setting: &Setting) -> Result<Option<(Value, ConfigSource)>, CommandError> {
        let file = self.files.iter().find(|(found, _)| *found == scope);
        let Some((_, file)) = file else { return Ok(None) };
        Ok(file.value(setting)?.map(|value| (value, ConfigSource::File(scope, file.path().to_owned()))))
    }

    /// Whether a switch is on.
    pub fn is_on(&self, setting: &Setting) -> Result<bool, CommandError> {
        Ok(matches!(self.value(setting)?, Some((Value::Switch(true), _))))
    }

    /// A limit in tokens, where there is one.
    pub fn tokens(&self, setting: &Setting) -> Result<Option<u64>, CommandError> {
        Ok(match self.value(setting)? {
            Some((Value::Tokens(tokens), _)) => Some(tokens).filter(|tokens| *tokens > 0),
            _ => None,
        })
    }

    /// The limits of a conversation; 0 is no limit.
    pub fn limits(&self) -> Result<Limits, CommandError> {
        let set = |setting| Ok::<u64, CommandError>(self.tokens(setting)?.unwrap_or(0));
        Ok(Limits { chat: set(&MAX_CHAT_TOKENS)?, prompt: set(&MAX_PROMPT_TOKENS)?, tool: set(&MAX_TOOL_TOKENS)? })
    }

    /// What stands in the files and is no setting.
    pub fn strangers(&self) -> Vec<(PathBuf, String)> {
        let files = self.files.iter().map(|(_, file)| file);
        files.flat_map(|file| file.strangers().into_iter().map(|key| (file.path().to_owned(), key))).collect()
    }
}

/// Sets a setting in a scope and says in which file.
pub fn set(scope: Scope, setting: &Setting, value: Value) -> Result<PathBuf, CommandError> {
    let path = scope.path()?;
    File::change(&path, |file| file.set(setting, value))?;
    Ok(path)
}

/// Takes a setting out of a scope; says in which file, and whether it was there.
pub fn unset(scope: Scope, setting: &Setting) -> Result<(PathBuf, bool), CommandError> {
    let path = scope.path()?;
    let file = File::open(&path)?;
    if !file.has(setting) {
        return Ok((path, false));
    }
    File::change(&path, |file| file.unset(setting))?;
    Ok((path, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_in_any_case_and_by_its_variable() {
        assert_eq!(setting("app.autosavechathistory").unwrap().key, "App.AutoSaveChatHistory");
        assert_eq!(setting("cycod_max_chat_tokens").unwrap().key, "App.MaxChatTokens");
    }

    #[test]
    fn what_is_misspelled_is_answered_with_the_nearest_name() {
        for (wrong, right) in
            [("App.AutoSaveHistory", "App.AutoSaveChatHistory"), ("MaxToolToken", "App.MaxToolTokens")]
        {
            let error = setting(wrong).unwrap_err();
            assert!(error.hints()[0].contains(right), "{:?}", error.hints());
        }
        assert!(!setting("colour").unwrap_err().hints()[0].contains("did you mean"));
    }

    #[test]
    fn layouts_know_the_settings_that_concern_them() {
        let known = stenograph_store::layouts::LAYOUTS.iter().flat_map(|layout| layout.info().keys);
        let known: Vec<&str> = known.map(|(key, _)| *key).collect();
        for setting in [&AUTO_SAVE_CHAT_HISTORY, &AUTO_SAVE_TRAJECTORY] {
            assert!(known.contains(&setting.layout_key().as_str()), "{}", setting.layout_key());
        }
    }

    #[test]
    fn the_settings_are_sorted() {
        assert!(SETTINGS.is_sorted_by_key(|setting| setting.key));
    }
}
