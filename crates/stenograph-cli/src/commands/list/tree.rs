//! `steno list --tree NAME…`: the named conversations with their relatives, where each one branched off, and the turns that
//! were abandoned. The library relates conversations, `list/view.rs` prints them; this file selects, reads and orders them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use stenograph::compare::{
    Branch, Class, ConversationBuilder, ConversationSteps, IsInSpine, Relation, RelationEvidence, Step, relate,
};
use stenograph::json::Draft;
use stenograph_store::Passes;
use stenograph_store::discover::{Places, discover};
use stenograph_store::index::catalogue::{Catalogue, SessionId};

use super::view::{ListItem, ListRow};
use crate::conversation::Conversation;
use crate::error::{CommandError, ExitStatus};
use crate::input::{self, Flow};
use crate::output::{Output, counted, grouped};
use crate::store::{NamedBy, ResolvedName, ResolvedSession, SessionArgs};

/// A conversation that was read.
struct ReadConversation {
    /// The path of its file, below the named folder if there is one.
    name: String,
    agent: &'static str,
    size: Option<u64>,
    steps: ConversationSteps,
    session: Option<Box<ResolvedSession>>,
    shown: Shown,
}

/// Which trees are shown: those of a named conversation, not those of others that only began with the same words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Named,
    WithRelatives,
}

/// How a conversation is related to the one above it.
pub(super) struct Origin {
    /// For people: `branched after event 2`.
    pub text: String,
    /// The first user message after that.
    pub asked: Option<String>,
    /// For programs.
    pub json: Draft<'static>,
}

impl Origin {
    fn abandoned(number: u32, branch: &Branch) -> Origin {
        let events = match branch.first == branch.last {
            true => format!("event {}", grouped(branch.first)),
            false => format!("events {} to {}", grouped(branch.first), grouped(branch.last)),
        };
        let left = branch.left.map(|left| format!(", branched after event {}", grouped(left))).unwrap_or_default();
        let mut json = Draft::new();
        json.set_str("how", "abandoned");
        json.set_number("branch", Some(number.into()));
        json.set_number("within", Some(branch.within.into()));
        json.set_number("left_after", branch.left);
        json.set_number("first_event", Some(branch.first));
        json.set_number("last_event", Some(branch.last));
        json.set_number("steps", Some(branch.steps));
        json.set_opt("asked", branch.asked.as_deref());
        Origin { text: format!("{events}{left}"), asked: branch.asked.clone(), json }
    }
}

/// A conversation that is no session of the index.
pub(super) struct FileRow {
    pub name: String,
    pub agent: &'static str,
    pub session: Option<String>,
    pub asked: Option<String>,
    pub events: u64,
    pub messages: u64,
    pub size: Option<u64>,
    pub started: Option<i64>,
    pub ended: Option<i64>,
}

impl FileRow {
    fn of(read: &ReadConversation) -> FileRow {
        let is_message = |step: &&Step| matches!(step.class, Class::User | Class::Assistant);
        FileRow {
            name: read.name.clone(),
            agent: read.agent,
            session: read.steps.session.clone(),
            asked: read.steps.asked_from(0).map(str::to_owned),
            events: read.steps.events,
            messages: read.steps.steps.iter().filter(is_message).count() as u64,
            size: read.size,
            started: read.steps.started(),
            ended: read.steps.ended(),
        }
    }
}

/// The rows of the named conversations and their relatives. A conversation that cannot be read is reported and skipped.
pub(super) fn rows(
    names: &[PathBuf],
    place: &SessionArgs,
    output: &mut Output<'_>,
) -> Result<(Vec<ListRow>, ExitStatus), CommandError> {
    let (mut read, mut status) = (Vec::new(), ExitStatus::Done);
    let mut sessions = Vec::new();
    for name in names {
        let found = match place.resolve(name) {
            Ok(ResolvedName::Session(session)) => {
                sessions.push(session.session.id);
                continue;
            }
            Ok(ResolvedName::File(path)) if path.is_dir() => {
                read.extend(in_folder(&path, output));
                continue;
            }
            resolved => resolved.and_then(|resolved| read_one(place, resolved, Shown::Named, output)),
        };
        collect(found, &mut read, &mut status, output);
    }
    if !sessions.is_empty() {
        let catalogue = place.store()?.catalogue()?;
        for id in related(&catalogue, &sessions)? {
            let Some(session) = catalogue.session(id)? else { continue };
            let Some(source) = catalogue.source_at(&session.path)? else { continue };
            let resolved = ResolvedSession::of(&catalogue, session, source, NamedBy::Session)?;
            let shown = if sessions.contains(&id) { Shown::Named } else { Shown::WithRelatives };
            let found = read_one(place, ResolvedName::Session(Box::new(resolved)), shown, output);
            collect(found, &mut read, &mut status, output);
        }
    }
    // By default the earliest conversation is the parent; file names often begin with a time.
    read.sort_by(|one, other| {
        let began = |read: &ReadConversation| read.steps.started().unwrap_or(i64::MAX);
        began(one).cmp(&began(other)).then_with(|| one.name.cmp(&other.name))
    });
    Ok((Tree::new(read).rows(), status))
}

fn collect(
    found: Result<ReadConversation, CommandError>,
    read: &mut Vec<ReadConversation>,
    status: &mut ExitStatus,
    output: &mut Output<'_>,
) {
    match found {
        Ok(found) => read.push(found),
        Err(error) => {
            output.error(&error);
            *status = (*status).max(error.status());
        }
    }
}

/// The transcripts in a folder. Skips other files and side conversations.
fn in_folder(folder: &Path, output: &mut Output<'_>) -> Vec<ReadConversation> {
    let root = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut files = Vec::new();
    discover(&Places::below(root.clone()), &mut |file| {
        if file.hints.thread.is_none() {
            files.push(file.path);
        }
    });
    files.sort();
    let (mut found, mut unrecognized) = (Vec::new(), 0);
    for path in files {
        let read = input::open(&path, None, Passes::Many).map(Conversation::from_input).and_then(read_steps);
        match read {
            Ok(mut read) => {
                read.name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
                found.push(read);
            }
            Err(_) => unrecognized += 1,
        }
    }
    if unrecognized > 0 {
        output.say(&format!("{}: skipped {} of unknown format", folder.display(), counted(unrecognized, "file")));
    }
    found
}

fn read_one(
    place: &SessionArgs,
    resolved: ResolvedName,
    shown: Shown,
    output: &mut Output<'_>,
) -> Result<ReadConversation, CommandError> {
    let mut read = Conversation::open_resolved(place, &resolved, None, output).and_then(read_steps)?;
    if let ResolvedName::Session(session) = resolved {
        read.session = Some(session);
    }
    Ok(ReadConversation { shown, ..read })
}

/// Reads one conversation. A damaged one counts as far as it is readable.
fn read_steps(mut conversation: Conversation) -> Result<ReadConversation, CommandError> {
    let mut overview = conversation.overview();
    let mut builder = ConversationBuilder::new(&overview.spine);
    let spine = &mut overview.spine;
    let read = conversation.read_quietly(&mut |event| {
        let is_in_spine = if spine.left_out(event).is_none() { IsInSpine::Yes } else { IsInSpine::No };
        builder.add(event, spine, is_in_spine);
        Flow::Continue
    });
    let steps = builder.finish();
    match read {
        Err(error) if steps.events == 0 => Err(error),
        _ => Ok(ReadConversation {
            agent: conversation.format().map_or("", |format| format.info().agent),
            size: conversation.source().and_then(stenograph_store::Source::length),
            name: conversation.name,
            steps,
            session: None,
            shown: Shown::Named,
        }),
    }
}

/// The sessions that may be related to these: one names the other as its parent, or their users began with the same words.
/// Comparing their events then confirms or rejects that.
fn related(catalogue: &Catalogue, sessions: &[SessionId]) -> Result<Vec<SessionId>, CommandError> {
    let mut families: HashMap<SessionId, SessionId> = HashMap::new();
    let root = |families: &HashMap<SessionId, SessionId>, mut session: SessionId| {
        while let Some(parent) = families.get(&session).copied().filter(|parent| *parent != session) {
            session = parent;
        }
        session
    };
    let mut merge = |one: SessionId, other: SessionId| {
        let (one, other) = (root(&families, one), root(&families, other));
        families.insert(one, one);
        families.insert(other, one);
    };
    let mut by_key: HashMap<u64, SessionId> = HashMap::new();
    for source in catalogue.sources()? {
        if source.thread.is_none() && source.copy_of.is_none() {
            let first = source.first_key.map(|key| *by_key.entry(key).or_insert(source.session));
            merge(first.unwrap_or(source.session), source.session);
        }
    }
    for session in catalogue.sessions()? {
        if let Some((parent, _)) = session.parent {
            merge(session.id, parent);
        }
    }
    let wanted: HashSet<SessionId> = sessions.iter().map(|session| root(&families, *session)).collect();
    let mut related: Vec<SessionId> =
        families.keys().copied().filter(|session| wanted.contains(&root(&families, *session))).collect();
    related.extend(sessions.iter().filter(|session| !families.contains_key(session)));
    related.sort_unstable();
    related.dedup();
    Ok(related)
}

/// Conversations, and the branches within them.
struct Tree {
    read: Vec<ReadConversation>,
    relations: Vec<Option<Relation>>,
    /// The children of each conversation.
    children: Vec<Vec<usize>>,
}

#[derive(Clone, Copy)]
enum Node {
    Conversation(usize),
    /// A branch within a conversation, from 1.
    Branch(usize, u32),
}

impl Tree {
    fn new(mut read: Vec<ReadConversation>) -> Tree {
        let steps: Vec<ConversationSteps> = read.iter_mut().map(|read| std::mem::take(&mut read.steps)).collect();
        let relations = relate(&steps);
        read.iter_mut().zip(steps).for_each(|(read, steps)| read.steps = steps);
        let mut children = vec![Vec::new(); read.len()];
        for (at, relation) in relations.iter().enumerate() {
            if let Some(children) = relation.as_ref().and_then(|relation| children.get_mut(relation.parent)) {
                children.push(at);
            }
        }
        Tree { read, relations, children }
    }

    fn relation(&self, at: usize) -> Option<&Relation> {
        self.relations.get(at).and_then(Option::as_ref)
    }

    /// The children of a node, in the order of their branching points.
    fn below(&self, node: Node) -> Vec<Node> {
        let (at, within) = match node {
            Node::Conversation(at) => (at, 0),
            Node::Branch(at, branch) => (at, branch),
        };
        let branches = self.read.get(at).map(|read| read.steps.branches.as_slice()).unwrap_or_default();
        let mut found: Vec<(u64, Node)> = (1..)
            .zip(branches)
            .filter(|(_, branch)| branch.within == within && branch.steps > 0)
            .map(|(number, branch)| (branch.left.unwrap_or(0), Node::Branch(at, number)))
            .collect();
        if within == 0 {
            let left = |child: usize| self.relation(child).and_then(|relation| relation.left).unwrap_or(0);
            let children = self.children.get(at).into_iter().flatten();
            found.extend(children.map(|child| (left(*child), Node::Conversation(*child))));
        }
        found.sort_by_key(|(left, _)| *left);
        found.into_iter().map(|(_, node)| node).collect()
    }

    /// The rows, each tree from its root down. Not recursive: a chain may be long.
    fn rows(&self) -> Vec<ListRow> {
        let mut rows = Vec::new();
        let roots = (0..self.read.len()).filter(|at| self.relation(*at).is_none());
        for root in roots {
            let (mut tree, mut is_named) = (Vec::new(), false);
            let mut open = vec![(Node::Conversation(root), 0)];
            while let Some((node, depth)) = open.pop() {
                if let Node::Conversation(at) = node {
                    is_named |= self.read.get(at).is_some_and(|read| read.shown == Shown::Named);
                }
                self.push(node, depth, &mut tree);
                open.extend(self.below(node).into_iter().rev().map(|child| (child, depth + 1)));
            }
            if is_named {
                rows.append(&mut tree);
            }
        }
        rows
    }

    /// Adds the row of a node, and those of its sub-agents.
    fn push(&self, node: Node, depth: usize, rows: &mut Vec<ListRow>) {
        let (Node::Conversation(at) | Node::Branch(at, _)) = node;
        let Some(read) = self.read.get(at) else { return };
        let depth = depth.min(super::DEPTH_MAX);
        let mut push = |item, origin, depth| rows.push(ListRow { item, depth: Some(depth), origin });
        if let Node::Branch(_, number) = node {
            let branch = (number as usize).checked_sub(1).and_then(|at| read.steps.branches.get(at));
            if let Some(branch) = branch {
                let (path, session) = (read.name.clone(), read.steps.session.clone());
                let item = ListItem::Abandoned { path, session, started: branch.started, ended: branch.ended };
                push(item, Some(Origin::abandoned(number, branch)), depth);
            }
            return;
        }
        let origin = self.origin(at, read);
        let Some(resolved) = &read.session else {
            return push(ListItem::File(Box::new(FileRow::of(read))), origin, depth);
        };
        push(ListItem::Session(Box::new(resolved.session.clone())), origin, depth);
        for source in resolved.threads() {
            let session = resolved.session.name.clone();
            push(ListItem::Thread { source: Box::new(source.clone()), session }, None, depth + 1);
        }
    }

    fn origin(&self, at: usize, read: &ReadConversation) -> Option<Origin> {
        let mut json = Draft::new();
        let Some(relation) = self.relation(at) else {
            let fork = read.steps.fork.as_ref()?;
            json.set_str("forked_from", &fork.session);
            let text = format!("forked from {}, which is missing", fork.session);
            return Some(Origin { text, asked: read.steps.asked_from(0).map(str::to_owned), json });
        };
        let after = relation.left.map(|left| format!(" event {}", grouped(left)));
        let text = match (relation.how, after) {
            (RelationEvidence::Branches, after) => format!("branched after{}", after.unwrap_or_default()),
            (RelationEvidence::Continues, after) => format!("continues after{}", after.unwrap_or_default()),
            (RelationEvidence::Copy, _) => "identical copy".to_owned(),
            (RelationEvidence::Ids, after) => format!("continues after{}, by record ids", after.unwrap_or_default()),
            (RelationEvidence::Stated, Some(after)) => format!("forked after{after}, as stated"),
            (RelationEvidence::Stated, None) => "forked from it, as stated".to_owned(),
        };
        json.set_opt("parent", self.read.get(relation.parent).map(|parent| parent.name.as_str()));
        json.set_str("how", relation.how.name());
        json.set_number("left_after", relation.left);
        json.set_number("first_event", read.steps.steps.get(relation.shared).map(|step| step.number));
        json.set_number("shared_steps", Some(relation.shared as u64));
        json.set_opt("forked_from", read.steps.fork.as_ref().map(|fork| &*fork.session));
        let is_copy = relation.how == RelationEvidence::Copy;
        let asked = read.steps.asked_from(relation.shared).filter(|_| !is_copy);
        json.set_opt("asked", asked);
        Some(Origin { text, asked: asked.map(str::to_owned), json })
    }
}
