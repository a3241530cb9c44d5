//! How to open a found event: the name and the event number that `steno show` takes. The number counts within whatever the name
//! opens: one file, or all files of a session. The index counts events within files.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use stenograph::model::{Event, Note};
use stenograph::read::Sink;
use stenograph::resume::sh_word;
use stenograph_store::folder::{self, EventNumbers, RecordingParts};
use stenograph_store::index::catalogue::{Catalogue, Session, SessionId, SourceRow};
use stenograph_store::session_files;

use crate::error::CommandError;

/// The arguments for `steno show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventAddress {
    /// The session or the file.
    pub name: String,
    /// The number of the event, from 1.
    pub event: u64,
}

impl EventAddress {
    /// An event of a file that is read alone.
    pub fn in_file(path: &Path, event: u64) -> EventAddress {
        EventAddress { name: path.display().to_string(), event: event + 1 }
    }

    /// An event of a session, by the session's name.
    pub fn in_session(name: &str, event: u64) -> EventAddress {
        EventAddress { name: name.to_owned(), event: event + 1 }
    }

    /// The name, quoted for a shell.
    pub fn word(&self) -> String {
        sh_word(&self.name)
    }
}

/// Finds the address of each event. Reads the files of a session or recording once.
#[derive(Debug, Default)]
pub struct EventAddresses {
    sessions: HashMap<SessionId, Option<EventNumbers>>,
    files: HashMap<PathBuf, Option<(PathBuf, EventNumbers)>>,
}

impl EventAddresses {
    /// The address of an event by the path of its file. `event` counts from 0 within the file.
    pub fn by_path(&mut self, path: &Path, event: u64) -> EventAddress {
        let known = self.files.entry(path.to_owned()).or_insert_with(|| {
            let (name, parts) = folder::recording_of(path)?;
            Some((name, numbers(&parts)?))
        });
        let numbered = known.as_ref().and_then(|(name, numbers)| Some((name, numbers.of(path, event)?)));
        numbered
            .map_or_else(|| EventAddress::in_file(path, event), |(name, number)| EventAddress::in_file(name, number))
    }

    /// The address of an event by the session's name; `None` if that name opens other files.
    pub fn by_session(
        &mut self,
        catalogue: &Catalogue,
        session: &Session,
        name: &str,
        (source, event): (&SourceRow, u64),
    ) -> Result<Option<EventAddress>, CommandError> {
        let known = match self.sessions.entry(session.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let sources = catalogue.sources_of(session.id)?;
                let main = sources.iter().find(|source| source.path == session.path);
                let parts = main.and_then(|main| session_files::parts_of(main, &sources));
                new.insert(parts.and_then(|parts| numbers(&parts)))
            }
        };
        let number = match known {
            Some(numbers) => numbers.of(&source.path, event),
            None => (source.path == session.path).then_some(event),
        };
        Ok(number.map(|number| EventAddress::in_session(name, number)))
    }
}

/// The event numbers across several files; `None` if they cannot be read.
fn numbers(parts: &RecordingParts) -> Option<EventNumbers> {
    folder::read_numbered(parts, &mut DiscardEvents).ok()
}

/// Discards all events.
struct DiscardEvents;

impl Sink for DiscardEvents {
    fn event(&mut self, _event: &Event<'_>) {}

    fn note(&mut self, _note: Note) {}
}
