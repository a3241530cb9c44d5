//! A context: a folder that holds one conversation. This file locates its files; `systems/chibi/` lists and changes contexts.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::context_lock::{self, ContextLockStatus, HEARTBEAT_SECONDS};
use super::entry::{self, ContextEntry};
use super::rebuild::Rebuilt;
use super::transcript::{ContextTranscript, WindowState};
use crate::error::{Error, Place, Problem};
use crate::files::Files;
use crate::source::{Passes, Source};

/// Chibi's home, in the syntax of the formats' homes.
pub const HOME: &str = "{CHIBI_HOME|~/.chibi}";

/// A context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Its folder.
    pub folder: PathBuf,
    /// Its name.
    pub name: String,
}

impl Context {
    /// The context in this folder, named after it.
    pub fn at(folder: &Path) -> Context {
        let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
        Context { folder: folder.to_owned(), name: name.unwrap_or_else(|| "default".to_owned()) }
    }

    /// The context whose window is this file, if it is one.
    pub fn of_window(path: &Path) -> Option<Context> {
        let context = Context::at(crate::files::folder_of(path));
        (path.is_file() && path.file_name() == context.window().file_name()).then_some(context)
    }

    /// Fails while a process holds the context, or while the window is out of date: Chibi would rebuild it and discard the
    /// edit.
    pub(crate) fn refuse_edit(&self) -> Result<(), Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        match context_lock::status(&self.folder, now, HEARTBEAT_SECONDS) {
            Some(ContextLockStatus::Active) if !context_lock::is_own(&self.folder) => {
                Err(Error::about(&self.window(), Problem::Locked { holder: None }))
            }
            _ if self.dirty().exists() => Err(Error::about(&self.window(), Problem::OutOfDate)),
            Some(ContextLockStatus::Active | ContextLockStatus::Stale) | None => Ok(()),
        }
    }

    /// The context with this name in a Chibi home.
    pub fn named(home: &Path, name: &str) -> Result<Context, Error> {
        Ok(Context { folder: home.join("contexts").join(safe_name(name)?), name: name.to_owned() })
    }

    /// The window: what the model sees.
    pub fn window(&self) -> PathBuf {
        self.folder.join("context.jsonl")
    }

    /// Opens the window as the model sees it; `None` if it is empty.
    pub fn open_window(&self, files: &dyn Files, now: u64) -> Result<Option<Source>, Error> {
        let path = self.window();
        if self.window_state(files)? == WindowState::Current {
            let is_empty = files.length(&path).is_ok_and(|length| length.unwrap_or(0) == 0);
            return if is_empty { Ok(None) } else { Source::open(&path, Passes::Once).map(Some) };
        }
        let entries = self.window_entries(files, now)?;
        let lines = entry::lines(&entries.iter().collect::<Vec<_>>());
        if lines.is_empty() { Ok(None) } else { Source::spooled(Place::Path(path), lines.as_slice()).map(Some) }
    }

    /// The archived conversation, for people.
    pub(crate) fn markdown(&self) -> PathBuf {
        self.folder.join("transcript.md")
    }

    /// Chibi's marker file: the window is out of date and must be rebuilt.
    pub fn dirty(&self) -> PathBuf {
        self.folder.join(".dirty")
    }

    /// Whether Chibi marked the window as out of date.
    pub(crate) fn window_state(&self, files: &dyn Files) -> Result<WindowState, Error> {
        let path = self.dirty();
        let length = files.length(&path).map_err(|error| Error::at(&path, Problem::Unreadable, error))?;
        Ok(if length.is_some() { WindowState::OutOfDate } else { WindowState::Current })
    }

    /// What the model sees: the window, rebuilt in memory if Chibi marked the file as out of date. Changes nothing.
    pub(crate) fn window_entries(&self, files: &dyn Files, now: u64) -> Result<Vec<ContextEntry>, Error> {
        let window = entry::all(files, &self.window())?;
        let rebuilt = Rebuilt::of_marked(self, files, &window, now)?;
        Ok(rebuilt.map_or(window, |rebuilt| rebuilt.entries))
    }

    /// The journal of recordings into it.
    pub fn journal(&self) -> PathBuf {
        self.folder.join("journal.steno")
    }

    /// Whether this looks like a context.
    pub fn exists(&self) -> bool {
        let names = ["context.jsonl", "context.json", "transcript.jsonl", "transcript_archive.jsonl", "inbox.jsonl"];
        let today = ["transcript/active.jsonl", "transcript/manifest.json"];
        names.iter().chain(&today).any(|name| self.folder.join(name).is_file()) || self.journal().is_file()
    }

    /// Whether it has entries, or the journal of a recording into it.
    pub(crate) fn is_recorded(&self, files: &dyn Files) -> bool {
        let names = ["context.jsonl", "transcript.jsonl", "transcript_archive.jsonl"];
        let today = ["transcript/active.jsonl", "transcript/manifest.json"];
        names.iter().chain(&today).any(|name| self.folder.join(name).is_file()) || self.has_journal(files)
    }

    /// Other layouts have journals of that name, too: the first line names the layout.
    fn has_journal(&self, files: &dyn Files) -> bool {
        let mut line = Vec::new();
        let read =
            files.reader(&self.journal(), 0).and_then(|reader| reader.take(LINE_SIZE_MAX).read_to_end(&mut line));
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        read.is_ok() && String::from_utf8_lossy(line).contains("\"layout\":\"chibi\"")
    }

    /// Fails if there is no such context.
    pub fn must_exist(&self) -> Result<(), Error> {
        match (self.exists(), self.folder.is_dir()) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::about(&self.folder, Problem::NoLayout)),
            (false, false) => Err(Error::about(&self.folder, Problem::Missing)),
        }
    }

    /// The files that record what happened here, in reading order: the transcript, the window, the journal.
    pub fn files_to_read(&self, files: &dyn Files) -> Result<Vec<PathBuf>, Error> {
        let mut paths = vec![self.folder.join("transcript_archive.jsonl")];
        let single = self.folder.join("transcript.jsonl");
        paths.push(single);
        if let transcript @ ContextTranscript::Folder(_) = ContextTranscript::of(&self.folder) {
            paths.extend(transcript.files(files)?);
        }
        if self.window_has_more(files)? {
            paths.push(self.window());
        }
        if !self.window().is_file() {
            paths.push(self.folder.join("context.json"));
        }
        paths.push(self.journal());
        paths.retain(|path| files.length(path).ok().flatten().is_some_and(|length| length > 0));
        Ok(paths)
    }

    /// Whether the window holds anything that the transcript does not. Chibi rewrites it with other ids, so ids alone cannot
    /// always match both afterwards.
    fn window_has_more(&self, files: &dyn Files) -> Result<bool, Error> {
        let transcript = ContextTranscript::of(&self.folder);
        if !transcript.holds_window() {
            return Ok(true);
        }
        let mut known = transcript.known(files, self.window_state(files)?)?;
        let mut more = false;
        entry::each(files, &self.window(), &mut |entry| {
            more |= !known.take_match(&entry);
            Ok(())
        })?;
        Ok(more)
    }
}

/// How much of a journal's first line is read.
const LINE_SIZE_MAX: u64 = 64 << 10;

/// A word that Chibi interprets as a command instead of a name: a context with this name could not be reached. The same holds
/// for `-` and `new:…`, which are not valid names anyway.
const RESERVED: &str = "new";

/// Checks a name by Chibi's rule: letters, digits, hyphens and underscores, no hyphen first. Such a name cannot lead out of the
/// home.
fn safe_name(name: &str) -> Result<&str, Error> {
    let good = !name.is_empty()
        && name.len() <= 200
        && name != RESERVED
        && !name.starts_with('-')
        && name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_'));
    if good { Ok(name) } else { Err(Error::about(Path::new(name), Problem::BadContext)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_out_of_the_home() {
        let home = Path::new("home");
        assert_eq!(Context::named(home, "a-b_1").unwrap().folder, home.join("contexts/a-b_1"));
        for bad in ["", "..", "a/b", "-a", "ä", "a b", "a\\b", "a.b"] {
            assert_eq!(Context::named(home, bad).unwrap_err().problem, Problem::BadContext, "{bad}");
        }
    }

    #[test]
    fn a_word_that_chibi_interprets_as_a_command_is_not_a_name() {
        for wish in ["new", "-", "new:x", "new:"] {
            let error = Context::named(Path::new("home"), wish).unwrap_err();
            assert_eq!(error.problem, Problem::BadContext, "{wish}");
            assert!(error.hint().is_some_and(|hint| !hint.contains("dots")));
        }
        assert!(Context::named(Path::new("home"), "newer").is_ok());
    }
}
