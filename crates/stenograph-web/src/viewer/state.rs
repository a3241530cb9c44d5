//! What all requests share: the store, the prices, and small caches that a new commit of the index empties. Every cache has a
//! limit, because a server runs for weeks.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use stenograph::contents::{Contents, ContentsBuilder};
use stenograph::ledger::{Prices, UsageReport};
use stenograph::query::{Query, Today};
use stenograph::status::Patience;
use stenograph_store::discover::Places;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::{Catalogue, IndexedSession, SourceRow};
use stenograph_store::runs::{self, Look, RunLook};
use stenograph_store::session_events::SessionEvents;
use stenograph_store::sessions::{SessionOrder, ShortNames};
use tokio::sync::broadcast;

use super::ViewerNews;
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
    listing: Mutex<Option<Arc<Listing>>>,
    contents: Mutex<Recent<ContentsKey, Arc<Contents>>>,
    reports: Mutex<Recent<(u64, String), Arc<UsageReport>>>,
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
    ) -> Viewer {
        let (contents, reports) = (Mutex::new(Recent(VecDeque::new())), Mutex::new(Recent(VecDeque::new())));
        Viewer { store, prices, zone, root, places, news, listing: Mutex::new(None), contents, reports }
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
        found.retain(|session| session.name.eq_ignore_ascii_case(name));
        if let Some(root) = &self.root {
            let inside = catalogue.sessions_below(root)?;
            found.retain(|session| inside.contains(&session.id));
        }
        let session = found.into_iter().max_by_key(|session| (session.ended, session.id)).ok_or_else(unknown)?;
        let sources = catalogue.sources_of(session.id)?;
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

    /// The contents of a conversation. A long one is read once, and again only after it has changed.
    pub fn contents(&self, events: &SessionEvents) -> Result<Arc<Contents>, AnswerProblem> {
        let key = ContentsKey { files: events.files().into_iter().map(stamp).collect() };
        if let Some(contents) = lock(&self.contents).get(&key) {
            return Ok(contents);
        }
        let mut contents = ContentsBuilder::default();
        events.all(&self.store, &mut |number, event| contents.add(number, event))?;
        let contents = Arc::new(contents.finish());
        lock(&self.contents).put(key, Arc::clone(&contents));
        Ok(contents)
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
        let report = Arc::new(count()?);
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
