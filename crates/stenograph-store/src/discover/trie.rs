//! All homes of all formats as one trie of path components, so that each folder is listed once for all of them. It knows
//! patterns and formats, not the file system.

use std::path::{Path, PathBuf};

use stenograph::Registry;
use stenograph::format::Format;

use super::Places;
use super::machine::{self, Machine, PlaceStart};
use super::pattern::Pattern;

#[derive(Debug, Default)]
pub(super) struct Trie {
    nodes: Vec<Node>,
}

/// A position in the trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TriePosition(usize);

#[derive(Debug, Default)]
struct Node {
    steps: Vec<(Pattern, TriePosition)>,
    leaf: Option<Leaf>,
}

/// The end of a home: a file that matches it has this format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    /// The format.
    pub format: &'static dyn Format,
    /// How much the place proves.
    pub evidence: PlaceEvidence,
    /// If two match, the first in the format's own list wins.
    order: usize,
}

/// How much a place proves. Better evidence comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PlaceEvidence {
    /// It belongs to an agent and lies in a project.
    Project,
    /// It is the home of an agent.
    Home,
    /// It is a name in a project's folder, which any file may have.
    Name,
    /// It looks like the inside of a home that a variable may have moved anywhere.
    Like,
}

impl Leaf {
    /// The sort key; the preferred one comes first.
    pub(super) fn rank(&self) -> (PlaceEvidence, usize) {
        (self.evidence, self.order)
    }
}

impl Trie {
    /// Adds a root.
    pub(super) fn root(&mut self) -> TriePosition {
        self.nodes.push(Node::default());
        TriePosition(self.nodes.len() - 1)
    }

    /// Adds a home below a root.
    fn add(&mut self, root: TriePosition, way: &str, leaf: Leaf) {
        let mut at = root;
        for step in way.split('/').filter(|step| !step.is_empty()) {
            let pattern = Pattern::of(step);
            let known = self.steps(at).iter().find(|(known, _)| *known == pattern).map(|(_, to)| *to);
            at = known.unwrap_or_else(|| {
                let to = self.root();
                if let Some(node) = self.nodes.get_mut(at.0) {
                    node.steps.push((pattern, to));
                }
                to
            });
        }
        if let Some(node) = self.nodes.get_mut(at.0) {
            // The same place may occur twice; the first one wins.
            node.leaf = node.leaf.filter(|known| known.rank() <= leaf.rank()).or(Some(leaf));
        }
    }

    /// The components that follow this position.
    pub(super) fn steps(&self, at: TriePosition) -> &[(Pattern, TriePosition)] {
        self.nodes.get(at.0).map_or(&[], |node| &node.steps)
    }

    /// The format of a file at this position, if a home ends here.
    pub(super) fn leaf(&self, at: TriePosition) -> Option<Leaf> {
        self.nodes.get(at.0).and_then(|node| node.leaf)
    }

    /// Whether a folder of that name continues a home.
    pub(super) fn continues(&self, at: TriePosition, name: &str) -> bool {
        self.steps(at).iter().any(|(pattern, to)| pattern.matches(name).is_some() && !self.steps(*to).is_empty())
    }

    /// Whether all following components are literal names, so that the folder need not be listed.
    pub(super) fn is_literal(&self, at: TriePosition) -> bool {
        self.steps(at).iter().all(|(pattern, to)| pattern.literal().is_some() && self.leaf(*to).is_none())
    }
}

/// The trie of the places, and where to start in it.
#[derive(Debug)]
pub(super) struct HomeTrie {
    /// The formats whose homes these are.
    pub registry: &'static Registry,
    /// The trie.
    pub trie: Trie,
    /// Folders of this machine, and the position for each.
    pub bases: Vec<(PathBuf, TriePosition)>,
    /// The position for a project's folder.
    pub project: TriePosition,
    /// The position for any folder that is walked whole.
    pub anywhere: TriePosition,
}

impl HomeTrie {
    /// The trie of these places.
    pub(super) fn of(places: &Places) -> HomeTrie {
        let mut trie = Trie::default();
        let (project, anywhere) = (trie.root(), trie.root());
        let mut map = HomeTrie { registry: places.registry, trie, bases: Vec::new(), project, anywhere };
        let formats = places.registry.formats();
        let homes = formats.flat_map(|format| format.info().homes.iter().map(move |home| (format, *home)));
        for (order, (format, home)) in homes.enumerate() {
            map.add(places, home, &|evidence| Leaf { format, evidence, order });
        }
        map
    }

    fn add(&mut self, places: &Places, home: &str, leaf: &dyn Fn(PlaceEvidence) -> Leaf) {
        let (start, way) = machine::start(home);
        let base = match start {
            PlaceStart::Relative => {
                let evidence = if way.contains('/') { PlaceEvidence::Project } else { PlaceEvidence::Name };
                self.trie.add(self.project, way, leaf(evidence));
                self.trie.add(self.anywhere, way, leaf(evidence));
                return;
            }
            PlaceStart::Home => {
                self.trie.add(self.anywhere, way, leaf(PlaceEvidence::Home));
                "~"
            }
            PlaceStart::Variable { otherwise, .. } => {
                if let (PlaceStart::Home, above) = machine::start(otherwise) {
                    self.trie.add(self.anywhere, &format!("{above}{way}"), leaf(PlaceEvidence::Home));
                }
                self.trie.add(self.anywhere, way, leaf(PlaceEvidence::Like));
                home.get(..home.len() - way.len()).unwrap_or_default()
            }
            PlaceStart::Data => "{data}",
        };
        // A home folder that is walked whole needs no separate walk, unless a variable points elsewhere.
        let home = places.machine.home.as_ref().filter(|home| places.folders.contains(home));
        let walked = home.and_then(|home| Machine::rooted(home.clone()).resolve(base));
        for folder in places.machine.resolve_all(base).into_iter().filter(|folder| Some(folder) != walked.as_ref()) {
            let at = self.base(absolute(&folder));
            self.trie.add(at, way, leaf(PlaceEvidence::Home));
        }
    }

    fn base(&mut self, folder: PathBuf) -> TriePosition {
        if let Some((_, at)) = self.bases.iter().find(|(known, _)| *known == folder) {
            return *at;
        }
        let at = self.trie.root();
        self.bases.push((folder, at));
        at
    }
}

/// An absolute path.
pub(super) fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // A `.` component has no meaning.
    path.components().collect()
}
