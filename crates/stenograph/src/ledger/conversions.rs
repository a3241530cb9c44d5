//! Finds calls that a converted session repeats. A session that was converted for another agent, and perhaps continued there,
//! states the calls of the original again under the name of the other agent. They count once, for the source that knows their
//! model; if several do, for the one that was written first. A copy that got a session id of its own states the session that it
//! came from. The same holds for the journal of a recording and the documents made
//! from it. `runs.rs` handles totals of runs.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Tokens;
use super::builder::{LedgerEntry, RecordingPart};
use super::row::RowKind;
use super::source_usage::Name;

/// Two agents state times for the same call that differ by less than this: one states when the answer begins, the other when it
/// ends.
const APART_MAX_MS: u64 = 10 * 60 * 1000;

/// The most originals of originals that are followed: sources may name each other in a cycle.
const ORIGINALS_MAX: usize = 64;

/// The same for sources that name no session: conversions among them state the times of the original.
const UNNAMED_APART_MAX_MS: u64 = 2_000;

/// Whose call a source states, the best evidence first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryOrigin {
    /// One that it made itself, after the records that were copied from another session.
    Continued,
    /// One that it made itself, as far as it states. Turns that moved back to it look like its own.
    Own,
    /// Perhaps one of the session that it was forked from: its records do not state which ones were copied.
    Fork,
    /// One of another session, whose record was copied.
    Copy,
}

/// The source of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntrySource<'s> {
    /// Whose call the source states.
    pub origin: EntryOrigin,
    /// When it was last written.
    pub written: i64,
    /// Its path.
    pub path: &'s str,
    /// Whether its records name their session.
    pub names_session: bool,
    /// The session that it states to be a copy of, under a name of its own.
    pub copied_from: Option<Name>,
    /// The recording that it is part of.
    pub recording: Option<(Name, RecordingPart)>,
}

/// What connects entries of which some may repeat others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Connection {
    /// A session: another agent states the same calls.
    Session(Name),
    /// A recording: its journal and its documents state the same calls.
    Recording(Name),
}

/// Who states an entry, as far as the connection tells them apart.
fn writer(connection: Connection, entry: &LedgerEntry, source: &EntrySource<'_>) -> Writer {
    match connection {
        Connection::Session(_) => Writer { agent: Some(entry.row.agent), part: None },
        Connection::Recording(_) => Writer { agent: None, part: source.recording.map(|(_, part)| part) },
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Writer {
    agent: Option<Name>,
    part: Option<RecordingPart>,
}

/// An entry, and who states it.
#[derive(Clone, Copy)]
struct Statement<'e> {
    entry: &'e LedgerEntry,
    writer: Writer,
}

/// The indexes of entries that repeat a call which another agent made in the same session. `source_of` returns the data that
/// decides which of two sources is the original, and `None` for entries that cannot be conversions. `original_of` returns the
/// session that a session was copied or forked from.
pub(super) fn repeated<'s>(
    entries: &[LedgerEntry],
    source_of: &dyn Fn(&LedgerEntry) -> Option<EntrySource<'s>>,
    original_of: &dyn Fn(Name) -> Option<Name>,
) -> Vec<usize> {
    let mut repeated = Vec::new();
    for (connection, indexes) in of_several_writers(entries, source_of, original_of) {
        let mut ordered: Vec<(_, usize, Statement<'_>)> = indexes
            .into_iter()
            .filter_map(|index| {
                let entry = entries.get(index)?;
                let source = source_of(entry)?;
                Some((source, index, Statement { entry, writer: writer(connection, entry, &source) }))
            })
            .collect();
        ordered.sort_by_key(|(source, _, statement)| {
            let row = &statement.entry.row;
            (source.origin, row.model.is_none(), *source, row.time, row.key)
        });
        let empty: Vec<(usize, u32)> = ordered
            .extract_if(.., |(_, _, statement)| is_empty(statement.entry))
            .map(|(_, index, statement)| (index, statement.entry.source))
            .collect();
        let mut converted = HashSet::new();
        // The calls that count, by output tokens: for each, all entries of the call, beginning with the one that counts.
        let mut counted: BTreeMap<u64, Vec<Vec<Statement<'_>>>> = BTreeMap::new();
        for (_, index, statement) in ordered {
            let alike = counted.entry(statement.entry.row.tokens.output).or_default();
            match alike.iter_mut().find(|copies| are_copies_of(copies, statement)) {
                Some(copies) => {
                    copies.push(statement);
                    repeated.push(index);
                    converted.insert(statement.entry.source);
                }
                None => alike.push(vec![statement]),
            }
        }
        // Agents write answers that no model gave, and a conversion does not mark them.
        repeated.extend(empty.into_iter().filter(|(_, source)| converted.contains(source)).map(|(index, _)| index));
    }
    repeated
}

/// Whether these entries of one call and another entry state the same call. A session that was converted there and back has the
/// agent of the original and other ids: only the conversion between them connects the two.
fn are_copies_of(copies: &[Statement<'_>], other: Statement<'_>) -> bool {
    let is_own = |copy: &&Statement<'_>| copy.writer == other.writer;
    let is_elsewhere = copies.iter().all(|copy| copy.entry.source != other.entry.source);
    let is_of_same_thread = copies.iter().filter(is_own).all(|copy| copy.entry.row.thread == other.entry.row.thread);
    let is_same = |copy: &Statement<'_>| copy.writer != other.writer && is_same_call(copy.entry, other.entry);
    is_elsewhere && is_of_same_thread && copies.iter().any(is_same)
}

/// The indexes of the entries of each session with calls of several agents, and of each recording with calls in its journal and
/// in a document.
fn of_several_writers<'s>(
    entries: &[LedgerEntry],
    source_of: &dyn Fn(&LedgerEntry) -> Option<EntrySource<'s>>,
    original_of: &dyn Fn(Name) -> Option<Name>,
) -> HashMap<Connection, Vec<usize>> {
    let adopted = sessions_of_unnamed(entries, source_of);
    // A session, its copies and its forks are connected as one.
    let root = |session: Name| {
        let above = std::iter::successors(Some(session), |copy| original_of(*copy));
        above.take(ORIGINALS_MAX).last().unwrap_or(session)
    };
    let connections = |entry: &LedgerEntry, source: &EntrySource<'_>| {
        let session = entry.row.session.map(root);
        let adopted = adopted.get(&entry.source).copied().map(root).filter(|adopted| Some(*adopted) != session);
        let original = source.copied_from.map(root).filter(|original| ![session, adopted].contains(&Some(*original)));
        let recording = source.recording.map(|(recording, _)| Connection::Recording(recording));
        let sessions = session.into_iter().chain(adopted).chain(original);
        sessions.map(Connection::Session).chain(recording)
    };
    let (mut writers, mut several) = (HashMap::new(), HashSet::new());
    for entry in entries.iter().filter(|entry| is_call(entry)) {
        let Some(source) = source_of(entry) else { continue };
        for connection in connections(entry, &source) {
            let writer = writer(connection, entry, &source);
            if *writers.entry(connection).or_insert(writer) != writer {
                several.insert(connection);
            }
        }
    }
    let mut found: HashMap<Connection, Vec<usize>> = HashMap::new();
    if several.is_empty() {
        return found;
    }
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| is_call(entry)) {
        let Some(source) = source_of(entry) else { continue };
        for connection in connections(entry, &source).filter(|connection| several.contains(connection)) {
            found.entry(connection).or_default().push(index);
        }
    }
    found
}

/// For each source whose records name no session, the session that it is a conversion of: the one that made its first call.
fn sessions_of_unnamed<'s>(
    entries: &[LedgerEntry],
    source_of: &dyn Fn(&LedgerEntry) -> Option<EntrySource<'s>>,
) -> HashMap<u32, Name> {
    let mut firsts: HashMap<u32, &LedgerEntry> = HashMap::new();
    let is_unnamed = |entry: &&LedgerEntry| {
        source_of(entry).is_some_and(|source| !source.names_session) && is_call(entry) && !is_empty(entry)
    };
    for entry in entries.iter().filter(is_unnamed) {
        let first = firsts.entry(entry.source).or_insert(entry);
        if (entry.row.time, entry.row.key) < (first.row.time, first.row.key) {
            *first = entry;
        }
    }
    // Without a time, any two calls of the same size would match.
    firsts.retain(|_, first| first.row.time.is_some());
    let mut by_output: HashMap<u64, Vec<(u32, &LedgerEntry)>> = HashMap::new();
    for (source, first) in &firsts {
        by_output.entry(first.row.tokens.output).or_default().push((*source, first));
    }
    let mut found: HashMap<u32, (u64, u128, Name)> = HashMap::new();
    for entry in entries.iter().filter(|entry| is_call(entry) && !firsts.contains_key(&entry.source)) {
        let Some(alike) = by_output.get(&entry.row.tokens.output) else { continue };
        let (Some(session), Some(time), Some(_)) = (entry.row.session, entry.row.time, source_of(entry)) else {
            continue;
        };
        let is_same = |first: &LedgerEntry| first.row.agent != entry.row.agent && is_same_call(first, entry);
        for (source, first) in alike.iter().filter(|(_, first)| is_same(first)) {
            // If several match, the nearest one counts.
            let apart = first.row.time.map_or(u64::MAX, |first| first.abs_diff(time));
            if apart >= UNNAMED_APART_MAX_MS {
                continue;
            }
            let nearest = found.entry(*source).or_insert((apart, entry.row.key, session));
            *nearest = (*nearest).min((apart, entry.row.key, session));
        }
    }
    found.into_iter().map(|(source, (.., session))| (source, session)).collect()
}

/// Whether an entry is a single call.
pub(super) fn is_call(entry: &LedgerEntry) -> bool {
    match entry.row.kind {
        RowKind::Own | RowKind::Difference | RowKind::Replayed | RowKind::Forwarded => true,
        RowKind::Run | RowKind::Cost | RowKind::Search => false,
    }
}

fn is_empty(entry: &LedgerEntry) -> bool {
    entry.row.tokens.total() == 0
}

/// Whether two writers state the same call: the same tokens at about the same time. Two records of one writer share the ids
/// instead.
fn is_same_call(one: &LedgerEntry, other: &LedgerEntry) -> bool {
    let (one, other) = (&one.row, &other.row);
    let is_same_model = one.model.is_none() || other.model.is_none() || one.model == other.model;
    let is_near = match (one.time, other.time) {
        (Some(one), Some(other)) => one.abs_diff(other) < APART_MAX_MS,
        (None, _) | (_, None) => true,
    };
    is_same_model && is_near && is_alike(&one.tokens, &other.tokens)
}

/// Whether two calls have the same tokens, even if one source states no cache or counts it as input.
fn is_alike(one: &Tokens, other: &Tokens) -> bool {
    let is_cached = |tokens: &Tokens| tokens.cache_read > 0 || tokens.cache_write > 0;
    let (read, read_other) = (one.all_input(), other.all_input());
    let is_input_same = read == read_other || one.input == other.input && !(is_cached(one) && is_cached(other));
    one.output == other.output && is_input_same && read.saturating_add(one.output) > 0
}
