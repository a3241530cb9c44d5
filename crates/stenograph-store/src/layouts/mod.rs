//! The layouts: how a live system spreads what it writes over files, one file or folder each. [`LAYOUTS`] is the one list; help,
//! recording, recovery and showing go by it.

mod anew;
pub mod chibi;
mod claude_events;
pub mod cycod;
pub mod devflow;
mod leslie;
mod steno;
#[cfg(test)]
mod testing;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::format::Format;
use stenograph::model::{Body, Event};
use stenograph::time::Time;

use crate::error::{Error, Problem};
use crate::files::{Disk, Files, folder_of, make_folder};
use crate::journal::{Header, Recorded, Settings};
use crate::lock::Lock;
use crate::log::Durability;
use crate::recover;
use crate::tail::{self, LastLine, Tail, Warning};

/// Every layout.
pub static LAYOUTS: &[&dyn Layout] =
    &[&steno::Steno, &chibi::Chibi, &cycod::Cycod, &devflow::Runs, &leslie::Leslie, &claude_events::ClaudeEvents];

/// The layout of that name.
pub fn layout_named(name: &str) -> Option<&'static dyn Layout> {
    LAYOUTS.iter().copied().find(|layout| layout.info().name == name)
}

/// A layout.
pub trait Layout: Sync {
    /// What people and programs need to know about it.
    fn info(&self) -> &'static Info;

    /// Begins a recording: says where its journal is and what documents are kept in step with it. Nothing is acknowledged
    /// before this is done.
    fn open(&self, target: &Target, site: &Environment) -> Result<Opened, Error>;

    /// The documents of a recording that was cut off, to be completed. They have seen none of its events yet.
    fn resume(&self, recorded: &Recorded, site: &Environment) -> Result<Box<dyn Documents>, Error>;

    /// The folders that completing a recording reads and writes, by where its journal is. What the journal says has no part in
    /// that: anybody may have written it. `named` is the folder that the user named, which may be far above the journal.
    fn folders(&self, journal: &Path, _named: Option<&Path>, _site: &Environment) -> Vec<PathBuf> {
        vec![folder_of(journal).to_owned()]
    }

    /// Refuses to have a file edited that the system itself holds, or has marked to be rebuilt first.
    fn refuse_edit(&self, _file: &Path) -> Result<(), Error> {
        Ok(())
    }

    /// Where a recording goes when no path is given, spelled as the homes of formats are.
    fn at_home(&self, _settings: &Settings) -> Option<String> {
        None
    }

    /// The files that say what happened in this folder, in the order they are read, or nothing when it is not laid out so.
    /// Journals are among them.
    fn reads(&self, folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>>;

    /// The damaged files of this folder in whose place others are read.
    fn passed_over(&self, _folder: &Path) -> Vec<Warning> {
        Vec::new()
    }

    /// What the system itself states about the run at this path, whose events do not say it.
    fn run_summary(&self, _path: &Path) -> Option<RunSummary> {
        None
    }

    /// The format of these files, where their place says it: what they begin with may look like another one.
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
    /// The flow it is a run of.
    pub flow: Option<String>,
    /// The node of the flow.
    pub node: Option<String>,
    /// What became of it.
    pub status: &'static str,
    /// When it began.
    pub started: Option<Time<'static>>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Tokens that were sent.
    pub tokens_in: u64,
    /// Tokens that came back.
    pub tokens_out: u64,
    /// What it cost in US dollars.
    pub cost: Option<f64>,
    /// What went wrong.
    pub error: Option<String>,
}

/// What some system states about the run at this path.
pub fn run_summary(path: &Path) -> Option<RunSummary> {
    LAYOUTS.iter().find_map(|layout| layout.run_summary(path))
}

/// The damaged files at this path in whose place others are read.
pub fn passed_over(path: &Path) -> Vec<Warning> {
    LAYOUTS.iter().flat_map(|layout| layout.passed_over(path)).collect()
}

/// Says that a recording does not begin a file.
fn appended(path: &Path) -> Warning {
    Warning::new(
        path,
        "holds a recording already; this one is appended to it (to keep them apart, give --to another path)",
    )
}

/// What people and programs need to know about a layout.
#[derive(Debug)]
pub struct Info {
    /// Its name on the command line.
    pub name: &'static str,
    /// The agent whose sessions it records, as formats call it.
    pub agent: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// What the path after its name means, and what it is where none is given.
    pub path: &'static str,
    /// What can be said of a recording beforehand: the key, and what it means.
    pub keys: &'static [(&'static str, &'static str)],
}

/// Where a recording goes, and what was said of it beforehand.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The path that was given. What a missing one means is up to the layout.
    pub path: Option<PathBuf>,
    /// What was said beforehand.
    pub settings: Settings,
    /// Whether requests to a model and what was answered are kept too.
    pub debug: Debug,
    /// The file whose conversation goes on.
    pub load: Option<PathBuf>,
}

/// Whether requests to a model and what was answered are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Debug {
    /// They are.
    Kept,
    /// They are not.
    #[default]
    LeftOut,
}

/// Tells the records of what went to a model and came back, for which an agent has a log of its own, from the conversation. All
/// parts of a record belong together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchange {
    inside: bool,
}

impl Exchange {
    /// Whether the event belongs to such a record. Events are asked about in order.
    pub fn has(&mut self, event: &Event<'_>) -> bool {
        if event.part.index == 0 {
            let named = matches!(&event.body, Body::Fact { name, .. } if name == "request" || name == "response");
            // What is known of a response may be what it cost and nothing else.
            self.inside = named || event.extra.get("chibi-responses").is_some();
        }
        self.inside
    }
}

/// A clock: the moment, with the offset of the place where the recording is made.
pub type Clock = Arc<dyn Fn() -> Time<'static> + Send + Sync>;

/// The environment of a recording: its disk, clock, durability and home folder.
#[derive(Clone)]
pub struct Environment {
    /// The disk.
    pub files: Arc<dyn Files>,
    /// The clock.
    pub clock: Clock,
    /// How durable is durable.
    pub durability: Durability,
    /// The folder of the user, where a layout keeps its files when no path is given.
    pub home: Option<PathBuf>,
}

impl Default for Environment {
    /// The disk of this machine, its clock in UTC, everything on disk before it is acknowledged, and no home folder.
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

/// The journal of a recording, locked and whole. A layout takes it before it looks at any document, for what
/// an earlier recording left unfinished changes them.
#[derive(Debug)]
pub struct LockedJournal {
    /// The authoritative file.
    pub journal: PathBuf,
    /// How it ends.
    pub tail: Tail,
    /// What was found.
    pub warnings: Vec<Warning>,
    /// Nobody else writes there.
    pub lock: Lock,
}

impl LockedJournal {
    /// Locks a journal, moves half a line aside, and completes the recording that was cut off there. This is also what comes before
    /// anything that changes the documents of a journal in another way.
    pub fn of_journal(journal: &Path, site: &Environment) -> Result<LockedJournal, Error> {
        LockedJournal::of_journal_in(journal, None, site)
    }

    /// The same, where the user named a folder: completing the recording may write there, too.
    pub fn of_journal_in(journal: &Path, named: Option<&Path>, site: &Environment) -> Result<LockedJournal, Error> {
        let mut ground = LockedJournal::of_stream(journal, LastLine::EndsWithNewline, site)?;
        if ground.tail.length > 0 {
            ground.warnings.extend(recover::complete_journal(journal, named, site)?);
            ground.tail = tail::settle(site.files.as_ref(), journal, LastLine::EndsWithNewline)?;
        }
        Ok(ground)
    }

    /// Locks a stream and moves half a line aside.
    pub fn of_stream(path: &Path, last_line: LastLine, site: &Environment) -> Result<LockedJournal, Error> {
        let made = make_folder(site.files.as_ref(), folder_of(path));
        made.map_err(|error| Error::at(path, Problem::Unwritable, error))?;
        let lock = Lock::on(path)?;
        let tail = tail::settle(site.files.as_ref(), path, last_line)?;
        Ok(LockedJournal { journal: path.to_owned(), warnings: tail.warning.clone().into_iter().collect(), tail, lock })
    }
}

/// A recording that was begun.
pub struct Opened {
    /// What it stands on.
    pub ground: LockedJournal,
    /// What kind of file the authoritative one is.
    pub kind: JournalKind,
    /// What is kept in step with it.
    pub documents: Option<Box<dyn Documents>>,
    /// Events that belong before everything else, such as a header made of what was said beforehand.
    pub first: Vec<Event<'static>>,
    /// What events need that may not have it.
    pub stamps: Stamps,
    /// What is to be done with the conversation that goes on.
    pub loaded: Loaded,
    /// Locks that are held as long as the recording goes on, besides the one on the journal.
    pub locks: Vec<Box<dyn std::any::Any + Send + Sync>>,
    /// What there is to say.
    pub warnings: Vec<Warning>,
}

impl Opened {
    /// A recording with a journal that has nothing special about it.
    pub fn new(ground: LockedJournal, header: Header, documents: Box<dyn Documents>) -> Opened {
        Opened {
            ground,
            kind: JournalKind::Journal(header),
            documents: Some(documents),
            first: Vec::new(),
            stamps: Stamps::Time,
            loaded: Loaded::ToBeRecorded,
            locks: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The same, with one more lock.
    pub fn holding(mut self, lock: Lock) -> Opened {
        self.locks.push(Box::new(lock));
        self
    }
}

/// What kind of file the authoritative one is.
#[derive(Clone, Debug)]
pub enum JournalKind {
    /// The document itself: a native stream, without marks.
    Stream,
    /// A journal beside documents.
    Journal(Header),
}

/// What events are given where they do not have it: the recorder is where they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// The time of arrival.
    Time,
    /// The time of arrival, and a random id.
    TimeAndId,
}

/// What is to be done with the conversation that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// It stands in the documents already.
    InPlace,
    /// It is recorded before everything else.
    ToBeRecorded,
}

/// The documents of a recording under way, kept in step with its journal.
pub trait Documents: Send {
    /// Begins: the header is in the journal, whose lock is held, and no event came yet. What fails here is remarked.
    fn begin(&mut self) -> Vec<Warning> {
        Vec::new()
    }

    /// Takes an event that is in the journal. What fails here is made up for at the end: the journal has it.
    fn add(&mut self, event: &Event<'_>);

    /// Completes the documents, whatever state they are in, and makes them durable.
    fn finish(&mut self, recorded: &Recorded, given: StatedFields) -> Result<Finished, Error>;

    /// Removes what beginning made, after a recording into which nothing was recorded. The journal and all locks are gone.
    fn discard(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// The fields that the events of a recording stated before the recorder added its own. After a crash nobody knows, and every field counts as stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatedFields {
    /// Whether any event had a time.
    pub time: bool,
    /// Whether any event had an id.
    pub id: bool,
}

impl StatedFields {
    /// When nobody knows.
    pub const UNKNOWN: StatedFields = StatedFields { time: true, id: true };
}

/// What came of the documents.
#[derive(Debug)]
pub struct Finished {
    /// What the journal is good for now.
    pub journal: Journal,
    /// The documents that were made.
    pub written: Vec<PathBuf>,
    /// What there is to say.
    pub warnings: Vec<Warning>,
}

/// What a journal is good for when its recording has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// It says what the documents cannot.
    Needed,
    /// The documents say it all.
    Redundant,
    /// Something beside the documents that say it could not be completed: recovery does that, from the journal.
    Unfinished,
}
