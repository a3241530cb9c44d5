//! `telemetry/YYYY-MM.jsonl`: a line for every agent that ended, in the file of the month in which it was written. Lines are
//! only added. The caller holds the project's lock.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use stenograph::json::{Draft, Object};
use stenograph::text::quote;
use stenograph::time::Time;

use super::agent::{TrackedAgent, iso};
use super::project::LOG_ENDING;
use super::summary::AgentSummary;
use crate::error::{Error, Problem};
use crate::files::{Files, create_folder_durably, folder_of, rewrite_from, write_all};
use crate::tail::{self, LastLineRule, Warning};

/// How an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentStatus {
    /// It succeeded.
    Completed,
    /// It failed, or that is unknown.
    Failed,
}

/// The line about an agent.
pub fn line(agent: &TrackedAgent, summary: &AgentSummary, status: AgentStatus, ended_ms: i64) -> String {
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
            AgentStatus::Completed => "completed",
            AgentStatus::Failed => "failed",
        },
    );
    // All other keywords come from GoodVibes' own word lists.
    draft.set("keywords", list(&agent.keyword().map(str::to_owned).into_iter().collect::<Vec<_>>()));
    draft.set("files_modified", list(summary.files()));
    draft.set("tools_used", list(summary.tools()));
    draft.set_str("summary", summary.last_message());
    draft.render(None)
}

/// Adds a line to a month. Moves half a line that a crash left aside first.
pub fn append(files: &dyn Files, folder: &Path, month: &str, line: &str) -> Result<Vec<Warning>, Error> {
    let path = folder.join(format!("{month}.{LOG_ENDING}"));
    let unwritable = |error| Error::at(&path, Problem::Unwritable, error);
    create_folder_durably(files, folder).map_err(unwritable)?;
    let tail = tail::repair_tail(files, &path, LastLineRule::MayLackNewline)?;
    let line = format!("{}{line}\n", if tail.lacks_newline { "\n" } else { "" });
    let mut file = files.open(&path).map_err(unwritable)?;
    let added = write_all(file.as_mut(), line.as_bytes())
        .and_then(|()| file.sync())
        .and_then(|()| files.sync_folder(folder_of(&path)));
    if let Err(error) = added {
        // Bytes that may be incomplete or not durable are removed and added again later. Lines that another process added
        // meanwhile stay.
        let ours = tail.length..=tail.length + line.len() as u64;
        if files.length(&path).ok().flatten().is_some_and(|length| ours.contains(&length)) {
            let _ = file.truncate(tail.length);
        }
        return Err(unwritable(error));
    }
    Ok(tail.warning.into_iter().collect())
}

/// The position of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePosition {
    path: PathBuf,
    offset: u64,
}

/// The line about this recording of an agent. The latest month is searched first.
pub fn find(files: &dyn Files, folder: &Path, agent: &TrackedAgent) -> Result<Option<LinePosition>, Error> {
    let started = agent.started_at();
    let mut found = None;
    each(files, folder, &mut |place, line| {
        let has = |key: &str, value: &str| line.peek_str(key).as_deref() == Some(value);
        if has("started_at", &started) && has("agent_id", &agent.id) && has("session_id", &agent.session) {
            found = Some(place.clone());
        }
        if found.is_some() { Continue::NoFurther } else { Continue::On }
    })?;
    Ok(found)
}

/// When agents first started, by session and id.
pub fn starts(files: &dyn Files, folder: &Path) -> Result<HashMap<(String, String), i64>, Error> {
    let mut starts = HashMap::new();
    each(files, folder, &mut |_, line| {
        let name = |key: &str| line.peek_str(key).map(String::from);
        let started = line.peek_str("started_at").and_then(Time::iso).and_then(|time| time.to_millis());
        if let (Some(session), Some(agent), Some(started)) = (name("session_id"), name("agent_id"), started) {
            let start = starts.entry((session, agent)).or_insert(started);
            *start = started.min(*start);
        }
        Continue::On
    })?;
    Ok(starts)
}

/// Makes an existing line durable: its writer's sync may have failed.
pub fn sync_line(files: &dyn Files, LinePosition { path, offset }: &LinePosition) -> Result<(), Error> {
    let written = rewrite_from(files, path, *offset).and_then(|()| files.sync_folder(folder_of(path)));
    written.map_err(|error| Error::at(path, Problem::Unwritable, error))
}

/// The maximum length of our lines; a longer line is read in pieces, none of which matches.
const LINE_SIZE_MAX: u64 = 16 << 20;

/// Whether to continue reading lines.
#[derive(PartialEq, Eq)]
enum Continue {
    On,
    NoFurther,
}

/// Passes all lines to `look`, those of the latest month first.
fn each(
    files: &dyn Files,
    folder: &Path,
    look: &mut dyn FnMut(&LinePosition, &Object<'_>) -> Continue,
) -> Result<(), Error> {
    let unreadable = |path: &Path, error| Error::at(path, Problem::Unreadable, error);
    let months = files.list(folder).map_err(|error| unreadable(folder, error))?;
    for path in months.iter().rev().filter(|path| path.extension().is_some_and(|ending| ending == LOG_ENDING)) {
        let reader = files.reader(path, 0).map_err(|error| unreadable(path, error))?;
        let place = LinePosition { path: path.clone(), offset: 0 };
        if lines(reader, place, look).map_err(|error| unreadable(path, error))? == Continue::NoFurther {
            break;
        }
    }
    Ok(())
}

fn lines(
    reader: Box<dyn Read>,
    mut place: LinePosition,
    look: &mut dyn FnMut(&LinePosition, &Object<'_>) -> Continue,
) -> std::io::Result<Continue> {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        place.offset += line.len() as u64;
        line.clear();
        if reader.by_ref().take(LINE_SIZE_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(Continue::On);
        }
        // A line that a crash cut off does not count.
        let whole = line.ends_with(b"\n").then(|| std::str::from_utf8(&line).ok()).flatten();
        if whole.and_then(Object::parse).is_some_and(|object| look(&place, &object) == Continue::NoFurther) {
            return Ok(Continue::NoFurther);
        }
    }
}
