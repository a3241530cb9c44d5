//! One run as it is now: its status, and the time since its last event. Its records decide whether it is silent; the file's own time
//! counts only if no record states one, because copying a file changes its time.

use std::path::{Path, PathBuf};

use stenograph::format::Format;
use stenograph::json::Draft;
use stenograph::status::{Patience, State, Status, Why};

use super::Need;
use crate::discover::{FileId, PathHints, Stat};
use crate::file_status::{FileStatus, JournalSummary};
use crate::index::SavedStatuses;
use crate::lock::Lock;
use crate::session_files::{Coverage, is_journal_of, recording_name};
use crate::{Error, Passes, Source, layouts};

/// How far the clock of a record may be ahead of ours.
const AHEAD_MAX_MS: i64 = 60_000;

/// A run that was silent for less needs no process to count as running.
const QUIET_MS: u64 = 60_000;

/// What the state of a run says whose recorder was killed.
const RECORDER_KILLED: &str = "the recorder was killed";

/// A run as it is now.
#[derive(Clone, Debug)]
pub struct RunLook {
    /// Its file.
    pub path: PathBuf,
    /// The format of the file, if it is known.
    pub format: Option<&'static dyn Format>,
    /// What its journal states about the recording.
    pub recording: Option<JournalSummary>,
    /// The identity of the file.
    pub file: FileId,
    /// When the file was last written, in milliseconds since 1970.
    pub changed_ms: i64,
    /// How long its records have been silent.
    pub silence_ms: u64,
    /// Whether a process works on it; `None` if nobody looked, or nobody can tell.
    pub process: Option<bool>,
    /// What its records say.
    pub status: Status,
    /// What they say if no process works on it, where that differs: the last answer is then complete.
    left: Option<Box<Status>>,
}

/// How to look at runs.
#[derive(Clone, Copy, Debug)]
pub struct Look<'l> {
    /// The format that the user named.
    pub format: Option<&'static dyn Format>,
    /// What the index knows. It recognised the formats itself, so it knows nothing about a file whose format the user named.
    pub saved: &'l SavedStatuses,
    /// The current time, in milliseconds since 1970.
    pub now_ms: i64,
    /// Runs whose last record is older are not shown.
    pub since_ms: i64,
    /// How long a run may be silent.
    pub patience: Patience,
}

impl Look<'_> {
    /// Looks at a file with this stat; `recognize` finds the format if the user named none. Returns `None` if its last record is
    /// too old.
    pub fn at<E: From<Error>>(
        &self,
        path: &Path,
        stat: &Stat,
        recognize: impl FnOnce(&Source) -> Result<Option<&'static dyn Format>, E>,
    ) -> Result<Option<RunLook>, E> {
        let saved = if self.format.is_none() { self.saved.of(path, stat) } else { None };
        let FileStatus { format, recording, run } = match saved {
            Some(status) => status,
            None => {
                let source = Source::open(path, Passes::Once)?;
                let format = match self.format {
                    Some(format) => Some(format),
                    None => recognize(&source)?,
                };
                FileStatus::read(path, &source, format)?
            }
        };
        let changed_ms = stat.modified_ns / 1_000_000;
        if run.active_ms.unwrap_or(changed_ms) < self.since_ms {
            return Ok(None);
        }
        let stated_ms = run.active_ms.filter(|active_ms| *active_ms <= self.now_ms.saturating_add(AHEAD_MAX_MS));
        // A record from the future counts as current.
        let silence_ms = u64::try_from(self.now_ms.saturating_sub(stated_ms.unwrap_or(changed_ms))).unwrap_or(0);
        // No process continues an answer in a context that nobody has locked.
        let is_locked = format.and_then(|format| layouts::is_locked(path, format));
        let answer_ms = if is_locked == Some(false) { 0 } else { self.patience.answer_ms };
        let mut status = run.status(Some(silence_ms), &Patience { answer_ms, ..self.patience });
        if matches!(status.state, State::Running | State::Stalled) && Lock::is_left(path) {
            // No process records this run any more, and none recorded its end.
            (status.state, status.why, status.word) = (State::Failed, Why::LastError, Some(RECORDER_KILLED.to_owned()));
        }
        let left = run.status(Some(silence_ms), &Patience { answer_ms: 0, ..self.patience });
        let left = Some(Box::new(left))
            .filter(|left| status.state == State::Running && left.state == State::Idle && is_locked != Some(true));
        let (path, file) = (path.to_owned(), stat.id);
        Ok(Some(RunLook { path, format, recording, file, changed_ms, silence_ms, process: None, status, left }))
    }
}

impl RunLook {
    /// The time of the last event, else of the file.
    pub fn active_ms(&self) -> i64 {
        self.status.active_ms.unwrap_or(self.changed_ms)
    }

    /// The agent whose session a journal records, else the one that writes this format.
    pub fn agent(&self) -> Option<&str> {
        let recorded = self.recording.as_ref().map(|recording| recording.agent.as_str());
        recorded.or_else(|| self.format.map(|format| format.info().agent))
    }

    /// The session id, and the agent if the session has several. Commands accept it as a name.
    pub fn id(&self) -> Option<String> {
        let session = self.status.session.as_deref()?;
        Some(match self.status.thread.as_deref() {
            Some(thread) => format!("{session}/{thread}"),
            None => session.to_owned(),
        })
    }

    /// Adds the session and the agent that the file's path names. The folder of a recording identifies its session, whatever the
    /// conversation in it states.
    pub fn place(&mut self, hints: &PathHints) {
        let named = recording_name(&self.path).or_else(|| hints.session.clone());
        let (stated, placed) = (self.status.session.take(), named);
        self.status.session = if self.recording.is_some() { placed.or(stated) } else { stated.or(placed) };
        self.status.thread = self.status.thread.take().or_else(|| hints.thread.clone());
    }

    /// Whether a process can decide between working and dead: an agent that wrote a moment ago is working.
    pub(crate) fn needs_process(&self) -> bool {
        match self.status.state {
            State::Stalled => true,
            State::Running => self.silence_ms > QUIET_MS || self.left.is_some(),
            State::Idle | State::Completed | State::Failed | State::Error | State::Stuck | State::Unknown => false,
        }
    }

    /// Records whether a process works on the run. If one does, silence means nothing.
    pub(crate) fn set_process(&mut self, process: Option<bool>) {
        self.process = process;
        if process == Some(true) && self.status.state == State::Stalled {
            self.status.state = State::Running;
        }
        if let Some(left) = self.left.take().filter(|_| process == Some(false)) {
            self.status = *left;
        }
    }

    /// Whether a run seems to work, but its agent's program does not run in its folder.
    pub fn is_process_missing(&self) -> bool {
        self.status.state == State::Running && self.process == Some(false)
    }

    /// Whether this run describes an agent better than `other`: records are better than text for people, a journal is better
    /// than the document made from it, and otherwise the newer one is better. A thread may have several recordings; the newest
    /// one decides.
    pub fn tells_more_than(&self, other: &RunLook) -> bool {
        let is_journal = |one: &RunLook, other: &RunLook| is_journal_of(&one.path, &other.path);
        match (&self.recording, &other.recording) {
            (Some(_), None) if is_journal(self, other) => !other.goes_beyond(self),
            (None, Some(_)) if is_journal(other, self) => self.goes_beyond(other),
            (Some(_), None) | (None, Some(_)) => self.recency() > other.recency(),
            (Some(_), Some(_)) | (None, None) => self.rank() > other.rank(),
        }
    }

    fn recency(&self) -> (bool, i64, i64) {
        (self.status.state != State::Unknown, self.active_ms(), self.changed_ms)
    }

    fn rank(&self) -> (bool, (bool, i64, i64)) {
        let is_whole = self.format.is_some_and(|format| Coverage::of(format) == Coverage::Session);
        (is_whole, self.recency())
    }

    /// Whether a document has events after the end of its journal: its agent continued it. A document without times was written
    /// again after the recorder finished. A document that has no events of the run any more does not continue it.
    fn goes_beyond(&self, journal: &RunLook) -> bool {
        if self.status.state == State::Unknown {
            return false;
        }
        let is_completed = journal.recording.as_ref().is_some_and(|recording| recording.is_completed);
        match self.status.active_ms {
            Some(active_ms) => active_ms > journal.active_ms(),
            None => is_completed && self.changed_ms > journal.changed_ms,
        }
    }

    /// Whether nothing changed between two looks.
    pub fn says_the_same(&self, other: &RunLook) -> bool {
        self.path == other.path && self.status == other.status
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        self.draft().render(None)
    }

    /// As a JSON object that is not finished.
    pub fn draft(&self) -> Draft<'static> {
        let mut draft = Draft::new();
        draft.set_str("path", &self.path.display().to_string());
        draft.set_opt("agent", self.agent());
        draft.set_opt("id", self.id().as_deref());
        self.status.put(Some(self.changed_ms), &mut draft);
        draft.set_opt("needs", Need::of(self).name());
        draft.set("process", self.process.map_or_else(|| "null".to_owned(), |is_seen| is_seen.to_string()));
        draft
    }
}
