//! The layouts: how a live system spreads what it writes over files, one file or folder here for each. [`LAYOUTS`] is the only
//! list; help, recording, recovery and showing use it.

pub mod chibi;
mod claude_events;
pub mod cycod;
pub mod devflow;
mod files_beside;
mod leslie;
pub(crate) mod openhands;
pub(crate) mod rewrite;
mod steno;
#[cfg(test)]
pub(crate) mod testing;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use files_beside::files_beside;

use stenograph::format::Format;
use stenograph::model::{Body, Event};
use stenograph::time::Time;

use crate::error::{Error, Problem};
use crate::files::{Disk, Files, create_folder_durably, folder_of};
use crate::journal::{Recording, RecordingHeader, Settings};
use crate::lock::Lock;
use crate::log::Durability;
use crate::recover;
use crate::source_file::is_same;
use crate::tail::{self, LastLineRule, Tail, Warning};

/// Every layout.
pub static LAYOUTS: &[&dyn Layout] = &[
    &steno::StenoLayout,
    &chibi::ChibiLayout,
    &cycod::CycodLayout,
    &devflow::DevflowLayout,
    &leslie::LeslieLayout,
    &claude_events::ClaudeEventsLayout,
];

/// The layout with this name.
pub fn layout_named(name: &str) -> Option<&'static dyn Layout> {
    LAYOUTS.iter().copied().find(|layout| layout.info().name == name)
}

/// A layout.
pub trait Layout: Sync {
    /// Its description for people and programs.
    fn info(&self) -> &'static LayoutInfo;

    /// Begins a recording: determines its journal and the documents that are kept in step with it. Nothing is acknowledged
    /// before this returns.
    fn open(&self, target: &Target, environment: &Environment) -> Result<OpenedRecording, Error>;

    /// The documents of a recording that was cut off, to be completed. They have received none of its events yet.
    fn resume(&self, recorded: &Recording, environment: &Environment) -> Result<Box<dyn Documents>, Error>;

    /// The folders that completing a recording reads and writes, determined by the journal's path alone: its content does not
    /// count, because anyone may have written it. `named` is the folder that the user named, which may be far above the
    /// journal.
    fn folders(&self, journal: &Path, _named: Option<&Path>, _environment: &Environment) -> Vec<PathBuf> {
        vec![folder_of(journal).to_owned()]
    }

    /// Fails if the system itself has locked a file, or marked it to be rebuilt before an edit.
    fn refuse_edit(&self, _file: &Path) -> Result<(), Error> {
        Ok(())
    }

    /// Where a recording goes without a path, in the syntax of the formats' homes.
    fn default_path(&self, _settings: &Settings) -> Option<String> {
        None
    }

    /// The files that record what happened in this folder, in reading order and including journals; `None` if the folder does
    /// not have this layout.
    fn files_to_read(&self, folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>>;

    /// Whether the journal of its folder is read instead of this file, by its name.
    fn is_read_from_journal(&self, _file: &Path) -> bool {
        false
    }

    /// The damaged files of this folder that others replace when it is read.
    fn replaced_files(&self, _folder: &Path) -> Vec<Warning> {
        Vec::new()
    }

    /// What the system itself states about the run at this path, beyond its events.
    fn run_summary(&self, _path: &Path) -> Option<RunSummary> {
        None
    }

    /// Whether a process holds the lock for this file; `None` if the system uses no locks.
    fn is_locked(&self, _file: &Path) -> Option<bool> {
        None
    }

    /// Whether one file holds everything that another one does, by their names.
    fn contains(&self, _whole: &Path, _part: &Path) -> bool {
        false
    }

    /// The format of these files, if their place determines it: their beginning may resemble another one.
    fn format(&self) -> Option<&'static dyn Format> {
        None
    }
}

/// What a system states about a run as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSummary {
    /// The system.
    pub agent: &'static str,
    /// The id of the run.
    pub run: String,
    /// The flow of the run.
    pub flow: Option<String>,
    /// The node of the flow.
    pub node: Option<String>,
    /// Its status.
    pub status: &'static str,
    /// When it began.
    pub started: Option<Time<'static>>,
    /// Its duration.
    pub duration_ms: Option<u64>,
    /// Tokens sent to the model.
    pub tokens_in: u64,
    /// Tokens received from the model.
    pub tokens_out: u64,
    /// Its cost in US dollars.
    pub cost: Option<f64>,
    /// Its error.
    pub error: Option<String>,
}

/// What any system states about the run at this path.
pub fn run_summary(path: &Path) -> Option<RunSummary> {
    LAYOUTS.iter().find_map(|layout| layout.run_summary(path))
}

/// Whether one file of any system holds everything that another one does, by their names.
pub(crate) fn contains(whole: &Path, part: &Path) -> bool {
    LAYOUTS.iter().any(|layout| layout.contains(whole, part))
}

/// Whether a process holds the lock of a file; `None` if its system uses no locks.
pub fn is_locked(file: &Path, format: &dyn Format) -> Option<bool> {
    let is_own = |layout: &&&dyn Layout| layout.format().is_some_and(|own| is_same(own, format));
    LAYOUTS.iter().filter(is_own).find_map(|layout| layout.is_locked(file))
}

/// The damaged files at this path that others replace when it is read.
pub fn replaced_files(path: &Path) -> Vec<Warning> {
    LAYOUTS.iter().flat_map(|layout| layout.replaced_files(path)).collect()
}

/// The warning that a recording continues an existing file.
fn appended(path: &Path) -> Warning {
    Warning::new(
        path,
        "already contains a recording; this one is appended (to keep them apart, give --to another path)",
    )
}

/// The description of a layout for people and programs.
#[derive(Debug)]
pub struct LayoutInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// The agent whose sessions it records, as formats name it.
    pub agent: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// The meaning of the path after its name, and its default.
    pub path: &'static str,
    /// The settings of a recording: the key and its meaning.
    pub keys: &'static [(&'static str, &'static str)],
}

/// Where a recording goes, and its settings.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The given path. The layout decides what a missing one means.
    pub path: Option<PathBuf>,
    /// The settings.
    pub settings: Settings,
    /// Whether requests to a model and its responses are recorded too.
    pub debug: DebugLogs,
    /// The file whose conversation is continued.
    pub load: Option<PathBuf>,
}

/// Whether requests to a model and its responses are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DebugLogs {
    /// They are recorded.
    Record,
    /// They are left out.
    #[default]
    LeaveOut,
}

/// Tells records of requests and responses, for which an agent has a separate log, from the conversation. All parts of a record
/// belong together.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExchangeFilter {
    inside: bool,
}

impl ExchangeFilter {
    /// Whether the event belongs to such a record. Events must be passed in order.
    pub fn has(&mut self, event: &Event<'_>) -> bool {
        if event.part.index == 0 {
            let named = matches!(&event.body, Body::Fact { fact: name, .. } if name == "request" || name == "response");
            // A response may consist of nothing but its cost.
            self.inside = named || event.extra.get("chibi-responses").is_some();
        }
        self.inside
    }
}

/// A clock: the current time, with the local UTC offset.
pub type Clock = Arc<dyn Fn() -> Time<'static> + Send + Sync>;

/// The environment of a recording: its disk, clock, durability and home folder.
#[derive(Clone)]
pub struct Environment {
    /// The disk.
    pub files: Arc<dyn Files>,
    /// The clock.
    pub clock: Clock,
    /// How durable an acknowledged event is.
    pub durability: Durability,
    /// The user's home folder, where a layout keeps its files if no path is given.
    pub home: Option<PathBuf>,
}

impl Default for Environment {
    /// The disk of this machine, its clock in UTC, full durability, and no home folder.
    fn default() -> Environment {
        Environment { files: Arc::new(Disk), clock: Arc::new(utc), durability: Durability::Always, home: None }
    }
}

fn utc() -> Time<'static> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time { text: since.as_millis().to_string().into(), unit: stenograph::time::TimeUnit::Millis }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Environment").field("files", &self.files).finish_non_exhaustive()
    }
}

/// The journal of a recording, locked and complete. A layout takes it before it looks at any document, because completing an
/// earlier recording changes them.
#[derive(Debug)]
pub struct LockedJournal {
    /// The authoritative file.
    pub journal: PathBuf,
    /// Its end.
    pub tail: Tail,
    /// Warnings from opening it.
    pub warnings: Vec<Warning>,
    /// The lock against other writers.
    pub lock: Lock,
}

impl LockedJournal {
    /// Locks a journal, moves half a line aside, and completes the recording that was cut off there. Anything else that changes
    /// the documents of a journal must do this first, too.
    pub(crate) fn of_journal(journal: &Path, environment: &Environment) -> Result<LockedJournal, Error> {
        LockedJournal::of_journal_in(journal, None, environment)
    }

    /// The same, if the user named a folder: completing the recording may write there, too.
    pub(crate) fn of_journal_in(
        journal: &Path,
        named: Option<&Path>,
        environment: &Environment,
    ) -> Result<LockedJournal, Error> {
        let mut journal_lock = LockedJournal::of_stream(journal, LastLineRule::EndsWithNewline, environment)?;
        if journal_lock.tail.length > 0 {
            journal_lock.warnings.extend(recover::complete_journal(journal, named, environment)?);
            journal_lock.tail = tail::repair_tail(environment.files.as_ref(), journal, LastLineRule::EndsWithNewline)?;
        }
        Ok(journal_lock)
    }

    /// Locks a stream and moves half a line aside.
    pub(crate) fn of_stream(
        path: &Path,
        last_line: LastLineRule,
        environment: &Environment,
    ) -> Result<LockedJournal, Error> {
        let made = create_folder_durably(environment.files.as_ref(), folder_of(path));
        made.map_err(|error| Error::at(path, Problem::Unwritable, error))?;
        let lock = Lock::on(path)?;
        let tail = tail::repair_tail(environment.files.as_ref(), path, last_line)?;
        Ok(LockedJournal { journal: path.to_owned(), warnings: tail.warning.clone().into_iter().collect(), tail, lock })
    }
}

/// A recording that has begun.
pub struct OpenedRecording {
    /// Its journal.
    pub journal_lock: LockedJournal,
    /// The kind of the authoritative file.
    pub kind: JournalKind,
    /// The documents that are kept in step with it.
    pub documents: Option<Box<dyn Documents>>,
    /// Events that come first, such as a header made from the settings.
    pub first: Vec<Event<'static>>,
    /// Fields to add to events that lack them.
    pub added_fields: AddedFields,
    /// How to treat the conversation that is continued.
    pub continued: ContinuedConversation,
    /// Further locks that are held during the recording.
    pub locks: Vec<Box<dyn std::any::Any + Send + Sync>>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

impl OpenedRecording {
    /// A recording with a journal and defaults for the rest.
    pub fn new(journal_lock: LockedJournal, header: RecordingHeader, documents: Box<dyn Documents>) -> OpenedRecording {
        OpenedRecording {
            journal_lock,
            kind: JournalKind::Journal(header),
            documents: Some(documents),
            first: Vec::new(),
            added_fields: AddedFields::Time,
            continued: ContinuedConversation::ToBeRecorded,
            locks: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The same, with one more lock.
    pub fn holding(mut self, lock: Lock) -> OpenedRecording {
        self.locks.push(Box::new(lock));
        self
    }
}

/// The kind of the authoritative file.
#[derive(Clone, Debug)]
pub enum JournalKind {
    /// The document itself: a native stream without marks.
    Stream,
    /// A journal beside documents.
    Journal(RecordingHeader),
}

/// The fields that the recorder adds to events that lack them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedFields {
    /// The time of arrival.
    Time,
    /// The time of arrival, and a random id.
    TimeAndId,
}

/// How to treat the conversation that is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContinuedConversation {
    /// The documents already contain it.
    InPlace,
    /// Record it before everything else.
    ToBeRecorded,
}

/// The documents of an active recording, kept in step with its journal.
pub trait Documents: Send {
    /// Begins: the header is in the journal, whose lock is held, and no event has arrived yet. A failure becomes a warning.
    fn begin(&mut self) -> Vec<Warning> {
        Vec::new()
    }

    /// Takes an event that is in the journal. A failure is repaired at the end, from the journal.
    fn add(&mut self, event: &Event<'_>);

    /// Completes the documents, whatever their state, and makes them durable.
    fn finish(&mut self, recorded: &Recording, given: StatedFields) -> Result<FinishedDocuments, Error>;

    /// Removes the files that the start of a recording created, if it has no events. The journal and all locks no longer exist.
    fn discard(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// The fields that events stated before the recorder added its own. After a crash that is unknown, and every field counts as
/// stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatedFields {
    /// Whether any event had a time.
    pub time: bool,
    /// Whether any event had an id.
    pub id: bool,
}

impl StatedFields {
    /// If it is unknown.
    pub(crate) const UNKNOWN: StatedFields = StatedFields { time: true, id: true };
}

/// The result of completing the documents.
#[derive(Debug)]
pub struct FinishedDocuments {
    /// Whether the journal is still needed.
    pub journal: JournalNeed,
    /// The documents that were written.
    pub written: Vec<PathBuf>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

/// Whether a journal is still needed after its recording has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalNeed {
    /// It holds what the documents cannot.
    Needed,
    /// The documents hold everything.
    Redundant,
    /// A file other than the documents could not be completed: recovery completes it from the journal.
    Unfinished,
}
