//! Leslie's folder: `.leslie/threads/<thread>/.meta/transcripts/`, one text file per conversation unit, written when a
//! recording ends. If a text cannot hold everything, a journal named after it lies beside it and is removed with it. Until a
//! recording ends, everything is in its own journal. `leslie/unit.rs` renders a unit, `leslie/transcript_dir.rs` stores it.

mod transcript_dir;
mod unit;

use std::path::{Path, PathBuf};

use stenograph::format::Format;
use stenograph::formats::leslie;
use stenograph::model::Event;

use super::{
    Environment, FinishedDocuments, JournalNeed, Layout, LayoutInfo, LockedJournal, OpenedRecording, StatedFields,
    Target,
};
use crate::error::{Error, Problem};
use crate::files::{Files, folder_of};
use crate::journal::{Recording, RecordingHeader, Settings};
use crate::lock::{self, Lock, safe_component};
use crate::recover;
use transcript_dir::TranscriptDir;
use unit::ConversationUnit;

/// The layout.
pub struct LeslieLayout;

const NAME: &str = "leslie";

const THREAD: &str = "thread";
const CHAT: &str = "chat";
const MODE: &str = "mode";
const STOP: &str = "stop";

/// The modes of an agent.
const MODES: [&str; 4] = [MODE_DEFAULT, "plan", "duet", "review"];
const MODE_DEFAULT: &str = "agent";

const HOME: &str = ".leslie";
const THREADS: &str = "threads";

/// The prefix of a journal's name while its recording is active.
const RECORDING_PREFIX: &str = "recording-";

impl Layout for LeslieLayout {
    fn info(&self) -> &'static LayoutInfo {
        &LayoutInfo {
            name: NAME,
            agent: "leslie",
            title: "Leslie's transcripts: one text file per question, the 50 newest per thread",
            path: "the project's folder, in which .leslie/threads/ is (the current folder by default)",
            keys: &[
                (THREAD, "the thread; one is made up when it is missing"),
                (CHAT, "the chat; one is made up when it is missing"),
                (MODE, "what the agent is doing: agent (by default), plan, duet or review"),
                (STOP, "why it stopped, for example end_turn"),
            ],
        }
    }

    fn open(&self, target: &Target, environment: &Environment) -> Result<OpenedRecording, Error> {
        let mut settings = target.settings.clone();
        // An empty value counts as missing.
        settings.retain(|_, value| !value.is_empty());
        let mode = settings.get(MODE).map_or(MODE_DEFAULT, String::as_str);
        if !MODES.contains(&mode) {
            return Err(Error::about(Path::new(MODE), Problem::BadSetting));
        }
        for key in [THREAD, CHAT] {
            settings.entry(key.to_owned()).or_insert_with(|| format!("{key}-{}", random_suffix()));
        }
        let thread = settings.get(THREAD).cloned().unwrap_or_default();
        let folder = transcripts_folder(target.path.as_deref().unwrap_or(Path::new(".")), safe_component(&thread)?);
        let clock = (environment.clock)().wall("%Y%m%d-%H%M%S").unwrap_or_default();
        let journal =
            folder.join(format!("{RECORDING_PREFIX}{clock}-{}.{}", random_suffix(), recover::JOURNAL_EXTENSION));
        let journal_lock = LockedJournal::of_journal(&journal, environment)?;
        let header = RecordingHeader { layout: NAME.to_owned(), settings, ..RecordingHeader::default() };
        Ok(OpenedRecording::new(journal_lock, header, Box::new(LeslieDocuments { environment: environment.clone() })))
    }

    fn resume(&self, _recorded: &Recording, environment: &Environment) -> Result<Box<dyn super::Documents>, Error> {
        Ok(Box::new(LeslieDocuments { environment: environment.clone() }))
    }

    fn format(&self) -> Option<&'static dyn Format> {
        Some(&leslie::Leslie)
    }

    fn files_to_read(&self, folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>> {
        let found: Vec<PathBuf> =
            folders_at(folder, files).iter().flat_map(|folder| transcript_dir::files_to_read(folder, files)).collect();
        (!found.is_empty()).then_some(found)
    }
}

fn random_suffix() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    random.get(..8).unwrap_or_default().to_owned()
}

/// The folder of a thread's transcripts. The path may be `.leslie` itself or the folder that contains it.
fn transcripts_folder(path: &Path, thread: &str) -> PathBuf {
    let home = if path.ends_with(HOME) { path.to_owned() } else { path.join(HOME) };
    transcripts_of_thread(&home.join(THREADS).join(thread))
}

fn transcripts_of_thread(thread: &Path) -> PathBuf {
    thread.join(".meta").join("transcripts")
}

/// The transcript folders that a path means: of a project, of all threads, of one thread, or the folder itself.
fn folders_at(path: &Path, files: &dyn Files) -> Vec<PathBuf> {
    // An absolute path, because `.` does not end with a folder name that can be compared.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if path.ends_with(".meta/transcripts") {
        return vec![path];
    }
    if transcripts_of_thread(&path).is_dir() {
        return vec![transcripts_of_thread(&path)];
    }
    let threads = [path.join(HOME).join(THREADS), path.join(THREADS), path.clone()];
    let is_ours =
        |threads: &PathBuf| threads.parent().is_some_and(|home| home.ends_with(HOME)) && threads.ends_with(THREADS);
    let Some(threads) = threads.into_iter().find(|threads| is_ours(threads) && threads.is_dir()) else {
        return Vec::new();
    };
    let found = files.list(&threads).unwrap_or_default();
    found.iter().map(|thread| transcripts_of_thread(thread)).filter(|folder| folder.is_dir()).collect()
}

/// The texts of a recording. They are written when it ends; until then everything is in the journal.
struct LeslieDocuments {
    environment: Environment,
}

impl super::Documents for LeslieDocuments {
    fn add(&mut self, _event: &Event<'_>) {}

    fn finish(&mut self, recorded: &Recording, given: StatedFields) -> Result<FinishedDocuments, Error> {
        let folder = folder_of(&recorded.journal);
        // One process at a time chooses names and removes old files.
        let _lock = Lock::wait(&lock::beside(folder))?;
        let mut transcripts = TranscriptDir::new(self.environment.files.as_ref(), folder);
        let units = ConversationUnit::split(recorded)?;
        let surplus = units.len().saturating_sub(transcript_dir::TEXTS_MAX);
        let (without_text, with_text) = units.split_at_checked(surplus).unwrap_or((&[], &units));
        transcripts.put_without_text(without_text)?;
        with_text.iter().try_for_each(|unit| transcripts.put(unit, given))?;
        let (written, warnings) = transcripts.tidy()?;
        // Every unit is in the folder, complete: in its text, or in the journal beside it.
        Ok(FinishedDocuments { journal: JournalNeed::Redundant, written, warnings })
    }
}

/// A setting of a recording; `None` if it is missing or empty.
fn setting<'s>(settings: &'s Settings, key: &str) -> Option<&'s str> {
    settings.get(key).map(String::as_str).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
