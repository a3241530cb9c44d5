//! Sub-agents of Claude Code as the GoodVibes plug-in sees them: an event log for each, `.goodvibes/state/agent-tracking.json`
//! with the active ones, and `.goodvibes/telemetry/YYYY-MM.jsonl` with a line for each that ended. The format writes events.
//!
//! The logs are in the project too, at `.goodvibes/transcripts/{session}/{agent}.jsonl`: Claude Code's own folder below the
//! home folder is not ours, and everything about a project moves with it. `--set log=FILE` overrides that.

mod agent;
mod files_to_read;
mod project;
mod recording;
mod summary;
mod telemetry;
mod tracking;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stenograph::format::Format;
use stenograph::formats::claude_events;

use super::{
    ContinuedConversation, Documents, Environment, Layout, LayoutInfo, LockedJournal, OpenedRecording, Target, appended,
};
use crate::document::LineDocument;
use crate::error::{Error, Problem};
use crate::files::{Files, folder_of};
use crate::journal::{Recording, RecordingHeader};
use crate::lock::safe_component;
use crate::recover;
use agent::TrackedAgent;
use project::GoodVibesProject;
use recording::{ClaudeEventsDocuments, RecordingStage};

/// The layout.
pub struct ClaudeEventsLayout;

const NAME: &str = "claude-events";

/// The header's key for the path from the journal's folder to the project.
const FOLDER: &str = "folder";

impl Layout for ClaudeEventsLayout {
    fn info(&self) -> &'static LayoutInfo {
        &LayoutInfo {
            name: NAME,
            agent: "claude-code",
            title: "an agent's event log, with GoodVibes' list of agents at work and its monthly telemetry",
            path: "the folder of the project (the current folder by default); \
                   the log is .goodvibes/transcripts/SESSION/AGENT.jsonl in it",
            keys: &[
                ("agent", "the id of the agent (made up where it is missing)"),
                ("type", "what kind of agent it is, such as goodvibes:test-engineer"),
                ("session", "the id of the session it works for (made up where it is missing)"),
                ("task", "what it is to do; the list of agents has the first 500 characters"),
                ("branch", "the branch it works on"),
                ("commit", "the commit it started from"),
                ("log", "the event log, in place of the usual one"),
            ],
        }
    }

    fn open(&self, target: &Target, environment: &Environment) -> Result<OpenedRecording, Error> {
        let folder = target.path.clone().unwrap_or_else(|| PathBuf::from("."));
        let project = GoodVibesProject::at(&folder);
        let now = (environment.clock)().to_millis().unwrap_or(0);
        let session = target.settings.get("session").map(|session| safe_component(session)).transpose()?;
        let mut agent = TrackedAgent::announced(
            &target.settings,
            &project,
            project.start(session, now, environment.files.as_ref())?,
        )?;
        let log = match target.settings.get("log") {
            Some(file) => PathBuf::from(file),
            None => project.log(&agent.session, &agent.id),
        };
        let name = log.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Error::about(&log, Problem::BadName))?.to_owned();
        let journal_lock = LockedJournal::of_journal_in(&recover::beside(&log), Some(&folder), environment)?;
        let (base, warning) = LineDocument::base(&environment.files, &log)?;
        if base > 0 {
            start_later(&mut agent, &project, environment);
        }
        let mut settings = agent.settings();
        settings.insert(FOLDER.to_owned(), project.seen_from(folder_of(&log))?);
        let header = RecordingHeader { layout: NAME.to_owned(), settings, documents: BTreeMap::from([(name, base)]) };
        let document = LineDocument::new(&environment.files, &log, &claude_events::ClaudeEvents, base);
        let recording = ClaudeEventsDocuments::new(document, agent, project, environment, RecordingStage::Live);
        let same = target.load.as_deref().is_some_and(|load| crate::identity::is_same(load, &log));
        let continued = if same { ContinuedConversation::InPlace } else { ContinuedConversation::ToBeRecorded };
        let again = (base > 0 && !same).then(|| appended(&log));
        let warnings = warning.into_iter().chain(again).collect();
        Ok(OpenedRecording { continued, warnings, ..OpenedRecording::new(journal_lock, header, Box::new(recording)) })
    }

    fn resume(&self, recorded: &Recording, environment: &Environment) -> Result<Box<dyn Documents>, Error> {
        let unknown = || Error::about(&recorded.journal, Problem::NoLayout);
        let header = &recorded.header;
        let agent = TrackedAgent::of(&header.settings).ok_or_else(unknown)?;
        let way = header.settings.get(FOLDER).ok_or_else(unknown)?;
        let project = GoodVibesProject::relative_to(folder_of(&recorded.journal), way);
        let (name, base) = header.documents.first_key_value().ok_or_else(unknown)?;
        let log = recorded.document(name);
        if !recorded.is_named_after(name) {
            return Err(Error::about(&log, Problem::Outside));
        }
        let document = LineDocument::new(&environment.files, &log, &claude_events::ClaudeEvents, *base);
        Ok(Box::new(ClaudeEventsDocuments::new(document, agent, project, environment, RecordingStage::Resumed)))
    }

    fn folders(&self, journal: &Path, named: Option<&Path>, _environment: &Environment) -> Vec<PathBuf> {
        // The files that all agents of a project share are beside the folder of the event logs.
        let folder = folder_of(journal);
        let home = folder.ancestors().find(|above| above.ends_with(project::GOODVIBES));
        std::iter::once(home.unwrap_or(folder)).chain(named).map(Path::to_owned).collect()
    }

    fn format(&self) -> Option<&'static dyn Format> {
        Some(&claude_events::ClaudeEvents)
    }

    fn files_to_read(&self, folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>> {
        files_to_read::files_to_read(folder, files)
    }
}

/// Gives the recording a start time that no earlier one of the same agent has, whatever the clock says: the start time
/// identifies a recording.
fn start_later(agent: &mut TrackedAgent, project: &GoodVibesProject, environment: &Environment) {
    while let Ok(Some(_)) = telemetry::find(environment.files.as_ref(), &project.telemetry(), agent) {
        agent.started_ms += 1;
    }
}
