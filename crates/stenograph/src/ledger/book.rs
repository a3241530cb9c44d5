//! The pages of all sources as one ledger: each call once, in whatever order the pages come, and an account of what was joined and
//! what was left out.

use std::collections::HashMap;

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::Tallied;
use super::page::{How, Name, Names, Page, Reason, Row};

/// How many examples of a decision are kept.
const EXAMPLES_MAX: usize = 5;

/// A ledger in the making.
#[derive(Debug, Default)]
pub struct Book {
    names: Names,
    sources: Vec<String>,
    entries: Vec<Entry>,
    by_key: HashMap<u128, usize, Xxh3DefaultBuilder>,
    decisions: HashMap<Reason, Decision>,
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
    /// The source that tells best whose it is.
    pub source: u32,
    /// When that source tells of it.
    told_at: i64,
    /// The source that was the last to tell of it.
    last: u32,
    /// How many sources tell of it, by how.
    own: u32,
    replayed: u32,
    passed: u32,
}

/// Tellings that are no call of their own, for one reason.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Why.
    pub reason: Reason,
    /// How many.
    pub count: u64,
    /// Where some of them stand: source and line.
    pub examples: Vec<(u32, u64)>,
}

impl Book {
    /// Takes in the page of a source. Pages of one source follow each other. Rows that name no session are of `session`.
    pub fn add(&mut self, source: &str, session: Option<&str>, page: Page) {
        let is_next = self.sources.last().is_some_and(|last| last == source);
        if !is_next {
            self.sources.push(source.to_owned());
        }
        let number = u32::try_from(self.sources.len() - 1).unwrap_or(u32::MAX);
        let names: Vec<Name> = page.names.iter().map(|name| self.names.number(name)).collect();
        let session = session.map(|session| self.names.number(session));
        for row in page.rows {
            let mut row = row.renamed(&names);
            row.session = row.session.or(session);
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
        let names: Vec<Name> = tallied.names.list.iter().map(|name| self.names.number(name)).collect();
        for (source, row) in tallied.rows {
            let row = Row { key: self.entries.len() as u128, ..row.renamed(&names) };
            self.put(row, base.saturating_add(source));
        }
    }

    fn put(&mut self, row: Row, source: u32) {
        let told_at = row.time.unwrap_or(i64::MAX);
        let Some(entry) = self.by_key.get(&row.key).and_then(|at| self.entries.get_mut(*at)) else {
            self.by_key.insert(row.key, self.entries.len());
            let mut entry = Entry { row, source, told_at, last: source, own: 0, replayed: 0, passed: 0 };
            entry.tell(entry.row.how);
            self.entries.push(entry);
            return;
        };
        let is_same = entry.last == source;
        let place = (source, row.line);
        let (ours, theirs) = ((row.how, told_at), (entry.row.how, entry.told_at));
        let name = |source: u32| usize::try_from(source).ok().and_then(|at| self.sources.get(at));
        if ours < theirs || ours == theirs && name(source) < name(entry.source) {
            entry.row.belong(&row);
            (entry.source, entry.told_at) = (source, told_at);
        }
        entry.row.join(&row);
        entry.last = source;
        let reason = match row.how {
            How::Replayed => Reason::Replayed,
            How::Passed => Reason::PassedOn,
            How::Own | How::Difference | How::Run | How::Cost => Reason::Copied,
        };
        if is_same {
            self.decide(Reason::Streamed, 1, std::iter::once(place));
        } else {
            entry.tell(row.how);
            // How many there are of each is only known when all are there.
            self.decide(reason, 0, std::iter::once(place));
        }
    }

    fn decide(&mut self, reason: Reason, count: u64, places: impl Iterator<Item = (u32, u64)>) {
        let decision = self.decisions.entry(reason).or_insert(Decision { reason, count: 0, examples: Vec::new() });
        decision.count += count;
        let room = EXAMPLES_MAX.saturating_sub(decision.examples.len());
        decision.examples.extend(places.take(room));
    }

    /// The ledger, when all pages are in it.
    pub fn close(mut self) -> Ledger {
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
        let mut entries = self.entries;
        entries.sort_by_key(|entry| (entry.row.time, entry.row.key));
        let decision = |reason: &Reason| self.decisions.get(reason).filter(|decision| decision.count > 0).cloned();
        let decisions = Reason::ALL.iter().filter_map(decision).collect();
        Ledger { entries, decisions, names: self.names.list, sources: self.sources }
    }
}

impl Entry {
    fn tell(&mut self, how: How) {
        match how {
            How::Own | How::Difference | How::Run | How::Cost => self.own += 1,
            How::Replayed => self.replayed += 1,
            How::Passed => self.passed += 1,
        }
    }
}

impl Ledger {
    /// The words of a name in a row.
    pub fn name(&self, name: Option<Name>) -> Option<&str> {
        self.names.get(usize::try_from(name?).ok()?).map(String::as_str)
    }

    /// What a source is called.
    pub fn source(&self, source: u32) -> &str {
        usize::try_from(source).ok().and_then(|at| self.sources.get(at)).map_or("", String::as_str)
    }
}
