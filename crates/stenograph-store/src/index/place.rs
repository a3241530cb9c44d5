//! Which session a source belongs to, which project that is of, and what it follows from. A session is known by what it says of
//! itself; the place of its file only helps out.

use std::path::Path;

use stenograph::format::Format;

use super::catalogue::SourceRow;
use super::run::{Job, Run};
use crate::Error;
use crate::discover::Named;
use crate::identity::is_unique;
use crate::project::{Project, State};

impl Run<'_> {
    /// Says which session a source belongs to, and what that follows from.
    pub(super) fn place(
        &mut self,
        job: &Job,
        format: &'static dyn Format,
        row: &mut SourceRow,
        sessions: &[String],
        thread: Option<String>,
    ) -> Result<(), Error> {
        let agent = format.info().agent;
        let named = believed(&job.named, format);
        let stem = job.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = stem.split('.').next().unwrap_or_default().to_owned();
        let own = sessions.iter().find(|session| **session == stem || stem.ends_with(session.as_str()));
        let by_place = named.session.clone().filter(|name| sessions.is_empty() || sessions.contains(name));
        let name = by_place.or_else(|| own.cloned()).or_else(|| sessions.first().cloned()).or(named.session.clone());
        let name = name.unwrap_or(stem);
        // A name that only the place gives means something in that place only.
        let home = match &named.within {
            _ if sessions.contains(&name) || is_unique(&name) => String::new(),
            Some(within) => within.display().to_string(),
            None => job.path.parent().map(|folder| folder.display().to_string()).unwrap_or_default(),
        };
        row.session = self.catalogue.make_session(agent, &name, &home)?;
        row.thread = thread.or_else(|| named.thread.clone());
        for other in sessions.iter().filter(|other| **other != name) {
            let other = self.catalogue.make_session(agent, other, "")?;
            self.catalogue.link(row.session, other, "continues")?;
        }
        if row.thread.is_none()
            && let Some(other) = self.catalogue.shares_beginning(row)?
        {
            self.catalogue.link(row.session, other, "shares its beginning with")?;
        }
        if let Some(folder) = row.tally.cwd.clone().or_else(|| named.folder.map(|folder| folder.display().to_string()))
        {
            let project = self.project(&folder)?;
            self.catalogue.set_project(row.session, project)?;
        }
        Ok(())
    }

    /// The project that a working folder is. One that is gone is what it was known to be.
    fn project(&mut self, folder: &str) -> Result<i64, Error> {
        if let Some(project) = self.projects.get(folder) {
            return Ok(*project);
        }
        let found = Project::of(Path::new(folder));
        let known = match found.state {
            State::There => None,
            State::Gone => self.catalogue.project_of_folder(folder)?,
        };
        let project = match known {
            Some(project) => project,
            None => {
                let root = found.folder.display().to_string();
                self.catalogue.project(&found.name(), &root, found.remote.as_deref())?
            }
        };
        self.catalogue.set_project_of_folder(folder, project)?;
        self.projects.insert(folder.to_owned(), project);
        Ok(project)
    }
}

/// What the place says, if it belongs to this format.
fn believed(named: &Named, format: &'static dyn Format) -> Named {
    let is = |other: Option<&'static dyn Format>| other.is_some_and(|other| other.info().agent == format.info().agent);
    if is(named.format) || is(named.like) { named.clone() } else { Named::default() }
}
