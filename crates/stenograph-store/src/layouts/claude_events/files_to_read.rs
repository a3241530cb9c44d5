//! Finds the files that record what happened in a folder: the event logs and the journals beside them. This file changes
//! nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use stenograph::format::Head;
use stenograph::json::Object;
use stenograph::{Detected, Registry};

use super::agent::{STARTED, moment_of};
use super::project::{GOODVIBES, GoodVibesProject, LOG_ENDING, TRANSCRIPTS};
use super::{NAME, telemetry};
use crate::files::Files;
use crate::recover;

/// The logs of a project, of the folder of all its sessions, or of one folder of logs, in the order in which the agents
/// started; `None` for any other folder.
pub fn files_to_read(folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>> {
    let inside = Path::new(GOODVIBES).join(TRANSCRIPTS);
    let above = |steps: usize| folder.ancestors().nth(steps).map(GoodVibesProject::at);
    let (project, logs) = if GoodVibesProject::at(folder).transcripts().is_dir() {
        (above(0), below(&GoodVibesProject::at(folder).transcripts(), files))
    } else if folder.ends_with(&inside) {
        (above(2), below(folder, files))
    } else {
        let logs = logs(folder, files);
        let is_session = folder.parent().is_some_and(|above| above.ends_with(&inside));
        if !is_session && !are_events(&logs, files) {
            return None;
        }
        (above(3).filter(|_| is_session), logs)
    };
    let telemetry = project.and_then(|project| telemetry::starts(files, &project.telemetry()).ok());
    let starts = telemetry.unwrap_or_default();
    let mut logs: Vec<(i64, PathBuf)> = logs.into_iter().map(|log| (started_ms(&log, &starts, files), log)).collect();
    logs.sort();
    let found: Vec<PathBuf> = logs.into_iter().flat_map(|(_, log)| with_journal(log)).collect();
    (!found.is_empty()).then_some(found)
}

/// The logs of all sessions.
fn below(transcripts: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let sessions = files.list(transcripts).unwrap_or_default();
    sessions.iter().filter(|path| path.is_dir()).flat_map(|session| logs(session, files)).collect()
}

/// The logs in a folder. A journal may exist before its log does.
fn logs(folder: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let is_log = |path: &Path| path.extension().is_some_and(|ending| ending == LOG_ENDING);
    let log_of = |path: &Path| match path.extension()?.to_str()? {
        LOG_ENDING => Some(path.to_owned()),
        recover::JOURNAL_EXTENSION => Some(path.with_extension("")).filter(|log| is_log(log)),
        _ => None,
    };
    let names = files.list(folder).unwrap_or_default();
    let mut logs: Vec<PathBuf> = names.iter().filter(|path| path.is_file()).filter_map(|path| log_of(path)).collect();
    logs.sort();
    logs.dedup();
    logs
}

/// A log and then its journal, as far as they exist.
fn with_journal(log: PathBuf) -> impl Iterator<Item = PathBuf> {
    let journal = recover::journal_path(&log);
    [log, journal].into_iter().filter(|path| path.is_file())
}

/// When an agent started: from its id, the telemetry or its journal; otherwise when its log was last written.
fn started_ms(log: &Path, starts: &HashMap<(String, String), i64>, files: &dyn Files) -> i64 {
    let text = |name: Option<&std::ffi::OsStr>| name.and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let (session, agent) = (text(log.parent().and_then(Path::file_name)), text(log.file_stem()));
    let announced = || {
        let head = head(&recover::journal_path(log), files).ok()?;
        let first = std::str::from_utf8(head.split(|byte| *byte == b'\n').next()?).ok()?;
        let settings = Object::parse(first)?.open("recording")?.open("settings")?;
        settings.peek_str(STARTED)?.parse().ok()
    };
    let written = || {
        let since = log.metadata().ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    };
    let known = moment_of(&agent).or_else(|| starts.get(&(session, agent)).copied());
    known.or_else(announced).or_else(written).unwrap_or(0)
}

/// Whether all these are event logs or journals of some. An empty file may be anything.
fn are_events(logs: &[PathBuf], files: &dyn Files) -> bool {
    let mut summary = false;
    let all = logs.iter().cloned().flat_map(with_journal);
    for path in all.filter(|path| files.length(path).ok().flatten().is_some_and(|length| length > 0)) {
        let head = head(&path, files).unwrap_or_default();
        let journal = path.extension().is_some_and(|ending| ending == recover::JOURNAL_EXTENSION);
        let ours = if journal {
            let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let layout = format!("\"layout\":\"{NAME}\"");
            first.windows(layout.len()).any(|window| window == layout.as_bytes())
        } else {
            matches!(Registry::built_in().detect(&head), Detected::Format(format) if format.info().name == NAME)
        };
        if !ours {
            return false;
        }
        summary = true;
    }
    summary
}

fn head(path: &Path, files: &dyn Files) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    Head::read(&mut files.reader(path, 0)?, &mut head)?;
    Ok(head)
}
