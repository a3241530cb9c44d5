//! Prints related conversations as a tree, for people and for programs. Text from transcripts passes through [`harmless_line`].

use stenograph::compare::{Branch, RelationEvidence};
use stenograph::json::Draft;
use stenograph::text::quote;

use super::Member;
use crate::clock;
use crate::output::{Colour, TextStyle, counted, grouped, harmless_line, shortened};
use crate::table;

/// The maximum length of a user's words.
const ASKED_LENGTH_MAX: usize = 100;

/// A tree of conversations and of branches within them.
pub struct Tree<'m> {
    members: &'m [Member],
    /// The children of each conversation.
    children: Vec<Vec<usize>>,
}

#[derive(Clone, Copy)]
enum Node {
    Member(usize),
    /// A branch within a conversation, from 1.
    Branch(usize, u32),
}

impl<'m> Tree<'m> {
    pub fn of(members: &'m [Member]) -> Tree<'m> {
        let mut children = vec![Vec::new(); members.len()];
        for (at, member) in members.iter().enumerate() {
            let parent = member.relation.as_ref().and_then(|relation| children.get_mut(relation.parent));
            if let Some(children) = parent {
                children.push(at);
            }
        }
        Tree { members, children }
    }

    /// The conversations without a parent.
    pub fn roots(&self) -> impl Iterator<Item = usize> {
        self.members.iter().enumerate().filter(|(_, member)| member.relation.is_none()).map(|(at, _)| at)
    }

    /// Whether a conversation has no relatives, no branches and no stated origin.
    pub fn is_alone(&self, root: usize) -> bool {
        let is_forked = self.members.get(root).is_some_and(|member| member.strand.fork.is_some());
        !is_forked && self.below(Node::Member(root)).is_empty()
    }

    /// The children of a node, in the order of their branching points.
    fn below(&self, node: Node) -> Vec<Node> {
        let (at, within) = match node {
            Node::Member(at) => (at, 0),
            Node::Branch(at, branch) => (at, branch),
        };
        let branches = self.members.get(at).map(|member| member.strand.branches.as_slice()).unwrap_or_default();
        let mut found: Vec<(u64, Node)> = (1..)
            .zip(branches)
            .filter(|(_, branch)| branch.within == within && branch.steps > 0)
            .map(|(number, branch)| (branch.left.unwrap_or(0), Node::Branch(at, number)))
            .collect();
        if within == 0 {
            for child in self.children.get(at).into_iter().flatten() {
                let relation = self.members.get(*child).and_then(|member| member.relation.as_ref());
                found.push((relation.and_then(|relation| relation.left).unwrap_or(0), Node::Member(*child)));
            }
        }
        found.sort_by_key(|(left, _)| *left);
        found.into_iter().map(|(_, node)| node).collect()
    }

    /// Visits everything below a root, with its depth and whether siblings follow. Not recursive: a chain may be long.
    fn walk(&self, root: usize, each: &mut dyn FnMut(Node, &[bool])) {
        let mut open: Vec<(Node, Vec<bool>)> = vec![(Node::Member(root), Vec::new())];
        while let Some((node, lasts)) = open.pop() {
            each(node, &lasts);
            let below = self.below(node);
            let count = below.len();
            for (at, child) in below.into_iter().enumerate().rev() {
                // Beyond some depth, a chain of continuations is drawn straight, to stay readable.
                let mut lasts = lasts.clone();
                if lasts.len() < DEPTH_MAX {
                    lasts.push(at + 1 == count);
                }
                open.push((child, lasts));
            }
        }
    }

    /// The tree for people.
    pub fn lines(&self, root: usize, colour: Colour) -> Vec<String> {
        let mut lines = Vec::new();
        let width = table::screen_width();
        self.walk(root, &mut |node, lasts| {
            let (mut first, mut rest) = (String::new(), String::new());
            for (depth, is_last) in lasts.iter().enumerate() {
                let is_here = depth + 1 == lasts.len();
                first.push_str(match (is_here, is_last) {
                    (true, true) => "└─ ",
                    (true, false) => "├─ ",
                    (false, true) => "   ",
                    (false, false) => "│  ",
                });
                rest.push_str(if *is_last { "   " } else { "│  " });
            }
            let (name, about, asked) = self.described(node);
            lines.push(format!("{first}{}  {about}", colour.paint(TextStyle::Strong, &name)));
            if let Some(asked) = asked {
                let has_children = !self.below(node).is_empty();
                let rest = format!("{rest}{}", if has_children { "│  " } else { "   " });
                let room = width.saturating_sub(table::display_width(&rest)).min(ASKED_LENGTH_MAX);
                lines.push(format!("{rest}{}", table::truncated(&format!("\u{201c}{asked}\u{201d}"), room)));
            }
        });
        lines
    }

    /// A node's name, description, and first words of the user.
    fn described(&self, node: Node) -> (String, String, Option<String>) {
        let (Node::Member(at) | Node::Branch(at, _)) = node;
        let Some(member) = self.members.get(at) else { return Default::default() };
        let quoted_words = |asked: Option<&str>| {
            let text = asked?.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(shortened(&harmless_line(&text), ASKED_LENGTH_MAX).into_owned())
        };
        let strand = &member.strand;
        if let Node::Branch(_, number) = node {
            let Some(branch) = branch(member, number) else { return Default::default() };
            let events = match branch.first == branch.last {
                true => format!("event {}", grouped(branch.first)),
                false => format!("events {} to {}", grouped(branch.first), grouped(branch.last)),
            };
            let left = branch.left.map(|left| format!(", branched after event {}", grouped(left))).unwrap_or_default();
            let name = "abandoned".to_owned();
            return (name, format!("{events}{left}{}", when(branch.started)), quoted_words(branch.asked.as_deref()));
        }
        let size = counted(strand.events, "event");
        let shared = member.relation.as_ref().map_or(0, |relation| relation.shared);
        let about = match &member.relation {
            Some(relation) => {
                let after = relation.left.map(|left| format!(" event {}", grouped(left)));
                match relation.how {
                    RelationEvidence::Branches => format!("branched after{}", after.unwrap_or_default()),
                    RelationEvidence::Continues => format!("continues after{}", after.unwrap_or_default()),
                    RelationEvidence::Copy => "identical copy".to_owned(),
                    RelationEvidence::Ids => format!("continues after{}, by record ids", after.unwrap_or_default()),
                    RelationEvidence::Stated => match after {
                        Some(after) => format!("forked after{after}, as stated"),
                        None => "forked from it, as stated".to_owned(),
                    },
                }
            }
            None => match &strand.fork {
                Some(fork) => format!("forked from {}, which is missing", harmless_line(&fork.session)),
                None => String::new(),
            },
        };
        let about: Vec<String> = [about, size].into_iter().filter(|part| !part.is_empty()).collect();
        let is_copy = member.relation.as_ref().is_some_and(|relation| relation.how == RelationEvidence::Copy);
        let asked = quoted_words(strand.asked_from(shared)).filter(|_| !is_copy);
        let started = strand.steps.get(shared).and_then(|step| step.time).or_else(|| strand.started());
        (harmless_line(&member.name), format!("{}{}", about.join(", "), when(started)), asked)
    }

    /// The tree for programs, one object per node.
    pub fn json(&self, root: usize) -> Vec<String> {
        let mut lines = Vec::new();
        self.walk(root, &mut |node, _| {
            let (Node::Member(at) | Node::Branch(at, _)) = node;
            let Some(member) = self.members.get(at) else { return };
            let mut draft = Draft::new();
            match node {
                Node::Member(_) => self.member_json(member, &mut draft),
                Node::Branch(_, number) => {
                    let Some(branch) = branch(member, number) else { return };
                    branch_json(member, number, branch, &mut draft);
                }
            }
            lines.push(draft.render(None));
        });
        lines
    }

    fn member_json(&self, member: &Member, draft: &mut Draft<'_>) {
        let strand = &member.strand;
        draft.set("name", quote(&member.name));
        draft.set("session", text(strand.session.as_deref()));
        let parent = member.relation.as_ref().and_then(|relation| Some((relation, self.members.get(relation.parent)?)));
        draft.set("parent", text(parent.map(|(_, parent)| parent.name.as_str())));
        if let Some((relation, _)) = parent {
            draft.set("how", quote(relation.how.name()));
            draft.set("left_after", number(relation.left));
            draft.set("first_event", number(strand.steps.get(relation.shared).map(|step| step.number)));
            draft.set("shared_steps", relation.shared.to_string());
        }
        if let Some(fork) = &strand.fork {
            draft.set("forked_from", quote(&fork.session));
        }
        let shared = member.relation.as_ref().map_or(0, |relation| relation.shared);
        draft.set("asked", text(strand.asked_from(shared)));
        draft.set("events", strand.events.to_string());
        draft.set("steps", strand.steps.len().to_string());
        draft.set("started", text(clock::iso(strand.started()).as_deref()));
        draft.set("ended", text(clock::iso(strand.ended()).as_deref()));
    }
}

/// The maximum depth of the drawing; deeper lines do not fit on a screen.
const DEPTH_MAX: usize = 20;

fn branch(member: &Member, number: u32) -> Option<&Branch> {
    member.strand.branches.get((number as usize).checked_sub(1)?)
}

fn branch_json(member: &Member, which: u32, branch: &Branch, draft: &mut Draft<'_>) {
    draft.set("name", quote(&member.name));
    draft.set("session", text(member.strand.session.as_deref()));
    draft.set("branch", which.to_string());
    draft.set("within", branch.within.to_string());
    draft.set("how", quote("given_up"));
    draft.set("left_after", number(branch.left));
    draft.set("first_event", branch.first.to_string());
    draft.set("last_event", branch.last.to_string());
    draft.set("steps", branch.steps.to_string());
    draft.set("asked", text(branch.asked.as_deref()));
    draft.set("started", text(clock::iso(branch.started).as_deref()));
    draft.set("ended", text(clock::iso(branch.ended).as_deref()));
}

fn text(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), quote)
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "null".to_owned(), |number| number.to_string())
}

fn when(started: Option<i64>) -> String {
    started.map(|started| format!(", {}", clock::format_minute(started))).unwrap_or_default()
}
