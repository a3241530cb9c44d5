//! One settings file in TOML: the part of a key before the dot names the table. Comments and unknown keys survive every change.
//! The store opens and writes the file, whole or not at all.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use stenograph_store::files::{Disk, FileMode, create_folder_durably, folder_of};
use stenograph_store::lock::{self, Lock};
use stenograph_store::{Error, Existing, NewFile, Passes, Problem, Source};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value as Toml};

use super::{SETTINGS, Setting, SettingKind, Value};
use crate::error::CommandError;

/// People write settings files by hand; a larger file is something else.
const SIZE_MAX: u64 = 1 << 20;

#[derive(Debug)]
pub struct SettingsFile {
    path: PathBuf,
    document: DocumentMut,
}

impl SettingsFile {
    /// Reads a file; a missing file counts as empty.
    pub fn open(path: &Path) -> Result<SettingsFile, CommandError> {
        let hint = "correct the file by hand, or move it away and set the values again";
        Ok(SettingsFile { path: path.to_owned(), document: toml(path, hint)?.unwrap_or_default() })
    }

    /// Changes a file under its lock: reads it, applies `change`, and replaces it.
    pub fn change(
        path: &Path,
        change: impl FnOnce(&mut SettingsFile) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        create_folder_durably(&Disk, folder_of(path)).map_err(|error| Error::at(path, Problem::Unwritable, error))?;
        let _lock = Lock::wait(&lock::lock_path(path))?;
        let mut file = SettingsFile::open(path)?;
        change(&mut file)?;
        let mut new = NewFile::options().existing(Existing::Replaced).mode(FileMode::PUBLIC).create(path, [])?;
        new.write_all(file.document.to_string().as_bytes())?;
        Ok(new.commit()?)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file contains a setting, whatever its type.
    pub fn has(&self, setting: &Setting) -> bool {
        self.item(setting).is_some()
    }

    /// The value of a setting.
    pub fn value(&self, setting: &Setting) -> Result<Option<Value>, CommandError> {
        let Some(item) = self.item(setting) else { return Ok(None) };
        let value = match (setting.kind, item.as_value()) {
            (SettingKind::Switch, Some(Toml::Boolean(on))) => Some(Value::Switch(*on.value())),
            (SettingKind::Tokens, Some(Toml::Integer(tokens))) => {
                u64::try_from(*tokens.value()).ok().map(Value::Tokens)
            }
            (SettingKind::Patterns, Some(Toml::Array(array))) => {
                let patterns: Option<Vec<String>> =
                    array.iter().map(|value| value.as_str().map(str::to_owned)).collect();
                patterns.map(Value::Patterns)
            }
            // A quoted value means the same as an unquoted one.
            (kind, Some(Toml::String(text))) => kind.parse(text.value()).ok(),
            _ => None,
        };
        value.map(Some).ok_or_else(|| {
            let (path, key, wanted) = (self.path.display(), setting.key, setting.kind.wanted());
            CommandError::new(format!("{path}: {key} must be {wanted}"))
                .hint(format!("set it again: steno config set {key} VALUE"))
        })
    }

    /// Sets a setting. An existing key keeps its position and its comment.
    pub fn set(&mut self, setting: &Setting, value: Value) -> Result<(), CommandError> {
        let (table, key) = table_and_key(setting);
        let mut new = match value {
            Value::Switch(on) => Toml::from(on),
            Value::Tokens(tokens) => Toml::from(i64::try_from(tokens).unwrap_or(i64::MAX)),
            Value::Patterns(patterns) => Toml::from_iter(patterns),
        };
        let name = spelling_in(self.document.as_table(), table).unwrap_or_else(|| table.to_owned());
        let item = self.document.entry(&name).or_insert(Item::Table(Table::new()));
        let Some(table) = item.as_table_like_mut() else {
            return Err(CommandError::new(format!("{}: {name} must be a table", self.path.display()))
                .hint("correct the file by hand: settings follow a line [App]"));
        };
        let name = spelling_in(table, key).unwrap_or_else(|| key.to_owned());
        match table.get_mut(&name).and_then(Item::as_value_mut) {
            Some(old) => {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            None => {
                table.insert(&name, Item::Value(new));
            }
        }
        Ok(())
    }

    pub fn unset(&mut self, setting: &Setting) -> Result<(), CommandError> {
        let (table, key) = table_and_key(setting);
        if let Some(name) = spelling_in(self.document.as_table(), table)
            && let Some(table) = self.document.get_mut(&name).and_then(Item::as_table_like_mut)
            && let Some(name) = spelling_in(table, key)
        {
            table.remove(&name);
        }
        Ok(())
    }

    /// The keys that are not settings.
    pub fn unknown_keys(&self) -> Vec<String> {
        const KEYS_MAX: usize = 20;
        let mut keys = Vec::new();
        for (table, item) in self.document.as_table() {
            match item.as_table_like() {
                Some(inner) => keys.extend(inner.iter().map(|(key, _)| format!("{table}.{key}"))),
                None => keys.push(table.to_owned()),
            }
        }
        keys.retain(|key| !SETTINGS.iter().any(|setting| setting.key.eq_ignore_ascii_case(key)));
        keys.truncate(KEYS_MAX);
        keys
    }

    fn item(&self, setting: &Setting) -> Option<&Item> {
        let (table, key) = table_and_key(setting);
        let table = self.document.get(&spelling_in(self.document.as_table(), table)?)?.as_table_like()?;
        table.get(&spelling_in(table, key)?)
    }
}

/// Reads a TOML file that people write by hand; `None` if it is missing. Errors carry `hint`.
pub fn toml(path: &Path, hint: &str) -> Result<Option<DocumentMut>, CommandError> {
    let bad = |what: &str| CommandError::new(format!("{}: {what}", path.display())).hint(hint);
    let mut bytes = Vec::new();
    match Source::open(path, Passes::Once) {
        Err(error) if error.problem == Problem::Missing => return Ok(None),
        // If the folder does not exist or is not a folder, there is no file either.
        Err(_) if !folder_of(path).is_dir() => return Ok(None),
        Err(error) => return Err(error.into()),
        Ok(mut source) => {
            source.pass()?.take(SIZE_MAX + 1).read_to_end(&mut bytes)?;
        }
    }
    if bytes.len() as u64 > SIZE_MAX {
        return Err(bad("the file is too large for a hand-written file"));
    }
    let text = String::from_utf8(bytes).map_err(|_| bad("the file is not UTF-8"))?;
    let document = text.parse::<DocumentMut>().map_err(|error| {
        let line = error.span().and_then(|span| text.get(..span.start)).map(|before| before.lines().count().max(1));
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        bad(&format!("{line}not TOML: {}", error.message().lines().next().unwrap_or_default()))
    })?;
    Ok(Some(document))
}

/// The table and the key of a setting.
fn table_and_key(setting: &Setting) -> (&'static str, &'static str) {
    setting.key.split_once('.').unwrap_or(("", setting.key))
}

/// The spelling of a key in a table: case does not matter.
fn spelling_in(table: &dyn TableLike, key: &str) -> Option<String> {
    table.iter().map(|(found, _)| found).find(|found| found.eq_ignore_ascii_case(key)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::{AUTO_SAVE_CHAT_HISTORY, AUTO_SAVE_TRAJECTORY, MAX_CHAT_TOKENS};
    use super::*;

    fn file(text: &str) -> SettingsFile {
        SettingsFile { path: PathBuf::from("config.toml"), document: text.parse().unwrap() }
    }

    #[test]
    fn a_change_keeps_comments_order_and_unknown_keys() {
        let mut file = file("# mine\n[app]\nautosavechathistory = true # for now\nOther = [1,\n 2]\n\n[Else]\na=1\n");
        file.set(&AUTO_SAVE_CHAT_HISTORY, Value::Switch(false)).unwrap();
        file.set(&MAX_CHAT_TOKENS, Value::Tokens(9)).unwrap();
        let expected = "# mine\n[app]\nautosavechathistory = false # for now\nOther = [1,\n 2]\nMaxChatTokens = 9\n\n[Else]\na=1\n";
        assert_eq!(file.document.to_string(), expected);
        assert_eq!(file.unknown_keys(), ["app.Other", "Else.a"]);
        file.unset(&MAX_CHAT_TOKENS).unwrap();
        assert_eq!(file.value(&MAX_CHAT_TOKENS).unwrap(), None);
    }

    #[test]
    fn every_toml_spelling_of_a_table_is_read() {
        for text in [
            "App.AutoSaveTrajectory = false",
            "App = { AutoSaveTrajectory = \"no\" }",
            "[APP]\nautosaveTrajectory=false",
        ] {
            let mut file = file(text);
            assert_eq!(file.value(&AUTO_SAVE_TRAJECTORY).unwrap(), Some(Value::Switch(false)), "{text}");
            file.set(&AUTO_SAVE_TRAJECTORY, Value::Switch(true)).unwrap();
            file.set(&AUTO_SAVE_CHAT_HISTORY, Value::Switch(false)).unwrap();
            let again = SettingsFile { document: file.document.to_string().parse().unwrap(), ..file };
            assert_eq!(again.value(&AUTO_SAVE_TRAJECTORY).unwrap(), Some(Value::Switch(true)), "{text}");
            assert_eq!(again.value(&AUTO_SAVE_CHAT_HISTORY).unwrap(), Some(Value::Switch(false)), "{text}");
        }
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_an_error_and_not_a_default() {
        assert!(file("App.AutoSaveTrajectory = 3").value(&AUTO_SAVE_TRAJECTORY).is_err());
        assert!(file("App.MaxChatTokens = -3").value(&MAX_CHAT_TOKENS).is_err());
        assert!(file("App = 3").set(&MAX_CHAT_TOKENS, Value::Tokens(1)).is_err());
    }
}
