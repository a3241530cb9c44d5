//! Counts how common each part of a query is, so that a snippet can show the rare ones.

use stenograph::query::{Query, Sought};
use tantivy::collector::Count;

use super::Searcher;
use crate::Error;
use crate::index::text::engine_error;

impl Searcher {
    /// The number of events in the index that contain each part of [`Query::sought`]. A pattern counts as 0, that is, as rare.
    pub fn counts(&self, query: &Query) -> Result<Vec<u64>, Error> {
        let count = |sought: &Sought<'_>| match sought {
            Sought::Pattern(_) => Ok(0),
            Sought::Phrase(words) => {
                let found = self.engine.search(&*self.words(self.fields.text, words), &Count);
                found.map(|count| count as u64).map_err(|error| engine_error(&self.place, error))
            }
        };
        query.sought().iter().map(count).collect()
    }
}
