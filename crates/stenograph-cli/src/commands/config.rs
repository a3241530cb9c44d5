//! `steno config`: shows and changes settings. `config.rs` lists the settings and their precedence.

mod folder;

use stenograph::json::Draft;

use crate::config::{self, Config, ConfigScope, ConfigSource, SETTINGS, Setting, Value};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, OutputForm, TextStyle, harmless_json, harmless_line};

/// Show and change settings
///
/// Settings have the same names as in CycoD; case does not matter. They are in TOML files: user settings in
/// ~/.config/steno/config.toml (XDG_CONFIG_HOME replaces ~/.config; ~/Library/Application Support/steno on macOS,
/// %APPDATA%\steno on Windows), folder settings in .steno/config.toml. STENO_CONFIG names another file for the user settings.
///
/// Environment variables override folder settings, and folder settings override user settings.
#[derive(Debug, clap::Args)]
#[command(after_help = help())]
pub struct Options {
    #[command(subcommand)]
    action: Action,
}

/// The settings, and examples.
fn help() -> String {
    let width = SETTINGS.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    let settings: String =
        SETTINGS.iter().map(|setting| format!("  {:<width$}  {}\n", setting.key, setting.short)).collect();
    format!("Settings:\n{settings}\n{EXAMPLES}")
}

const EXAMPLES: &str = "\
Examples:
  steno config list
  steno config set App.AutoSaveChatHistory false
  steno config set App.MaxChatTokens 160000 --local     for this folder only
  steno config get app.maxchattokens
  steno config unset App.AutoSaveChatHistory
  steno config folder add ~/transcripts                 also index this folder";

/// What to do with the settings.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List all settings with their values and origins
    #[command(
        after_help = "Examples:\n  steno config list\n  steno config list --json | jq -r 'select(.origin != \"default\").key'"
    )]
    List {
        #[command(flatten)]
        scope: ScopeOptions,
        /// Print one JSON object per setting
        #[arg(long)]
        json: bool,
    },
    /// Print the value of a setting
    #[command(after_help = "Examples:\n  steno config get App.AutoSaveTrajectory")]
    Get {
        /// Name of the setting
        #[arg(value_name = "KEY", add = crate::completion::setting())]
        key: String,
        #[command(flatten)]
        scope: ScopeOptions,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Set a setting
    #[command(
        after_help = "Examples:\n  steno config set App.AutoSaveTrajectory false\n  steno config set App.MaxToolTokens 50000 --local"
    )]
    Set {
        /// Name of the setting
        #[arg(value_name = "KEY", add = crate::completion::setting())]
        key: String,
        /// New value
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        scope: ScopeOptions,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove a setting from its file
    #[command(after_help = "Examples:\n  steno config unset App.AutoSaveTrajectory")]
    Unset {
        /// Name of the setting
        #[arg(value_name = "KEY", add = crate::completion::setting())]
        key: String,
        #[command(flatten)]
        scope: ScopeOptions,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Manage additional folders to index
    Folder(folder::Options),
}

/// Whose settings are meant.
#[derive(Clone, Copy, Debug, clap::Args)]
struct ScopeOptions {
    /// Use the settings of this folder
    #[arg(long, conflicts_with = "user")]
    local: bool,
    /// Use the settings of the user
    #[arg(long)]
    user: bool,
}

impl ScopeOptions {
    fn named(self) -> Option<ConfigScope> {
        match (self.local, self.user) {
            (true, _) => Some(ConfigScope::Local),
            (_, true) => Some(ConfigScope::User),
            _ => None,
        }
    }

    /// Without a scope, a setting is written for the user, so that no file appears in the folder unasked.
    fn to_write(self) -> ConfigScope {
        self.named().unwrap_or(ConfigScope::User)
    }
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Action::List { scope, json } => list(*scope, OutputForm::of(*json), output),
        Action::Folder(options) => folder::run(options, output),
        Action::Get { key, scope, json } => show(config::setting(key)?, *scope, OutputForm::of(*json), output),
        Action::Set { key, value, scope, json } => {
            set(config::setting(key)?, value, scope.to_write(), OutputForm::of(*json), output)
        }
        Action::Unset { key, scope, json } => {
            unset(config::setting(key)?, scope.to_write(), OutputForm::of(*json), output)
        }
    }
}

type FoundValue = Option<(Value, ConfigSource)>;

fn found(config: &Config, setting: &Setting, scope: ScopeOptions) -> Result<FoundValue, CommandError> {
    match scope.named() {
        None => config.value(setting),
        Some(scope) => config.value_in(scope, setting),
    }
}

fn list(scope: ScopeOptions, form: OutputForm, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let config = Config::load()?;
    let width = SETTINGS.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    for setting in SETTINGS {
        let found = found(&config, setting, scope)?;
        if form == OutputForm::Json {
            output.line(&harmless_json(&json(setting, &found)))?;
            continue;
        }
        // The file of a folder may come from anybody.
        let value = found.as_ref().map_or_else(|| "-".to_owned(), |(value, _)| harmless_line(&value.to_string()));
        let origin = match &found {
            None => "not set".to_owned(),
            Some((_, ConfigSource::Default)) => "default".to_owned(),
            Some((_, ConfigSource::Environment)) => format!("environment variable {}", setting.variable),
            Some((_, ConfigSource::SettingsFile(scope, path))) => format!("{}: {}", scope.name(), path.display()),
        };
        let key = output.colour().paint(TextStyle::Strong, &format!("{:<width$}", setting.key));
        let origin = output.colour().paint(TextStyle::Faint, &harmless_line(&origin));
        output.line(&format!("{key}  {value:<8}  {origin}"))?;
    }
    for (path, key) in config.unknown_keys() {
        output.say(&format!("warning: {}: unknown setting: {}", path.display(), harmless_line(&key)));
    }
    Ok(ExitStatus::Done)
}

fn show(
    setting: &Setting,
    scope: ScopeOptions,
    form: OutputForm,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let found = found(&Config::load()?, setting, scope)?;
    match (form, &found) {
        (OutputForm::Json, _) => output.line(&harmless_json(&json(setting, &found)))?,
        (OutputForm::People, Some((value, _))) => output.line(&harmless_line(&value.to_string()))?,
        (OutputForm::People, None) => output.say(&format!("{} is not set", setting.key)),
    }
    Ok(if found.is_some() { ExitStatus::Done } else { ExitStatus::No })
}

fn set(
    setting: &Setting,
    text: &str,
    scope: ConfigScope,
    form: OutputForm,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let value = setting.kind.parse(text).map_err(|wanted| {
        CommandError::new(format!("{} must be {wanted}, not {text}", setting.key)).hint(format!(
            "steno config set {} {}",
            setting.key,
            example(setting)
        ))
    })?;
    let path = config::set(scope, setting, value.clone())?;
    let origin = ConfigSource::SettingsFile(scope, path.clone());
    match form {
        OutputForm::Json => output.line(&harmless_json(&json(setting, &Some((value, origin.clone())))))?,
        OutputForm::People => output.say(&format!("{} set to {value} in {}", setting.key, path.display())),
    }
    // A source with higher precedence hides the value just written; the user should learn that now.
    if let Some((effective, source)) = Config::load()?.value(setting)?
        && source != origin
    {
        let by = match source {
            ConfigSource::Environment => format!("the environment variable {}", setting.variable),
            ConfigSource::SettingsFile(_, path) => path.display().to_string(),
            ConfigSource::Default => return Ok(ExitStatus::Done),
        };
        output.say(&format!("warning: {by} overrides it with {effective}"));
    }
    Ok(ExitStatus::Done)
}

fn example(setting: &Setting) -> &'static str {
    match setting.kind {
        config::SettingKind::Switch => "false",
        config::SettingKind::Tokens => "160000",
        config::SettingKind::Patterns => "'ACME-[0-9]{6}'",
    }
}

fn unset(
    setting: &Setting,
    scope: ConfigScope,
    form: OutputForm,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let (path, was) = config::unset(scope, setting)?;
    match (form, was) {
        (OutputForm::Json, _) => {
            let draft = Draft::new().with("key", setting.key).with("removed", was);
            output.line(&harmless_json(&draft.with("file", path.display().to_string()).render(None)))?;
        }
        (OutputForm::People, true) => output.say(&format!("{} removed from {}", setting.key, path.display())),
        (OutputForm::People, false) => output.say(&format!("{} is not set in {}", setting.key, path.display())),
    }
    Ok(if was { ExitStatus::Done } else { ExitStatus::No })
}

fn json(setting: &Setting, found: &FoundValue) -> String {
    let spelled = |value: &Value| match value {
        Value::Switch(_) | Value::Tokens(_) => value.to_string(),
        Value::Patterns(patterns) => super::archive::strings_json(patterns),
    };
    let (value, origin, file) = match found {
        None => ("null".to_owned(), "none", None),
        Some((value, ConfigSource::Default)) => (spelled(value), "default", None),
        Some((value, ConfigSource::Environment)) => (spelled(value), "environment", None),
        Some((value, ConfigSource::SettingsFile(scope, path))) => {
            (spelled(value), scope.name(), Some(path.display().to_string()))
        }
    };
    Draft::new()
        .with("key", setting.key)
        .with_json("value", value)
        .with("origin", origin)
        .with("file", file)
        .with("variable", setting.variable)
        .with("about", setting.about)
        .render(None)
}
