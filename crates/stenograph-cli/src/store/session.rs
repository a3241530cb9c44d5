//! Which session is meant by a word on the command line: by the beginning of its id, by the path of its file, or `latest`. This is the
//! one place that decides it. What is done with the session is in `commands/`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use stenograph_store::Problem;
use stenograph_store::folder::RecordingParts;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::{Catalogue, Session, SessionId, SourceRow};
use stenograph_store::session_files;

use super::Where;
use crate::error::CommandError;
use crate::output::{counted, shortened};
use crate::{clock, table};

/// A session that was asked for.
#[derive(Debug)]
pub struct Chosen {
    /// The session.
    pub session: Session,
    /// The source that is meant: the main one, unless another was named by its path or by its agent.
    pub source: SourceRow,
    /// All its sources, the main one first.
    pub sources: Vec<SourceRow>,
    /// By what it was named.
    pub by: NamedBy,
}

/// By what a session was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// By its id, or as the latest.
    Session,
    /// By the id of one of its agents.
    Agent,
    /// By the path of one of its files.
    Path,
}

impl Chosen {
    /// The session, with the source that is meant.
    pub fn of(catalogue: &Catalogue, session: Session, source: SourceRow, by: NamedBy) -> Result<Chosen, CommandError> {
        let sources = catalogue.sources_of(session.id)?;
        Ok(Chosen { session, source, sources, by })
    }

    /// The files that tell it together, where they are several: who names one file means that one.
    pub fn parts(&self) -> Option<RecordingParts> {
        (self.by != NamedBy::Path).then(|| session_files::parts_of(&self.source, &self.sources)).flatten()
    }

    /// The files that tell one of its other agents together, where they are several.
    pub fn parts_of_thread(&self, thread: &SourceRow) -> Option<RecordingParts> {
        session_files::parts_of(thread, &self.sources)
    }

    /// The sources of its other agents; none when one of them was named.
    pub fn threads(&self) -> impl Iterator<Item = &SourceRow> {
        let is_one_meant = self.by != NamedBy::Session && self.source.thread.is_some();
        let is_thread = move |row: &&SourceRow| {
            let counts = row.copy_of.is_none() && row.covered_by.is_none();
            !is_one_meant && row.thread.is_some() && row.id != self.source.id && counts
        };
        self.sources.iter().filter(is_thread)
    }
}

/// What a word may mean where files can be named too.
#[derive(Debug)]
pub enum Asked {
    /// A file or a folder.
    File(PathBuf),
    /// A session.
    Session(Box<Chosen>),
}

/// The session in which something happened last.
const LATEST: &str = "latest";

/// How many characters of a name are shown at least.
const SHORT_LENGTH_MIN: usize = 8;

/// How many candidates are named when several are meant.
const CANDIDATES_MAX: usize = 6;

/// How much of a title stands beside a candidate.
const TITLE_LENGTH_MAX: usize = 50;

impl Where {
    /// The session that is meant; that there is none is a no.
    pub fn session(&self, name: &str) -> Result<Chosen, CommandError> {
        let catalogue = self.store()?.catalogue()?;
        self.chosen(&catalogue, Path::new(name))?.ok_or_else(|| unknown(name))
    }

    /// What is meant where files can be named too: a file if there is one of that name, else a session.
    pub fn asked(&self, name: &Path) -> Result<Asked, CommandError> {
        let file = || Ok(Asked::File(name.to_owned()));
        if name == Path::new("-") || name.symlink_metadata().is_ok() {
            return file();
        }
        let catalogue = match self.store().map(|store| store.catalogue()) {
            Ok(Ok(catalogue)) => catalogue,
            // Who names a path is told about the path; nobody needs an index for that.
            _ if is_path(name) => return file(),
            Ok(Err(error)) if error.problem == Problem::IndexMissing => {
                let text =
                    format!("{}: no such file or folder, and no session: nothing is indexed yet", name.display());
                return Err(CommandError::new(text)
                    .hint("check the spelling; once steno index has run, sessions are known by their ids"));
            }
            Ok(Err(error)) => return Err(error.into()),
            Err(error) => return Err(error),
        };
        match self.chosen(&catalogue, name)? {
            Some(chosen) => Ok(Asked::Session(Box::new(chosen))),
            None if is_path(name) => file(),
            None => Err(unknown(&name.display().to_string())),
        }
    }

    /// The source at a path, where there is an index that knows it.
    pub fn known(&self, path: &Path) -> Option<(Store, SourceRow)> {
        let store = self.store().ok()?;
        let row = at_path(&store.catalogue().ok()?, path).ok()??;
        Some((store, row))
    }

    fn chosen(&self, catalogue: &Catalogue, name: &Path) -> Result<Option<Chosen>, CommandError> {
        if let Some(source) = at_path(catalogue, name)?
            && let Some(session) = catalogue.session(source.session)?
        {
            return Chosen::of(catalogue, session, source, NamedBy::Path).map(Some);
        }
        let Some(text) = name.to_str().filter(|text| !text.is_empty()) else { return Ok(None) };
        let inside = self.root().map(|root| catalogue.sessions_below(&root)).transpose()?;
        let is_inside = |session: &Session| inside.as_ref().is_none_or(|inside| inside.contains(&session.id));
        let mut found = catalogue.sessions_named(text)?;
        found.retain(is_inside);
        if found.iter().any(|session| session.name.eq_ignore_ascii_case(text)) {
            // Who writes all of an id does not mean another that begins with it.
            found.retain(|session| session.name.eq_ignore_ascii_case(text));
        }
        if found.is_empty() && text == LATEST {
            found = catalogue.sessions()?;
            found.retain(is_inside);
            found.sort_by_key(|session| (session.ended, session.id));
            found = found.pop().into_iter().collect();
        }
        if found.len() > 1 {
            // The id of a session that went on in another agent under the same id means what went on.
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
            Some(source) => Chosen::of(catalogue, session, source, NamedBy::Session).map(Some),
            None => Ok(None),
        }
    }

    /// The session of an agent that is named: `SESSION/AGENT`, or the agent alone where only one is called so.
    fn agent(
        &self,
        catalogue: &Catalogue,
        text: &str,
        inside: Option<&HashSet<SessionId>>,
    ) -> Result<Option<Chosen>, CommandError> {
        let (within, agent) = text.rsplit_once('/').map_or((None, text), |(session, agent)| (Some(session), agent));
        let mut found = catalogue.sources_of_thread(agent)?;
        found.retain(|row| inside.is_none_or(|inside| inside.contains(&row.session)));
        let is_called = |row: &SourceRow| row.thread.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(agent));
        if found.iter().any(is_called) {
            found.retain(is_called);
        }
        let mut chosen: Vec<(Session, SourceRow)> = Vec::new();
        for row in found {
            let Some(session) = catalogue.session(row.session)? else { continue };
            let begins =
                |within: &str| session.name.get(..within.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(within));
            if within.is_none_or(begins) && !chosen.iter().any(|(known, _)| known.id == session.id) {
                chosen.push((session, row));
            }
        }
        if chosen.len() > 1 {
            let agent = chosen.iter().map(|(session, _)| session.clone()).collect();
            return Err(ambiguous(catalogue, text, agent)?.hint("SESSION/AGENT names one agent of one session"));
        }
        match chosen.pop() {
            Some((session, source)) => Chosen::of(catalogue, session, source, NamedBy::Agent).map(Some),
            None => Ok(None),
        }
    }
}

/// The source that stands, or stood, at a path.
fn at_path(catalogue: &Catalogue, path: &Path) -> Result<Option<SourceRow>, CommandError> {
    let places = [std::fs::canonicalize(path), std::path::absolute(path)];
    for place in places.into_iter().flatten() {
        if let Some(source) = catalogue.source_at(&place)? {
            return Ok(Some(source));
        }
    }
    Ok(None)
}

/// Whether a word that is no session must have meant a file.
fn is_path(name: &Path) -> bool {
    name.components().count() > 1 || name.extension().is_some() || name.is_absolute()
}

fn unknown(name: &str) -> CommandError {
    CommandError::nothing(format!("{name}: no session is called so, or begins so"))
        .hint("steno list shows the sessions; steno index finds new ones")
}

/// That several are meant, and which.
fn ambiguous(catalogue: &Catalogue, text: &str, mut found: Vec<Session>) -> Result<CommandError, CommandError> {
    found.sort_by_key(|session| std::cmp::Reverse(session.ended));
    let shorts = Shorts::of(catalogue)?;
    let count = counted(found.len() as u64, "session");
    let mut error = CommandError::new(format!("{text}: {count} can be meant"));
    let names: HashSet<&str> = found.iter().map(|session| session.name.as_str()).collect();
    let is_named_apart = names.len() == found.len();
    for session in found.iter().take(CANDIDATES_MAX) {
        let name = match is_named_apart {
            true => shorts.name(session),
            false => session.path.display().to_string(),
        };
        let when = session.ended.map(|ended| table::ago(clock::millis() - ended)).unwrap_or_default();
        let title = session.title.as_deref().or(session.query.as_deref()).unwrap_or_default();
        let title = shortened(title, TITLE_LENGTH_MAX);
        error = error.hint(format!("{name}  {}  {when}  {title}", session.agent).trim_end().to_owned());
    }
    Ok(match found.len().saturating_sub(CANDIDATES_MAX) {
        0 => error,
        more => error.hint(format!("and {more} more; write more of the id")),
    })
}

/// The shortest names by which sessions are told apart.
#[derive(Debug, Default)]
pub struct Shorts {
    names: HashMap<SessionId, String>,
    /// Sessions that share their whole name with another.
    shared: HashSet<SessionId>,
}

impl Shorts {
    /// Of everything that is in the catalogue.
    pub fn of(catalogue: &Catalogue) -> Result<Shorts, CommandError> {
        Ok(Shorts::among(catalogue.session_names()?))
    }

    fn among(names: Vec<(SessionId, String)>) -> Shorts {
        let mut names: Vec<(String, String, SessionId)> =
            names.into_iter().map(|(id, name)| (name.to_ascii_lowercase(), name, id)).collect();
        names.sort();
        let shared =
            |one: &str, other: &str| one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        let folded: Vec<&str> = names.iter().map(|(folded, ..)| folded.as_str()).collect();
        let (mut shorts, mut alike) = (HashMap::new(), HashSet::new());
        for (at, (name, original, id)) in names.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| folded.get(at));
            let beside = [before, folded.get(at + 1)].into_iter().flatten();
            if beside.clone().any(|other| other == name) {
                alike.insert(*id);
            }
            let length = beside.map(|other| shared(name, other) + 1).max().unwrap_or(0).max(SHORT_LENGTH_MIN);
            shorts.insert(*id, original.chars().take(length).collect());
        }
        Shorts { names: shorts, shared: alike }
    }

    /// Whether the name of a session means this session and no other.
    pub fn is_unique(&self, session: &Session) -> bool {
        !self.shared.contains(&session.id)
    }

    /// The short name of a session.
    pub fn name(&self, session: &Session) -> String {
        self.names.get(&session.id).unwrap_or(&session.name).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_long_as_needed_and_no_shorter_than_eight() {
        let names = ["0198aaaa-1", "0198aaaa-2", "0198AAAA-22", "ffff0000-1", "main"];
        let shorts = Shorts::among((0..).zip(names.map(str::to_owned)).collect());
        let short = |id: SessionId| shorts.names.get(&id).unwrap().as_str();
        assert_eq!([0, 1, 2, 3, 4].map(short), ["0198aaaa-1", "0198aaaa-2", "0198AAAA-22", "ffff0000", "main"]);
    }

    #[test]
    fn what_must_be_a_file_looks_like_one() {
        assert_eq!(
            ["a/b", "a.jsonl", "/a", "0198aaaa", "main"].map(|name| is_path(Path::new(name))),
            [true, true, true, false, false]
        );
    }
}
