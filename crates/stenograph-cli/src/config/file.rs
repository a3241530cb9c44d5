//! One file of settings, in TOML: a table for what stands before a key's point, the keys in it. What people wrote by hand, comments
//! and keys we do not know included, stays as it is. Files are opened and written by the store, whole or not at all.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use stenograph_store::files::{Disk, FileMode, folder_of, create_folder_durably};
use stenograph_store::lock::{self, Lock};
use stenograph_store::{Error, Existing, NewFile, Passes, Problem, Source};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value as Toml};

use super::{Kind, SETTINGS, Setting, Value};
use crate::error::CommandError;

/// A file of settings is written by hand; what is larger is something else.
const SIZE_MAX: u64 = 1 << 20;

/// The settings of one file.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    document: DocumentMut,
}

impl File {
    /// Reads a file; one that is not there is empty.
    pub fn open(path: &Path) -> Result<File, CommandError> {
        let hint = "mend the file by hand, or move it out of the way and set again what you need";
        Ok(File { path: path.to_owned(), document: toml(path, hint)?.unwrap_or_default() })
    }

    /// Changes a file: reads it, and writes it anew while nobody else does.
    pub fn change(path: &Path, change: impl FnOnce(&mut File) -> Result<(), CommandError>) -> Result<(), CommandError> {
        create_folder_durably(&Disk, folder_of(path)).map_err(|error| Error::at(path, Problem::Unwritable, error))?;
        let _lock = Lock::wait(&lock::beside(path))?;
        let mut file = File::open(path)?;
        change(&mut file)?;
        let mut new = NewFile::options().existing(Existing::Replaced).mode(FileMode::PUBLIC).create(path, [])?;
        new.write_all(file.document.to_string().as_bytes())?;
        Ok(new.commit()?)
    }

    /// Which file it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it says something about a setting, of whatever kind.
    pub fn has(&self, setting: &Setting) -> bool {
        self.item(setting).is_some()
    }

    /// What it says about a setting.
    pub fn value(&self, setting: &Setting) -> Result<Option<Value>, CommandError> {
        let Some(item) = self.item(setting) else { return Ok(None) };
        let value = match (setting.kind, item.as_value()) {
            (Kind::Switch, Some(Toml::Boolean(on))) => Some(Value::Switch(*on.value())),
            (Kind::Tokens, Some(Toml::Integer(tokens))) => u64::try_from(*tokens.value()).ok().map(Value::Tokens),
            // What is quoted is meant all the same.
            (kind, Some(Toml::String(text))) => kind.parse(text.value()).ok(),
            _ => None,
        };
        value.map(Some).ok_or_else(|| {
            let (path, key, wanted) = (self.path.display(), setting.key, setting.kind.wanted());
            CommandError::new(format!("{path}: {key} is not {wanted}"))
                .hint(format!("set it anew: steno config set {key} VALUE"))
        })
    }

    /// Sets a setting: in its place where it has one, with the comment beside it.
    pub fn set(&mut self, setting: &Setting, value: Value) -> Result<(), CommandError> {
        let (table, key) = steps(setting);
        let mut new = match value {
            Value::Switch(on) => Toml::from(on),
            Value::Tokens(tokens) => Toml::from(i64::try_from(tokens).unwrap_or(i64::MAX)),
        };
        let name = spelled(self.document.as_table(), table).unwrap_or_else(|| table.to_owned());
        let item = self.document.entry(&name).or_insert(Item::Table(Table::new()));
        let Some(table) = item.as_table_like_mut() else {
            return Err(CommandError::new(format!("{}: {name} is not a table", self.path.display()))
                .hint("mend the file by hand: settings stand below a line [App]"));
        };
        let name = spelled(table, key).unwrap_or_else(|| key.to_owned());
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

    /// Takes a setting out.
    pub fn unset(&mut self, setting: &Setting) -> Result<(), CommandError> {
        let (table, key) = steps(setting);
        if let Some(name) = spelled(self.document.as_table(), table)
            && let Some(table) = self.document.get_mut(&name).and_then(Item::as_table_like_mut)
            && let Some(name) = spelled(table, key)
        {
            table.remove(&name);
        }
        Ok(())
    }

    /// The keys that are no settings.
    pub fn strangers(&self) -> Vec<String> {
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
        let (table, key) = steps(setting);
        let table = self.document.get(&spelled(self.document.as_table(), table)?)?.as_table_like()?;
        table.get(&spelled(table, key)?)
    }
}

/// A file of TOML that people write by hand; `None` where there is none. What is wrong with it is told with the hint.
pub fn toml(path: &Path, hint: &str) -> Result<Option<DocumentMut>, CommandError> {
    let bad = |what: &str| CommandError::new(format!("{}: {what}", path.display())).hint(hint);
    let mut bytes = Vec::new();
    match Source::open(path, Passes::Once) {
        Err(error) if error.problem == Problem::Missing => return Ok(None),
        // Where a home folder is no folder there is nothing of the user's either.
        Err(_) if !folder_of(path).is_dir() => return Ok(None),
        Err(error) => return Err(error.into()),
        Ok(mut source) => {
            source.pass()?.take(SIZE_MAX + 1).read_to_end(&mut bytes)?;
        }
    }
    if bytes.len() as u64 > SIZE_MAX {
        return Err(bad("is too large to be written by hand"));
    }
    let text = String::from_utf8(bytes).map_err(|_| bad("is not UTF-8"))?;
    let document = text.parse::<DocumentMut>().map_err(|error| {
        let line = error.span().and_then(|span| text.get(..span.start)).map(|before| before.lines().count().max(1));
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        bad(&format!("{line}not TOML: {}", error.message().lines().next().unwrap_or_default()))
    })?;
    Ok(Some(document))
}

/// The table and the key in it that a setting's name means.
fn steps(setting: &Setting) -> (&'static str, &'static str) {
    setting.key.split_once('.').unwrap_or(("", setting.key))
}

/// How a table spells a key: people need not mind the case.
fn spelled(table: &dyn TableLike, key: &str) -> Option<String> {
    table.iter().map(|(found, _)| found).find(|found| found.eq_ignore_ascii_case(key)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::{AUTO_SAVE_CHAT_HISTORY, AUTO_SAVE_TRAJECTORY, MAX_CHAT_TOKENS};
    use super::*;

    fn file(text: &str) -> File {
        File { path: PathBuf::from("config.toml"), document: text.parse().unwrap() }
    }

    #[test]
    fn a_change_leaves_comments_order_and_strange_keys_alone() {
        let mut file = file("# mine\n[app]\nautosavechathistory = true # for now\nOther = [1,\n 2]\n\n[Else]\na=1\n");
        file.set(&AUTO_SAVE_CHAT_HISTORY, Value::Switch(false)).unwrap();
        file.set(&MAX_CHAT_TOKENS, Value::Tokens(9)).unwrap();
        let expected = "# mine\n[app]\nautosavechathistory = false # for now\nOther = [1,\n 2]\nMaxChatTokens = 9\n\n[Else]\na=1\n";
        assert_eq!(file.document.to_string(), expected);
        assert_eq!(file.strangers(), ["app.Other", "Else.a"]);
        file.unset(&MAX_CHAT_TOKENS).unwrap();
        assert_eq!(file.value(&MAX_CHAT_TOKENS).unwrap(), None);
    }

    #[test]
    fn every_way_to_spell_a_table_is_read() {
        for text in [
            "App.AutoSaveTrajectory = false",
            "App = { AutoSaveTrajectory = \"no\" }",
            "[APP]\nautosaveTrajectory=false",
        ] {
            let mut file = file(text);
            assert_eq!(file.value(&AUTO_SAVE_TRAJECTORY).unwrap(), Some(Value::Switch(false)), "{text}");
            file.set(&AUTO_SAVE_TRAJECTORY, Value::Switch(true)).unwrap();
            file.set(&AUTO_SAVE_CHAT_HISTORY, Value::Switch(false)).unwrap();
            let again = File { document: file.document.to_string().parse().unwrap(), ..file };
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
