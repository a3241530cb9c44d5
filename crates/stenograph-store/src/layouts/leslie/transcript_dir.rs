//! Stores the transcripts of one thread: chooses unused file names, writes texts and journals, and removes the oldest. It only
//! removes files with Leslie's names.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stenograph::formats::leslie::{QUERY_LENGTH_MAX, is_file_name};

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
    text_paths: Vec<PathBuf>,
    journal_paths: Vec<PathBuf>,
    /// How many units have no text.
    journal_only_count: usize,
}

/// The content of a candidate path for a unit.
enum PathContent {
    Free,
    /// The same unit, from before a crash.
    SameUnit,
    /// Other content.
    Taken,
}

impl<'a> TranscriptDir<'a> {
    pub fn new(files: &'a dyn Files, folder: &'a Path) -> TranscriptDir<'a> {
        TranscriptDir { files, folder, text_paths: Vec::new(), journal_paths: Vec::new(), journal_only_count: 0 }
    }

    /// Stores a unit under the first free name. If a crash interrupted an earlier attempt, reuses its file.
    pub fn store_unit(&mut self, unit: &ConversationUnit, stated: StatedFields) -> Result<(), Error> {
        let rendered = unit.render(stated)?;
        let path = self.free_path(&rendered.name, unit, Some(&rendered.text))?;
        if rendered.journal == JournalNeed::Needed {
            // The journal first: a text without it would be incomplete.
            self.put_journal(&path, unit)?;
        }
        match self.files.create_new(&path) {
            // The path is free, or has an empty file of ours or the same text.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => drop(created.map_err(|error| Error::at(&path, Problem::Unwritable, error))?),
        }
        self.write(&path, &mut |out| out.write_all(&rendered.text))?;
        self.text_paths.push(path);
        Ok(())
    }

    /// Stores units beyond the number of texts that a thread keeps, because newer ones follow in the same recording. One
    /// journal holds them all.
    pub fn store_journal_only(&mut self, units: &[ConversationUnit]) -> Result<(), Error> {
        let (Some(all), Some(first)) = (ConversationUnit::joined(units), units.first()) else { return Ok(()) };
        let path = self.free_path(&first.name()?, &all, None)?;
        self.journal_only_count = units.len();
        self.put_journal(&path, &all)
    }

    /// The first path that is free or has the same content from before a crash.
    fn free_path(&self, name: &str, unit: &ConversationUnit, text: Option<&[u8]>) -> Result<PathBuf, Error> {
        for number in 1_u32.. {
            let path = self.folder.join(with_number(name, number));
            // Two equal units of one recording are two units.
            if self.text_paths.contains(&path) || self.journal_paths.contains(&recover::journal_path(&path)) {
                continue;
            }
            match self.content_at(&path, unit, text)? {
                PathContent::Taken => {}
                PathContent::Free | PathContent::SameUnit => return Ok(path),
            }
        }
        Err(Error::about(&self.folder.join(name), Problem::Exists))
    }

    fn content_at(&self, path: &Path, unit: &ConversationUnit, text: Option<&[u8]>) -> Result<PathContent, Error> {
        let journal = recover::journal_path(path);
        let length = |path: &Path| self.files.length(path).map_err(|error| Error::at(path, Problem::Unreadable, error));
        let same_journal = || {
            let mut existing = self.files.reader(&journal, 0)?;
            are_equal(existing.as_mut(), unit.journal(self.files)?.as_mut())
        };
        let same_text = || self.files.read(path, 0).map(|existing| Some(existing.as_slice()) == text);
        Ok(match (length(path)?, length(&journal)?) {
            (None, None) => PathContent::Free,
            (_, Some(_)) if same_journal().map_err(|error| Error::at(&journal, Problem::Unreadable, error))? => {
                PathContent::SameUnit
            }
            // A crash after the file was created leaves it empty.
            (Some(0), None) if text.is_some() => PathContent::SameUnit,
            (Some(_), None) if same_text().map_err(|error| Error::at(path, Problem::Unreadable, error))? => {
                PathContent::SameUnit
            }
            _ => PathContent::Taken,
        })
    }

    fn put_journal(&mut self, text: &Path, unit: &ConversationUnit) -> Result<(), Error> {
        let path = recover::journal_path(text);
        self.write(&path, &mut |out| io::copy(&mut unit.journal(self.files)?, out).map(|_| ()))?;
        self.journal_paths.push(path);
        Ok(())
    }

    /// Writes a file, completely or not at all. Its name becomes durable with the folder, at the end.
    fn write(&self, path: &Path, fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
        let temporary_path = temporary_path(path);
        let written =
            write_from_start(self.files, &temporary_path, fill).and_then(|_| self.files.rename(&temporary_path, path));
        if written.is_err() {
            let _ = self.files.remove(&temporary_path);
        }
        written.map_err(|error| Error::at(path, Problem::Unwritable, error))
    }

    /// Removes the oldest texts and journals without a text. Returns the written paths, and a warning for each removed file.
    pub fn finish_and_prune(self) -> Result<(Vec<PathBuf>, Vec<Warning>), Error> {
        let mut warnings = Vec::new();
        let synced = self.files.sync_folder(self.folder);
        synced.map_err(|error| Error::at(self.folder, Problem::Unwritable, error))?;
        if self.journal_only_count > 0 {
            let text = format!(
                "the {} oldest questions have only a journal, because a thread keeps {TEXTS_MAX} texts",
                self.journal_only_count
            );
            warnings.push(Warning::new(self.folder, text));
        }
        let mut old: Vec<PathBuf> = texts_of(self.folder, self.files)?;
        old.retain(|path| !self.text_paths.contains(path));
        let room = TEXTS_MAX.saturating_sub(self.text_paths.len());
        let surplus = old.len().saturating_sub(room);
        for path in old.iter().take(surplus) {
            self.remove(path, &format!("removed: a thread keeps its {TEXTS_MAX} newest texts"), &mut warnings)?;
        }
        for journal in journals_of(self.folder, self.files)? {
            let text = journal.with_extension("");
            let length = self.files.length(&text).map_err(|error| Error::at(&text, Problem::Unreadable, error))?;
            if length.is_none() && !self.journal_paths.contains(&journal) {
                self.remove(&journal, "removed: its text no longer exists", &mut warnings)?;
            }
        }
        let written = self.text_paths.into_iter().chain(self.journal_paths).collect();
        Ok((written, warnings))
    }

    fn remove(&self, path: &Path, why: &str, warnings: &mut Vec<Warning>) -> Result<(), Error> {
        let removed = self.files.remove(path).and_then(|()| self.files.sync_folder(folder_of(path)));
        removed.map_err(|error| Error::at(path, Problem::Unwritable, error))?;
        warnings.push(Warning::new(path, why));
        Ok(())
    }
}

/// The name with a number before its extension; the first one has none. The number is part of the query, whose length is limited.
fn with_number(name: &str, number: u32) -> String {
    /// The date and the minute before the query.
    const MINUTE_LENGTH: usize = "20260208-1430-".len();
    match (number, name.strip_suffix(".txt")) {
        (1, _) | (_, None) => name.to_owned(),
        (number, Some(stem)) => {
            let suffix = format!("-{number}");
            let length = MINUTE_LENGTH + QUERY_LENGTH_MAX.saturating_sub(suffix.len());
            let stem: String = stem.chars().take(length).collect();
            format!("{}{suffix}.txt", stem.trim_end_matches('-'))
        }
    }
}

/// The files that record what happened, in order: each unit by its journal if it has one, otherwise by its text; then active
/// recordings.
pub fn files_to_read(folder: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let texts = texts_of(folder, files).unwrap_or_default();
    let journals = journals_of(folder, files).unwrap_or_default();
    let orphans = journals.into_iter().filter(|journal| !journal.with_extension("").is_file());
    let mut units: Vec<PathBuf> = orphans.collect();
    units.extend(
        texts.into_iter().map(|text| Some(recover::journal_path(&text)).filter(|path| path.is_file()).unwrap_or(text)),
    );
    units.sort_by_cached_key(|path| sort_key(path));
    let is_active_recording = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(RECORDING_PREFIX)
            && path.extension().is_some_and(|ending| ending == recover::JOURNAL_EXTENSION)
    };
    units.extend(files.list(folder).unwrap_or_default().into_iter().filter(is_active_recording));
    units
}

/// The texts in a folder with Leslie's names, oldest first.
fn texts_of(folder: &Path, files: &dyn Files) -> Result<Vec<PathBuf>, Error> {
    list_matching(folder, files, is_file_name)
}

/// The journals beside such texts, oldest first.
fn journals_of(folder: &Path, files: &dyn Files) -> Result<Vec<PathBuf>, Error> {
    let text = |name: &str| {
        name.strip_suffix(recover::JOURNAL_EXTENSION).and_then(|name| name.strip_suffix('.')).is_some_and(is_file_name)
    };
    list_matching(folder, files, text)
}

fn list_matching(folder: &Path, files: &dyn Files, is_match: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, Error> {
    let all = files.list(folder).map_err(|error| Error::at(folder, Problem::Unreadable, error))?;
    let is_file = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut found: Vec<PathBuf> = all
        .into_iter()
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&is_match) && is_file(path))
        .collect();
    found.sort_by_cached_key(|path| sort_key(path));
    Ok(found)
}

/// The sort key of files: the minute in their names, then the modification time, then the number at the end of the name.
fn sort_key(path: &Path) -> (String, Option<SystemTime>, String, u32) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let written = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let stem = name.split_once(".txt").map_or(&*name, |(stem, _)| stem);
    let numbered = stem.rsplit_once('-').and_then(|(stem, number)| Some((stem, number.parse().ok()?)));
    let (stem, number) = numbered.unwrap_or((stem, 1));
    (name.get(..13).unwrap_or_default().to_owned(), written, stem.to_owned(), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_moment_are_in_the_order_of_their_numbers() {
        let mut names =
            ["20260208-1430-Go-10.txt", "20260208-1430-Go-2.txt", "20260208-1430-Go.txt"].map(PathBuf::from);
        names.sort_by_cached_key(|path| sort_key(path));
        assert_eq!(
            names,
            ["20260208-1430-Go.txt", "20260208-1430-Go-2.txt", "20260208-1430-Go-10.txt"].map(PathBuf::from)
        );
    }

    #[test]
    fn the_number_comes_before_the_extension() {
        assert_eq!(with_number("20260208-1430-x.txt", 1), "20260208-1430-x.txt");
        assert_eq!(with_number("20260208-1430-x.txt", 2), "20260208-1430-x-2.txt");
        let long = format!("20260208-1430-{}.txt", "x".repeat(50));
        assert_eq!(with_number(&long, 12), format!("20260208-1430-{}-12.txt", "x".repeat(47)));
    }
}
