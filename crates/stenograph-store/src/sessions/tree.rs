//! Orders sessions with their sub-agents, forks and continuations below them.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::Error;
use crate::index::catalogue::{Catalogue, IndexedSession, SessionId, SourceRow};

/// How sessions are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListShape {
    /// One after the other.
    Flat,
    /// Each below its parent.
    Tree,
}

/// One row of a list of sessions.
#[derive(Clone, Debug)]
pub enum SessionRow {
    /// A session.
    Session {
        /// The session.
        session: Box<IndexedSession>,
        /// Its depth in the tree; `None` in a flat list.
        depth: Option<usize>,
    },
    /// A side conversation of the session above it.
    Thread {
        /// Its source.
        source: Box<SourceRow>,
        /// The name of its session.
        session: String,
        /// Its depth in the tree.
        depth: usize,
    },
}

/// In which order sessions are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionOrder {
    /// By the time of the last event.
    #[default]
    Newest,
    /// By the time of the first event.
    Oldest,
    /// By file size.
    Largest,
    /// By number of messages.
    Longest,
    /// By number of errors.
    Errors,
}

impl SessionOrder {
    /// All orders.
    pub const ALL: [SessionOrder; 5] = [
        SessionOrder::Newest,
        SessionOrder::Oldest,
        SessionOrder::Largest,
        SessionOrder::Longest,
        SessionOrder::Errors,
    ];

    /// Its name in options and addresses.
    pub fn name(self) -> &'static str {
        match self {
            SessionOrder::Newest => "newest",
            SessionOrder::Oldest => "oldest",
            SessionOrder::Largest => "largest",
            SessionOrder::Longest => "longest",
            SessionOrder::Errors => "errors",
        }
    }

    /// Sorts sessions. Among equals the newest stay first; those in which nobody asked anything come after all others.
    pub fn sort(self, sessions: &mut [IndexedSession]) {
        sessions.sort_by_key(|session| (session.is_idle(), Reverse(session.ended), Reverse(session.id)));
        match self {
            SessionOrder::Newest => {}
            SessionOrder::Oldest => sessions.sort_by_key(|session| (session.started.is_none(), session.started)),
            SessionOrder::Largest => sessions.sort_by_key(|session| Reverse(session.size)),
            SessionOrder::Longest => sessions.sort_by_key(|session| Reverse(session.messages)),
            SessionOrder::Errors => sessions.sort_by_key(|session| Reverse(session.errors)),
        }
    }
}

/// The maximum indentation: a chain of sessions may be any length.
pub const DEPTH_MAX: usize = 12;

/// Orders sessions, with their children and side conversations below each of them if `shape` is a tree.
pub fn rows(sessions: Vec<IndexedSession>, catalogue: &Catalogue, shape: ListShape) -> Result<Vec<SessionRow>, Error> {
    if shape == ListShape::Flat {
        let flat = |session| SessionRow::Session { session: Box::new(session), depth: None };
        return Ok(sessions.into_iter().map(flat).collect());
    }
    let mut threads: HashMap<SessionId, Vec<SourceRow>> = HashMap::new();
    for source in catalogue.sources()? {
        if source.thread.is_some() && source.copy_of.is_none() && source.covered_by.is_none() {
            threads.entry(source.session).or_default().push(source);
        }
    }
    let listed: HashSet<SessionId> = sessions.iter().map(|session| session.id).collect();
    let mut below: HashMap<Option<SessionId>, Vec<IndexedSession>> = HashMap::new();
    // A session whose parent is not listed is a root.
    for session in sessions.into_iter().rev() {
        let parent = session.parent.as_ref().map(|(parent, _)| *parent).filter(|parent| listed.contains(parent));
        below.entry(parent).or_default().push(session);
    }
    let mut rows = Vec::new();
    // A stack: the children of a session precede its siblings.
    let mut waiting: Vec<(IndexedSession, usize)> =
        below.remove(&None).into_iter().flatten().map(|session| (session, 0)).collect();
    while let Some((session, depth)) = waiting.pop() {
        let deeper = (depth + 1).min(DEPTH_MAX);
        let children = below.remove(&Some(session.id)).into_iter().flatten();
        waiting.extend(children.map(|child| (child, deeper)));
        let threads = threads.remove(&session.id).unwrap_or_default();
        // A session that consists of one side conversation appears once.
        let threads = if session.sources == 1 { Vec::new() } else { threads };
        let name = session.name.clone();
        rows.push(SessionRow::Session { session: Box::new(session), depth: Some(depth) });
        rows.extend(threads.into_iter().map(|source| SessionRow::Thread {
            source: Box::new(source),
            session: name.clone(),
            depth: deeper,
        }));
    }
    Ok(rows)
}
