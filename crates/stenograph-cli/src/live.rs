//! Finds the file for commands that show what happens now: a named file, or the one written last. The store follows the file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use stenograph_store::discover::{FileId, FoundFile, discover};
use stenograph_store::folder::{self, RecordingParts};

use crate::error::CommandError;
use crate::home::Root;
use crate::store::{ResolvedName, ResolvedSession, SessionArgs};

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
    if path.symlink_metadata().is_err() {
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
    for row in session.threads().filter(|row| row.path.symlink_metadata().is_ok()) {
        if found.iter().all(|known| known.thread != row.thread) {
            found.push(agent(vec![row.path.clone()], &row.thread));
        }
    }
    Ok(found)
}

/// The visible processes of this machine.
#[derive(Debug, Default)]
pub struct Processes {
    /// The files that any process has open.
    open: HashSet<FileId>,
    /// Each program's name and working folder.
    programs: HashSet<(String, PathBuf)>,
}

impl Processes {
    /// The running processes; empty on systems that do not show them.
    pub fn now() -> Processes {
        let mut processes = Processes::default();
        let own = std::process::id().to_string();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let is_other =
                name.to_str().is_some_and(|name| name != own && name.bytes().all(|byte| byte.is_ascii_digit()));
            if is_other {
                processes.add(&entry.path());
            }
        }
        processes
    }

    fn add(&mut self, process: &Path) {
        for open in std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            // Sockets, pipes and devices are not transcripts.
            if let Ok(metadata) = std::fs::metadata(open.path())
                && metadata.is_file()
            {
                self.open.insert(FileId::of(&open.path(), &metadata));
            }
        }
        let Ok(folder) = std::fs::read_link(process.join("cwd")) else { return };
        let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
        // The first argument of an interpreter is the program that it runs.
        for word in words.split(|byte| *byte == 0).take(2) {
            let word = String::from_utf8_lossy(word);
            let program = word.rsplit('/').next().unwrap_or_default();
            if !program.is_empty() {
                self.programs.insert((program.to_owned(), folder.clone()));
            }
        }
    }

    /// Whether processes and their folders can be seen.
    pub fn are_visible(&self) -> bool {
        !self.programs.is_empty()
    }

    /// Whether any process has the file open.
    pub fn have_open(&self, file: FileId) -> bool {
        self.open.contains(&file)
    }

    /// Whether the program runs in the folder.
    pub fn run_in(&self, program: &str, folder: &str) -> bool {
        !program.is_empty() && self.programs.contains(&(program.to_owned(), PathBuf::from(folder)))
    }
}

/// The transcripts that agents have written, the newest first.
pub fn transcripts(root: &Root) -> Result<Vec<FoundFile>, CommandError> {
    if let Some(root) = root.given()
        && !root.is_dir()
    {
        return Err(CommandError::new(format!("{}: no such folder", root.display()))
            .hint("give an existing folder with --root DIR"));
    }
    let mut found = Vec::new();
    discover(&root.places(), &mut |file| found.push(file));
    found.sort_by_key(|file| std::cmp::Reverse(file.stat.modified_ns));
    Ok(found)
}

/// The error for a search that found no transcript.
pub fn no_transcripts(root: &Root) -> CommandError {
    let place = root.given().map_or("in the agents' folders".to_owned(), |root| format!("below {}", root.display()));
    CommandError::not_found(format!("no transcripts found {place}"))
        .hint("name a file, or search another folder with --root DIR; steno formats lists the agents' folders")
}
