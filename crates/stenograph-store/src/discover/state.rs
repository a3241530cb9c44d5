//! The position of a walk in a home, and the names found on the way. It accesses no file.

use std::path::Path;
use std::sync::Arc;

use stenograph::Registry;

use super::PathHints;
use super::pattern::Names;
use super::trie::{Leaf, PlaceEvidence, TriePosition};

/// The position in a home, and the names found on the way.
#[derive(Clone)]
pub(super) struct WalkState {
    /// The position in the tree.
    pub at: TriePosition,
    /// The folder where the path began.
    start: Arc<Path>,
    /// The folder that contains the first named component.
    within: Option<Arc<Path>>,
    session: Option<Arc<str>>,
    thread: Option<Arc<str>>,
    project: Option<Arc<str>>,
}

impl WalkState {
    /// The state at the beginning of a path.
    pub(super) fn new(at: TriePosition, start: &Arc<Path>) -> WalkState {
        WalkState { at, start: Arc::clone(start), within: None, session: None, thread: None, project: None }
    }

    /// The state one component further, by a name in this folder.
    pub(super) fn step(&self, to: TriePosition, within: Option<&Arc<Path>>, names: Names<'_>) -> WalkState {
        let given = |known: &Option<Arc<str>>, name: Option<&str>| name.map(Arc::from).or_else(|| known.clone());
        WalkState {
            at: to,
            start: Arc::clone(&self.start),
            within: self.within.as_ref().or(within).cloned(),
            session: given(&self.session, names.session),
            thread: given(&self.thread, names.thread),
            project: given(&self.project, names.project),
        }
    }

    /// What a file at the end of the path is.
    pub(super) fn named(
        &self,
        registry: &'static Registry,
        leaf: Leaf,
        within: Option<&Arc<Path>>,
        names: Names<'_>,
    ) -> PathHints {
        let given = |known: &Option<Arc<str>>, name: Option<&str>| name.or(known.as_deref()).map(str::to_owned);
        let (is_proof, is_project) = match leaf.evidence {
            PlaceEvidence::Home => (true, false),
            PlaceEvidence::Project => (true, true),
            PlaceEvidence::Name => (false, true),
            PlaceEvidence::Like => (false, false),
        };
        PathHints {
            registry,
            format: is_proof.then_some(leaf.format),
            like: Some(leaf.format),
            session: given(&self.session, names.session),
            thread: given(&self.thread, names.thread),
            project: given(&self.project, names.project),
            within: self.within.as_ref().or(within).cloned(),
            folder: is_project.then(|| Arc::clone(&self.start)),
        }
    }
}
