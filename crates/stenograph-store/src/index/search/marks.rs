//! Marks in searches: titles and notes that match a query, and the events that notes are about.

use std::collections::HashMap;
use std::ops::Bound;
use std::path::Path;

use stenograph::query::{Entry, Query};
use tantivy::Term;
use tantivy::query::{BooleanQuery, Query as EngineQuery, RangeQuery};

use super::{Hit, Order, Searcher};
use crate::Error;
use crate::archive::{EventKey, SessionNote};
use crate::index::catalogue::{SessionId, SourceRow};

/// A title or a note that matches a query.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkHit {
    /// The session.
    pub session: SessionId,
    /// The title or the text of the note.
    pub text: String,
    /// The note; `None` if the title matches.
    pub note: Option<SessionNote>,
    /// The event that the note is about, if the index has it.
    pub event: Option<Hit>,
}

/// The most events that are looked at to find one of them: those of one record with nested records, and their copies.
const ALIKE_MAX: usize = 256;

impl Searcher {
    /// The titles and notes that match a query, by session. They are texts about a session, so conditions on events exclude
    /// them.
    pub fn find_marks(&mut self, query: &Query, within: Option<&Path>) -> Result<Vec<MarkHit>, Error> {
        let marked = self.catalogue.marks()?;
        if marked.is_empty() {
            return Ok(Vec::new());
        }
        let inside = within.map(|folder| self.catalogue.sessions_below(folder)).transpose()?;
        let mut hits = Vec::new();
        for (session, marks) in marked {
            if inside.as_ref().is_some_and(|inside| !inside.contains(&session)) {
                continue;
            }
            let facts = self.facts(session)?;
            let matches = |text: &str, time| query.matches(&Entry::about_session(text, time), &facts.borrowed());
            if let Some(title) = marks.title.filter(|title| matches(title, None)) {
                hits.push(MarkHit { session, text: title, note: None, event: None });
            }
            let notes: Vec<SessionNote> =
                marks.notes.into_iter().filter(|note| matches(&note.text, Some(note.time_ms))).collect();
            let keys: Vec<EventKey> = notes.iter().filter_map(|note| note.event).collect();
            let events = self.events_with_keys(session, &keys)?;
            for note in notes {
                let event = note.event.and_then(|key| events.get(&key)).cloned();
                hits.push(MarkHit { session, text: note.text.clone(), note: Some(note), event });
            }
        }
        Ok(hits)
    }

    /// The key of an event of a source, by its number from 0; `None` if the event has nothing to find, or is not indexed yet.
    pub fn event_key(&self, row: &SourceRow, event: u64) -> Result<Option<EventKey>, Error> {
        // A copy has no documents of its own.
        let original = row.copy_of.map(|id| self.catalogue.source(id)).transpose()?.flatten();
        let row = original.as_ref().unwrap_or(row);
        let groups = self.of_groups([row.doc_group, row.tail].into_iter().filter(|group| *group != 0));
        let exactly = number(self.fields.event, event);
        let found = self.fetch(&BooleanQuery::intersection(vec![groups, exactly]), Order::Newest, ALIKE_MAX)?;
        let first = found.iter().min_by_key(|hit| (hit.part, hit.key));
        Ok(first.map(|hit| EventKey(hit.key)))
    }

    /// Where the events with these keys are in a session now. An event that only an earlier version has names that version.
    pub fn events_with_keys(&self, session: SessionId, keys: &[EventKey]) -> Result<HashMap<EventKey, Hit>, Error> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let groups = self.doc_groups.iter().filter(|(_, group)| group.session == session).map(|(number, _)| number);
        let keyed = keys.iter().map(|key| number(self.fields.key, key.0)).collect();
        let query = BooleanQuery::intersection(vec![self.of_groups(groups), Box::new(BooleanQuery::union(keyed))]);
        let mut found = self.fetch(&query, Order::Newest, ALIKE_MAX.saturating_mul(keys.len()))?;
        // The last one counts: a current one rather than one of an earlier version, and one that no other source covers.
        found.sort_by_key(|hit| (hit.version.is_none(), !hit.is_covered, std::cmp::Reverse((hit.source, hit.event))));
        Ok(found.into_iter().map(|hit| (EventKey(hit.key), hit)).collect())
    }
}

/// The documents with this number in a column.
fn number(column: tantivy::schema::Field, number: u64) -> Box<dyn EngineQuery> {
    let term = || Bound::Included(Term::from_field_u64(column, number));
    Box::new(RangeQuery::new(term(), term()))
}
