//! Builds one ledger from the usage of all sources: each call once, in any order of sources, with a list of what was merged and
//! excluded.

use std::collections::{HashMap, HashSet};

use hashbrown::HashTable;

use super::conversions::Origin;
use super::row::{How, Row};
use super::source_usage::{Name, Names, Reason, SourceUsage};
use super::{Tallied, Tokens, conversions, runs};
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
    entries: Vec<Entry>,
    by_key: ByKey,
    /// The keys of replayed calls, and their keys in the session they come from.
    origins: HashMap<u128, u128>,
    /// Whose they may be besides: keys that count where there is such a call.
    kin: HashMap<u128, Vec<u128>>,
    decisions: HashMap<Reason, Decision>,
}

/// The indexes of entries by key. It stores only indexes, because the entries have the keys, and there may be millions.
#[derive(Debug, Default)]
struct ByKey(HashTable<u32>);

impl ByKey {
    fn place(&self, key: u128, entries: &[Entry]) -> Option<usize> {
        let is_it = |place: &u32| key_at(*place, entries) == Some(key);
        self.0.find(hashed(key), is_it).and_then(|place| usize::try_from(*place).ok())
    }

    /// Adds the last entry, whose key no other one has.
    fn add_last(&mut self, entries: &[Entry]) {
        let Some(last) = entries.last() else { return };
        // Nobody has the memory for so many entries that their places are no such numbers.
        let place = u32::try_from(entries.len() - 1).unwrap_or(u32::MAX);
        let hash_of = |place: &u32| key_at(*place, entries).map_or(0, hashed);
        self.0.insert_unique(hashed(last.row.key), place, hash_of);
    }
}

fn key_at(place: u32, entries: &[Entry]) -> Option<u128> {
    Some(entries.get(usize::try_from(place).ok()?)?.row.key)
}

/// Keys are already hashes, except for rules that number their rows.
fn hashed(key: u128) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&key.to_le_bytes())
}

/// Every call, once.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The calls, in the order of time; those without a time come first.
    pub entries: Vec<Entry>,
    /// What was joined and what was left out.
    pub decisions: Vec<Decision>,
    names: Vec<String>,
    sources: Vec<String>,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What is known of it. Its names are those of the ledger.
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
pub struct Decision {
    /// Why.
    pub reason: Reason,
    /// How many.
    pub count: u64,
    /// The source and line of some of them.
    pub examples: Vec<(u32, u64)>,
}

impl LedgerBuilder {
    /// Takes in the page of a source, which was last written at that time. Pages of one source follow each other. Rows that name no
    /// session are of `session`.
    pub fn add(&mut self, source: &str, session: Option<&str>, written: i64, page: SourceUsage) {
        let is_next = self.sources.last().is_some_and(|last| last == source);
        if !is_next {
            self.sources.push(source.to_owned());
            self.written.push(Some(written));
        }
        let number = u32::try_from(self.sources.len() - 1).unwrap_or(u32::MAX);
        let names: Vec<Name> = page.names.iter().map(|name| self.names.number(name)).collect();
        let session = session.map(|session| self.names.number(session));
        for (own, origin) in &page.origins {
            let known = self.origins.entry(*own).or_insert(*origin);
            *known = *origin.min(known);
        }
        for (key, older) in &page.kin {
            let known = self.kin.entry(*key).or_default();
            if let Err(at) = known.binary_search(older) {
                known.insert(at, *older);
            }
        }
        for row in page.rows {
            let mut row = row.renamed(&names);
            if row.session.is_none() {
                self.unnamed.insert(number);
                row.session = session;
            }
            self.put(row, number);
        }
        for aside in &page.asides {
            self.decide(aside.reason, aside.count, aside.lines.iter().map(|line| (number, *line)));
        }
    }

    /// Takes in what a rule counted in these sources. Every row is a call of its own: the rule has joined what it joins.
    pub fn lay(&mut self, sources: &[String], tallied: Tallied) {
        let base = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        self.sources.extend_from_slice(sources);
        self.written.resize(self.sources.len(), None);
        let names: Vec<Name> = tallied.names.list.iter().map(|name| self.names.number(name)).collect();
        for (source, row) in tallied.rows {
            let row = Row { key: self.entries.len() as u128, ..row.renamed(&names) };
            self.put(row, base.saturating_add(source));
        }
    }

    fn put(&mut self, row: Row, source: u32) {
        let mut entry = Entry { row, source, last: source, own: 0, replayed: 0, passed: 0 };
        entry.tell(entry.row.how);
        self.enter(entry);
    }

    /// Enters a call, or what is told of it into the one that is there.
    fn enter(&mut self, mut new: Entry) {
        let known = self.by_key.place(new.row.key, &self.entries);
        let Some(entry) = known.and_then(|place| self.entries.get_mut(place)) else {
            self.entries.push(new);
            return self.by_key.add_last(&self.entries);
        };
        let (is_same, latest) = (entry.last == new.last, new.last);
        let mut tellings = [entry.own, entry.replayed, entry.passed];
        if !is_same {
            let more = [new.own, new.replayed, new.passed];
            tellings.iter_mut().zip(more).for_each(|(count, more)| *count = count.saturating_add(more));
        }
        let name = |source: u32| usize::try_from(source).ok().and_then(|at| self.sources.get(at));
        let is_tie = !entry.row.tells_better_than(&new.row) && !new.row.tells_better_than(&entry.row);
        if new.row.tells_better_than(&entry.row) || is_tie && name(new.source) < name(entry.source) {
            std::mem::swap(entry, &mut new);
        }
        entry.row.join(&new.row);
        ([entry.own, entry.replayed, entry.passed], entry.last) = (tellings, latest);
        let place = (new.source, new.row.line);
        if is_same {
            // A row without records only adds tools to an answer in an earlier part.
            let count = u64::from(new.row.records > 0);
            return self.decide(Reason::Streamed, count, std::iter::once(place).filter(|_| count > 0));
        }
        let reason = match new.row.how {
            How::Replayed => Reason::Replayed,
            How::Passed => Reason::PassedOn,
            How::Own | How::Difference | How::Run | How::Cost | How::Search => Reason::Copied,
        };
        // How many there are of each is only known when all are there.
        self.decide(reason, 0, std::iter::once(place));
    }

    /// A fork of a fork takes all that it replays for the fork's own; what the fork itself only replayed is its parent's. Where the
    /// fork's own source is gone, what one of its older sessions tells of was that one's.
    fn trace_back(&mut self) {
        if self.origins.is_empty() {
            return;
        }
        let entry = |key: &u128| self.entries.get(self.by_key.place(*key, &self.entries)?);
        // What a session's own source tells as its own was nobody's before, though an older total may happen to be the same.
        let is_own = |key: &u128| entry(key).is_some_and(|entry| entry.own > 0);
        let kin = |key: &u128| self.kin.get(key).filter(|_| !is_own(key));
        let older = |key: &u128| kin(key)?.iter().find(|older| entry(older).is_some());
        let origin = |key: &u128| self.origins.get(key).or_else(|| older(key)).copied();
        let trace = |entry: &Entry| {
            let mut key = origin(&entry.row.key)?;
            for _ in 0..FORKS_MAX {
                let Some(origin) = origin(&key) else { break };
                key = origin;
            }
            Some(key)
        };
        let origins: Vec<Option<u128>> = self.entries.iter().map(trace).collect();
        let mut strays = Vec::new();
        self.by_key = ByKey::default();
        for (mut entry, origin) in std::mem::take(&mut self.entries).into_iter().zip(origins) {
            match origin {
                Some(origin) => {
                    entry.row.key = origin;
                    strays.push(entry);
                }
                None => {
                    self.entries.push(entry);
                    self.by_key.add_last(&self.entries);
                }
            }
        }
        for stray in strays {
            self.enter(stray);
        }
    }

    fn decide(&mut self, reason: Reason, count: u64, places: impl Iterator<Item = (u32, u64)>) {
        let decision = self.decisions.entry(reason).or_insert(Decision { reason, count: 0, examples: Vec::new() });
        decision.count += count;
        // The examples do not depend on the order of sources: they are the first ones by path and line.
        let sources = &self.sources;
        let name = |place: &(u32, u64)| (usize::try_from(place.0).ok().and_then(|at| sources.get(at)), place.1);
        for place in places {
            let at = decision.examples.partition_point(|known| name(known) <= name(&place));
            if at < EXAMPLES_MAX {
                decision.examples.insert(at, place);
                decision.examples.truncate(EXAMPLES_MAX);
            }
        }
    }

    /// What a run took in all may be known from one source while another one, older, only has turns: those are told within it.
    fn leave_to_runs(&mut self) {
        let whose = |entry: &Entry| Some((entry.row.agent, entry.row.session?));
        let is_run = |entry: &&Entry| entry.row.how == How::Run && !entry.row.tokens.is_zero();
        let runs: HashSet<(Name, Name)> = self.entries.iter().filter(is_run).filter_map(whose).collect();
        if runs.is_empty() {
            return;
        }
        let is_within = |entry: &Entry| {
            matches!(entry.row.how, How::Own | How::Passed) && whose(entry).is_some_and(|whose| runs.contains(&whose))
        };
        let places = self.entries.iter().enumerate().filter(|(_, entry)| is_within(entry));
        let within = places.map(|(place, _)| (place, None)).collect();
        self.leave(Reason::WithinTotal, within, |entry| u64::from(entry.row.records));
    }

    /// Leaves out what a converted session repeats: calls, and totals of runs as far as calls tell of them.
    fn leave_conversions(&mut self) {
        let tellings = |entry: &Entry| u64::from(entry.own) + u64::from(entry.replayed) + u64::from(entry.passed);
        let repeated = conversions::repeated(&self.entries, &|entry| self.origin(entry));
        self.leave(Reason::Converted, repeated.into_iter().map(|place| (place, None)).collect(), tellings);
        let changed = runs::left_over(&self.entries, &|entry| self.origin(entry));
        // A run of which only the cost was asked for is set aside already.
        let tellings = |entry: &Entry| if entry.row.tokens.is_zero() { 0 } else { tellings(entry) };
        self.leave(Reason::Converted, changed, tellings);
    }

    /// What is known of the source of an entry; nothing where its calls are never another agent's calls as well.
    fn origin(&self, entry: &Entry) -> Option<Origin<'_>> {
        let at = usize::try_from(entry.source).ok()?;
        let (written, path) = (self.written.get(at).copied()??, self.sources.get(at)?.as_str());
        Some(Origin { written, path, names_session: !self.unnamed.contains(&entry.source) })
    }

    /// Takes the entries in these places out, or has what is left of them in their place.
    fn leave(&mut self, reason: Reason, mut changed: HashMap<usize, Option<Row>>, tellings: impl Fn(&Entry) -> u64) {
        if changed.is_empty() {
            return;
        }
        let (mut places, mut left) = (0.., Vec::new());
        self.entries.retain_mut(|entry| {
            let Some(row) = places.next().and_then(|place| changed.remove(&place)) else { return true };
            left.push(((entry.source, entry.row.line), tellings(entry)));
            let stays = row.is_some();
            if let Some(row) = row {
                entry.row = row;
            }
            stays
        });
        for (place, tellings) in left {
            self.decide(reason, tellings, std::iter::once(place).filter(|_| tellings > 0));
        }
    }

    /// The ledger, when all pages are in it.
    pub fn close(mut self) -> Ledger {
        self.trace_back();
        self.leave_to_runs();
        self.leave_conversions();
        let mut merged = [(Reason::Copied, 0_u64), (Reason::Replayed, 0), (Reason::PassedOn, 0)];
        for entry in &self.entries {
            // One telling is the call itself; the best one.
            let mut tellings = [entry.own, entry.replayed, entry.passed].map(u64::from);
            if let Some(best) = tellings.iter_mut().find(|count| **count > 0) {
                *best -= 1;
            }
            for ((_, count), more) in merged.iter_mut().zip(tellings) {
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
            // What cannot be shared out goes to the first ones: they stand in an order of their own.
            entry.row.tools.sort_by_key(|tool| self.names.list.get(tool.place()));
        }
        // Keys are unique, and a stable sort would take half as much memory again.
        entries.sort_unstable_by_key(|entry| (entry.row.time, entry.row.key));
        let decision = |reason: &Reason| self.decisions.get(reason).filter(|decision| decision.count > 0).cloned();
        let decisions = Reason::ALL.iter().filter_map(decision).collect();
        Ledger { entries, decisions, names: self.names.list, sources: self.sources }
    }
}

impl Entry {
    fn tell(&mut self, how: How) {
        match how {
            How::Own | How::Difference | How::Run | How::Cost | How::Search => self.own += 1,
            How::Replayed => self.replayed += 1,
            How::Passed => self.passed += 1,
        }
    }
}

impl Ledger {
    /// The text of a name in a row.
    pub fn name(&self, name: Option<Name>) -> Option<&str> {
        self.names.get(name?.place()).map(String::as_str)
    }

    /// The sum of all calls, and of the costs that their sources state. It omits a counter that is 0 unless `stated` has it.
    pub fn total(&self, stated: &Usage) -> Usage {
        let tokens = self.entries.iter().fold(Tokens::default(), |total, entry| total.plus(&entry.row.tokens));
        let counter = |number: u64, stated: Option<u64>| Some(number).filter(|_| number > 0 || stated.is_some());
        let costs = self.entries.iter().filter_map(|entry| entry.row.stated);
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
