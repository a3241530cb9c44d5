//! A recording of one agent: its event log in step with the journal, its entry on the list of agents at work, and its line of
//! telemetry. What agents share never stops a recording: what fails there is remarked and made up for later.

use std::sync::Arc;

use stenograph::model::Event;

use super::agent::{Agent, millis};
use super::project::{Project, from_root};
use super::seen::Seen;
use super::telemetry::{self, Status};
use super::tracking;
use crate::document::{LineDocument, Measured, measure};
use crate::error::{Error, Problem};
use crate::files::{Files, folder_of};
use crate::journal::{End, Recorded};
use crate::layouts::{Clock, Documents, Environment, Finished, Journal, StatedFields};
use crate::tail::Warning;

/// The documents of one agent.
pub struct Recording {
    pub log: LineDocument,
    pub agent: Agent,
    pub project: Project,
    pub seen: Seen,
    pub stage: Stage,
    pub files: Arc<dyn Files>,
    pub clock: Clock,
}

/// Whether the recording was seen from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It goes on, and this is who records it.
    Live,
    /// It was cut off, or its end was: how much of it was done is to be found out.
    Resumed,
}

impl Recording {
    /// The documents of an agent, with nothing done yet.
    pub fn new(log: LineDocument, agent: Agent, project: Project, site: &Environment, stage: Stage) -> Recording {
        let (files, clock) = (Arc::clone(&site.files), Arc::clone(&site.clock));
        Recording { log, agent, project, seen: Seen::default(), stage, files, clock }
    }

    fn enter(&self) -> Result<Vec<Warning>, Error> {
        let _lock = self.project.lock(self.files.as_ref())?;
        let transcript = from_root(self.log.path());
        tracking::enter(self.files.as_ref(), &self.project.tracking(), &self.agent, &transcript)
    }

    /// Adds the line of telemetry, and only then takes the agent off the list: whoever is on it has no line yet, or one that
    /// is found.
    fn leave(&self, recorded: &Recorded) -> Result<Vec<Warning>, Error> {
        let files = self.files.as_ref();
        let _lock = self.project.lock(files)?;
        let folder = self.project.telemetry();
        let found = match self.stage {
            Stage::Live => None,
            Stage::Resumed => telemetry::find(files, &folder, &self.agent)?,
        };
        let mut warnings = Vec::new();
        match found {
            Some(place) => telemetry::settle(files, &place)?,
            None => {
                let (status, ended_ms) = self.outcome(recorded);
                let line = telemetry::line(&self.agent, &self.seen, status, ended_ms);
                warnings.extend(telemetry::append(files, &folder, &self.month(), &line)?);
                if self.seen.left_out() > 0 {
                    let text = format!("too many tools and files of the agent {}: not all are named", self.agent.id);
                    warnings.push(Warning::new(&folder, text));
                }
            }
        }
        warnings.extend(tracking::leave(files, &self.project.tracking(), &self.agent)?);
        Ok(warnings)
    }

    /// The month on the wall of this place, which is the one GoodVibes files a line under.
    fn month(&self) -> String {
        (self.clock)().wall("%Y-%m").unwrap_or_else(|| "1970-01".to_owned())
    }

    fn outcome(&self, recorded: &Recorded) -> (Status, i64) {
        let now = millis(&(self.clock)()).unwrap_or(self.agent.started_ms);
        let ended = match (self.stage, &recorded.ended) {
            (Stage::Live, _) => Some(now),
            // When somebody noticed says nothing about when it ended.
            (Stage::Resumed, Some(End::Interrupted) | None) => self.seen.last_ms(),
            (Stage::Resumed, Some(End::Completed | End::Failed(_) | End::Canceled)) => {
                self.seen.stopped_ms().or(self.seen.last_ms())
            }
        };
        // Events may bring moments of their own, and a clock may be set back: no agent ends before it starts, or later than now.
        let ended = ended.unwrap_or(self.agent.started_ms).min(now).max(self.agent.started_ms);
        let status = match (&recorded.ended, self.seen.success()) {
            (Some(End::Completed), None | Some(true)) => Status::Completed,
            _ => Status::Failed,
        };
        (status, ended)
    }

    fn measured(&self, recorded: &Recorded, given: StatedFields) -> Result<Journal, Error> {
        let path = self.log.path();
        let bytes = self.files.reader(path, self.log.starts_at());
        let bytes = bytes.map_err(|error| Error::at(path, Problem::Unreadable, error))?;
        measure(recorded, Measured { format: self.log.format(), bytes }, given)
    }
}

impl Documents for Recording {
    fn begin(&mut self) -> Vec<Warning> {
        self.log.begin();
        self.enter().unwrap_or_else(|error| {
            let text = format!("the agent {} is not on the list: {error}", self.agent.id);
            vec![Warning::new(&self.project.tracking(), text)]
        })
    }

    fn add(&mut self, event: &Event<'_>) {
        self.seen.add(event);
        self.log.add(event);
    }

    fn finish(&mut self, recorded: &Recorded, given: StatedFields) -> Result<Finished, Error> {
        if self.stage == Stage::Resumed {
            let seen = &mut self.seen;
            recorded.read(&mut |event| seen.add(event))?;
        }
        let mut warnings = self.log.finish(recorded)?;
        let mut journal = self.measured(recorded, given)?;
        match self.leave(recorded) {
            Ok(left) => warnings.extend(left),
            Err(error) => {
                journal = Journal::Unfinished;
                let text = format!("is not written for the agent {}, steno recover does it: {error}", self.agent.id);
                warnings.push(Warning::new(&self.project.telemetry(), text));
            }
        }
        Ok(Finished { journal, written: vec![self.log.path().to_owned()], warnings })
    }

    fn discard(&mut self) -> Result<(), Error> {
        self.log.discard()?;
        // The folder of the session stays if other agents work there.
        let _ = self.files.remove_folder(folder_of(self.log.path()));
        let _lock = self.project.lock(self.files.as_ref())?;
        tracking::leave(self.files.as_ref(), &self.project.tracking(), &self.agent).map(drop)
    }
}
