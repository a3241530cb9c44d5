//! Uses the store in process, as a server or an editor would: the index stays open, and the caller names the changed file.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use stenograph::query::{Query, Today};
use stenograph_store::discover::Places;
pub use stenograph_store::index::search::Order;
use stenograph_store::index::search::{SearchRequest, Searcher};
use stenograph_store::index::{Archiving, IndexPlan, IndexScope, NoObserver, Store, run};

use crate::Failure;

/// How often each query runs.
const ASKS: usize = 40;

/// The number of hits to return.
const LIMIT: usize = 20;

const MEMORY: usize = 256 << 20;

/// An index that stays open.
pub struct OpenIndex {
    searcher: Searcher,
    today: Today,
}

impl OpenIndex {
    /// Opens the index in a store.
    pub fn open(home: &Path) -> Result<OpenIndex, Failure> {
        let today = Today { now: Timestamp::now(), zone: TimeZone::UTC };
        Ok(OpenIndex { searcher: Store::new(home).searcher()?, today })
    }

    /// Runs a query repeatedly, and returns each duration including parsing.
    pub fn ask(&mut self, text: &str, order: Order) -> Result<Vec<Duration>, Failure> {
        let mut times = Vec::with_capacity(ASKS);
        for _ in 0..ASKS {
            let start = Instant::now();
            self.hits(text, order)?;
            times.push(start.elapsed());
        }
        Ok(times)
    }

    fn hits(&mut self, text: &str, order: Order) -> Result<usize, Failure> {
        let query = Query::parse(text, &self.today).map_err(|mistake| format!("{text}: {mistake}"))?;
        let request = SearchRequest { query: &query, order, offset: 0, limit: LIMIT, within: None };
        Ok(self.searcher.find(&request)?.hits.len())
    }
}

/// Whether a search finds a word in an index that is opened now.
pub fn is_found(home: &Path, word: &str) -> Result<bool, Failure> {
    Ok(OpenIndex::open(home)?.hits(word, Order::Best)? > 0)
}

/// Appends lines one at a time, and returns how long it took to index and find each.
pub fn appended(
    home: &Path,
    tree: &Path,
    session: &Path,
    rounds: usize,
    write: &mut dyn FnMut(u64) -> io::Result<String>,
) -> Result<Vec<Duration>, Failure> {
    let (store, places) = (Store::new(home), Places::below(tree.to_owned()));
    let mut times = Vec::with_capacity(rounds);
    for number in 0..rounds as u64 {
        let word = write(number + 1000)?;
        let start = Instant::now();
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        let plan = IndexPlan {
            places: &places,
            scope: IndexScope::Files(vec![session.to_owned()]),
            archiving: Archiving::Yes,
            memory: MEMORY,
            threads: 2,
            now: i64::try_from(now)?,
        };
        run(&store, &plan, &mut NoObserver)?;
        if !is_found(home, &word)? {
            return Err(format!("{word} was added and is not found").into());
        }
        times.push(start.elapsed());
    }
    Ok(times)
}
