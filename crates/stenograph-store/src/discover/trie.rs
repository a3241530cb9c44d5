//! All homes of all formats as one tree of steps, so that a folder is listed once for all of them. It knows patterns and formats,
//! and no file system.

use std::path::{Path, PathBuf};

use stenograph::format::Format;
use stenograph::formats::FORMATS;

use super::Places;
use super::machine::{self, Machine, Start};
use super::pattern::Pattern;

/// The tree.
#[derive(Debug, Default)]
pub(super) struct Trie {
    nodes: Vec<Node>,
}

/// Where one stands in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At(usize);

#[derive(Debug, Default)]
struct Node {
    steps: Vec<(Pattern, At)>,
    leaf: Option<Leaf>,
}

/// The end of a home: a file that fits it is one of these.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    /// The format.
    pub format: &'static dyn Format,
    /// How sure that is.
    pub standing: Standing,
    /// Of two that fit the first in the format's own list counts.
    order: usize,
}

/// What a place proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// It belongs to an agent, and is kept in a project.
    Project,
    /// It is the home of an agent.
    Home,
    /// It is a name in the folder of a project, which anything may have.
    Name,
    /// It looks like the inside of a home that a variable may have moved anywhere.
    Like,
}

impl Leaf {
    /// What is to be preferred comes first.
    pub(super) fn rank(&self) -> (Standing, usize) {
        (self.standing, self.order)
    }
}

impl Trie {
    /// A new root.
    pub(super) fn root(&mut self) -> At {
        self.nodes.push(Node::default());
        At(self.nodes.len() - 1)
    }

    /// Adds a home below a root.
    fn add(&mut self, root: At, way: &str, leaf: Leaf) {
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
            // The same place may be spelled twice; what was said first counts.
            node.leaf = node.leaf.filter(|known| known.rank() <= leaf.rank()).or(Some(leaf));
        }
    }

    /// The steps that lead on from here.
    pub(super) fn steps(&self, at: At) -> &[(Pattern, At)] {
        self.nodes.get(at.0).map_or(&[], |node| &node.steps)
    }

    /// Whether a file may stand here.
    pub(super) fn leaf(&self, at: At) -> Option<Leaf> {
        self.nodes.get(at.0).and_then(|node| node.leaf)
    }

    /// Whether a folder of that name leads on from here.
    pub(super) fn leads_on(&self, at: At, name: &str) -> bool {
        self.steps(at).iter().any(|(pattern, to)| pattern.fits(name).is_some() && !self.steps(*to).is_empty())
    }

    /// Whether every way on from here leads into a folder whose name is known: then nobody has to look what is there.
    pub(super) fn is_known(&self, at: At) -> bool {
        self.steps(at).iter().all(|(pattern, to)| pattern.literal().is_some() && self.leaf(*to).is_none())
    }
}

/// The tree of the places, and where to begin in it.
#[derive(Debug)]
pub(super) struct Map {
    /// The tree.
    pub trie: Trie,
    /// Folders of this machine, and what is found in each.
    pub bases: Vec<(PathBuf, At)>,
    /// What is found in the folder of a project.
    pub project: At,
    /// What may be found in any folder that is walked whole.
    pub anywhere: At,
}

impl Map {
    /// The tree of these places.
    pub(super) fn of(places: &Places) -> Map {
        let mut trie = Trie::default();
        let (project, anywhere) = (trie.root(), trie.root());
        let mut map = Map { trie, bases: Vec::new(), project, anywhere };
        let homes = FORMATS.iter().flat_map(|format| format.info().homes.iter().map(|home| (*format, *home)));
        for (order, (format, home)) in homes.enumerate() {
            map.add(places, home, &|standing| Leaf { format, standing, order });
        }
        map
    }

    fn add(&mut self, places: &Places, home: &str, leaf: &dyn Fn(Standing) -> Leaf) {
        let (start, way) = machine::start(home);
        let base = match start {
            Start::Relative => {
                let standing = if way.contains('/') { Standing::Project } else { Standing::Name };
                self.trie.add(self.project, way, leaf(standing));
                self.trie.add(self.anywhere, way, leaf(standing));
                return;
            }
            Start::Home => {
                self.trie.add(self.anywhere, way, leaf(Standing::Home));
                "~"
            }
            Start::Variable { otherwise, .. } => {
                if let (Start::Home, above) = machine::start(otherwise) {
                    self.trie.add(self.anywhere, &format!("{above}{way}"), leaf(Standing::Home));
                }
                self.trie.add(self.anywhere, way, leaf(Standing::Like));
                home.get(..home.len() - way.len()).unwrap_or_default()
            }
            Start::Data => "{data}",
        };
        // A home folder that is walked whole needs no walk of its own, unless a variable says something else.
        let home = places.machine.home.as_ref().filter(|home| places.folders.contains(home));
        let walked = home.and_then(|home| Machine::rooted(home.clone()).resolve(base));
        for folder in places.machine.resolve_all(base).into_iter().filter(|folder| Some(folder) != walked.as_ref()) {
            let at = self.base(absolute(&folder));
            self.trie.add(at, way, leaf(Standing::Home));
        }
    }

    fn base(&mut self, folder: PathBuf) -> At {
        if let Some((_, at)) = self.bases.iter().find(|(known, _)| *known == folder) {
            return *at;
        }
        let at = self.trie.root();
        self.bases.push((folder, at));
        at
    }
}

/// A path from the root of the file system, so that it means the same to everybody.
pub(super) fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // A step on the spot says nothing.
    path.components().collect()
}
