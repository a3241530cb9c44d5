//! Given titles and notes among the hits of a search.

use stenograph::model::Span;
use stenograph::query::{Entry, Query};

use super::{EventAddresses, HitContent, ShownHit};
use crate::Error;
use crate::index::catalogue::SourceRow;
use crate::index::search::{Hit, MarkHit, Searcher};
use crate::sessions::ShortNames;

/// Titles and notes as hits, each with its rank. A note about an event opens that event.
pub(super) fn shown(
    marked: impl Iterator<Item = (usize, MarkHit)>,
    searcher: &mut Searcher,
    query: &Query,
    snippet_length: usize,
) -> Result<Vec<ShownHit>, Error> {
    let (short_names, mut addresses) = (ShortNames::of(searcher.catalogue())?, EventAddresses::default());
    let mut hits = Vec::new();
    for (rank, mark) in marked {
        let Some(session) = searcher.session(mark.session)?.cloned() else { continue };
        let main = searcher.catalogue().source_at(&session.path)?;
        let source = match &mark.event {
            Some(event) => searcher.source(event.source)?.cloned(),
            None => main,
        };
        let Some(source) = source else { continue };
        let time = mark.note.as_ref().map(|note| note.time_ms);
        let short = short_names.name(&session);
        let is_named = short_names.is_unique(&session);
        let named = Some((&session, short.as_str())).filter(|_| is_named);
        let open = match &mark.event {
            Some(event) => Some(addresses.of(searcher.catalogue(), named, (&source, event.event), event.version)?),
            None => None,
        };
        let entry = Entry::about_session(&mark.text, time);
        let kind = if mark.note.is_some() { "note" } else { "title" };
        let read = Ok(HitContent { kind, ..HitContent::of(&entry, query, snippet_length, None) });
        let hit = Hit { rank, time, ..mark.event.unwrap_or_else(|| of_session(&source)) };
        hits.push(ShownHit { session: Some(session), short, is_named, source: Some(source), open, hit, read });
    }
    Ok(hits)
}

/// The hit of a text about a session, which has no event.
fn of_session(source: &SourceRow) -> Hit {
    Hit {
        rank: 0,
        score: 0.0,
        source: source.id,
        session: source.session,
        version: None,
        event: 0,
        at: Span { offset: 0, length: 0, line: 0 },
        part: 0,
        time: None,
        key: 0,
        twin: 0,
        restates: false,
        is_covered: false,
        pieces: Vec::new(),
        tool: None,
        has_failed: false,
        copies: 0,
    }
}
