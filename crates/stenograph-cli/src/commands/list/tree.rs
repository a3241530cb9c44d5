//! Orders sessions with their sub-agents, forks and continuations below them.

use std::collections::{HashMap, HashSet};

use stenograph_store::index::catalogue::{Catalogue, Session, SessionId, SourceRow};

use crate::error::CommandError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Flat,
    /// Each below its parent.
    Tree,
}

#[derive(Debug)]
pub(super) enum Row {
    /// A session and its depth.
    Session { session: Box<Session>, depth: Option<usize> },
    /// A side conversation of the session above it.
    Thread { source: Box<SourceRow>, session: String, depth: usize },
}

/// The maximum indentation: a chain of sessions may be any length.
const DEPTH_MAX: usize = 12;

/// Orders sessions, with their children and side conversations below each of them if `shape` is a tree.
pub(super) fn rows(sessions: Vec<Session>, catalogue: &Catalogue, shape: Shape) -> Result<Vec<Row>, CommandError> {
    if shape == Shape::Flat {
        let flat = |session| Row::Session { session: Box::new(session), depth: None };
        return Ok(sessions.into_iter().map(flat).collect());
    }
    let mut threads: HashMap<SessionId, Vec<SourceRow>> = HashMap::new();
    for source in catalogue.sources()? {
        if source.thread.is_some() && source.copy_of.is_none() && source.covered_by.is_none() {
            threads.entry(source.session).or_default().push(source);
        }
    }
    let listed: HashSet<SessionId> = sessions.iter().map(|session| session.id).collect();
    let mut below: HashMap<Option<SessionId>, Vec<Session>> = HashMap::new();
    // A session whose parent is not listed is a root.
    for session in sessions.into_iter().rev() {
        let parent = session.parent.as_ref().map(|(parent, _)| *parent).filter(|parent| listed.contains(parent));
        below.entry(parent).or_default().push(session);
    }
    let mut rows = Vec::new();
    // A stack: the children of a session precede its siblings.
    let mut waiting: Vec<(Session, usize)> =
        below.remove(&None).into_iter().flatten().map(|session| (session, 0)).collect();
    while let Some((session, depth)) = waiting.pop() {
        let deeper = (depth + 1).min(DEPTH_MAX);
        let children = below.remove(&Some(session.id)).into_iter().flatten();
        waiting.extend(children.map(|child| (child, deeper)));
        let threads = threads.remove(&session.id).unwrap_or_default();
        // A session that consists of one side conversation appears once.
        let threads = if session.sources == 1 { Vec::new() } else { threads };
        let name = session.name.clone();
        rows.push(Row::Session { session: Box::new(session), depth: Some(depth) });
        rows.extend(threads.into_iter().map(|source| Row::Thread {
            source: Box::new(source),
            session: name.clone(),
            depth: deeper,
        }));
    }
    Ok(rows)
}
