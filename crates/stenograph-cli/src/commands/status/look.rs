//! Reads one run: the head of its file for facts stated only there, its end for its state. Its records decide whether it is
//! silent; the file's own time counts only if no record states one, because copying a file changes its time.

use std::path::{Path, PathBuf};

use stenograph::evidence::is_progress;
use stenograph::format::Format;
use stenograph::json::Draft;
use stenograph::model::{Body, Event, Note, Outline};
use stenograph::read::Sink;
use stenograph::status::{Patience, State, Status, Watch};
use stenograph::text::quote;
use stenograph::time::{Time, TimeUnit};
use stenograph_store::discover::{FileId, PathHints, Stat};
use stenograph_store::follow::{Follow, LastLine};
use stenograph_store::journal::{RecordingHeader, RecordingMark};
use stenograph_store::layouts;
use stenograph_store::{Error, Passes, Problem, Source, read_head, recover};

use crate::error::CommandError;
use crate::input;

/// How many events decide the state: enough for every rule, and for the latest title and model.
const EVENTS_MAX: usize = 60;

/// How far the clock of a record may be ahead of ours.
const AHEAD_MAX_MS: i64 = 60_000;

#[derive(Clone, Debug)]
pub struct RunLook {
    pub path: PathBuf,
    pub format: Option<&'static dyn Format>,
    /// What its journal states about the recording.
    pub recording: Option<JournalSummary>,
    pub file: FileId,
    /// When the file was last written, in milliseconds since 1970.
    pub changed_ms: i64,
    pub status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSummary {
    /// The agent whose session it is.
    pub agent: &'static str,
    /// Whether its documents are complete: later changes come from another program.
    pub is_completed: bool,
}

/// Reads a file. Returns `None` if its last record is older than `since_ms`.
pub fn at(
    path: &Path,
    from: Option<&str>,
    now_ms: i64,
    since_ms: i64,
    patience: &Patience,
) -> Result<Option<RunLook>, CommandError> {
    let stat = Stat::of(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
    let changed_ms = stat.modified_ns / 1_000_000;
    let source = Source::open(path, Passes::Once)?;
    let format = input::format_so_far(&source, from)?;
    let mut follow = Follow::open(path, format)?;
    let mut watch = Watch::default();
    // A complete last line may lack its newline; an incomplete one is ignored.
    // Progress of a sub-agent can follow its call for hours. It shows that the run is active, and must not push the call out of view.
    let mut progress_ms = None;
    let last = follow.last(EVENTS_MAX, LastLine::Include, &mut |event| {
        if !is_progress(event) {
            return Some(event.clone().into_owned());
        }
        let time_ms = event.time.as_ref().and_then(|time| Some(time.instant()?.as_millisecond()));
        progress_ms = progress_ms.max(time_ms);
        None
    })?;
    let recording = add_all(&mut watch, last.events.iter(), path);
    watch.saw_activity(progress_ms);
    if watch.active_ms().unwrap_or(changed_ms) < since_ms {
        return Ok(None);
    }
    let stated_ms = watch.active_ms().filter(|active_ms| *active_ms <= now_ms.saturating_add(AHEAD_MAX_MS));
    // A record from the future counts as current.
    let silence_ms = u64::try_from(now_ms.saturating_sub(stated_ms.unwrap_or(changed_ms))).unwrap_or(0);
    // Nobody goes on with an answer in a context that nobody holds.
    let is_released = format.is_some_and(|format| layouts::is_released(path, format));
    let settle_ms = if is_released { 0 } else { patience.settle_ms };
    let mut status = watch.status(Some(silence_ms), &Patience { settle_ms, ..*patience });
    let beginning = format.map(|format| beginning(format, source.head(), &status)).unwrap_or_default();
    // The first session id stated is the session's own: later ones may be copied from another session.
    status.session = beginning.session.or(status.session);
    status.title = status.title.or(beginning.title);
    status.cwd = status.cwd.or(beginning.cwd);
    status.branch = status.branch.or(beginning.branch);
    status.model = status.model.or(beginning.model);
    Ok(Some(RunLook { path: path.to_owned(), format, recording, file: stat.id, changed_ms, status }))
}

/// Adds the last events of a file. In a journal, the mark at the end of a recording counts as a stop; a journal of another
/// system's layout names its agent.
fn add_all<'e>(
    watch: &mut Watch,
    events: impl Iterator<Item = &'e Event<'static>>,
    path: &Path,
) -> Option<JournalSummary> {
    let (mut has_marks, mut is_completed, mut is_stopped) = (false, false, false);
    for event in events {
        let mark = RecordingMark::of(event);
        has_marks |= mark.is_some();
        is_completed = mark == Some(RecordingMark::Completed);
        watch.add(event);
        match (&mark, &event.time) {
            (Some(RecordingMark::End(end)), Some(time)) if !is_stopped => watch.add(&end.stop(time.clone())),
            (Some(_), _) => {}
            (None, _) => is_stopped = matches!(event.body, Body::Stop { .. }),
        }
    }
    // A long recording has no mark among its last events.
    let header = if has_marks || recover::is_journal_name(path) { RecordingHeader::at(path) } else { None };
    header.and_then(|header| header.agent()).map(|agent| JournalSummary { agent, is_completed })
}

/// The facts that the head of a file adds. Some systems state the session and its folder only there.
fn beginning(format: &'static dyn Format, head: &[u8], known: &Status) -> Outline {
    let mut sink = OutlineSink(Outline::new(format.info().name));
    let is_known = |known: &Option<String>, found: &Option<String>| known.is_some() || found.is_some();
    read_head(format, head, &mut sink, |OutlineSink(found)| {
        found.session.is_some()
            && is_known(&known.title, &found.title)
            && is_known(&known.cwd, &found.cwd)
            && is_known(&known.branch, &found.branch)
            && is_known(&known.model, &found.model)
    });
    sink.0
}

struct OutlineSink(Outline);

impl Sink for OutlineSink {
    fn event(&mut self, event: &Event<'_>) {
        self.0.add(event);
    }

    fn note(&mut self, _note: Note) {}
}

impl RunLook {
    /// The time of the last event, else of the file.
    pub fn active_ms(&self) -> i64 {
        self.status.active_ms.unwrap_or(self.changed_ms)
    }

    /// The agent whose session a journal records, else the one that writes this format.
    pub fn agent(&self) -> Option<&'static str> {
        let recorded = self.recording.map(|recording| recording.agent);
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
        let (stated, placed) = (self.status.session.take(), hints.session.clone());
        self.status.session = if self.recording.is_some() { placed.or(stated) } else { stated.or(placed) };
        self.status.thread = self.status.thread.take().or_else(|| hints.thread.clone());
    }

    /// Records that a live process works on the run, so silence means nothing.
    pub fn is_alive(&mut self) {
        if self.status.state == State::Stale {
            self.status.state = State::Running;
        }
    }

    /// Whether this run describes an agent better than `other`: records are better than text for people, a journal is better
    /// than the document made from it, and otherwise the newer one is better.
    pub fn tells_more_than(&self, other: &RunLook) -> bool {
        match (self.recording, other.recording) {
            (Some(_), None) => !other.goes_beyond(self),
            (None, Some(_)) => self.goes_beyond(other),
            (Some(_), Some(_)) | (None, None) => self.rank() > other.rank(),
        }
    }

    fn rank(&self) -> (bool, bool, i64, i64) {
        let is_for_people = self.format.is_none_or(|format| format.info().traits.lossy);
        (!is_for_people, self.status.state != State::Unknown, self.active_ms(), self.changed_ms)
    }

    /// Whether a document has events after the end of its journal: its agent continued it. A document without times was written
    /// again after the recorder finished. A document that has no events of the run any more does not continue it.
    fn goes_beyond(&self, journal: &RunLook) -> bool {
        if self.status.state == State::Unknown {
            return false;
        }
        let is_completed = journal.recording.is_some_and(|recording| recording.is_completed);
        match self.status.active_ms {
            Some(active_ms) => active_ms > journal.active_ms(),
            None => is_completed && self.changed_ms > journal.changed_ms,
        }
    }

    pub fn says_the_same(&self, other: &RunLook) -> bool {
        self.path == other.path && self.status == other.status
    }

    pub fn json(&self) -> String {
        self.draft().render(None)
    }

    /// As one line of JSON, with the rules and the records behind it.
    pub fn explained_json(&self) -> String {
        let mut draft = self.draft();
        draft.set("explain", super::explain::json(self));
        draft.render(None)
    }

    fn draft(&self) -> Draft<'static> {
        let status = &self.status;
        let moment = |ms: i64| Time::number(ms.max(0).to_string().into(), TimeUnit::Millis)?.to_iso_millis();
        let mut draft = Draft::new();
        draft.set_str("path", &self.path.display().to_string());
        draft.set_opt("agent", self.agent());
        draft.set_opt("id", self.id().as_deref());
        draft.set_opt("session", status.session.as_deref());
        draft.set_opt("thread", status.thread.as_deref());
        draft.set_str("state", status.state.name());
        draft.set_str("why", status.why.name());
        draft.set_opt("word", status.word.as_deref());
        draft.set_number("recovered", Some(status.recovered));
        draft.set_opt("active", moment(self.active_ms()).as_deref());
        draft.set_opt("changed", moment(self.changed_ms).as_deref());
        draft.set_opt("tool", status.tool.as_deref());
        let open: Vec<String> = status.open.iter().map(|tool| quote(tool)).collect();
        draft.set("open", format!("[{}]", open.join(",")));
        draft.set_number("context", status.context);
        draft.set_opt("model", status.model.as_deref());
        draft.set_opt("title", status.title.as_deref());
        draft.set_opt("asked", status.asked.as_deref());
        draft.set_opt("cwd", status.cwd.as_deref());
        draft.set_opt("branch", status.branch.as_deref());
        draft
    }
}
