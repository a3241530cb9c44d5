//! A recording of one agent: its event log in step with the journal, its entry in the list of active agents, and its line of
//! telemetry. A failure in the shared files never stops a recording: it becomes a warning and is repaired later.

use std::sync::Arc;

use stenograph::model::Event;

use super::agent::TrackedAgent;
use super::project::{GoodVibesProject, from_root};
use super::summary::AgentSummary;
use super::telemetry::{self, AgentStatus};
use super::tracking;
use crate::document::{ComparedDocument, LineDocument, measure};
use crate::error::{Error, Problem};
use crate::files::{Files, folder_of};
use crate::journal::{Recording, RecordingEnd};
use crate::layouts::{Clock, Documents, Environment, FinishedDocuments, JournalNeed, StatedFields};
use crate::tail::Warning;

/// The documents of one agent.
pub struct ClaudeEventsDocuments {
    pub log: LineDocument,
    pub agent: TrackedAgent,
    pub project: GoodVibesProject,
    pub summary: AgentSummary,
    pub stage: RecordingStage,
    pub files: Arc<dyn Files>,
    pub clock: Clock,
}

/// Whether the recording was observed from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingStage {
    /// It is active, and this process records it.
    Live,
    /// It was cut off, or its end was: how much was done is unknown.
    Resumed,
}

impl ClaudeEventsDocuments {
    /// The documents of an agent, with nothing done yet.
    pub fn new(
        log: LineDocument,
        agent: TrackedAgent,
        project: GoodVibesProject,
        environment: &Environment,
        stage: RecordingStage,
    ) -> ClaudeEventsDocuments {
        let (files, clock) = (Arc::clone(&environment.files), Arc::clone(&environment.clock));
        ClaudeEventsDocuments { log, agent, project, summary: AgentSummary::default(), stage, files, clock }
    }

    fn enter(&self) -> Result<Vec<Warning>, Error> {
        let _lock = self.project.lock(self.files.as_ref())?;
        let transcript = from_root(self.log.path());
        tracking::enter(self.files.as_ref(), &self.project.tracking(), &self.agent, &transcript)
    }

    /// Adds the line of telemetry and only then removes the agent from the list: an agent in the list has no line yet, or one
    /// that can be found.
    fn leave(&self, recorded: &Recording) -> Result<Vec<Warning>, Error> {
        let files = self.files.as_ref();
        let _lock = self.project.lock(files)?;
        let folder = self.project.telemetry();
        let found = match self.stage {
            RecordingStage::Live => None,
            RecordingStage::Resumed => telemetry::find(files, &folder, &self.agent)?,
        };
        let mut warnings = Vec::new();
        match found {
            Some(place) => telemetry::sync_line(files, &place)?,
            None => {
                let (status, ended_ms) = self.outcome(recorded);
                let line = telemetry::line(&self.agent, &self.summary, status, ended_ms);
                warnings.extend(telemetry::append(files, &folder, &self.month(), &line)?);
                if self.summary.left_out() > 0 {
                    let text = format!("the agent {} used too many tools and files: not all are listed", self.agent.id);
                    warnings.push(Warning::new(&folder, text));
                }
            }
        }
        warnings.extend(tracking::leave(files, &self.project.tracking(), &self.agent)?);
        Ok(warnings)
    }

    /// The month in local time, under which GoodVibes files a line.
    fn month(&self) -> String {
        (self.clock)().wall("%Y-%m").unwrap_or_else(|| "1970-01".to_owned())
    }

    fn outcome(&self, recorded: &Recording) -> (AgentStatus, i64) {
        let now = (self.clock)().to_millis().unwrap_or(self.agent.started_ms);
        let ended = match (self.stage, &recorded.ended) {
            (RecordingStage::Live, _) => Some(now),
            // The time of the recovery is not the time at which the agent ended.
            (RecordingStage::Resumed, Some(RecordingEnd::Interrupted) | None) => self.summary.last_ms(),
            (
                RecordingStage::Resumed,
                Some(RecordingEnd::Completed | RecordingEnd::Failed(_) | RecordingEnd::Canceled),
            ) => self.summary.stopped_ms().or(self.summary.last_ms()),
        };
        // Events may bring their own times, and a clock may be set back: an agent ends neither before it starts nor in the
        // future.
        let ended = ended.unwrap_or(self.agent.started_ms).min(now).max(self.agent.started_ms);
        let status = match (&recorded.ended, self.summary.success()) {
            (Some(RecordingEnd::Completed), None | Some(true)) => AgentStatus::Completed,
            _ => AgentStatus::Failed,
        };
        (status, ended)
    }

    fn measured(&self, recorded: &Recording, given: StatedFields) -> Result<JournalNeed, Error> {
        let path = self.log.path();
        let bytes = self.files.reader(path, self.log.starts_at());
        let bytes = bytes.map_err(|error| Error::at(path, Problem::Unreadable, error))?;
        measure(recorded, ComparedDocument { format: self.log.format(), bytes }, given)
    }
}

impl Documents for ClaudeEventsDocuments {
    fn begin(&mut self) -> Vec<Warning> {
        self.log.begin();
        self.enter().unwrap_or_else(|error| {
            let text = format!("cannot add the agent {}: {error}", self.agent.id);
            vec![Warning::new(&self.project.tracking(), text)]
        })
    }

    fn add(&mut self, event: &Event<'_>) {
        self.summary.add(event);
        self.log.add(event);
    }

    fn finish(&mut self, recorded: &Recording, given: StatedFields) -> Result<FinishedDocuments, Error> {
        if self.stage == RecordingStage::Resumed {
            let summary = &mut self.summary;
            recorded.read(&mut |event| summary.add(event))?;
        }
        let mut warnings = self.log.finish(recorded)?;
        let mut journal = self.measured(recorded, given)?;
        match self.leave(recorded) {
            Ok(left) => warnings.extend(left),
            Err(error) => {
                journal = JournalNeed::Unfinished;
                let text =
                    format!("has no line for the agent {} yet, run steno recover to add it: {error}", self.agent.id);
                warnings.push(Warning::new(&self.project.telemetry(), text));
            }
        }
        Ok(FinishedDocuments { journal, written: vec![self.log.path().to_owned()], warnings })
    }

    fn discard(&mut self) -> Result<(), Error> {
        self.log.discard()?;
        // The folder of the session stays if other agents work there.
        let _ = self.files.remove_folder(folder_of(self.log.path()));
        let _lock = self.project.lock(self.files.as_ref())?;
        tracking::leave(self.files.as_ref(), &self.project.tracking(), &self.agent).map(drop)
    }
}
