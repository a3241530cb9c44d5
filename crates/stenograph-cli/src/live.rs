//! Finds the file for commands that show what happens now: a named file, or the one written last. The store follows the file.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use stenograph::Registry;
use stenograph_store::databases;
use stenograph_store::discover::{FileId, FoundFile};
use stenograph_store::folder::{self, RecordingParts};
use stenograph_store::runs;

use crate::error::CommandError;
use crate::home::Root;
use crate::store::{ResolvedName, ResolvedSession, SessionArgs, StoreArgs};

/// The file to read. A recording may spread over a folder or have a journal beside it; the file written last has the newest
/// events.
pub fn live_file(path: &Path) -> PathBuf {
    folder::parts(path).and_then(|parts| newest(&parts)).unwrap_or_else(|| path.to_owned())
}

fn newest(parts: &RecordingParts) -> Option<PathBuf> {
    let modified = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    parts.files().iter().max_by_key(|path| modified(path)).cloned()
}

/// The file that a name refers to: a file, or the newest file of a session.
pub fn file_named(place: &SessionArgs, name: &Path) -> Result<PathBuf, CommandError> {
    match place.resolve(name)? {
        ResolvedName::File(path) => Ok(live_file(&path)),
        ResolvedName::Session(session) => newest_file_of(&session, name),
    }
}

/// The newest file of a session.
fn newest_file_of(session: &ResolvedSession, name: &Path) -> Result<PathBuf, CommandError> {
    let path = session.parts().and_then(|parts| newest(&parts)).unwrap_or_else(|| session.source.path.clone());
    if !databases::is_there(&path) {
        return Err(CommandError::not_found(format!("{}: the file is gone: {}", name.display(), path.display()))
            .hint(format!("steno show {} shows the archived copy", name.display())));
    }
    Ok(path)
}

/// The files in which one agent's run is recorded.
#[derive(Debug)]
pub struct AgentFiles {
    pub paths: Vec<PathBuf>,
    /// Its session, if the catalogue knows it.
    pub session: Option<String>,
    /// The name of the agent; the main agent has none.
    pub thread: Option<String>,
}

/// The files of all agents that a name refers to: one agent for a file, possibly several for a session.
pub fn agents(place: &SessionArgs, name: &Path) -> Result<Vec<AgentFiles>, CommandError> {
    let session = match place.resolve(name)? {
        ResolvedName::File(path) => {
            let paths = folder::parts(&path).map_or_else(|| vec![path], |parts| parts.files().to_vec());
            return Ok(vec![AgentFiles { paths, session: None, thread: None }]);
        }
        ResolvedName::Session(session) => session,
    };
    let agent = |paths: Vec<PathBuf>, thread: &Option<String>| AgentFiles {
        paths,
        session: Some(session.session.name.clone()),
        thread: thread.clone(),
    };
    // The newest file exists if any does.
    let newest = newest_file_of(&session, name)?;
    let paths = session.parts().map_or_else(|| vec![newest], |parts| parts.files().to_vec());
    let mut found = vec![agent(paths, &session.source.thread)];
    for row in session.threads().filter(|row| databases::is_there(&row.path)) {
        if found.iter().all(|known| known.thread != row.thread) {
            found.push(agent(vec![row.path.clone()], &row.thread));
        }
    }
    Ok(found)
}

/// The transcripts that agents have written, the newest first: those in the agents' folders, and those of the sessions that the
/// store has from elsewhere. With a root, those below it.
pub fn transcripts(place: &StoreArgs) -> Result<Vec<FoundFile>, CommandError> {
    let root = place.home();
    if let Some(root) = root.given()
        && !root.is_dir()
    {
        return Err(CommandError::new(format!("{}: no such folder", root.display()))
            .hint("give an existing folder with --root DIR"));
    }
    let mut found = runs::transcripts(&root.places());
    if root.given().is_none()
        && let Ok(catalogue) = place.store()?.catalogue()
    {
        // Most files are known by their paths, and need no further look. A folder may be reached by several paths.
        let paths: HashSet<&Path> = found.iter().map(|file| file.path.as_path()).collect();
        let known: HashSet<FileId> = found.iter().map(|file| file.stat.id).collect();
        let is_found = |path: &Path| {
            paths.contains(path) || databases::split(path).is_some_and(|(container, _)| paths.contains(container))
        };
        let others = catalogue.existing_paths()?.into_iter().filter(|path| !is_found(path));
        let elsewhere: Vec<FoundFile> = others.filter_map(|path| FoundFile::at(&path, Registry::built_in())).collect();
        let elsewhere = elsewhere.into_iter();
        found.extend(elsewhere.filter(|file| !known.contains(&file.stat.id)));
        found.sort_by_key(|file| Reverse(file.stat.modified_ns));
    }
    Ok(found)
}

/// The error for a search that found no transcript.
pub fn no_transcripts(root: &Root) -> CommandError {
    let place = root.given().map_or("in the agents' folders".to_owned(), |root| format!("below {}", root.display()));
    CommandError::not_found(format!("no transcripts found {place}"))
        .hint("name a file, or search another folder with --root DIR; steno formats lists the agents' folders")
}
