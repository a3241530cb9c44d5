//! Builds one ledger from the usage of all sources: each call once, in any order of sources, with a list of what was merged and
//! excluded.

use std::collections::{HashMap, HashSet};

use hashbrown::HashTable;

use super::conversions::{EntryOrigin, EntrySource};
use super::row::{Row, RowKind};
use super::source_usage::{Name, Names, SourceUsage, UncountedReason};
use super::{PeerRows, Tokens, conversions, runs};
use crate::model::{Dollars, Usage};

/// The most examples kept of each decision.
const EXAMPLES_MAX: usize = 5;

/// The most forks of forks followed: sources may name each other as parents in a cycle.
const FORKS_MAX: usize = 64;

/// Builds a ledger from the usage of all sources.
#[derive(Debug, Default)]
pub struct LedgerBuilder {
    names: Names,
    sources: Vec<String>,
    /// When each source was last written; `None` for sources whose calls are never conversions.
    written: Vec<Option<i64>>,
    /// Sources with records that name no session.
    unnamed: HashSet<u32>,
    /// The sources that are copies or forks.
    copies: HashMap<u32, Copy>,
    /// The sessions of these sources, and their originals.
    originals: HashMap<Name, Name>,
    /// The agents and sessions of recordings.
    owners: HashMap<u32, (Name, Option<Name>)>,
    /// The recordings that sources are part of.
    recordings: HashMap<u32, (Name, RecordingPart)>,
    entries: Vec<LedgerEntry>,
    by_key: ByKey,
    /// The keys of replayed calls, and their keys in the session they come from.
    origins: HashMap<u128, u128>,
    /// The keys that such a call may have in older sessions; one counts if an entry has it.
    older_origins: HashMap<u128, Vec<u128>>,
    decisions: HashMap<UncountedReason, LedgerDecision>,
}

/// What a source has from another session.
#[derive(Clone, Copy, Debug)]
struct Copy {
    /// The other session, if the source states it.
    original: Option<Name>,
    /// The line of the last record that was copied; 0 if records do not state that they are copies.
    until: u64,
}

/// The indexes of entries by key. It stores only indexes, because the entries have the keys, and there may be millions.
#[derive(Debug, Default)]
struct ByKey(HashTable<u32>);

impl ByKey {
    fn index(&self, key: u128, entries: &[LedgerEntry]) -> Option<usize> {
        let is_match = |index: &u32| key_at(*index, entries) == Some(key);
        self.0.find(hashed(key), is_match).and_then(|index| usize::try_from(*index).ok())
    }

    /// Adds the last entry, whose key is new.
    fn add_last(&mut self, entries: &[LedgerEntry]) {
        let Some(last) = entries.last() else { return };
        // No machine has the memory for more entries than `u32` can count.
        let index = u32::try_from(entries.len() - 1).unwrap_or(u32::MAX);
        let hash_of = |index: &u32| key_at(*index, entries).map_or(0, hashed);
        self.0.insert_unique(hashed(last.row.key), index, hash_of);
    }
}

/// Notes that a session states calls of another one: it is a copy or a fork of it, even if it does not say so.
fn relate(originals: &mut HashMap<Name, Name>, copy: Name, original: Name) {
    let mut above = std::iter::successors(Some(original), |session| originals.get(session).copied());
    if !above.by_ref().take(FORKS_MAX).any(|session| session == copy) {
        originals.entry(copy).or_insert(original);
    }
}

fn key_at(index: u32, entries: &[LedgerEntry]) -> Option<u128> {
    Some(entries.get(usize::try_from(index).ok()?)?.row.key)
}

/// Keys are already hashes, except for rules that number their rows.
fn hashed(key: u128) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&key.to_le_bytes())
}

/// Every call, once.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The calls in order of time; those without a time come first.
    pub entries: Vec<LedgerEntry>,
    /// What was merged and excluded.
    pub decisions: Vec<LedgerDecision>,
    names: Vec<String>,
    sources: Vec<String>,
}

/// What a source is in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordingPart {
    /// The file that holds every recorded event.
    Journal,
    /// A file that was made from the journal.
    Document,
}

/// One call.
#[derive(Clone, Debug)]
pub struct LedgerEntry {
    /// The call. Its names are those of the ledger.
    pub row: Row,
    /// The source with the best evidence of whose call it is.
    pub source: u32,
    /// The last source that stated it.
    last: u32,
    /// How many sources state it, by kind of row.
    own: u32,
    replayed: u32,
    passed: u32,
}

/// Records that do not count as calls of their own, for one reason.
#[derive(Clone, Debug)]
pub struct LedgerDecision {
    /// The reason.
    pub reason: UncountedReason,
    /// The number of records.
    pub count: u64,
    /// The source and line of some of them.
    pub examples: Vec<(u32, u64)>,
}

impl LedgerBuilder {
    /// Adds the usage of a source, which was last written at `written`. The parts of one source come one after the other. Rows
    /// that name no session get `session`.
    pub fn add(&mut self, source: &str, session: Option<&str>, written: i64, usage: SourceUsage) {
        let is_next = self.sources.last().is_some_and(|last| last == source);
        if !is_next {
            self.sources.push(source.to_owned());
            self.written.push(Some(written));
        }
        let number = u32::try_from(self.sources.len() - 1).unwrap_or(u32::MAX);
        let names: Vec<Name> = usage.names.iter().map(|name| self.names.number(name)).collect();
        let session = session.map(|session| self.names.number(session));
        let (original, until) = (usage.state.copied_from.as_deref(), usage.state.copied_until);
        if original.is_some() || until > 0 {
            let original = original.map(|original| self.names.number(original));
            self.copies.insert(number, Copy { original, until });
            let own = usage.state.session.as_deref().map(|session| self.names.number(session)).or(session);
            if let (Some(own), Some(original)) = (own, original) {
                self.originals.entry(own).or_insert(original);
            }
        }
        for (own, origin) in &usage.origins {
            let known = self.origins.entry(*own).or_insert(*origin);
            *known = *origin.min(known);
        }
        for (key, older) in &usage.older_origins {
            let known = self.older_origins.entry(*key).or_default();
            if let Err(at) = known.binary_search(older) {
                known.insert(at, *older);
            }
        }
        for row in usage.rows {
            let mut row = row.renamed(&names);
            if row.session.is_none() {
                self.unnamed.insert(number);
                row.session = session;
            }
            self.put(row, number);
        }
        for uncounted in &usage.uncounted {
            self.decide(uncounted.reason, uncounted.count, uncounted.lines.iter().map(|line| (number, *line)));
        }
    }

    /// States that the source added last is a recording for this agent: its calls count for that agent and for the session of
    /// the recording, whatever the recorded events state.
    pub fn set_owner_of_last(&mut self, agent: &str, session: Option<&str>) {
        let Some(last) = self.sources.len().checked_sub(1) else { return };
        let owner = (self.names.number(agent), session.map(|session| self.names.number(session)));
        self.owners.insert(u32::try_from(last).unwrap_or(u32::MAX), owner);
    }

    /// States that the source added last is part of this recording: a call that both the journal and a document state counts
    /// once.
    pub fn set_recording_of_last(&mut self, recording: &str, part: RecordingPart) {
        let Some(last) = self.sources.len().checked_sub(1) else { return };
        let recording = (self.names.number(recording), part);
        self.recordings.insert(u32::try_from(last).unwrap_or(u32::MAX), recording);
    }

    /// Adds the calls that a rule counted in these sources. Every row is a separate call: the rule has already merged rows.
    pub fn add_peer_rows(&mut self, sources: &[String], counted: PeerRows) {
        let base = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        self.sources.extend_from_slice(sources);
        self.written.resize(self.sources.len(), None);
        let names: Vec<Name> = counted.names.list.iter().map(|name| self.names.number(name)).collect();
        for (source, row) in counted.rows {
            let row = Row { key: self.entries.len() as u128, ..row.renamed(&names) };
            self.put(row, base.saturating_add(source));
        }
    }

    fn put(&mut self, row: Row, source: u32) {
        let mut entry = LedgerEntry { row, source, last: source, own: 0, replayed: 0, passed: 0 };
        entry.count(entry.row.kind);
        self.merge(entry);
    }

    /// Adds a call, or merges it into the entry with the same key.
    fn merge(&mut self, mut new: LedgerEntry) {
        let known = self.by_key.index(new.row.key, &self.entries);
        let Some(entry) = known.and_then(|index| self.entries.get_mut(index)) else {
            self.entries.push(new);
            return self.by_key.add_last(&self.entries);
        };
        let (is_same, latest) = (entry.last == new.last, new.last);
        let mut statements = [entry.own, entry.replayed, entry.passed];
        if !is_same {
            let more = [new.own, new.replayed, new.passed];
            statements.iter_mut().zip(more).for_each(|(count, more)| *count = count.saturating_add(more));
        }
        let name = |source: u32| usize::try_from(source).ok().and_then(|at| self.sources.get(at));
        // A call belongs to the session that made it, not to a copy of its record.
        let is_copied =
            |entry: &LedgerEntry| self.copies.get(&entry.source).is_some_and(|copy| entry.row.line <= copy.until);
        let evidence = |entry: &LedgerEntry| (is_copied(entry), entry.row.evidence());
        let order = evidence(&new).cmp(&evidence(entry)).then_with(|| name(new.source).cmp(&name(entry.source)));
        if order.is_lt() {
            std::mem::swap(entry, &mut new);
        }
        if let (Some(original), Some(copy), false) = (entry.row.session, new.row.session, is_same)
            && new.row.kind != RowKind::Forwarded
        {
            relate(&mut self.originals, copy, original);
        }
        entry.row.join(&new.row);
        ([entry.own, entry.replayed, entry.passed], entry.last) = (statements, latest);
        let position = (new.source, new.row.line);
        if is_same {
            // A row without records only adds tools to an answer in an earlier part.
            let count = u64::from(new.row.records > 0);
            return self.decide(UncountedReason::Streamed, count, std::iter::once(position).filter(|_| count > 0));
        }
        let reason = match new.row.kind {
            RowKind::Replayed => UncountedReason::Replayed,
            RowKind::Forwarded => UncountedReason::Forwarded,
            RowKind::Own | RowKind::Difference | RowKind::Run | RowKind::Cost | RowKind::Search => {
                UncountedReason::Copied
            }
        };
        // The counts are known only when all sources are added.
        self.decide(reason, 0, std::iter::once(position));
    }

    /// Gives replayed calls to the session that made them. A fork of a fork attributes all that it replays to the fork, but the
    /// calls that the fork itself replayed are its parent's. If the source of the fork is missing, an older session that states
    /// a call made it.
    fn resolve_origins(&mut self) {
        if self.origins.is_empty() {
            return;
        }
        let entry = |key: &u128| self.entries.get(self.by_key.index(*key, &self.entries)?);
        // A call that a session's own source states as its own has no older origin, even if an older total happens to be equal.
        let is_own = |key: &u128| entry(key).is_some_and(|entry| entry.own > 0);
        let candidates = |key: &u128| self.older_origins.get(key).filter(|_| !is_own(key));
        let older = |key: &u128| candidates(key)?.iter().find(|older| entry(older).is_some());
        let origin = |key: &u128| self.origins.get(key).or_else(|| older(key)).copied();
        let trace = |entry: &LedgerEntry| {
            let mut key = origin(&entry.row.key)?;
            for _ in 0..FORKS_MAX {
                let Some(origin) = origin(&key) else { break };
                key = origin;
            }
            Some(key)
        };
        let origins: Vec<Option<u128>> = self.entries.iter().map(trace).collect();
        let mut moved = Vec::new();
        self.by_key = ByKey::default();
        for (mut entry, origin) in std::mem::take(&mut self.entries).into_iter().zip(origins) {
            match origin {
                Some(origin) => {
                    entry.row.key = origin;
                    moved.push(entry);
                }
                None => {
                    self.entries.push(entry);
                    self.by_key.add_last(&self.entries);
                }
            }
        }
        for entry in moved {
            self.merge(entry);
        }
    }

    fn decide(&mut self, reason: UncountedReason, count: u64, positions: impl Iterator<Item = (u32, u64)>) {
        let decision =
            self.decisions.entry(reason).or_insert(LedgerDecision { reason, count: 0, examples: Vec::new() });
        decision.count += count;
        // The examples do not depend on the order of sources: they are the first ones by path and line.
        let sources = &self.sources;
        let name =
            |position: &(u32, u64)| (usize::try_from(position.0).ok().and_then(|at| sources.get(at)), position.1);
        for position in positions {
            let at = decision.examples.partition_point(|known| name(known) <= name(&position));
            if at < EXAMPLES_MAX {
                decision.examples.insert(at, position);
                decision.examples.truncate(EXAMPLES_MAX);
            }
        }
    }

    /// Excludes calls that the total of a run includes: one source may state the total, and an older one only the turns.
    fn exclude_calls_within_runs(&mut self) {
        let owner = |entry: &LedgerEntry| Some((entry.row.agent, entry.row.session?));
        let is_run = |entry: &&LedgerEntry| entry.row.kind == RowKind::Run && !entry.row.tokens.is_zero();
        let runs: HashSet<(Name, Name)> = self.entries.iter().filter(is_run).filter_map(owner).collect();
        if runs.is_empty() {
            return;
        }
        let is_within = |entry: &LedgerEntry| {
            matches!(entry.row.kind, RowKind::Own | RowKind::Forwarded)
                && owner(entry).is_some_and(|owner| runs.contains(&owner))
        };
        let within = self.entries.iter().enumerate().filter(|(_, entry)| is_within(entry));
        let within = within.map(|(index, _)| (index, None)).collect();
        self.adjust(UncountedReason::WithinTotal, within, |entry| u64::from(entry.row.records));
    }

    /// Excludes the repetitions of converted sessions: calls, and the part of run totals that calls cover.
    fn exclude_conversions(&mut self) {
        let statements =
            |entry: &LedgerEntry| u64::from(entry.own) + u64::from(entry.replayed) + u64::from(entry.passed);
        let original_of = |session: Name| self.originals.get(&session).copied();
        let repeated = conversions::repeated(&self.entries, &|entry| self.source_of(entry), &original_of);
        let repeated = repeated.into_iter().map(|index| (index, None)).collect();
        self.adjust(UncountedReason::Converted, repeated, statements);
        let changed = runs::adjustments(&self.entries, &|entry| self.source_of(entry));
        // A run that states only a cost does not count as excluded again.
        let statements = |entry: &LedgerEntry| if entry.row.tokens.is_zero() { 0 } else { statements(entry) };
        self.adjust(UncountedReason::Converted, changed, statements);
    }

    /// The source of an entry; `None` if its calls are never conversions.
    fn source_of(&self, entry: &LedgerEntry) -> Option<EntrySource<'_>> {
        let at = usize::try_from(entry.source).ok()?;
        let (written, path) = (self.written.get(at).copied()??, self.sources.get(at)?.as_str());
        let recording = self.recordings.get(&entry.source).copied();
        let copy = self.copies.get(&entry.source);
        let copied_from = copy.and_then(|copy| copy.original);
        let origin = match copy {
            Some(copy) if entry.row.line <= copy.until => EntryOrigin::Copy,
            Some(copy) if copy.until == 0 => EntryOrigin::Fork,
            Some(_) => EntryOrigin::Continued,
            None => EntryOrigin::Own,
        };
        let names_session = !self.unnamed.contains(&entry.source);
        Some(EntrySource { origin, written, path, names_session, copied_from, recording })
    }

    /// Replaces the rows of the entries at these indexes, or removes the entries.
    fn adjust(
        &mut self,
        reason: UncountedReason,
        mut changed: HashMap<usize, Option<Row>>,
        statements: impl Fn(&LedgerEntry) -> u64,
    ) {
        if changed.is_empty() {
            return;
        }
        let (mut indexes, mut uncounted) = (0.., Vec::new());
        self.entries.retain_mut(|entry| {
            let Some(row) = indexes.next().and_then(|index| changed.remove(&index)) else { return true };
            uncounted.push(((entry.source, entry.row.line), statements(entry)));
            let stays = row.is_some();
            if let Some(row) = row {
                entry.row = row;
            }
            stays
        });
        for (position, count) in uncounted {
            self.decide(reason, count, std::iter::once(position).filter(|_| count > 0));
        }
    }

    /// Finishes the ledger, after all sources are added.
    pub fn finish(mut self) -> Ledger {
        self.resolve_origins();
        self.exclude_calls_within_runs();
        self.exclude_conversions();
        let mut merged =
            [(UncountedReason::Copied, 0_u64), (UncountedReason::Replayed, 0), (UncountedReason::Forwarded, 0)];
        for entry in &self.entries {
            // The best statement is the call itself.
            let mut statements = [entry.own, entry.replayed, entry.passed].map(u64::from);
            if let Some(best) = statements.iter_mut().find(|count| **count > 0) {
                *best -= 1;
            }
            for ((_, count), more) in merged.iter_mut().zip(statements) {
                *count += more;
            }
        }
        for (reason, count) in merged {
            if count > 0 {
                self.decide(reason, count, std::iter::empty());
            }
        }
        drop(self.by_key);
        let mut entries = self.entries;
        for entry in &mut entries {
            // The remainder of a share goes to the first tools, so they need a fixed order.
            entry.row.tools.sort_by_key(|tool| self.names.list.get(tool.index()));
            // Which calls are the same is decided by what the events state.
            if let Some((agent, session)) = self.owners.get(&entry.source) {
                entry.row.agent = *agent;
                entry.row.session = session.or(entry.row.session);
            }
        }
        // Keys are unique, and a stable sort would take half as much memory again.
        entries.sort_unstable_by_key(|entry| (entry.row.time, entry.row.key));
        let decision =
            |reason: &UncountedReason| self.decisions.get(reason).filter(|decision| decision.count > 0).cloned();
        let decisions = UncountedReason::ALL.iter().filter_map(decision).collect();
        Ledger { entries, decisions, names: self.names.list, sources: self.sources }
    }
}

impl LedgerEntry {
    fn count(&mut self, kind: RowKind) {
        match kind {
            RowKind::Own | RowKind::Difference | RowKind::Run | RowKind::Cost | RowKind::Search => self.own += 1,
            RowKind::Replayed => self.replayed += 1,
            RowKind::Forwarded => self.passed += 1,
        }
    }
}

impl Ledger {
    /// The text of a name in a row.
    pub fn name(&self, name: Option<Name>) -> Option<&str> {
        self.names.get(name?.index()).map(String::as_str)
    }

    /// The sum of all calls, and of the costs that their sources state. It omits a counter that is 0 unless `stated` has it.
    pub fn total(&self, stated: &Usage) -> Usage {
        let tokens = self.entries.iter().fold(Tokens::default(), |total, entry| total.plus(&entry.row.tokens));
        let counter = |number: u64, stated: Option<u64>| Some(number).filter(|_| number > 0 || stated.is_some());
        let costs = self.entries.iter().filter_map(|entry| entry.row.stated_cost);
        Usage {
            input: counter(tokens.input, stated.input),
            output: counter(tokens.output, stated.output),
            cache_read: counter(tokens.cache_read, stated.cache_read),
            cache_write: counter(tokens.cache_write, stated.cache_write),
            reasoning: counter(tokens.reasoning, stated.reasoning),
            cost: costs.reduce(|one, other| one + other).and_then(Dollars::of),
            ..Usage::default()
        }
    }

    /// The path of a source.
    pub fn source(&self, source: u32) -> &str {
        usize::try_from(source).ok().and_then(|at| self.sources.get(at)).map_or("", String::as_str)
    }
}
