//! `telemetry/YYYY-MM.jsonl`: a line for every agent that came to its end, in the file of the month it was written in. Lines are
//! only ever added. Whoever calls holds the project's lock.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use stenograph::json::{Draft, Object};
use stenograph::text::quote;

use super::agent::{Agent, iso};
use super::project::LOG_ENDING;
use super::seen::Seen;
use crate::error::{Error, Problem};
use crate::files::{Files, folder_of, make_folder, write_all};
use crate::tail::{self, LastLine, Remark};

/// How an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It did what it was to do.
    Completed,
    /// It did not, or nobody knows.
    Failed,
}

/// The line about an agent.
pub fn line(agent: &Agent, seen: &Seen, status: Status, ended_ms: i64) -> String {
    let list = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
        format!("[{}]", names.join(","))
    };
    let mut draft = Draft::new();
    draft.set_str("event", "subagent_complete");
    agent.identify(&mut draft);
    draft.set_str("ended_at", &iso(ended_ms));
    draft.set_number("duration_ms", u64::try_from(ended_ms - agent.started_ms).ok());
    draft.set_str(
        "status",
        match status {
            Status::Completed => "completed",
            Status::Failed => "failed",
        },
    );
    // All other keywords come from GoodVibes' own lists of words.
    draft.set("keywords", list(&agent.keyword().map(str::to_owned).into_iter().collect::<Vec<_>>()));
    draft.set("files_modified", list(seen.files()));
    draft.set("tools_used", list(seen.tools()));
    draft.set_str("summary", seen.summary());
    draft.render(None)
}

/// Adds a line to a month. Half a line that somebody left there is moved aside first.
pub fn append(files: &dyn Files, folder: &Path, month: &str, line: &str) -> Result<Vec<Remark>, Error> {
    let path = folder.join(format!("{month}.{LOG_ENDING}"));
    let unwritable = |error| Error::at(&path, Problem::Unwritable, error);
    make_folder(files, folder).map_err(unwritable)?;
    let tail = tail::settle(files, &path, LastLine::MayLackNewline)?;
    let line = format!("{}{line}\n", if tail.lacks_newline { "\n" } else { "" });
    let mut file = files.open(&path).map_err(unwritable)?;
    let added = write_all(file.as_mut(), line.as_bytes())
        .and_then(|()| file.sync())
        .and_then(|()| files.sync_folder(folder_of(&path)));
    if let Err(error) = added {
        // What may be there in part, or may not last, goes: it is added again later. What somebody else added meanwhile stays.
        let ours = tail.length..=tail.length + line.len() as u64;
        if files.length(&path).ok().flatten().is_some_and(|length| ours.contains(&length)) {
            let _ = file.truncate(tail.length);
        }
        return Err(unwritable(error));
    }
    Ok(tail.remark.into_iter().collect())
}

/// The file that has a line about this very recording of an agent. The latest month is looked at first.
pub fn find(files: &dyn Files, folder: &Path, agent: &Agent) -> Result<Option<PathBuf>, Error> {
    let unreadable = |path: &Path, error| Error::at(path, Problem::Unreadable, error);
    let months = files.list(folder).map_err(|error| unreadable(folder, error))?;
    for path in months.into_iter().rev().filter(|path| path.extension().is_some_and(|ending| ending == LOG_ENDING)) {
        if has(files, &path, agent).map_err(|error| unreadable(&path, error))? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Makes a line durable that was found.
pub fn settle(files: &dyn Files, path: &Path) -> Result<(), Error> {
    let synced = files.open(path).and_then(|mut file| file.sync()).and_then(|()| files.sync_folder(folder_of(path)));
    synced.map_err(|error| Error::at(path, Problem::Unwritable, error))
}

/// No line of ours is longer; a longer one is looked at in pieces, none of which is anybody's line.
const LINE_SIZE_MAX: u64 = 16 << 20;

fn has(files: &dyn Files, path: &Path, agent: &Agent) -> std::io::Result<bool> {
    let mut reader = BufReader::new(files.reader(path, 0)?);
    let mut line = Vec::new();
    let started = agent.started_at();
    loop {
        line.clear();
        if reader.by_ref().take(LINE_SIZE_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(false);
        }
        // A line that a crash cut off is not there.
        let whole = line.ends_with(b"\n").then(|| std::str::from_utf8(&line).ok()).flatten();
        let Some(object) = whole.and_then(Object::parse) else { continue };
        let says = |key: &str, value: &str| object.peek_str(key).as_deref() == Some(value);
        if says("started_at", &started) && says("agent_id", &agent.id) && says("session_id", &agent.session) {
            return Ok(true);
        }
    }
}
