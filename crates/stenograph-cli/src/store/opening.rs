//! How an event that was found is opened: the name and the number that `steno show` takes. A number is that of what is read under the
//! name: of one file, or of all files that tell a session together. The index knows events by their numbers in files.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use stenograph::model::{Event, Note};
use stenograph::read::Sink;
use stenograph_store::folder::{self, EventNumbers, RecordingParts};
use stenograph_store::index::catalogue::{Catalogue, Session, SessionId, SourceRow};
use stenograph_store::session_files;

use crate::error::CommandError;

/// What `steno show` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The session or the file, as one word for a shell.
    pub name: String,
    /// The number of the event, from 1.
    pub event: u64,
}

impl Opening {
    /// An event of one file, which is read alone.
    pub fn alone(path: &Path, event: u64) -> Opening {
        Opening { name: word(&path.display().to_string()), event: event + 1 }
    }

    /// An event of what is read under the name of a session.
    pub fn of_session(name: &str, event: u64) -> Opening {
        Opening { name: name.to_owned(), event: event + 1 }
    }
}

/// Finds how events are opened. What several files tell together is read once.
#[derive(Debug, Default)]
pub struct Openings {
    sessions: HashMap<SessionId, Option<EventNumbers>>,
    files: HashMap<PathBuf, Option<(PathBuf, EventNumbers)>>,
}

impl Openings {
    /// How an event of a file is opened by the name of a file. Events of the file are counted from 0.
    pub fn by_path(&mut self, path: &Path, event: u64) -> Opening {
        let known = self.files.entry(path.to_owned()).or_insert_with(|| {
            let (name, parts) = folder::recording_of(path)?;
            Some((name, numbers(&parts)?))
        });
        let told = known.as_ref().and_then(|(name, numbers)| Some((name, numbers.of(path, event)?)));
        told.map_or_else(|| Opening::alone(path, event), |(name, number)| Opening::alone(name, number))
    }

    /// How an event of a source of a session is opened by the session's name; nothing when that name means other files.
    pub fn by_session(
        &mut self,
        catalogue: &Catalogue,
        session: &Session,
        name: &str,
        (source, event): (&SourceRow, u64),
    ) -> Result<Option<Opening>, CommandError> {
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
        Ok(number.map(|number| Opening::of_session(name, number)))
    }
}

/// The numbers of events in what several files tell; nothing when they cannot be read.
fn numbers(parts: &RecordingParts) -> Option<EventNumbers> {
    folder::read_numbered(parts, &mut Nobody).ok()
}

/// Takes events and does nothing with them.
struct Nobody;

impl Sink for Nobody {
    fn event(&mut self, _event: &Event<'_>) {}

    fn note(&mut self, _note: Note) {}
}

/// A path as one word for a shell.
pub fn word(path: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || matches!(char, '/' | '.' | '_' | '-' | '+' | ':' | ',');
    let plain = |char: char| plain(char) || cfg!(windows) && char == '\\';
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
