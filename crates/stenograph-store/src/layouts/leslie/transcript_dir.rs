//! The folder of a thread's transcripts: free names, texts and the journals beside them, and how many are kept. Only files with
//! Leslie's names are ever removed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stenograph::formats::leslie::is_file_name;

use super::RECORDING_PREFIX;
use super::unit::ConversationUnit;
use crate::error::{Error, Problem};
use crate::files::{Files, folder_of};
use crate::layouts::rewrite::{are_equal, temporary_path, write_from_start};
use crate::layouts::{JournalNeed, StatedFields};
use crate::recover;
use crate::tail::Warning;

/// How many texts a thread keeps.
pub const TEXTS_MAX: usize = 50;

/// A folder for transcripts that one process at a time writes into.
pub struct TranscriptDir<'a> {
    files: &'a dyn Files,
    folder: &'a Path,
    /// The files of this recording, oldest first: texts and journals.
    texts: Vec<PathBuf>,
    journals: Vec<PathBuf>,
    /// How many units have no text.
    without_text: usize,
}

/// The content of a candidate path for a unit.
enum PathContent {
    Nothing,
    /// The same content, from before a crash.
    Ours,
    /// Other content.
    Other,
}

impl<'a> TranscriptDir<'a> {
    /// The folder.
    pub fn new(files: &'a dyn Files, folder: &'a Path) -> TranscriptDir<'a> {
        TranscriptDir { files, folder, texts: Vec::new(), journals: Vec::new(), without_text: 0 }
    }

    /// Stores a unit under the first free name. Finds one that was stored before a crash again.
    pub fn put(&mut self, unit: &ConversationUnit, given: StatedFields) -> Result<(), Error> {
        let telling = unit.render(given)?;
        let path = self.free_path(&telling.name, unit, Some(&telling.text))?;
        if telling.journal == JournalNeed::Needed {
            // The journal first: a text without it would be incomplete.
            self.put_journal(&path, unit)?;
        }
        match self.files.create_new(&path) {
            // The path is free, or has an empty file of ours or the same text.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => drop(made.map_err(|error| Error::at(&path, Problem::Unwritable, error))?),
        }
        self.write(&path, &mut |out| out.write_all(&telling.text))?;
        self.texts.push(path);
        Ok(())
    }

    /// Stores units whose texts would be removed at once, because too many newer ones follow in the same recording: one journal
    /// holds them all.
    pub fn put_without_text(&mut self, units: &[ConversationUnit]) -> Result<(), Error> {
        let (Some(all), Some(first)) = (ConversationUnit::joined(units), units.first()) else { return Ok(()) };
        let path = self.free_path(&first.name()?, &all, None)?;
        self.without_text = units.len();
        self.put_journal(&path, &all)
    }

    /// The first path that is free or has the same content from before a crash.
    fn free_path(&self, name: &str, unit: &ConversationUnit, text: Option<&[u8]>) -> Result<PathBuf, Error> {
        for number in 1_u32.. {
            let path = self.folder.join(numbered(name, number));
            match self.content_at(&path, unit, text)? {
                PathContent::Other => {}
                PathContent::Nothing | PathContent::Ours => return Ok(path),
            }
        }
        Err(Error::about(&self.folder.join(name), Problem::Exists))
    }

    fn content_at(&self, path: &Path, unit: &ConversationUnit, text: Option<&[u8]>) -> Result<PathContent, Error> {
        let journal = recover::beside(path);
        let length = |path: &Path| self.files.length(path).map_err(|error| Error::at(path, Problem::Unreadable, error));
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let same_journal = || {
            let mut there = self.files.reader(&journal, 0)?;
            are_equal(there.as_mut(), unit.journal(self.files)?.as_mut())
        };
        let same_text = || self.files.read(path, 0).map(|there| Some(there.as_slice()) == text);
        Ok(match (length(path)?, length(&journal)?) {
            (None, None) => PathContent::Nothing,
            (_, Some(_)) if same_journal().map_err(unreadable)? => PathContent::Ours,
            // A name that was taken just before a crash.
            (Some(0), None) if text.is_some() => PathContent::Ours,
            (Some(_), None) if same_text().map_err(unreadable)? => PathContent::Ours,
            _ => PathContent::Other,
        })
    }

    fn put_journal(&mut self, text: &Path, unit: &ConversationUnit) -> Result<(), Error> {
        let path = recover::beside(text);
        self.write(&path, &mut |out| io::copy(&mut unit.journal(self.files)?, out).map(|_| ()))?;
        self.journals.push(path);
        Ok(())
    }

    /// Writes a file, completely or not at all. Its name becomes durable with the folder, at the end.
    fn write(&self, path: &Path, fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
        let temporary_path = temporary_path(path);
        let placed =
            write_from_start(self.files, &temporary_path, fill).and_then(|_| self.files.rename(&temporary_path, path));
        if placed.is_err() {
            let _ = self.files.remove(&temporary_path);
        }
        placed.map_err(|error| Error::at(path, Problem::Unwritable, error))
    }

    /// Removes the oldest texts and journals without a text. Returns what was written and removed.
    pub fn tidy(self) -> Result<(Vec<PathBuf>, Vec<Warning>), Error> {
        let mut warnings = Vec::new();
        let synced = self.files.sync_folder(self.folder);
        synced.map_err(|error| Error::at(self.folder, Problem::Unwritable, error))?;
        if self.without_text > 0 {
            let text = format!(
                "{} of the oldest questions have only a journal: a thread keeps {TEXTS_MAX} texts",
                self.without_text
            );
            warnings.push(Warning::new(self.folder, text));
        }
        let mut old: Vec<PathBuf> = texts_of(self.folder, self.files)?;
        old.retain(|path| !self.texts.contains(path));
        let room = TEXTS_MAX.saturating_sub(self.texts.len());
        let surplus = old.len().saturating_sub(room);
        for path in old.iter().take(surplus) {
            self.remove(path, "removed: only the newest texts of a thread are kept", &mut warnings)?;
        }
        for journal in journals_of(self.folder, self.files)? {
            let alone = self.files.length(&journal.with_extension("")).ok().flatten().is_none();
            if alone && !self.journals.contains(&journal) {
                self.remove(&journal, "removed: its text no longer exists", &mut warnings)?;
            }
        }
        let written = self.texts.into_iter().chain(self.journals).collect();
        Ok((written, warnings))
    }

    fn remove(&self, path: &Path, why: &str, warnings: &mut Vec<Warning>) -> Result<(), Error> {
        let removed = self.files.remove(path).and_then(|()| self.files.sync_folder(folder_of(path)));
        removed.map_err(|error| Error::at(path, Problem::Unwritable, error))?;
        warnings.push(Warning::new(path, why));
        Ok(())
    }
}

/// The name with a number before its extension; the first one has none.
fn numbered(name: &str, number: u32) -> String {
    match (number, name.strip_suffix(".txt")) {
        (1, _) | (_, None) => name.to_owned(),
        (number, Some(stem)) => format!("{stem}-{number}.txt"),
    }
}

/// The files that record what happened, in order: each unit by its journal if it has one, otherwise by its text; then active
/// recordings.
pub fn files_to_read(folder: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let texts = texts_of(folder, files).unwrap_or_default();
    let journals = journals_of(folder, files).unwrap_or_default();
    let alone = journals.into_iter().filter(|journal| !journal.with_extension("").is_file());
    let mut units: Vec<PathBuf> = alone.collect();
    units.extend(
        texts.into_iter().map(|text| Some(recover::beside(&text)).filter(|path| path.is_file()).unwrap_or(text)),
    );
    units.sort_by_cached_key(|path| age(path));
    let going_on = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(RECORDING_PREFIX)
            && path.extension().is_some_and(|ending| ending == recover::JOURNAL_EXTENSION)
    };
    units.extend(files.list(folder).unwrap_or_default().into_iter().filter(going_on));
    units
}

/// The texts in a folder with Leslie's names, oldest first.
fn texts_of(folder: &Path, files: &dyn Files) -> Result<Vec<PathBuf>, Error> {
    named(folder, files, is_file_name)
}

/// The journals beside such texts, oldest first.
fn journals_of(folder: &Path, files: &dyn Files) -> Result<Vec<PathBuf>, Error> {
    let text = |name: &str| {
        name.strip_suffix(recover::JOURNAL_EXTENSION).and_then(|name| name.strip_suffix('.')).is_some_and(is_file_name)
    };
    named(folder, files, text)
}

fn named(folder: &Path, files: &dyn Files, fits: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, Error> {
    let all = files.list(folder).map_err(|error| Error::at(folder, Problem::Unreadable, error))?;
    let is_file = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut found: Vec<PathBuf> = all
        .into_iter()
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&fits) && is_file(path))
        .collect();
    found.sort_by_cached_key(|path| age(path));
    Ok(found)
}

/// The sort key of files: the minute in their names, then the time of writing, which names do not contain.
fn age(path: &Path) -> (String, Option<SystemTime>, PathBuf) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let written = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    (name.get(..13).unwrap_or_default().to_owned(), written, path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_comes_before_the_extension() {
        assert_eq!(numbered("20260208-1430-x.txt", 1), "20260208-1430-x.txt");
        assert_eq!(numbered("20260208-1430-x.txt", 2), "20260208-1430-x-2.txt");
    }
}
