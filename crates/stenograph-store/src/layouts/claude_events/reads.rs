//! Which files say what happened in a folder: the event logs and the journals beside them. Nothing here changes anything.

use std::io::Read;
use std::path::{Path, PathBuf};

use stenograph::format::{Detected, Head, detect};

use super::NAME;
use super::project::{GOODVIBES, LOG_ENDING, Project, TRANSCRIPTS};
use crate::files::Files;
use crate::recover;

/// The logs of a project, of the folder of all its sessions, or of one folder of logs; `None` for any other folder.
pub fn reads(folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>> {
    let transcripts = Project::at(folder).transcripts();
    let found = if transcripts.is_dir() {
        below(&transcripts, files)
    } else if folder.ends_with(Path::new(GOODVIBES).join(TRANSCRIPTS)) {
        below(folder, files)
    } else {
        let logs = logs(folder, files);
        let is_ours = folder.parent().is_some_and(|above| above.ends_with(Path::new(GOODVIBES).join(TRANSCRIPTS)));
        if is_ours || are_events(&logs, files) { logs } else { Vec::new() }
    };
    (!found.is_empty()).then_some(found)
}

/// The logs of all sessions.
fn below(transcripts: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let sessions = files.list(transcripts).unwrap_or_default();
    sessions.iter().filter(|path| path.is_dir()).flat_map(|session| logs(session, files)).collect()
}

/// The logs in a folder, each with its journal after it. A journal may stand there alone.
fn logs(folder: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let log_of = |path: &Path| match path.extension()?.to_str()? {
        LOG_ENDING => Some(path.to_owned()),
        recover::ENDING => {
            Some(path.with_extension("")).filter(|log| log.extension().is_some_and(|it| it == LOG_ENDING))
        }
        _ => None,
    };
    let names = files.list(folder).unwrap_or_default();
    let mut logs: Vec<PathBuf> = names.iter().filter(|path| path.is_file()).filter_map(|path| log_of(path)).collect();
    logs.sort();
    logs.dedup();
    logs.into_iter().flat_map(|log| [log.clone(), recover::beside(&log)]).filter(|path| path.is_file()).collect()
}

/// Whether all these are event logs, or journals of some. A file with nothing in it may be anything.
fn are_events(logs: &[PathBuf], files: &dyn Files) -> bool {
    let mut seen = false;
    for path in logs.iter().filter(|path| files.length(path).ok().flatten().is_some_and(|length| length > 0)) {
        let head = head(path, files).unwrap_or_default();
        let journal = path.extension().is_some_and(|ending| ending == recover::ENDING);
        let ours = if journal {
            let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let layout = format!("\"layout\":\"{NAME}\"");
            first.windows(layout.len()).any(|window| window == layout.as_bytes())
        } else {
            matches!(detect(&head), Detected::Format(format) if format.info().name == NAME)
        };
        if !ours {
            return false;
        }
        seen = true;
    }
    seen
}

fn head(path: &Path, files: &dyn Files) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    files.reader(path, 0)?.take(Head::SIZE_MAX as u64).read_to_end(&mut head)?;
    Ok(head)
}
