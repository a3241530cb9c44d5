//! The files that calls used, each once. A failed call changed nothing; a call without a result may have.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::report::{CallOutcome, Capped, EventPlace, File, FileOutcome};
use crate::query::{Touch, TouchHow};

/// The most files in a report. A session that changes more does so with commands.
const FILES_MAX: usize = 50_000;

/// The files of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Files {
    pub list: Capped<File>,
    paths: HashMap<String, usize>,
}

impl Files {
    /// Adds the use of a file by a call, and returns the index of the file in the list. `is_new_file` is what the source states about whether
    /// the call created the file.
    pub fn touch(
        &mut self,
        touch: &Touch,
        outcome: CallOutcome,
        is_new_file: Option<bool>,
        place: EventPlace,
    ) -> Option<usize> {
        let at = match self.paths.get(&touch.path) {
            Some(at) => *at,
            None => {
                let file = File {
                    path: touch.path.clone(),
                    change: FileOutcome::Tried,
                    reads: 0,
                    writes: 0,
                    edits: 0,
                    deletes: 0,
                    failed: 0,
                    first: place,
                    last: place,
                };
                let at = self.list.push(file, FILES_MAX)?;
                self.paths.insert(touch.path.clone(), at);
                at
            }
        };
        let file = self.list.items.get_mut(at)?;
        file.last = place;
        match outcome {
            CallOutcome::Ok | CallOutcome::Running | CallOutcome::Unknown => changed(file, touch.how, is_new_file),
            CallOutcome::Failed | CallOutcome::Denied | CallOutcome::Interrupted => file.failed += 1,
        }
        Some(at)
    }
}

fn changed(file: &mut File, how: TouchHow, is_new_file: Option<bool>) {
    match how {
        TouchHow::Read => file.reads += 1,
        TouchHow::Written => file.writes += 1,
        TouchHow::Edited => file.edits += 1,
        TouchHow::Deleted => file.deletes += 1,
        TouchHow::Named => {}
    }
    // A file that no earlier call used probably did not exist.
    let is_new =
        is_new_file.unwrap_or(matches!(file.change, FileOutcome::Tried | FileOutcome::Named | FileOutcome::Deleted));
    file.change = match (how, file.change) {
        (TouchHow::Deleted, _) => FileOutcome::Deleted,
        (TouchHow::Written, _) if is_new => FileOutcome::Created,
        (TouchHow::Written | TouchHow::Edited, FileOutcome::Created) => FileOutcome::Created,
        (TouchHow::Written | TouchHow::Edited, _) => FileOutcome::Changed,
        (TouchHow::Read, FileOutcome::Named | FileOutcome::Tried) => FileOutcome::Read,
        (TouchHow::Named, FileOutcome::Tried) => FileOutcome::Named,
        (TouchHow::Read | TouchHow::Named, before) => before,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(steps: &[(TouchHow, CallOutcome)]) -> FileOutcome {
        let mut files = Files::default();
        for (how, outcome) in steps {
            files.touch(&Touch { path: "/a".into(), how: *how }, *outcome, None, EventPlace::default());
        }
        assert_eq!(files.list.items.len(), 1);
        files.list.items[0].change
    }

    #[test]
    fn the_net_effect_on_a_file() {
        use CallOutcome::{Denied, Failed, Ok, Unknown};
        use TouchHow::{Deleted, Edited, Named, Read, Written};
        assert_eq!(change(&[(Written, Ok), (Edited, Ok), (Read, Ok)]), FileOutcome::Created);
        assert_eq!(change(&[(Read, Ok), (Written, Ok)]), FileOutcome::Changed);
        assert_eq!(change(&[(Edited, Ok), (Deleted, Ok)]), FileOutcome::Deleted);
        assert_eq!(change(&[(Deleted, Ok), (Written, Ok)]), FileOutcome::Created);
        assert_eq!(change(&[(Named, Ok), (Read, Ok), (Named, Ok)]), FileOutcome::Read);
        assert_eq!(change(&[(Edited, Failed), (Edited, Denied)]), FileOutcome::Tried);
        assert_eq!(change(&[(Edited, Unknown)]), FileOutcome::Changed);
    }
}
