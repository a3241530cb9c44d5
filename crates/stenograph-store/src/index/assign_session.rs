//! Assigns a source to its session, the session to its project, and links it to the session it follows from. The content
//! decides; the file's place only fills gaps.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stenograph::Registry;
use stenograph::evidence::moved_from;
use stenograph::format::Format;
use stenograph::model::{Event, ForkOrigin, Kind};

use super::catalogue::{IndexedSession, SessionId, SourceRow};
use super::run::IndexRun;
use super::survey::IndexJob;
use crate::Error;
use crate::discover::PathHints;
use crate::identity::{is_unique, stem};
use crate::journal::RecordingHeader;
use crate::project::{FolderState, Project};
use crate::recover;
use crate::session_files::{self, Coverage, journals_of};
use crate::subagent_files::session_above;

/// The link from a session to the one it continues.
const CONTINUES: &str = "continues";

/// The link from a session that moved to another agent to the one it was copied from.
const MOVED_FROM: &str = "moved from";

/// The link from a fork to the session it was copied from.
const FORKED_FROM: &str = "forked from";

/// How many session ids of a source are remembered.
const SESSIONS_MAX: usize = 8;

/// What a source's content says about its session. The claims are saved with the reading state of a source, because a file may
/// state its session and its folder long after its first record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionClaims {
    /// The session ids that its events name.
    sessions: Vec<String>,
    speaker: Speaker,
    /// The agent that a recording states in its header.
    recorded: Option<String>,
    /// The session that the source is a copy of.
    #[serde(default)]
    original: Option<OriginalSession>,
    /// Whether the first question so far is the task of a sub-agent.
    #[serde(default)]
    pub is_query_aside: bool,
}

/// The session that a source is a copy of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OriginalSession {
    name: String,
    /// The format of the embedded source; a fork has the format of its original.
    format: Option<String>,
}

impl OriginalSession {
    fn of(event: &Event<'_>) -> Option<OriginalSession> {
        let embedded = || {
            let (format, name) = stenograph::carry::stated_source(event.carried.as_deref()?)?;
            Some(OriginalSession { name, format: Some(format) })
        };
        let fork = event.forked_from.as_ref();
        let name = |fork: &ForkOrigin<'_>| fork.session.to_string();
        fork.map(|fork| OriginalSession { name: name(fork), format: moved_from(event) }).or_else(embedded)
    }

    /// The agent whose session it is.
    fn agent(&self, registry: &Registry, of_copy: &'static str) -> &'static str {
        let format = self.format.as_deref().and_then(|name| registry.named(name));
        format.map_or(of_copy, |format| format.info().agent)
    }
}

/// A copy of a session whose name is not unique.
pub(super) struct CopiedSession {
    copy: SessionId,
    /// The agent of the original.
    of: &'static str,
    /// The name of the original.
    name: String,
    link: &'static str,
}

/// Whose messages and calls a source has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Speaker {
    /// It has none yet.
    #[default]
    Unknown,
    /// Those of the main conversation, or of several agents.
    Main,
    /// Those of one sub-agent.
    SubAgent(String),
}

impl SessionClaims {
    /// Adds the claims of the event with this number.
    pub fn add(&mut self, number: u64, event: &Event<'_>) {
        if number == 0 {
            self.recorded = RecordingHeader::of(event).and_then(|header| header.agent()).map(str::to_owned);
        }
        if let Some(session) = event.session.as_deref().filter(|session| !session.is_empty())
            && self.sessions.len() < SESSIONS_MAX
            && !self.sessions.iter().any(|known| known == session)
        {
            self.sessions.push(session.to_owned());
        }
        if self.original.is_none() {
            self.original = OriginalSession::of(event);
        }
        let is_same = |thread: &str| event.thread.as_deref() == Some(thread);
        match &self.speaker {
            _ if matches!(event.kind(), Kind::Fact | Kind::Other) => {}
            Speaker::Unknown => {
                let sub_agent = event.thread.as_deref().map(|thread| Speaker::SubAgent(thread.to_owned()));
                self.speaker = sub_agent.unwrap_or(Speaker::Main);
            }
            Speaker::SubAgent(thread) if !is_same(thread) => self.speaker = Speaker::Main,
            Speaker::SubAgent(_) | Speaker::Main => {}
        }
    }
}

impl IndexRun<'_> {
    /// Assigns a source to its session and links that session to its parent.
    pub(super) fn assign_session(
        &mut self,
        job: &IndexJob,
        format: &'static dyn Format,
        row: &mut SourceRow,
        claims: SessionClaims,
    ) -> Result<(), Error> {
        let SessionClaims { mut sessions, speaker, recorded, original, .. } = claims;
        let hints = claims_for_format(&job.hints, format);
        // A recording's folder is its session, whatever id the conversation in it has.
        if recorded.is_some() && hints.session.is_some() {
            sessions.clear();
        }
        let agent = recorded.as_deref().unwrap_or(format.info().agent);
        let stem = stem(&job.path);
        let own = sessions.iter().find(|session| **session == stem || stem.ends_with(session.as_str()));
        // A file that states no session may be in the folder of one, wherever that folder is.
        let above = || sessions.is_empty().then(|| session_above(&job.path, format)).flatten();
        let above = if hints.session.is_none() { above() } else { None };
        let by_place = hints.session.clone().or(above);
        let by_place = by_place.filter(|name| sessions.is_empty() || sessions.contains(name));
        let name = by_place.or_else(|| own.cloned()).or_else(|| sessions.first().cloned()).or(hints.session.clone());
        let is_many = row.coverage == Coverage::Log && sessions.len() > 1 && hints.session.is_none();
        let name = name.filter(|_| !is_many).unwrap_or(stem);
        // A name that only the place suggests is unique only in that place.
        let home = match &hints.within {
            _ if is_unique(&name) => String::new(),
            Some(within) => within.display().to_string(),
            _ if sessions.contains(&name) => String::new(),
            None => job.path.parent().map(|folder| folder.display().to_string()).unwrap_or_default(),
        };
        row.session = self.catalogue.make_session(agent, &name, &home)?;
        row.thread = match speaker {
            Speaker::SubAgent(thread) => Some(thread),
            Speaker::Main | Speaker::Unknown => hints.thread.clone(),
        };
        for journal in journals_of(&job.path) {
            self.unresolved.extend(self.catalogue.source_at(&journal)?.map(|journal| journal.session));
        }
        // A log of many sessions continues none of them.
        for other in sessions.iter().filter(|other| **other != name && !is_many) {
            let other = self.catalogue.make_session(agent, other, "")?;
            self.catalogue.link(row.session, other, CONTINUES)?;
        }
        // Of a session with the same name, the files decide what it is: a conversion has the name of its original.
        if let Some(original) = original.filter(|original| original.name != name) {
            let link = if original.format.is_some() { MOVED_FROM } else { FORKED_FROM };
            let of = original.agent(self.catalogue.registry(), format.info().agent);
            if is_unique(&original.name) {
                let from = self.catalogue.make_session(of, &original.name, "")?;
                self.catalogue.link(row.session, from, link)?;
            } else {
                self.copies.push(CopiedSession { copy: row.session, of, name: original.name, link });
            }
        }
        let by_place = hints.folder.map(|folder| folder.display().to_string());
        for folder in row.summary.header.cwd.iter().chain(&by_place) {
            if let Some(project) = self.project(folder)? {
                return self.catalogue.set_project(row.session, project);
            }
        }
        Ok(())
    }

    /// Puts the journals of a session and the documents made from them into one session. Returns that session.
    fn join_recordings(&mut self, session: SessionId) -> Result<SessionId, Error> {
        let mut joined = session;
        for journal in self.catalogue.sources_of(session)? {
            if !recover::is_journal_name(&journal.path) || journal.format != stenograph::wire::NAME {
                continue;
            }
            let Some(recording) = RecordingHeader::at(&journal.path) else { continue };
            let folder = journal.path.parent().unwrap_or(Path::new(""));
            let names = recording.documents.keys().map(|name| folder.join(name));
            let mut documents: Vec<SourceRow> = Vec::new();
            for path in names.chain([journal.path.with_extension("")]) {
                let path = std::fs::canonicalize(&path).unwrap_or(path);
                documents.extend(self.catalogue.source_at(&path)?.filter(|row| row.coverage != Coverage::Log));
            }
            // The largest document decides.
            documents.sort_by_key(|row| (row.coverage, std::cmp::Reverse(row.summary.messages), row.id));
            let Some(first) = documents.first().cloned() else { continue };
            for row in documents.iter().chain([&journal]) {
                self.catalogue.set_session(row.id, first.session, first.thread.as_deref())?;
            }
            joined = first.session;
        }
        Ok(joined)
    }

    /// Links copies to originals whose names are not unique: if several sessions have that name, the one that begins alike.
    fn link_copies(&mut self) -> Result<(), Error> {
        for CopiedSession { copy, of, name, link } in std::mem::take(&mut self.copies) {
            let mut found = self.catalogue.sessions_called(&name)?;
            found.retain(|session| session.agent == of && session.id != copy);
            if found.len() > 1 {
                let copies = self.catalogue.sources_of(copy)?;
                let mut alike = Vec::new();
                for session in found {
                    let rows = self.catalogue.sources_of(session.id)?;
                    let begins_alike =
                        |row: &SourceRow| copies.iter().any(|copy| session_files::is_begun_by(copy, row));
                    alike.extend(rows.iter().any(begins_alike).then_some(session));
                }
                found = alike;
            }
            if let [original] = found.as_slice() {
                self.catalogue.link(copy, original.id, link)?;
            }
        }
        Ok(())
    }

    /// Decides, for the sessions that changed, which sources cover others and which one is read.
    pub(super) fn resolve_sessions(&mut self) -> Result<(), Error> {
        self.link_copies()?;
        for session in std::mem::take(&mut self.unresolved) {
            let session = self.join_recordings(session)?;
            let mut changed = self.split_conversions(session)?;
            changed.push(self.join_conversions(session)?);
            for session in changed {
                let rows = self.catalogue.sources_of(session)?;
                for covered_by in session_files::resolve(&rows) {
                    self.catalogue.set_role(&covered_by)?;
                }
            }
        }
        Ok(())
    }

    /// Moves conversions that another agent has continued into sessions of their own. Returns those sessions.
    fn split_conversions(&mut self, session: SessionId) -> Result<Vec<SessionId>, Error> {
        let Some(IndexedSession { agent, name, .. }) =
            self.catalogue.session(session)?.filter(|session| is_unique(&session.name))
        else {
            return Ok(Vec::new());
        };
        let mut rows = self.catalogue.sources_of(session)?;
        rows.retain(|row| row.thread.is_none() && row.copy_of.is_none() && !recover::is_journal_name(&row.path));
        let (originals, others): (Vec<SourceRow>, Vec<SourceRow>) =
            rows.into_iter().partition(|row| session_files::agent(row).is_none_or(|other| other == agent));
        let mut split = Vec::new();
        for row in others {
            let is_conversion = originals.iter().any(|original| session_files::is_conversion(original, &row));
            if originals.is_empty() || is_conversion {
                continue;
            }
            let own = self.catalogue.make_session(session_files::agent(&row).unwrap_or_default(), &name, "")?;
            self.catalogue.set_session(row.id, own, None)?;
            self.catalogue.link(own, session, CONTINUES)?;
            split.push(own);
        }
        Ok(split)
    }

    /// Puts conversions of a session for other agents into that session. Returns the session that all of them are in.
    fn join_conversions(&mut self, session: SessionId) -> Result<SessionId, Error> {
        let Some(name) = self.catalogue.session_name(session)?.filter(|name| is_unique(name)) else {
            return Ok(session);
        };
        let mut mains = Vec::new();
        for other in self.catalogue.sessions_called(&name)? {
            let rows = self.catalogue.sources_of(other.id)?;
            let written = rows.iter().filter(|row| row.thread.is_none()).map(|row| row.stamp.changed).min();
            mains.extend(self.catalogue.source_at(&other.path)?.map(|main| (written, main)));
        }
        // The session whose file was written first is the original.
        mains.sort_by_cached_key(|(written, row)| (*written, session_files::by_age(row)));
        let mains: Vec<SourceRow> = mains.into_iter().map(|(_, main)| main).collect();
        let Some((original, others)) = mains.split_first() else { return Ok(session) };
        let mut joined = session;
        for copy in others.iter().filter(|copy| copy.session != original.session) {
            if !session_files::is_conversion(original, copy) {
                self.catalogue.link(copy.session, original.session, CONTINUES)?;
                continue;
            }
            for row in self.catalogue.sources_of(copy.session)? {
                self.catalogue.set_session(row.id, original.session, row.thread.as_deref())?;
            }
            joined = if joined == copy.session { original.session } else { joined };
        }
        Ok(joined)
    }

    /// The project of a working folder. A folder that is gone keeps its recorded project; a relative one has none.
    fn project(&mut self, folder: &str) -> Result<Option<i64>, Error> {
        if let Some(project) = self.projects.get(folder) {
            return Ok(Some(*project));
        }
        let Some(found) = Project::of(Path::new(folder)) else { return Ok(None) };
        let known = match found.state {
            FolderState::There => None,
            FolderState::Gone => self.catalogue.project_of_folder(folder)?,
        };
        let project = match known {
            Some(project) => project,
            None => {
                let root = found.root().display().to_string();
                self.catalogue.project(&found.name(), &root, found.remote.as_deref())?
            }
        };
        self.catalogue.set_project_of_folder(folder, project)?;
        self.projects.insert(folder.to_owned(), project);
        Ok(Some(project))
    }
}

/// The place's claims, if the place belongs to this format.
fn claims_for_format(hints: &PathHints, format: &'static dyn Format) -> PathHints {
    let is = |other: Option<&'static dyn Format>| other.is_some_and(|other| other.info().agent == format.info().agent);
    if is(hints.format) || is(hints.like) { hints.clone() } else { PathHints::default() }
}
