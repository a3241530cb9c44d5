//! Which file is meant by a command that looks at what happens now: one that is named, or the one that was written last. How it is
//! followed is the store's part.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use stenograph_store::discover::{FileId, FoundFile, discover};
use stenograph_store::folder::{self, RecordingParts};

use crate::error::CommandError;
use crate::home::Root;
use crate::store::{Asked, Chosen, Where};

/// The file to look at. What was recorded may be spread over a folder, or have a journal beside it: the one that was written last tells
/// what happens now.
pub fn file(path: &Path) -> PathBuf {
    folder::parts(path).and_then(|parts| newest(&parts)).unwrap_or_else(|| path.to_owned())
}

/// The part that was written last.
fn newest(parts: &RecordingParts) -> Option<PathBuf> {
    let modified = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    parts.files().iter().max_by_key(|path| modified(path)).cloned()
}

/// The file that a word means: its own, or that of a session.
pub fn named(place: &Where, name: &Path) -> Result<PathBuf, CommandError> {
    match place.asked(name)? {
        Asked::File(path) => Ok(file(&path)),
        Asked::Session(chosen) => file_of(&chosen, name),
    }
}

/// The file of a session that was written last.
fn file_of(chosen: &Chosen, name: &Path) -> Result<PathBuf, CommandError> {
    let path = chosen.parts().and_then(|parts| newest(&parts)).unwrap_or_else(|| chosen.source.path.clone());
    if path.symlink_metadata().is_err() {
        return Err(CommandError::nothing(format!("{}: its file is gone: {}", name.display(), path.display()))
            .hint(format!("steno show {} shows what was kept of it", name.display())));
    }
    Ok(path)
}

/// The file of one agent.
#[derive(Debug)]
pub struct AgentFile {
    /// The file.
    pub path: PathBuf,
    /// Its session, where the catalogue knows it.
    pub session: Option<String>,
    /// Which agent of the session it is; the main one has no name.
    pub thread: Option<String>,
}

/// The files of all agents that a word means: a file is one, a session may have several.
pub fn agents(place: &Where, name: &Path) -> Result<Vec<AgentFile>, CommandError> {
    let chosen = match place.asked(name)? {
        Asked::File(path) => return Ok(vec![AgentFile { path: file(&path), session: None, thread: None }]),
        Asked::Session(chosen) => chosen,
    };
    let agent = |path: PathBuf, thread: &Option<String>| AgentFile {
        path,
        session: Some(chosen.session.name.clone()),
        thread: thread.clone(),
    };
    let mut found = vec![agent(file_of(&chosen, name)?, &chosen.source.thread)];
    for row in chosen.threads().filter(|row| row.path.symlink_metadata().is_ok()) {
        if found.iter().all(|known| known.thread != row.thread) {
            found.push(agent(row.path.clone(), &row.thread));
        }
    }
    Ok(found)
}

/// The processes of this machine, as far as they can be seen.
#[derive(Debug, Default)]
pub struct Processes {
    /// The files that a process has open.
    open: HashSet<FileId>,
    /// The name of each program and its working folder.
    programs: HashSet<(String, PathBuf)>,
}

impl Processes {
    /// Those that run now. Where they cannot be seen there are none.
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
            // Sockets, pipes and devices are no transcripts.
            if let Ok(metadata) = std::fs::metadata(open.path())
                && metadata.is_file()
            {
                self.open.insert(FileId::of(&open.path(), &metadata));
            }
        }
        let Ok(folder) = std::fs::read_link(process.join("cwd")) else { return };
        let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
        // A program that an interpreter runs is its first argument.
        for word in words.split(|byte| *byte == 0).take(2) {
            let word = String::from_utf8_lossy(word);
            let program = word.rsplit('/').next().unwrap_or_default();
            if !program.is_empty() {
                self.programs.insert((program.to_owned(), folder.clone()));
            }
        }
    }

    /// Whether one of them has this file open.
    pub fn have_open(&self, file: FileId) -> bool {
        self.open.contains(&file)
    }

    /// Whether one of them is this program, in this folder.
    pub fn run_in(&self, program: &str, folder: &str) -> bool {
        !program.is_empty() && self.programs.contains(&(program.to_owned(), PathBuf::from(folder)))
    }
}

/// The files that agents have written, the newest first.
pub fn files(root: &Root) -> Result<Vec<FoundFile>, CommandError> {
    if let Some(root) = root.given()
        && !root.is_dir()
    {
        return Err(CommandError::new(format!("{}: no such folder", root.display()))
            .hint("--root DIR names a folder in which to look"));
    }
    let mut found = Vec::new();
    discover(&root.places(), &mut |file| found.push(file));
    found.sort_by_key(|file| std::cmp::Reverse(file.stat.modified_ns));
    Ok(found)
}

/// That there is nothing to look at.
pub fn nothing(root: &Root) -> CommandError {
    let place =
        root.given().map_or("in the homes of the agents".to_owned(), |root| format!("below {}", root.display()));
    CommandError::nothing(format!("no transcripts {place}"))
        .hint("name a file, or with --root DIR a folder in which to look; steno formats lists the homes")
}
