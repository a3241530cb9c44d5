//! What the end of a file says about its run: everything that `status` shows except what depends on the time of asking. The index saves it,
//! so that an unchanged file need not be opened; every other file is read here. Both take the same events in the same way: those of the
//! last `WINDOW_SIZE` bytes, or of a larger window if it holds too few.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stenograph::Registry;
use stenograph::evidence::is_progress;
use stenograph::format::Format;
use stenograph::model::{Body, Event, Outline};
use stenograph::read::Sink;
use stenograph::status::{StatusSummary, Watch};

use crate::follow::{EndSink, Follow, LastLine};
use crate::identity::read_head;
use crate::journal::{RecordingHeader, RecordingMark};
use crate::{Error, Source, recover, working_folder};

/// How many bytes before the end of a file of lines decide the status. A file without lines is read from its beginning.
pub(crate) const WINDOW_SIZE: u64 = 256 << 10;

/// How many events the window must hold: ten calls with their results, which is enough for every rule.
const EVENTS_MIN: usize = 20;

/// The version of saved values. A value of another version is ignored, and the file is read. Rules may change with every release; increment
/// the number if they change between two releases.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/3");

/// What the last events of a file say about its run.
#[derive(Clone, Debug)]
pub struct FileStatus {
    /// The format of the file; an empty file has none.
    pub format: Option<&'static dyn Format>,
    /// What its journal states about the recording.
    pub recording: Option<JournalSummary>,
    /// The run.
    pub run: StatusSummary,
}

/// What a journal states about its recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalSummary {
    /// The agent whose session it is.
    pub agent: String,
    /// Whether its documents are complete: later changes come from another program.
    pub is_completed: bool,
}

#[derive(Serialize, Deserialize)]
struct SavedStatus {
    version: String,
    format: Option<String>,
    recording: Option<JournalSummary>,
    run: StatusSummary,
}

impl FileStatus {
    /// Reads the end of a file, and its beginning for facts that only that states.
    pub fn read(path: &Path, source: &Source, format: Option<&'static dyn Format>) -> Result<FileStatus, Error> {
        let mut builder = StatusBuilder::default();
        // A complete last line may lack its newline; an incomplete one is ignored.
        Follow::open(path, format)?.read_end(&mut builder, LastLine::Include)?;
        Ok(builder.status(path, format, |run| {
            format.map(|format| head_facts(format, source.head(), run)).unwrap_or_default()
        }))
    }

    /// The status as one line of JSON.
    pub fn save(&self) -> String {
        let saved = SavedStatus {
            version: VERSION.to_owned(),
            format: self.format.map(|format| format.info().name.to_owned()),
            recording: self.recording.clone(),
            run: self.run.clone(),
        };
        serde_json::to_string(&saved).unwrap_or_default()
    }

    /// The status that was saved; `None` if another version saved it, or it is damaged.
    pub fn restore(saved: &str, registry: &Registry) -> Option<FileStatus> {
        let SavedStatus { version, format, recording, run } = serde_json::from_str(saved).ok()?;
        let format = match format {
            Some(name) => Some(registry.named(&name)?),
            None => None,
        };
        (version == VERSION).then_some(FileStatus { format, recording, run })
    }
}

/// Takes the events at the end of a file.
#[derive(Debug, Default)]
pub(crate) struct StatusBuilder {
    watch: Watch,
    /// How many events there are, without the progress of sub-agents: that can follow a call for hours, and must not push it out of view.
    events: usize,
    has_marks: bool,
    is_completed: bool,
    is_stopped: bool,
}

impl StatusBuilder {
    /// Takes an event. In a journal, the mark at the end of a recording counts as a stop.
    pub(crate) fn add(&mut self, event: &Event<'_>) {
        if is_progress(event) {
            let time_ms = event.time.as_ref().and_then(|time| Some(time.instant()?.as_millisecond()));
            return self.watch.saw_activity(time_ms);
        }
        self.events += 1;
        let mark = RecordingMark::of(event);
        self.has_marks |= mark.is_some();
        self.is_completed = mark == Some(RecordingMark::Completed);
        self.watch.add(event);
        match (&mark, &event.time) {
            (Some(RecordingMark::End(end)), Some(time)) if !self.is_stopped => {
                self.watch.add(&end.stop(time.clone().into_owned()));
            }
            (Some(_), _) => {}
            (None, _) => self.is_stopped = matches!(event.body, Body::Stop { .. }),
        }
    }

    /// The status of the run. `head` gives the facts from the beginning of the file that the run does not state.
    pub(crate) fn status(
        &self,
        path: &Path,
        format: Option<&'static dyn Format>,
        head: impl FnOnce(&StatusSummary) -> Outline,
    ) -> FileStatus {
        let mut run = self.watch.summary();
        let head = head(&run);
        // The first session id stated is the session's own: later ones may be copied from another session.
        run.session = head.session.or(run.session);
        run.title = run.title.or(head.header.title);
        run.cwd = run.cwd.or(head.header.cwd).or_else(|| working_folder(path, format?));
        run.branch = run.branch.or(head.first_branch);
        run.model = run.model.or(head.first_model);
        FileStatus { format, recording: self.recording(path), run }
    }

    /// What a journal of another system's layout states. A long recording has no mark among its last events.
    fn recording(&self, path: &Path) -> Option<JournalSummary> {
        let may_be = self.has_marks || recover::is_journal_name(path);
        let agent = if may_be { RecordingHeader::at(path)?.agent()? } else { return None };
        Some(JournalSummary { agent: agent.to_owned(), is_completed: self.is_completed })
    }
}

impl Sink for StatusBuilder {
    fn event(&mut self, event: &Event<'_>) {
        self.add(event);
    }
}

impl EndSink for StatusBuilder {
    fn window_size(&self) -> u64 {
        WINDOW_SIZE
    }

    fn enough(&self) -> usize {
        EVENTS_MIN
    }

    fn has_enough(&self) -> bool {
        self.events >= EVENTS_MIN
    }

    fn clear(&mut self) {
        *self = StatusBuilder::default();
    }

    fn give_up(&mut self, _length: u64) {}
}

/// The facts that the head of a file states. Some systems state the session and its folder only there.
pub(crate) fn head_facts(format: &'static dyn Format, head: &[u8], known: &StatusSummary) -> Outline {
    let mut sink = OutlineSink(Outline::new(format.info().name));
    let is_known = |known: &Option<String>, found: &Option<String>| known.is_some() || found.is_some();
    read_head(format, head, &mut sink, |OutlineSink(found)| {
        found.session.is_some()
            // The last title counts, so one that is found does not end the search.
            && known.title.is_some()
            && is_known(&known.cwd, &found.header.cwd)
            && is_known(&known.branch, &found.first_branch)
            && is_known(&known.model, &found.first_model)
    });
    sink.0
}

struct OutlineSink(Outline);

impl Sink for OutlineSink {
    fn event(&mut self, event: &Event<'_>) {
        self.0.add(event);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::Passes;

    fn status_of(text: &str) -> FileStatus {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let source = Source::open(file.path(), Passes::Once).unwrap();
        let format = source.recognize(&crate::discover::PathHints::default()).map(|recognized| recognized.format);
        FileStatus::read(file.path(), &source, format).unwrap()
    }

    fn restore(saved: &str) -> Option<FileStatus> {
        FileStatus::restore(saved, Registry::built_in())
    }

    const LINE: &str =
        "{\"v\":1,\"kind\":\"message\",\"session\":\"s1\",\"role\":\"user\",\"content\":\"Fix it\",\"cwd\":\"/w\"}\n";

    #[test]
    fn a_status_that_is_saved_comes_back_unchanged() {
        let status = status_of(LINE);
        let restored = restore(&status.save()).unwrap();
        assert_eq!((restored.run, restored.recording), (status.run, status.recording));
        assert_eq!(restored.format.map(|format| format.info().name), Some("steno"));
    }

    #[test]
    fn a_status_of_another_version_or_a_damaged_one_is_ignored() {
        let saved = status_of(LINE).save();
        assert!(restore(&saved.replace(VERSION, "0.0.9/1")).is_none());
        assert!(restore(&saved.replace("\"steno\"", "\"unknown\"")).is_none());
        assert!(restore(&saved[..saved.len() / 2]).is_none());
        assert!(restore("").is_none());
        assert!(restore("{}").is_none());
    }

    #[test]
    fn what_is_saved_stays_small() {
        let mut text = String::new();
        for number in 0..200 {
            let _ = writeln!(
                text,
                "{{\"v\":1,\"kind\":\"tool_call\",\"session\":\"s1\",\"name\":\"Bash\",\"call\":\"c{number}\",\"input\":{{\"x\":{number}}}}}"
            );
        }
        let saved = status_of(&text).save();
        assert!(saved.len() < 16 << 10, "{} bytes", saved.len());
    }
}
