//! Resolves a word on the command line to a session: by a prefix of its id, the path of its file, or `latest`. Only this file
//! decides it; `commands/` uses the session.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use stenograph_store::databases;
use stenograph_store::discover::discover;
use stenograph_store::folder::RecordingParts;
use stenograph_store::hits::numbers;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::{Catalogue, IndexedSession, SessionId, SourceRow};
use stenograph_store::session_files;
use stenograph_store::sessions::{SessionOrder, ShortNames, matches_session};
use stenograph_store::{Place, Problem};

use super::{SessionArgs, StoreArgs};
use crate::error::CommandError;
use crate::filter::query_of;
use crate::output::{counted, shortened};
use crate::{clock, table, terminal};

#[derive(Debug)]
pub struct ResolvedSession {
    pub session: IndexedSession,
    /// The source to read: the main one, unless the word is a path or an agent.
    pub source: SourceRow,
    /// All its sources, the main one first.
    pub sources: Vec<SourceRow>,
    pub by: NamedBy,
}

/// The kind of word that named a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// Its id, or `latest`.
    Session,
    /// The id of one of its agents.
    Agent,
    /// The path of one of its files.
    Path,
}

impl ResolvedSession {
    pub fn of(
        catalogue: &Catalogue,
        session: IndexedSession,
        source: SourceRow,
        by: NamedBy,
    ) -> Result<ResolvedSession, CommandError> {
        let sources = catalogue.sources_of(session.id)?;
        Ok(ResolvedSession { session, source, sources, by })
    }

    /// The files that form the session, if there are several. A path means one file only.
    pub fn parts(&self) -> Option<RecordingParts> {
        (self.by != NamedBy::Path).then(|| session_files::parts_of(&self.source, &self.sources)).flatten()
    }

    /// The events that `steno show` shows under a number, from 1: their sources, and their numbers there from 0. Several files
    /// of a session may state the same event.
    pub fn events_numbered(&self, number: u64) -> Vec<(&SourceRow, u64)> {
        let number = number.saturating_sub(1);
        match self.parts().and_then(|parts| numbers(&parts)) {
            None => vec![(&self.source, number)],
            Some(numbers) => {
                let row = |path: &Path| self.sources.iter().find(|row| row.path == path);
                numbers.events(number).filter_map(|(path, event)| Some((row(path)?, event))).collect()
            }
        }
    }

    /// The files that form one of its other agents, if there are several.
    pub fn parts_of_thread(&self, thread: &SourceRow) -> Option<RecordingParts> {
        session_files::parts_of(thread, &self.sources)
    }

    /// The other files of the conversation, which `list` and `usage` count as well; none if a path names one file.
    pub fn other_files(&self) -> impl Iterator<Item = &SourceRow> {
        let is_other = |row: &&SourceRow| {
            let counts = row.copy_of.is_none() && row.covered_by.is_none() && row.coverage == self.source.coverage;
            self.by != NamedBy::Path && row.thread == self.source.thread && row.id != self.source.id && counts
        };
        self.sources.iter().filter(is_other)
    }

    /// The sources of its other agents; none if the word names one agent.
    pub fn threads(&self) -> impl Iterator<Item = &SourceRow> {
        let is_one_meant = self.by != NamedBy::Session && self.source.thread.is_some();
        let is_thread = move |row: &&SourceRow| {
            let counts = row.copy_of.is_none() && row.covered_by.is_none();
            !is_one_meant && row.thread.is_some() && row.id != self.source.id && counts
        };
        self.sources.iter().filter(is_thread)
    }
}

/// What a name refers to: a file or a session.
#[derive(Debug)]
pub enum ResolvedName {
    File(PathBuf),
    Session(Box<ResolvedSession>),
}

/// The name of the session with the latest event.
pub const LATEST: &str = "latest";

/// The end of an id that a table cut.
const ELLIPSIS: char = '\u{2026}';

/// How many candidates an error about an ambiguous name lists.
const CANDIDATES_MAX: usize = 6;

/// The maximum length of a title beside a candidate.
const TITLE_LENGTH_MAX: usize = 50;

impl StoreArgs {
    /// The name of the session at this place: the one that the index knows, or else the one that the path suggests.
    pub fn session_name(&self, place: &Place) -> Result<Option<String>, CommandError> {
        let Place::Path(path) = place else { return Ok(None) };
        let known = match self.known(path) {
            Some((store, row)) => store.catalogue()?.session(row.session)?,
            None => None,
        };
        Ok(known.map(|session| session.name).or_else(|| session_files::suggested_name(path)))
    }

    /// The source at a path, if the index knows it.
    pub fn known(&self, path: &Path) -> Option<(Store, SourceRow)> {
        let store = self.store().ok()?;
        let row = at_path(&store.catalogue().ok()?, path).ok()??;
        Some((store, row))
    }
}

impl SessionArgs {
    /// Resolves a session; an unknown name is a not-found answer.
    pub fn session(&self, name: &str) -> Result<ResolvedSession, CommandError> {
        let catalogue = self.store()?.catalogue()?;
        self.resolve_session(&catalogue, Path::new(name))?.ok_or_else(|| self.unknown(name))
    }

    /// Resolves a name to a file, if one exists at that path, else to a session.
    pub fn resolve(&self, name: &Path) -> Result<ResolvedName, CommandError> {
        let file = || Ok(ResolvedName::File(name.to_owned()));
        if name == Path::new("-") || databases::is_there(name) {
            return file();
        }
        let catalogue = match self.store().map(|store| store.catalogue()) {
            Ok(Ok(catalogue)) => catalogue,
            // An error about a path should name the path; that needs no index.
            _ if is_path(name) => return file(),
            Ok(Err(error)) if error.problem == Problem::IndexMissing && name != Path::new(LATEST) => {
                if let Some(path) = name.to_str().and_then(|name| self.new_file(name)) {
                    return Ok(ResolvedName::File(path));
                }
                let text = format!("{}: no such file or folder, and no sessions are indexed yet", name.display());
                return Err(
                    CommandError::new(text).hint("check the spelling, or run steno index to find sessions by id")
                );
            }
            Ok(Err(error)) => return Err(error.into()),
            Err(error) => return Err(error),
        };
        match self.resolve_session(&catalogue, name)? {
            Some(resolve_session) => Ok(ResolvedName::Session(Box::new(resolve_session))),
            None if is_path(name) => file(),
            None => match name.to_str().and_then(|name| self.new_file(name)) {
                Some(path) => Ok(ResolvedName::File(path)),
                None => Err(self.unknown(&name.display().to_string())),
            },
        }
    }

    /// The file of a session that the index does not know yet, by its complete id.
    pub fn new_file(&self, id: &str) -> Option<PathBuf> {
        let mut found = None;
        discover(&self.home().places(), &mut |file| {
            if file.hints.session.as_deref() == Some(id) && file.hints.thread.is_none() && found.is_none() {
                found = Some(file.path);
            }
        });
        found.filter(|_| self.project.is_none())
    }

    fn unknown(&self, name: &str) -> CommandError {
        match &self.project {
            Some(project) => {
                let place = match project.as_str() {
                    "." | "./" => "this folder's project".to_owned(),
                    project => format!("the project {project}"),
                };
                CommandError::not_found(match name {
                    LATEST => format!("no sessions in {place}"),
                    name => format!("{name}: no such session in {place}"),
                })
                .hint("show the projects with steno usage --by project")
            }
            None => unknown(name),
        }
    }

    /// The sessions among which a name is looked up; `None` for all.
    pub fn scope(&self, catalogue: &Catalogue) -> Result<Option<HashSet<SessionId>>, CommandError> {
        let inside = self.root().map(|root| catalogue.sessions_below(&root)).transpose()?;
        let Some(query) = query_of(&[("project", self.project.as_deref())], "")? else { return Ok(inside) };
        let mut sessions = catalogue.sessions()?;
        sessions.retain(|session| {
            inside.as_ref().is_none_or(|inside| inside.contains(&session.id)) && matches_session(&query, session)
        });
        Ok(Some(sessions.into_iter().map(|session| session.id).collect()))
    }

    fn resolve_session(&self, catalogue: &Catalogue, name: &Path) -> Result<Option<ResolvedSession>, CommandError> {
        if let Some(source) = at_path(catalogue, name)?
            && let Some(session) = catalogue.session(source.session)?
        {
            return ResolvedSession::of(catalogue, session, source, NamedBy::Path).map(Some);
        }
        // A table may cut a long id and mark that with an ellipsis.
        let text = name.to_str().map(|text| text.strip_suffix(ELLIPSIS).unwrap_or(text));
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
        let inside = self.scope(catalogue)?;
        let is_inside = |session: &IndexedSession| inside.as_ref().is_none_or(|inside| inside.contains(&session.id));
        let mut found = catalogue.sessions_named(text)?;
        found.retain(is_inside);
        if found.iter().any(|session| session.name.eq_ignore_ascii_case(text)) {
            // A complete id does not mean a longer id that begins with it.
            found.retain(|session| session.name.eq_ignore_ascii_case(text));
        }
        if found.is_empty() && text == LATEST {
            found = catalogue.sessions()?;
            found.retain(is_inside);
            SessionOrder::Newest.sort(&mut found);
            found.truncate(1);
        }
        if found.len() > 1 {
            // If a session continues in another agent under the same id, the id means the continuation.
            let names: HashSet<&str> = found.iter().map(|session| session.name.as_str()).collect();
            if names.len() == 1 {
                let parents = found.iter().filter_map(|session| session.parent.as_ref().map(|(parent, _)| *parent));
                let parents: HashSet<SessionId> = parents.collect();
                found.retain(|session| !parents.contains(&session.id));
            }
        }
        if found.len() > 1 {
            return Err(ambiguous(catalogue, text, found)?);
        }
        let Some(session) = found.pop() else { return self.agent(catalogue, text, inside.as_ref()) };
        match catalogue.source_at(&session.path)? {
            Some(source) => ResolvedSession::of(catalogue, session, source, NamedBy::Session).map(Some),
            None => Ok(None),
        }
    }

    /// Resolves an agent: `SESSION/AGENT`, or the agent's name alone if it is unique.
    fn agent(
        &self,
        catalogue: &Catalogue,
        text: &str,
        inside: Option<&HashSet<SessionId>>,
    ) -> Result<Option<ResolvedSession>, CommandError> {
        let (within, agent) = text.rsplit_once('/').map_or((None, text), |(session, agent)| (Some(session), agent));
        let mut found = catalogue.sources_of_thread(agent)?;
        found.retain(|row| inside.is_none_or(|inside| inside.contains(&row.session)));
        let has_name = |row: &SourceRow| row.thread.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(agent));
        if found.iter().any(has_name) {
            found.retain(has_name);
        }
        let mut resolve_session: Vec<(IndexedSession, SourceRow)> = Vec::new();
        for row in found {
            let Some(session) = catalogue.session(row.session)? else { continue };
            let has_prefix =
                |within: &str| session.name.get(..within.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(within));
            if within.is_none_or(has_prefix) && !resolve_session.iter().any(|(known, _)| known.id == session.id) {
                resolve_session.push((session, row));
            }
        }
        if resolve_session.len() > 1 {
            let agent = resolve_session.iter().map(|(session, _)| session.clone()).collect();
            return Err(ambiguous(catalogue, text, agent)?.hint("use SESSION/AGENT to name one agent of a session"));
        }
        match resolve_session.pop() {
            Some((session, source)) => ResolvedSession::of(catalogue, session, source, NamedBy::Agent).map(Some),
            None => Ok(None),
        }
    }
}

/// The source that is, or was, at a path.
fn at_path(catalogue: &Catalogue, path: &Path) -> Result<Option<SourceRow>, CommandError> {
    let places = [databases::canonical(path), std::path::absolute(path)];
    for place in places.into_iter().flatten() {
        if let Some(source) = catalogue.source_at(&place)? {
            return Ok(Some(source));
        }
    }
    Ok(None)
}

/// Whether a word that names no session must be meant as a path.
fn is_path(name: &Path) -> bool {
    name.components().count() > 1 || name.extension().is_some() || name.is_absolute()
}

fn unknown(name: &str) -> CommandError {
    CommandError::not_found(format!("{name}: no file or session has that name"))
        .hint("list sessions with steno list; find new ones with steno index")
}

/// The error for a name that several sessions match, with candidates.
fn ambiguous(catalogue: &Catalogue, text: &str, mut found: Vec<IndexedSession>) -> Result<CommandError, CommandError> {
    found.sort_by_key(|session| std::cmp::Reverse(session.ended));
    let short_names = ShortNames::of_some(catalogue, &found.iter().take(CANDIDATES_MAX).collect::<Vec<_>>())?;
    let count = counted(found.len() as u64, "session");
    let mut error = CommandError::new(format!("{text}: ambiguous: {count} match"));
    let names: HashSet<&str> = found.iter().map(|session| session.name.as_str()).collect();
    let is_named_apart = names.len() == found.len();
    for session in found.iter().take(CANDIDATES_MAX) {
        let name = match is_named_apart {
            // A short name that ends with a sign is hard to recognize as one.
            true => {
                let short = short_names.name(session);
                if short.ends_with(|char: char| char.is_alphanumeric()) { short } else { session.name.clone() }
            }
            false => session.path.display().to_string(),
        };
        let when = session.ended.map(|ended| table::ago(clock::millis() - ended)).unwrap_or_default();
        let title = shortened(&session.about(), TITLE_LENGTH_MAX).into_owned();
        let line = format!("{name}  {}  {when}  {title}", session.agent);
        // One line each: the word "hint: " comes before it.
        let room = terminal::message_width().map_or(usize::MAX, |width| width.saturating_sub(6));
        let is_path = !is_named_apart;
        error = error.hint(if is_path { line } else { terminal::fitted(&line, room) }.trim_end().to_owned());
    }
    Ok(match found.len().saturating_sub(CANDIDATES_MAX) {
        0 => error,
        more => error.hint(format!("and {more} more; type more of the id")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_separator_or_an_extension_is_a_path() {
        assert_eq!(
            ["a/b", "a.jsonl", "/a", "0198aaaa", "main"].map(|name| is_path(Path::new(name))),
            [true, true, true, false, false]
        );
    }
}
