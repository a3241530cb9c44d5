//! Selects sessions. The catalogue answers conditions about sessions, the index those about events.

use std::collections::HashSet;

use stenograph::query::{Expr, Field, Is, Query, SessionFacts};
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::{Catalogue, Session, SessionId};
use stenograph_store::index::search::{Order, SearchRequest};

use super::Options;
use crate::commands::find::parse_query;
use crate::error::CommandError;
use crate::output::{Output, counted};

/// How many hits are searched for their sessions.
const HITS_MAX: usize = 200_000;

pub(super) struct Choice {
    /// The conditions of the options, one query each.
    conditions: Vec<Query>,
    /// The query argument.
    query: Option<Query>,
}

impl Choice {
    pub(super) fn new(options: &Options) -> Result<Choice, CommandError> {
        let given = [
            ("agent", &options.agent),
            ("project", &options.project),
            ("branch", &options.branch),
            ("after", &options.after),
            ("before", &options.before),
        ];
        let mut conditions = Vec::new();
        for (name, value) in given {
            if let Some(value) = value {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                conditions.push(parse_query(&format!("{name}:\"{value}\""))?);
            }
        }
        let text = options.query.join(" ");
        let query = if text.trim().is_empty() { None } else { Some(parse_query(&text)?) };
        Ok(Choice { conditions, query })
    }

    /// The sessions, in no order.
    pub(super) fn sessions(
        &self,
        store: &Store,
        catalogue: &Catalogue,
        options: &Options,
        output: &mut Output<'_>,
    ) -> Result<Vec<Session>, CommandError> {
        let root = options.place.root();
        let inside = root.as_deref().map(|root| catalogue.sessions_below(root)).transpose()?;
        let mut sessions = catalogue.sessions()?;
        sessions.retain(|session| {
            inside.as_ref().is_none_or(|inside| inside.contains(&session.id))
                && (!options.gone || session.gone == session.sources)
                && self.conditions.iter().all(|condition| matches(condition.expr(), session))
        });
        if let Some(query) = &self.query {
            narrow(&mut sessions, store, query, output)?;
        }
        Ok(sessions)
    }
}

/// Keeps the sessions that match a query, or contain an event that does.
pub(in crate::commands) fn narrow(
    sessions: &mut Vec<Session>,
    store: &Store,
    query: &Query,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    if speaks_of_events(query.expr()) {
        let found = found(store, query, output)?;
        sessions.retain(|session| found.contains(&session.id));
    } else {
        sessions.retain(|session| matches(query.expr(), session));
    }
    Ok(())
}

/// The sessions with an event that matches.
fn found(store: &Store, query: &Query, output: &mut Output<'_>) -> Result<HashSet<SessionId>, CommandError> {
    let mut searcher = store.searcher()?;
    let request = SearchRequest { query, order: Order::Newest, offset: 0, limit: HITS_MAX, within: None };
    let answer = searcher.find(&request)?;
    if answer.has_more {
        let (looked, total) = (counted(HITS_MAX as u64, "hit"), counted(answer.total, "hit"));
        output.say(&format!("searched only the newest {looked} of about {total}"));
    }
    Ok(answer.hits.iter().map(|hit| hit.session).collect())
}

/// Whether only events can answer a condition.
fn speaks_of_events(expr: &Expr) -> bool {
    match expr {
        Expr::All(parts) | Expr::Any(parts) => parts.iter().any(speaks_of_events),
        Expr::Not(inner) => speaks_of_events(inner),
        Expr::Words(_) | Expr::Pattern(_) => true,
        Expr::Field(field) => match field {
            Field::Tool(_) | Field::File(_) | Field::Role(_) | Field::Is(Is::Kind(_)) | Field::Has(_) => true,
            Field::Agent(_)
            | Field::Project(_)
            | Field::Session(_)
            | Field::Model(_)
            | Field::Branch(_)
            | Field::Is(Is::Error)
            | Field::After(_)
            | Field::Before(_) => false,
        },
    }
}

/// Whether a session's facts match.
fn matches(expr: &Expr, session: &Session) -> bool {
    match expr {
        Expr::All(parts) => parts.iter().all(|part| matches(part, session)),
        Expr::Any(parts) => parts.iter().any(|part| matches(part, session)),
        Expr::Not(inner) => !matches(inner, session),
        Expr::Words(_) | Expr::Pattern(_) => false,
        Expr::Field(field) => has(field, session),
    }
}

fn has(field: &Field, session: &Session) -> bool {
    match field {
        Field::Agent(_) | Field::Project(_) | Field::Session(_) => {
            let (projects, sessions) = (session.project_names(), [session.name.clone()]);
            let facts =
                SessionFacts { agent: &session.agent, projects: &projects, sessions: &sessions, file_time: None };
            field.matches_session(&facts)
        }
        Field::Model(words) => session.model.as_deref().is_some_and(|model| words.is_in(model)),
        Field::Branch(words) => session.branch.as_deref().is_some_and(|branch| words.is_in(branch)),
        Field::Is(Is::Error) => session.errors > 0,
        Field::After(ms) => session.ended.is_some_and(|ended| ended >= *ms),
        Field::Before(ms) => session.started.is_some_and(|started| started < *ms),
        Field::Tool(_) | Field::File(_) | Field::Role(_) | Field::Is(Is::Kind(_)) | Field::Has(_) => false,
    }
}
