//! Settings: which exist, which files hold them, and which file takes precedence. Only this module reads settings; it passes
//! them on as values. `config/file.rs` reads and writes one file.

mod file;
mod value;

use std::env;
use std::path::{Path, PathBuf};

use stenograph::edit::trim::Limits;

use crate::error::CommandError;
use file::SettingsFile;
pub use file::toml;
pub use value::{SettingKind, Value};

#[derive(Debug)]
pub struct Setting {
    /// Its name, as in CycoD.
    pub key: &'static str,
    /// The environment variable that overrides every file.
    pub variable: &'static str,
    pub kind: SettingKind,
    /// The value if no file and no variable sets it.
    pub default: Option<Value>,
    /// A few words about it, for the help.
    pub short: &'static str,
    /// Its description.
    pub about: &'static str,
}

impl Setting {
    /// The name that layouts use for it: `App.AutoSaveTrajectory` becomes `auto_save_trajectory`.
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
pub static SETTINGS: [&Setting; 7] = [
    &AUTO_SAVE_CHAT_HISTORY,
    &AUTO_SAVE_TRAJECTORY,
    &MAX_CHAT_TOKENS,
    &MAX_PROMPT_TOKENS,
    &MAX_TOOL_TOKENS,
    &REDACT_ALLOW,
    &REDACT_PATTERNS,
];

/// Whether recordings save chat histories automatically.
pub static AUTO_SAVE_CHAT_HISTORY: Setting = Setting {
    key: "App.AutoSaveChatHistory",
    variable: "CYCOD_AUTO_SAVE_CHAT_HISTORY",
    kind: SettingKind::Switch,
    default: Some(Value::Switch(true)),
    short: "also save chat histories in ~/.cycod/history",
    about: "also save the chat history in ~/.cycod/history when recording to cycod",
};

/// Whether recordings save trajectories automatically.
pub static AUTO_SAVE_TRAJECTORY: Setting = Setting {
    key: "App.AutoSaveTrajectory",
    variable: "CYCOD_AUTO_SAVE_TRAJECTORY",
    kind: SettingKind::Switch,
    default: Some(Value::Switch(true)),
    short: "also save trajectories there",
    about: "also save the trajectory there when recording to cycod",
};

/// The token limit of a conversation that is sent.
pub static MAX_CHAT_TOKENS: Setting = Setting {
    key: "App.MaxChatTokens",
    variable: "CYCOD_MAX_CHAT_TOKENS",
    kind: SettingKind::Tokens,
    default: None,
    short: "token limit of a conversation; 0 means no limit",
    about: "token limit of a conversation, unless --max-tokens is given; 0 means no limit",
};

/// The token limit of one user message.
pub static MAX_PROMPT_TOKENS: Setting = Setting {
    key: "App.MaxPromptTokens",
    variable: "CYCOD_MAX_PROMPT_TOKENS",
    kind: SettingKind::Tokens,
    default: None,
    short: "token limit of a user message",
    about: "token limit of a user message, unless --max-prompt-tokens is given; 0 means no limit",
};

/// The token limit of one tool result.
pub static MAX_TOOL_TOKENS: Setting = Setting {
    key: "App.MaxToolTokens",
    variable: "CYCOD_MAX_TOOL_TOKENS",
    kind: SettingKind::Tokens,
    default: None,
    short: "token limit of a tool result",
    about: "token limit of a tool result, unless --max-tool-tokens is given; 0 means no limit",
};

/// Texts that redaction leaves alone.
pub static REDACT_ALLOW: Setting = Setting {
    key: "Redact.Allow",
    variable: "STENO_REDACT_ALLOW",
    kind: SettingKind::Patterns,
    default: None,
    short: "regular expressions of texts that are never masked",
    about: "regular expressions of texts that are never masked",
};

/// Further secrets.
pub static REDACT_PATTERNS: Setting = Setting {
    key: "Redact.Patterns",
    variable: "STENO_REDACT_PATTERNS",
    kind: SettingKind::Patterns,
    default: None,
    short: "regular expressions of further secrets",
    about: "regular expressions of further secrets; a group marks the part to mask",
};

/// Finds a setting by its name or its environment variable, ignoring case.
pub fn setting(name: &str) -> Result<&'static Setting, CommandError> {
    let is_named =
        |setting: &&&Setting| setting.key.eq_ignore_ascii_case(name) || setting.variable.eq_ignore_ascii_case(name);
    SETTINGS.iter().find(is_named).copied().ok_or_else(|| {
        let error = CommandError::new(format!("unknown setting: {name}"));
        match nearest(name) {
            Some(setting) => {
                error.hint(format!("did you mean {}? list all settings with steno config list", setting.key))
            }
            None => error.hint("list all settings with steno config list"),
        }
    })
}

/// The setting with the most similar name, if any is similar enough.
fn nearest(name: &str) -> Option<&'static Setting> {
    const SIMILARITY_MIN: f64 = 0.5;
    let wanted = last_segment(name);
    let similarity = |setting: &Setting| strsim::normalized_damerau_levenshtein(&wanted, &last_segment(setting.key));
    let found = SETTINGS.into_iter().map(|setting| (similarity(setting), setting));
    let found = found.max_by(|(a, _), (b, _)| a.total_cmp(b));
    found.filter(|(similarity, _)| *similarity >= SIMILARITY_MIN).map(|(_, setting)| setting)
}

fn last_segment(name: &str) -> String {
    // The argument may be megabytes long; the name of a setting is short.
    const CHARS_MAX: usize = 100;
    name.rsplit('.').next().unwrap_or(name).chars().take(CHARS_MAX).collect::<String>().to_ascii_lowercase()
}

/// Where settings apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigScope {
    /// In the working folder.
    Local,
    /// Everywhere, for this user.
    User,
}

impl ConfigScope {
    pub fn name(self) -> &'static str {
        match self {
            ConfigScope::Local => "local",
            ConfigScope::User => "user",
        }
    }

    /// The settings file of this scope.
    pub fn path(self) -> Result<PathBuf, CommandError> {
        match self {
            ConfigScope::Local => Ok(Path::new(".steno").join(FILE_NAME)),
            ConfigScope::User => user_path().ok_or_else(|| {
                CommandError::new("no folder for user settings: neither HOME nor STENO_CONFIG is set")
                    .hint("set STENO_CONFIG to a file, or use --local")
            }),
        }
    }
}

const FILE_NAME: &str = "config.toml";

fn user_path() -> Option<PathBuf> {
    variable("STENO_CONFIG").map(PathBuf::from).or_else(|| user_file(FILE_NAME))
}

/// A file in the user's configuration folder; `None` without such a folder.
pub fn user_file(name: &str) -> Option<PathBuf> {
    let folder_in = |name: &str| variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = if cfg!(windows) {
        folder_in("APPDATA")
    } else {
        folder_in("XDG_CONFIG_HOME").or_else(|| {
            let usual = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
            env::home_dir().map(|home| home.join(usual))
        })
    };
    Some(folder?.join("steno").join(name))
}

/// The value of an environment variable that is set and not empty.
pub fn variable(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    Environment,
    SettingsFile(ConfigScope, PathBuf),
    /// No source sets it.
    Default,
}

/// All settings files, loaded.
#[derive(Debug)]
pub struct Config {
    /// The file with the highest precedence first.
    files: Vec<(ConfigScope, SettingsFile)>,
}

impl Config {
    /// Reads the files. A missing file counts as empty.
    pub fn load() -> Result<Config, CommandError> {
        let mut files = Vec::new();
        for scope in [ConfigScope::Local, ConfigScope::User] {
            match scope.path() {
                Ok(path) => files.push((scope, SettingsFile::open(&path)?)),
                // Without a home folder there are no user settings.
                Err(_) => continue,
            }
        }
        Ok(Config { files })
    }

    /// The value of a setting and its source. The environment precedes the folder, the folder precedes the user.
    pub fn value(&self, setting: &Setting) -> Result<Option<(Value, ConfigSource)>, CommandError> {
        if let Some(text) = variable(setting.variable) {
            let text = text.to_string_lossy();
            let value = setting.kind.parse(&text).map_err(|wanted| {
                CommandError::new(format!("invalid value of {}: {text}; expected {wanted}", setting.variable))
                    .hint(format!("unset {}, or set it to {wanted}", setting.variable))
            })?;
            return Ok(Some((value, ConfigSource::Environment)));
        }
        for (scope, file) in &self.files {
            if let Some(value) = file.value(setting)? {
                return Ok(Some((value, ConfigSource::SettingsFile(*scope, file.path().to_owned()))));
            }
        }
        Ok(setting.default.clone().map(|value| (value, ConfigSource::Default)))
    }

    /// The value of a setting in one scope only.
    pub fn value_in(
        &self,
        scope: ConfigScope,
        setting: &Setting,
    ) -> Result<Option<(Value, ConfigSource)>, CommandError> {
        let file = self.files.iter().find(|(found, _)| *found == scope);
        let Some((_, file)) = file else { return Ok(None) };
        Ok(file.value(setting)?.map(|value| (value, ConfigSource::SettingsFile(scope, file.path().to_owned()))))
    }

    /// Whether a switch is on.
    pub fn is_on(&self, setting: &Setting) -> Result<bool, CommandError> {
        Ok(matches!(self.value(setting)?, Some((Value::Switch(true), _))))
    }

    /// A token limit; `None` means no limit.
    pub fn tokens(&self, setting: &Setting) -> Result<Option<u64>, CommandError> {
        Ok(match self.value(setting)? {
            Some((Value::Tokens(tokens), _)) => Some(tokens).filter(|tokens| *tokens > 0),
            _ => None,
        })
    }

    /// A list of patterns.
    pub fn list(&self, setting: &Setting) -> Result<Vec<String>, CommandError> {
        Ok(match self.value(setting)? {
            Some((Value::Patterns(patterns), _)) => patterns,
            _ => Vec::new(),
        })
    }

    /// The limits of a conversation; 0 means no limit.
    pub fn limits(&self) -> Result<Limits, CommandError> {
        let set = |setting| Ok::<u64, CommandError>(self.tokens(setting)?.unwrap_or(0));
        Ok(Limits { chat: set(&MAX_CHAT_TOKENS)?, prompt: set(&MAX_PROMPT_TOKENS)?, tool: set(&MAX_TOOL_TOKENS)? })
    }

    /// The keys in the files that are not settings.
    pub fn unknown_keys(&self) -> Vec<(PathBuf, String)> {
        let files = self.files.iter().map(|(_, file)| file);
        files.flat_map(|file| file.unknown_keys().into_iter().map(|key| (file.path().to_owned(), key))).collect()
    }
}

/// Sets a setting in a scope and returns the path of the file.
pub fn set(scope: ConfigScope, setting: &Setting, value: Value) -> Result<PathBuf, CommandError> {
    let path = scope.path()?;
    SettingsFile::change(&path, |file| file.set(setting, value))?;
    Ok(path)
}

/// Removes a setting from a scope; returns the path of the file and whether it contained the setting.
pub fn unset(scope: ConfigScope, setting: &Setting) -> Result<(PathBuf, bool), CommandError> {
    let path = scope.path()?;
    let file = SettingsFile::open(&path)?;
    if !file.has(setting) {
        return Ok((path, false));
    }
    SettingsFile::change(&path, |file| file.unset(setting))?;
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
    fn a_misspelled_name_suggests_the_nearest_one() {
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
