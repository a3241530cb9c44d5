//! Sessions: the joint content of their sources. It only reads.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, Row, params};

use stenograph::query::SessionFacts;

use super::Catalogue;
use super::marks::read_marks;
use super::row::{path_of, to_unsigned};
use crate::Error;
use crate::archive::Marks;

/// The number of a session.
pub type SessionId = i64;

/// Puts the main source of a session first: not a side conversation, not covered by another source, and with the most content.
pub(super) const MAIN: &str =
    "copy_of IS NOT NULL, thread IS NOT NULL, covered_by IS NOT NULL, coverage, gone, messages DESC, id";

/// Whether a source counts: no other source covers it.
const COUNTS: &str = "(each.copy_of IS NULL AND each.covered_by IS NULL)";

/// A sum over the sub-agents of a session that have no file of their own.
macro_rules! nested_sum {
    ($column:literal) => {
        concat!(
            "coalesce((SELECT sum(nested.",
            $column,
            ") FROM sources AS outer JOIN nested ON nested.source = outer.id \
             WHERE outer.session = sessions.id AND outer.copy_of IS NULL AND outer.covered_by IS NULL \
               AND NOT EXISTS (SELECT 1 FROM sources AS own WHERE own.session = sessions.id AND own.thread = nested.thread)), 0)"
        )
    };
}
const NESTED_CALLS: &str = nested_sum!("calls");
const NESTED_ERRORS: &str = nested_sum!("errors");

/// The first question of a session, which may span several sources.
const FIRST_QUERY: &str = "coalesce((SELECT query FROM sources AS first \
    WHERE first.session = sessions.id AND first.thread IS main.thread AND first.coverage = main.coverage AND first.copy_of IS NULL \
      AND first.covered_by IS NULL AND first.query IS NOT NULL AND first.started IS NOT NULL \
    ORDER BY first.started, first.id LIMIT 1), main.query)";

/// A project: a repository or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    /// Its display name.
    pub name: String,
    /// Its folder, or its last one.
    pub root: String,
    /// The URL of its remote repository.
    pub remote: Option<String>,
}

/// Where the times of a session come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimesFrom {
    /// Its records.
    #[default]
    Records,
    /// The newest of its files: no record states a time.
    File,
}

/// What conditions on sessions ask about.
#[derive(Clone, Debug, Default)]
pub(in crate::index) struct OwnedSessionFacts {
    pub agent: String,
    pub projects: Vec<String>,
    pub sessions: Vec<String>,
    pub file_time: Option<i64>,
    pub marks: Marks,
}

impl OwnedSessionFacts {
    pub fn borrowed(&self) -> SessionFacts<'_> {
        let OwnedSessionFacts { agent, projects, sessions, file_time, marks } = self;
        SessionFacts {
            agent,
            projects,
            sessions,
            file_time: *file_time,
            is_pinned: marks.pinned,
            is_marked: !marks.is_empty(),
            tags: &marks.tags,
        }
    }

    pub fn of(session: &IndexedSession) -> OwnedSessionFacts {
        OwnedSessionFacts {
            agent: session.agent.clone(),
            projects: session.project_names(),
            sessions: vec![session.name.clone()],
            file_time: session.ended.filter(|_| session.times == TimesFrom::File),
            marks: session.marks.clone(),
        }
    }
}

/// A session: the joint content of all its sources.
#[derive(Clone, Debug)]
pub struct IndexedSession {
    /// Its number.
    pub id: SessionId,
    /// The name of the format of its main source.
    pub agent: String,
    /// The agent's id for it.
    pub name: String,
    /// The session it follows from, and how.
    pub parent: Option<(SessionId, String)>,
    /// Its project.
    pub project: Option<ProjectRow>,
    /// Its title: the one that a person gave it, or else the agent's.
    pub title: Option<String>,
    /// The agent's title, if a person gave it another one.
    pub agent_title: Option<String>,
    /// The beginning of the user's first message.
    pub query: Option<String>,
    /// The working folder.
    pub cwd: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started: Option<i64>,
    /// When its last event happened.
    pub ended: Option<i64>,
    /// Where both times come from.
    pub times: TimesFrom,
    /// The number of its files.
    pub sources: u64,
    /// How many of them are gone.
    pub gone: u64,
    /// How many of those are not in the archive either.
    pub lost: u64,
    /// Their size in bytes.
    pub size: u64,
    /// The number of events.
    pub events: u64,
    /// The number of messages of users and models.
    pub messages: u64,
    /// The number of tool calls.
    pub calls: u64,
    /// The number of failures.
    pub errors: u64,
    /// The path of its main source, or its last path if it is gone.
    pub path: PathBuf,
    /// What people noted about it.
    pub marks: Marks,
}

impl IndexedSession {
    /// Every name by which a query can select its project: display name, folder, remote and working folder.
    pub(crate) fn project_names(&self) -> Vec<String> {
        let project = self.project.iter().flat_map(|project| {
            [Some(project.name.clone()), Some(project.root.clone()), project.remote.clone()].into_iter().flatten()
        });
        project.chain(self.cwd.clone()).collect()
    }

    /// Whether nobody said or did anything in it: it has at most a title, settings or an empty log.
    pub fn is_empty(&self) -> bool {
        self.messages == 0 && self.calls == 0
    }

    /// Whether nobody asked anything in it and no tool was called: it is empty, or an agent only warmed its caches.
    pub fn is_idle(&self) -> bool {
        self.is_empty() || self.calls == 0 && self.query.is_none() && self.title.is_none()
    }

    /// What people read as its name: its title, else the first question, else what else is known about it.
    pub fn about(&self) -> String {
        let stated = self.title.as_deref().or(self.query.as_deref()).filter(|text| !text.is_empty());
        stated.map_or_else(|| if self.is_empty() { "(no messages)" } else { "(no question)" }.to_owned(), str::to_owned)
    }

    /// A session of which only the path is known.
    pub fn bare(agent: &str, name: &str, path: &Path) -> IndexedSession {
        IndexedSession {
            id: 0,
            agent: agent.to_owned(),
            name: name.to_owned(),
            parent: None,
            project: None,
            title: None,
            agent_title: None,
            query: None,
            cwd: None,
            branch: None,
            model: None,
            started: None,
            ended: None,
            times: TimesFrom::Records,
            sources: 1,
            gone: 0,
            lost: 0,
            size: 0,
            events: 0,
            messages: 0,
            calls: 0,
            errors: 0,
            path: path.to_owned(),
            marks: Marks::default(),
        }
    }
}

impl Catalogue {
    /// All sessions, unordered. A log that belongs to no conversation does not count as one.
    pub fn sessions(&self) -> Result<Vec<IndexedSession>, Error> {
        self.sessions_where("main.coverage < 2", [])
    }

    /// The facts about all sessions that [`Catalogue::sessions`] reads. Much faster than reading the sessions.
    pub(in crate::index) fn session_facts(&self) -> Result<Vec<(SessionId, OwnedSessionFacts)>, Error> {
        self.query(|connection| {
            let sql = format!(
                "SELECT sessions.id, sessions.agent, sessions.name, projects.name, projects.root, projects.remote, main.cwd, \
                   (SELECT CASE WHEN max(ended) IS NULL THEN max(changed) / 1000000 END FROM sources WHERE session = sessions.id), \
                   marks.marks \
                 FROM sessions JOIN sources AS main ON main.id = (SELECT id FROM sources WHERE session = sessions.id \
                   ORDER BY {MAIN} LIMIT 1) \
                 LEFT JOIN projects ON projects.id = sessions.project \
                 LEFT JOIN marks ON marks.session = sessions.id WHERE main.coverage < 2"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let read = |row: &Row<'_>| {
                let projects: [Option<String>; 4] = [row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?];
                let facts = OwnedSessionFacts {
                    agent: row.get(1)?,
                    projects: projects.into_iter().flatten().collect(),
                    sessions: vec![row.get(2)?],
                    file_time: row.get(7)?,
                    marks: read_marks(row, 8)?.unwrap_or_default(),
                };
                Ok((row.get(0)?, facts))
            };
            statement.query_map([], read)?.collect()
        })
    }

    /// About the newest `limit` sessions that have a source. Much faster than reading all of them.
    pub fn newest_sessions(&self, limit: usize) -> Result<Vec<IndexedSession>, Error> {
        const NEWEST: &str = "sessions.id IN (SELECT session FROM sources GROUP BY session \
            ORDER BY sum(messages + calls) = 0 OR sum(calls) = 0 AND max(query) IS NULL AND max(title) IS NULL, coalesce(max(ended), max(changed) / 1000000) DESC, session DESC LIMIT ?1)";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.sessions_where(&format!("{NEWEST} AND main.coverage < 2"), [limit])
    }

    /// How many sessions [`Catalogue::sessions`] reads.
    pub fn session_count(&self) -> Result<u64, Error> {
        self.query(|connection| {
            let sql = "SELECT count(DISTINCT session) FROM sources WHERE coverage < 2";
            connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).map(to_unsigned)
        })
    }

    /// The sessions with exactly this name that have a source.
    pub(crate) fn sessions_called(&self, name: &str) -> Result<Vec<IndexedSession>, Error> {
        self.sessions_where("sessions.name = ?1", [name])
    }

    /// The session with this number.
    pub fn session(&self, id: SessionId) -> Result<Option<IndexedSession>, Error> {
        Ok(self.sessions_where("sessions.id = ?1", [id])?.pop())
    }

    /// The agent's id for a session.
    pub(crate) fn session_name(&self, id: SessionId) -> Result<Option<String>, Error> {
        let sql = "SELECT name FROM sessions WHERE id = ?1";
        self.query(|connection| connection.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional())
    }

    /// The projects of the sessions whose ids are unique, by their ids.
    pub(crate) fn session_projects(&self) -> Result<Vec<(String, ProjectRow)>, Error> {
        self.query(|connection| {
            let sql = "SELECT sessions.name, projects.name, root, remote FROM sessions \
                       JOIN projects ON projects.id = sessions.project GROUP BY sessions.name HAVING count(*) = 1";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                Ok((row.get(0)?, ProjectRow { name: row.get(1)?, root: row.get(2)?, remote: row.get(3)? }))
            };
            statement.query_map([], read)?.collect()
        })
    }

    /// The agents' ids for all sessions that have a source.
    pub fn session_names(&self) -> Result<Vec<(SessionId, String)>, Error> {
        self.query(|connection| {
            let sql = "SELECT id, name FROM sessions WHERE id IN (SELECT session FROM sources)";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }

    /// The sessions before and after this one, ordered by their ids without regard to case. If others have the same id, one of
    /// them is included.
    pub fn session_neighbours(&self, session: &IndexedSession) -> Result<Vec<(SessionId, String)>, Error> {
        self.query(|connection| {
            let mut found = Vec::new();
            for (compares, order) in [("<", "DESC"), (">=", "ASC")] {
                let sql = format!(
                    "SELECT id, name FROM sessions WHERE lower(name) {compares} lower(?1) AND id <> ?2 \
                       AND EXISTS (SELECT 1 FROM sources WHERE session = sessions.id) ORDER BY lower(name) {order} LIMIT 1"
                );
                let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
                let mut statement = connection.prepare_cached(&sql)?;
                found.extend(statement.query_row(params![session.name, session.id], read).optional()?);
            }
            Ok(found)
        })
    }

    /// The sessions whose id begins with this prefix. Logs count only if no conversation matches.
    pub fn sessions_named(&self, prefix: &str) -> Result<Vec<IndexedSession>, Error> {
        // The byte 0xff is in no text, so it is greater than whatever follows the prefix.
        const BEGINS: &str =
            "lower(sessions.name) >= lower(?1) AND lower(sessions.name) < lower(?1) || CAST(x'ff' AS TEXT)";
        let found = self.sessions_where(&format!("{BEGINS} AND main.coverage < 2"), [prefix])?;
        if found.is_empty() { self.sessions_where(BEGINS, [prefix]) } else { Ok(found) }
    }

    fn sessions_where(&self, condition: &str, values: impl rusqlite::Params) -> Result<Vec<IndexedSession>, Error> {
        self.query(|connection| {
            let sql = format!(
                "SELECT sessions.id, sessions.agent, sessions.name, parent, link, projects.name, projects.root, projects.remote, \
                   main.title, {FIRST_QUERY}, main.cwd, main.branch, main.model, main.path, min(each.started), max(each.ended), \
                   count(*), sum(each.gone), sum(each.gone AND each.archive_copy IS NULL), sum(each.size * (each.copy_of IS NULL)), \
                   sum((each.doc_group_events + each.tail_events) * {COUNTS}), sum(each.messages * {COUNTS}), \
                   sum(each.calls * {COUNTS}) + {NESTED_CALLS}, sum(each.errors * {COUNTS}) + {NESTED_ERRORS}, \
                   max(each.changed) / 1000000, marks.marks \
                 FROM sessions JOIN sources AS each ON each.session = sessions.id \
                 JOIN sources AS main ON main.id = (SELECT id FROM sources WHERE session = sessions.id \
                   ORDER BY {MAIN} LIMIT 1) \
                 LEFT JOIN projects ON projects.id = sessions.project \
                 LEFT JOIN marks ON marks.session = sessions.id \
                 WHERE {condition} GROUP BY sessions.id"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            statement.query_map(values, read_session)?.collect()
        })
    }
}

fn read_session(row: &Row<'_>) -> rusqlite::Result<IndexedSession> {
    let parent: Option<SessionId> = row.get(3)?;
    let link: Option<String> = row.get(4)?;
    let name: Option<String> = row.get(5)?;
    let project = match name {
        Some(name) => Some(ProjectRow { name, root: row.get(6)?, remote: row.get(7)? }),
        None => None,
    };
    let (started, ended): (Option<i64>, Option<i64>) = (row.get(14)?, row.get(15)?);
    let times = if ended.is_some() { TimesFrom::Records } else { TimesFrom::File };
    let written: Option<i64> = row.get(24)?;
    let marks = read_marks(row, 25)?.unwrap_or_default();
    let agent_title: Option<String> = row.get(8)?;
    let (title, agent_title) = match &marks.title {
        Some(title) => (Some(title.clone()), agent_title),
        None => (agent_title, None),
    };
    Ok(IndexedSession {
        id: row.get(0)?,
        agent: row.get(1)?,
        name: row.get(2)?,
        parent: parent.map(|parent| (parent, link.unwrap_or_default())),
        project,
        title,
        agent_title,
        query: row.get(9)?,
        cwd: row.get(10)?,
        branch: row.get(11)?,
        model: row.get(12)?,
        path: path_of(row.get_ref(13)?.as_bytes().unwrap_or_default()),
        started: started.or(written),
        ended: ended.or(written),
        times,
        sources: to_unsigned(row.get(16)?),
        gone: to_unsigned(row.get(17)?),
        lost: to_unsigned(row.get(18)?),
        size: to_unsigned(row.get(19)?),
        events: to_unsigned(row.get(20)?),
        messages: to_unsigned(row.get(21)?),
        calls: to_unsigned(row.get(22)?),
        errors: to_unsigned(row.get(23)?),
        marks,
    })
}
