//! What all requests share: the store, the prices, and small caches that a new commit of the index empties. Every cache has a
//! limit, because a server runs for weeks.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use stenograph::compare::Comparison;
use stenograph::contents::Contents;
use stenograph::ledger::{self, By, LedgerDecision, Prices, UsageQuery, UsageReport};
use stenograph::query::{Query, Today};
use stenograph::status::Patience;
use stenograph_store::discover::Places;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::{Catalogue, IndexedSession, SessionId, SourceRow};
use stenograph_store::runs::{self, Look, RunLook};
use stenograph_store::session_events::SessionEvents;
use stenograph_store::sessions::{SessionCost, SessionOrder, ShortNames};
use stenograph_store::usage::session_ledger;
use tokio::sync::broadcast;

use super::ViewerNews;
use super::pages::AgentLane;
use super::redaction::PageRedaction;
use super::trouble::AnswerProblem;

/// How many tables of contents and reports are kept. A reader goes back and forth between a few sessions.
const KEPT_MAX: usize = 16;

/// Runs whose last event is older are not shown.
const RUNS_WITHIN_MS: i64 = 24 * 60 * 60 * 1000;

/// The state of the viewer.
pub struct Viewer {
    pub store: Store,
    pub prices: Prices,
    pub zone: TimeZone,
    /// Only sessions below this folder are shown.
    pub root: Option<PathBuf>,
    /// Where agents write.
    pub places: Places,
    pub news: broadcast::Sender<ViewerNews>,
    pub redaction: Option<PageRedaction>,
    listing: Mutex<Option<Arc<Listing>>>,
    contents: Mutex<Recent<ContentsKey, Arc<Contents>>>,
    /// What each session took, by its number, since this commit of the index.
    costs: Mutex<(u64, HashMap<SessionId, SessionCost>)>,
    usages: Mutex<Recent<(u64, SessionId), Arc<ExplainedUsage>>>,
    reports: Mutex<Recent<(u64, String), Arc<UsageReport>>>,
    lanes: Mutex<Recent<Vec<ContentsKey>, Arc<Vec<AgentLane>>>>,
    /// The comparison that was asked for last: a reader goes through its pages.
    comparison: Mutex<Option<([ContentsKey; 2], Arc<Comparison>)>>,
}

/// The model calls of a session, by model.
pub struct ExplainedUsage {
    pub report: UsageReport,
    /// What was not counted, or counted once.
    pub decisions: Vec<LedgerDecision>,
}

/// All sessions, newest first, and their short names.
pub struct Listing {
    commits: u64,
    pub sessions: Vec<IndexedSession>,
    pub short_names: ShortNames,
}

/// What a table of contents was made from: a file that grows has a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentsKey {
    files: Vec<(PathBuf, u64, i64)>,
    /// Which secrets are masked in it.
    masks: u64,
}

/// The values that were asked for last.
struct Recent<K, V>(VecDeque<(K, V)>);

impl<K: PartialEq, V: Clone> Recent<K, V> {
    fn get(&mut self, key: &K) -> Option<V> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        let found = self.0.remove(at)?;
        let value = found.1.clone();
        self.0.push_front(found);
        Some(value)
    }

    fn put(&mut self, key: K, value: V) {
        self.0.push_front((key, value));
        self.0.truncate(KEPT_MAX);
    }
}

/// A session that a request names.
pub struct NamedSession {
    pub catalogue: Catalogue,
    pub session: IndexedSession,
    pub sources: Vec<SourceRow>,
}

impl Viewer {
    pub fn new(
        store: Store,
        prices: Prices,
        zone: TimeZone,
        root: Option<PathBuf>,
        places: Places,
        news: broadcast::Sender<ViewerNews>,
        redaction: Option<PageRedaction>,
    ) -> Viewer {
        let (contents, reports) = (Mutex::new(Recent(VecDeque::new())), Mutex::new(Recent(VecDeque::new())));
        let lanes = Mutex::new(Recent(VecDeque::new()));
        Viewer {
            store,
            prices,
            zone,
            root,
            places,
            news,
            redaction,
            listing: Mutex::new(None),
            contents,
            costs: Mutex::default(),
            usages: Mutex::new(Recent(VecDeque::new())),
            reports,
            lanes,
            comparison: Mutex::new(None),
        }
    }

    /// All sessions. They are read again only after the index has changed.
    pub fn listing(&self) -> Result<Arc<Listing>, AnswerProblem> {
        let catalogue = self.store.catalogue()?;
        let commits = catalogue.commits()?;
        if let Some(listing) = lock(&self.listing).as_ref().filter(|listing| listing.commits == commits) {
            return Ok(Arc::clone(listing));
        }
        let mut sessions = catalogue.sessions()?;
        if let Some(root) = &self.root {
            let inside = catalogue.sessions_below(root)?;
            sessions.retain(|session| inside.contains(&session.id));
        }
        self.learn_secrets(|| catalogue.sources())?;
        sessions.iter_mut().for_each(|session| self.mask_session(session));
        SessionOrder::Newest.sort(&mut sessions);
        let listing = Arc::new(Listing { commits, sessions, short_names: ShortNames::of(&catalogue)? });
        *lock(&self.listing) = Some(Arc::clone(&listing));
        Ok(listing)
    }

    /// Reads the sessions again next time, because their marks have changed.
    pub fn forget_listing(&self) {
        *lock(&self.listing) = None;
    }

    /// The session with this name. If several have it, the newest one is meant.
    pub fn session(&self, name: &str) -> Result<NamedSession, AnswerProblem> {
        let unknown = || {
            AnswerProblem::not_found(format!("no session has the name {name}")).hint("go back to the list of sessions")
        };
        let catalogue = self.store.catalogue()?;
        let mut found = catalogue.sessions_named(name)?;
        if let Some(root) = &self.root {
            let inside = catalogue.sessions_below(root)?;
            found.retain(|session| inside.contains(&session.id));
        }
        // The beginning of a name is enough if only one session has it.
        let is_named = |session: &IndexedSession| session.name.eq_ignore_ascii_case(name);
        let is_one = found.windows(2).all(|two| matches!(two, [one, other] if one.name == other.name));
        if !is_one || found.iter().any(is_named) {
            found.retain(is_named);
        }
        let mut session = found.into_iter().max_by_key(|session| (session.ended, session.id)).ok_or_else(unknown)?;
        let mut sources = catalogue.sources_of(session.id)?;
        self.learn_secrets(|| Ok(sources.clone()))?;
        self.mask_session(&mut session);
        sources.iter_mut().for_each(|source| self.mask_source(source));
        Ok(NamedSession { catalogue, session, sources })
    }

    /// A query of the user.
    pub fn query(&self, text: &str) -> Result<Query, AnswerProblem> {
        let today = Today { now: Timestamp::now(), zone: self.zone.clone() };
        Query::parse(text, &today)
            .map_err(|mistake| AnswerProblem::bad(format!("invalid query: {mistake}")).hint(mistake.hint))
    }

    /// The agents of the last day.
    pub fn runs(&self) -> Vec<RunLook> {
        let saved = self.store.saved_statuses();
        let now_ms = Timestamp::now().as_millisecond();
        let since_ms = now_ms.saturating_sub(RUNS_WITHIN_MS);
        let look = Look { format: None, saved: &saved, now_ms, since_ms, patience: Patience::default() };
        runs::look_around(runs::transcripts(&self.places), look)
    }

    fn key(&self, events: &SessionEvents) -> ContentsKey {
        ContentsKey { files: events.files().into_iter().map(stamp).collect(), masks: self.masks_version() }
    }

    /// The contents of a conversation. A long one is read once, and again only after it has changed.
    pub fn contents(&self, events: &SessionEvents) -> Result<Arc<Contents>, AnswerProblem> {
        let key = self.key(events);
        if let Some(contents) = lock(&self.contents).get(&key) {
            return Ok(contents);
        }
        let contents = Arc::new(events.contents(&self.store)?);
        lock(&self.contents).put(key, Arc::clone(&contents));
        Ok(contents)
    }

    /// The lanes of the agents with these conversations. `draw` reads them, again only after one has changed.
    pub fn lanes(
        &self,
        conversations: &[&SessionEvents],
        draw: impl FnOnce() -> Result<Vec<AgentLane>, AnswerProblem>,
    ) -> Result<Arc<Vec<AgentLane>>, AnswerProblem> {
        let key: Vec<ContentsKey> = conversations.iter().map(|events| self.key(events)).collect();
        if let Some(lanes) = lock(&self.lanes).get(&key) {
            return Ok(lanes);
        }
        let lanes = Arc::new(draw()?);
        lock(&self.lanes).put(key, Arc::clone(&lanes));
        Ok(lanes)
    }

    /// The comparison of two conversations, if it was the last one and neither has changed since; else `compare` makes it.
    pub fn comparison(
        &self,
        a: &SessionEvents,
        b: &SessionEvents,
        compare: impl FnOnce() -> Result<Comparison, AnswerProblem>,
    ) -> Result<Arc<Comparison>, AnswerProblem> {
        let key = [a, b].map(|events| self.key(events));
        if let Some((_, found)) = lock(&self.comparison).as_ref().filter(|(known, _)| *known == key) {
            return Ok(Arc::clone(found));
        }
        let found = Arc::new(compare()?);
        *lock(&self.comparison) = Some((key, Arc::clone(&found)));
        Ok(found)
    }

    /// What a session took. A long session has hundreds of thousands of calls, so they are summed once.
    pub fn cost(&self, session: &IndexedSession, catalogue: &Catalogue) -> Result<SessionCost, AnswerProblem> {
        let commits = catalogue.commits()?;
        {
            let mut costs = lock(&self.costs);
            if costs.0 != commits {
                *costs = (commits, HashMap::new());
            }
            if let Some(cost) = costs.1.get(&session.id) {
                return Ok(*cost);
            }
        }
        let (_, cost) = self.count_usage(session, catalogue, commits)?;
        Ok(cost)
    }

    /// The model calls of a session.
    pub fn usage(&self, session: &IndexedSession, catalogue: &Catalogue) -> Result<Arc<ExplainedUsage>, AnswerProblem> {
        let commits = catalogue.commits()?;
        if let Some(usage) = lock(&self.usages).get(&(commits, session.id)) {
            return Ok(usage);
        }
        Ok(self.count_usage(session, catalogue, commits)?.0)
    }

    fn count_usage(
        &self,
        session: &IndexedSession,
        catalogue: &Catalogue,
        commits: u64,
    ) -> Result<(Arc<ExplainedUsage>, SessionCost), AnswerProblem> {
        let ledger = session_ledger(catalogue, session, |_| true)?;
        let mut question = UsageQuery {
            by: By::Model,
            then_by: None,
            zone: TimeZone::UTC,
            prices: &self.prices,
            project: &mut |_, _| String::new(),
            keep: &mut |_| true,
        };
        let report = ledger::report(&ledger, &mut question);
        let cost = SessionCost::of_total(&report.total);
        let usage = Arc::new(ExplainedUsage { report, decisions: ledger.decisions });
        lock(&self.usages).put((commits, session.id), Arc::clone(&usage));
        let mut costs = lock(&self.costs);
        if costs.0 == commits {
            costs.1.insert(session.id, cost);
        }
        Ok((usage, cost))
    }

    /// The report for a question, if it was asked since the index changed; else `count` makes it.
    pub fn report(
        &self,
        question: String,
        count: impl FnOnce() -> Result<UsageReport, AnswerProblem>,
    ) -> Result<Arc<UsageReport>, AnswerProblem> {
        let key = (self.store.catalogue()?.commits()?, question);
        if let Some(report) = lock(&self.reports).get(&key) {
            return Ok(report);
        }
        let mut report = count()?;
        let models = report.unpriced.iter_mut().filter_map(|unpriced| unpriced.model.as_mut());
        for name in report.groups.iter_mut().filter_map(|group| group.key.as_mut()).chain(models) {
            *name = self.masked(name).into_owned();
        }
        let report = Arc::new(report);
        lock(&self.reports).put(key, Arc::clone(&report));
        Ok(report)
    }
}

/// The size and the time of a file; zero if it is gone.
fn stamp(path: PathBuf) -> (PathBuf, u64, i64) {
    let stat = stenograph_store::discover::Stat::of(&path).ok();
    let (size, time) = stat.map_or((0, 0), |stat| (stat.size, stat.modified_ns));
    (path, size, time)
}

/// Locks a cache. A panic leaves it valid: it changes only in single steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
