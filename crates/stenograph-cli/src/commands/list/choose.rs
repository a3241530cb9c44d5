//! Selects sessions. The catalogue answers conditions about sessions, the index those about events.

use stenograph::query::Query;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::{Catalogue, IndexedSession};
use stenograph_store::sessions::{self, Searched, matches_session};

use super::Options;
use crate::error::CommandError;
use crate::filter::query_of;
use crate::output::{Output, counted};

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
    ) -> Result<Vec<IndexedSession>, CommandError> {
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
    sessions: &mut Vec<IndexedSession>,
    store: &Store,
    query: &Query,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    let searched = sessions::narrow(sessions, query, || store.searcher())?;
    if let Searched::Newest { hits, total } = searched {
        let (looked, total) = (counted(hits, "hit"), counted(total, "hit"));
        output.say(&format!("searched only the newest {looked} of about {total}"));
    }
    Ok(())
}
