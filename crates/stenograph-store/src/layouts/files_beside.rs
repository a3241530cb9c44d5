//! Files that an agent writes about a session beside its transcript: long outputs of tools, earlier versions of edited files, the
//! prompts of all sessions. No reader reads them, so a redaction must name them. This file opens nothing.

use std::path::{Path, PathBuf};

/// How many folders above a transcript the agent's own folder may be.
const LEVELS_MAX: usize = 5;

/// How many files are listed; a hostile folder may have any number.
const FILES_MAX: usize = 10_000;

/// Folders in the agent's own folder that have a folder for each session.
const SESSION_FOLDERS: [&str; 2] = ["file-history", "session-env"];

/// Files in the agent's own folder that have the prompts of all sessions.
const SHARED_FILES: [&str; 1] = ["history.jsonl"];

/// The existing files about the session of this transcript, without the transcript, in order.
pub fn files_beside(transcript: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(session)) = (transcript.parent(), transcript.file_stem()) else { return Vec::new() };
    let mut found = Vec::new();
    below(folder.join(session), &mut found);
    for above in folder.ancestors().take(LEVELS_MAX) {
        SESSION_FOLDERS.iter().for_each(|name| below(above.join(name).join(session), &mut found));
        let shared = SHARED_FILES.iter().map(|name| above.join(name));
        found.extend(shared.filter(|path| path != transcript && path.is_file()));
    }
    found.sort();
    found.dedup();
    found
}

/// Adds the files below a folder. Links are not followed.
fn below(folder: PathBuf, found: &mut Vec<PathBuf>) {
    let mut open = vec![folder];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() && found.len() < FILES_MAX => found.push(entry.path()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_about_a_session_are_found_and_those_of_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "a/history.jsonl",
            "a/file-history/s1/x@v1",
            "a/file-history/s2/x@v1",
            "a/projects/p/s1.jsonl",
            "a/projects/p/s2.jsonl",
            "a/projects/p/s1/tool-results/t.txt",
            "a/projects/p/s2/tool-results/t.txt",
        ];
        for name in names {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let found = files_beside(&folder.path().join("a/projects/p/s1.jsonl"));
        let expected = ["a/file-history/s1/x@v1", "a/history.jsonl", "a/projects/p/s1/tool-results/t.txt"];
        assert_eq!(found, expected.map(|name| folder.path().join(name)));
    }
}
