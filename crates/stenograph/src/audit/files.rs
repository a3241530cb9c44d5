//! Files that calls touched, each once. A call that failed changed nothing; one that never was answered may have.

use std::collections::HashMap;

use super::report::{CallOutcome, Capped, Change, File, Place};
use crate::query::{Touch, TouchHow};

/// How many files are kept. Who touches more runs a command for it.
const FILES_MAX: usize = 50_000;

/// The files of a session.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub kept: Capped<File>,
    paths: HashMap<String, usize>,
}

impl Files {
    /// Takes notice of a call that is about a file; gives the file's place in the list. `made` tells whether the file was not there before,
    /// where the source says so.
    pub fn touch(&mut self, touch: &Touch, outcome: CallOutcome, made: Option<bool>, place: Place) -> Option<usize> {
        let at = match self.paths.get(&touch.path) {
            Some(at) => *at,
            None => {
                let file = File {
                    path: touch.path.clone(),
                    change: Change::Tried,
                    reads: 0,
                    writes: 0,
                    edits: 0,
                    deletes: 0,
                    failed: 0,
                    first: place,
                    last: place,
                };
                let at = self.kept.push(file, FILES_MAX)?;
                self.paths.insert(touch.path.clone(), at);
                at
            }
        };
        let file = self.kept.items.get_mut(at)?;
        file.last = place;
        match outcome {
            CallOutcome::Ok | CallOutcome::Running | CallOutcome::Unknown => changed(file, touch.how, made),
            CallOutcome::Failed | CallOutcome::Denied | CallOutcome::Interrupted => file.failed += 1,
        }
        Some(at)
    }
}

fn changed(file: &mut File, how: TouchHow, made: Option<bool>) {
    match how {
        TouchHow::Read => file.reads += 1,
        TouchHow::Written => file.writes += 1,
        TouchHow::Edited => file.edits += 1,
        TouchHow::Deleted => file.deletes += 1,
        TouchHow::Named => {}
    }
    // What nobody looked at or changed before was most likely not there.
    let is_new = made.unwrap_or(matches!(file.change, Change::Tried | Change::Named | Change::Deleted));
    file.change = match (how, file.change) {
        (TouchHow::Deleted, _) => Change::Deleted,
        (TouchHow::Written, _) if is_new => Change::Created,
        (TouchHow::Written | TouchHow::Edited, Change::Created) => Change::Created,
        (TouchHow::Written | TouchHow::Edited, _) => Change::Changed,
        (TouchHow::Read, Change::Named | Change::Tried) => Change::Read,
        (TouchHow::Named, Change::Tried) => Change::Named,
        (TouchHow::Read | TouchHow::Named, before) => before,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(steps: &[(TouchHow, CallOutcome)]) -> Change {
        let mut files = Files::default();
        for (how, outcome) in steps {
            files.touch(&Touch { path: "/a".into(), how: *how }, *outcome, None, Place::default());
        }
        assert_eq!(files.kept.items.len(), 1);
        files.kept.items[0].change
    }

    #[test]
    fn what_happened_to_a_file_in_the_end() {
        use CallOutcome::{Denied, Failed, Ok, Unknown};
        use TouchHow::{Deleted, Edited, Named, Read, Written};
        assert_eq!(change(&[(Written, Ok), (Edited, Ok), (Read, Ok)]), Change::Created);
        assert_eq!(change(&[(Read, Ok), (Written, Ok)]), Change::Changed);
        assert_eq!(change(&[(Edited, Ok), (Deleted, Ok)]), Change::Deleted);
        assert_eq!(change(&[(Deleted, Ok), (Written, Ok)]), Change::Created);
        assert_eq!(change(&[(Named, Ok), (Read, Ok), (Named, Ok)]), Change::Read);
        assert_eq!(change(&[(Edited, Failed), (Edited, Denied)]), Change::Tried);
        assert_eq!(change(&[(Edited, Unknown)]), Change::Changed);
    }
}
