//! The working folder of a session whose records do not state it: [`FolderFile`] names a file beside the transcript that does.
//! Nothing else is taken from that file.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};
use stenograph::format::Format;
use stenograph::json::{Object, items};
use stenograph::model::{FolderAt, FolderFile};

use crate::discover::{PathHints, path_hints};

/// How much of such a file is read. A list of all projects of a machine is shorter.
const SIZE_MAX: u64 = 4 << 20;

/// The working folder that a file beside a source of this format states.
pub fn working_folder(source: &Path, format: &dyn Format) -> Option<String> {
    let files = format.info().folder_files;
    if files.is_empty() {
        return None;
    }
    let hints = path_hints(source);
    let folder = files.iter().find_map(|file| stated(source, file, &hints))?;
    (!folder.is_empty()).then_some(folder)
}

fn stated(source: &Path, file: &FolderFile, hints: &PathHints) -> Option<String> {
    let text = text_of(&path_of(source, file, hints)?)?;
    match file.folder {
        FolderAt::Text => Some(text.trim().to_owned()),
        FolderAt::Key(key) => Some(Object::parse(&text)?.peek_str(key)?.into_owned()),
        FolderAt::List { list, folder, session } => {
            let file = Object::parse(&text)?;
            let elements = items(file.peek(list)?)?.into_iter().filter_map(Object::parse);
            let known: Vec<(String, Option<String>)> = elements
                .filter_map(|element| {
                    let session = element.peek_str(session).map(Cow::into_owned);
                    Some((element.peek_str(folder)?.into_owned(), session))
                })
                .collect();
            let is_project = |folder: &str| hints.project.as_deref() == Some(digest(folder).as_str());
            let by_digest = known.iter().find(|(folder, _)| is_project(folder));
            let by_session = || known.iter().find(|(_, session)| session.is_some() && *session == hints.session);
            by_digest.or_else(by_session).map(|(folder, _)| folder.clone())
        }
    }
}

fn path_of(source: &Path, file: &FolderFile, hints: &PathHints) -> Option<PathBuf> {
    let mut path = std::path::absolute(source).ok()?.parent()?.to_owned();
    for step in file.path.split('/') {
        match step {
            ".." => path = path.parent()?.to_owned(),
            step if step.contains("<session>") => path.push(step.replace("<session>", hints.session.as_deref()?)),
            step => path.push(step),
        }
    }
    Some(path)
}

/// The text of a file that states a folder.
pub(crate) fn text_of(path: &Path) -> Option<String> {
    // Opening a named pipe would wait for somebody who writes to it.
    let file = path.is_file().then(|| File::open(path).ok()).flatten()?;
    let mut text = String::new();
    let length = file.take(SIZE_MAX + 1).read_to_string(&mut text).ok()?;
    (length as u64 <= SIZE_MAX).then_some(text)
}

fn digest(folder: &str) -> String {
    Md5::digest(folder.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use stenograph::Registry;

    #[test]
    fn a_file_beside_a_transcript_states_its_folder() {
        let home = tempfile::tempdir().unwrap();
        let harbour = digest("/work/harbour");
        let list = r#"{"work_dirs": [{"path": "/work/quay"}, {"path": "/work/harbour"}, {"path": "/old", "last_session_id": "s3"}]}"#;
        for (name, content) in [
            (".gemini/tmp/harbour/.project_root", "/work/harbour\n"),
            (".kimi/kimi.json", list),
            (".kimi-code/sessions/wd_1/s1/state.json", r#"{"id": "s1", "cwd": "/work/harbour"}"#),
            (".cline/data/sessions/s1/s1.json", r#"{"cwd": "/work/harbour"}"#),
            (".cline/data/sessions/s2/s2.json", "[1]"),
        ] {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let folder = |format: &str, path: &str| {
            working_folder(&home.path().join(path), Registry::built_in().named(format).unwrap())
        };
        let found = Some("/work/harbour".to_owned());
        assert_eq!(folder("gemini-cli", ".gemini/tmp/harbour/chats/session-1.jsonl"), found);
        assert_eq!(folder("kimi", &format!(".kimi/sessions/{harbour}/s1/wire.jsonl")), found);
        assert_eq!(folder("kimi", ".kimi/sessions/moved/s3/wire.jsonl").as_deref(), Some("/old"));
        assert_eq!(folder("kimi", ".kimi/sessions/moved/s4/wire.jsonl"), None);
        assert_eq!(folder("kimi-code", ".kimi-code/sessions/wd_1/s1/agents/main/wire.jsonl"), found);
        assert_eq!(folder("cline", ".cline/data/sessions/s1/s1.messages.json"), found);
        assert_eq!(folder("cline", ".cline/data/sessions/s2/s2.messages.json"), None);
        assert_eq!(folder("codex", ".cline/data/sessions/s1/s1.messages.json"), None);
    }
}
