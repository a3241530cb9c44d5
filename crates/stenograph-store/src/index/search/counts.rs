//! How common each thing is that a query looks for, so that what is rare can be shown. It finds nothing itself.

use stenograph::query::{Query, Sought};
use tantivy::collector::Count;

use super::Searcher;
use crate::Error;
use crate::index::text::of_engine;

impl Searcher {
    /// In how many events of the index each part of [`Query::sought`] stands. A pattern is not counted: it is taken for rare.
    pub fn counts(&self, query: &Query) -> Result<Vec<u64>, Error> {
        let count = |sought: &Sought<'_>| match sought {
            Sought::Pattern(_) => Ok(0),
            Sought::Words(words) => {
                let found = self.engine.search(&*self.words(self.fields.text, words), &Count);
                found.map(|count| count as u64).map_err(|error| of_engine(&self.place, error))
            }
        };
        query.sought().iter().map(count).collect()
    }
}
