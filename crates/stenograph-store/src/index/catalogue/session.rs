//! Sessions: what their sources say together. It only reads.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, Row};

use super::Catalogue;
use super::row::{bits, path_of};
use crate::Error;

/// The number of a session.
pub type SessionId = i64;

/// The main source of a session comes first: the one that is no side conversation, that no other tells, and that has the most to say.
pub(super) const MAIN: &str =
    "copy_of IS NOT NULL, thread IS NOT NULL, told_by IS NOT NULL, tells, gone, messages DESC, id";

/// Whether what a source has counts: no other source tells it.
const COUNTS: &str = "(each.copy_of IS NULL AND each.told_by IS NULL)";

/// The first question of a session, which may be told by several sources that follow each other.
const FIRST_QUERY: &str = "coalesce((SELECT query FROM sources AS first \
    WHERE first.session = sessions.id AND first.thread IS main.thread AND first.tells = main.tells AND first.copy_of IS NULL \
      AND first.told_by IS NULL AND first.query IS NOT NULL AND first.started IS NOT NULL \
    ORDER BY first.started, first.id LIMIT 1), main.query)";

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// What people call it.
    pub name: String,
    /// Where it stands, or stood last.
    pub root: String,
    /// Where it comes from.
    pub remote: Option<String>,
}

/// A session: what all its sources say together.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its number.
    pub id: SessionId,
    /// The name of the format of its main source.
    pub agent: String,
    /// Its own id, as its agent calls it.
    pub name: String,
    /// The session it follows from, and how.
    pub parent: Option<(SessionId, String)>,
    /// Its project.
    pub project: Option<Project>,
    /// Its title.
    pub title: Option<String>,
    /// The beginning of the first thing a user said.
    pub query: Option<String>,
    /// The working folder.
    pub cwd: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started: Option<i64>,
    /// When the last thing happened in it.
    pub ended: Option<i64>,
    /// How many files it is in.
    pub sources: u64,
    /// How many of those are not there any more.
    pub gone: u64,
    /// How many of those are not in the archive either.
    pub lost: u64,
    /// How many bytes they have.
    pub size: u64,
    /// What was counted in all of them.
    pub events: u64,
    /// What users and models said.
    pub messages: u64,
    /// Tool calls.
    pub calls: u64,
    /// Failures.
    pub errors: u64,
    /// Where its main source stands, or stood.
    pub path: PathBuf,
}

impl Session {
    /// Everything by which people ask for its project: what they call it, its folder, where it comes from, and the working folder.
    pub fn project_names(&self) -> Vec<String> {
        let project = self.project.iter().flat_map(|project| {
            [Some(project.name.clone()), Some(project.root.clone()), project.remote.clone()].into_iter().flatten()
        });
        project.chain(self.cwd.clone()).collect()
    }

    /// A session of which nothing is known but where it stands.
    pub fn bare(agent: &str, name: &str, path: &Path) -> Session {
        Session {
            id: 0,
            agent: agent.to_owned(),
            name: name.to_owned(),
            parent: None,
            project: None,
            title: None,
            query: None,
            cwd: None,
            branch: None,
            model: None,
            started: None,
            ended: None,
            sources: 1,
            gone: 0,
            lost: 0,
            size: 0,
            events: 0,
            messages: 0,
            calls: 0,
            errors: 0,
            path: path.to_owned(),
        }
    }
}

impl Catalogue {
    /// All sessions, in no order. Logs that belong to no conversation are none.
    pub fn sessions(&self) -> Result<Vec<Session>, Error> {
        self.sessions_where("main.tells < 2", [])
    }

    /// Sessions of this very name that have a source.
    pub(crate) fn sessions_called(&self, name: &str) -> Result<Vec<Session>, Error> {
        self.sessions_where("sessions.name = ?1", [name])
    }

    /// The session of this number.
    pub fn session(&self, id: SessionId) -> Result<Option<Session>, Error> {
        Ok(self.sessions_where("sessions.id = ?1", [id])?.pop())
    }

    /// What the agent calls a session.
    pub fn session_name(&self, id: SessionId) -> Result<Option<String>, Error> {
        let sql = "SELECT name FROM sessions WHERE id = ?1";
        self.ask(|connection| connection.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional())
    }

    /// What agents call all sessions that have a source.
    pub fn session_names(&self) -> Result<Vec<(SessionId, String)>, Error> {
        self.ask(|connection| {
            let sql = "SELECT id, name FROM sessions WHERE id IN (SELECT session FROM sources)";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }

    /// Sessions whose id begins so. Logs count only where no conversation is called so.
    pub fn sessions_named(&self, prefix: &str) -> Result<Vec<Session>, Error> {
        const BEGINS: &str = "substr(sessions.name, 1, length(?1)) = ?1 COLLATE NOCASE";
        let found = self.sessions_where(&format!("{BEGINS} AND main.tells < 2"), [prefix])?;
        if found.is_empty() { self.sessions_where(BEGINS, [prefix]) } else { Ok(found) }
    }

    fn sessions_where(&self, condition: &str, values: impl rusqlite::Params) -> Result<Vec<Session>, Error> {
        self.ask(|connection| {
            let sql = format!(
                "SELECT sessions.id, sessions.agent, sessions.name, parent, link, projects.name, projects.root, projects.remote, \
                   main.title, {FIRST_QUERY}, main.cwd, main.branch, main.model, main.path, min(each.started), max(each.ended), \
                   count(*), sum(each.gone), sum(each.gone AND each.kept IS NULL), sum(each.size * (each.copy_of IS NULL)), \
                   sum((each.lot_events + each.tail_events) * {COUNTS}), sum(each.messages * {COUNTS}), \
                   sum(each.calls * {COUNTS}), sum(each.errors * {COUNTS}) \
                 FROM sessions JOIN sources AS each ON each.session = sessions.id \
                 JOIN sources AS main ON main.id = (SELECT id FROM sources WHERE session = sessions.id \
                   ORDER BY {MAIN} LIMIT 1) \
                 LEFT JOIN projects ON projects.id = sessions.project \
                 WHERE {condition} GROUP BY sessions.id"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            statement.query_map(values, read_session)?.collect()
        })
    }
}

fn read_session(row: &Row<'_>) -> rusqlite::Result<Session> {
    let parent: Option<SessionId> = row.get(3)?;
    let link: Option<String> = row.get(4)?;
    let name: Option<String> = row.get(5)?;
    let project = match name {
        Some(name) => Some(Project { name, root: row.get(6)?, remote: row.get(7)? }),
        None => None,
    };
    Ok(Session {
        id: row.get(0)?,
        agent: row.get(1)?,
        name: row.get(2)?,
        parent: parent.map(|parent| (parent, link.unwrap_or_default())),
        project,
        title: row.get(8)?,
        query: row.get(9)?,
        cwd: row.get(10)?,
        branch: row.get(11)?,
        model: row.get(12)?,
        path: path_of(row.get_ref(13)?.as_bytes().unwrap_or_default()),
        started: row.get(14)?,
        ended: row.get(15)?,
        sources: bits(row.get(16)?),
        gone: bits(row.get(17)?),
        lost: bits(row.get(18)?),
        size: bits(row.get(19)?),
        events: bits(row.get(20)?),
        messages: bits(row.get(21)?),
        calls: bits(row.get(22)?),
        errors: bits(row.get(23)?),
    })
}
