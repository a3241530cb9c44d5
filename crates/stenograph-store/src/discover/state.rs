//! Where a walk stands in a home, and what the way there was called. It looks at no file.

use std::path::Path;
use std::sync::Arc;

use super::Named;
use super::pattern::Names;
use super::trie::{At, Leaf, Standing};

/// Where one stands in a home, and what the way there was called.
#[derive(Clone)]
pub(super) struct State {
    /// Where in the tree.
    pub at: At,
    /// The folder in which the way began.
    start: Arc<Path>,
    /// The folder in which the first name of the way stands.
    within: Option<Arc<Path>>,
    session: Option<Arc<str>>,
    thread: Option<Arc<str>>,
    project: Option<Arc<str>>,
}

impl State {
    /// At the beginning of a way.
    pub(super) fn new(at: At, start: &Arc<Path>) -> State {
        State { at, start: Arc::clone(start), within: None, session: None, thread: None, project: None }
    }

    /// One step on, by a name in this folder.
    pub(super) fn step(&self, to: At, within: Option<&Arc<Path>>, names: Names<'_>) -> State {
        let given = |known: &Option<Arc<str>>, name: Option<&str>| name.map(Arc::from).or_else(|| known.clone());
        State {
            at: to,
            start: Arc::clone(&self.start),
            within: self.within.as_ref().or(within).cloned(),
            session: given(&self.session, names.session),
            thread: given(&self.thread, names.thread),
            project: given(&self.project, names.project),
        }
    }

    /// What a file is at the end of the way.
    pub(super) fn named(&self, leaf: Leaf, within: Option<&Arc<Path>>, names: Names<'_>) -> Named {
        let given = |known: &Option<Arc<str>>, name: Option<&str>| name.or(known.as_deref()).map(str::to_owned);
        let (is_proof, is_project) = match leaf.standing {
            Standing::Home => (true, false),
            Standing::Project => (true, true),
            Standing::Name => (false, true),
            Standing::Like => (false, false),
        };
        Named {
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
