//! ccusage 20: a repeated total counts nothing; otherwise the tokens of the last call count. A fork drops the calls that repeat its
//! parent, and equal events count once over all files.

use std::collections::{HashMap, HashSet};

use super::{Counters, Place, RolloutLine, rollout_line, since};
use crate::formats::codex::NAME;
use crate::formats::peers::{PeerCounter, PeerRule};
use crate::json::Object;
use crate::ledger::{Name, PeerRows, Tokens};

/// The longest pause between the replayed calls that open a fork whose parent file is missing.
const REPLAY_GAP_MS: i64 = 1000;

/// The folders of active and archived rollouts. A rollout in both is read from the first.
const FOLDERS: [&str; 2] = ["/sessions/", "/archived_sessions/"];

/// Counts as ccusage 20 does.
#[derive(Debug, Default)]
pub(super) struct Ccusage {
    counted: PeerRows,
    threads: Vec<Thread>,
}

/// A rollout.
#[derive(Debug, Default)]
struct Thread {
    path: String,
    place: Place,
    has_meta: bool,
    id: Option<String>,
    parent: Option<String>,
    /// When its first line was written.
    began: Option<i64>,
    total: Option<Counters>,
    /// The times of the first two events with numbers; a short gap between them marks a replay.
    opening: Vec<Option<i64>>,
    calls: Vec<Call>,
}

/// A call that an event reports.
#[derive(Clone, Debug)]
struct Call {
    /// A hash of the timestamp as spelled: another spelling is another event.
    spelled: Option<u128>,
    time: Option<i64>,
    model: Option<Name>,
    taken: Counters,
    line: u64,
}

impl PeerCounter for Ccusage {
    fn source(&mut self, path: &str) {
        let source = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        let place = Place { source, ..Place::default() };
        self.threads.push(Thread { path: path.to_owned(), place, ..Thread::default() });
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        let Some(thread) = self.threads.last_mut() else { return };
        if number == 1 {
            let first = std::str::from_utf8(line).ok().and_then(Object::parse);
            let time = first.and_then(|first| first.peek_str("timestamp"));
            thread.began = time.and_then(|time| PeerRule::Ccusage20.moment(&time));
        }
        match rollout_line(line) {
            None => {}
            Some(RolloutLine::Meta(meta)) => thread.meta(&meta, &mut self.counted),
            Some(RolloutLine::Model(model)) => thread.place.model = Some(self.counted.name(&model)),
            Some(RolloutLine::Count { time, total, last }) => {
                let moment = time.as_deref().and_then(|time| PeerRule::Ccusage20.moment(time));
                let spelled = time.map(|time| xxhash_rust::xxh3::xxh3_128(time.as_bytes()));
                thread.count(total, last, |taken, model| Call { spelled, time: moment, model, taken, line: number });
            }
        }
    }

    fn finish(mut self: Box<Self>) -> PeerRows {
        let mut threads = std::mem::take(&mut self.threads);
        drop_put_away(&mut threads);
        let mut by_id: HashMap<&str, usize> = HashMap::new();
        for (at, thread) in threads.iter().enumerate() {
            if let Some(id) = &thread.id {
                by_id.entry(id).or_insert(at);
            }
        }
        let mut seen = HashSet::new();
        for (at, thread) in threads.iter().enumerate() {
            let parent = thread.parent.as_deref().map(|parent| by_id.get(parent).filter(|found| **found != at));
            let replayed = parent.map_or(0, |parent| thread.replayed(parent.and_then(|at| threads.get(*at))));
            for call in thread.calls.iter().skip(replayed) {
                if seen.insert((call.spelled, call.model, call.taken)) {
                    let mut row = self.counted.row(NAME, call.line, call.time, tokens(call.taken));
                    (row.session, row.cwd, row.model) = (thread.place.session, thread.place.cwd, call.model);
                    self.counted.keep(thread.place.source, row);
                }
            }
        }
        self.counted
    }
}

/// The input counter includes cache reads and cache writes; the ledger keeps them apart.
fn tokens([input, cached, written, output, reasoning]: Counters) -> Tokens {
    Tokens {
        input: input.saturating_sub(cached).saturating_sub(written),
        output,
        cache_read: cached,
        cache_write: written,
        reasoning,
        ..Tokens::default()
    }
}

/// Leaves out what was put away and is still where it was.
fn drop_put_away(threads: &mut Vec<Thread>) {
    let [current, away] = FOLDERS;
    let place = |path: &str, folder: &str| {
        let (home, name) = path.rsplit_once(folder)?;
        Some((home.to_owned(), name.to_owned()))
    };
    let there: HashSet<(String, String)> = threads.iter().filter_map(|thread| place(&thread.path, current)).collect();
    threads.retain(|thread| place(&thread.path, away).is_none_or(|place| !there.contains(&place)));
}

impl Thread {
    /// Takes the first header, which is the rollout's own; later ones belong to its parents.
    fn meta(&mut self, meta: &Object<'_>, counted: &mut PeerRows) {
        if std::mem::replace(&mut self.has_meta, true) {
            return;
        }
        let text = |object: &Object<'_>, key: &str| object.peek_str(key).map(std::borrow::Cow::into_owned);
        self.id = text(meta, "id");
        self.place.session = self.id.as_deref().map(|id| counted.name(id));
        self.place.cwd = meta.peek_str("cwd").map(|cwd| counted.name(&cwd));
        let spawn = || meta.peek_object("source")?.peek_object("subagent")?.peek_object("thread_spawn");
        let forked = text(meta, "forked_from_id").filter(|parent| !parent.is_empty());
        let spawned = || text(&spawn()?, "parent_thread_id").filter(|parent| !parent.is_empty());
        self.parent = forked.or_else(spawned);
    }

    fn count(
        &mut self,
        total: Option<Counters>,
        last: Option<Counters>,
        call: impl FnOnce(Counters, Option<Name>) -> Call,
    ) {
        let before = self.total;
        let is_repeated = total.is_some() && total == before;
        let difference = || total.map(|total| since(total, before.unwrap_or_default()));
        let taken = last.or_else(difference);
        let mut call = call(taken.unwrap_or_default(), self.place.model);
        if taken.is_some() && self.opening.len() < 2 {
            self.opening.push(call.time);
        }
        self.total = total.or(before);
        if is_repeated || call.taken.iter().all(|counter| *counter == 0) {
            return;
        }
        let [input, cached, written, ..] = &mut call.taken;
        *cached = (*cached).min(*input);
        *written = (*written).min(*input - *cached);
        self.calls.push(call);
    }

    /// The number of opening calls that repeat the parent: those that are equal, otherwise those that follow each other without a pause.
    fn replayed(&self, parent: Option<&Thread>) -> usize {
        let is_before = |call: &&Call| match (call.time, self.began) {
            (Some(time), Some(began)) => time <= began,
            (None, _) | (_, None) => true,
        };
        let of_parent = parent.into_iter().flat_map(|parent| parent.calls.iter().take_while(is_before));
        let equal = self.calls.iter().zip(of_parent).take_while(|(own, other)| own.taken == other.taken).count();
        let is_close = |one: Option<i64>, other: Option<i64>| {
            let gap = one.zip(other).map(|(one, other)| other - one);
            gap.is_some_and(|gap| (0..=REPLAY_GAP_MS).contains(&gap))
        };
        match self.opening.as_slice() {
            [first, second] if equal == 0 && is_close(*first, *second) => {
                let mut last = *first;
                let at_one_go = |call: &&Call| is_close(std::mem::replace(&mut last, call.time), call.time);
                self.calls.iter().take_while(at_one_go).count()
            }
            _ => equal,
        }
    }
}
