//! Which number an event has in a conversation that several files tell together. The index and whoever reads one file know an event by
//! its number in that file; people are told the number that it has where it is shown.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{Merged, MergedEvent};

/// For each event of each file its number in the conversation. Both are counted from 0.
#[derive(Debug, Default)]
pub struct EventNumbers {
    /// `None` stands for an event that is no part of the conversation: a mark of the recorder.
    files: HashMap<PathBuf, Vec<Option<u64>>>,
    /// How many events the conversation has.
    pub(super) given: u64,
}

impl EventNumbers {
    /// The number of an event of a file, which is known by its number there.
    pub fn of(&self, path: &Path, event: u64) -> Option<u64> {
        self.files.get(path)?.get(usize::try_from(event).ok()?).copied().flatten()
    }

    pub(super) fn add_document(&mut self, path: &Path, places: Vec<u64>) {
        self.files.insert(path.to_owned(), places.into_iter().map(Some).collect());
    }

    /// Adds documents and journals that were merged. For each event of a document, `places` has its number among all events of the
    /// documents; `kept_at` has the journal of each recorded event and its number there.
    pub(super) fn add_merged(&mut self, merged: &Merged, places: Vec<(&PathBuf, Vec<u64>)>, kept_at: &[(&Path, u64)]) {
        let (mut said, mut kept): (HashMap<usize, u64>, HashMap<usize, u64>) = (HashMap::new(), HashMap::new());
        for (number, event) in (self.given..).zip(&merged.order) {
            match event {
                MergedEvent::Document(at) => said.insert(*at, number),
                MergedEvent::Journal(at) => kept.insert(*at, number),
            };
        }
        self.given += merged.order.len() as u64;
        let of_said = |at: usize| said.get(&at).or_else(|| kept.get(merged.twins.get(&at)?)).copied();
        for (path, places) in places {
            let numbers = places.into_iter().map(|at| of_said(usize::try_from(at).ok()?));
            self.files.insert(path.clone(), numbers.collect());
        }
        for (at, (journal, event)) in kept_at.iter().enumerate() {
            let numbers = self.files.entry(journal.to_path_buf()).or_default();
            let event = usize::try_from(*event).unwrap_or(usize::MAX);
            // Events come in order; what stands between them is no part of the conversation.
            if numbers.len() <= event {
                numbers.resize(event, None);
                numbers.push(kept.get(&at).copied());
            }
        }
    }
}
