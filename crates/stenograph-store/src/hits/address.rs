//! How to open a found event: the name and the event number that `steno show` takes. The number counts within whatever the name
//! opens: one file, or all files of a session. The index counts events within files.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use stenograph::model::Event;
use stenograph::read::Sink;
use stenograph::resume::sh_word;

use crate::Error;
use crate::folder::{self, EventNumbers, RecordingParts};
use crate::index::catalogue::{Catalogue, IndexedSession, SessionId, SourceRow};
use crate::session_files;

/// The arguments for `steno show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowAddress {
    /// The session or the file.
    pub name: String,
    /// The number of the event, from 1.
    pub event: u64,
}

impl ShowAddress {
    /// An event of a file that is read alone.
    pub fn in_file(path: &Path, event: u64) -> ShowAddress {
        ShowAddress { name: path.display().to_string(), event: event + 1 }
    }

    /// An event of a session, by the session's name.
    pub fn in_session(name: &str, event: u64) -> ShowAddress {
        ShowAddress { name: name.to_owned(), event: event + 1 }
    }

    /// The name, quoted for a shell.
    pub fn word(&self) -> String {
        sh_word(&self.name)
    }
}

/// The names that open the files of a session.
#[derive(Debug)]
struct SessionNames {
    /// The event numbers below the session's name, if that opens several files.
    numbers: Option<EventNumbers>,
    /// The names of the sub-agents, by their files: of those that have only one.
    subagents: HashMap<PathBuf, String>,
}

/// Finds the address of each event. Reads the files of a session or recording once.
#[derive(Debug, Default)]
pub struct EventAddresses {
    sessions: HashMap<SessionId, SessionNames>,
    files: HashMap<PathBuf, Option<(PathBuf, EventNumbers)>>,
}

impl EventAddresses {
    /// How to open an event: by the name of its session or of a sub-agent if that name opens its source, else by a path. `event` counts from 0 within
    /// the source, or within that version of it.
    pub fn of(
        &mut self,
        catalogue: &Catalogue,
        named: Option<(&IndexedSession, &str)>,
        (source, event): (&SourceRow, u64),
        version: Option<u32>,
    ) -> Result<ShowAddress, Error> {
        let is_main = |(session, _): &(&IndexedSession, &str)| session.path == source.path;
        // A log is not a session: its name may be a prefix of a session's name.
        let is_log = source.known_format().is_some_and(|format| format.info().traits.log);
        let named = named.filter(|_| !is_log);
        if version.is_some() {
            // A version of a file is read alone.
            let by_session = named.filter(is_main).map(|(_, name)| ShowAddress::in_session(name, event));
            return Ok(by_session.unwrap_or_else(|| ShowAddress::in_file(&source.path, event)));
        }
        let by_session = match named {
            Some((session, name)) => self.by_session(catalogue, session, name, (source, event))?,
            None => None,
        };
        Ok(by_session.unwrap_or_else(|| self.by_path(&source.path, event)))
    }

    /// The address of an event by the path of its file. `event` counts from 0 within the file.
    pub fn by_path(&mut self, path: &Path, event: u64) -> ShowAddress {
        let known = self.files.entry(path.to_owned()).or_insert_with(|| {
            let (name, parts) = folder::recording_of(path)?;
            Some((name, numbers(&parts)?))
        });
        let numbered = known.as_ref().and_then(|(name, numbers)| Some((name, numbers.of(path, event)?)));
        numbered.map_or_else(|| ShowAddress::in_file(path, event), |(name, number)| ShowAddress::in_file(name, number))
    }

    /// The address of an event by the session's name; `None` if that name opens other files.
    fn by_session(
        &mut self,
        catalogue: &Catalogue,
        session: &IndexedSession,
        name: &str,
        (source, event): (&SourceRow, u64),
    ) -> Result<Option<ShowAddress>, Error> {
        let known = match self.sessions.entry(session.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let sources = catalogue.sources_of(session.id)?;
                let main = sources.iter().find(|source| source.path == session.path);
                let parts = main.and_then(|main| session_files::parts_of(main, &sources));
                let numbers = parts.and_then(|parts| numbers(&parts));
                new.insert(SessionNames { numbers, subagents: subagents(&sources) })
            }
        };
        let number = match &known.numbers {
            Some(numbers) => numbers.of(&source.path, event),
            None => (source.path == session.path).then_some(event),
        };
        if let Some(number) = number {
            return Ok(Some(ShowAddress::in_session(name, number)));
        }
        let subagent = known.subagents.get(&source.path);
        Ok(subagent.map(|subagent| ShowAddress::in_session(&format!("{name}/{subagent}"), event)))
    }
}

/// The names of the sub-agents of a session, by their files. A sub-agent with several files is left out: its name opens all of
/// them.
fn subagents(sources: &[SourceRow]) -> HashMap<PathBuf, String> {
    let rows = || sources.iter().filter(|row| row.copy_of.is_none() && row.covered_by.is_none());
    let is_same = |row: &SourceRow, name: &str| row.thread.as_deref().is_some_and(|one| one.eq_ignore_ascii_case(name));
    let named = rows().filter_map(|row| Some((row, row.thread.as_deref()?)));
    let unique = named.filter(|(_, name)| !name.contains('/') && rows().filter(|row| is_same(row, name)).count() == 1);
    unique.map(|(row, name)| (row.path.clone(), name.to_owned())).collect()
}

/// The event numbers across several files; `None` if they cannot be read.
pub fn numbers(parts: &RecordingParts) -> Option<EventNumbers> {
    folder::read_numbered(parts, &mut DiscardEvents).ok()
}

/// Discards all events.
struct DiscardEvents;

impl Sink for DiscardEvents {
    fn event(&mut self, _event: &Event<'_>) {}
}
