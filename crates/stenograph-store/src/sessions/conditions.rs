//! Which sessions match a query. The catalogue answers conditions about sessions, the index those about events.

use std::collections::HashSet;

use stenograph::query::{Expr, Field, Is, Query, SessionFacts};

use crate::Error;
use crate::index::catalogue::{IndexedSession, SessionId};
use crate::index::search::{Order, SearchRequest, Searcher};

/// How many hits are searched for their sessions.
const HITS_MAX: usize = 200_000;

/// How much of the index a search for sessions has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// Everything.
    All,
    /// Only the newest of very many hits.
    Newest {
        /// How many hits were looked at.
        hits: u64,
        /// About how many there are.
        total: u64,
    },
}

/// Keeps the sessions that match a query, or contain an event that does. Opens the searcher only if events can match.
pub fn narrow<E: From<Error>>(
    sessions: &mut Vec<IndexedSession>,
    query: &Query,
    searcher: impl FnOnce() -> Result<Searcher, E>,
) -> Result<Searched, E> {
    if !speaks_of_events(query.expr()) {
        sessions.retain(|session| matches_session(query, session));
        return Ok(Searched::All);
    }
    let (found, searched) = sessions_with_events(&mut searcher()?, query)?;
    sessions.retain(|session| found.contains(&session.id));
    Ok(searched)
}

/// The sessions with an event, a given title or a note that matches, and how much was searched.
pub fn sessions_with_events(searcher: &mut Searcher, query: &Query) -> Result<(HashSet<SessionId>, Searched), Error> {
    let request = SearchRequest { query, order: Order::Newest, offset: 0, limit: HITS_MAX, within: None };
    let answer = searcher.find(&request)?;
    let searched = match answer.has_more {
        true => Searched::Newest { hits: HITS_MAX as u64, total: answer.total },
        false => Searched::All,
    };
    let marks = searcher.find_marks(query, None)?;
    let found = answer.hits.iter().map(|hit| hit.session).chain(marks.iter().map(|hit| hit.session));
    Ok((found.collect(), searched))
}

/// Whether only events can answer a condition.
pub fn speaks_of_events(expr: &Expr) -> bool {
    match expr {
        Expr::All(parts) | Expr::Any(parts) => parts.iter().any(speaks_of_events),
        Expr::Not(inner) => speaks_of_events(inner),
        Expr::Phrase(_) | Expr::Pattern(_) => true,
        Expr::Field(field) => match field {
            Field::Tool(_) | Field::File(_) | Field::Role(_) | Field::Is(Is::Kind(_)) | Field::Has(_) => true,
            Field::Agent(_)
            | Field::Project(_)
            | Field::Session(_)
            | Field::Tag(_)
            | Field::Model(_)
            | Field::Branch(_)
            | Field::Is(Is::Error | Is::Pinned | Is::Marked)
            | Field::Since(_)
            | Field::Until(_) => false,
        },
    }
}

/// Whether a session of the index matches. Conditions on single events do not.
pub fn matches_session(query: &Query, session: &IndexedSession) -> bool {
    let (projects, sessions) = (session.project_names(), [session.name.clone()]);
    let details = SessionDetails {
        facts: SessionFacts {
            agent: &session.agent,
            projects: &projects,
            sessions: &sessions,
            file_time: None,
            is_pinned: session.marks.pinned,
            is_marked: !session.marks.is_empty(),
            tags: &session.marks.tags,
        },
        model: session.model.as_deref(),
        branch: session.branch.as_deref(),
        has_error: session.errors > 0,
        started: session.started,
        ended: session.ended,
    };
    details.match_expr(query.expr())
}

/// What conditions on sessions look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionDetails<'a> {
    /// The agent, the project, the ids and the marks.
    pub facts: SessionFacts<'a>,
    /// The model.
    pub model: Option<&'a str>,
    /// The branch.
    pub branch: Option<&'a str>,
    /// Whether a call failed.
    pub has_error: bool,
    /// The time of the first event, in milliseconds since 1970.
    pub started: Option<i64>,
    /// The time of the last event.
    pub ended: Option<i64>,
}

impl SessionDetails<'_> {
    /// Whether they match. Conditions on single events do not.
    pub fn match_expr(&self, expr: &Expr) -> bool {
        match expr {
            Expr::All(parts) => parts.iter().all(|part| self.match_expr(part)),
            Expr::Any(parts) => parts.iter().any(|part| self.match_expr(part)),
            Expr::Not(inner) => !self.match_expr(inner),
            Expr::Phrase(_) | Expr::Pattern(_) => false,
            Expr::Field(field) => self.match_field(field),
        }
    }

    fn match_field(&self, field: &Field) -> bool {
        match field {
            Field::Agent(_)
            | Field::Project(_)
            | Field::Session(_)
            | Field::Tag(_)
            | Field::Is(Is::Pinned | Is::Marked) => field.matches_session(&self.facts),
            Field::Model(words) => self.model.is_some_and(|model| words.is_in(model)),
            Field::Branch(words) => self.branch.is_some_and(|branch| words.is_in(branch)),
            Field::Is(Is::Error) => self.has_error,
            Field::Since(ms) => self.ended.is_some_and(|ended| ended >= *ms),
            Field::Until(ms) => self.started.is_some_and(|started| started < *ms),
            Field::Tool(_) | Field::File(_) | Field::Role(_) | Field::Is(Is::Kind(_)) | Field::Has(_) => false,
        }
    }
}
