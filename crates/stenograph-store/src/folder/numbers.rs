//! Maps an event's number in a file to its number in a conversation of several files. The index and readers of one file use the
//! former; people see the latter.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{Merged, MergedEvent};

/// For each event of each file its number in the conversation. Both are counted from 0.
#[derive(Debug, Default)]
pub struct EventNumbers {
    /// `None` for an event that is not part of the conversation: a mark of the recorder.
    files: HashMap<PathBuf, Vec<Option<u64>>>,
    /// The number of events in the conversation.
    pub(super) given: u64,
}

impl EventNumbers {
    /// The number of a file's event in the conversation.
    pub fn of(&self, path: &Path, event: u64) -> Option<u64> {
        self.files.get(path)?.get(usize::try_from(event).ok()?).copied().flatten()
    }

    /// The events of files that have this number in the conversation. Several files may state the same event.
    pub fn events(&self, number: u64) -> impl Iterator<Item = (&Path, u64)> {
        let is_it = move |given: &Option<u64>| *given == Some(number);
        let found = self
            .files
            .iter()
            .filter_map(move |(path, numbers)| Some((path.as_path(), numbers.iter().position(is_it)? as u64)));
        // In a fixed order, because that of the map is random.
        let mut found: Vec<(&Path, u64)> = found.collect();
        found.sort_unstable();
        found.into_iter()
    }

    pub(super) fn add_document(&mut self, path: &Path, places: Vec<u64>) {
        self.files.insert(path.to_owned(), places.into_iter().map(Some).collect());
    }

    /// Adds merged documents and journals. For each event of a document, `places` has its number among all events of the
    /// documents; `journal_positions` has the journal of each recorded event and its number there.
    pub(super) fn add_merged(
        &mut self,
        merged: &Merged,
        places: Vec<(&PathBuf, Vec<u64>)>,
        journal_positions: &[(&Path, u64)],
    ) {
        let (mut document_events, mut journal_events): (HashMap<usize, u64>, HashMap<usize, u64>) =
            (HashMap::new(), HashMap::new());
        for (number, event) in (self.given..).zip(&merged.order) {
            match event {
                MergedEvent::Document(at) => document_events.insert(*at, number),
                MergedEvent::Journal(at) => journal_events.insert(*at, number),
            };
        }
        self.given += merged.order.len() as u64;
        let of_said =
            |at: usize| document_events.get(&at).or_else(|| journal_events.get(merged.twins.get(&at)?)).copied();
        for (path, places) in places {
            let numbers = places.into_iter().map(|at| of_said(usize::try_from(at).ok()?));
            self.files.insert(path.clone(), numbers.collect());
        }
        for (at, (journal, event)) in journal_positions.iter().enumerate() {
            let numbers = self.files.entry(journal.to_path_buf()).or_default();
            let event = usize::try_from(*event).unwrap_or(usize::MAX);
            // Events come in order; anything between them is not part of the conversation.
            if numbers.len() <= event {
                numbers.resize(event, None);
                numbers.push(journal_events.get(&at).copied());
            }
        }
    }
}
