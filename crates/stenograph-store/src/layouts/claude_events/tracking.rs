//! `agent-tracking.json`: the active agents. An entry is added when an agent starts and removed when it ends; entries of others
//! stay. The caller holds the project's lock.

use std::path::Path;

use stenograph::json::{Object, indent};
use stenograph::text::quote;

use super::agent::TrackedAgent;
use crate::error::{Error, Problem};
use crate::files::{Files, create_folder_durably, folder_of, replace};
use crate::tail::{self, Warning};

/// The maximum size of the list, which has some hundred bytes for each active agent.
const SIZE_MAX: u64 = 64 << 20;

/// Adds an agent to the list.
pub fn enter(files: &dyn Files, path: &Path, agent: &TrackedAgent, transcript: &str) -> Result<Vec<Warning>, Error> {
    let TrackingList { text, mut warnings } = TrackingList::read(files, path)?;
    let mut members = members(&text);
    if let Some((_, other)) = members.iter().find(|(id, _)| *id == agent.id)
        && !is_of_session(other, agent)
    {
        let text = format!("the agent {} was listed for another session: entry replaced", agent.id);
        warnings.push(Warning::new(path, text));
    }
    members.retain(|(id, _)| *id != agent.id);
    members.push((agent.id.clone(), agent.entry(transcript)));
    write(files, path, &members)?;
    Ok(warnings)
}

/// Removes an agent from the list. The entry of another recording of an agent with the same id stays.
pub fn leave(files: &dyn Files, path: &Path, agent: &TrackedAgent) -> Result<Vec<Warning>, Error> {
    let TrackingList { text, warnings } = TrackingList::read(files, path)?;
    let mut members = members(&text);
    let before = members.len();
    members.retain(|(id, entry)| *id != agent.id || !is_of_recording(entry, agent));
    if members.len() < before || !warnings.is_empty() {
        write(files, path, &members)?;
    }
    Ok(warnings)
}

fn is_of_session(entry: &str, agent: &TrackedAgent) -> bool {
    Object::parse(entry).is_some_and(|entry| entry.peek_str("session_id").as_deref() == Some(&agent.session))
}

fn is_of_recording(entry: &str, agent: &TrackedAgent) -> bool {
    let started = agent.started_at();
    is_of_session(entry, agent)
        && Object::parse(entry).is_some_and(|entry| entry.peek_str("started_at").as_deref() == Some(&started))
}

/// The existing list.
struct TrackingList {
    text: String,
    warnings: Vec<Warning>,
}

impl TrackingList {
    fn read(files: &dyn Files, path: &Path) -> Result<TrackingList, Error> {
        let unreadable = |error| Error::at(path, Problem::Unreadable, error);
        let empty = |warnings| TrackingList { text: "{}".to_owned(), warnings };
        match files.length(path).map_err(unreadable)? {
            None | Some(0) => return Ok(empty(Vec::new())),
            Some(length) if length > SIZE_MAX => {
                return Err(Error::about(path, Problem::TooLarge { size_max: SIZE_MAX }));
            }
            Some(_) => {}
        }
        let bytes = files.read(path, 0).map_err(unreadable)?;
        let unmarked = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        match std::str::from_utf8(unmarked) {
            Ok(text) if Object::parse(text).is_some() => {
                return Ok(TrackingList { text: text.to_owned(), warnings: Vec::new() });
            }
            Ok(text) if text.trim().is_empty() => return Ok(empty(Vec::new())),
            _ => {}
        }
        let aside = tail::move_aside(files, path, &bytes);
        let aside = aside.map_err(|error| Error::at(path, Problem::Unwritable, error))?;
        let text = format!("is not a list of agents: its contents were moved to {}", aside.display());
        Ok(empty(vec![Warning::new(path, text)]))
    }
}

fn members(text: &str) -> Vec<(String, String)> {
    let object = Object::parse(text);
    object.map_or_else(Vec::new, |object| object.pairs().map(|(id, raw)| (id.to_owned(), raw.to_owned())).collect())
}

/// Writes the list as GoodVibes does: indented by two spaces, without a final newline.
fn write(files: &dyn Files, path: &Path, members: &[(String, String)]) -> Result<(), Error> {
    let mut text = String::from("{");
    for (at, (id, entry)) in members.iter().enumerate() {
        text.push_str(if at == 0 { "\n  " } else { ",\n  " });
        text.push_str(&format!("{}: {}", quote(id), indent(entry, 1)));
    }
    text.push_str(if members.is_empty() { "}" } else { "\n}" });
    let written = create_folder_durably(files, folder_of(path)).and_then(|()| replace(files, path, text.as_bytes()));
    written.map_err(|error| Error::at(path, Problem::Unwritable, error))
}
