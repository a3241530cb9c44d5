//! The marks of sessions, as the archive keeps them, by the sessions that the catalogue knows. The archive is the authority:
//! this is a copy for queries, which every run brings up to date.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::row::{to_signed, to_unsigned};
use super::session::MAIN;
use super::{Catalogue, IndexedSession, SessionId};
use crate::Error;
use crate::archive::{EventKey, Marks, SessionKey};
use crate::identity::is_unique;

impl Catalogue {
    /// What identifies a session outside of the catalogue.
    pub fn session_key(&self, session: SessionId) -> Result<Option<SessionKey>, Error> {
        self.query(|connection| {
            let sql = format!(
                "SELECT agent, name, home, (SELECT first_key FROM sources WHERE session = sessions.id ORDER BY {MAIN} LIMIT 1) \
                 FROM sessions WHERE id = ?1"
            );
            let read = |row: &Row<'_>| {
                let name: String = row.get(1)?;
                let first: Option<i64> = row.get(3)?;
                let first = first.filter(|_| !is_unique(&name)).map(|key| EventKey(to_unsigned(key)));
                Ok(SessionKey { agent: row.get(0)?, name, home: row.get(2)?, first })
            };
            connection.prepare_cached(&sql)?.query_row([session], read).optional()
        })
    }

    /// The session that a key means: the one with this identity; else one with the same globally unique name, of another agent;
    /// else the only one that begins with the same question, whose file has another name now.
    pub(crate) fn session_with_key(&self, key: &SessionKey) -> Result<Option<SessionId>, Error> {
        self.query(|connection| {
            let sql = "SELECT id FROM sessions WHERE name = ?2 AND (?4 OR (agent = ?1 AND home = ?3)) \
                       AND EXISTS (SELECT 1 FROM sources WHERE session = sessions.id) \
                       ORDER BY agent <> ?1, home <> ?3, id LIMIT 1";
            let values = params![key.agent, key.name, key.home, is_unique(&key.name)];
            let found = connection.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
            let Some(first) = key.first.filter(|_| found.is_none()) else { return Ok(found) };
            let sql = "SELECT DISTINCT session FROM sources JOIN sessions ON sessions.id = session \
                       WHERE first_key = ?1 AND thread IS NULL AND agent = ?2 LIMIT 2";
            let mut statement = connection.prepare_cached(sql)?;
            let begin_alike: Vec<SessionId> = statement
                .query_map(params![to_signed(first.0), key.agent], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(match begin_alike.as_slice() {
                [only] => Some(*only),
                _ => None,
            })
        })
    }

    /// The marks of all marked sessions.
    pub fn marks(&self) -> Result<BTreeMap<SessionId, Marks>, Error> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached("SELECT session, marks FROM marks")?;
            statement.query_map([], |row| Ok((row.get(0)?, read_marks(row, 1)?.unwrap_or_default())))?.collect()
        })
    }

    /// The pinned sessions, unordered.
    pub fn pinned_sessions(&self) -> Result<Vec<IndexedSession>, Error> {
        let mut sessions = Vec::new();
        for (session, _) in self.marks()?.into_iter().filter(|(_, marks)| marks.pinned) {
            sessions.extend(self.session(session)?);
        }
        Ok(sessions)
    }

    /// Makes the marks those of the archive. Marks of sessions that the catalogue does not know are left out.
    pub(crate) fn sync_marks<'m>(&self, marks: impl Iterator<Item = (&'m SessionKey, &'m Marks)>) -> Result<(), Error> {
        let mut known: BTreeMap<SessionId, Marks> = BTreeMap::new();
        for (key, marks) in marks {
            if let Some(session) = self.session_with_key(key)? {
                known.entry(session).or_default().join(marks);
            }
        }
        if known == self.marks()? {
            return Ok(());
        }
        self.query(|connection| {
            connection.execute("DELETE FROM marks", [])?;
            known.iter().try_for_each(|(session, marks)| write_marks(connection, *session, marks))
        })
    }

    /// Replaces the marks in a commit of its own. Returns the number of commits.
    pub(crate) fn replace_marks<'m>(
        &self,
        marks: impl Iterator<Item = (&'m SessionKey, &'m Marks)>,
    ) -> Result<u64, Error> {
        self.begin()?;
        let replaced = self.sync_marks(marks).and_then(|()| {
            self.query(|connection| connection.execute_batch("UPDATE state SET commits = commits + 1; COMMIT"))
        });
        if replaced.is_err() {
            // The next run replaces them.
            let _ = self.roll_back();
        }
        replaced?;
        self.query(|connection| {
            // The file must be final before it can be sealed. A search that is still reading may prevent that.
            connection.busy_timeout(CHECKPOINT_WAIT)?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })?;
        self.commits()
    }
}

/// How long a commit of marks waits for readers before it leaves the write-ahead log as it is.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(200);

fn write_marks(connection: &Connection, session: SessionId, marks: &Marks) -> rusqlite::Result<()> {
    let text = serde_json::to_string(marks).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    connection.prepare_cached("INSERT INTO marks VALUES (?1, ?2)")?.execute(params![session, text]).map(drop)
}

/// The marks in a column; `None` if it is empty.
pub(super) fn read_marks(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Marks>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(None) };
    let marks = serde_json::from_str(text);
    marks.map(Some).map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into()))
}
