//! Finds sessions in which the words of a query are spread over several events.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::{ShownHit, marks, shown};
use crate::Error;
use crate::index::catalogue::SessionId;
use crate::index::search::{Hit, MarkHit, Order, SearchRequest, Searcher};

/// How many hits of one word are searched for their sessions.
const HITS_MAX: usize = 200_000;

/// The sessions that contain all words of a query.
#[derive(Clone, Debug, Default)]
pub struct SessionAnswer {
    /// For each of the requested sessions in order: a hit for each word. An event with several of the words is there once.
    pub hits: Vec<ShownHit>,
    /// The number of all sessions.
    pub total: usize,
    /// The number of sessions that are shown.
    pub shown: usize,
    /// Whether `total` is exact: a word may have more hits than are searched.
    pub is_exact: bool,
}

/// Finds the sessions that contain every word of a query, in any events. Fields limit the events, as in other searches: with
/// `role:user`, each word must be in a message of the user. An excluded word must be in no event of the session. `offset` and
/// `limit` of the request count sessions.
pub fn find_across(
    searcher: &mut Searcher,
    request: &SearchRequest<'_>,
    snippet_length: usize,
) -> Result<SessionAnswer, Error> {
    let SearchRequest { query, order, offset, limit, .. } = *request;
    let parts = query.spread();
    let mut answer = SessionAnswer { is_exact: true, ..SessionAnswer::default() };
    let mut found: Option<HashMap<SessionId, FoundWords>> = None;
    for part in &parts.wanted {
        let best = best_hits(searcher, &SearchRequest { query: part, ..*request }, &mut answer.is_exact)?;
        found = Some(match found {
            None => best,
            Some(mut found) => {
                found.retain(|session, words| match best.get(session) {
                    Some(more) => {
                        words.hits.extend_from_slice(&more.hits);
                        words.marks.extend_from_slice(&more.marks);
                        true
                    }
                    None => false,
                });
                found
            }
        });
    }
    let mut found = found.unwrap_or_default();
    for part in &parts.excluded {
        let without = best_hits(searcher, &SearchRequest { query: part, ..*request }, &mut answer.is_exact)?;
        found.retain(|session, _| !without.contains_key(session));
    }
    let mut sessions: Vec<(SessionId, FoundWords)> = found.into_iter().collect();
    sessions.sort_by(|(one, words), (other, others)| words.compared(others, order).then(other.cmp(one)));
    answer.total = sessions.len();
    let (mut marks, mut hits, mut ranks) = (Vec::new(), Vec::new(), HashMap::new());
    for (session, mut words) in sessions.into_iter().skip(offset).take(limit) {
        ranks.insert(session, answer.shown);
        answer.shown += 1;
        words.hits.sort_by_key(|hit| (hit.version, hit.source, hit.event, hit.part));
        words.hits.dedup_by_key(|hit| (hit.version, hit.source, hit.event, hit.part));
        hits.append(&mut words.hits);
        marks.append(&mut words.marks);
    }
    answer.hits = marks::shown(marks.into_iter().map(|mark| (0, mark)), searcher, query, snippet_length)?;
    answer.hits.append(&mut shown(searcher, hits, query, snippet_length, None)?);
    answer.hits.sort_by_key(|shown| ranks.get(&shown.hit.session).copied());
    Ok(answer)
}

/// Where a session has words of a query.
#[derive(Default)]
struct FoundWords {
    hits: Vec<Hit>,
    /// Titles and notes that people gave it.
    marks: Vec<MarkHit>,
}

impl FoundWords {
    /// The order of two sessions.
    fn compared(&self, other: &FoundWords, order: Order) -> Ordering {
        let newest = |words: &FoundWords| words.hits.iter().filter_map(|hit| hit.time).max();
        let score = |words: &FoundWords| words.hits.iter().map(|hit| hit.score).sum::<f32>();
        let by_time = newest(other).cmp(&newest(self));
        match order {
            Order::Newest => by_time,
            Order::Best => score(other).total_cmp(&score(self)).then(by_time),
        }
    }
}

/// The best hit of each session, and the titles and notes that match.
fn best_hits(
    searcher: &mut Searcher,
    request: &SearchRequest<'_>,
    is_exact: &mut bool,
) -> Result<HashMap<SessionId, FoundWords>, Error> {
    let results = searcher.find(&SearchRequest { offset: 0, limit: HITS_MAX, ..*request })?;
    *is_exact &= !results.has_more;
    let mut best: HashMap<SessionId, FoundWords> = HashMap::new();
    for hit in results.hits {
        let words = best.entry(hit.session).or_default();
        if words.hits.is_empty() {
            words.hits.push(hit);
        }
    }
    for mark in searcher.find_marks(request.query, request.within)? {
        best.entry(mark.session).or_default().marks.push(mark);
    }
    Ok(best)
}
