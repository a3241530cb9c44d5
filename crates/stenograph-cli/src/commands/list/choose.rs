//! Selects sessions. The catalogue answers conditions about sessions, the index those about events.

use std::collections::HashSet;

use stenograph::query::{Expr, Field, Is, Query};
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::{Catalogue, Session, SessionId};
use stenograph_store::index::search::{Order, SearchRequest};

use super::Options;
use crate::error::CommandError;
use crate::filter::{matches_session, query_of};
use crate::output::{Output, counted};

/// How many hits are searched for their sessions.
const HITS_MAX: usize = 200_000;

pub(super) struct Choice {
    /// The conditions of the options.
    conditions: Option<Query>,
    /// The query argument.
    query: Option<Query>,
}

impl Choice {
    pub(super) fn new(options: &Options) -> Result<Choice, CommandError> {
        let mut conditions = options.filter.all();
        conditions.push(("branch", options.branch.as_deref()));
        let conditions = query_of(&conditions, "")?;
        let query = query_of(&[], &options.query.join(" "))?;
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
                && self.conditions.as_ref().is_none_or(|query| matches_session(query, session))
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
        sessions.retain(|session| matches_session(query, session));
    }
    Ok(())
}

/// The sessions with an event, a given title or a note that matches.
fn found(store: &Store, query: &Query, output: &mut Output<'_>) -> Result<HashSet<SessionId>, CommandError> {
    let mut searcher = store.searcher()?;
    let request = SearchRequest { query, order: Order::Newest, offset: 0, limit: HITS_MAX, within: None };
    let answer = searcher.find(&request)?;
    if answer.has_more {
        let (looked, total) = (counted(HITS_MAX as u64, "hit"), counted(answer.total, "hit"));
        output.say(&format!("searched only the newest {looked} of about {total}"));
    }
    let marks = searcher.find_marks(query, None)?;
    Ok(answer.hits.iter().map(|hit| hit.session).chain(marks.iter().map(|hit| hit.session)).collect())
}

/// Whether only events can answer a condition.
fn speaks_of_events(expr: &Expr) -> bool {
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
