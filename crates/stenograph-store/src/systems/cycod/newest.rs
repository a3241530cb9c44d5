//! Finds the conversation to continue by default: the newest chat history, by CycoD's own rule.

use std::path::PathBuf;
use std::time::SystemTime;

use crate::error::{Error, Problem};
use crate::layouts::cycod::is_history;

/// The newest chat history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatHistory {
    /// The file.
    pub path: PathBuf,
    /// When it was last written.
    pub written: SystemTime,
}

/// The newest chat history in these folders: the one written last; of several with the same time, the one with the last name. A
/// missing folder has none, and an empty file does not count.
pub fn newest(folders: &[PathBuf]) -> Result<Option<ChatHistory>, Error> {
    let mut found: Option<ChatHistory> = None;
    for folder in folders {
        let unreadable = |error| Error::at(folder, Problem::Unreadable, error);
        let entries = match std::fs::read_dir(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(unreadable)?,
        };
        for entry in entries {
            let path = entry.map_err(unreadable)?.path();
            if !is_history(&path) {
                continue;
            }
            // Files that disappear meanwhile or are inaccessible do not stop the search.
            let Ok(metadata) = std::fs::metadata(&path) else { continue };
            let Some(written) = metadata.modified().ok().filter(|_| metadata.is_file() && metadata.len() > 0) else {
                continue;
            };
            let history = ChatHistory { path, written };
            let rank =
                |history: &ChatHistory| (history.written, history.path.file_name().map(std::ffi::OsStr::to_owned));
            if found.as_ref().is_none_or(|found| rank(&history) > rank(found)) {
                found = Some(history);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::time::Duration;

    #[test]
    fn the_one_written_last_is_the_newest_and_the_name_decides_between_equals() {
        let folder = tempfile::tempdir().unwrap();
        let (home, here) = (folder.path().join("home"), folder.path().join("here"));
        [&home, &here].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        let write = |path: PathBuf, text: &str, second: u64| {
            fs::write(&path, text).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        };
        let places = [home.clone(), here.clone(), folder.path().join("none")];
        assert_eq!(newest(&places).unwrap(), None);
        write(home.join("chat-history-2.jsonl"), "{}", 100);
        write(here.join("chat-history.jsonl"), "{}", 200);
        write(home.join("exception-chat-history-3.jsonl"), "{}", 200);
        write(home.join("chat-history-9.jsonl"), "", 300);
        write(home.join("my-chat-history-9.jsonl"), "{}", 300);
        write(home.join("chat-history-9.jsonl.steno"), "{}", 300);
        write(home.join("trajectory-9.md"), "{}", 300);
        fs::create_dir(home.join("chat-history-folder.jsonl")).unwrap();
        assert_eq!(newest(&places).unwrap().unwrap().path, home.join("exception-chat-history-3.jsonl"));
        write(here.join("chat-history.jsonl"), "{}", 201);
        assert_eq!(newest(&places).unwrap().unwrap().path, here.join("chat-history.jsonl"));
    }
}
