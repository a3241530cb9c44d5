//! The hits of a search as people and programs see them: with their session, their text and the way to open them.

mod across;
mod address;
mod json;
mod marks;

use std::collections::HashMap;

use stenograph::json::Object;
use stenograph::model::Event;
use stenograph::query::{EntryBuilder, Query, Snippet};
use stenograph::redact::{RecordSyntax, Redactor};
use stenograph::wire;

pub use across::{SessionAnswer, find_across};
pub use address::{EventAddresses, ShowAddress, numbers};

use crate::Error;
use crate::index::catalogue::{IndexedSession, SourceRow};
use crate::index::search::{EntryDetail, Hit, SearchRequest, Searcher};
use crate::sessions::ShortNames;

/// One hit, ready to show.
#[derive(Clone, Debug)]
pub struct ShownHit {
    /// Its session.
    pub session: Option<IndexedSession>,
    /// The shortest unique prefix of the session's name.
    pub short: String,
    /// Whether that prefix identifies only this session.
    pub is_named: bool,
    /// Its source.
    pub source: Option<SourceRow>,
    /// How to open it.
    pub open: Option<ShowAddress>,
    /// Its position.
    pub hit: Hit,
    /// Its content, or why it cannot be read.
    pub read: Result<HitContent, &'static str>,
}

/// The content of a hit.
#[derive(Clone, Debug)]
pub struct HitContent {
    /// The name of its kind.
    pub kind: &'static str,
    /// Its role, if it is a message.
    pub role: Option<&'static str>,
    /// The tool that was called or answered.
    pub tool: Option<String>,
    /// Whether it failed.
    pub is_error: bool,
    /// The text around the match.
    pub snippet: Snippet,
}

/// An answer, ready to show.
#[derive(Clone, Debug)]
pub struct ShownAnswer {
    /// The hits, in order.
    pub hits: Vec<ShownHit>,
    /// The number of all hits.
    pub total: u64,
    /// Whether that number is exact.
    pub is_exact: bool,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Asks the index, and reads the content of each hit. Titles and notes come first, in the same numbering.
pub fn find(searcher: &mut Searcher, request: &SearchRequest<'_>, snippet_length: usize) -> Result<ShownAnswer, Error> {
    find_masked(searcher, request, snippet_length, None)
}

/// Asks the index as [`find`] does, and masks the secrets of each hit before its text is cut, if there is a redactor.
pub fn find_masked(
    searcher: &mut Searcher,
    request: &SearchRequest<'_>,
    snippet_length: usize,
    redactor: Option<&Redactor>,
) -> Result<ShownAnswer, Error> {
    let SearchRequest { query, offset, limit, within, .. } = *request;
    let marked = searcher.find_marks(query, within)?;
    let marks_count = marked.len();
    let marked = marked.into_iter().enumerate().skip(offset).take(limit);
    let marked = marks::shown(marked, searcher, query, snippet_length)?;
    let (offset, limit) = (offset.saturating_sub(marks_count), limit.saturating_sub(marked.len()));
    let mut answer = searcher.find(&SearchRequest { offset, limit, ..*request })?;
    answer.hits.iter_mut().for_each(|hit| hit.rank += marks_count);
    let mut hits = marked;
    hits.append(&mut shown(searcher, answer.hits, query, snippet_length, redactor)?);
    let next = hits.last().map(|shown| shown.hit.rank + 1).filter(|next| answer.has_more || *next < marks_count);
    let (next, total) = (next.map(|next| next.to_string()), answer.total + marks_count as u64);
    Ok(ShownAnswer { hits, total, is_exact: answer.is_exact, next })
}

/// Reads the content of hits, and finds how to open each.
fn shown(
    searcher: &mut Searcher,
    found: Vec<Hit>,
    query: &Query,
    snippet_length: usize,
    redactor: Option<&Redactor>,
) -> Result<Vec<ShownHit>, Error> {
    let counts = searcher.counts(query)?;
    let mut read: Vec<Option<Result<HitContent, &'static str>>> = found.iter().map(|_| None).collect();
    searcher.read_each(&found, EntryDetail::Texts, &mut |at, content| {
        if let Some(slot) = read.get_mut(at) {
            *slot = Some(match content {
                Ok((_, entry)) if redactor.is_none() => Ok(HitContent::of(entry, query, snippet_length, Some(&counts))),
                Ok((event, _)) => {
                    let event = redactor.and_then(|redactor| masked(event, redactor));
                    let entry = event.as_ref().and_then(|event| EntryBuilder::default().entry(event));
                    let content = entry.map(|entry| HitContent::of(&entry, query, snippet_length, Some(&counts)));
                    content.ok_or("it cannot be masked")
                }
                Err(absent) => Err(absent.reason()),
            });
        }
    })?;
    let mut sessions = HashMap::new();
    for hit in &found {
        sessions.extend(searcher.session(hit.session)?.map(|session| (session.id, session.clone())));
    }
    let short_names = ShortNames::of_some(searcher.catalogue(), &sessions.values().collect::<Vec<_>>())?;
    let (mut hits, mut addresses) = (Vec::with_capacity(found.len()), EventAddresses::default());
    for (hit, read) in found.into_iter().zip(read) {
        let session = sessions.get(&hit.session).cloned();
        let source = searcher.source(hit.source)?.cloned();
        let short = session.as_ref().map(|session| short_names.name(session)).unwrap_or_default();
        let is_named = session.as_ref().is_some_and(|session| short_names.is_unique(session));
        let named = session.as_ref().filter(|_| is_named).map(|session| (session, short.as_str()));
        let open = source.as_ref().map(|source| {
            let place = (source, hit.event);
            addresses.of(searcher.catalogue(), named, place, hit.version)
        });
        let (open, read) = (open.transpose()?, read.unwrap_or(Err("it cannot be read")));
        hits.push(ShownHit { session, short, is_named, source, open, hit, read });
    }
    Ok(hits)
}

/// An event with its secrets masked; `None` if nothing is left of it.
fn masked(event: &Event<'_>, redactor: &Redactor) -> Option<Event<'static>> {
    let line = wire::event(event);
    let redacted = redactor.record(line.trim_end().as_bytes(), RecordSyntax::Json);
    let text = std::str::from_utf8(&redacted.bytes).ok()?;
    Some(wire::read(&mut Object::parse(text)?)?.into_owned())
}

impl HitContent {
    /// The content of an entry. `counts` states how common each search term is, if known.
    pub fn of(
        entry: &stenograph::query::Entry<'_>,
        query: &Query,
        snippet_length: usize,
        counts: Option<&[u64]>,
    ) -> HitContent {
        HitContent {
            kind: entry.kind.name(),
            role: entry.role.map(stenograph::model::Role::name),
            tool: entry.tool.as_deref().map(str::to_owned),
            is_error: entry.error,
            snippet: query.snippet(entry, snippet_length, counts),
        }
    }
}
